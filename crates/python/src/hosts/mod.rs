//! What deals with real hosts and their packets: kernels as engines, captures, packetdrill, the probe, transfers, other programs.
//!
//! The feature `hosts` has it all. A first build of a checkout leaves it out, because the simulator does not need it and it takes as long to
//! compile as the simulator does.

mod capture;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod host;
mod packetdrill;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod transfer;
#[cfg(target_os = "linux")]
mod watch;

use pyo3::prelude::*;

/// Adds the functions and classes of these files to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    capture::register(module)?;
    packetdrill::register(module)?;
    #[cfg(target_os = "linux")]
    {
        engine::register(module)?;
        host::register(module)?;
        probe::register(module)?;
        transfer::register(module)?;
        watch::register(module)?;
    }
    Ok(())
}
