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

use std::collections::BTreeMap;

use elephan_net::{Delay, Limit, LinkConfig, Loss, Queue};
use elephan_traffic::{Datagrams, Demand, Distribution, Pattern, Sizes, Web};
use elephan_units::{Rate, Time};

use crate::error::{Error, Mistake};
use crate::file::{Engine, Scenario};
use crate::plan::{Flow, Members, Plan};

/// The most events: three hours of a core at 100 ns each. Who means more than that can say so.
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
/// Timeouts in a row after which a connection is given up.
const TRIES: f64 = 16.0;
/// The largest window that TCP can express, bytes (RFC 7323, section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;
/// The smallest packets of a transfer in one direction, bytes: SYN, ACK, FIN.
const SMALLEST_TRANSFER: f64 = 120.0;
/// Reports of progress and the ends of the measuring window.
const REPORTS: f64 = 110.0;
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
/// Bytes of a row in any table, in a column that has grown to twice what it holds.
const ROW_BYTES: f64 = 200.0;
/// Bytes of a flow's rate sample, while the summary is made.
const RATE_SAMPLE_BYTES: f64 = 16.0;
/// Bytes of a packet in a queue, and of a segment on a scoreboard, in rings that have grown to twice what they hold.
const PACKET_BYTES: f64 = 200.0;
const SEGMENT_BYTES: f64 = 160.0;
/// Bytes of a queue of fair queueing.
const QUEUE_BYTES: f64 = 120.0;

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

