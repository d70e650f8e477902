//! Errors that end a run early.

use std::path::PathBuf;

use elephan_scenario::estimate::TIMES;
use elephan_units::Time;

/// The reason why a run did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// A capture could not be written.
    #[error("{}: {_1}", _0.display())]
    Pcap(PathBuf, std::io::Error),
    /// The congestion control of a flow, which is not one of Elephan's own, failed.
    #[error("flow {} ({name}) at {at}: {text}", flow + 1)]
    Fault {
        /// The flow's number, from 0 on; that of a crowd follows those of the flows. Messages count from 1.
        flow: u32,
        /// The name of the algorithm in the scenario.
        name: &'static str,
        /// The simulated time.
        at: Time,
        /// What was expected, and what was found.
        text: String,
    },
    /// The run takes much more than was estimated when it was loaded.
    #[error(
        "{key}: expected at most {most:.1e} {what}, which is {TIMES} times the estimate, found more at {at}"
    )]
    Beyond {
        /// The key of the scenario that contributes most to the estimate.
        key: String,
        /// The number at which the run is ended.
        most: f64,
        /// What there are too many of.
        what: &'static str,
        /// The simulated time.
        at: Time,
    },
    /// Simulated time does not advance: this number of events and packets did not change it.
    #[error("expected simulated time to advance, found it at {at} after {steps} events; source: {who}")]
    Standstill {
        /// The simulated time.
        at: Time,
        /// Events and packets at that time.
        steps: u64,
        /// The sources of these events.
        who: String,
    },
}
