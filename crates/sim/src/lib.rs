//! The simulator: carries out a plan in virtual time.
//!
//! [`run`] carries out a [`Plan`] and returns an [`Outcome`]: the summary, and columns of samples. Nothing
//! here reads a real clock: the same plan gives the same outcome, to the bit.
//!
//! A run consists of a `State`, which an `Engine` advances from event to event, and an `Observer`, to which
//! the engine reports what it does; the observer `Record` makes the outcome.

mod check;
mod detail;
mod engine;
mod error;
mod packet;
mod partition;
mod record;
mod report;
mod state;

use std::borrow::Borrow;

use elephan_metrics::{Control, Outcome};
use elephan_scenario::Plan;
use rayon::prelude::*;

pub use crate::check::check;
use crate::detail::Detail;
use crate::engine::Engine;
pub use crate::error::Error;
use crate::partition::{Partition, is_detailed};
use crate::record::Record;
use crate::state::State;

/// Carries out a plan.
pub fn run(plan: &Plan, control: &dyn Control) -> Result<Outcome, Error> {
    run_on(plan, control, 1)
}

/// Carries out a plan on this number of threads (0: one for each core), as far as its sites can advance at the
/// same time and have enough to do for it. The outcome is the same for any number.
///
/// # Panics
/// If the operating system does not provide this number of threads.
pub fn run_on(plan: &Plan, control: &dyn Control, threads: usize) -> Result<Outcome, Error> {
    run_in(plan, control, Partition::of(plan), threads)
}

/// Carries out a plan as one site: event by event, in the order of time. The outcome equals that of [`run`], which
/// tests compare with it.
pub fn run_as_one_site(plan: &Plan, control: &dyn Control) -> Result<Outcome, Error> {
    run_in(plan, control, Partition::whole(plan), 1)
}

fn run_in(
    plan: &Plan,
    control: &dyn Control,
    partition: Partition,
    threads: usize,
) -> Result<Outcome, Error> {
    let carry_out = if is_detailed(plan) { carry_out::<true> } else { carry_out::<false> };
    let several = partition.groups.iter().any(|group| group.len() > 1);
    let outcome = if threads == 1 || !several {
        carry_out(plan, control, partition, false)?
    } else {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| carry_out(plan, control, partition, true))?
    };
    debug_assert_eq!(check(plan, &outcome), Ok(()));
    Ok(outcome)
}

fn carry_out<const DETAILED: bool>(
    plan: &Plan,
    control: &dyn Control,
    partition: Partition,
    on_threads: bool,
) -> Result<Outcome, Error> {
    let mut state = State::new(plan, &partition, control, DETAILED);
    if DETAILED {
        state.sites[0].detail = Some(Detail::new(plan, control)?);
    }
    let record = Record::new(control, &mut state);
    let (state, record) = Engine::<DETAILED>::new(state, record, partition, on_threads).run()?;
    record.finish(state)
}

/// Carries out plans on `threads` threads (0: one for each core), each with a control of its own. Outcomes
/// come in the order of the plans, and equal the outcome of [`run`] for each plan alone.
///
/// # Panics
/// If the operating system does not provide this number of threads.
pub fn run_many<P: Borrow<Plan> + Sync, C: Control>(
    plans: &[P],
    threads: usize,
    control: impl Fn(usize) -> C + Sync,
) -> Vec<Result<Outcome, Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        plans
            .par_iter()
            .enumerate()
            .with_max_len(1)
            .map(|(i, plan)| run(plan.borrow(), &control(i)))
            .collect()
    })
}
