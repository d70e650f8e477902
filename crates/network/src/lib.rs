//! The network of a plan: its links, the routes over them, the changes during the run, and the records of
//! each link.
//!
//! A [`Network`] has no clock. A [`Driver`] provides the time: the simulator in virtual time, the link
//! emulator in real time. The path of a packet from link to link is implemented once, in [`Driver::arrive`]
//! and [`Driver::send`].

mod driver;
mod events;
mod network;
mod parcel;
mod record;

pub use driver::{Driver, Routed};
pub use events::Events;
pub use network::Network;
pub use parcel::{FIRST_PORT, Parcel, Routes, set_service};
pub use record::Recorded;
