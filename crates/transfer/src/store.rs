//! The files of a transfer, at the receiver: what is there, what arrives, what is complete.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;

use crate::Error;
use crate::frame::{Head, MOST_IN_PACK, read_pairs, segments};
use crate::hash::{BLOCK, BlockHasher, blocks, length};
use crate::manifest::{Entry, shown};
use crate::partial::{Partial, attributes, name_of};
use crate::protocol::{Done, Holding, LeftOut, MOST_LEFT};
use crate::tree::Tree;

/// The length of a file in a pack that the sender could not read.
pub const UNREAD: u32 = u32::MAX;

/// Where a file of a transfer is.
enum State {
    /// Nothing of it is here.
    Wanted,
    /// Some blocks are here.
    Partial(Arc<Partial>),
    /// It is in place; whether it was there before.
    Placed { before: bool },
    /// It was left out.
    Left,
}

/// The files of a transfer.
pub struct Store {
    tree: Tree,
    entries: Vec<Entry>,
    force: bool,
    states: Mutex<Vec<State>>,
    left: Mutex<(Vec<LeftOut>, u64)>,
    hash: Mutex<Option<[u8; 32]>>,
    /// Bytes of the sender's files that were verified and written, holes included.
    pub stored: AtomicU64,
    /// Bytes of data that were written.
    written: AtomicU64,
}

/// What a sender says that a receiver cannot accept.
fn wrong(expected: &'static str, found: impl std::fmt::Display) -> Error {
    Error::Peer(expected, format!("{found}"))
}

