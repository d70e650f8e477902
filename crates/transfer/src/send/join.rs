//! Connects to the receiver, and opens the streams.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use elephan_session::{Session, connect};
use elephan_sys::socket::limit_rate;
use rustix::net::sockopt;

use super::{Options, Sender};
use crate::Error;
use crate::carry::Stream;
use crate::protocol::{Answer, Hello};

/// Streams that are opened at once, fewer than the strangers that a receiver admits at once.
const AT_ONCE: usize = 32;
/// A stream may wait this long for a receiver that is slow. That it is there is seen by its reports.
const SLOW: Duration = Duration::from_hours(24);

impl Sender<'_> {
    /// Opens all streams. Each takes several round trips, so many are opened side by side.
    pub(super) fn join_all(
        &self,
        at: SocketAddr,
        transfer: u64,
        key: [u8; 32],
    ) -> Result<Vec<Stream>, Error> {
        let mut all = Vec::new();
        let numbers: Vec<u32> = (0..self.options.streams).collect();
        for some in numbers.chunks(AT_ONCE) {
            let joined: Result<Vec<Stream>, Error> = thread::scope(|scope| {
                let join = |&number| scope.spawn(move || self.join(at, transfer, key, number));
                let joining: Vec<_> = some.iter().map(join).collect();
                joining.into_iter().map(|one| one.join().expect("it does not panic")).collect()
            });
            all.extend(joined?);
        }
        Ok(all)
    }

    fn join(&self, at: SocketAddr, transfer: u64, key: [u8; 32], stream: u32) -> Result<Stream, Error> {
        let mut session = connect(at, &self.options.token, self.options.patience)?;
        self.stop.close_at_failure(session.socket())?;
        let socket = session.socket().as_fd();
        if let Some(cc) = &self.options.cc {
            sockopt::set_tcp_congestion(socket, cc).map_err(|errno| {
                let cause = io::Error::from(errno);
                Error::Asked(format!("--cc: expected a name that the kernel has, found \"{cc}\": {cause}"))
            })?;
        }
        if let Some(pace) = self.options.pace {
            limit_rate(socket, pace).map_err(|error| Error::System("--pace", error))?;
        }
        session.send(&Hello::Join { transfer, key, stream })?;
        match session.receive("an answer to a stream")? {
            Answer::Joined => {}
            Answer::Refused(why) => return Err(Error::Told(why)),
            Answer::Opened(..) => return Err(Error::Peer("an answer to a stream", "another".to_owned())),
        }
        let mut stream = Stream::new(session, self.options.plain)?;
        stream.set_patience(SLOW)?;
        Ok(stream)
    }
}

pub(super) fn resolve(options: &Options) -> Result<Vec<SocketAddr>, Error> {
    let found = (options.host.as_str(), options.port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
    if found.is_empty() {
        let text = format!("{}: expected a host that has an address, found none", options.host);
        return Err(Error::Asked(text));
    }
    Ok(found)
}

/// Connects to the first address that answers.
pub(super) fn connect_any(to: &[SocketAddr], options: &Options) -> Result<Session, Error> {
    let mut last = None;
    for &at in to {
        match connect(at, &options.token, options.patience) {
            Err(error @ elephan_session::Error::System(..)) => last = Some(error),
            found => return Ok(found?),
        }
    }
    let why = last.map_or_else(String::new, |error| format!(": {error}"));
    let text = format!("{}:{}: expected a receiver there, found none{why}", options.host, options.port);
    Err(Error::Asked(text))
}
