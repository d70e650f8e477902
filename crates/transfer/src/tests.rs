//! Both ends in one process, over loopback.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use elephan_session::{Identity, Session, Token, connect};

use crate::hash::{self, BLOCK};
use crate::protocol::{Answer, Content, Done, Entry, Hello, Offer, Report, VERSION};
use crate::source::Source;
use crate::stream::{Head, Kind, Stream};
use crate::{Error, Event, Folder, Options, Payload, Place, Progress, Receiver, Sent, Watch, send};

/// No test of the gate ends by it.
const PATIENCE: Duration = Duration::from_hours(1000);

#[derive(Default)]
struct Switch(AtomicBool);

impl Watch for Switch {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A receiver for as long as `work` goes on.
fn with_receiver<T>(place: Place, patience: Duration, work: impl FnOnce(&Receiver) -> T) -> T {
    let receiver = Receiver::bind(([127, 0, 0, 1], 0).into(), place, patience).expect("a receiver");
    let switch = Switch::default();
    thread::scope(|scope| {
        let serving = scope.spawn(|| receiver.serve(&switch, false));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&receiver)));
        switch.0.store(true, Ordering::Relaxed);
        assert!(matches!(serving.join().expect("no panic"), Err(Error::Cancelled)));
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn options(receiver: &Receiver, payload: Payload) -> Options {
    options_to(receiver.address().expect("bound"), receiver.token(), payload)
}

fn options_to(at: SocketAddr, token: &Token, payload: Payload) -> Options {
    Options {
        host: at.ip().to_string(),
        port: at.port(),
        token: token.clone(),
        payload,
        streams: 3,
        plain: false,
        force: false,
        cc: None,
        pace: None,
        patience: PATIENCE,
    }
}

fn go(options: &Options) -> Result<Sent, Error> {
    send(options, &Switch::default(), &Mutex::default())
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut data = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut data);
    data
}

struct Places {
    _folder: tempfile::TempDir,
    /// A file that is sent, and where it arrives.
    file: PathBuf,
    to: PathBuf,
    arrived: PathBuf,
}

impl Places {
    fn payload(&self) -> Payload {
        Payload::File(self.file.clone())
    }

    fn place(&self) -> Place {
        Place::Folder(Folder::open(&self.to).expect("a folder"))
    }
}

fn places(content: &[u8]) -> Places {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    fs::write(&file, content).and_then(|()| fs::create_dir(&to)).expect("made");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("changed");
    Places { file, arrived: to.join("file"), to, _folder: folder }
}

#[test]
fn memory_arrives_encrypted_and_plain() {
    with_receiver(Place::Nowhere, PATIENCE, |receiver| {
        for plain in [false, true] {
            let bytes = 9 * BLOCK + 5;
            let sent = go(&Options { plain, ..options(receiver, Payload::Memory(bytes)) }).expect("sent");
            assert_eq!(sent.done.bytes, bytes);
            let delivered: u64 = sent.recorded.outcome.transfers.bytes.iter().sum();
            assert!(delivered >= bytes && delivered < bytes + bytes / 50 + 20_000, "{delivered}");
        }
        // More streams than are opened at once.
        let many = Options { streams: 70, ..options(receiver, Payload::Memory(1)) };
        assert_eq!(go(&many).expect("sent").recorded.labels.len(), 70);
    });
}

#[test]
fn silent_strangers_shut_nobody_out() {
    with_receiver(Place::Nowhere, PATIENCE, |receiver| {
        let at = receiver.address().expect("bound");
        let _silent: Vec<_> = (0..100).map(|_| TcpStream::connect(at).expect("a connection")).collect();
        let many = Options { streams: 70, ..options(receiver, Payload::Memory(1)) };
        assert_eq!(go(&many).expect("sent").recorded.labels.len(), 70);
    });
}

