//! The receiving folder: what is there, and a partial file with its journal.
//!
//! Nothing is opened, made or renamed outside it, whatever name a sender says and whatever others put there meanwhile: a name is one
//! component (`protocol`), is resolved from the open folder, and is never followed if it is a symbolic link.
//!
//! What is in the journal is on the disk: [`Partial::commit`] first waits for the disk to have the data of some blocks
//! (`fdatasync`), and only then appends their records. A record that did not reach the disk whole fails its check, and it and
//! what follows are cut off; blocks that lost their record are asked for once more. When a transfer goes on, each block of
//! the journal is read and hashed before it counts, so a journal that says too much, for whatever reason, does no harm
//! either.
//!
//! The journal starts with a hash of all that the sender says of the file. If that has changed, the file begins again.

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use blake3::Hash;
use blake3::hazmat::ChainingValue;
use rustix::fs::{
    self, AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, fdatasync,
    flock, fsync, futimens, openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::Error;
use crate::hash::{self, BLOCK, blocks, length, whole};
use crate::protocol::{Entry, RESERVED};
use crate::source::MODES;

/// The version of the journal's form.
const FORM: &[u8] = b"elephan journal 2";
/// Bytes of the journal's start, and of a record: number of the block, its hash, a check of both.
const START: usize = 32;
const RECORD: usize = 48;

/// A receiving folder.
pub struct Folder {
    path: PathBuf,
    root: OwnedFd,
}

impl Folder {
    /// Opens a folder, which exists. Another receiver may not use it at the same time.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let asked = |found| Error::Asked(format!("{}: expected {found}", path.display()));
        let root = match fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOTDIR) => return Err(asked("a folder, found a file")),
            opened => opened.map_err(|errno| Error::File(path.to_owned(), errno.into()))?,
        };
        if flock(&root, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(asked("no other receiver in this folder, found one"));
        }
        Ok(Self { path: path.to_owned(), root })
    }

    /// Whether a file is there, with its size and time of modification. Anything else at its name is an error, unless it is a file that may
    /// be replaced.
    pub fn has(&self, entry: &Entry, replace: bool) -> Result<bool, Error> {
        let path = self.path.join(entry.shown());
        let there = match statat(&self.root, entry.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(false),
            there => there.map_err(|errno| Error::File(path, errno.into()))?,
        };
        let kind = FileType::from_raw_mode(there.st_mode);
        let modified = (there.st_mtime as i64, there.st_mtime_nsec as u32);
        if kind == FileType::RegularFile && there.st_size as u64 == entry.size && modified == entry.modified {
            // A kill between renaming and removing has left the journal.
            self.remove(&journal_of(entry));
            return Ok(true);
        }
        let expected = match kind {
            FileType::Directory => "no folder of this name in the receiving folder, found one",
            _ if replace => return Ok(false),
            _ => "none in the receiving folder, or the same file, found another; --force replaces it",
        };
        Err(Error::Told(format!("{}: expected {expected}", entry.shown())))
    }

    /// Opens a partial file or a journal, for reading and writing.
    fn partial(&self, name: &str, more: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        Ok(File::from(openat(&self.root, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    fn remove(&self, name: &str) {
        // It may not exist.
        let _ = unlinkat(&self.root, name, AtFlags::empty());
    }
}

/// A file that is on its way.
pub struct Partial<'a> {
    folder: &'a Folder,
    entry: Entry,
    data: File,
    start: [u8; START],
    state: Mutex<State>,
}

struct State {
    journal: File,
    hashes: Vec<Option<ChainingValue>>,
    /// Blocks that were written and are not in the journal yet.
    pending: Vec<u64>,
}

/// The name of a file's partial file: the same for each attempt, and of safe letters.
fn name_of(entry: &Entry) -> String {
    format!("{RESERVED}{}.partial", &blake3::hash(&entry.name).to_hex()[..32])
}

fn journal_of(entry: &Entry) -> String {
    format!("{}.journal", name_of(entry))
}

fn start_of(entry: &Entry) -> [u8; START] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(FORM).update(&BLOCK.to_be_bytes()).update(&entry.size.to_be_bytes());
    hasher
        .update(&entry.modified.0.to_be_bytes())
        .update(&entry.modified.1.to_be_bytes())
        .update(&entry.name);
    *hasher.finalize().as_bytes()
}

fn record(start: &[u8; START], block: u64, hash: &ChainingValue) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&block.to_be_bytes());
    bytes[8..40].copy_from_slice(hash);
    let check = blake3::keyed_hash(start, &bytes[..40]);
    bytes[40..].copy_from_slice(&check.as_bytes()[..8]);
    bytes
}

