//! The network elements that packets cross: rate-limited links, queue disciplines, loss and delay models.
//!
//! Nothing here depends on TCP or on a clock: a [`Packet`] is anything whose [`Head`] has a size and an ECN field, and
//! every call receives the time. So the simulator (virtual time) and a link emulator (real time) share one
//! implementation.

mod adaptive_red;
mod class_states;
mod classes;
mod codel;
mod config;
mod drr;
mod dscp;
mod fq_codel;
mod ledger;
mod link;
mod loss;
mod packet;
mod packet_queue;
mod packets;
mod parameters;
mod pie;
mod policer;
mod priority;
mod queue;
mod red;
mod schedule;
mod serializer;
mod statistics;
mod threshold;
mod vary;
mod verdict;
mod waiting;
mod wred;
mod wrr;

#[cfg(test)]
mod template;
#[cfg(test)]
mod testing;

pub use adaptive_red::AdaptiveRed;
pub use class_states::ClassCounters;
pub use classes::{Class, Drr, Priority, Wrr};
pub use codel::Codel;
pub use config::{Delay, EcnRewrite, LinkConfig, Loss};
pub use dscp::{Codepoints, Dscp};
pub use fq_codel::FqCodel;
pub use ledger::LinkCounters;
pub use link::{FarEnd, NearEnd, Run, Times, View, Wire};
pub use packet::{Ecn, Head, Packet};
pub use pie::Pie;
pub use policer::{Exceed, Policer};
pub use queue::{DISCIPLINES, Discipline, Queue};
pub use red::Red;
pub use schedule::{OPPORTUNITY_BYTES, Opportunities, Rates, Schedule};
pub use statistics::QueueStatistics;
pub use threshold::{DropTail, Threshold};
pub use waiting::{Limit, Waiting};
pub use wred::{Profile, Wred};
