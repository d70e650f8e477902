//! The receiver: admits senders who have its token, verifies what they send, and stores it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use elephan_session::{Identity, Session, Strangers, Token};

use crate::folder::{Folder, Partial};
use crate::hash::{self, BLOCK, blocks};
use crate::output::Output;
use crate::protocol::{Answer, Content, Done, Entry, Hello, Offer, Report, VERSION};
use crate::stop::Stop;
use crate::stream::{Head, Kind, Stream};
use crate::{Error, MOST_STREAMS, Watch};

/// Strangers who may be on the way to show the token at the same time.
const MOST_STRANGERS: usize = 64;
/// How often a receiver looks for connections, and for being cancelled.
const LISTENS: Duration = Duration::from_millis(20);
/// Time between reports to the sender.
const REPORTS: Duration = Duration::from_millis(100);
/// What arrives is on the disk and in the journals after this time, and no more than that is lost by a kill.
const COMMITS: Duration = Duration::from_millis(500);
/// A receiver that is busy looking reports it this often.
const LOOKING: Duration = Duration::from_secs(1);
/// Blocks of a stream that have arrived and are not written yet.
const AHEAD: usize = 2;
/// Memory is taken out of a stream in such parts.
const PART: usize = 256 << 10;

/// What happens at a receiver.
#[derive(Clone, Debug)]
pub enum Event {
    /// A transfer has begun: from where, and of what.
    Began(SocketAddr, String),
    /// It has come to its end, after this time.
    Ended(SocketAddr, Done, Duration),
    /// It has failed, and why.
    Failed(SocketAddr, String),
}

/// What a receiver takes, and where it puts it.
pub enum Place {
    /// Memory, which is discarded.
    Nowhere,
    /// Files, and memory.
    Folder(Folder),
    /// What one pipe yields, into another.
    Pipe(OwnedFd),
}

