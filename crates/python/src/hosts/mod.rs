//! What deals with real hosts and their packets: kernels as engines, captures, packetdrill, the probe, transfers, other programs.
//!
//! The feature `hosts` has it all. A first build of a checkout leaves it out, because the simulator does not need it and it takes as long to
//! compile as the simulator does.

pub mod capture;
#[cfg(target_os = "linux")]
pub mod engine;
#[cfg(target_os = "linux")]
pub mod host;
pub mod packetdrill;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
pub mod transfer;
#[cfg(target_os = "linux")]
pub mod watch;
