//! What this host can send: one measurement for each [`Request`].
//!
//! Nothing here repeats, averages or judges; callers do. Nothing that exists is changed: network devices are measured in namespaces that
//! exist as long as the measurement, and settings are only read.

mod ethtool;
mod ping;
mod tcp;
mod veth;

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use ethtool::Feature;
pub use ping::Ping;
pub use tcp::Tcp;

/// A measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Request {
    /// TCP within this host.
    Tcp(Tcp),
    /// Latency of requests and responses between two namespaces.
    Ping(Ping),
    /// What the driver of a network device of this namespace tells.
    Device {
        /// Its name.
        name: String,
    },
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// Of TCP.
    Tcp(tcp::Carried),
    /// The shortest time from request to response for each size, s.
    Ping(Vec<ping::RoundTrip>),
    /// Of a device.
    Device(ethtool::Device),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It was cancelled.
    #[error("the measurement was cancelled")]
    Cancelled,
    /// The system refused something: what, and why.
    #[error("{0}: {1}")]
    System(String, #[source] io::Error),
}

/// Names what the system refused.
fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::System(what.into(), error)
}

/// Whether the measurement is to end; asked several times a second, from several threads.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Carries out a measurement. Everything that it made is gone when it returns, and when this process is killed.
pub fn measure(request: &Request, stop: Stop<'_>) -> Result<Answer, Error> {
    match request {
        Request::Tcp(tcp) => tcp.measure(stop).map(Answer::Tcp),
        Request::Ping(ping) => ping.measure(stop).map(Answer::Ping),
        Request::Device { name } => ethtool::device(name).map(Answer::Device).map_err(refused(name.as_str())),
    }
}

/// How long a call may wait before it looks whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// A peer that says nothing for so many such times is gone.
const PATIENCES: u32 = 50;

/// Counts the times that a call waited in vain, of which there may be some.
fn patience(error: io::Error, waited: u32) -> io::Result<u32> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
            if waited < PATIENCES =>
        {
            Ok(waited + 1)
        }
        _ => Err(error),
    }
}
