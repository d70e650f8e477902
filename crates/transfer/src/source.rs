//! The sender's files: what there is, what is to be sent next, and its content.
//!
//! A file that changes while it is sent is found by its size and times: they are compared after each part was read, so a part
//! that was read before a change and one that was read after it are never both sent as one file.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, OFlags, SeekFrom, fadvise, seek};

use crate::Error;
use crate::frame::{MOST_IN_PACK, Segment, can_be_told, write_pairs};
use crate::hash::{BLOCK, BlockHasher, blocks, length};
use crate::manifest::{Entry, MODES, MOST_ENTRIES, shown};
use crate::protocol::LeftOut;
use crate::store::UNREAD;

/// What is sent next.
#[derive(Debug)]
pub enum Unit {
    /// A block of a file.
    Block { file: u32, block: u64 },
    /// Short files.
    Pack(Vec<u32>),
    /// So many bytes of memory.
    Memory(u32),
}

/// The sender's files, and what was left out.
pub struct Source {
    root: PathBuf,
    /// Length of the first component of all names, which is that of the root.
    prefix: usize,
    /// Files and folders, ascending by name.
    pub entries: Vec<Entry>,
    changed: Vec<(i64, i64)>,
    /// What cannot be sent.
    pub left: Vec<LeftOut>,
}

/// Time of the last change of anything, which no program can set back.
fn changed(metadata: &Metadata) -> (i64, i64) {
    (metadata.ctime(), metadata.ctime_nsec())
}

impl Source {
    /// Lists a file, or a folder with everything in it.
    pub fn list(path: &Path) -> Result<Self, Error> {
        let absolute = path.canonicalize().map_err(Error::file(path))?;
        // A link that is named as the path keeps its name, as `.` gets that of its folder.
        let name = path.file_name().or(absolute.file_name());
        let name =
            name.ok_or_else(|| Error::Asked("/: expected a file or a folder with a name".to_owned()))?;
        let name = name.as_bytes().to_vec();
        let mut source = Self {
            prefix: name.len(),
            root: absolute.clone(),
            entries: Vec::new(),
            changed: Vec::new(),
            left: Vec::new(),
        };
        let mut found = Vec::new();
        let mut folders = Vec::new();
        let metadata = source.root.metadata().map_err(Error::file(path))?;
        if source.add(name.clone(), &metadata, &mut found) && metadata.is_dir() {
            folders.push((name, source.root.clone()));
        }
        while let Some((name, path)) = folders.pop() {
            if let Err(error) = source.folder(&name, &path, &mut folders, &mut found) {
                source.leave(&name, error.to_string());
            }
            if found.len() > MOST_ENTRIES {
                let text = format!("{}: expected at most {MOST_ENTRIES} files, found more", path.display());
                return Err(Error::Asked(text));
            }
        }
        found.sort_unstable_by(|one, other| one.0.name.cmp(&other.0.name));
        (source.entries, source.changed) = found.into_iter().unzip();
        Ok(source)
    }

    fn folder(
        &mut self,
        name: &[u8],
        path: &Path,
        folders: &mut Vec<(Vec<u8>, PathBuf)>,
        found: &mut Vec<(Entry, (i64, i64))>,
    ) -> io::Result<()> {
        for one in path.read_dir()? {
            let one = one?;
            let name = [name, b"/", &one.file_name().into_vec()].concat();
            // Of a link, this is the link itself.
            match one.metadata() {
                Ok(metadata) => {
                    let accepted = self.add(name.clone(), &metadata, found);
                    if accepted && metadata.is_dir() {
                        folders.push((name, one.path()));
                    }
                }
                Err(error) => self.leave(&name, error.to_string()),
            }
        }
        Ok(())
    }

    fn leave(&mut self, name: &[u8], why: impl Into<String>) {
        self.left.push(LeftOut { name: shown(name), why: why.into() });
    }

