//! The network of a plan: its links, the routes over them, what changes during the run, and what is recorded of each link.
//!
//! A [`Network`] has no clock. A [`Driver`] says what time it is: the simulator in virtual time, the link emulator in real
//! time. The way of a packet over its route, from link to link, is written once, in [`Driver::arrive`] and [`Driver::send`].

mod driver;
mod events;
mod network;
mod record;

pub use driver::{Driver, Routed};
pub use events::Events;
pub use network::Network;
pub use record::Recorded;
