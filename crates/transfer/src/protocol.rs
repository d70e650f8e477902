//! What both sides say to each other in the session that controls a transfer.
//!
//! The sender says [`Hello`]; the receiver answers [`Answer`]. For files, the sender then lists them ([`Entry`], in messages of
//! bounded length), and the receiver says what it has of them ([`Have`]). The sender answers which of the existing files
//! differ, and from then on only the receiver speaks: [`Report`], ten times a second, and at last [`Report::Done`].

use serde::{Deserialize, Serialize};

use crate::manifest::Entry;

/// The version of what is said.
pub const VERSION: u32 = 1;

/// The first message of a session.
#[derive(Serialize, Deserialize)]
pub enum Hello {
    /// Opens a transfer.
    Open(Offer),
    /// Joins a transfer as one of its streams.
    Join {
        /// The number of the transfer.
        transfer: u64,
        /// Its key.
        key: [u8; 32],
        /// The number of the stream.
        stream: u32,
    },
}

/// What a sender wants to send, and how.
#[derive(Clone, Serialize, Deserialize)]
pub struct Offer {
    /// [`VERSION`].
    pub version: u32,
    /// Bytes from memory, which the receiver discards; none for files.
    pub memory: Option<u64>,
    /// The number of streams.
    pub streams: u32,
    /// Whether streams drop their encryption.
    pub plain: bool,
    /// Whether existing files are replaced.
    pub force: bool,
}

/// The receiver's answer to [`Hello`].
#[derive(Serialize, Deserialize)]
pub enum Answer {
    /// A transfer is open: its number, and the key with which streams join it.
    Opened(u64, [u8; 32]),
    /// The stream has joined.
    Joined,
    /// It is not wanted, and why.
    Refused(String),
}

/// What a sender says of its files.
#[derive(Serialize, Deserialize)]
pub enum List {
    /// Some of them; in all messages together they ascend by name.
    Entries(Vec<Entry>),
    /// There are no more.
    End,
}

/// What a receiver has of the sender's files.
#[derive(Serialize, Deserialize)]
pub enum Have {
    /// It is still looking.
    Looking,
    /// Of some files; what is not mentioned is wanted whole.
    Some(Vec<(u32, Holding)>),
    /// It has said everything.
    End,
    /// It cannot receive them, and why.
    Refused(String),
}

/// What a receiver has of a file.
#[derive(Serialize, Deserialize)]
pub enum Holding {
    /// The whole: size and time of modification are the sender's.
    Whole,
    /// A file of the same size and another time of modification, with this hash.
    Other([u8; 32]),
    /// Blocks of it from this one on: a bit for each, lowest first. Of a long file it is said in several parts.
    Blocks(u64, #[serde(with = "crate::manifest::bytes")] Vec<u8>),
    /// An existing file, which may not be replaced, and is certain to differ.
    Differs,
}

/// The sender's answer to the existing files.
#[derive(Serialize, Deserialize)]
pub enum Compared {
    /// It is still reading its own.
    Looking,
    /// Those of [`Holding::Other`] that are equal, so that they are not sent.
    Equal(Vec<u32>),
    /// All were compared. Data follow.
    Start,
    /// Some differ, and may not be replaced.
    GivenUp,
}

/// What a receiver says while data arrive.
#[derive(Serialize, Deserialize)]
pub enum Report {
    /// How far it is.
    SoFar {
        /// Bytes that were verified and written; of memory those that have arrived.
        stored: u64,
        /// Time for which streams waited for the disk, all streams together, nanoseconds.
        disk_ns: u64,
    },
    /// Everything is in place.
    Done(Done),
    /// The transfer has ended, and why.
    Failed(String),
}

/// What a receiver has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Files that are in place because of this transfer, or were there and equal.
    pub files: u64,
    /// Of these, files that were there.
    pub skipped: u64,
    /// Bytes that arrived and were stored, without holes and without what was there before.
    pub bytes: u64,
    /// BLAKE3 of the file, if a single one was received that is longer than a block.
    pub hash: Option<[u8; 32]>,
    /// Files that are not in place.
    pub left: Vec<LeftOut>,
    /// The number of those, of which `left` has the first ones.
    pub left_count: u64,
}

/// A file that was left out.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, as text for people.
    pub name: String,
    /// Why.
    pub why: String,
}

/// As many files that were left out are told one by one.
pub const MOST_LEFT: usize = 100;
