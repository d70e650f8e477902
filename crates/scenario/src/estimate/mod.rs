//! What it takes to run a scenario: upper bounds of its events, its rows and its memory, known before anything is run.
//!
//! A bound adds up parts. Each part has the key that causes it, so that a refusal can name the key to change. The rules, for a
//! duration `T`:
//!
//! - **Data segments.** A flow delivers no more than its window (at most 1 GiB, what TCP can express) twice in each round-trip time without
//!   queueing, no more than its transfers hold, and all flows together no more than the links let through: of each route that link
//!   counts whose rate over the number of its flows is the smallest. A lossy wire repeats the segments of a transfer up to
//!   [`MOST_REPEATS`] times.
//! - **Events of a segment.** One on each link of its route and one on each link of its acknowledgment's, and one for a timer at each end.
//!   Before the slowest link it may have been sent [`SENT`] times. A host and pacing add one for each that is sent.
//! - **Connections.** Transfers that follow each other take two round-trip times each, web users think meanwhile, and arrivals are
//!   counted with six standard deviations. A connection has its handshake, its end and its first window besides.
//! - **Timeouts.** One for each retransmission timeout that fits into `T`.
//! - **Datagrams.** What the rate sends in `T`, and a burst; on-off sources as if always on, and one for each of their periods.
//! - **Samples.** One event for each time of a sample, and one for each flow, user and link that is looked at.
//! - **Queues.** PIE's updates, and the turns of round robin: bytes over the quantum.
//!
//! Memory is that of rows, connections, links, and the packets and segments that windows, buffers and delays allow at a time.

mod links;
mod packets;
mod random;
mod rows;
mod tables;

use std::collections::BTreeMap;

use elephan_net::{Delay, LinkConfig};
use elephan_units::{Rate, Time};

use crate::error::{Error, Mistake};
use crate::file::{Engine, Scenario};
use crate::plan::Plan;

/// The most events: three hours of a core at 100 ns each. `--large` allows more.
pub const MOST_EVENTS: f64 = 1e11;
/// The most rows of all tables together: ten gigabytes in memory, and minutes to read again.
pub const MOST_ROWS: f64 = 1e8;
/// The most memory, bytes: what a workstation has.
pub const MOST_BYTES: f64 = 32e9;
/// The most runs of a sweep: its points are checked one by one when it is loaded, some thousands in a second.
pub const MOST_RUNS: f64 = 1e6;

/// How often a segment is sent at most for once that it is delivered, over a run: slow start sends two for one.
const SENT: f64 = 4.0;
/// How often a lossy wire repeats a segment at most: beyond, timeouts back off and the connection ends.
const MOST_REPEATS: f64 = 64.0;
/// Packets of a connection that are no full data segments: handshake, last segment, FINs and their ACKs.
const OVERHEAD: f64 = 12.0;
/// The fluid model shows so many flows one by one, and of more those together that start within so many seconds.
pub const MOST_MODELLED: usize = 1000;
/// See [`MOST_MODELLED`].
pub const SAME_START_S: f64 = 5.0;
/// A step of the fluid model's integration takes as long as so many events of the simulator.
const EVENTS_OF_A_STEP: f64 = 1e4;

/// Bytes of a flow or user: its connection, its plan and its metrics.
const FLOW_BYTES: f64 = 4000.0;
/// Bytes of a crowd or a stream, whose delays are kept in histograms.
const HISTOGRAM_BYTES: f64 = 50_000.0;
/// Bytes of a link without a rate, and with one, whose queueing delays are kept in a histogram.
const LINK_BYTES: (f64, f64) = (1000.0, 20_000.0);

/// An upper bound, and what contributes most to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The bound; infinite where there is none.
    pub amount: f64,
    /// The key of the scenario that contributes most.
    pub key: String,
}

/// What it takes to run a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Events of the simulator, and what they look at: about 100 ns each. Of the other engines, what takes as long.
    pub events: Bound,
    /// Rows of all tables.
    pub rows: Bound,
    /// Memory, bytes.
    pub bytes: Bound,
}

impl Estimate {
    /// The larger bound of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        let larger = |a: Bound, b: Bound| if b.amount > a.amount { b } else { a };
        Self {
            events: larger(self.events, other.events),
            rows: larger(self.rows, other.rows),
            bytes: larger(self.bytes, other.bytes),
        }
    }

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
    /// Holds the scenario, which has no sweep, against the limits, unless it may be `large`; `file` is what errors call it.
    pub fn check(&self, file: &str, large: bool) -> Result<Estimate, Error> {
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
        let estimate = self.estimate(&self.resolve(file)?);
        if !large {
            refuse(estimate.mistakes())?;
        }
        Ok(estimate)
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

    /// What it takes to run `plan`, which is what this scenario resolves to.
    pub fn estimate(&self, plan: &Plan) -> Estimate {
        Estimator::new(self, plan).estimate()
    }
}