    fn add(&mut self, name: Vec<u8>, metadata: &Metadata, found: &mut Vec<(Entry, (i64, i64))>) -> bool {
        let folder = metadata.is_dir();
        if metadata.is_symlink() {
            self.leave(&name, "a symbolic link, which is not sent");
            return false;
        }
        if !folder && !metadata.is_file() {
            self.leave(&name, "expected a file or a folder, found a device, a pipe or a socket");
            return false;
        }
        let entry = Entry {
            name,
            folder,
            size: if folder { 0 } else { metadata.len() },
            modified: (metadata.mtime(), metadata.mtime_nsec() as u32),
            mode: metadata.mode() & MODES,
        };
        if let Some(expected) = entry.problem() {
            self.leave(&entry.name, format!("expected {expected}"));
            return false;
        }
        found.push((entry, changed(metadata)));
        true
    }

    /// Opens a file of the list, if it is still the same.
    pub fn open(&self, file: u32) -> io::Result<File> {
        let entry = &self.entries[file as usize];
        let rest = entry.name.get(self.prefix + 1..).unwrap_or_default();
        let path = if rest.is_empty() { self.root.clone() } else { self.root.join(OsStr::from_bytes(rest)) };
        // A pipe that has taken the place of the file would wait for its writer.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
        self.same(file, &opened)?;
        Ok(opened)
    }

    /// Whether a file is as it was listed.
    fn same(&self, file: u32, opened: &File) -> io::Result<()> {
        let entry = &self.entries[file as usize];
        let now = opened.metadata()?;
        let same = now.is_file()
            && now.len() == entry.size
            && (now.mtime(), now.mtime_nsec() as u32) == entry.modified
            && changed(&now) == self.changed[file as usize];
        if same { Ok(()) } else { Err(io::Error::other("it changed while it was sent")) }
    }

    /// Reads a block into `to`, which is empty: the table of its parts, then their data. Returns its hash.
    pub fn block(&self, file: u32, opened: &File, block: u64, to: &mut Vec<u8>) -> io::Result<[u8; 32]> {
        let size = self.entries[file as usize].size;
        let (first, length) = (block * BLOCK, length(size, block));
        let segments = parts(opened, size, first, length)?;
        write_pairs(&segments, to);
        let mut hasher = BlockHasher::new(block);
        let mut end = 0;
        for &(from, bytes) in &segments {
            let start = to.len();
            to.resize(start + bytes as usize, 0);
            opened.read_exact_at(&mut to[start..], first + u64::from(from)).map_err(shorter)?;
            hasher.hole(u64::from(from) - end);
            hasher.data(&to[start..]);
            end = u64::from(from) + u64::from(bytes);
        }
        hasher.hole(length - end);
        self.same(file, opened)?;
        Ok(hasher.finish())
    }

    /// Reads short files into `to`, which is empty: their table, then their data. Returns why some could not be read.
    pub fn pack(&self, files: &[u32], to: &mut Vec<u8>) -> Vec<(u32, io::Error)> {
        let mut problems = Vec::new();
        let size = |file: u32| self.entries[file as usize].size as u32;
        let table: Vec<(u32, u32)> = files.iter().map(|&file| (file, size(file))).collect();
        write_pairs(&table, to);
        for (at, &file) in files.iter().enumerate() {
            let start = to.len();
            to.resize(start + size(file) as usize, 0);
            let read = self.open(file).and_then(|opened| {
                opened.read_exact_at(&mut to[start..], 0).map_err(shorter)?;
                self.same(file, &opened)
            });
            if let Err(problem) = read {
                to.truncate(start);
                let place = 4 + 8 * at + 4;
                to[place..place + 4].copy_from_slice(&UNREAD.to_be_bytes());
                problems.push((file, problem));
            }
        }
        problems
    }
}

fn shorter(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        io::Error::other("it became shorter while it was sent")
    } else {
        error
    }
}

