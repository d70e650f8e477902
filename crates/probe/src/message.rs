//! What both sides say over the session.

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::tcp::Transfer;

/// The version of these messages.
pub const VERSION: u32 = 1;
/// Arrivals in a message.
pub const CHUNK: usize = 10_000;
/// Bytes of the session for each arrival that is told, at most.
pub const BYTES_PER_ARRIVAL: u64 = 36;
/// Bytes of the session for a test's messages otherwise, at most, acknowledgements included.
pub const BYTES_PER_TEST: u64 = 4_000;
/// Labels of the secrets of a session, which are keys: of datagrams in each direction, and of what opens other connections.
pub const SECRETS: [&str; 3] = [
    "elephan probe: datagrams of the client",
    "elephan probe: datagrams of the server",
    "elephan probe: connections",
];

/// The first message of a client.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub limits: Limits,
}

/// The server's answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Welcome {
    Agreed { session: u64, limits: Limits, host: Host },
    Refused(String),
}

/// What a server tells of its host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    pub kernel: String,
    pub algorithms: Vec<String>,
}

/// A test that a client asks for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// A stream of `count` datagrams, `bytes` of IP packets in total, which the server records, and echoes if `echo`. The client
    /// says nothing else for `millis`.
    Stream { stream: u32, echo: bool, count: u32, bytes: u64, millis: u64 },
    /// The stream is over: what arrived?
    Arrivals { stream: u32 },
    /// A TCP connection, on which the server sends if `down`, for so long, and so many bytes of IP packets.
    Tcp { test: u32, cc: String, down: bool, millis: u64, bytes: u64 },
    /// The connection is over: what was seen of it?
    Transferred { test: u32 },
    /// There is nothing else.
    Bye,
}

/// The server's answer to a test.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Ready,
    Refused(String),
}

/// What arrived of a stream, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Sequence number of each datagram.
    pub sequence: Vec<u32>,
    /// When the kernel received it, on the receiver's clock, ns since 1970.
    pub at_ns: Vec<u64>,
    /// When it was echoed, likewise; zero if it was not.
    pub echoed_ns: Vec<u64>,
    /// Datagrams that the receiver's socket dropped for want of space: losses that are not the path's.
    pub overflowed: u32,
}

/// A part of the arrivals; the last one has `more` false.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chunk {
    pub arrivals: Arrivals,
    pub more: bool,
}

/// What the server saw of a TCP test.
#[derive(Debug, Serialize, Deserialize)]
pub enum Seen {
    Transfer(Transfer),
    Failed(String),
}
