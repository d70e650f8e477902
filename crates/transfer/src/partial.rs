//! A partial file and its journal.
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
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Mutex;

use blake3::hazmat::ChainingValue;
use rustix::fs::{FallocateFlags, Timespec, Timestamps, fallocate, fdatasync, futimens};

use crate::Error;
use crate::frame::Segment;
use crate::hash::{BLOCK, BlockHasher, blocks, length, whole};
use crate::manifest::{Entry, MODES};
use crate::tree::Tree;

/// The version of the journal's form.
const FORM: &[u8] = b"elephan journal 1";
/// Bytes of the journal's start, and of a record: number of the block, its hash, a check of both.
const START: usize = 32;
const RECORD: usize = 48;

/// A file that is on its way, longer than a block.
pub struct Partial {
    name: String,
    data: File,
    size: u64,
    start: [u8; START],
    /// Whether the data may have old content, which a hole of the sender's would not overwrite.
    resumed: bool,
    state: Mutex<State>,
}

struct State {
    journal: File,
    hashes: Vec<Option<ChainingValue>>,
    /// Blocks that were written and are not in the journal yet.
    pending: Vec<u64>,
    journaled: u64,
}

/// The name of a file's partial file: the same for each attempt, and of safe letters.
pub fn name_of(entry: &Entry) -> String {
    blake3::hash(&entry.name).to_hex()[..32].to_owned()
}

