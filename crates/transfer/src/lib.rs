//! Moves memory, files and folders between two hosts, over several TCP connections, and watches these.
//!
//! A [`Receiver`] waits for senders who have its token (`elephan_session`). [`send()`] opens a session that controls the
//! transfer, and one for each stream of data. A stream that is to be plain drops its encryption after it was admitted, and
//! then carries the bytes of its socket; the head of each of its frames has a keyed hash, with a key that only both ends of
//! this session have.
//!
//! A file longer than a block ([`BLOCK`]) goes in blocks, in any order, over all streams. The receiver writes them into a
//! partial file, and the hash of each block into a journal once the block is on the disk (`partial`), so a transfer goes on
//! where it was, whatever ended it. Shorter files go in packs. Complete files are renamed into place; names lead nowhere but
//! into the receiving folder (`tree`).
//!
//! Threads with bounded queues between them read, send, receive and write at the same time. Memory use depends on the number of
//! streams and of files, not on their size, except for 32 bytes for each block of the files that are on their way.
#![cfg(target_os = "linux")]

mod carry;
mod frame;
mod hash;
mod manifest;
mod partial;
mod protocol;
mod receive;
mod send;
mod source;
mod stop;
mod store;
mod tree;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use hash::BLOCK;
pub use manifest::shown;
pub use protocol::{Done, LeftOut};
pub use receive::{Event, Incoming, Receiver};
pub use send::{Limit, Options, Payload, Progress, Sent, send};

/// The port of a receiver, if none is named.
pub const PORT: u16 = 5211;
/// The most streams of a transfer.
pub const MOST_STREAMS: u32 = 256;

/// What a caller does during a transfer: it may end it.
pub trait Watch: Sync {
    /// Whether the transfer is to end now.
    fn is_cancelled(&self) -> bool;
}

/// Why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session, or one of its streams.
    #[error("{0}")]
    Session(#[from] elephan_session::Error),
    /// A file or folder.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// Something else that the system refused.
    #[error("{0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// The peer said something that is not of the protocol, or data that do not have their hash.
    #[error("peer: expected {0}, found {1}")]
    Peer(&'static str, String),
    /// The other side ended the transfer, and said why.
    #[error("{0}")]
    Told(String),
    /// What the caller asked for does not work.
    #[error("{0}")]
    Asked(String),
    /// The caller ended it.
    #[error("the transfer was cancelled")]
    Cancelled,
}

impl Error {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self::File(path.to_owned(), error)
    }
}
