//! A sans-I/O TCP endpoint: sender, receiver, SACK scoreboard, RTT and RTO, loss recovery.
//!
//! An [`Endpoint`] has no clock and no sockets. The caller passes it segments, the time and the application's
//! requests. The caller polls it for segments to send and for the time of its next timeout:
//!
//! ```
//! use elephan_cc::{Controller, Quantisation, registry, slow_start::SlowStart};
//! use elephan_tcp::{Config, Endpoint, Stack};
//! use elephan_units::Time;
//!
//! let algorithm = registry::find("scalable").unwrap().build(&[]).unwrap();
//! let controller = Controller::new(algorithm, SlowStart::Standard, Quantisation::None, 10.0);
//! let stack = Stack::new(&Config::default(), controller);
//! let mut a = Endpoint::connect(&stack, 1);
//! let mut b = Endpoint::listen(&stack, 2);
//! a.write(1_000_000);
//! a.close();
//! // A network without delay: each end receives what the other one sends.
//! let mut now = Time::ZERO;
//! while !a.is_finished() {
//!     let mut quiet = true;
//!     while let Some(segment) = a.poll_transmit(now) {
//!         b.on_segment(&segment, false, now);
//!         quiet = false;
//!     }
//!     while let Some(segment) = b.poll_transmit(now) {
//!         a.on_segment(&segment, false, now);
//!         quiet = false;
//!     }
//!     if quiet {
//!         now = a.poll_timeout().min(b.poll_timeout());
//!         a.on_timer(now);
//!         b.on_timer(now);
//!     }
//! }
//! assert_eq!(b.counters().bytes_delivered, 1_000_000);
//! ```
//!
//! The simulator, a link emulator and a test with a list of segments thus drive the same code.

mod config;
mod endpoint;
mod profile;
mod receiver;
mod report;
mod runs;
mod segment;
mod sender;
mod sequence;
mod stack;

pub use config::{
    AfterIdle, BurstSize, ByteCounting, Config, DelayedAck, Misbehave, Profile, RECOVERIES, Recovery,
    SsthreshBase, WindowReduction,
};
pub use endpoint::Endpoint;
pub use receiver::window_of_memory;
pub use report::{Counters, Snapshot};
pub use segment::{Burst, Flags, Header, IP_HEADER, SackBlocks, Segment, TCP_HEADER};
pub use stack::Stack;