/// A table of the file, whose members are alike: flows, users of crowds, or arrivals.
struct Table<'p> {
    key: String,
    /// The first member; the others differ in links of their own at most.
    flow: &'p Flow,
    /// The link that is the narrowest for it, where one has a rate; and how many links like it the members have.
    narrowest: Option<usize>,
    narrow: f64,
    /// Connections that there may be at a time, and in all.
    slots: f64,
    connections: f64,
    /// Data segments that it may deliver by itself, and which key allows that.
    segments: f64,
    segments_key: String,
    /// Segments outstanding at a time, by windows and sizes.
    outstanding: f64,
    /// Timeouts.
    timeouts: f64,
    /// Segments of a connection's first window.
    first: f64,
    /// Events of a data segment, of a connection besides its data, and of a timeout.
    costs: [f64; 3],
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
        let mut rates: Vec<_> = configs().map(|config| (rate(config.rate), None)).collect();
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
            if let Some(new) = change.delay {
                let more = longest(&plan.links[link].config);
                delays[link].0 = delays[link].0.min(new.secs_f64());
                delays[link].1 = delays[link].1.max(new.secs_f64() + more);
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
            seconds: plan.duration.secs_f64(),
            events: Parts::default(),
            rows: Parts::default(),
            bytes: scenario.members_bytes(),
        }
    }

    fn estimate(mut self) -> Estimate {
        match self.scenario.engine {
            Engine::Sim => {
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

    // ---- Flows ----

    /// Every table of flows, web users and arrivals.
    fn tables_of_flows(&self) -> Vec<Table<'p>> {
        // The first and the last member of each table, how many there are, and what each member is.
        let mut tables = Vec::new();
        let mut first = 0;
        for (number, file) in self.scenario.flow.iter().enumerate() {
            let count = file.count as usize;
            if let Some(members) =
                self.plan.flows.get(first..first + count).filter(|members| !members.is_empty())
            {
                let ends = [&members[0], &members[count - 1]];
                tables.push((format!("flow.{number}"), ends, count as f64, None));
            }
            first += count;
        }
        first = 0;
        for (key, file) in self.scenario.crowd_files() {
            let count = file.common().count as usize;
            if let Some(members) =
                self.plan.crowds.get(first..first + count).filter(|members| !members.is_empty())
            {
                let ends = [&members[0].flow, &members[count - 1].flow];
                tables.push((key, ends, count as f64, Some(&members[0].members)));
            }
            first += count;
        }
        // How many connections at a time cross each link with their data.
        let at_a_time = |members: Option<&Members>| match members {
            Some(Members::Users(users, _)) => *users as f64,
            Some(Members::Arrivals(_)) | None => 1.0,
        };
        let mut crossings = vec![0.0; self.plan.links.len()];
        for (_, [one, other], count, members) in &tables {
            for (&link, &last) in self.route(one.forward).iter().zip(self.route(other.forward)) {
                crossings[link as usize] += at_a_time(*members) * if link == last { *count } else { 1.0 };
            }
        }
        tables
            .into_iter()
            .map(|(key, [one, other], count, members)| {
                let route = self.route(one.forward);
                let share = |&at: &usize| self.rates[route[at] as usize].0 / crossings[route[at] as usize];
                let narrowest = (0..route.len())
                    .filter(|at| share(at).is_finite())
                    .min_by(|a, b| share(a).total_cmp(&share(b)));
                let shared = |at: usize| route[at] == self.route(other.forward)[at];
                let narrow = narrowest.map_or(1.0, |at| if shared(at) { 1.0 } else { count });
                let (before, after) = route.split_at(narrowest.unwrap_or(0));
                let hops = [before, after, self.route(one.reverse)].map(|links| self.visits(links));
                let link = narrowest.map(|at| route[at] as usize);
                self.table(key, one, (link, narrow, hops), count, members)
            })
            .collect()
    }

    /// Events that a packet makes on some links: one on each, and one where it is held back for a delay of its own.
    fn visits(&self, links: &[u32]) -> f64 {
        let held = |link: u32| {
            let changes =
                self.plan.changes.iter().any(|change| change.link == link && change.delay.is_some());
            changes || self.plan.links[link as usize].config.vary.is_some()
        };
        links.iter().map(|&link| if held(link) { 2.0 } else { 1.0 }).sum()
    }

    fn route(&self, route: u32) -> &'p [u32] {
        &self.plan.routes[route as usize]
    }

    /// The round-trip time without queueing, s, at its shortest.
    fn rtt(&self, flow: &Flow) -> f64 {
        let links = self.route(flow.forward).iter().chain(self.route(flow.reverse));
        links.map(|&link| self.delays[link as usize].0).sum()
    }

    /// What `count` members like `flow` may do.
    fn table(
        &self,
        key: String,
        flow: &'p Flow,
        (narrowest, narrow, hops): (Option<usize>, f64, [f64; 3]),
        count: f64,
        members: Option<&Members>,
    ) -> Table<'p> {
        let (seconds, rtt) = (self.seconds, self.rtt(flow));
        let mss = f64::from(flow.tcp.mss());
        let buffers = [flow.tcp.send_buffer, flow.tcp.receive_buffer].into_iter().flatten();
        let window = buffers.map(elephan_units::Bytes::get).fold(LARGEST_WINDOW, u64::min);
        let window = (window as f64 / mss).ceil() + 1.0;
        let by_window = 2.0 * window * (seconds / rtt + 1.0);
        // Connections of so many slots, each of which opens the next after two round-trip times and a wait.
        let sequential = |slots: f64, wait: f64, smallest: f64| {
            let by_time = slots * occurrences(seconds, 2.0 * rtt + wait);
            let bits = narrowest.map_or(f64::INFINITY, |link| self.rates[link].0 * seconds * narrow);
            by_time.min(bits / (8.0 * (SMALLEST_TRANSFER + smallest)) + 2.0 * slots)
        };
        // Slots, connections, the payload of all, and of those that are open at a time in segments, as far as windows admit them.
        let open =
            |slots: f64, distribution: &Distribution| capped(distribution, slots, window * mss) / mss + slots;
        let (slots, connections, payload, outstanding) = match (flow.demand, members) {
            (Demand::Transfers { size, count: transfers }, _) => {
                let size = size.get() as f64;
                let most = transfers.map_or(f64::INFINITY, |transfers| transfers as f64);
                let connections = (count * most).min(sequential(count, 0.0, size));
                (count, connections, Some(connections * size), count * window.min((size / mss).ceil() + 1.0))
            }
            (_, Some(Members::Users(users, web))) => {
                let slots = count * *users as f64;
                let connections = sequential(slots, waits(web), 0.0);
                (slots, connections, Some(total(&web.size, connections)), open(slots, &web.size))
            }
            (_, Some(Members::Arrivals(arrivals))) => {
                let connections = count * occurrences(seconds, 1.0 / arrivals.per_second);
                let sizes = match &arrivals.sizes {
                    Sizes::Drawn(distribution) => *distribution,
                    Sizes::Listed(list) => {
                        Distribution::Constant(list.iter().copied().max().unwrap_or(0) as f64)
                    }
                };
                (connections, connections, Some(total(&sizes, connections)), open(connections, &sizes))
            }
            (Demand::Unlimited | Demand::Drawn, None) => (count, count, None, count * window),
        };
        let repeats = (1.0 / (1.0 - self.loss(flow))).min(MOST_REPEATS);
        let by_size =
            payload.map_or(f64::INFINITY, |bytes| SENT * repeats * (bytes / mss + 2.0 * connections));
        let by_window = by_window * slots;
        let (segments, segments_key) = if payload.is_some() && by_size <= by_window {
            (by_size, if slots >= 1e3 { self.count_key(&key) } else { format!("{key}.size") })
        } else {
            (by_window, format!("{key}.tcp.receive_buffer"))
        };
        let rto = flow.tcp.rto_min.secs_f64().max(rtt);
        let capacity = narrowest.map_or(f64::INFINITY, |link| self.packets(link, flow) * narrow);
        let delivered = segments.min(capacity);
        let timeouts =
            slots * TRIES + (slots * seconds / rto).min(SENT * delivered) + TRIES * connections.min(slots);
        let [before, after, back] = hops;
        let sent = f64::from(u8::from(flow.tcp.pacing)) + 2.0 * f64::from(u8::from(flow.host.is_some()));
        let ends = 2.0 + 2.0 * f64::from(u8::from(flow.host.is_some()));
        let first = f64::from(flow.tcp.initial_window).min(window);
        let hop_sum = before + after + back + 3.0 + sent;
        let costs = [
            SENT * (before + sent) + after + back + ends,
            OVERHEAD * hop_sum + first * (before + sent).max(1.0),
            hop_sum,
        ];
        Table {
            key,
            flow,
            narrowest,
            narrow,
            slots,
            connections,
            segments,
            segments_key,
            outstanding,
            timeouts,
            first,
            costs,
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

    /// The share of packets that the wires of a flow lose, data and acknowledgments.
    fn loss(&self, flow: &Flow) -> f64 {
        let links = self.route(flow.forward).iter().chain(self.route(flow.reverse));
        let kept = |&link: &u32| {
            let changes = self.plan.changes.iter().filter(|change| change.link == link);
            let losses =
                changes.filter_map(|change| change.loss).chain(self.plan.links[link as usize].config.loss);
            1.0 - losses.map(share_lost).fold(0.0, f64::max)
        };
        1.0 - links.map(kept).product::<f64>()
    }

    /// Full packets of a flow that a link lets through.
    fn packets(&self, link: usize, flow: &Flow) -> f64 {
        self.rates[link].0 * self.seconds / (8.0 * flow.tcp.packet.get() as f64) + 2.0
    }

    /// What flows deliver and send: events, and what is in flight.
    fn deliver(&mut self, tables: &[Table<'_>]) {
        let mut by_link: BTreeMap<Option<usize>, Vec<&Table<'_>>> = BTreeMap::new();
        for table in tables {
            by_link.entry(table.narrowest).or_default().push(table);
        }
        for (link, tables) in by_link {
            let of =
                |value: fn(&Table<'_>) -> f64| tables.iter().map(|table| value(table)).fold(0.0, f64::max);
            let wanted: f64 = tables.iter().map(|table| table.segments).sum();
            let capacity = link.map_or(f64::INFINITY, |link| {
                tables.iter().map(|table| self.packets(link, table.flow) * table.narrow).fold(0.0, f64::max)
            });
            let delivered = wanted.min(capacity);
            let cost = of(|table| table.costs[0]);
            let sum: f64 = tables.iter().map(|table| table.segments * table.costs[0]).sum();
            let widest = tables.iter().max_by(|a, b| a.segments.total_cmp(&b.segments));
            let key = match (link, widest) {
                (Some(link), _) if capacity < wanted => self.rate_key(link),
                (_, Some(table)) => table.segments_key.clone(),
                (_, None) => String::new(),
            };
            self.events.add(key.clone(), sum.min(delivered * cost));
            for table in &tables {
                let key = self.count_key(&table.key);
                self.events.add(key, table.connections * table.costs[1] + table.timeouts * table.costs[2]);
                if table.key.starts_with("arrivals") {
                    self.bytes.add(self.count_key(&table.key), table.slots * FLOW_BYTES);
                }
            }
            let sum_of = |value: fn(&Table<'_>) -> f64| tables.iter().map(|table| value(table)).sum::<f64>();
            let (room, by_windows) = (self.room(link, &tables), sum_of(|table| table.outstanding));
            let by_time = 2.0 * delivered + sum_of(|table| table.first * table.connections);
            let by_room = SENT * room + sum_of(|table| table.first * table.slots);
            let outstanding = by_windows.min(by_time).min(by_room);
            let queued = outstanding.min(room);
            self.bytes.add(key, outstanding * SEGMENT_BYTES + 2.0 * queued * PACKET_BYTES);
            if self.plan.trace.events {
                // A segment of the first window may be sent and dropped, whatever the links let through.
                let own = |table: &Table<'_>| {
                    table.connections * (3.0 * OVERHEAD + 2.0 * table.first + 6.0) + 5.0 * table.timeouts
                };
                self.rows.add("trace.events", delivered * (2.0 * SENT + 3.0) + sum_of(own));
            }
        }
    }

    /// Full packets that the links of some tables hold: in their queues, and on their wires at the rate of `narrowest`.
    fn room(&self, narrowest: Option<usize>, tables: &[&Table<'_>]) -> f64 {
        let Some(narrowest) = narrowest else { return f64::INFINITY };
        let mut room = 0.0;
        for table in tables {
            let packet = table.flow.tcp.packet.get() as f64;
            for &link in self.route(table.flow.forward).iter().chain(self.route(table.flow.reverse)) {
                let link = link as usize;
                let config = &self.plan.links[link].config;
                let rate = self.rates[link].0.min(self.rates[narrowest].0 * SENT);
                let wire = rate * self.delays[link].1 / (8.0 * packet) + 1.0;
                let queue = match config.limit {
                    _ if config.rate.is_none() => 0.0,
                    Limit::Packets(u64::MAX) => f64::INFINITY,
                    Limit::Packets(packets) => packets as f64,
                    Limit::Bytes(bytes) => bytes as f64 / packet,
                };
                room += wire + queue;
            }
        }
        room
    }

    // ---- Datagrams ----

    /// What streams send.
    fn send(&mut self) {
        let mut first = 0;
        for (key, file) in self.scenario.stream_files() {
            let count = file.common().count as usize;
            let Some(stream) = self.plan.streams.get(first).filter(|_| count > 0) else { continue };
            first += count;
            let Datagrams { rate, packet, burst, pattern } = stream.datagrams;
            let bits = 8.0 * f64::from(packet);
            let by_rate = rate.bits_per_sec() as f64 * self.seconds / bits;
            let packets = by_rate + f64::from(burst) + 1.0;
            let mut left = packets;
            let (mut events, mut held) = (packets, 0.0);
            for &link in self.route(stream.forward) {
                let (link, visits) = (link as usize, self.visits(&[link]));
                let (through, config) = (self.rates[link].0, &self.plan.links[link].config);
                let wire = rate.bits_per_sec() as f64 * self.delays[link].1 / bits + f64::from(burst);
                let queue = match config.limit {
                    _ if config.rate.is_none() => 0.0,
                    Limit::Packets(limit) => (limit as f64).min(left),
                    Limit::Bytes(limit) => (limit as f64 * 8.0 / bits).min(left),
                };
                held += (wire + queue).min(left);
                left = left.min(through * self.seconds / bits + 1.0);
                events += left * visits;
            }
            let count = count as f64;
            let causes = if f64::from(burst) > by_rate { "burst" } else { "rate" };
            self.events.add(format!("{key}.{causes}"), count * events);
            self.bytes.add(format!("{key}.{causes}"), count * held * PACKET_BYTES);
            if let Pattern::OnOff { on, off } = pattern {
                let periods = occurrences(self.seconds, least(&on) + least(&off));
                self.events.add(format!("{key}.on"), count * periods);
            }
            if self.plan.trace.events {
                self.rows.add("trace.events", count * 3.0 * packets);
            }
        }
    }

    // ---- Links ----

    /// What queue disciplines do besides, and what they and links hold.
    fn queues(&mut self) {
        let named = if self.tables.is_empty() { 2 } else { self.plan.links.len() };
        for (number, link) in self.plan.links.iter().enumerate().take(named) {
            let key = self.link_key(number);
            let size = if link.config.rate.is_some() { LINK_BYTES.1 } else { LINK_BYTES.0 };
            self.bytes.add(key.clone(), size);
            self.queue(&link.config.queue, &format!("{key}.queue"), self.rates[number].0);
        }
        // A link for each round-trip time of its own; those of hosts were counted with them.
        let others = self.plan.links.len() - named.min(self.plan.links.len());
        self.bytes.add("path", others as f64 * LINK_BYTES.0);
    }

    fn queue(&mut self, queue: &Queue, key: &str, rate: f64) {
        let turns = |quantum: u32| rate * self.seconds / 8.0 / f64::from(quantum);
        let classes = match queue {
            Queue::Pie(pie) => {
                self.events.add(format!("{key}.t_update"), self.seconds / pie.t_update.secs_f64());
                return;
            }
            Queue::FqCodel(fq) => {
                self.events.add(format!("{key}.quantum"), turns(fq.quantum));
                self.bytes.add(format!("{key}.flows"), f64::from(fq.flows) * QUEUE_BYTES);
                return;
            }
            Queue::Drr(drr) => {
                self.events.add(format!("{key}.quantum"), turns(drr.quantum));
                self.bytes.add(format!("{key}.flows"), f64::from(drr.flows) * QUEUE_BYTES);
                &drr.class
            }
            Queue::Wrr(wrr) => &wrr.class,
            Queue::Priority(priority) => &priority.class,
            _ => return,
        };
        for (number, class) in classes.iter().enumerate() {
            self.queue(&class.queue, &format!("{key}.class.{number}.queue"), rate);
        }
    }

    // ---- Rows ----

    /// Rows of transfers.
    fn transfers(&mut self, tables: &[Table<'_>]) {
        for table in tables.iter().filter(|table| table.flow.demand != Demand::Unlimited) {
            if self.plan.trace.transfers {
                self.rows.add(self.count_key(&table.key), table.connections);
                self.bytes.add(self.count_key(&table.key), table.connections * ROW_BYTES);
            }
        }
    }

    /// Samples: rows of flows, crowds, streams and links, and rates for the metrics.
    fn sample(&mut self) {
        let plan = self.plan;
        let times = (plan.duration.picos() / plan.trace.interval.picos()) as f64 + 1.0;
        let measured = (plan.measure.to.picos() / plan.measure.interval.picos()) as f64 + 2.0;
        let flows = match self.scenario.engine {
            Engine::Model => self.classes(),
            Engine::Sim | Engine::Linux => plan.flows.len() as f64,
        };
        let links = plan.links.iter().filter(|link| link.config.rate.is_some()).count() as f64;
        let members = flows + plan.crowds.len() as f64 + plan.streams.len() as f64;
        let rows = times * (members + links);
        let users = |crowd: &crate::plan::Crowd| match crowd.members {
            Members::Users(users, _) => users as f64,
            Members::Arrivals(_) => 1.0,
        };
        let looked_at = times * plan.crowds.iter().map(users).sum::<f64>();
        let many = self.largest_table();
        let key = if members + links > times { many.as_str() } else { "trace.interval" };
        self.rows.add(key, rows);
        self.bytes.add(key, rows * ROW_BYTES);
        self.events.add(key, times + rows + looked_at);
        let key = if flows > measured { many.as_str() } else { "measure.interval" };
        self.events.add(key, measured * (1.0 + flows));
        self.bytes.add(key, measured * flows * RATE_SAMPLE_BYTES);
        if let Some(traced) = self.rows.0.get("trace.events") {
            self.bytes.add("trace.events", traced * ROW_BYTES);
        }
        self.events.add("event", plan.changes.len() as f64);
        self.events.add("duration", REPORTS);
    }

    /// Flows that the fluid model shows: all, or where they are too many, a class of those that start at about the same time.
    fn classes(&self) -> f64 {
        let flows = self.plan.flows.len();
        let starts = self.seconds / SAME_START_S + 1.0;
        let classes = self.scenario.flow.iter().map(|flow| (flow.count as f64).min(starts)).sum();
        if flows > MOST_MODELLED { classes } else { flows as f64 }
    }

    /// The key of the table with the most members.
    fn largest_table(&self) -> String {
        let flows = self.scenario.flow.iter().enumerate().map(|(n, flow)| (flow.count, format!("flow.{n}")));
        let crowds = self.scenario.crowd_files().map(|(key, file)| (file.common().count, key));
        let streams = self.scenario.stream_files().map(|(key, file)| (file.common().count, key));
        let all = flows.chain(crowds).chain(streams);
        all.max_by_key(|(count, _)| *count).map_or_else(String::new, |(_, key)| format!("{key}.count"))
    }
}

// ---- Random quantities ----

/// How often something happens in `seconds` that takes `each` on average: with six standard deviations of a Poisson process.
fn occurrences(seconds: f64, each: f64) -> f64 {
    let mean = seconds / each;
    mean + 6.0 * mean.sqrt() + 20.0
}

/// What a quantity is at least in the long run: its mean, or where that is made of rare large values, its smallest.
fn least(distribution: &Distribution) -> f64 {
    match *distribution {
        Distribution::Pareto { minimum, .. } => minimum,
        ref other => other.mean(),
    }
}

/// What web users wait at least between two transfers, s.
fn waits(web: &Web) -> f64 {
    match web.objects {
        Distribution::Constant(one) if one <= 1.0 => least(&web.think),
        _ => least(&web.think).min(least(&web.between)),
    }
}

/// What `count` draws add up to; a heavy tail with one value that is the largest of a thousand million times as many.
fn total(distribution: &Distribution, count: f64) -> f64 {
    match *distribution {
        Distribution::Constant(value) | Distribution::Uniform(_, value) => value * count,
        Distribution::Exponential(mean) => mean * (count + 8.0 * count.sqrt() + 40.0),
        Distribution::Pareto { minimum, shape } => {
            let largest = minimum * (1e9 * count).powf(1.0 / shape);
            let mean = distribution.mean();
            if mean.is_finite() { 2.0 * count * mean + largest } else { count * largest }
        }
    }
}

/// What `count` draws that are cut at `most` add up to, with one in a thousand that it is more (Bernstein's inequality).
fn capped(distribution: &Distribution, count: f64, most: f64) -> f64 {
    let mean = match *distribution {
        Distribution::Pareto { minimum, shape } if minimum < most => {
            // The integral of the probability that a draw is larger.
            let tail = if shape == 1.0 {
                (most / minimum).ln()
            } else {
                (1.0 - (minimum / most).powf(shape - 1.0)) / (shape - 1.0)
            };
            minimum * (1.0 + tail)
        }
        ref other => other.mean().min(most),
    };
    (mean * count + (14.0 * mean * count * most).sqrt() + 5.0 * most).min(count * most)
}

/// The share of packets that a wire loses in the long run.
fn share_lost(loss: Loss) -> f64 {
    match loss {
        Loss::Random { probability } => probability,
        Loss::Periodic { every } => 1.0 / every as f64,
        Loss::GilbertElliott { p, r, loss_bad, loss_good } if p + r > 0.0 => {
            (p * loss_bad + r * loss_good) / (p + r)
        }
        Loss::GilbertElliott { loss_good, .. } => loss_good,
    }
}