#[test]
fn what_a_receiver_does_not_take_is_refused() {
    let places = places(b"x");
    let why = |place: Place, payload: Payload| {
        with_receiver(place, PATIENCE, |receiver| {
            go(&options(receiver, payload)).err().expect("refused").to_string()
        })
    };
    let pipe = || std::io::pipe().expect("a pipe");
    let found = why(Place::Nowhere, places.payload());
    assert_eq!(found, "receiver: expected memory, because it was started without a folder; found a file");
    let found = why(places.place(), Payload::Pipe(pipe().0.into()));
    assert!(found.ends_with("started with a folder and not with `-`; found standard input"), "{found}");
    let found = why(Place::Pipe(pipe().1.into()), places.payload());
    assert!(found.ends_with("because it was started with `-`; found a file"), "{found}");
    let found = why(Place::Pipe(pipe().1.into()), Payload::Memory(1));
    assert!(found.ends_with("because it was started with `-`; found memory"), "{found}");
}

#[test]
fn a_file_arrives_with_its_hash_and_goes_nowhere_twice() {
    for size in [0, 1, BLOCK, BLOCK + 1, 7 * BLOCK + 99] {
        for plain in [false, true] {
            let data = noise(size as usize, size);
            let places = places(&data);
            with_receiver(places.place(), PATIENCE, |receiver| {
                let options = Options { plain, ..options(receiver, places.payload()) };
                let done = go(&options).expect("sent").done;
                assert_eq!((done.bytes, done.there), (size, false));
                assert_eq!(done.hash, Some(*blake3::hash(&data).as_bytes()), "{size}");
                let of = |path: &Path| {
                    path.metadata().map(|it| (it.mode(), it.mtime(), it.mtime_nsec())).expect("there")
                };
                assert_eq!(of(&places.file), of(&places.arrived));
                // Once more: it is there.
                let done = go(&options).expect("sent").done;
                assert_eq!((done.bytes, done.there, done.hash), (0, true, None));
            });
            assert!(fs::read(&places.arrived).expect("there") == data);
            assert_eq!(fs::read_dir(&places.to).expect("there").count(), 1);
        }
    }
}

#[test]
fn an_existing_file_is_kept_unless_force_is_set() {
    let places = places(b"new");
    fs::write(&places.arrived, "old").expect("a file");
    // Two files that are made within a few milliseconds may have the same time.
    fs::File::open(&places.arrived)
        .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("changed");
    with_receiver(places.place(), PATIENCE, |receiver| {
        let options = options(receiver, places.payload());
        let text = go(&options).err().map(|error| error.to_string()).expect("refused");
        assert!(text.starts_with("file: expected none in the receiving folder, or the same file"), "{text}");
        assert_eq!(fs::read(&places.arrived).expect("there"), b"old");
        go(&Options { force: true, ..options }).expect("sent");
    });
    assert_eq!(fs::read(&places.arrived).expect("there"), b"new");
}

/// Sends the data of a pipe to a receiver, from which `read` reads. Returns how the sender and the receiver have ended.
fn piped(
    payload: OwnedFd,
    plain: bool,
    read: impl FnOnce(std::io::PipeReader) + Send,
) -> (Result<Sent, Error>, Result<(), Error>) {
    let (out, to) = std::io::pipe().expect("a pipe");
    let receiver = Receiver::bind(([127, 0, 0, 1], 0).into(), Place::Pipe(to.into()), PATIENCE);
    let receiver = receiver.expect("a receiver");
    let options = Options { plain, ..options(&receiver, Payload::Pipe(payload)) };
    thread::scope(|scope| {
        // With it, the pipe is closed at its end.
        let serving = scope.spawn(move || receiver.serve(&Switch::default(), false));
        scope.spawn(|| read(out));
        let sent = go(&options);
        (sent, serving.join().expect("no panic"))
    })
}

#[test]
fn a_pipe_arrives_in_order_over_several_streams() {
    for (size, plain) in [(0, false), (1, true), (BLOCK, false), (29 * BLOCK, true), (29 * BLOCK + 7, false)]
    {
        let data = noise(size as usize, size);
        let (from, mut into) = std::io::pipe().expect("a pipe");
        let mut arrived = Vec::new();
        let (sent, served) = thread::scope(|scope| {
            let data = &data;
            scope.spawn(move || into.write_all(data).expect("written"));
            piped(from.into(), plain, |mut out| drop(out.read_to_end(&mut arrived)))
        });
        let done = sent.expect("sent").done;
        assert_eq!((done.bytes, done.there), (size, false));
        assert_eq!(done.hash, Some(*blake3::hash(&data).as_bytes()), "{size}");
        assert!(served.is_ok() && arrived == data);
    }
}

