//! The event engine: virtual time, topology, wiring, tracing.
//!
//! [`run`] carries out a [`Plan`] and returns an [`Outcome`]: the summary, and columns of samples. Nothing here reads a
//! clock: one plan gives one outcome, to the bit.

mod check;
mod connection;
mod crowd;
mod engine;
mod events;
mod host;
pub mod links;
mod observe;
mod packet;
mod pcap;
mod standstill;
mod stream;

use std::fmt;
use std::path::PathBuf;

use elephan_metrics::Outcome;
use elephan_metrics::trace::{FlowTrace, QueueTrace};
use elephan_scenario::Plan;
use elephan_units::Time;
use rayon::prelude::*;

pub use crate::check::check;
use crate::engine::Engine;
use crate::observe::Record;
use crate::standstill::STANDSTILL;

/// What a caller may do while a run goes on.
pub trait Control {
    /// How much simulated time passes between two calls of [`Control::goes_on`], in a run of this duration.
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
    /// Simulated time that has passed.
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

/// Why a run did not end.
#[derive(Debug)]
pub enum Error {
    /// It was cancelled.
    Cancelled,
    /// A capture could not be written.
    Pcap(PathBuf, std::io::Error),
    /// Simulated time stands still: a hundred million events and packets did not advance it.
    Standstill {
        /// The simulated time.
        at: Time,
        /// Whose events they are.
        who: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the run was cancelled"),
            Self::Pcap(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Standstill { at, who } => write!(
                f,
                "expected simulated time to advance, found it at {at} after {STANDSTILL} events; {who} went on"
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Carries out a plan.
pub fn run(plan: &Plan, control: &dyn Control) -> Result<Outcome, Error> {
    let mut engine = Engine::new(plan);
    let outcome = if plan.trace.events || !plan.trace.pcap.is_empty() {
        let mut record = Record::<true>::new(plan, control, &mut engine)?;
        engine.run(&mut record)?;
        record.finish(&mut engine)?
    } else {
        let mut record = Record::<false>::new(plan, control, &mut engine)?;
        engine.run(&mut record)?;
        record.finish(&mut engine)?
    };
    debug_assert_eq!(check(plan, &outcome), Ok(()));
    Ok(outcome)
}

/// Carries out plans on `threads` threads (0: one for each core), each under a control of its own. Outcomes come in the order of
/// the plans, and are what [`run`] gives for each alone.
///
/// # Panics
/// Where the operating system does not give so many threads.
pub fn run_many<C: Control>(
    plans: &[Plan],
    threads: usize,
    control: impl Fn(usize) -> C + Sync,
) -> Vec<Result<Outcome, Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        plans.par_iter().enumerate().with_max_len(1).map(|(i, plan)| run(plan, &control(i))).collect()
    })
}
