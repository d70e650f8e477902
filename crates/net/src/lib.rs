//! What packets cross: rate-limited links, queue disciplines, loss and delay models.
//!
//! Nothing here knows of TCP or of a clock: a [`Packet`] is what has a size and an ECN field, and
//! every call is told the time. So the simulator (virtual time) and a link emulator (real time)
//! share one implementation.

mod config;
mod link;
mod loss;
mod packet;
mod queue;
mod serializer;
mod statistics;
mod vary;

pub use config::{Delay, Limit, LinkConfig, Loss, Queue};
pub use link::{Link, LinkCounters};
pub use packet::{Ecn, Packet};
pub use queue::Waiting;
pub use statistics::QueueStatistics;
