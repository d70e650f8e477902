//! The sender: agrees with the receiver on what is sent, and sends it over all streams while it watches them.

mod agree;
mod join;
mod streams;
mod watch;

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_session::{Session, Token};
use elephan_sys::{Recorded, TcpInfo, tcp_info};
use elephan_units::Time;

use self::join::{connect_any, resolve};
pub use self::watch::Limit;
use crate::carry::Stream;
use crate::manifest::Entry;
use crate::protocol::{Answer, Done, Hello, LeftOut, Offer, Report, VERSION};
use crate::source::{Source, Work};
use crate::stop::Stop;
use crate::{Error, MOST_STREAMS, Watch};

/// A stream that has nothing to send reports it this often.
const IDLE: Duration = Duration::from_secs(1);
/// How often the streams are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// What is sent.
#[derive(Clone, Debug)]
pub enum Payload {
    /// So many bytes of memory, which the receiver discards.
    Memory(u64),
    /// A file, or a folder with everything in it.
    Files(PathBuf),
}

/// A transfer.
#[derive(Clone, Debug)]
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
    /// Whether existing files that differ are replaced.
    pub force: bool,
    /// The kernel's name of the congestion control; none for its default.
    pub cc: Option<String>,
    /// The highest rate of each stream, bytes per second (`SO_MAX_PACING_RATE`).
    pub pace: Option<u64>,
    /// A receiver that says nothing for so long is gone.
    pub patience: Duration,
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of all files that are not in place yet at the receiver, those that it has in part included; none until that is
    /// known.
    pub total: Option<u64>,
    /// Of these, the bytes that the receiver has stored.
    pub stored: u64,
    /// Bytes that were stored in the last second, as a rate.
    pub rate_bit_s: f64,
    /// What limits it.
    pub limit: Option<Limit>,
}

/// A transfer that has come to its end.
pub struct Sent {
    /// What the receiver has done.
    pub done: Done,
    /// What the sender left out.
    pub left: Vec<LeftOut>,
    /// Bytes that were to be sent.
    pub bytes: u64,
    /// The streams.
    pub recorded: Recorded,
}

/// Sends. `progress` is kept up to date meanwhile. What has arrived stays at the receiver, whatever ends it.
pub fn send(options: &Options, watch: &dyn Watch, progress: &Mutex<Progress>) -> Result<Sent, Error> {
    if !(1..=MOST_STREAMS).contains(&options.streams) {
        let text = format!("streams: expected a number from 1 to {MOST_STREAMS}, found {}", options.streams);
        return Err(Error::Asked(text));
    }
    let source = match &options.payload {
        Payload::Memory(_) => None,
        Payload::Files(path) => Some(Source::list(path)?),
    };
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
        let sender = Sender { options, source: source.as_ref(), stop: &stop, progress };
        let sent = sender.run();
        over.store(true, Ordering::Relaxed);
        sent.map_err(|error| stop.take().unwrap_or(error))
    })
}

struct Sender<'a> {
    options: &'a Options,
    source: Option<&'a Source>,
    stop: &'a Stop,
    progress: &'a Mutex<Progress>,
}

/// What the threads of the streams share.
struct Shared {
    work: Mutex<Work>,
    /// Time for which streams waited for data, all together.
    waited_ns: AtomicU64,
    /// The receiver's report.
    stored: AtomicU64,
    disk_ns: AtomicU64,
    over: AtomicBool,
}

impl Sender<'_> {
    fn entries(&self) -> &[Entry] {
        self.source.map_or(&[], |source| &source.entries)
    }

    fn run(&self) -> Result<Sent, Error> {
        let to = resolve(self.options)?;
        let mut control = connect_any(&to, self.options)?;
        self.stop.close_at_failure(control.socket())?;
        let memory = match self.options.payload {
            Payload::Memory(bytes) => Some(bytes),
            Payload::Files(_) => None,
        };
        let Options { streams, plain, force, .. } = *self.options;
        control.send(&Hello::Open(Offer { version: VERSION, memory, streams, plain, force }))?;
        let (transfer, key) = match control.receive("an answer to the offer")? {
            Answer::Opened(transfer, key) => (transfer, key),
            Answer::Refused(why) => return Err(Error::Told(why)),
            Answer::Joined => return Err(Error::Peer("an answer to the offer", "another".to_owned())),
        };
        let at = control.socket().peer_addr().map_err(|error| Error::System("socket", error))?;
        let streams = self.join_all(at, transfer, key)?;
        let work = match memory {
            Some(bytes) => Work::memory(bytes),
            None => self.agree(&mut control)?,
        };
        let (total, bytes) = work.bytes(self.entries());
        let mut progress = self.progress.lock().expect("nobody panics with it");
        (progress.total, progress.stored) = (Some(total), total - bytes);
        drop(progress);
        let shared = Shared {
            work: Mutex::new(work),
            waited_ns: AtomicU64::new(0),
            stored: AtomicU64::new(total - bytes),
            disk_ns: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        let (done, recorded) = self.transfer(control, streams, &shared)?;
        let left = self.source.map_or_else(Vec::new, |source| source.left.clone());
        Ok(Sent { done, left, bytes, recorded })
    }

    fn transfer(
        &self,
        mut control: Session,
        streams: Vec<Stream>,
        shared: &Shared,
    ) -> Result<(Done, Recorded), Error> {
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
            let watching = scope.spawn(|| self.watch(began, infos, shared));
            let done = loop {
                match control.receive("a report") {
                    Ok(Report::SoFar { stored, disk_ns }) => {
                        shared.stored.store(stored, Ordering::Relaxed);
                        shared.disk_ns.store(disk_ns, Ordering::Relaxed);
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
            Ok((done?, record.finish(end, last.into_iter().enumerate())))
        })
    }
}