/// The records at the beginning of a journal that are whole.
fn records(journal: &[u8], start: &[u8; START], count: u64) -> Vec<(u64, ChainingValue)> {
    let Some(rest) = journal.strip_prefix(start) else { return Vec::new() };
    let read = |bytes: &[u8]| {
        let block = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let hash = bytes[8..40].try_into().expect("its length");
        (block < count && record(start, block, &hash) == bytes).then_some((block, hash))
    };
    rest.chunks_exact(RECORD).map_while(read).collect()
}

impl<'a> Partial<'a> {
    /// The one of an earlier transfer, with the blocks that are on the disk, or a new one. Each block that the journal has
    /// is read and hashed; `looking` is called after each.
    pub fn open(
        folder: &'a Folder,
        entry: &Entry,
        looking: impl FnMut() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let path = folder.path.join(name_of(entry));
        let failed = Error::file(&path);
        let mut journal = folder.partial(&journal_of(entry), OFlags::CREATE).map_err(&failed)?;
        let data = folder.partial(&name_of(entry), OFlags::CREATE).map_err(&failed)?;
        let start = start_of(entry);
        let mut bytes = Vec::new();
        journal.read_to_end(&mut bytes).map_err(&failed)?;
        let mut records = records(&bytes, &start, blocks(entry.size));
        if data.metadata().map_err(&failed)?.len() != entry.size {
            records.clear();
        }
        if records.is_empty() {
            // The old journal goes first: it is about old data.
            journal
                .set_len(0)
                .and_then(|()| journal.sync_all())
                .and_then(|()| data.set_len(0))
                .and_then(|()| data.set_len(entry.size))
                .and_then(|()| journal.write_all_at(&start, 0))
                .map_err(&failed)?;
        }
        // What is not whole is cut off, so that new records follow whole ones.
        let end = (START + RECORD * records.len()) as u64;
        journal.set_len(end).and_then(|()| journal.seek(SeekFrom::Start(end))).map_err(&failed)?;
        let hashes = verified(&data, entry.size, records, &failed, looking)?;
        let state = Mutex::new(State { journal, hashes, pending: Vec::new() });
        Ok(Self { folder, entry: entry.clone(), data, start, state })
    }

    /// Which blocks it has, a bit for each, lowest first, and their bytes.
    pub fn have(&self) -> (Vec<u8>, u64) {
        let state = self.state.lock().expect("nobody panics with it");
        let eight = |part: &[Option<ChainingValue>]| {
            part.iter().enumerate().fold(0, |byte, (at, hash)| byte | u8::from(hash.is_some()) << at)
        };
        let there = state.hashes.iter().zip(0..).filter(|(hash, _)| hash.is_some());
        let bytes = there.map(|(_, block)| length(self.entry.size, block)).sum();
        (state.hashes.chunks(8).map(eight).collect(), bytes)
    }

    /// Writes a block, whose hash was verified.
    pub fn write(&self, block: u64, data: &[u8], hash: ChainingValue) -> Result<(), Error> {
        let size = self.entry.size;
        if block >= blocks(size) || data.len() as u64 != length(size, block) {
            return Err(Error::Peer("a block of the file", format!("block {block} of {} bytes", data.len())));
        }
        self.data.write_all_at(data, block * BLOCK).map_err(|error| self.failed(error))?;
        let mut state = self.state.lock().expect("nobody panics with it");
        if state.hashes[block as usize].replace(hash).is_none() {
            state.pending.push(block);
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::File(self.folder.path.join(name_of(&self.entry)), error)
    }

    /// Puts the blocks that were written on the disk, and then into the journal. Only one thread may call it.
    pub fn commit(&self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.state.lock().expect("nobody panics with it").pending);
        if pending.is_empty() {
            return Ok(());
        }
        // The thread that writes a block adds it to `pending` afterwards, so the data of all of these are covered.
        fdatasync(&self.data).map_err(|errno| self.failed(errno.into()))?;
        let mut state = self.state.lock().expect("nobody panics with it");
        let mut bytes = Vec::with_capacity(RECORD * pending.len());
        for &block in &pending {
            let hash = state.hashes[block as usize].expect("a block that was written");
            bytes.extend(record(&self.start, block, &hash));
        }
        state.journal.write_all(&bytes).map_err(|error| self.failed(error))
    }

