//! What Linux gives a program that measures networks: namespaces and their devices, socket options, `TCP_INFO`, and threads
//! that are urgent.
//!
//! The engines of a kernel, probes, transfers and measurements of a host share this crate; none of them needs the simulator
//! for it. A [`Record`] makes the tables of a run from samples of `TCP_INFO`, of sockets of its own user or, by a [`Watcher`], of any program.
#![cfg(target_os = "linux")]
#![allow(clippy::cast_possible_wrap, reason = "the types of the kernel's interfaces")]

mod clock;
pub mod device;
mod diag;
mod namespace;
mod record;
pub mod socket;
mod tcp_info;
mod watch;

pub use clock::{Urgency, cpu_s, make_urgent, wall_ns};
pub use namespace::Namespace;
pub use record::{Record, Recorded};
pub use tcp_info::{TcpInfo, tcp_cc_info, tcp_info};
pub use watch::{Watched, Watcher};
