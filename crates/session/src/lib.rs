//! A session between two hosts: the probe's and the transfer's.
//!
//! A server has an [`Identity`], a key pair that it makes when it starts, and prints a [`Token`]: the fingerprint of its public
//! key, and a secret. A client with the token can [`connect`]. The connection is TLS 1.3 (RFC 8446) with the raw public key of the server
//! (RFC 7250) in place of a certificate: the client refuses a key whose fingerprint is another, and then sends the secret, which
//! the server compares. Nothing else is read from a client before that, and no more than a few hundred bytes.
//!
//! A [`Session`] then carries messages of bounded length, or bytes. A peer that stops is noticed: each session has a patience.
//!
//! A fingerprint of 128 bits suffices, because an attacker has to find a second key for a given one. The secret has 128 bits, too,
//! and is new with each start of the server.

mod identity;
mod message;
mod session;
mod socket;
mod strangers;
mod token;

#[cfg(test)]
mod tests;

use std::io;

pub use identity::Identity;
pub use message::MOST_BYTES;
pub use session::{Session, connect, over};
pub use strangers::{Stranger, Strangers};
pub use token::Token;

/// Why a session could not be opened, or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not that of a token.
    #[error("token: expected the text that the server printed when it started, {0}")]
    Token(&'static str),
    /// The token is of another server, or of another start of this one.
    #[error("token: expected that of this server, found that of another one, or of an earlier start")]
    WrongToken,
    /// The peer speaks something else, or another version.
    #[error("peer: expected {expected}, found {found}")]
    Protocol {
        /// What should have come.
        expected: &'static str,
        /// What came.
        found: String,
    },
    /// The peer said nothing for longer than the session's patience.
    #[error("peer: expected an answer within {0} s, found none")]
    Silent(f64),
    /// The peer closed the session before its end.
    #[error("peer: expected the session to go on, found it closed")]
    Closed,
    /// The peer closed the connection before it admitted this side.
    #[error(
        "peer: expected the session to begin, found the connection closed; the peer may be too busy, or no server of Elephan"
    )]
    NotAdmitted,
    /// The system refused something: what, and why.
    #[error("{0}: {1}")]
    System(&'static str, #[source] io::Error),
}
