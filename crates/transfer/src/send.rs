//! The sender: offers what it has, and sends it over all streams while it watches them.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use elephan_session::{Session, Token, connect};
use elephan_sys::socket::limit_rate;
use elephan_sys::{Recorded, TcpInfo, tcp_info};
use elephan_units::Time;
use rustix::net::sockopt;

use crate::protocol::{Answer, Content, Done, Hello, Offer, Report, VERSION};
use crate::source::{Payload, Source};
use crate::stop::Stop;
use crate::stream::{Head, Kind, Stream};
use crate::watch::{self, LOOK, Progress, Shared};
use crate::{Error, MOST_STREAMS, Watch};

/// A stream that has nothing to send reports it this often.
const IDLE: Duration = Duration::from_secs(1);
/// Blocks of a stream that are read and not sent yet.
const AHEAD: usize = 2;
/// Streams that are opened at once, fewer than the strangers that a receiver admits at once.
const AT_ONCE: usize = 32;
/// A stream may wait this long for a receiver that is slow. That it is there is seen by its reports.
const SLOW: Duration = Duration::from_hours(24);

/// A transfer.
#[derive(Debug)]
pub struct Options {
    /// The receiver's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its token.
    pub token: Token,
    /// What is sent.
    pub payload: Payload,
    /// The number of TCP connections for data.
    pub streams: u32,
    /// Whether data are not encrypted. They are authenticated nevertheless.
    pub plain: bool,
    /// Whether an existing file that differs is replaced.
    pub force: bool,
    /// The kernel's name of the congestion control; none for its default.
    pub cc: Option<String>,
    /// The highest rate of each stream, bytes per second (`SO_MAX_PACING_RATE`).
    pub pace: Option<u64>,
    /// A receiver that says nothing for so long is gone.
    pub patience: Duration,
}

/// A transfer that has come to its end.
pub struct Sent {
    /// What the receiver has done.
    pub done: Done,
    /// The streams.
    pub recorded: Recorded,
}

/// Sends. `progress` is kept up to date meanwhile. What has arrived of a file stays at the receiver, whatever ends it.
pub fn send(options: &Options, watch: &dyn Watch, progress: &Mutex<Progress>) -> Result<Sent, Error> {
    if !(1..=MOST_STREAMS).contains(&options.streams) {
        let text = format!("streams: expected a number from 1 to {MOST_STREAMS}, found {}", options.streams);
        return Err(Error::Asked(text));
    }
    let source = Source::open(&options.payload)?;
    let (stop, over) = (Stop::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if watch.is_cancelled() {
                    stop.fail(Error::Cancelled);
                }
                thread::sleep(LOOK);
            }
        });
        let sender = Sender { options, source, stop: &stop, progress };
        let sent = sender.run();
        over.store(true, Ordering::Relaxed);
        sent.map_err(|error| stop.take().unwrap_or(error))
    })
}

struct Sender<'a> {
    options: &'a Options,
    source: Source,
    stop: &'a Stop,
    progress: &'a Mutex<Progress>,
}

