//! The simulator: a plan in virtual time.
//!
//! [`run`] carries out a [`Plan`] and returns an [`Outcome`]: the summary, and columns of samples. Nothing here reads a
//! clock: one plan gives one outcome, to the bit.
//!
//! A run is a `State`, which an `Engine` moves on from event to event, and an `Observer`, which the engine tells of what it does;
//! a `Record` is the one that makes the outcome.

mod check;
mod engine;
mod error;
mod observer;
mod packet;
mod record;
mod state;

use elephan_metrics::{Control, Outcome};
use elephan_scenario::Plan;
use rayon::prelude::*;

pub use crate::check::check;
use crate::engine::Engine;
pub use crate::error::Error;
use crate::record::Record;
use crate::state::State;

/// Carries out a plan.
pub fn run(plan: &Plan, control: &dyn Control) -> Result<Outcome, Error> {
    let outcome = if plan.trace.events || !plan.trace.pcap.is_empty() {
        carry_out::<true>(plan, control)?
    } else {
        carry_out::<false>(plan, control)?
    };
    debug_assert_eq!(check(plan, &outcome), Ok(()));
    Ok(outcome)
}

fn carry_out<const DETAILED: bool>(plan: &Plan, control: &dyn Control) -> Result<Outcome, Error> {
    let mut state = State::new(plan, DETAILED);
    let record = Record::<DETAILED>::new(control, &mut state)?;
    let (state, record) = Engine::new(state, record).run()?;
    record.finish(state)
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
