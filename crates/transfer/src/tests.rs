//! Both ends in one process, over loopback.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_session::{Token, connect};

use crate::carry::Stream;
use crate::frame::{Head, Kind, write_pairs};
use crate::hash::{BLOCK, BlockHasher};
use crate::manifest::Entry;
use crate::protocol::{Answer, Compared, Done, Have, Hello, List, Offer, Report, VERSION};
use crate::send::{Limit, Options, Payload, Progress, Sent, send};
use crate::{Error, Receiver, Watch};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Switch(AtomicBool);

impl Watch for Switch {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A receiver for as long as `work` goes on.
fn with_receiver<T>(folder: Option<&Path>, patience: Duration, work: impl FnOnce(&Receiver) -> T) -> T {
    let receiver = Receiver::bind(([127, 0, 0, 1], 0).into(), folder, patience).expect("a receiver");
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
    Options {
        host: "127.0.0.1".to_owned(),
        port: receiver.address().expect("bound").port(),
        token: receiver.token().clone(),
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

/// Every file of a folder: its content, permissions and time.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for one in fs::read_dir(&next).expect("a folder") {
            let path = one.expect("a file").path();
            let metadata = path.symlink_metadata().expect("there");
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let content = if metadata.is_file() { fs::read(&path).expect("readable") } else { Vec::new() };
            let time = if metadata.is_dir() { (0, 0) } else { (metadata.mtime(), metadata.mtime_nsec()) };
            let name = path.strip_prefix(folder).expect("below").to_owned();
            found.insert(name, (content, metadata.mode() & 0o777, time.0, time.1));
        }
    }
    found
}

/// A tree of everything: long and short files, empty ones, folders, names of all letters.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("deep/er/empty")).expect("folders");
    for number in 0..300_u64 {
        fs::write(root.join(format!("deep/{number}")), noise(number as usize * 37, number)).expect("a file");
    }
    fs::write(root.join("long"), noise(3 * BLOCK as usize + 17, 1)).expect("a file");
    fs::write(root.join("deep/er/longer"), noise(5 * BLOCK as usize, 2)).expect("a file");
    fs::write(root.join("block"), noise(BLOCK as usize, 3)).expect("a file");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"not \xff UTF-8\n")), "x").expect("a file");
    fs::set_permissions(root.join("long"), fs::Permissions::from_mode(0o640)).expect("changed");
}

struct Places {
    _folder: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

fn places() -> Places {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from/tree"), folder.path().join("to"));
    fs::create_dir_all(&from).and_then(|()| fs::create_dir(&to)).expect("folders");
    Places { from, to, _folder: folder }
}

#[test]
fn memory_arrives_encrypted_and_plain() {
    with_receiver(None, PATIENCE, |receiver| {
        for plain in [false, true] {
            let bytes = 9 * BLOCK + 5;
            let sent = go(&Options { plain, ..options(receiver, Payload::Memory(bytes)) }).expect("sent");
            assert_eq!((sent.done.bytes, sent.bytes), (bytes, bytes));
            let delivered: u64 = sent.recorded.outcome.transfers.bytes.iter().sum();
            assert!(delivered >= bytes && delivered < bytes + bytes / 50 + 20_000, "{delivered}");
        }
        // More streams than are opened at once.
        let many = Options { streams: 70, ..options(receiver, Payload::Memory(1)) };
        assert_eq!(go(&many).expect("sent").recorded.labels.len(), 70);
        let files = go(&options(receiver, Payload::Files("/etc/hostname".into()))).err();
        let text = files.map(|error| error.to_string());
        let expected = "receiver: expected memory, because it was started without a folder; found files";
        assert_eq!(text.as_deref(), Some(expected));
    });
}

#[test]
fn a_tree_arrives_and_goes_nowhere_twice() {
    let places = places();
    tree(&places.from);
    for plain in [false, true] {
        with_receiver(Some(&places.to), PATIENCE, |receiver| {
            let options = Options { plain, ..options(receiver, Payload::Files(places.from.clone())) };
            let sent = go(&options).expect("sent");
            assert_eq!((sent.done.files, sent.done.skipped, sent.done.left_count), (304, 0, 0));
            assert_eq!(contents(&places.from), contents(&places.to.join("tree")));
            // Once more: everything is there.
            let again = go(&options).expect("sent");
            assert_eq!((again.done.files, again.done.skipped, again.done.bytes), (304, 304, 0));
            // A kill just after renaming leaves a journal, which goes the next time.
            let partial = places.to.join(crate::manifest::PARTIALS);
            fs::create_dir(&partial).expect("a folder");
            let name = crate::partial::name_of(&entry(b"tree/long", 0));
            fs::write(partial.join(format!("{name}.journal")), "old").expect("a file");
            go(&options).expect("sent");
        });
        assert_eq!(fs::read_dir(&places.to).expect("there").count(), 1);
        fs::remove_dir_all(places.to.join("tree")).expect("removed");
    }
}

#[test]
fn a_single_file_arrives_with_its_hash() {
    let places = places();
    let data = noise(2 * BLOCK as usize + 99, 9);
    fs::write(places.from.join("one"), &data).expect("a file");
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let sent = go(&options(receiver, Payload::Files(places.from.join("one")))).expect("sent");
        assert_eq!(sent.done.hash, Some(*blake3::hash(&data).as_bytes()));
    });
    assert_eq!(fs::read(places.to.join("one")).expect("there"), data);
}

