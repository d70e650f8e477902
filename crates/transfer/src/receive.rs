//! The receiver: admits senders who have its token, and stores what they send.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use elephan_session::{Identity, Session, Token};

use crate::carry::Stream;
use crate::frame::{Head, Kind, MOST_DATA};
use crate::hash::BLOCK;
use crate::manifest::{Entry, MOST_ENTRIES, MOST_NAMES, shown};
use crate::protocol::{Answer, Compared, Done, Have, Hello, Holding, List, Offer, Report, VERSION};
use crate::stop::Stop;
use crate::store::Store;
use crate::tree::Tree;
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

/// How far the transfer is that is going on: bytes that were stored, of how many.
#[derive(Clone, Copy, Debug, Default)]
pub struct Incoming {
    /// Bytes that were verified and written, or that were there from an earlier attempt.
    pub stored: u64,
    /// Bytes of all.
    pub total: u64,
}

/// A server that receives, one transfer after the other.
pub struct Receiver {
    listener: TcpListener,
    identity: Identity,
    folder: Option<PathBuf>,
    patience: Duration,
    strangers: AtomicUsize,
    /// The transfer that holds it receives.
    turn: Mutex<()>,
    joining: Mutex<BTreeMap<u64, Joining>>,
    next: AtomicU64,
    over: AtomicBool,
    finished: AtomicBool,
    /// All connections, to close them when it ends.
    sockets: Mutex<BTreeMap<u64, TcpStream>>,
    events: Mutex<Vec<Event>>,
    incoming: Mutex<Option<Incoming>>,
}

/// A transfer whose streams may join.
struct Joining {
    key: blake3::Hash,
    streams: mpsc::Sender<(u32, Session)>,
}

