//! What arrives for a pipe, in order.
//!
//! Blocks come over several streams. A stream that has one waits until all before it are written, so at most the blocks that the streams'
//! buffers hold wait at a time, and TCP keeps back the streams that are ahead. A sender numbers blocks so that those of a
//! stream ascend: the next block is never behind one that waits.

use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex};

use blake3::Hash;
use blake3::hazmat::ChainingValue;
use rustix::event::PollFlags;

use crate::Error;
use crate::hash::{BLOCK, whole};
use crate::stop::{LOOK, Stop};

/// At least so many bytes can be written without waiting to a pipe that is ready (POSIX: PIPE_BUF).
const PART: usize = 4096;

/// The order of the blocks of a transfer.
pub struct Output<'a> {
    pipe: &'a OwnedFd,
    streams: usize,
    state: Mutex<State>,
    advanced: Condvar,
}

struct State {
    size: u64,
    hashes: Vec<ChainingValue>,
    /// The hash of the first block, as that of the whole.
    first: Hash,
    /// Streams whose block is not the next one.
    waiting: usize,
    /// Streams that have ended, and the number of blocks that they have told.
    ended: usize,
    blocks: u64,
}

impl<'a> Output<'a> {
    /// Into a pipe, from so many streams.
    pub fn new(pipe: &'a OwnedFd, streams: usize) -> Self {
        let first = blake3::hash(b"");
        let state = State { size: 0, hashes: Vec::new(), first, waiting: 0, ended: 0, blocks: 0 };
        Self { pipe, streams, state: Mutex::new(state), advanced: Condvar::new() }
    }

    /// Writes a block, whose hash was verified, after all before it.
    pub fn write(&self, block: u64, data: &[u8], hash: ChainingValue, stop: &Stop) -> Result<(), Error> {
        let mut state = self.state.lock().expect("nobody panics with it");
        let mut waits = None;
        while block != state.hashes.len() as u64 {
            let next = state.hashes.len() as u64;
            if waits.replace(next) != Some(next) {
                state.waiting += 1;
            }
            if block < next || state.waiting + state.ended == self.streams {
                return Err(Error::Peer(
                    "the next block of a stream",
                    format!("block {block} in place of {next}"),
                ));
            }
            if stop.has_failed() {
                return Err(Error::Cancelled);
            }
            // A stream that ends does not wake this one.
            state = self.advanced.wait_timeout(state, LOOK).expect("nobody panics with it").0;
        }
        if !state.size.is_multiple_of(BLOCK) {
            return Err(Error::Peer("the end after a shorter block", format!("block {block}")));
        }
        if block == 0 {
            state.first = blake3::hash(data);
        }
        let mut rest = data;
        while !rest.is_empty() {
            stop.ready(self.pipe, PollFlags::OUT)?;
            match rustix::io::write(self.pipe, &rest[..rest.len().min(PART)]) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(errno) => return Err(Error::System("standard output", errno.into())),
            }
        }
        state.size += data.len() as u64;
        state.hashes.push(hash);
        state.waiting = 0;
        self.advanced.notify_all();
        Ok(())
    }

    /// A stream has ended; all streams together had so many blocks.
    pub fn end(&self, blocks: u64) {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.ended += 1;
        state.blocks = blocks;
    }

    /// The hash of all, when all streams have ended.
    pub fn complete(&self) -> Result<Hash, Error> {
        let state = self.state.lock().expect("nobody panics with it");
        match state.hashes.as_slice() {
            hashes if hashes.len() as u64 != state.blocks => Err(Error::Peer(
                "all blocks that it announced",
                format!("{} of {}", hashes.len(), state.blocks),
            )),
            [] | [_] => Ok(state.first),
            hashes => Ok(whole(state.size, hashes)),
        }
    }
}