#[test]
fn existing_files_are_kept_unless_they_are_equal_or_force_is_set() {
    let places = places();
    fs::write(places.from.join("a"), "new a").expect("a file");
    fs::write(places.from.join("b"), "same").expect("a file");
    fs::write(places.from.join("c"), "longer").expect("a file");
    let there = places.to.join("tree");
    fs::create_dir(&there).expect("a folder");
    fs::write(there.join("a"), "old a").expect("a file");
    fs::write(there.join("b"), "same").expect("a file");
    fs::write(there.join("c"), "long").expect("a file");
    // Two files that are made within a few milliseconds may have the same time.
    File::open(there.join("a")).and_then(|a| a.set_modified(std::time::UNIX_EPOCH)).expect("changed");
    File::open(there.join("b")).and_then(|b| b.set_modified(std::time::UNIX_EPOCH)).expect("changed");
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let options = options(receiver, Payload::Files(places.from.clone()));
        let text = go(&options).err().map(|error| error.to_string()).expect("refused");
        assert!(text.starts_with("tree/c (and 1 more): expected none in the receiving folder"), "{text}");
        assert_eq!(fs::read(there.join("a")).expect("there"), b"old a");
        let sent = go(&Options { force: true, ..options }).expect("sent");
        assert_eq!((sent.done.files, sent.done.skipped), (3, 1));
    });
    assert_eq!(fs::read(there.join("a")).expect("there"), b"new a");
    assert_eq!(fs::read(there.join("c")).expect("there"), b"longer");
}

#[test]
fn holes_stay_holes() {
    let places = places();
    let size = 40 * BLOCK + 1234;
    let file = File::create(places.from.join("sparse")).expect("a file");
    file.set_len(size).expect("longer");
    for at in [0, 3 * BLOCK + 8192, 3 * BLOCK + 900_000, 20 * BLOCK - 4096, size - 1] {
        file.write_all_at(&noise(4096, at)[..4096.min((size - at) as usize)], at).expect("written");
    }
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let sent = go(&options(receiver, Payload::Files(places.from.join("sparse")))).expect("sent");
        assert!(sent.done.bytes < BLOCK, "{}", sent.done.bytes);
    });
    let arrived = places.to.join("sparse");
    assert!(fs::read(&arrived).expect("there") == fs::read(places.from.join("sparse")).expect("there"));
    assert!(arrived.metadata().expect("there").blocks() * 512 < BLOCK);
}