/// Where the blocks of a transfer go.
enum Sink<'a> {
    File(Partial<'a>),
    Pipe(Output<'a>),
}

/// A server that receives, one transfer after the other.
pub struct Receiver {
    listener: TcpListener,
    identity: Identity,
    place: Place,
    patience: Duration,
    strangers: Strangers,
    /// Those from where a transfer has been admitted.
    known: Strangers,
    /// The transfer that holds it receives.
    turn: Mutex<()>,
    joining: Mutex<BTreeMap<u64, Joining>>,
    next: AtomicU64,
    over: AtomicBool,
    /// How a transfer has ended after which the receiver may end.
    finished: Mutex<Option<Result<(), Error>>>,
    /// All connections, to close them when it ends.
    sockets: Mutex<BTreeMap<u64, TcpStream>>,
    events: Mutex<Vec<Event>>,
}

/// A transfer whose streams may join.
struct Joining {
    from: IpAddr,
    key: blake3::Hash,
    streams: mpsc::Sender<(u32, Session)>,
}

impl Receiver {
    /// Listens.
    pub fn bind(at: SocketAddr, place: Place, patience: Duration) -> Result<Self, Error> {
        let refused =
            |error| Error::Asked(format!("{at}: expected an address and a port that are free: {error}"));
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(|error| Error::System("socket", error))?;
        Ok(Self {
            listener,
            identity: Identity::new(),
            place,
            patience,
            strangers: Strangers::new(MOST_STRANGERS),
            known: Strangers::new(MOST_STRANGERS),
            turn: Mutex::new(()),
            joining: Mutex::default(),
            next: AtomicU64::new(1),
            over: AtomicBool::new(false),
            finished: Mutex::default(),
            sockets: Mutex::default(),
            events: Mutex::default(),
        })
    }

    /// The address at which it listens.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|error| Error::System("socket", error))
    }

    /// The token of those who may send.
    pub fn token(&self) -> &Token {
        self.identity.token()
    }

    /// What has happened since the last call.
    pub fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().expect("nobody panics with it"))
    }

    /// Receives until it is cancelled; with `once`, or into a pipe, until a transfer has come to its end. One that has failed
    /// ends a receiver into a pipe, whose reader may have a part of it.
    pub fn serve(&self, watch: &dyn Watch, once: bool) -> Result<(), Error> {
        let once = once || matches!(self.place, Place::Pipe(_));
        let served = thread::scope(|scope| {
            let served = loop {
                if watch.is_cancelled() {
                    break Err(Error::Cancelled);
                }
                if once && let Some(end) = self.finished.lock().expect("nobody panics with it").take() {
                    break end;
                }
                match self.listener.accept() {
                    Ok((stream, peer)) => self.admit(scope, stream, peer),
                    // A client went away, or too many files are open: others may still come.
                    Err(_) => thread::sleep(LISTENS),
                }
            };
            self.over.store(true, Ordering::Release);
            for socket in self.sockets.lock().expect("nobody panics with it").values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            served
        });
        self.over.store(false, Ordering::Release);
        served
    }

    fn admit<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, stream: TcpStream, peer: SocketAddr) {
        // A stream that joins a transfer comes from where the transfer does.
        let known =
            self.joining.lock().expect("nobody panics with it").values().any(|one| one.from == peer.ip());
        let places = if known { &self.known } else { &self.strangers };
        let Ok(place) = places.enter(&stream, peer.ip()) else { return };
        scope.spawn(move || {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Ok(socket) = stream.try_clone() {
                self.sockets.lock().expect("nobody panics with it").insert(number, socket);
            }
            let session = self.identity.accept(stream, self.patience);
            drop(place);
            match session {
                Ok(session) => self.greet(session, peer),
                Err(error) => self.tell(Event::Failed(peer, error.to_string())),
            }
            // A stream that has joined a transfer is closed with it.
            self.sockets.lock().expect("nobody panics with it").remove(&number);
        });
    }

    fn tell(&self, event: Event) {
        if !self.over.load(Ordering::Acquire) {
            self.events.lock().expect("nobody panics with it").push(event);
        }
    }

    /// Hears what somebody wants who has the token.
    fn greet(&self, mut session: Session, peer: SocketAddr) {
        match session.receive("what is to be sent") {
            Ok(Hello::Open(offer)) => {
                let began = Instant::now();
                let mut opened = false;
                let end = match self.open(&mut session, &offer, peer, &mut opened) {
                    Ok(done) => {
                        self.tell(Event::Ended(peer, done, began.elapsed()));
                        Ok(())
                    }
                    Err(error) => {
                        let text = error.to_string();
                        // It may be gone.
                        let _ = session.send(&Report::Failed(text.clone()));
                        if !(opened && matches!(self.place, Place::Pipe(_))) {
                            self.tell(Event::Failed(peer, text));
                            return;
                        }
                        Err(error)
                    }
                };
                *self.finished.lock().expect("nobody panics with it") = Some(end);
            }
            Ok(Hello::Join { transfer, key, stream }) => self.join(session, transfer, key, stream),
            Err(error) => self.tell(Event::Failed(peer, error.to_string())),
        }
    }

    fn join(&self, mut session: Session, transfer: u64, key: [u8; 32], stream: u32) {
        let joining = self.joining.lock().expect("nobody panics with it");
        // This comparison takes the same time for any difference.
        let found = joining.get(&transfer).filter(|joining| joining.key == blake3::Hash::from_bytes(key));
        let streams = found.map(|joining| joining.streams.clone());
        drop(joining);
        // Who goes away now is missed by the transfer.
        let Some(streams) = streams else {
            let _ = session.send(&Answer::Refused("expected a transfer that is open, found none".to_owned()));
            return;
        };
        if session.send(&Answer::Joined).is_ok() {
            let _ = streams.send((stream, session));
        }
    }

    /// Waits for its turn, for half of the patience.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let since = Instant::now();
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                // What a transfer that panicked held is nothing.
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if since.elapsed() > self.patience / 2 => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(LISTENS),
            }
        }
    }

    /// Why an offer is not wanted.
    fn problem(&self, offer: &Offer) -> Option<String> {
        if offer.version != VERSION || !(1..=MOST_STREAMS).contains(&offer.streams) {
            return Some(format!(
                "receiver: expected version {VERSION} and at most {MOST_STREAMS} streams, found version {} and {}",
                offer.version, offer.streams
            ));
        }
        let (expected, started) = match (&self.place, &offer.content) {
            (Place::Folder(_), Content::File(entry)) => {
                let found = |expected| format!("receiver: expected {expected}, found {}", entry.shown());
                return entry.problem().map(found);
            }
            (Place::Nowhere | Place::Folder(_), Content::Memory(_)) | (Place::Pipe(_), Content::Pipe) => {
                return None;
            }
            (Place::Nowhere, _) => ("memory", "without a folder"),
            (Place::Folder(_), Content::Pipe) => ("a file or memory", "with a folder and not with `-`"),
            (Place::Pipe(_), _) => ("what a pipe yields (`elephan path transfer send - HOST`)", "with `-`"),
        };
        let found = match offer.content {
            Content::Memory(_) => "memory",
            Content::File(_) => "a file",
            Content::Pipe => "standard input",
        };
        Some(format!("receiver: expected {expected}, because it was started {started}; found {found}"))
    }

    /// Opens a transfer, and carries it out. `opened` is set when the sender may send.
    fn open(
        &self,
        control: &mut Session,
        offer: &Offer,
        peer: SocketAddr,
        opened: &mut bool,
    ) -> Result<Done, Error> {
        let refuse = |control: &mut Session, why: String| {
            control.send(&Answer::Refused(why.clone()))?;
            Err(Error::Told(why))
        };
        if let Some(why) = self.problem(offer) {
            return refuse(control, why);
        }
        let Some(_turn) = self.turn() else {
            return refuse(
                control,
                "receiver: expected no other transfer to be going on, found one".to_owned(),
            );
        };
        let (mut done, mut have, mut there) = (Done::default(), Vec::new(), 0);
        let (sink, what) = match (&self.place, &offer.content) {
            (Place::Folder(folder), Content::File(entry)) => {
                match partial(control, folder, entry, offer.force) {
                    Ok(Some(partial)) => {
                        (have, there) = partial.have();
                        (Some(Sink::File(partial)), entry.shown())
                    }
                    Ok(None) => {
                        have = vec![u8::MAX; blocks(entry.size).div_ceil(8) as usize];
                        (done.there, there) = (true, entry.size);
                        (None, entry.shown())
                    }
                    Err(error) => return refuse(control, error.to_string()),
                }
            }
            (Place::Pipe(pipe), _) => {
                let output = Output::new(pipe, offer.streams as usize);
                (Some(Sink::Pipe(output)), "standard input".to_owned())
            }
            _ => (None, "memory".to_owned()),
        };
        let transfer = self.next.fetch_add(1, Ordering::Relaxed);
        // The session's own secret: nobody else can know it.
        let key = control.secret("EXPORTER-elephan-transfer-join");
        let (streams, joined) = mpsc::channel();
        let joining = Joining { from: peer.ip(), key: blake3::Hash::from_bytes(key), streams };
        self.joining.lock().expect("nobody panics with it").insert(transfer, joining);
        let answered = control.send(&Answer::Opened { transfer, key, have }).map_err(Error::from);
        let streams = answered.and_then(|()| self.gather(&joined, offer));
        self.joining.lock().expect("nobody panics with it").remove(&transfer);
        let streams = streams?;
        *opened = true;
        self.tell(Event::Began(peer, what));
        (done.bytes, done.hash) = self.transfer(control, streams, sink.as_ref(), there, offer.force)?;
        control.send(&Report::Done(done.clone()))?;
        Ok(done)
    }

    /// Waits for the streams of a transfer.
    fn gather(&self, joined: &mpsc::Receiver<(u32, Session)>, offer: &Offer) -> Result<Vec<Stream>, Error> {
        let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
        let until = Instant::now() + self.patience;
        while streams.len() < offer.streams as usize {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((number, session)) = joined.recv_timeout(left) else {
                let found = format!("{} within {} s", streams.len(), self.patience.as_secs_f64());
                return Err(Error::Peer("all streams to join", found));
            };
            let mut stream = Stream::new(session, offer.plain)?;
            stream.set_patience(self.patience)?;
            if number >= offer.streams || streams.insert(number, stream).is_some() {
                return Err(Error::Peer("each stream to join once", format!("stream {number}")));
            }
        }
        Ok(streams.into_values().collect())
    }

    /// Receives what is sent over these streams; `there` bytes of it are from earlier transfers. Returns the bytes that have
    /// arrived, and the hash of all.
    fn transfer(
        &self,
        control: &mut Session,
        streams: Vec<Stream>,
        sink: Option<&Sink<'_>>,
        there: u64,
        replace: bool,
    ) -> Result<(u64, Option<[u8; 32]>), Error> {
        let (stop, stored, waited_ns) = (Stop::default(), AtomicU64::new(there), AtomicU64::new(0));
        for stream in &streams {
            stop.close_at_failure(stream.socket())?;
        }
        let (stop, stored, waited_ns) = (&stop, &stored, &waited_ns);
        let hash = thread::scope(|scope| {
            let (ended, all_ended) = mpsc::channel::<()>();
            for mut stream in streams {
                let ended = ended.clone();
                let Some(sink) = sink else {
                    scope.spawn(move || {
                        let _ended = ended;
                        stop.heed(|| discard(&mut stream, stored));
                    });
                    continue;
                };
                let (filled, to_write) = mpsc::sync_channel(AHEAD);
                let (returned, free) = mpsc::channel();
                for _ in 0..=AHEAD {
                    let _ = returned.send(Vec::new());
                }
                scope.spawn(move || stop.heed(|| take(&mut stream, &filled, &free, waited_ns)));
                scope.spawn(move || {
                    let _ended = ended;
                    stop.heed(|| write(sink, &to_write, &returned, stored, stop));
                });
            }
            drop(ended);
            let (finish, finished) = mpsc::channel();
            scope.spawn(move || {
                while all_ended.recv_timeout(COMMITS) == Err(RecvTimeoutError::Timeout) {
                    if let Some(Sink::File(partial)) = sink {
                        stop.heed(|| partial.commit());
                    }
                }
                let _ = finish.send(match sink {
                    // The next attempt goes on with what has arrived.
                    Some(Sink::File(partial)) if stop.has_failed() => partial.commit().map(|()| None),
                    Some(Sink::File(partial)) => partial.complete(replace).map(Some),
                    Some(Sink::Pipe(output)) => output.complete().map(Some),
                    None => Ok(None),
                });
            });
            loop {
                if let Ok(hash) = finished.recv_timeout(REPORTS) {
                    break hash;
                }
                let (stored, waited_ns) = (stored.load(Ordering::Relaxed), waited_ns.load(Ordering::Relaxed));
                stop.heed(|| Ok(control.send(&Report::SoFar { stored, waited_ns })?));
                if self.over.load(Ordering::Acquire) {
                    stop.fail(Error::Cancelled);
                }
            }
        });
        if let Some(error) = stop.take() {
            return Err(error);
        }
        Ok((stored.load(Ordering::Relaxed) - there, hash?.map(|hash| *hash.as_bytes())))
    }
}