#[test]
fn a_pipe_that_nobody_reads_ends_both_sides() {
    let (from, mut into) = std::io::pipe().expect("a pipe");
    let writing = thread::spawn(move || while into.write_all(&[0; 4096]).is_ok() {});
    let (sent, served) = piped(from.into(), false, drop);
    let text = |error: Error| error.to_string();
    assert_eq!(sent.err().map(text).as_deref(), Some("standard output: Broken pipe (os error 32)"));
    assert_eq!(served.err().map(text).as_deref(), Some("standard output: Broken pipe (os error 32)"));
    writing.join().expect("no panic");
}

#[test]
fn a_transfer_that_ends_early_goes_on_where_it_was() {
    for changes in [false, true] {
        let data = noise(8 * BLOCK as usize, 4);
        let places = places(&data);
        // The receiver ends, too, and its successor has another token.
        with_receiver(places.place(), PATIENCE, |receiver| {
            let content = Source::open(&places.payload()).expect("opened").content();
            let (mut control, mut streams) = open(receiver, false, 2, content).expect("opened");
            for (number, data) in (0..6).zip(data.chunks(BLOCK as usize)) {
                let (head, data) = block(number, data.to_vec());
                streams[number as usize % 2].send(&head, &data).expect("it goes");
            }
            while !matches!(control.receive("a report"), Ok(Report::SoFar { stored, .. }) if stored == 6 * BLOCK)
            {
            }
        });
        assert!(!places.arrived.exists());
        if changes {
            change(&places.file);
        }
        with_receiver(places.place(), PATIENCE, |receiver| {
            let done = go(&options(receiver, places.payload())).expect("sent").done;
            assert_eq!(done.bytes, if changes { 8 } else { 2 } * BLOCK);
        });
        assert!(fs::read(&places.file).expect("there") == fs::read(&places.arrived).expect("there"));
        assert_eq!(fs::read_dir(&places.to).expect("there").count(), 1);
    }
}

/// Changes a file, and the time of its modification: within a tick of the kernel's clock it would stay the same.
fn change(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("there");
    file.write_all_at(b"?", 3).and_then(|()| file.set_modified(std::time::UNIX_EPOCH)).expect("changed");
}

struct Begun<'a>(&'a Mutex<Progress>);

impl Watch for Begun<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.lock().expect("no panic").stored > 0
    }
}

#[test]
fn a_transfer_is_cancelled() {
    with_receiver(Place::Nowhere, PATIENCE, |receiver| {
        let (options, progress) = (options(receiver, Payload::Memory(1 << 60)), Mutex::default());
        assert!(matches!(send(&options, &Begun(&progress), &progress), Err(Error::Cancelled)));
    });
}

/// How sending over one stream ends where `receive` does what a receiver would, when it has the offer, with the session that controls
/// the transfer and what admits another.
fn send_to(
    payload: Payload,
    patience: Duration,
    receive: impl FnOnce(Session, &dyn Fn() -> Session) + Send,
) -> Result<Sent, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let identity = Identity::new();
    let at = listener.local_addr().expect("bound");
    let options = Options { patience, streams: 1, ..options_to(at, identity.token(), payload) };
    thread::scope(|scope| {
        scope.spawn(|| {
            let admit = || {
                let (stream, _) = listener.accept().expect("a sender");
                let mut session = identity.accept(stream, PATIENCE).expect("admitted");
                let _: Hello = session.receive("what is wanted").expect("it comes");
                session
            };
            receive(admit(), &admit);
        });
        go(&options)
    })
}

#[test]
fn a_file_that_changes_meanwhile_is_not_sent() {
    let places = places(b"content");
    let problem = send_to(places.payload(), PATIENCE, |mut control, admit| {
        // It is open, and read from now on.
        change(&places.file);
        control.send(&Answer::Opened { transfer: 1, key: [0; 32], have: Vec::new() }).expect("it goes");
        admit().send(&Answer::Joined).expect("it goes");
        let _ = control.receive::<Hello>("nothing");
    });
    let text = problem.err().expect("it changed").to_string();
    assert!(text.ends_with("file: it changed while it was sent"), "{text}");
}