impl Receiver {
    /// Listens. Files go into `folder`, which exists; without it, memory alone is received.
    pub fn bind(at: SocketAddr, folder: Option<&Path>, patience: Duration) -> Result<Self, Error> {
        if let Some(folder) = folder {
            let metadata = folder.metadata().map_err(Error::file(folder))?;
            if !metadata.is_dir() {
                let text = format!("{}: expected a folder, found a file", folder.display());
                return Err(Error::Asked(text));
            }
        }
        let refused =
            |error| Error::Asked(format!("{at}: expected an address and a port that are free: {error}"));
        let listener = TcpListener::bind(at).map_err(refused)?;
        listener.set_nonblocking(true).map_err(|error| Error::System("socket", error))?;
        Ok(Self {
            listener,
            identity: Identity::new(),
            folder: folder.map(Path::to_owned),
            patience,
            strangers: AtomicUsize::new(0),
            turn: Mutex::new(()),
            joining: Mutex::default(),
            next: AtomicU64::new(1),
            over: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            sockets: Mutex::default(),
            events: Mutex::default(),
            incoming: Mutex::default(),
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

    /// The transfer that is going on.
    pub fn incoming(&self) -> Option<Incoming> {
        *self.incoming.lock().expect("nobody panics with it")
    }

    /// Receives until it is cancelled; with `once`, until a transfer has come to its end.
    pub fn serve(&self, watch: &dyn Watch, once: bool) -> Result<(), Error> {
        let served = thread::scope(|scope| {
            let served = loop {
                if watch.is_cancelled() {
                    break Err(Error::Cancelled);
                }
                if once && self.finished.load(Ordering::Acquire) {
                    break Ok(());
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
        if self.strangers.fetch_add(1, Ordering::AcqRel) >= MOST_STRANGERS {
            self.strangers.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        scope.spawn(move || {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Ok(socket) = stream.try_clone() {
                self.sockets.lock().expect("nobody panics with it").insert(number, socket);
            }
            let session = self.identity.accept(stream, self.patience);
            self.strangers.fetch_sub(1, Ordering::AcqRel);
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
                match self.open(&mut session, &offer, peer) {
                    Ok(done) => {
                        self.tell(Event::Ended(peer, done, began.elapsed()));
                        self.finished.store(true, Ordering::Release);
                    }
                    Err(error) => {
                        let text = error.to_string();
                        // It may be gone.
                        let _ = session.send(&Report::Failed(text.clone()));
                        self.tell(Event::Failed(peer, text));
                    }
                }
                *self.incoming.lock().expect("nobody panics with it") = None;
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

    fn open(&self, control: &mut Session, offer: &Offer, peer: SocketAddr) -> Result<Done, Error> {
        let refuse = |control: &mut Session, why: String| {
            control.send(&Answer::Refused(why.clone()))?;
            Err(Error::Told(why))
        };
        if offer.version != VERSION || !(1..=MOST_STREAMS).contains(&offer.streams) {
            let why = format!(
                "receiver: expected version {VERSION} and at most {MOST_STREAMS} streams, found version {} and {}",
                offer.version, offer.streams
            );
            return refuse(control, why);
        }
        if offer.memory.is_none() && self.folder.is_none() {
            let why =
                "receiver: expected memory, because it was started without a folder; found files".to_owned();
            return refuse(control, why);
        }
        let Some(_turn) = self.turn() else {
            return refuse(
                control,
                "receiver: expected no other transfer to be going on, found one".to_owned(),
            );
        };
        let tree = match (&self.folder, offer.memory) {
            (Some(folder), None) => match Tree::open(folder) {
                Ok(tree) => Some(tree),
                Err(error) => return refuse(control, error.to_string()),
            },
            _ => None,
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // The session's own secret: nobody else can know it.
        let key = control.secret("EXPORTER-elephan-transfer-join");
        let (streams, joined) = mpsc::channel();
        let joining = Joining { key: blake3::Hash::from_bytes(key), streams };
        self.joining.lock().expect("nobody panics with it").insert(number, joining);
        let opened = control.send(&Answer::Opened(number, key)).map_err(Error::from);
        let streams = opened.and_then(|()| self.gather(&joined, offer));
        self.joining.lock().expect("nobody panics with it").remove(&number);
        let streams = streams?;
        let store = match tree {
            None => None,
            Some(tree) => Some(agree(control, tree, offer.force)?),
        };
        let total = match (&store, offer.memory) {
            (Some((_, total)), _) => *total,
            (None, memory) => memory.unwrap_or(0),
        };
        let what = match &store {
            Some((store, _)) => store.described(),
            None => "memory".to_owned(),
        };
        self.tell(Event::Began(peer, what));
        self.transfer(control, streams, store.map(|(store, _)| store).as_ref(), total)
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

    fn transfer(
        &self,
        control: &mut Session,
        streams: Vec<Stream>,
        store: Option<&Store>,
        total: u64,
    ) -> Result<Done, Error> {
        let (stop, arrived, disk_ns) = (Stop::default(), AtomicU64::new(0), AtomicU64::new(0));
        for stream in &streams {
            stop.close_at_failure(stream.socket())?;
        }
        let stored = || store.map_or(&arrived, |store| &store.stored).load(Ordering::Relaxed);
        let (stop, arrived, disk_ns) = (&stop, &arrived, &disk_ns);
        let done = thread::scope(|scope| {
            let (ended, all_ended) = mpsc::channel::<()>();
            for mut stream in streams {
                let ended = ended.clone();
                match store {
                    None => {
                        scope.spawn(move || {
                            let _ended = ended;
                            stop.heed(|| discard(&mut stream, arrived));
                        });
                    }
                    Some(store) => {
                        let (filled, to_write) = mpsc::sync_channel(AHEAD);
                        let (returned, free) = mpsc::channel();
                        for _ in 0..=AHEAD {
                            let _ = returned.send(Vec::new());
                        }
                        scope.spawn(move || stop.heed(|| take(&mut stream, &filled, &free, disk_ns)));
                        scope.spawn(move || {
                            let _ended = ended;
                            stop.heed(|| write(store, &to_write, &returned));
                        });
                    }
                }
            }
            drop(ended);
            let (finish, finished) = mpsc::channel();
            scope.spawn(move || {
                while all_ended.recv_timeout(COMMITS) == Err(RecvTimeoutError::Timeout) {
                    if let Some(store) = store {
                        stop.heed(|| store.commit());
                    }
                }
                let _ = finish.send(match store {
                    Some(store) => store.done(!stop.has_failed()),
                    None => Ok(Done { bytes: arrived.load(Ordering::Relaxed), ..Done::default() }),
                });
            });
            loop {
                *self.incoming.lock().expect("nobody panics with it") =
                    Some(Incoming { stored: stored(), total });
                if let Ok(done) = finished.recv_timeout(REPORTS) {
                    break done;
                }
                let report = Report::SoFar { stored: stored(), disk_ns: disk_ns.load(Ordering::Relaxed) };
                stop.heed(|| Ok(control.send(&report)?));
                if self.over.load(Ordering::Acquire) {
                    stop.fail(Error::Cancelled);
                }
            }
        });
        if let Some(error) = stop.take() {
            return Err(error);
        }
        let done = done?;
        control.send(&Report::Done(done.clone()))?;
        Ok(done)
    }
}

/// Hears which files there are, and says what it has of them. Returns them, and the bytes of those that are not in place.
fn agree(control: &mut Session, tree: Tree, force: bool) -> Result<(Store, u64), Error> {
    let (mut entries, mut names): (Vec<Entry>, usize) = (Vec::new(), 0);
    while let List::Entries(some) = control.receive("a list of files")? {
        for entry in &some {
            if let Some(expected) = entry.problem() {
                return Err(Error::Peer(expected, shown(&entry.name)));
            }
        }
        names += some.iter().map(|entry| entry.name.len()).sum::<usize>();
        entries.extend(some);
        if names > MOST_NAMES {
            return Err(Error::Peer("at most 512 MiB of names", "more".to_owned()));
        }
        if entries.len() > MOST_ENTRIES {
            return Err(Error::Peer("at most 4194304 files", "more".to_owned()));
        }
    }
    if let Some(two) = entries.windows(2).find(|two| two[0].name >= two[1].name) {
        return Err(Error::Peer("files that ascend by name", shown(&two[1].name)));
    }
    let sizes: Vec<u64> = entries.iter().map(|entry| entry.size).collect();
    let mut total: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    let store = Store::new(tree, entries, force);
    {
        let told = std::cell::RefCell::new((&mut *control, Instant::now()));
        let tell = |file: u32, holding: Holding| {
            if let Holding::Whole = holding {
                total -= sizes[file as usize];
            }
            Ok(told.borrow_mut().0.send(&Have::Some(vec![(file, holding)]))?)
        };
        let looking = || {
            let (control, last) = &mut *told.borrow_mut();
            if last.elapsed() >= LOOKING {
                *last = Instant::now();
                control.send(&Have::Looking)?;
            }
            Ok(())
        };
        if let Err(error) = store.look(tell, looking) {
            let _ = control.send(&Have::Refused(error.to_string()));
            return Err(error);
        }
    }
    control.send(&Have::End)?;
    loop {
        match control.receive("which files are equal")? {
            Compared::Looking => {}
            Compared::Equal(files) => {
                for file in files {
                    store.equal(file)?;
                    total = total.saturating_sub(sizes[file as usize]);
                }
            }
            Compared::Start => return Ok((store, total)),
            Compared::GivenUp => {
                return Err(Error::Told("the sender gave up: files that exist here differ".to_owned()));
            }
        }
    }
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
            other => return Err(Error::Peer("memory", format!("{other:?}"))),
        }
    }
}

/// Takes frames out of a stream, and hands them to the thread that writes them.
fn take(
    stream: &mut Stream,
    filled: &mpsc::SyncSender<(Head, Vec<u8>)>,
    free: &mpsc::Receiver<Vec<u8>>,
    disk_ns: &AtomicU64,
) -> Result<(), Error> {
    loop {
        let head = stream.head()?;
        match head.kind {
            Kind::Idle => continue,
            Kind::End => return Ok(()),
            Kind::Memory => return Err(Error::Peer("files", "memory".to_owned())),
            Kind::Block | Kind::Pack | Kind::Left => {}
        }
        let waits = Instant::now();
        // If the other thread has ended, it has said why.
        let Ok(mut data) = free.recv() else { return Ok(()) };
        disk_ns.fetch_add(waits.elapsed().as_nanos() as u64, Ordering::Relaxed);
        // It only grows, so that memory is cleared once.
        if data.len() < head.length as usize {
            data.resize((head.length as usize).max(BLOCK as usize).min(MOST_DATA as usize), 0);
        }
        stream.fill(&mut data[..head.length as usize])?;
        if filled.send((head, data)).is_err() {
            return Ok(());
        }
    }
}

/// Verifies and writes frames.
fn write(
    store: &Store,
    to_write: &mpsc::Receiver<(Head, Vec<u8>)>,
    returned: &mpsc::Sender<Vec<u8>>,
) -> Result<(), Error> {
    for (head, data) in to_write {
        let content = &data[..head.length as usize];
        match head.kind {
            Kind::Block => store.block(&head, content)?,
            Kind::Pack => store.pack(&head, content)?,
            _ => store.left_out(head.file, content)?,
        }
        // The stream may have ended.
        let _ = returned.send(data);
    }
    Ok(())
}
