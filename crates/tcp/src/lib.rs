//! A sans-I/O TCP endpoint: sender, receiver, SACK scoreboard, RTT and RTO, loss recovery.
//!
//! An [`Endpoint`] has no clock and no sockets. Give it segments, the time and what the application
//! wants; ask it for segments to send and for when it wants to be woken:
//!
//! ```ignore
//! endpoint.on_segment(&segment, ecn_mark, now);
//! while let Some(segment) = endpoint.poll_transmit(now) { network.send(segment); }
//! let wake = endpoint.poll_timeout();           // then endpoint.on_timer(now)
//! ```
//!
//! So the simulator, a link emulator and a test with a list of segments drive the same code.

mod config;
mod endpoint;
mod handshake;
mod receiver;
mod segment;
mod sender;
mod sequence;

pub use config::{ByteCounting, Config, DelayedAck, Recovery};
pub use endpoint::{Counters, Endpoint, Snapshot};
pub use segment::{Flags, IP_HEADER, SackBlocks, Segment, TCP_HEADER};