impl Store {
    /// For these files, which ascend by name.
    pub fn new(tree: Tree, entries: Vec<Entry>, force: bool) -> Self {
        let states = Mutex::new(entries.iter().map(|_| State::Wanted).collect());
        Self {
            tree,
            entries,
            force,
            states,
            left: Mutex::default(),
            hash: Mutex::default(),
            stored: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    fn set(&self, file: usize, state: State) {
        self.states.lock().expect("nobody panics with it")[file] = state;
    }

    fn leave(&self, file: usize, why: String) {
        self.set(file, State::Left);
        let mut left = self.left.lock().expect("nobody panics with it");
        left.1 += 1;
        if left.0.len() < MOST_LEFT {
            left.0.push(LeftOut { name: shown(&self.entries[file].name), why });
        }
    }

    /// Makes the folders, and finds what is there of each file. `tell` is given the number of a file and what there is;
    /// `looking` is called often.
    pub fn look(
        &self,
        mut tell: impl FnMut(u32, Holding) -> Result<(), Error>,
        mut looking: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (file, entry) in self.entries.iter().enumerate() {
            looking()?;
            if entry.folder {
                match self.tree.folder(&entry.name) {
                    Ok(_) => self.set(file, State::Placed { before: false }),
                    Err(error) => self.leave(file, error.to_string()),
                }
                continue;
            }
            let found = match self.tree.look(&entry.name) {
                Ok(found) => found,
                Err(error) => {
                    self.leave(file, error.to_string());
                    tell(file as u32, Holding::Whole)?;
                    continue;
                }
            };
            if let Some(found) = found {
                let same_size = found.kind == FileType::RegularFile && found.size == entry.size;
                if same_size && found.modified == entry.modified {
                    // A kill between renaming and removing has left its journal.
                    Partial::remove(&self.tree, entry);
                    self.set(file, State::Placed { before: true });
                    tell(file as u32, Holding::Whole)?;
                    continue;
                }
                if same_size {
                    let hash = self.hash_existing(&entry.name, &mut looking)?;
                    tell(file as u32, Holding::Other(hash))?;
                } else if !self.force {
                    tell(file as u32, Holding::Differs)?;
                    continue;
                }
            }
            if entry.size > BLOCK
                && let Some(partial) = Partial::resume(&self.tree, entry, &mut looking)?
            {
                self.tell_blocks(file, &partial, &mut tell)?;
                self.set(file, State::Partial(Arc::new(partial)));
            }
        }
        Ok(())
    }

    fn tell_blocks(
        &self,
        file: usize,
        partial: &Partial,
        tell: &mut impl FnMut(u32, Holding) -> Result<(), Error>,
    ) -> Result<(), Error> {
        /// Bits in a message, in bytes.
        const PART: usize = 1 << 16;
        let size = self.entries[file].size;
        let there = (0..blocks(size)).filter(|&block| partial.has(block)).map(|block| length(size, block));
        self.stored.fetch_add(there.sum(), Ordering::Relaxed);
        for (at, part) in partial.bits().chunks(PART).enumerate() {
            tell(file as u32, Holding::Blocks((at * PART * 8) as u64, part.to_vec()))?;
        }
        Ok(())
    }

    fn hash_existing(
        &self,
        name: &[u8],
        looking: &mut impl FnMut() -> Result<(), Error>,
    ) -> Result<[u8; 32], Error> {
        let failed = |error| Error::File(shown(name).into(), error);
        let file = self.tree.read(name).map_err(failed)?;
        hash_of(file, looking).map_err(|error| error.or_else(failed))
    }

    /// An existing file that the sender has found to be equal to its own.
    pub fn equal(&self, file: u32) -> Result<(), Error> {
        let entry = self.entries.get(file as usize).filter(|entry| !entry.folder);
        let entry = entry.ok_or_else(|| wrong("a file of the list", file))?;
        Partial::remove(&self.tree, entry);
        self.set(file as usize, State::Placed { before: true });
        Ok(())
    }

    /// Takes a block. Its data are verified before anything is written.
    pub fn block(&self, head: &Head, data: &[u8]) -> Result<(), Error> {
        let (file, block) = (head.file as usize, u64::from(head.block));
        let entry = self.entries.get(file).filter(|entry| entry.size > BLOCK);
        let entry = entry.ok_or_else(|| wrong("a file that has blocks", file))?;
        if block >= blocks(entry.size) {
            return Err(wrong("a block of its file", block));
        }
        let length = length(entry.size, block);
        let parts = segments(data, length).ok_or_else(|| wrong("the parts of a block", "others"))?;
        let mut hasher = BlockHasher::new(block);
        let (mut end, mut rest) = (0, parts.1);
        for &(from, bytes) in &parts.0 {
            let (part, after) = rest.split_at(bytes as usize);
            hasher.hole(u64::from(from) - end);
            hasher.data(part);
            (end, rest) = (u64::from(from) + u64::from(bytes), after);
        }
        hasher.hole(length - end);
        if hasher.finish() != head.hash {
            return Err(wrong("data that have their hash", "others"));
        }
        let Some(partial) = self.partial(file)? else { return Ok(()) };
        let failed = |error| Error::File(self.tree.partial_path(&name_of(entry)), error);
        partial.write(block, &parts.0, parts.1, head.hash).map_err(failed)?;
        self.stored.fetch_add(length, Ordering::Relaxed);
        self.written.fetch_add(parts.1.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The partial file of a file; none if it was left out, or is in place.
    fn partial(&self, file: usize) -> Result<Option<Arc<Partial>>, Error> {
        let mut states = self.states.lock().expect("nobody panics with it");
        match &states[file] {
            State::Partial(partial) => return Ok(Some(Arc::clone(partial))),
            State::Wanted => {}
            State::Left | State::Placed { .. } => return Ok(None),
        }
        // Made while the lock is held: two streams may bring its first two blocks.
        let partial = Arc::new(Partial::new(&self.tree, &self.entries[file])?);
        states[file] = State::Partial(Arc::clone(&partial));
        Ok(Some(partial))
    }

    /// Takes a pack of short files. They are renamed when the disk has all of them.
    pub fn pack(&self, head: &Head, data: &[u8]) -> Result<(), Error> {
        if *blake3::hash(data).as_bytes() != head.hash {
            return Err(wrong("data that have their hash", "others"));
        }
        let (files, mut rest) = read_pairs(data, MOST_IN_PACK).ok_or_else(|| wrong("a pack", "another"))?;
        let mut ready = Vec::with_capacity(files.len());
        for &(file, bytes) in &files {
            let file = file as usize;
            let entry = self.entries.get(file).filter(|entry| !entry.folder && entry.size <= BLOCK);
            let entry = entry.ok_or_else(|| wrong("a short file", file))?;
            if bytes == UNREAD {
                continue;
            }
            let part = rest.split_at_checked(bytes as usize).filter(|_| u64::from(bytes) == entry.size);
            let (part, after) = part.ok_or_else(|| wrong("a file of the size that was said", bytes))?;
            rest = after;
            if !matches!(self.states.lock().expect("nobody panics with it")[file], State::Wanted) {
                continue;
            }
            let failed = |error| Error::File(self.tree.partial_path(&name_of(entry)), error);
            self.write_short(entry, part).map_err(failed)?;
            self.written.fetch_add(u64::from(bytes), Ordering::Relaxed);
            ready.push(file);
        }
        if !rest.is_empty() {
            return Err(wrong("the end of a pack", format!("{} more bytes", rest.len())));
        }
        self.tree.sync().map_err(|error| Error::System("disk", error))?;
        for file in ready {
            self.place(file);
            self.stored.fetch_add(self.entries[file].size, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_short(&self, entry: &Entry, data: &[u8]) -> io::Result<()> {
        let mut file = self.tree.partial(&name_of(entry))?;
        file.set_len(0)?;
        file.write_all(data)?;
        attributes(&file, entry)
    }

    fn place(&self, file: usize) {
        let entry = &self.entries[file];
        match self.tree.place(&name_of(entry), &entry.name, self.force) {
            Ok(()) => self.set(file, State::Placed { before: false }),
            Err(error) => self.leave(file, error.to_string()),
        }
        Partial::remove(&self.tree, entry);
    }

    /// Leaves a file out that the sender could not send.
    pub fn left_out(&self, file: u32, why: &[u8]) -> Result<(), Error> {
        let file = file as usize;
        let entry = self.entries.get(file).filter(|entry| !entry.folder);
        let entry = entry.ok_or_else(|| wrong("a file of the list", file))?;
        let placed = matches!(
            self.states.lock().expect("nobody panics with it")[file],
            State::Placed { .. } | State::Left
        );
        if !placed {
            self.leave(file, shown(why));
            Partial::remove(&self.tree, entry);
        }
        Ok(())
    }

    /// Puts into the journals what was written, and completes the files that are whole. Only one thread may call it.
    pub fn commit(&self) -> Result<(), Error> {
        let open: Vec<(usize, Arc<Partial>)> = {
            let states = self.states.lock().expect("nobody panics with it");
            let partial = |(file, state): (usize, &State)| match state {
                State::Partial(partial) => Some((file, Arc::clone(partial))),
                _ => None,
            };
            states.iter().enumerate().filter_map(partial).collect()
        };
        for (file, partial) in open {
            if partial.commit(&self.tree)? {
                let hash = partial.complete(&self.tree, &self.entries[file])?;
                if self.entries.len() == 1 {
                    *self.hash.lock().expect("nobody panics with it") = Some(*hash.as_bytes());
                }
                self.place(file);
            }
        }
        Ok(())
    }

    /// What it is, for people.
    pub fn described(&self) -> String {
        let files = self.entries.iter().filter(|entry| !entry.folder).count();
        match self.entries.first() {
            None => "nothing".to_owned(),
            Some(first) if files == 1 && !first.folder => shown(&first.name),
            Some(first) => format!("{} ({files} files)", shown(&first.name)),
        }
    }

    /// What was done, when all streams have ended; `complete` if none of them failed.
    pub fn done(&self, complete: bool) -> Result<Done, Error> {
        self.commit()?;
        if !complete {
            return Ok(Done::default());
        }
        for file in 0..self.entries.len() {
            let is_missing = matches!(
                self.states.lock().expect("nobody panics with it")[file],
                State::Wanted | State::Partial(_)
            );
            if is_missing {
                self.leave(file, "expected all of it, found that the sender did not send all".to_owned());
            }
        }
        // The disk has the new names, too.
        self.tree.sync().map_err(|error| Error::System("disk", error))?;
        let states = self.states.lock().expect("nobody panics with it");
        let files = || states.iter().zip(&self.entries).filter(|(_, entry)| !entry.folder);
        let skipped =
            files().filter(|(state, _)| matches!(state, State::Placed { before: true })).count() as u64;
        let left = self.left.lock().expect("nobody panics with it");
        Ok(Done {
            files: files().filter(|(state, _)| matches!(state, State::Placed { .. })).count() as u64,
            skipped,
            bytes: self.written.load(Ordering::Relaxed),
            hash: *self.hash.lock().expect("nobody panics with it"),
            left: left.0.clone(),
            left_count: left.1,
        })
    }
}

/// An error of a file, or of what was called meanwhile.
pub enum HashError {
    /// Of the file.
    File(io::Error),
    /// Another.
    Other(Error),
}

impl HashError {
    /// One error, where `file` makes one of the file's.
    pub fn or_else(self, file: impl FnOnce(io::Error) -> Error) -> Error {
        match self {
            Self::File(error) => file(error),
            Self::Other(error) => error,
        }
    }
}

/// BLAKE3 of a whole file; `looking` is called often.
pub fn hash_of(
    mut file: File,
    looking: &mut impl FnMut() -> Result<(), Error>,
) -> Result<[u8; 32], HashError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = io::Read::read(&mut file, &mut buffer).map_err(HashError::File)?;
        if read == 0 {
            return Ok(*hasher.finalize().as_bytes());
        }
        hasher.update(&buffer[..read]);
        looking().map_err(HashError::Other)?;
    }
}