#[test]
#[ignore = "real time"]
fn a_cancelled_transfer_goes_on_where_it_was() {
    let places = places();
    fs::write(places.from.join("long"), noise(24 * BLOCK as usize, 4)).expect("a file");
    let payload = Payload::Files(places.from.clone());
    // The receiver ends, too, and its successor has another token.
    let first = with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let (switch, progress) = (Switch::default(), Mutex::new(Progress::default()));
        let options = Options { pace: Some(8 << 20), streams: 2, ..options(receiver, payload.clone()) };
        thread::scope(|scope| {
            let sending = scope.spawn(|| send(&options, &switch, &progress));
            let until = Instant::now() + PATIENCE;
            while progress.lock().expect("no panic").stored < 6 * BLOCK && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            let limit = progress.lock().expect("no panic").limit;
            assert!(matches!(limit, Some(Limit::Congestion | Limit::SendBuffer)), "{limit:?}");
            // What was stored until now is in the journal, half a second later.
            thread::sleep(Duration::from_secs(1));
            switch.0.store(true, Ordering::Relaxed);
            assert!(matches!(sending.join().expect("no panic"), Err(Error::Cancelled)));
        });
        progress.into_inner().expect("no panic")
    });
    assert!(!places.to.join("tree/long").exists());
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let sent = go(&options(receiver, payload)).expect("sent");
        assert_eq!(sent.done.left_count, 0);
        assert!(sent.bytes <= 24 * BLOCK - first.stored.min(6 * BLOCK), "{} sent", sent.bytes);
    });
    assert_eq!(contents(&places.from), contents(&places.to.join("tree")));
    assert_eq!(fs::read_dir(&places.to).expect("there").count(), 1);
}

#[test]
#[ignore = "real time"]
fn a_file_that_changes_meanwhile_is_left_out() {
    let places = places();
    let path = places.from.join("changing");
    fs::write(&path, noise(24 * BLOCK as usize, 4)).expect("a file");
    fs::write(places.from.join("quiet"), "quiet").expect("a file");
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let payload = Payload::Files(places.from.clone());
        let options = Options { pace: Some(16 << 20), streams: 1, ..options(receiver, payload) };
        let progress = Mutex::new(Progress::default());
        let sent = thread::scope(|scope| {
            let sending = scope.spawn(|| send(&options, &Switch::default(), &progress));
            let until = Instant::now() + PATIENCE;
            while progress.lock().expect("no panic").stored < 2 * BLOCK && Instant::now() < until {
                thread::sleep(Duration::from_millis(10));
            }
            let file = fs::OpenOptions::new().write(true).open(&path).expect("there");
            file.write_all_at(b"?", 20 * BLOCK).expect("written");
            sending.join().expect("no panic").expect("sent")
        });
        let left: Vec<_> =
            sent.done.left.iter().map(|left| (left.name.as_str(), left.why.as_str())).collect();
        assert_eq!(left, [("tree/changing", "it changed while it was sent")]);
        assert_eq!(sent.done.files, 1);
    });
    assert!(!places.to.join("tree/changing").exists());
    assert_eq!(fs::read(places.to.join("tree/quiet")).expect("there"), b"quiet");
    assert_eq!(fs::read_dir(&places.to).expect("there").count(), 1);
}

#[test]
fn a_wrong_token_is_refused() {
    with_receiver(None, PATIENCE, |receiver| {
        let other = elephan_session::Identity::new().token().clone();
        let options = Options { token: other, ..options(receiver, Payload::Memory(1)) };
        assert!(matches!(go(&options), Err(Error::Session(elephan_session::Error::WrongToken))));
    });
}

#[test]
#[ignore = "real time"]
fn a_receiver_that_falls_silent_is_noticed_and_so_is_a_sender() {
    // A server that admits and then says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let identity = elephan_session::Identity::new();
    let at = listener.local_addr().expect("bound");
    let token: Token = identity.token().clone();
    let patience = Duration::from_millis(300);
    thread::scope(|scope| {
        scope.spawn(move || {
            let (stream, _) = listener.accept().expect("a sender");
            let mut session = identity.accept(stream, PATIENCE).expect("admitted");
            let _: Hello = session.receive("an offer").expect("an offer");
            // Until the sender has gone.
            let _ = session.receive::<Hello>("nothing");
        });
        let options = Options {
            host: "127.0.0.1".to_owned(),
            port: at.port(),
            token,
            payload: Payload::Memory(1),
            streams: 1,
            plain: false,
            force: false,
            cc: None,
            pace: None,
            patience,
        };
        assert!(matches!(go(&options), Err(Error::Session(elephan_session::Error::Silent(_)))));
    });
    with_receiver(None, patience, |receiver| {
        let (_control, _streams) = open(receiver, true, None);
        let until = Instant::now() + PATIENCE;
        let mut events = Vec::new();
        while Instant::now() < until && !events.iter().any(|event| matches!(event, crate::Event::Failed(..)))
        {
            events.extend(receiver.events());
            thread::sleep(Duration::from_millis(10));
        }
        let text = format!("{events:?}");
        assert!(text.contains("expected an answer within 0.3 s"), "{text}");
    });
}

