//! Moves memory, a file, or bytes from a pipe between two hosts, over several TCP connections, and watches these.
//!
//! - What is sent (`source`): blocks of 4 MiB ([`BLOCK`]), each with its BLAKE3 (`hash`).
//! - How: [`send()`] opens a session that controls the transfer (`protocol`), and a stream of frames for each connection for data
//!   (`stream`). Who may send is decided by `elephan_session`: a [`Receiver`] admits those who have its token. A stream that is to be
//!   plain drops its encryption after it was admitted; the head of each of its frames has a keyed hash, with a key that only
//!   both ends of this session have.
//! - What is verified (`receive`): each block before it is written. Blocks of a file arrive in any order. They go into a partial
//!   file, and their hashes into a journal once the disk has them (`folder`), so a transfer goes on where it was, whatever
//!   ended it. Blocks from a pipe are written in order (`output`).
//! - The record (`watch`): samples of `TCP_INFO`, and what limits the transfer.
//!
//! Two threads of each stream overlap reading with sending, and receiving with writing. Memory use depends on the number of
//! streams alone, except for 32 bytes for each block.
#![cfg(target_os = "linux")]

mod folder;
mod hash;
mod output;
mod protocol;
mod receive;
mod send;
mod source;
mod stop;
mod stream;
mod watch;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use folder::Folder;
pub use hash::BLOCK;
pub use protocol::Done;
pub use receive::{Event, Place, Receiver};
pub use send::{Options, Sent, send};
pub use source::Payload;
pub use watch::{Limit, Progress};

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
    fn file(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::File(path.to_owned(), error)
    }
}
