//! What this host can do: one measurement for each [`Request`].
//!
//! Nothing here repeats, averages or judges; callers do. Nothing that exists is changed: a test of writing has a file without
//! a name, network devices are measured in namespaces that exist as long as the measurement, and settings are only read.

mod block;
mod disk;
mod ethtool;
mod memory;
mod ping;
mod tcp;
mod veth;

use std::io;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub use block::ReadAhead;
pub use disk::{Advice, Disk, Pass};
pub use memory::{Memory, Operation};
pub use ping::{Paced, Ping};
pub use tcp::{Offloads, Tcp};

/// A measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Request {
    /// Memory bandwidth.
    Memory(Memory),
    /// Sequential reading and writing of a file.
    Disk(Disk),
    /// Sequential reading of a block device of our own with several read-ahead windows; needs root.
    ReadAhead(ReadAhead),
    /// TCP within this host.
    Tcp(Tcp),
    /// Latency of requests and responses between two namespaces.
    Ping(Ping),
    /// A stream of datagrams at a fixed spacing between two namespaces.
    Paced(Paced),
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
    /// Of memory, and of each pass over a file or block device.
    Moved(Vec<Moved>),
    /// Of TCP.
    Tcp(tcp::Carried),
    /// The shortest and the median time from request to response for each size, s.
    Ping(Vec<ping::RoundTrip>),
    /// Of a paced stream.
    Paced(ping::Received),
    /// Of a device.
    Device(ethtool::Device),
}

/// Bytes that were moved in a time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moved {
    /// Bytes.
    pub bytes: u64,
    /// Wall-clock time, s.
    pub seconds: f64,
    /// Processor time of the threads that moved them, s. The kernel's own threads, which write the page cache to a disk, are not
    /// counted.
    pub cpu_seconds: f64,
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
    /// A value of the request is out of range.
    #[error("{0}")]
    Unfit(String),
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
        Request::Memory(memory) => memory.measure(stop).map(|moved| Answer::Moved(vec![moved])),
        Request::Disk(disk) => disk.measure(stop).map(Answer::Moved),
        Request::ReadAhead(read) => read.measure(stop).map(Answer::Moved),
        Request::Tcp(tcp) => tcp.measure(stop).map(Answer::Tcp),
        Request::Ping(ping) => ping.measure(stop).map(Answer::Ping),
        Request::Paced(paced) => paced.measure(stop).map(Answer::Paced),
        Request::Device { name } => ethtool::device(name).map(Answer::Device).map_err(refused(name.as_str())),
    }
}

/// Wall-clock time and the calling thread's processor time since a moment.
struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: thread_seconds() }
    }

    fn seconds(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    fn cpu_seconds(&self) -> f64 {
        thread_seconds() - self.cpu
    }

    fn moved(&self, bytes: u64) -> Moved {
        Moved { bytes, seconds: self.seconds(), cpu_seconds: self.cpu_seconds() }
    }
}

fn thread_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// What several threads moved side by side: all bytes, in the time of the slowest.
fn together(parts: impl IntoIterator<Item = Moved>) -> Moved {
    parts.into_iter().fold(Moved { bytes: 0, seconds: 0.0, cpu_seconds: 0.0 }, |all, one| Moved {
        bytes: all.bytes + one.bytes,
        seconds: all.seconds.max(one.seconds),
        cpu_seconds: all.cpu_seconds + one.cpu_seconds,
    })
}