/// Opens a transfer of one stream by hand: of memory, or of these files.
fn open(receiver: &Receiver, plain: bool, files: Option<Vec<Entry>>) -> (elephan_session::Session, Stream) {
    let at = receiver.address().expect("bound");
    let mut control = connect(at, receiver.token(), PATIENCE).expect("admitted");
    let memory = files.is_none().then_some(1 << 30);
    let offer = Offer { version: VERSION, memory, streams: 1, plain, force: true };
    control.send(&Hello::Open(offer)).expect("it goes");
    let Answer::Opened(transfer, key) = control.receive("an answer").expect("it comes") else {
        panic!("refused")
    };
    let mut stream = connect(at, receiver.token(), PATIENCE).expect("admitted");
    stream.send(&Hello::Join { transfer, key, stream: 0 }).expect("it goes");
    assert!(matches!(stream.receive("an answer"), Ok(Answer::Joined)));
    if let Some(files) = files {
        control.send(&List::Entries(files)).and_then(|()| control.send(&List::End)).expect("it goes");
    }
    (control, Stream::new(stream, plain).expect("a stream"))
}

/// What a receiver says of the frames of a hostile sender.
fn answer(folder: &Path, plain: bool, files: Vec<Entry>, frames: &[(Head, Vec<u8>)]) -> Result<Done, String> {
    with_receiver(Some(folder), PATIENCE, |receiver| {
        let (mut control, mut stream) = open(receiver, plain, Some(files));
        loop {
            match control.receive("what it has") {
                Ok(Have::End) => break,
                Ok(Have::Refused(why)) => return Err(why),
                Ok(_) => {}
                Err(_) => {
                    let failed = receiver.events().into_iter().find_map(|event| match event {
                        crate::Event::Failed(_, why) => Some(why),
                        _ => None,
                    });
                    return Err(failed.unwrap_or_else(|| "closed".to_owned()));
                }
            }
        }
        control.send(&Compared::Start).expect("it goes");
        for (head, data) in frames {
            let _ = stream.send(head, data);
        }
        let _ = stream.send(&Head::plain(Kind::End, 0), &[]);
        loop {
            match control.receive("a report") {
                Ok(Report::SoFar { .. }) => {}
                Ok(Report::Done(done)) => return Ok(done),
                Ok(Report::Failed(why)) => return Err(why),
                Err(error) => return Err(error.to_string()),
            }
        }
    })
}

fn entry(name: &[u8], size: u64) -> Entry {
    Entry { name: name.to_vec(), folder: false, size, modified: (1, 2), mode: 0o4777 }
}

fn pack(table: &[(u32, u32)], data: &[u8]) -> (Head, Vec<u8>) {
    let mut all = Vec::new();
    write_pairs(table, &mut all);
    all.extend(data);
    let hash = *blake3::hash(&all).as_bytes();
    (Head { hash, ..Head::plain(Kind::Pack, all.len() as u32) }, all)
}