fn journal_of(name: &str) -> String {
    format!("{name}.journal")
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

impl Partial {
    /// A new one, without any block.
    pub fn new(tree: &Tree, entry: &Entry) -> Result<Self, Error> {
        let name = name_of(entry);
        let failed = |error| Error::File(tree.partial_path(&name), error);
        // The old journal goes first: it is about old data.
        let mut journal = tree.partial(&journal_of(&name)).map_err(failed)?;
        journal.set_len(0).and_then(|()| journal.sync_all()).map_err(failed)?;
        let data = tree.partial(&name).map_err(failed)?;
        data.set_len(0).and_then(|()| data.set_len(entry.size)).map_err(failed)?;
        let start = start_of(entry);
        journal.write_all(&start).map_err(failed)?;
        Ok(Self::with(name, data, entry, start, false, journal))
    }

    fn with(
        name: String,
        data: File,
        entry: &Entry,
        start: [u8; START],
        resumed: bool,
        journal: File,
    ) -> Self {
        let hashes = vec![None; blocks(entry.size) as usize];
        let state = Mutex::new(State { journal, hashes, pending: Vec::new(), journaled: 0 });
        Self { name, data, size: entry.size, start, resumed, state }
    }

    /// One of an earlier transfer, with the blocks that are on the disk; none if there is no such.
    /// Each block is read and hashed; `looking` is called after each.
    pub fn resume(
        tree: &Tree,
        entry: &Entry,
        mut looking: impl FnMut() -> Result<(), Error>,
    ) -> Result<Option<Self>, Error> {
        let name = name_of(entry);
        let failed = |error| Error::File(tree.partial_path(&name), error);
        let data = tree.existing_partial(&name).map_err(failed)?;
        let journal = tree.existing_partial(&journal_of(&name)).map_err(failed)?;
        let (Some(data), Some(mut journal)) = (data, journal) else { return Ok(None) };
        let start = start_of(entry);
        let mut bytes = Vec::new();
        journal.read_to_end(&mut bytes).map_err(failed)?;
        let records = records(&bytes, &start, blocks(entry.size));
        if records.is_empty() || data.metadata().map_err(failed)?.len() != entry.size {
            return Ok(None);
        }
        // What is not whole is cut off, so that new records follow whole ones.
        let end = (START + RECORD * records.len()) as u64;
        journal.set_len(end).and_then(|()| journal.seek(SeekFrom::Start(end))).map_err(failed)?;
        let partial = Self::with(name.clone(), data, entry, start, true, journal);
        let mut buffer = vec![0; BLOCK as usize];
        let mut good = Vec::new();
        for (block, hash) in records {
            let room = &mut buffer[..length(entry.size, block) as usize];
            partial.data.read_exact_at(room, block * BLOCK).map_err(failed)?;
            let mut hasher = BlockHasher::new(block);
            hasher.data(room);
            if hasher.finish() == hash {
                good.push((block, hash));
            }
            looking()?;
        }
        {
            let mut state = partial.state.lock().expect("nobody panics with it");
            for (block, hash) in good {
                if state.hashes[block as usize].replace(hash).is_none() {
                    state.journaled += 1;
                }
            }
        }
        Ok(Some(partial))
    }

    /// Which blocks it has, a bit for each, lowest first.
    pub fn bits(&self) -> Vec<u8> {
        let state = self.state.lock().expect("nobody panics with it");
        let eight = |part: &[Option<ChainingValue>]| {
            part.iter().enumerate().fold(0, |byte, (at, hash)| byte | u8::from(hash.is_some()) << at)
        };
        state.hashes.chunks(8).map(eight).collect()
    }

    /// Whether it has a block.
    pub fn has(&self, block: u64) -> bool {
        self.state.lock().expect("nobody panics with it").hashes[block as usize].is_some()
    }

    /// Writes a block, whose hash was verified: the data of its parts, one after the other.
    pub fn write(
        &self,
        block: u64,
        segments: &[Segment],
        mut data: &[u8],
        hash: ChainingValue,
    ) -> io::Result<()> {
        let (first, mut end) = (block * BLOCK, 0);
        for &(from, bytes) in segments {
            self.clear(first + end, u64::from(from) - end)?;
            let (part, rest) = data.split_at(bytes as usize);
            self.data.write_all_at(part, first + u64::from(from))?;
            (data, end) = (rest, u64::from(from) + u64::from(bytes));
        }
        self.clear(first + end, length(self.size, block) - end)?;
        let mut state = self.state.lock().expect("nobody panics with it");
        if state.hashes[block as usize].replace(hash).is_none() {
            state.pending.push(block);
        }
        Ok(())
    }

    fn clear(&self, from: u64, bytes: u64) -> io::Result<()> {
        if !self.resumed || bytes == 0 {
            return Ok(());
        }
        Ok(fallocate(&self.data, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, bytes)?)
    }

    /// Puts the blocks that were written on the disk, and then into the journal. Returns whether all are there. Only one thread
    /// may call it.
    pub fn commit(&self, tree: &Tree) -> Result<bool, Error> {
        let failed = |error| Error::File(tree.partial_path(&self.name), error);
        let pending = std::mem::take(&mut self.state.lock().expect("nobody panics with it").pending);
        if !pending.is_empty() {
            // The thread that writes a block adds it to `pending` afterwards, so the data of all of these are covered.
            fdatasync(&self.data).map_err(|errno| failed(errno.into()))?;
        }
        let mut state = self.state.lock().expect("nobody panics with it");
        let mut bytes = Vec::with_capacity(RECORD * pending.len());
        for &block in &pending {
            let hash = state.hashes[block as usize].expect("a block that was written");
            bytes.extend(record(&self.start, block, &hash));
        }
        state.journal.write_all(&bytes).map_err(failed)?;
        state.journaled += pending.len() as u64;
        Ok(state.journaled == state.hashes.len() as u64)
    }

    /// Completes a file that has all blocks: permissions, time, and the disk has it. Returns its hash; it can be renamed.
    pub fn complete(&self, tree: &Tree, entry: &Entry) -> Result<blake3::Hash, Error> {
        attributes(&self.data, entry)
            .and_then(|()| self.data.sync_all())
            .map_err(Error::file(&tree.partial_path(&self.name)))?;
        let state = self.state.lock().expect("nobody panics with it");
        let hashes: Vec<ChainingValue> = state.hashes.iter().map(|hash| hash.expect("all blocks")).collect();
        Ok(whole(self.size, &hashes))
    }

    /// Removes the partial file and its journal.
    pub fn remove(tree: &Tree, entry: &Entry) {
        let name = name_of(entry);
        // The journal goes first: data without it are never used.
        tree.remove_partial(&journal_of(&name));
        tree.remove_partial(&name);
    }
}

/// Gives a file the permissions and the time of the sender's.
pub fn attributes(file: &File, entry: &Entry) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(entry.mode & MODES))?;
    let time = Timespec { tv_sec: entry.modified.0, tv_nsec: entry.modified.1 as _ };
    Ok(futimens(file, &Timestamps { last_access: time, last_modification: time })?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(size: u64) -> Entry {
        Entry { name: b"a".to_vec(), folder: false, size, modified: (7, 8), mode: 0o640 }
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
        let folder = tempfile::tempdir().expect("a folder");
        let tree = Tree::open(folder.path()).expect("a folder");
        let entry = entry(3 * BLOCK + 5);
        let content = |block: u64| vec![block as u8 + 1; length(entry.size, block) as usize];
        let hash = |block: u64| {
            let mut hasher = BlockHasher::new(block);
            hasher.data(&content(block));
            hasher.finish()
        };
        let write = |partial: &Partial, block: u64| {
            let data = content(block);
            partial.write(block, &[(0, data.len() as u32)], &data, hash(block)).expect("written");
        };
        let partial = Partial::new(&tree, &entry).expect("new");
        for block in [3, 1, 0] {
            write(&partial, block);
        }
        assert!(!partial.commit(&tree).expect("committed"));
        // Written, and lost with the process.
        write(&partial, 2);
        drop(partial);
        // The disk lost one that the journal has.
        tree.partial(&name_of(&entry)).expect("there").write_all_at(b"?", BLOCK + 9).expect("written");
        let mut looked = 0;
        let partial = Partial::resume(&tree, &entry, || {
            looked += 1;
            Ok(())
        });
        let partial = partial.expect("read").expect("there");
        assert_eq!((looked, partial.bits()), (3, vec![0b1001]));
        write(&partial, 1);
        // A hole where data were.
        let mut hasher = BlockHasher::new(2);
        hasher.hole(BLOCK);
        partial.write(2, &[], &[], hasher.finish()).expect("written");
        assert!(partial.commit(&tree).expect("committed"));
        let found = partial.complete(&tree, &entry).expect("complete");
        tree.place(&name_of(&entry), b"a", false).expect("placed");
        let data = std::fs::read(folder.path().join("a")).expect("there");
        assert_eq!(data, [content(0), content(1), vec![0; BLOCK as usize], content(3)].concat());
        assert_eq!(found, blake3::hash(&data));
        Partial::remove(&tree, &entry);
        // Another time of modification: another file.
        let partial = Partial::new(&tree, &entry).expect("new");
        write(&partial, 0);
        partial.commit(&tree).expect("committed");
        let other = Entry { modified: (7, 9), ..entry.clone() };
        assert!(Partial::resume(&tree, &other, || Ok(())).expect("read").is_none());
    }
}