#[test]
fn a_wrong_token_is_refused() {
    with_receiver(Place::Nowhere, PATIENCE, |receiver| {
        let other = Identity::new().token().clone();
        let options = Options { token: other, ..options(receiver, Payload::Memory(1)) };
        assert!(matches!(go(&options), Err(Error::Session(elephan_session::Error::WrongToken))));
    });
}

#[test]
#[ignore = "real time"]
fn a_receiver_that_falls_silent_is_noticed_and_so_is_a_sender() {
    let patience = Duration::from_millis(300);
    let silent = send_to(Payload::Memory(1), patience, |mut control, _| {
        // Until the sender has gone.
        let _ = control.receive::<Hello>("nothing");
    });
    assert!(matches!(silent, Err(Error::Session(elephan_session::Error::Silent(_)))));
    with_receiver(Place::Nowhere, patience, |receiver| {
        let (_control, _streams) = open(receiver, true, 1, Content::Memory(1 << 30)).expect("opened");
        let mut events = Vec::new();
        while !events.iter().any(|event| matches!(event, Event::Failed(..))) {
            events.extend(receiver.events());
            thread::sleep(Duration::from_millis(10));
        }
        let text = format!("{events:?}");
        assert!(text.contains("expected an answer within 0.3 s"), "{text}");
    });
}

/// Opens a transfer by hand; the error is why it was refused.
fn open(
    receiver: &Receiver,
    plain: bool,
    streams: u32,
    content: Content,
) -> Result<(Session, Vec<Stream>), String> {
    let at = receiver.address().expect("bound");
    let mut control = connect(at, receiver.token(), PATIENCE).expect("admitted");
    let offer = Offer { version: VERSION, content, streams, plain, force: true };
    control.send(&Hello::Open(offer)).expect("it goes");
    let (transfer, key) = match control.receive("an answer").expect("it comes") {
        Answer::Opened { transfer, key, .. } => (transfer, key),
        Answer::Refused(why) => return Err(why),
        _ => return Err("another answer".to_owned()),
    };
    let join = |stream| {
        let mut session = connect(at, receiver.token(), PATIENCE).expect("admitted");
        session.send(&Hello::Join { transfer, key, stream }).expect("it goes");
        assert!(matches!(session.receive("an answer"), Ok(Answer::Joined)));
        Stream::new(session, plain).expect("a stream")
    };
    Ok((control, (0..streams).map(join).collect()))
}