/// The partial file of a file; none if the whole file is there.
fn partial<'a>(
    control: &mut Session,
    folder: &'a Folder,
    entry: &Entry,
    replace: bool,
) -> Result<Option<Partial<'a>>, Error> {
    if folder.has(entry, replace)? {
        return Ok(None);
    }
    let mut told = Instant::now();
    let looking = || {
        if told.elapsed() >= LOOKING {
            told = Instant::now();
            control.send(&Answer::Looking)?;
        }
        Ok(())
    };
    Partial::open(folder, entry, looking).map(Some)
}

/// Takes memory out of a stream.
fn discard(stream: &mut Stream, arrived: &AtomicU64) -> Result<(), Error> {
    let mut part = vec![0; PART];
    loop {
        let head = stream.head()?;
        match head.kind {
            Kind::Idle => {}
            Kind::End => return Ok(()),
            Kind::Memory => {
                let mut rest = head.length as usize;
                while rest > 0 {
                    let now = rest.min(PART);
                    stream.fill(&mut part[..now])?;
                    arrived.fetch_add(now as u64, Ordering::Relaxed);
                    rest -= now;
                }
            }
            Kind::Block => return Err(Error::Peer("memory", "a block".to_owned())),
        }
    }
}

/// Takes frames out of a stream, and hands them to the thread that writes them.
fn take(
    stream: &mut Stream,
    filled: &mpsc::SyncSender<(Head, Vec<u8>)>,
    free: &mpsc::Receiver<Vec<u8>>,
    waited_ns: &AtomicU64,
) -> Result<(), Error> {
    loop {
        let head = stream.head()?;
        match head.kind {
            Kind::Idle => continue,
            Kind::Memory => return Err(Error::Peer("blocks", "memory".to_owned())),
            Kind::Block | Kind::End => {}
        }
        let waits = Instant::now();
        // If the other thread has ended, it has said why.
        let Ok(mut data) = free.recv() else { return Ok(()) };
        waited_ns.fetch_add(waits.elapsed().as_nanos() as u64, Ordering::Relaxed);
        // It only grows, so that memory is cleared once.
        if data.len() < head.length as usize {
            data.resize(BLOCK as usize, 0);
        }
        stream.fill(&mut data[..head.length as usize])?;
        if filled.send((head, data)).is_err() || head.kind == Kind::End {
            return Ok(());
        }
    }
}

/// Verifies and writes blocks, until the end of their stream.
fn write(
    sink: &Sink<'_>,
    to_write: &mpsc::Receiver<(Head, Vec<u8>)>,
    returned: &mpsc::Sender<Vec<u8>>,
    stored: &AtomicU64,
    stop: &Stop,
) -> Result<(), Error> {
    for (head, data) in to_write {
        let content = &data[..head.length as usize];
        if head.kind == Kind::End {
            if let Sink::Pipe(output) = sink {
                output.end(head.block);
            }
            break;
        }
        if hash::of(head.block, content) != head.hash {
            return Err(Error::Peer("data that have their hash", format!("others in block {}", head.block)));
        }
        match sink {
            Sink::File(partial) => partial.write(head.block, content, head.hash)?,
            Sink::Pipe(output) => output.write(head.block, content, head.hash, stop)?,
        }
        stored.fetch_add(u64::from(head.length), Ordering::Relaxed);
        // The stream may have ended.
        let _ = returned.send(data);
    }
    Ok(())
}
