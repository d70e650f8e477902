//! Traffic sources: when a flow starts, how much it sends, and what follows.
//!
//! | what | who decides when the next comes | file |
//! |---|---|---|
//! | [`Demand`] | the end of the last transfer | `demand.rs` |
//! | [`App`] | a clock, or an acknowledgment and a pause | `app.rs` |
//! | [`Web`] | the end of the last object, and a time to think | `web.rs` |
//! | [`Arrivals`] | a clock: a Poisson process | `arrivals.rs` |
//! | [`Sessions`] | a clock; then each end of a connection, after what it receives | `sessions.rs` |
//! | [`Crowd`] | its members: web users, arrivals, or sessions | `crowd.rs` |
//! | [`Datagrams`] | a clock: constant rate, or on and off | `datagrams.rs` |
//!
//! Everything is drawn from a separate random stream, which depends on the seed, the purpose and a number,
//! but not on the network's behaviour. So a source's sample path is the same whatever other traffic there is.

mod app;
mod arrivals;
mod crowd;
mod datagrams;
mod demand;
mod distribution;
mod periods;
mod sessions;
mod start;
mod web;

pub use app::{App, KeyFrames, Pace, Writer};
pub use arrivals::{Arrivals, Arriving, Sizes};
pub use crowd::{Crowd, Members, Page};
pub use datagrams::{Datagrams, Source, UDP_HEADERS};
pub use demand::Demand;
pub use distribution::Distribution;
pub use periods::Pattern;
pub use sessions::{Act, After, DataUnit, Drawn, Opening, Script, Sessions, Side, Talk, Vector};
pub use start::Start;
pub use web::{Request, User, Web};
