//! Congestion control algorithms as pure state machines: no clock, no I/O, no allocation for an ACK.
//!
//! A [`Controller`] is the congestion control of a TCP endpoint. It owns the arithmetic of `cwnd` and
//! `ssthresh`, and contains an [`Algorithm`] (how the window changes in congestion avoidance, and its
//! reduction at a congestion event) and a [`SlowStart`] (how the window grows before that). Everything that
//! all algorithms share (the loss window, whole windows, undo) is implemented once, in the controller. The
//! endpoint owns sequence numbers, timers, recovery and the rule "once per window of data".
//!
//! Windows are in segments, as `f64`: the papers' form. Each algorithm is one file of this crate and one
//! entry of the [`registry`]; some have a second file in `linux/`, which computes them as Linux does. Slow
//! starts are found by name in [`slow_start`]. The thesis is Y.-T. Li, An Investigation into Transport Protocols
//! and Data Transport Applications over High Performance Networks, University College London, 2006.
//!
//! ```
//! use elephan_cc::{Controller, Quantisation, registry, slow_start};
//!
//! let scalable = registry::find("scalable").unwrap().build(&[("a", 0.02.into())]).unwrap();
//! let limited = slow_start::find("limited").unwrap().build(&[]).unwrap();
//! let controller = Controller::new(scalable, limited, Quantisation::None, 10.0);
//! assert_eq!(controller.cwnd(), 10.0);
//! ```

pub mod algorithm;
mod controller;
pub mod governor;
mod linux;
mod parameter;
pub mod registry;
mod round;
pub mod slow_start;
mod variable;

pub mod bbr;
pub mod bic;
pub mod compound;
pub mod cubic;
pub mod dctcp;
pub mod fast;
pub mod hstcp;
pub mod hstcp_fc;
pub mod htcp;
pub mod illinois;
pub mod ltcp;
pub mod reno;
pub mod scalable;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;

#[cfg(test)]
mod history;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod template;

pub use algorithm::{Ack, Algorithm, Cause, Congestion, Start, State, Window};
pub use controller::{Controller, Quantisation, Undo};
pub use linux::Form;
pub use slow_start::SlowStart;
pub use variable::{Tell, Variable};