#[test]
fn a_hostile_sender_gets_nowhere() {
    let places = places();
    let outside = places.from.clone();
    std::os::unix::fs::symlink(&outside, places.to.join("link")).expect("a link");
    for name in [&b"../x"[..], b"/etc/x", b"a/../../x", b".elephan-partial/x", b"a\0"] {
        let why = answer(&places.to, false, vec![entry(name, 1)], &[]).expect_err("refused");
        assert!(why.starts_with("peer: expected a path") || why.contains("closed"), "{why}");
    }
    let why = answer(&places.to, false, vec![entry(b"a", 1 << 60)], &[]).expect_err("refused");
    assert!(why.contains("at most 64 TiB") || why.contains("closed"), "{why}");
    let two = || vec![entry(b"a", 3), entry(b"b", 2 * BLOCK)];
    let why = answer(&places.to, false, vec![entry(b"b", 1), entry(b"a", 1)], &[]).expect_err("refused");
    assert!(why.contains("ascend by name") || why.contains("closed"), "{why}");
    let block = |block: u32, segments: &[(u32, u32)], data: Vec<u8>| {
        let mut all = Vec::new();
        write_pairs(segments, &mut all);
        all.extend(data);
        let mut hasher = BlockHasher::new(u64::from(block));
        hasher.hole(BLOCK);
        let length = all.len() as u32;
        (Head { kind: Kind::Block, length, file: 1, block, hash: hasher.finish() }, all)
    };
    let bad = |frame: (Head, Vec<u8>)| answer(&places.to, false, two(), &[frame]).expect_err("refused");
    let forged = |(head, data): (Head, Vec<u8>)| (Head { hash: [7; 32], ..head }, data);
    assert!(bad(pack(&[(7, 3)], b"abc")).contains("expected a short file, found 7"));
    assert!(bad(pack(&[(1, 3)], b"abc")).contains("expected a short file, found 1"));
    assert!(bad(pack(&[(0, 4)], b"abcd")).contains("expected a file of the size that was said"));
    assert!(bad(pack(&[(0, 3)], b"abcd")).contains("expected the end of a pack"));
    assert!(bad(pack(&[(0, 3)], b"ab")).contains("expected a file of the size that was said"));
    assert!(bad(forged(pack(&[(0, 3)], b"abc"))).contains("expected data that have their hash"));
    assert!(bad(block(2, &[], vec![])).contains("expected a block of its file"));
    assert!(bad(block(0, &[(0, 9)], vec![0; 8])).contains("expected the parts of a block"));
    assert!(bad(block(0, &[(BLOCK as u32 - 4, 8)], vec![0; 8])).contains("expected the parts of a block"));
    assert!(bad(forged(block(0, &[], vec![]))).contains("expected data that have their hash"));
    assert!(bad((Head { file: 9, ..Head::plain(Kind::Left, 1) }, vec![0])).contains("a file of the list"));
    assert!(bad((Head::plain(Kind::Memory, 1), vec![0])).contains("expected files, found memory"));
    // What crosses a link is left out, and the rest arrives, without the right to run as its owner.
    let files = vec![entry(b"a", 3), entry(b"link/x", 3)];
    let done = answer(&places.to, false, files, &[pack(&[(0, 3), (1, 3)], b"abcdef")]).expect("done");
    assert_eq!((done.files, done.left_count), (1, 1));
    assert_eq!(done.left[0].name, "link/x");
    assert_eq!(fs::metadata(places.to.join("a")).expect("there").mode() & 0o7777, 0o777);
    assert_eq!(fs::read_dir(&outside).expect("there").count(), 0);
}

#[test]
fn a_plain_stream_takes_nothing_from_others() {
    use std::io::Write;
    let places = places();
    with_receiver(Some(&places.to), PATIENCE, |receiver| {
        let (mut control, stream) = open(receiver, true, Some(vec![entry(b"a", 3)]));
        while !matches!(control.receive("what it has").expect("it comes"), Have::End) {}
        control.send(&Compared::Start).expect("it goes");
        // Somebody on the way adds a frame whose hash is right, and who does not have the key.
        let (head, data) = pack(&[(0, 3)], b"bad");
        let forged = [&head.bytes()[..], &[9; 32], &data].concat();
        stream.socket().write_all(&forged).expect("it goes");
        let why = loop {
            match control.receive("a report").expect("it comes") {
                Report::SoFar { .. } => {}
                Report::Done(_) => break "accepted".to_owned(),
                Report::Failed(why) => break why,
            }
        };
        assert!(why.contains("expected a frame of its own"), "{why}");
    });
    assert!(!places.to.join("a").exists());
}