    /// Completes a file that has all blocks: permissions and time, the disk has it, and it gets its name. An existing file is
    /// only replaced if `replace` is set: the kernel decides, so one that has come meanwhile is kept, too. Returns its hash.
    pub fn complete(&self, replace: bool) -> Result<Hash, Error> {
        self.commit()?;
        let (entry, state) = (&self.entry, self.state.lock().expect("nobody panics with it"));
        let Some(hashes) = state.hashes.iter().copied().collect::<Option<Vec<_>>>() else {
            return Err(Error::Peer("all blocks of the file", "fewer".to_owned()));
        };
        let hash = if hashes.len() < 2 {
            let mut data = vec![0; entry.size as usize];
            self.data.read_exact_at(&mut data, 0).map_err(|error| self.failed(error))?;
            blake3::hash(&data)
        } else {
            whole(entry.size, &hashes)
        };
        let time = Timespec { tv_sec: entry.modified.0, tv_nsec: entry.modified.1 as _ };
        let times = Timestamps { last_access: time, last_modification: time };
        self.data
            .set_permissions(Permissions::from_mode(entry.mode & MODES))
            .and_then(|()| Ok(futimens(&self.data, &times)?))
            .and_then(|()| self.data.sync_all())
            .map_err(|error| self.failed(error))?;
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let root = &self.folder.root;
        renameat_with(root, name_of(entry), root, entry.name.as_slice(), flags)
            .map_err(|errno| Error::File(self.folder.path.join(entry.shown()), errno.into()))?;
        self.folder.remove(&journal_of(entry));
        // The disk has the new name, too.
        fsync(root).map_err(|errno| Error::File(self.folder.path.clone(), errno.into()))?;
        Ok(hash)
    }
}

