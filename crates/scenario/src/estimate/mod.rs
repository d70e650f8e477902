//! What it takes to run a scenario: its events, its rows and its memory, estimated from above before anything is run.
//!
//! Each is a sum of parts, and each part has the key that causes it, which a refusal names. Events are packets by hops: a segment
//! takes one on each link of its route and of its acknowledgment's, and one for a timer at each end. Flows deliver no more than the
//! narrowest link of their route lets through, their window twice in each round-trip time, or their sizes. Datagrams follow from
//! their rate. Timers, samples and the work of queue disciplines come besides. Memory is that of rows, connections, links, and of the
//! packets that windows, buffers and delays allow at a time.
//!
//! A run that is beyond [`Bound::most`] nevertheless, because of rare draws or many repeats, is ended by its engine.

pub(crate) mod bound;
mod rules;

use std::collections::BTreeMap;

pub use bound::{Bound, Estimate, TIMES};
pub(crate) use rules::Estimator;

use crate::error::{Error, Mistake};
use crate::file::Scenario;
use crate::plan::Plan;

/// The most events: three hours of a core at 100 ns each. `--large` allows more.
pub const MOST_EVENTS: f64 = 1e11;
/// The most rows of all tables together: ten gigabytes in memory, and minutes to read again.
pub const MOST_ROWS: f64 = 1e8;
/// The most memory, bytes: what a workstation has.
pub const MOST_BYTES: f64 = 32e9;
/// The most runs of a sweep: its points are checked one by one when it is loaded, some thousands in a second.
pub const MOST_RUNS: f64 = 1e6;

/// The fluid model shows so many flows one by one, and of more those together that start within so many seconds.
pub(crate) const MOST_MODELLED: usize = 1000;
/// See [`MOST_MODELLED`].
pub(crate) const SAME_START_S: f64 = 5.0;

/// Bytes of a flow or user: its connection, its plan and its metrics.
const FLOW_BYTES: f64 = 4000.0;
/// Bytes of a crowd or a stream, whose delays are kept in histograms.
const HISTOGRAM_BYTES: f64 = 50_000.0;
/// Bytes of a link without a rate, and with one, whose queueing delays are kept in a histogram.
const LINK_BYTES: (f64, f64) = (1000.0, 20_000.0);

impl Estimate {
    /// What is beyond the limits.
    fn mistakes(&self) -> Vec<Mistake> {
        [
            (&self.events, MOST_EVENTS, "events"),
            (&self.rows, MOST_ROWS, "rows of samples"),
            (&self.bytes, MOST_BYTES, "bytes of memory"),
        ]
        .into_iter()
        .filter(|(bound, most, _)| bound.amount > *most)
        .map(|(bound, most, what)| beyond(&bound.key, most, what, bound.amount))
        .collect()
    }
}

fn beyond(key: &str, most: f64, what: &str, found: f64) -> Mistake {
    let expected = format!("at most {most:e} {what} (--large allows more)");
    if found.is_infinite() {
        return Mistake::new(key, expected, "no bound");
    }
    Mistake::new(key, expected, format_args!("up to {found:.1e}"))
}

/// Refuses a sweep of too many runs.
pub(crate) fn check_runs(points: usize, repeats: u64) -> Option<Mistake> {
    let runs = points as f64 * repeats as f64;
    let key = if repeats > points as u64 { "sweep.repeat" } else { "sweep" };
    (runs > MOST_RUNS).then(|| beyond(key, MOST_RUNS, "runs", runs))
}

/// Amounts by the key that causes them.
#[derive(Default)]
struct Parts(BTreeMap<String, f64>);

impl Parts {
    fn add(&mut self, key: impl Into<String>, amount: f64) {
        // What there is none of takes nothing, however much each would take.
        let amount = if amount.is_nan() { 0.0 } else { amount };
        *self.0.entry(key.into()).or_default() += amount;
    }

    fn bound(&self) -> Bound {
        let most = self.0.iter().fold(("duration", 0.0), |most, (key, &amount)| {
            if amount > most.1 { (key.as_str(), amount) } else { most }
        });
        Bound { amount: self.0.values().sum(), key: most.0.to_owned() }
    }
}

impl Scenario {
    /// Resolves the scenario, which has no sweep, and checks it against the limits, unless it may be `large`; `file` is what errors
    /// call it.
    pub fn check(&self, file: &str, large: bool) -> Result<Plan, Error> {
        let refuse = |mistakes: Vec<Mistake>| match mistakes.as_slice() {
            [] => Ok(()),
            _ => Err(Error { file: file.to_owned(), mistakes }),
        };
        if !large {
            // Before the members are made, which itself takes memory.
            let bytes = self.members_bytes().bound();
            let found = (bytes.amount > MOST_BYTES)
                .then(|| beyond(&bytes.key, MOST_BYTES, "bytes of memory", bytes.amount));
            refuse(found.into_iter().collect())?;
        }
        let plan = self.resolve(file)?;
        if !large {
            refuse(plan.estimate.mistakes())?;
        }
        Ok(plan)
    }

    /// Memory that flows, users, crowds, streams, and the links of their hosts take, whatever they do.
    fn members_bytes(&self) -> Parts {
        let mut parts = Parts::default();
        let has_hosts = self.path.as_ref().is_some_and(|path| path.access_rate.is_some());
        let hosts = if has_hosts { 4.0 * LINK_BYTES.1 } else { 0.0 };
        for (number, flow) in self.flow.iter().enumerate() {
            parts.add(format!("flow.{number}.count"), flow.count as f64 * (FLOW_BYTES + hosts));
        }
        for (key, file) in self.crowd_files() {
            let crowds = file.common().count as f64;
            parts.add(format!("{key}.count"), crowds * (2.0 * HISTOGRAM_BYTES + hosts));
            if let Some(users) = file.users() {
                parts.add(format!("{key}.users"), crowds * users as f64 * FLOW_BYTES);
            }
        }
        for (key, file) in self.stream_files() {
            parts.add(format!("{key}.count"), file.common().count as f64 * (HISTOGRAM_BYTES + hosts));
        }
        parts
    }
}
