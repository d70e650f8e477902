//! What wants to send: when a flow starts, how much it sends, and what comes next.
//!
//! | what | who decides when the next comes | file |
//! |---|---|---|
//! | [`Demand`] | the end of the last transfer | `demand.rs` |
//! | [`Web`] | the end of the last object, and a time to think | `web.rs` |
//! | [`Arrivals`] | a clock: a Poisson process | `arrivals.rs` |
//! | [`Datagrams`] | a clock: constant rate, or on and off | `datagrams.rs` |
//!
//! Everything is drawn from a stream of its own, which depends on the seed, the purpose and a number, and on nothing that the
//! network does: so a source's sample path is the same whatever else there is.

mod arrivals;
mod datagrams;
mod demand;
mod distribution;
mod start;
mod web;

pub use arrivals::{Arrivals, Arriving, Sizes};
pub use datagrams::{Datagrams, Pattern, Source, UDP_HEADERS};
pub use demand::Demand;
pub use distribution::Distribution;
pub use start::Start;
pub use web::{Request, User, Web};
