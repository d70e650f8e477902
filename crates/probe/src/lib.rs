//! Measures a path between two hosts: datagrams that leave on a schedule, and TCP for some seconds.
//!
//! A [`Server`] waits on a port, by TCP and UDP. A [`Client`] has its token, opens a session (`elephan-session`) and then asks for
//! one test after the other: a [`Client::stream`] of datagrams, which the server records and perhaps echoes, or a [`Client::tcp`]
//! transfer in either direction. What the measurements mean is not decided here: both return raw series.
//!
//! Both sides agree on [`Limits`] first, and both keep to them. Each datagram carries a MAC of the session: without it a server
//! neither answers nor records anything. An echo is as long as what it answers, and a sequence number is answered once.
//!
//! Datagrams leave and come by a [`Wire`], which also has the clock. With the feature `virtual-time` there is a second one beside
//! the sockets: the links of a scenario in virtual time, and at their end what a server does ([`VirtualClient`]). The tests measure
//! over it, and so do those of the Python package; the feature is here because both ends need what is private to this crate, and the
//! library that a guest kernel opens (`elephan-emulator`) must not have sockets and TLS.

#![cfg(target_os = "linux")]

mod client;
mod datagram;
mod limits;
mod message;
mod peer;
mod registry;
mod schedule;
mod served;
mod server;
mod socket;
mod tcp;
#[cfg(any(test, feature = "virtual-time"))]
mod virtual_time;
mod wire;

#[cfg(test)]
mod tests;

pub use client::{Client, Stream};
pub use datagram::HEADER_BYTES;
pub use limits::Limits;
pub use message::Arrivals;
pub use peer::Peer;
pub use server::{Event, Server};
pub use tcp::{Sample, Tcp, Transfer};
#[cfg(any(test, feature = "virtual-time"))]
pub use virtual_time::{NearHost, VirtualClient, VirtualPeer, VirtualWire};
pub use wire::{Udp, Wire};

/// The port on which a server listens unless another is given, by TCP and UDP.
pub const PORT: u16 = 5210;

/// Why a measurement could not be made, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] elephan_session::Error),
    /// The server does not permit what was asked for, and says why.
    #[error("server: {0}")]
    Refused(String),
    /// A test would exceed what was agreed on.
    #[error("budget: expected at most {left} {unit} more, found a test of {needed}")]
    Budget {
        /// What is left.
        left: u64,
        /// What the test needs.
        needed: u64,
        /// Of what.
        unit: &'static str,
    },
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The system refused something: what, and why.
    #[error("{0}: {1}")]
    System(&'static str, #[source] std::io::Error),
    /// The caller cancelled.
    #[error("the measurement was cancelled")]
    Cancelled,
}