/// What the receiver says at the end.
fn end(control: &mut Session) -> Result<Done, String> {
    loop {
        match control.receive("a report") {
            Ok(Report::SoFar { .. }) => {}
            Ok(Report::Done(done)) => return Ok(done),
            Ok(Report::Failed(why)) => return Err(why),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Sends the frames of a hostile sender, those of each stream, and an end that tells of so many blocks.
fn sends(streams: Vec<Stream>, frames: &[Vec<(Head, Vec<u8>)>], blocks: u64) {
    for (mut stream, frames) in streams.into_iter().zip(frames) {
        for (head, data) in frames {
            let _ = stream.send(head, data);
        }
        let _ = stream.send(&Head::plain(Kind::End, 0, blocks), &[]);
    }
}

fn entry(name: &[u8], size: u64) -> Entry {
    Entry { name: name.to_vec(), size, modified: (1, 2), mode: 0o4777 }
}

fn block(number: u64, data: Vec<u8>) -> (Head, Vec<u8>) {
    let hash = hash::of(number, &data);
    (Head { hash, ..Head::plain(Kind::Block, data.len() as u32, number) }, data)
}

#[test]
fn a_hostile_sender_of_a_file_gets_nowhere() {
    let places = places(b"");
    let outside = places.file.clone();
    std::os::unix::fs::symlink(&outside, places.to.join("link")).expect("a link");
    with_receiver(places.place(), PATIENCE, |receiver| {
        let answer = |entry: Entry, frames: Vec<(Head, Vec<u8>)>| {
            let (mut control, streams) = open(receiver, false, 1, Content::File(entry))?;
            sends(streams, &[frames], 0);
            end(&mut control)
        };
        for name in [&b"../x"[..], b"/etc/x", b"a/x", b"link/x", b"..", b".elephan-x", b"a\0"] {
            let why = answer(entry(name, 1), vec![]).expect_err("refused");
            assert!(why.starts_with("receiver: expected a name"), "{why}");
        }
        let why = answer(entry(b"a", 1 << 60), vec![]).expect_err("refused");
        assert!(why.contains("at most 8 TiB"), "{why}");
        let long = entry(b"a", BLOCK + 3);
        let bad = |frame| answer(long.clone(), vec![frame]).expect_err("refused");
        let forged = |(head, data): (Head, Vec<u8>)| (Head { hash: [7; 32], ..head }, data);
        assert!(bad(forged(block(1, b"abc".to_vec()))).contains("expected data that have their hash"));
        assert!(bad(block(2, b"abc".to_vec())).contains("expected a block of the file"));
        assert!(bad(block(1, b"abcd".to_vec())).contains("expected a block of the file"));
        assert!(bad(block(0, b"abc".to_vec())).contains("expected a block of the file"));
        assert!(bad(block(1 << 40, b"abc".to_vec())).contains("expected a block of the file"));
        assert!(bad(block(u64::MAX >> 22, b"abc".to_vec())).contains("expected the head of a frame"));
        assert!(bad((Head::plain(Kind::Block, 0, 0), vec![])).contains("expected the head of a frame"));
        assert!(bad((Head::plain(Kind::Memory, 1, 0), vec![0])).contains("expected blocks, found memory"));
        assert!(bad(block(1, b"abc".to_vec())).contains("expected all blocks of the file"));
        assert!(!places.arrived.exists());
        // What has the name of a link replaces the link, without the right to run as its owner.
        answer(entry(b"link", 3), vec![block(0, b"abc".to_vec())]).expect("done");
        assert_eq!(fs::symlink_metadata(places.to.join("link")).expect("there").mode() & 0o7777, 0o777);
        assert_eq!(fs::read(&outside).expect("there"), b"");
    });
}

#[test]
fn a_hostile_sender_of_a_pipe_ends_the_transfer() {
    let full = |number| block(number, vec![number as u8; BLOCK as usize]);
    for (frames, blocks, expected) in [
        // The first block never comes: not behind the others, and not after an end.
        ([vec![full(1)], vec![full(2)]], 3, "expected the next block of a stream"),
        ([vec![full(1), full(0)], vec![full(2)]], 3, "expected the next block of a stream"),
        ([vec![full(1)], vec![]], 2, "expected the next block of a stream"),
        ([vec![full(0), full(0)], vec![]], 1, "expected the next block of a stream"),
        ([vec![block(0, vec![1; 9]), full(1)], vec![]], 2, "expected the end after a shorter block"),
        ([vec![full(0)], vec![full(1)]], 3, "expected all blocks that it announced, found 2 of 3"),
    ] {
        let (mut out, to) = std::io::pipe().expect("a pipe");
        let receiver = Receiver::bind(([127, 0, 0, 1], 0).into(), Place::Pipe(to.into()), PATIENCE);
        let receiver = receiver.expect("a receiver");
        // To the end of the pipe, which the receiver has.
        thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        thread::scope(|scope| {
            let receiver = &receiver;
            let serving = scope.spawn(|| receiver.serve(&Switch::default(), false));
            let (mut control, streams) = open(receiver, false, 2, Content::Pipe).expect("opened");
            sends(streams, &frames, blocks);
            let why = end(&mut control).expect_err("refused");
            assert!(why.contains(expected), "{why}");
            assert!(serving.join().expect("no panic").is_err());
        });
    }
}

#[test]
fn a_plain_stream_takes_nothing_from_others() {
    let places = places(b"");
    with_receiver(places.place(), PATIENCE, |receiver| {
        let (mut control, streams) = open(receiver, true, 1, Content::File(entry(b"a", 3))).expect("opened");
        // Somebody on the way adds a frame whose hash is right, and who does not have the key.
        let (head, data) = block(0, b"bad".to_vec());
        let forged = [&head.bytes()[..], &[9; 32], &data].concat();
        streams[0].socket().write_all(&forged).expect("it goes");
        let why = end(&mut control).expect_err("refused");
        assert!(why.contains("expected a frame of its own"), "{why}");
    });
    assert!(!places.to.join("a").exists());
}
