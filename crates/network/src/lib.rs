//! The network of a plan: its links, the routes over them, the changes during the run, and the records of
//! each link.
//!
//! A [`Network`] has no clock, and one or more parts. A [`Driver`] provides the time of a part: the simulator in virtual time, the link
//! emulator in real time. The path of a packet from link to link is implemented once, in [`Driver::arrive`]
//! and [`Driver::send`].

mod changes;
mod driver;
mod events;
mod lateness;
mod links;
mod network;
mod parcel;
mod part;
mod paths;
mod record;

pub use driver::{Driver, Routed};
pub use events::Events;
pub use lateness::Lateness;
pub use network::Network;
pub use parcel::{FIRST_PORT, Parcel, Routes, set_service};
pub use part::{End, Lent, Part};
pub use paths::Paths;
pub use record::Recorded;
