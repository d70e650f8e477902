//! What a caller may do while a run goes on, whichever engine carries it out.

use std::path::PathBuf;

use elephan_units::Time;

use crate::trace::{FlowTrace, QueueTrace};

/// What a caller may do while a run goes on.
pub trait Control {
    /// How much simulated time passes between two calls of [`Control::goes_on`], in a run of this duration. An engine in real
    /// time chooses that itself.
    fn interval(&self, duration: Time) -> Time {
        duration / 100
    }
    /// Says whether the run goes on; false cancels it. A caller that wants it to pause does not return.
    fn goes_on(&self, so_far: &SoFar<'_>) -> bool;
    /// Whether the run is to end now. Asked every millisecond or so of computing, also while simulated time does not advance.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// Where the packets of link `name` are written, for the links that the plan names.
    fn pcap_file(&self, name: &str) -> Option<PathBuf>;
}

/// A run that is not over.
#[derive(Clone, Copy, Debug)]
pub struct SoFar<'a> {
    /// Time of the run that has passed.
    pub now: Time,
    /// Its share of the run's duration.
    pub share: f64,
    /// The samples of the flows until now.
    pub flows: &'a FlowTrace,
    /// The samples of the links until now.
    pub queues: &'a QueueTrace,
}

/// Lets a run go on to its end, and captures nothing.
pub struct Uncontrolled;

impl Control for Uncontrolled {
    fn goes_on(&self, _: &SoFar<'_>) -> bool {
        true
    }
    fn pcap_file(&self, _: &str) -> Option<PathBuf> {
        None
    }
}
