//! What is sent, block by block: memory, a file, or what a pipe yields.
//!
//! A file that changes while it is sent is detected by its size and times. They are compared after each block was read, so a
//! block from before a change and one from after it are never both sent as one file.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::event::PollFlags;
use rustix::fs::{Advice, OFlags, fadvise};

use crate::Error;
use crate::hash::{self, BLOCK, blocks, length};
use crate::protocol::{Content, Entry};
use crate::stop::Stop;
use crate::stream::{Head, Kind};

/// Permissions that are kept: neither set-user-ID nor the like.
pub const MODES: u32 = 0o777;

/// What is sent.
#[derive(Debug)]
pub enum Payload {
    /// So many bytes of memory, which the receiver discards.
    Memory(u64),
    /// A file.
    File(PathBuf),
    /// What a pipe yields, to its end.
    Pipe(OwnedFd),
}

/// A payload, and which of its blocks are next.
pub struct Source {
    from: From,
    next: Mutex<Next>,
}

/// Size of a file, time of its modification, and that of its last change, which no program can set back.
type State = (u64, i64, i64, i64, i64);

fn state(of: &Metadata) -> State {
    (of.len(), of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec())
}

enum From {
    Memory(u64),
    File { path: PathBuf, file: File, entry: Entry, state: State },
    Pipe(OwnedFd),
}

#[derive(Default)]
struct Next {
    block: u64,
    /// Blocks that the receiver has, a bit for each.
    have: Vec<u8>,
    /// Whether the pipe has ended.
    ended: bool,
}

impl Next {
    fn has(&self, block: u64) -> bool {
        self.have.get((block / 8) as usize).is_some_and(|bits| bits >> (block % 8) & 1 == 1)
    }
}

impl Source {
    /// Opens what is to be sent.
    pub fn open(payload: &Payload) -> Result<Self, Error> {
        let from = match payload {
            Payload::Memory(bytes) => From::Memory(*bytes),
            Payload::File(path) => file(path)?,
            Payload::Pipe(pipe) => {
                From::Pipe(pipe.try_clone().map_err(|error| Error::System("standard input", error))?)
            }
        };
        Ok(Self { from, next: Mutex::default() })
    }

    /// What an offer says of it.
    pub fn content(&self) -> Content {
        match &self.from {
            From::Memory(bytes) => Content::Memory(*bytes),
            From::File { entry, .. } => Content::File(entry.clone()),
            From::Pipe(_) => Content::Pipe,
        }
    }

    /// Its bytes; unknown of a pipe.
    pub fn size(&self) -> Option<u64> {
        match &self.from {
            From::Memory(bytes) => Some(*bytes),
            From::File { entry, .. } => Some(entry.size),
            From::Pipe(_) => None,
        }
    }

    /// Leaves out the blocks that the receiver has. Returns their bytes.
    pub fn skip(&self, have: Vec<u8>) -> u64 {
        let From::File { entry, .. } = &self.from else { return 0 };
        let mut next = self.next.lock().expect("nobody panics with it");
        next.have = have;
        (0..blocks(entry.size)).filter(|&block| next.has(block)).map(|block| length(entry.size, block)).sum()
    }

    /// Reads the next block into `data`, of which the head has the length; none at the end. One stream at a
    /// time reads a pipe, so its blocks are numbered in order.
    pub fn next(&self, stop: &Stop, data: &mut Vec<u8>) -> Result<Option<Head>, Error> {
        let mut next = self.next.lock().expect("nobody panics with it");
        while next.has(next.block) {
            next.block += 1;
        }
        let block = next.block;
        let bytes = match (&self.from, self.size()) {
            (From::Pipe(pipe), _) if !next.ended => {
                let bytes = fill(pipe, stop, data)?;
                next.ended = bytes < BLOCK;
                bytes
            }
            (_, Some(size)) if block < blocks(size) => length(size, block),
            _ => 0,
        };
        if bytes == 0 {
            return Ok(None);
        }
        next.block += 1;
        drop(next);
        let hash = match &self.from {
            From::Memory(_) => {
                if data.is_empty() {
                    // Not zeros: something on the way might compress them.
                    data.resize(BLOCK as usize, 0);
                    blake3::Hasher::new().finalize_xof().fill(data);
                }
                return Ok(Some(Head::plain(Kind::Memory, bytes as u32, block)));
            }
            From::Pipe(_) => hash::of(block, &data[..bytes as usize]),
            From::File { path, file, state, .. } => {
                data.resize(bytes as usize, 0);
                read(file, *state, block * BLOCK, data).map_err(Error::file(path))?;
                hash::of(block, data)
            }
        };
        Ok(Some(Head { hash, ..Head::plain(Kind::Block, bytes as u32, block) }))
    }