impl Sender<'_> {
    fn run(&self) -> Result<Sent, Error> {
        let mut control = connect_any(self.options)?;
        self.stop.close_at_failure(control.socket())?;
        let Options { streams, plain, force, .. } = *self.options;
        let content = self.source.content();
        control.send(&Hello::Open(Offer { version: VERSION, content, streams, plain, force }))?;
        let (transfer, key, have) = loop {
            match control.receive("an answer to the offer")? {
                Answer::Looking => {}
                Answer::Opened { transfer, key, have } => break (transfer, key, have),
                Answer::Refused(why) => return Err(Error::Told(why)),
                Answer::Joined => return Err(Error::Peer("an answer to the offer", "another".to_owned())),
            }
        };
        let at = control.socket().peer_addr().map_err(|error| Error::System("socket", error))?;
        let streams = self.join_all(at, transfer, key)?;
        let there = self.source.skip(have);
        let mut progress = self.progress.lock().expect("nobody panics with it");
        (progress.total, progress.stored) = (self.source.size(), there);
        drop(progress);
        self.transfer(control, streams, &Shared { stored: there.into(), ..Shared::default() })
    }

    /// Opens all streams. Each takes several round trips, so many are opened side by side.
    fn join_all(&self, at: SocketAddr, transfer: u64, key: [u8; 32]) -> Result<Vec<Stream>, Error> {
        let mut all = Vec::new();
        let numbers: Vec<u32> = (0..self.options.streams).collect();
        for some in numbers.chunks(AT_ONCE) {
            let joined: Result<Vec<Stream>, Error> = thread::scope(|scope| {
                let join = |&number| scope.spawn(move || self.join(at, transfer, key, number));
                let joining: Vec<_> = some.iter().map(join).collect();
                joining.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
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
            _ => return Err(Error::Peer("an answer to a stream", "another".to_owned())),
        }
        let mut stream = Stream::new(session, self.options.plain)?;
        stream.set_patience(SLOW)?;
        Ok(stream)
    }

    fn transfer(&self, mut control: Session, streams: Vec<Stream>, shared: &Shared) -> Result<Sent, Error> {
        let sockets: Vec<_> = streams.iter().map(|stream| stream.socket().try_clone()).collect();
        let sockets = sockets.into_iter().collect::<Result<Vec<_>, _>>();
        let sockets = sockets.map_err(|error| Error::System("socket", error))?;
        let infos = || sockets.iter().map(|socket| tcp_info(socket.as_fd()).unwrap_or_default()).collect();
        let infos: &(dyn Fn() -> Vec<TcpInfo> + Sync) = &infos;
        let began = Instant::now();
        thread::scope(|scope| {
            for stream in streams {
                self.spawn(scope, stream, shared);
            }
            let watching = scope.spawn(|| watch::watch(began, infos, shared, self.stop, self.progress));
            let done = loop {
                match control.receive("a report") {
                    Ok(Report::SoFar { stored, waited_ns }) => {
                        shared.stored.store(stored, Ordering::Relaxed);
                        shared.sink_waited_ns.store(waited_ns, Ordering::Relaxed);
                    }
                    Ok(Report::Done(done)) => break Ok(done),
                    Ok(Report::Failed(why)) => break Err(Error::Told(why)),
                    Err(error) => break Err(error.into()),
                }
            };
            let (end, last) = (Time::from_secs_f64(began.elapsed().as_secs_f64()), infos());
            shared.over.store(true, Ordering::Relaxed);
            if let Err(error) = done {
                self.stop.fail(error);
                let _ = watching.join();
                return Err(Error::Cancelled);
            }
            let record = watching.join().expect("it does not panic");
            Ok(Sent { done: done?, recorded: record.finish(end, last.into_iter().enumerate()) })
        })
    }

    /// Carries out a thread's work. A stream that was closed is no reason of its own: why it was, is known from the session that
    /// controls the transfer, where the receiver says it, or which is closed too.
    fn heed(&self, work: impl FnOnce() -> Result<(), Error>) {
        self.stop.heed(|| match work() {
            Err(Error::Session(elephan_session::Error::Closed)) => Ok(()),
            other => other,
        });
    }

    /// Starts the threads of a stream: one that reads, and one that sends. Memory has nothing to be read.
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut stream: Stream,
        shared: &'scope Shared,
    ) {
        let mut send = move |head: &Head, data: &[u8]| stream.send(head, &data[..head.length as usize]);
        if let Content::Memory(_) = self.source.content() {
            scope.spawn(move || {
                self.heed(|| {
                    let mut data = Vec::new();
                    while let Some(head) = self.source.next(self.stop, &mut data)? {
                        send(&head, &data)?;
                    }
                    send(&self.source.end(), &[])
                });
            });
            return;
        }
        let (filled, to_send) = mpsc::sync_channel(AHEAD);
        let (returned, free) = mpsc::channel::<Vec<u8>>();
        for _ in 0..=AHEAD {
            let _ = returned.send(Vec::new());
        }
        // `filled` is dropped after a failure has closed the stream, so that it does not seem to have come to its end.
        scope.spawn(move || {
            self.heed(|| {
                while let Ok(mut data) = free.recv() {
                    let Some(head) = self.source.next(self.stop, &mut data)? else { break };
                    if filled.send((head, data)).is_err() {
                        break;
                    }
                }
                Ok(())
            });
        });
        scope.spawn(move || {
            self.heed(|| {
                loop {
                    let waits = Instant::now();
                    let next: Result<(Head, Vec<u8>), _> = to_send.recv_timeout(IDLE);
                    shared.waited_ns.fetch_add(waits.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    match next {
                        Ok((head, data)) => {
                            send(&head, &data)?;
                            // Its reader may have ended.
                            let _ = returned.send(data);
                        }
                        Err(RecvTimeoutError::Timeout) => send(&Head::plain(Kind::Idle, 0, 0), &[])?,
                        Err(RecvTimeoutError::Disconnected) => return send(&self.source.end(), &[]),
                    }
                }
            });
        });
    }
}

/// Connects to the first address of the host that answers.
fn connect_any(options: &Options) -> Result<Session, Error> {
    let to = (options.host.as_str(), options.port).to_socket_addrs();
    let to: Vec<SocketAddr> = to.map(Iterator::collect).unwrap_or_default();
    if to.is_empty() {
        let text = format!("{}: expected a host that has an address, found none", options.host);
        return Err(Error::Asked(text));
    }
    let mut last = None;
    for at in to {
        match connect(at, &options.token, options.patience) {
            Err(error @ elephan_session::Error::System(..)) => last = Some(error),
            session => return Ok(session?),
        }
    }
    let why = last.map_or_else(String::new, |error| format!(": {error}"));
    let text = format!("{}:{}: expected a receiver there, found none{why}", options.host, options.port);
    Err(Error::Asked(text))
}