/// The parts of a block that are not holes.
fn parts(file: &File, size: u64, first: u64, length: u64) -> io::Result<Vec<Segment>> {
    let all = vec![(0, length as u32)];
    // A file that occupies as many bytes as it has, has no holes.
    if file.metadata()?.blocks() * 512 >= size {
        // What is read next is told to the disk: streams take blocks in turn, which the kernel does not see as reading in
        // order.
        let _ = fadvise(file, first, std::num::NonZero::new(length), Advice::WillNeed);
        return Ok(all);
    }
    let mut parts = Vec::new();
    let (mut at, end) = (first, first + length);
    while at < end {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from,
            Err(rustix::io::Errno::NXIO) => break,
            // A filesystem that cannot tell.
            Err(rustix::io::Errno::INVAL) => return Ok(all),
            Err(error) => return Err(error.into()),
        };
        if from >= end {
            break;
        }
        let to = seek(file, SeekFrom::Hole(from))?.min(end);
        parts.push(((from - first) as u32, (to - from) as u32));
        at = to;
    }
    Ok(if can_be_told(&parts) { parts } else { all })
}

/// What remains to be sent.
pub struct Work {
    next: usize,
    block: u64,
    memory: u64,
    /// Of each file, whether it is wanted.
    wanted: Vec<bool>,
    /// Of files that the receiver has in part, which blocks it has.
    have: std::collections::BTreeMap<u32, Vec<u8>>,
}

impl Work {
    /// So many bytes from memory.
    pub fn memory(bytes: u64) -> Self {
        Self { next: 0, block: 0, memory: bytes, wanted: Vec::new(), have: std::collections::BTreeMap::new() }
    }

    /// All files.
    pub fn files(entries: &[Entry]) -> Self {
        let wanted = entries.iter().map(|entry| !entry.folder).collect();
        Self { wanted, ..Self::memory(0) }
    }

    /// A file that the receiver has, or that cannot be sent further.
    pub fn skip(&mut self, file: u32) {
        if let Some(wanted) = self.wanted.get_mut(file as usize) {
            *wanted = false;
        }
    }

    /// Blocks that the receiver has, from one on.
    pub fn has(&mut self, file: u32, first: u64, bits: &[u8]) {
        let have = self.have.entry(file).or_default();
        // In order, as a receiver tells them; anything else only makes more to send.
        if have.len() as u64 * 8 == first {
            have.extend(bits);
        }
    }

    fn is_there(&self, file: u32, block: u64) -> bool {
        let byte = self.have.get(&file).and_then(|bits| bits.get((block / 8) as usize));
        byte.is_some_and(|byte| byte >> (block % 8) & 1 == 1)
    }

    /// The bytes of all files that are wanted, and of these, the bytes that are to be sent.
    pub fn bytes(&self, entries: &[Entry]) -> (u64, u64) {
        let wanted = || entries.iter().zip(&self.wanted).enumerate().filter(|(_, (_, wanted))| **wanted);
        let all: u64 = wanted().map(|(_, (entry, _))| entry.size).sum();
        let there = |(file, (entry, _)): (usize, (&Entry, &bool))| {
            let there = (0..blocks(entry.size)).filter(|&block| self.is_there(file as u32, block));
            there.map(|block| length(entry.size, block)).sum::<u64>()
        };
        let there: u64 =
            wanted().filter(|(file, _)| self.have.contains_key(&(*file as u32))).map(there).sum();
        (all + self.memory, all + self.memory - there)
    }