/// The hashes of the blocks whose data are on the disk as the journal says.
fn verified(
    data: &File,
    size: u64,
    records: Vec<(u64, ChainingValue)>,
    failed: impl Fn(io::Error) -> Error,
    mut looking: impl FnMut() -> Result<(), Error>,
) -> Result<Vec<Option<ChainingValue>>, Error> {
    let mut hashes = vec![None; blocks(size) as usize];
    let mut buffer = vec![0; BLOCK.min(size) as usize];
    for (block, hash) in records {
        let room = &mut buffer[..length(size, block) as usize];
        data.read_exact_at(room, block * BLOCK).map_err(&failed)?;
        if hash::of(block, room) == hash {
            hashes[block as usize] = Some(hash);
        }
        looking()?;
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn entry(size: u64) -> Entry {
        Entry { name: b"a".to_vec(), size, modified: (7, 8), mode: 0o4640 }
    }

    proptest! {
        #[test]
        fn a_damaged_journal_gives_only_whole_records(
            count in 0u64..6, cut in 0usize..400, flip in 0usize..400, bit in 0u8..8,
        ) {
            let start = start_of(&entry(9 * BLOCK));
            let mut bytes = start.to_vec();
            for block in 0..count {
                bytes.extend(record(&start, block, &[block as u8; 32]));
            }
            let whole = bytes.clone();
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Some(byte) = bytes.get_mut(flip) {
                *byte ^= 1 << bit;
            }
            for (block, hash) in records(&bytes, &start, 9) {
                let at = START + RECORD * block as usize;
                prop_assert_eq!(&whole[at + 8..at + 40], &hash[..]);
            }
            if cut == 0 && flip >= whole.len() {
                prop_assert_eq!(records(&bytes, &start, 9).len() as u64, count);
            }
        }
    }

    #[test]
    fn a_partial_file_goes_on_with_what_is_on_the_disk() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(place.path()).expect("a folder");
        assert!(matches!(Folder::open(place.path()), Err(Error::Asked(_))));
        let entry = entry(3 * BLOCK + 5);
        let content = |block: u64| vec![block as u8 + 1; length(entry.size, block) as usize];
        let write = |partial: &Partial<'_>, block: u64| {
            partial.write(block, &content(block), hash::of(block, &content(block))).expect("written");
        };
        let open = |entry: &Entry| {
            let mut looked = 0;
            let partial = Partial::open(&folder, entry, || {
                looked += 1;
                Ok(())
            });
            (partial.expect("opened"), looked)
        };
        let (partial, _) = open(&entry);
        for block in [3, 1, 0] {
            write(&partial, block);
        }
        partial.commit().expect("committed");
        // Written, and lost with the process.
        write(&partial, 2);
        assert!(matches!(partial.write(4, b"x", [0; 32]), Err(Error::Peer(..))));
        assert!(matches!(partial.write(3, b"x", [0; 32]), Err(Error::Peer(..))));
        drop(partial);
        // The disk lost one that the journal has.
        let data = folder.partial(&name_of(&entry), OFlags::empty()).expect("there");
        data.write_all_at(b"?", BLOCK + 9).expect("written");
        let (partial, looked) = open(&entry);
        assert_eq!((looked, partial.have()), (3, (vec![0b1001], BLOCK + 5)));
        write(&partial, 1);
        assert!(matches!(partial.complete(false), Err(Error::Peer(..))));
        write(&partial, 2);
        let hash = partial.complete(false).expect("complete");
        let data = std::fs::read(place.path().join("a")).expect("there");
        assert_eq!(data, [content(0), content(1), content(2), content(3)].concat());
        assert_eq!(hash, blake3::hash(&data));
        assert!(folder.has(&entry, false).expect("the same"));
        // Neither set-user-ID nor a journal is left.
        assert_eq!(place.path().join("a").metadata().expect("there").permissions().mode() & 0o7777, 0o640);
        assert_eq!(place.path().read_dir().expect("a folder").count(), 1);
        // Another time of modification: another file.
        write(&open(&entry).0, 0);
        let other = Entry { modified: (7, 9), ..entry.clone() };
        assert_eq!(open(&other).0.have().1, 0);
        assert!(matches!(folder.has(&other, false), Err(Error::Told(_))));
        assert!(!folder.has(&other, true).expect("it may be replaced"));
    }

    #[test]
    fn links_are_not_followed() {
        let place = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (place.path().join("in"), place.path().join("out"));
        std::fs::create_dir(&inside).and_then(|()| std::fs::write(&outside, "out")).expect("made");
        let folder = Folder::open(&inside).expect("a folder");
        symlink(&outside, inside.join("a")).expect("a link");
        assert!(matches!(folder.has(&entry(0), false), Err(Error::Told(_))));
        assert!(!folder.has(&entry(0), true).expect("it may be replaced"));
        for name in [name_of(&entry(0)), journal_of(&entry(0))] {
            symlink(&outside, inside.join(&name)).expect("a link");
            assert!(Partial::open(&folder, &entry(0), || Ok(())).is_err());
            folder.remove(&name);
            folder.remove(&journal_of(&entry(0)));
        }
        // The link itself is replaced, not what it leads to.
        let partial = Partial::open(&folder, &entry(0), || Ok(())).expect("opened");
        assert!(partial.complete(false).is_err());
        partial.complete(true).expect("replaced");
        assert!(inside.join("a").symlink_metadata().expect("there").is_file());
        assert_eq!(std::fs::read(&outside).expect("there"), b"out");
        // A folder is never replaced.
        let named = Entry { name: b"b".to_vec(), ..entry(0) };
        std::fs::create_dir(inside.join("b")).expect("a folder");
        assert!(matches!(folder.has(&named, true), Err(Error::Told(_))));
    }
}