    /// The end of a stream, when [`Source::next`] gives no more.
    pub fn end(&self) -> Head {
        Head::plain(Kind::End, 0, self.next.lock().expect("nobody panics with it").block)
    }
}

/// Opens a file, and nothing else.
fn file(path: &Path) -> Result<From, Error> {
    // Opening a pipe would wait for its writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(Error::file(path))?;
    let metadata = file.metadata().map_err(Error::file(path))?;
    let shown = path.display();
    if metadata.is_dir() {
        let text = format!(
            "{shown}: expected a file, found a folder; `tar cf - {shown} | elephan path transfer send - HOST` sends it, and \
             `elephan path watch -- rsync -a {shown} HOST:` records how rsync does"
        );
        return Err(Error::Asked(text));
    }
    let Some(name) = path.file_name().filter(|_| metadata.is_file()) else {
        let text =
            format!("{shown}: expected a file, found a pipe, a device or a socket; `-` sends standard input");
        return Err(Error::Asked(text));
    };
    let entry = Entry {
        name: name.as_bytes().to_vec(),
        size: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec() as u32),
        mode: metadata.mode() & MODES,
    };
    if let Some(expected) = entry.problem() {
        return Err(Error::Asked(format!("{shown}: expected {expected}")));
    }
    Ok(From::File { path: path.to_owned(), file, entry, state: state(&metadata) })
}

/// Fills `data` from a pipe. Returns fewer bytes than a block at its end.
fn fill(pipe: &OwnedFd, stop: &Stop, data: &mut Vec<u8>) -> Result<u64, Error> {
    data.resize(BLOCK as usize, 0);
    let mut bytes = 0;
    while bytes < data.len() {
        stop.ready(pipe, PollFlags::IN)?;
        match rustix::io::read(pipe, &mut data[bytes..]) {
            Ok(0) => break,
            Ok(read) => bytes += read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(errno) => return Err(Error::System("standard input", errno.into())),
        }
    }
    Ok(bytes as u64)
}

/// Reads a part of a file, which has to be as it was when it was opened.
fn read(file: &File, opened: State, from: u64, data: &mut [u8]) -> io::Result<()> {
    // Streams take blocks in turn, which the kernel does not see as reading in order.
    let _ = fadvise(file, from, std::num::NonZero::new(data.len() as u64), Advice::WillNeed);
    let read = file.read_exact_at(data, from);
    if state(&file.metadata()?) != opened {
        return Err(io::Error::other("it changed while it was sent"));
    }
    read
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Each reads and hashes up to 20 MB.
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn each_block_that_is_missing_is_sent_once(size in 0..5 * BLOCK, have in prop::collection::vec(any::<u8>(), 0..2)) {
            let path = tempfile::NamedTempFile::new().expect("a file");
            path.as_file().set_len(size).expect("longer");
            let source = Source::open(&Payload::File(path.path().to_owned())).expect("opened");
            let missing = |block: &u64| have.first().is_none_or(|bits| bits >> block & 1 == 0);
            let expected: BTreeSet<u64> = (0..blocks(size)).filter(missing).collect();
            let mut left = size - source.skip(have.clone());
            let (stop, mut data) = (Stop::default(), Vec::new());
            let mut sent = BTreeSet::new();
            while let Some(head) = source.next(&stop, &mut data).expect("read") {
                prop_assert!(sent.insert(head.block));
                left -= u64::from(head.length);
            }
            prop_assert_eq!((sent, left), (expected, 0));
        }
    }

    #[test]
    fn what_is_no_file_is_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let problem =
            |path: &Path| Source::open(&Payload::File(path.to_owned())).err().expect("refused").to_string();
        assert!(problem(folder.path()).contains(": expected a file, found a folder; `tar cf - "));
        assert!(problem(Path::new("/dev/null")).contains("expected a file, found a pipe, a device"));
        assert!(problem(&path).ends_with("(os error 6)"), "{}", problem(&path));
        assert!(problem(&folder.path().join("none")).ends_with("(os error 2)"));
    }

    #[test]
    fn a_file_that_changes_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; BLOCK as usize + 10]).expect("a file");
        let source = Source::open(&Payload::File(path.clone())).expect("opened");
        let (stop, mut data) = (Stop::default(), Vec::new());
        assert!(source.next(&stop, &mut data).is_ok());
        // The same size, another content. Within a tick of the kernel's clock a file may change and keep its time.
        let changed = || path.metadata().map(|now| (now.ctime(), now.ctime_nsec())).expect("there");
        let before = changed();
        while changed() == before {
            let file = OpenOptions::new().write(true).open(&path).expect("there");
            file.write_all_at(b"?", 3).expect("written");
        }
        let problem = source.next(&stop, &mut data).expect_err("changed");
        assert!(problem.to_string().ends_with("file: it changed while it was sent"));
    }
}