    /// What is to be sent next; none when all is.
    pub fn next(&mut self, entries: &[Entry]) -> Option<Unit> {
        if self.memory > 0 {
            let part = self.memory.min(BLOCK);
            self.memory -= part;
            return Some(Unit::Memory(part as u32));
        }
        let (mut pack, mut bytes) = (Vec::new(), 0);
        while let Some(entry) = entries.get(self.next) {
            let file = self.next as u32;
            if !self.wanted[self.next] {
                (self.next, self.block) = (self.next + 1, 0);
                continue;
            }
            if entry.size <= BLOCK {
                if pack.len() == MOST_IN_PACK || bytes + entry.size > BLOCK {
                    break;
                }
                pack.push(file);
                bytes += entry.size;
                self.next += 1;
                continue;
            }
            if !pack.is_empty() {
                break;
            }
            let block = self.block;
            if block == blocks(entry.size) {
                (self.next, self.block) = (self.next + 1, 0);
                continue;
            }
            self.block += 1;
            if !self.is_there(file, block) {
                return Some(Unit::Block { file, block });
            }
        }
        (!pack.is_empty()).then_some(Unit::Pack(pack))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn entry(name: usize, size: u64) -> Entry {
        Entry { name: format!("{name:06}").into_bytes(), folder: false, size, modified: (0, 0), mode: 0 }
    }

    proptest! {
        #[test]
        fn everything_wanted_is_sent_once(
            sizes in prop::collection::vec(prop_oneof![0..9u64, Just(BLOCK), BLOCK..4 * BLOCK], 0..20),
            drops in prop::collection::vec(0u32..20, 0..4), bits in any::<u8>(),
        ) {
            let entries: Vec<Entry> = sizes.iter().enumerate().map(|(at, &size)| entry(at, size)).collect();
            let mut work = Work::files(&entries);
            for &file in &drops {
                work.skip(file);
            }
            let long = sizes.iter().position(|&size| size > BLOCK).map(|at| at as u32);
            if let Some(long) = long {
                work.has(long, 0, &[bits]);
            }
            let (_, expected) = work.bytes(&entries);
            let mut seen = std::collections::BTreeSet::new();
            let mut sum = 0;
            while let Some(unit) = work.next(&entries) {
                match unit {
                    Unit::Block { file, block } => {
                        prop_assert!(seen.insert((file, block)));
                        prop_assert!(Some(file) != long || bits >> block & 1 == 0);
                        sum += length(entries[file as usize].size, block);
                    }
                    Unit::Pack(files) => {
                        let bytes: u64 = files.iter().map(|&file| entries[file as usize].size).sum();
                        prop_assert!(bytes <= BLOCK && files.len() <= MOST_IN_PACK);
                        sum += bytes;
                        for file in files {
                            prop_assert!(seen.insert((file, u64::MAX)));
                        }
                    }
                    Unit::Memory(_) => prop_assert!(false),
                }
            }
            prop_assert_eq!(sum, expected);
            prop_assert!(seen.iter().all(|(file, _)| !drops.contains(file)));
        }
    }

    #[test]
    fn a_folder_is_listed_with_what_cannot_be_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("tree");
        std::fs::create_dir_all(root.join("empty")).expect("a folder");
        std::fs::write(root.join(OsStr::from_bytes(b"\xff")), "x").expect("a file");
        symlink("/etc/passwd", root.join("link")).expect("a link");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("a socket");
        let source = Source::list(&root).expect("listed");
        let names: Vec<_> = source.entries.iter().map(|entry| shown(&entry.name)).collect();
        assert_eq!(names, ["tree", "tree/empty", "tree/\\xff"]);
        let mut left: Vec<_> = source.left.iter().map(|left| left.name.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["tree/link", "tree/socket"]);
        assert!(Source::list(&root.join("none")).is_err());
    }

    #[test]
    fn a_file_that_changes_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; BLOCK as usize + 10]).expect("a file");
        let source = Source::list(&path).expect("listed");
        let opened = source.open(0).expect("the same");
        assert!(source.block(0, &opened, 0, &mut Vec::new()).is_ok());
        // The same size, another content. Within a tick of the kernel's clock a file may change and keep its time.
        let before = changed(&path.metadata().expect("there"));
        while changed(&path.metadata().expect("there")) == before {
            opened_again(&path).write_all_at(b"?", 3).expect("written");
        }
        let problem = source.block(0, &opened, 1, &mut Vec::new()).expect_err("changed");
        assert_eq!(problem.to_string(), "it changed while it was sent");
        opened_again(&path).set_len(5).expect("shorter");
        assert!(source.block(0, &opened, 0, &mut Vec::new()).is_err());
    }

    fn opened_again(path: &Path) -> File {
        OpenOptions::new().write(true).open(path).expect("there")
    }
}
