//! The caller's control of a run in progress, for all engines.

use std::path::PathBuf;

use elephan_units::Time;

use crate::FlowSamples;
use crate::trace::QueueTrace;

/// The caller's control of a run in progress.
pub trait Control: Sync {
    /// Simulated time between two calls of [`Control::goes_on`], in a run of this duration. An engine in real
    /// time chooses this itself.
    fn interval(&self, duration: Time) -> Time {
        duration / 100
    }
    /// Whether to continue the run; false cancels it. A caller pauses the run by not returning.
    fn goes_on(&self, _so_far: &SoFar<'_>) -> bool {
        true
    }
    /// Whether the run must end now. Called about every millisecond of computing time, also while simulated
    /// time does not advance.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// The file for the packets of link `name`, for the links that the plan names.
    fn pcap_file(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}

/// A run in progress.
#[derive(Clone, Copy, Debug)]
pub struct SoFar<'a> {
    /// Elapsed time of the run.
    pub now: Time,
    /// Its share of the run's duration.
    pub share: f64,
    /// The samples of the flows so far.
    pub flows: &'a FlowSamples,
    /// The samples of the links so far.
    pub queues: &'a QueueTrace,
}

/// Runs to the end, without captures.
pub struct Uncontrolled;

impl Control for Uncontrolled {}