struct Estimator<'p> {
    scenario: &'p Scenario,
    plan: &'p Plan,
    /// Of each link the highest rate that it has in the run, bit/s, infinite where it has none, and which change brings it.
    rates: Vec<(f64, Option<usize>)>,
    /// Of each link its shortest and its longest delay, s.
    delays: Vec<(f64, f64)>,
    /// Of the links of a file, the number of the table.
    tables: Vec<usize>,
    seconds: f64,
    events: Parts,
    rows: Parts,
    bytes: Parts,
}

impl<'p> Estimator<'p> {
    fn new(scenario: &'p Scenario, plan: &'p Plan) -> Self {
        let rate = |rate: Option<Rate>| rate.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64);
        let longest = |config: &LinkConfig| match config.vary {
            Some(Delay::Jitter { max: extra } | Delay::Reorder { extra, .. }) => extra.secs_f64(),
            None => 0.0,
        };
        let configs = || plan.links.iter().map(|link| &link.config);
        let seconds = plan.duration.secs_f64();
        // What a schedule lets through in the run is known.
        let mean = |config: &LinkConfig| {
            config.schedule.as_ref().map(|schedule| schedule.allowed(plan.duration) as f64 * 1e-12 / seconds)
        };
        let mut rates: Vec<_> =
            configs().map(|config| (mean(config).unwrap_or_else(|| rate(config.rate)), None)).collect();
        let mut delays: Vec<_> = configs()
            .map(|config| (config.delay.secs_f64(), config.delay.secs_f64() + longest(config)))
            .collect();
        for change in &plan.changes {
            let link = change.link as usize;
            if let Some(new) = change.rate.filter(|new| new.bits_per_sec() as f64 > rates[link].0) {
                let event =
                    scenario.event.iter().position(|event| event.rate == Some(new) && event.at == change.at);
                rates[link] = (rate(Some(new)), event);
            }
        }
        for ((number, link), (least, most)) in (0u32..).zip(&plan.links).zip(&mut delays) {
            let more = longest(&link.config);
            for new in plan.new_delays(number) {
                *least = least.min(new.secs_f64());
                *most = most.max(new.secs_f64() + more);
            }
        }
        let both = |(number, link): (usize, &crate::file::LinkFile)| {
            std::iter::repeat_n(number, if link.both_ways { 2 } else { 1 })
        };
        Self {
            scenario,
            plan,
            rates,
            delays,
            tables: scenario.link.iter().enumerate().flat_map(both).collect(),
            seconds,
            events: Parts::default(),
            rows: Parts::default(),
            bytes: scenario.members_bytes(),
        }
    }

    fn estimate(mut self) -> Estimate {
        match self.scenario.engine {
            Engine::Sim | Engine::Kernel => {
                let tables = self.tables_of_flows();
                self.deliver(&tables);
                self.send();
                self.queues();
                self.transfers(&tables);
            }
            Engine::Model => {
                // Each step is no longer than the shortest round-trip time.
                let rtt = self.plan.flows.iter().map(|flow| flow.rtt).min().unwrap_or(Time::MAX);
                self.events.add("path.rtt", EVENTS_OF_A_STEP * self.seconds / rtt.secs_f64());
            }
            // Real time bounds it.
            Engine::Linux => {}
        }
        self.sample();
        Estimate { events: self.events.bound(), rows: self.rows.bound(), bytes: self.bytes.bound() }
    }
    // ---- Keys ----

    /// The table of a link, and whether it is the reverse of that.
    fn link_key(&self, link: usize) -> String {
        match self.tables.get(link) {
            Some(number) => format!("link.{number}"),
            None if link == 1 => "path.reverse".to_owned(),
            None => "path".to_owned(),
        }
    }

    fn rate_key(&self, link: usize) -> String {
        if let (_, Some(event)) = self.rates[link] {
            return format!("event.{event}.rate");
        }
        let reverse = self.scenario.path.as_ref().is_some_and(|path| path.reverse.rate.is_some());
        match link {
            _ if !self.tables.is_empty() => format!("{}.rate", self.link_key(link)),
            1 if reverse => "path.reverse.rate".to_owned(),
            0 | 1 => "path.rate".to_owned(),
            _ => "path.access_rate".to_owned(),
        }
    }

    /// The key that says how many connections a table has.
    fn count_key(&self, key: &str) -> String {
        let (kind, number) = key.split_once('.').unwrap_or_default();
        let number: usize = number.parse().unwrap_or_default();
        let name = match kind {
            "web" if self.scenario.web[number].users >= self.scenario.web[number].count => "users",
            "arrivals" if self.scenario.arrivals[number].per_second.is_some() => "per_second",
            "arrivals" => "load",
            "flow" if self.scenario.flow[number].transfers.is_some() => "transfers",
            _ => "count",
        };
        format!("{key}.{name}")
    }
}
