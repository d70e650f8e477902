//! The rules: what flows, streams, queues and samples add to an estimate.

use std::collections::BTreeMap;

use elephan_cc::{Controller, registry, slow_start};
use elephan_net::{Limit, Queue};
use elephan_tcp::{Config, Misbehave};
use elephan_traffic::{App, Datagrams, Demand, Distribution, KeyFrames, Pace, Pattern, Sessions, Sizes, Web};
use elephan_units::{Bytes, Rate, Time};

use super::{Estimate, FLOW_BYTES, LINK_BYTES, MOST_MODELLED, Parts, SAME_START_S};
use crate::file::{Engine, Scenario};
use crate::plan::{Crowd, Flow, Link, Members, Plan};

/// How often a segment is sent at most for once that it is delivered, over a run: slow start sends two for one.
const SENT: f64 = 4.0;
/// Packets of a connection that are no full data segments: handshake, last segment, FINs and their ACKs.
const OVERHEAD: f64 = 12.0;
/// Timeouts in a row after which a connection is given up.
const TRIES: f64 = 16.0;
/// The largest window that TCP can express, bytes (RFC 7323, section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;
/// The smallest packets of a transfer in one direction, bytes: SYN, ACK, FIN.
const SMALLEST_TRANSFER: f64 = 120.0;
/// A step of the fluid model's integration takes as long as so many events of the simulator.
const EVENTS_OF_A_STEP: f64 = 1e4;
/// How often in a round-trip time a discrete variable of an algorithm changes: a state, and whether the application is the limit.
const CHANGES: f64 = 2.0;
/// Reports of progress and the ends of the measuring window.
const REPORTS: f64 = 110.0;

/// Bytes of a packet in a queue, and of a segment on a scoreboard, in rings that have grown to twice what they hold.
const PACKET_BYTES: f64 = 200.0;
const SEGMENT_BYTES: f64 = 160.0;
/// Bytes of a queue of fair queueing.
const QUEUE_BYTES: f64 = 120.0;
/// Bytes of a row in any table, in a column that has grown to twice what it holds.
const ROW_BYTES: f64 = 200.0;
/// Bytes of a flow's rate sample, while the summary is made.
const RATE_SAMPLE_BYTES: f64 = 16.0;

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

/// Sizes from which nothing smaller than from a list comes, and nothing larger.
fn bounds(sizes: &Sizes) -> [Distribution; 2] {
    match sizes {
        Sizes::Drawn(distribution) => [*distribution; 2],
        Sizes::Listed(list) => {
            let constant = |size: Option<&u64>| Distribution::Constant(size.copied().unwrap_or(0) as f64);
            [constant(list.iter().min()), constant(list.iter().max())]
        }
    }
}

/// How many sessions there are in `seconds`, and at most how many data units and bytes they have.
fn data_units(sessions: &Sessions, seconds: f64) -> (f64, f64, f64) {
    match sessions {
        Sessions::Listed { vectors, .. } => {
            let units = vectors.iter().map(|vector| vector.units.len()).sum::<usize>() as f64;
            let bytes =
                vectors.iter().map(|vector| vector.bytes().map(|bytes| bytes as f64).iter().sum::<f64>());
            (vectors.len() as f64, units, bytes.sum())
        }
        Sessions::Drawn(drawn) => {
            let sessions = occurrences(seconds, 1.0 / drawn.per_second);
            let epochs = total(&drawn.epochs, sessions, f64::INFINITY) + sessions;
            let bytes = [drawn.request, drawn.response].map(|size| total(&size, epochs, f64::INFINITY));
            (sessions, 2.0 * epochs, bytes[0] + bytes[1])
        }
    }
}

/// How many chunks an application writes in `seconds`, and how many bytes, where an acknowledgment takes `rtt` seconds or more.
fn writes(app: &App, seconds: f64, rtt: f64) -> [f64; 2] {
    let [smallest, largest] = bounds(&app.chunks);
    let key_frames = app.key_frames.as_ref().map(|KeyFrames { size, .. }| bounds(size));
    let each = key_frames.map_or(f64::INFINITY, |[smallest, _]| least(&smallest)).min(least(&smallest));
    let chunks = match app.pace {
        Pace::Rate(rate, _) => occurrences(seconds, 8.0 * each.max(1.0) / rate.bits_per_sec() as f64),
        Pace::PerSecond(chunks, _) => chunks * seconds + 1.0,
        Pace::Pause(pause) => occurrences(seconds, rtt + least(&pause)),
    };
    let key_frame = |count| key_frames.map_or(0.0, |[_, largest]| total(&largest, count, f64::INFINITY));
    let bytes = match app.pace {
        // The last chunk may be beyond the rate.
        Pace::Rate(rate, _) => {
            rate.bits_per_sec() as f64 / 8.0 * seconds + total(&largest, 1.0, f64::INFINITY) + key_frame(1.0)
        }
        Pace::PerSecond(..) | Pace::Pause(_) => total(&largest, chunks, f64::INFINITY) + key_frame(chunks),
    };
    [chunks, bytes]
}

/// What web users wait at least between two transfers, s.
fn waits(web: &Web) -> f64 {
    match web.objects {
        Distribution::Constant(one) if one <= 1.0 => least(&web.think),
        _ => least(&web.think).min(least(&web.between)),
    }
}

/// What `count` draws add up to; a heavy tail with one value that is the largest of a thousand million times as many, but `most`.
fn total(distribution: &Distribution, count: f64, most: f64) -> f64 {
    match *distribution {
        Distribution::Constant(value) | Distribution::Uniform(_, value) => value * count,
        Distribution::Exponential(mean) => mean * (count + 8.0 * count.sqrt() + 40.0),
        Distribution::Pareto { minimum, shape } => {
            let largest = (minimum * (1e9 * count).powf(1.0 / shape)).min(most);
            let mean = distribution.mean();
            if mean.is_finite() { 2.0 * count * mean + largest } else { count * largest }
        }
    }
}

/// A table of the file, whose members are alike: flows, users or arrivals. Its members differ in links of their own at most.
struct Table<'p> {
    key: String,
    count: f64,
    flow: &'p Flow,
    last: &'p Flow,
    members: Option<&'p Members>,
}

/// The tables that have the same narrowest link.
#[derive(Default)]
struct Group {
    /// Data segments that their windows and sizes allow, and the most that one table may, with the key that allows it.
    wanted: f64,
    widest: (f64, String),
    /// Segments that the link lets through.
    capacity: f64,
    /// Events of those segments, and the most for a segment.
    events: f64,
    cost: f64,
    /// Segments outstanding at a time by windows and sizes; and what links hold of them.
    outstanding: f64,
    room: f64,
    /// Segments of first windows: of connections at a time, and of all.
    first: [f64; 2],
    /// ACKs of a segment, at most.
    acks: f64,
    /// Rows of traced events besides those of delivered segments.
    rows: f64,
}

/// What the manners of a stack's ends change.
struct Manners {
    /// ACKs of a segment.
    acks: f64,
    /// Segments that are acknowledged before they have arrived.
    lead: f64,
    /// Whether losses limit what is sent; else nothing but the windows does.
    yields: bool,
}

impl Manners {
    fn of(tcp: &Config) -> Self {
        let Misbehave { ack_division, optimistic_acks, ignore_losses, .. } = tcp.misbehave;
        let yields = optimistic_acks == 0 && !ignore_losses;
        Self { acks: ack_division.into(), lead: optimistic_acks.into(), yields }
    }

    /// A limit of what is sent by what links let through.
    fn bound(&self, limit: f64) -> f64 {
        if self.yields { limit } else { f64::INFINITY }
    }
}

pub(crate) struct Estimator<'p> {
    scenario: &'p Scenario,
    plan: &'p Plan,
    /// Of each link the highest rate that it has in the run, bit/s, infinite where it has none.
    rates: Vec<f64>,
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
    pub(crate) fn new(scenario: &'p Scenario, plan: &'p Plan) -> Self {
        let both = |(number, link): (usize, &crate::file::LinkFile)| {
            std::iter::repeat_n(number, if link.both_ways { 2 } else { 1 })
        };
        let seconds = plan.duration.secs_f64();
        let bits = |rate: Rate| rate.bits_per_sec() as f64;
        // What a schedule lets through in the run is known.
        let rate = |Link { config, .. }: &Link| match &config.schedule {
            Some(schedule) => schedule.allowed(plan.duration) as f64 * 1e-12 / seconds,
            None => config.rate.map_or(f64::INFINITY, bits),
        };
        let mut rates: Vec<f64> = plan.links.iter().map(rate).collect();
        for change in &plan.changes {
            let link = change.link as usize;
            rates[link] = rates[link].max(change.rate.map_or(0.0, bits));
        }
        let delay = |(number, Link { config, .. }): (u32, &Link)| {
            let more = config.vary.map_or(0.0, |vary| vary.longest().secs_f64());
            let (own, new) = (config.delay.secs_f64(), plan.new_delays(number).map(Time::secs_f64));
            new.fold((own, own + more), |(low, high), new| (low.min(new), high.max(new + more)))
        };
        Self {
            scenario,
            plan,
            rates,
            delays: (0..).zip(&plan.links).map(delay).collect(),
            tables: scenario.link.iter().enumerate().flat_map(both).collect(),
            seconds,
            events: Parts::default(),
            rows: Parts::default(),
            bytes: scenario.members_bytes(),
        }
    }

    pub(crate) fn estimate(mut self) -> Estimate {
        match self.scenario.engine {
            Engine::Sim | Engine::Kernel => {
                self.flows();
                self.streams();
                self.queues();
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

    // ---- Links ----

    fn route(&self, route: u32) -> &'p [u32] {
        &self.plan.routes[route as usize]
    }

    /// Events that a packet makes on some links: one on each, and one where it is held back for a delay of its own.
    fn visits(&self, links: &[u32]) -> f64 {
        let held = |link: u32| {
            self.plan.new_delays(link).next().is_some()
                || self.plan.links[link as usize].config.vary.is_some()
        };
        links.iter().map(|&link| if held(link) { 2.0 } else { 1.0 }).sum()
    }

    /// Packets of so many bytes that a link holds: in its queue, and on its wire where they come at `rate`.
    fn room(&self, link: u32, rate: f64, bytes: f64) -> f64 {
        let config = &self.plan.links[link as usize].config;
        let queue = match config.limit {
            _ if config.rate.is_none() => 0.0,
            Limit::Packets(u64::MAX) => f64::INFINITY,
            Limit::Packets(packets) => packets as f64,
            Limit::Bytes(limit) => limit as f64 / bytes,
        };
        rate.min(self.rates[link as usize]) * self.delays[link as usize].1 / (8.0 * bytes) + 1.0 + queue
    }

    // ---- Flows ----

    /// Every table of flows, web users and arrivals.
    fn tables_of_flows(&self) -> Vec<Table<'p>> {
        let flows = self.scenario.flow.iter().enumerate().map(|(n, file)| (format!("flow.{n}"), file.count));
        let crowds = self.scenario.crowd_files().map(|(key, file)| (key, file.common().count));
        let single = self.plan.flows.iter().map(|flow| (flow, None));
        let mut all = single.chain(self.plan.crowds.iter().map(|crowd| (&crowd.flow, Some(&crowd.members))));
        let tables = flows.chain(crowds).filter(|(_, count)| *count > 0);
        let table = |(key, count): (String, u64)| {
            let (flow, members) = all.next()?;
            let last = if count > 1 { all.nth(count as usize - 2)?.0 } else { flow };
            Some(Table { key, count: count as f64, flow, last, members })
        };
        tables.filter_map(table).collect()
    }

    fn flows(&mut self) {
        let tables = self.tables_of_flows();
        // How many connections at a time cross each link with their data.
        let mut crossings = vec![0.0; self.plan.links.len()];
        for Table { flow, last, count, members, .. } in &tables {
            let users = if let Some(Members::Users(users, _)) = members { *users as f64 } else { 1.0 };
            for (&link, &other) in self.route(flow.forward).iter().zip(self.route(last.forward)) {
                crossings[link as usize] += users * if link == other { *count } else { 1.0 };
            }
        }
        let mut groups: BTreeMap<Option<u32>, Group> = BTreeMap::new();
        for table in &tables {
            let route = self.route(table.flow.forward);
            let share = |&at: &usize| self.rates[route[at] as usize] / crossings[route[at] as usize];
            let finite = (0..route.len()).filter(|at| share(at).is_finite());
            let narrowest = finite.min_by(|a, b| share(a).total_cmp(&share(b)));
            self.table(table, narrowest, groups.entry(narrowest.map(|at| route[at])).or_default());
        }
        for (link, group) in groups {
            let delivered = group.wanted.min(group.capacity);
            let key = match link {
                Some(link) if group.capacity < group.wanted => self.rate_key(link),
                _ => group.widest.1,
            };
            self.events.add(key.clone(), group.events.min(delivered * group.cost));
            let [at_first, first] = group.first;
            let by_room = SENT * group.room + at_first;
            let outstanding = group.outstanding.min(2.0 * delivered + first).min(by_room);
            let queued = outstanding.min(group.room);
            self.bytes.add(key, outstanding * SEGMENT_BYTES + 2.0 * queued * PACKET_BYTES);
            if self.plan.trace.events {
                self.rows.add("trace.events", delivered * (2.0 * SENT + 1.0 + 2.0 * group.acks) + group.rows);
            }
        }
    }

    /// Connections at a time, connections in all, and the size of each, of a table whose narrowest link lets so many bits through.
    fn connections(&self, table: &Table<'_>, rtt: f64, bits: f64) -> (f64, f64, Option<Distribution>) {
        let &Table { count, flow, members, .. } = table;
        // Connections of so many slots, each of which opens the next after two round-trip times and a wait.
        let sequential = |slots: f64, wait: f64, smallest: f64| {
            let by_time = slots * occurrences(self.seconds, 2.0 * rtt + wait);
            by_time.min(bits / (8.0 * (SMALLEST_TRANSFER + smallest)) + 2.0 * slots)
        };
        match (&flow.demand, members) {
            (Demand::Transfers { size, count: transfers }, _) => {
                let size = size.get() as f64;
                let most = transfers.map_or(f64::INFINITY, |transfers| transfers as f64);
                let connections = (count * most).min(sequential(count, 0.0, size));
                (count, connections, Some(Distribution::Constant(size)))
            }
            (_, Some(Members::Users(users, web))) => {
                let slots = count * *users as f64;
                (slots, sequential(slots, waits(web), 0.0), Some(web.size))
            }
            (_, Some(Members::Arrivals(arrivals))) => {
                let connections = count * occurrences(self.seconds, 1.0 / arrivals.per_second);
                let [_, largest] = bounds(&arrivals.sizes);
                (connections, connections, Some(largest))
            }
            (_, Some(Members::Sessions(sessions))) => {
                // Each of their data units is as much as a connection. Two take a round-trip time, and bytes on the way.
                let (sessions, units, bytes) = data_units(sessions, self.seconds);
                let by_time = 2.0 * sessions * occurrences(self.seconds, rtt);
                let units = units.min(by_time).min(bits / (8.0 * SMALLEST_TRANSFER) + 2.0 * sessions);
                (count * sessions, count * units, Some(Distribution::Constant(bytes / units)))
            }
            (Demand::App(_) | Demand::Unlimited | Demand::Drawn, None) => (count, count, None),
        }
    }

    /// What the members of a table do, whose narrowest link is at a place of their route.
    fn table(&mut self, table: &Table<'_>, narrowest: Option<usize>, group: &mut Group) {
        let &Table { ref key, count, flow, last, members } = table;
        let (route, back, tcp) = (self.route(flow.forward), self.route(flow.reverse), &flow.tcp);
        let (mss, packet) = (f64::from(tcp.mss()), tcp.packet.get() as f64);
        let rtt: f64 = route.iter().chain(back).map(|&link| self.delays[link as usize].0).sum();
        // Members that have a link of their own there have as many.
        let links = |at: usize| if route[at] == self.route(last.forward)[at] { 1.0 } else { count };
        let mut rate = narrowest.map_or(f64::INFINITY, |at| self.rates[route[at] as usize]);
        if let Some(Members::Sessions(_)) = members {
            // Both ends send data.
            rate += back.iter().map(|&link| self.rates[link as usize]).fold(f64::INFINITY, f64::min);
        }
        let bits = rate * self.seconds * narrowest.map_or(1.0, links);
        let manners = Manners::of(tcp);
        let capacity = manners.bound(bits / (8.0 * packet) + 2.0 * narrowest.map_or(1.0, links));
        let buffers = [tcp.send_buffer, tcp.receive_buffer].into_iter().flatten();
        let window = buffers.map(Bytes::get).fold(LARGEST_WINDOW, u64::min);
        let window = (window as f64 / mss).ceil() + 1.0 + manners.lead;
        let (slots, connections, sizes) = self.connections(table, rtt, bits);
        let written = match &flow.demand {
            Demand::App(app) => Some(writes(app, self.seconds, rtt)),
            _ => None,
        };
        let count_key = self.count_key(key);
        let by_size = |draws: f64, most: f64| {
            sizes.map_or(f64::INFINITY, |sizes| total(&sizes, draws, most) / mss + 2.0 * draws)
        };
        let sized = SENT
            * written.map_or_else(
                || by_size(connections, f64::INFINITY),
                |[chunks, bytes]| count * (bytes / mss + chunks),
            );
        let windows = 2.0 * window * (self.seconds / rtt + 1.0) * slots;
        let (segments, widest) = match sizes {
            Some(_) if sized <= windows && slots >= 1e3 => (sized, count_key.clone()),
            Some(_) if sized <= windows => (sized, format!("{key}.size")),
            None if written.is_some() && sized <= windows => (sized, format!("{key}.app")),
            _ => (windows, format!("{key}.tcp.receive_buffer")),
        };
        let (before, after) = route.split_at(narrowest.unwrap_or(0));
        let [before, after, back] = [before, after, back].map(|links| self.visits(links));
        let hosts = 2.0 * f64::from(u8::from(flow.host.is_some()));
        let sent = before + f64::from(u8::from(tcp.pacing)) + hosts;
        let cost = SENT * sent + after + 1.0 + manners.acks * (back + 1.0 + hosts);
        let hops = sent + after + back + 3.0;
        let first = f64::from(tcp.initial_window).min(window);
        let delivered = segments.min(capacity);
        let rto = tcp.rto_min.secs_f64().max(rtt);
        let timeouts = 2.0 * slots * TRIES + (slots * self.seconds / rto).min(SENT * delivered);
        self.variables(table, rtt, delivered);
        let events = connections * (OVERHEAD * hops + first * sent.max(1.0)) + timeouts * hops;
        self.events.add(count_key.clone(), events);
        if key.starts_with("arrivals") || key.starts_with("sessions") {
            self.bytes.add(count_key.clone(), slots * FLOW_BYTES);
        }
        let (rows, row_key) = match written {
            Some([chunks, _]) => {
                self.events.add(format!("{key}.app"), count * chunks);
                (count * chunks, format!("{key}.app"))
            }
            None => (connections, count_key),
        };
        if flow.demand != Demand::Unlimited && self.plan.trace.transfers {
            self.rows.add(row_key.clone(), rows);
            self.bytes.add(row_key, rows * ROW_BYTES);
        }
        group.wanted += segments;
        if segments >= group.widest.0 {
            group.widest = (segments, widest);
        }
        group.capacity = group.capacity.max(capacity);
        group.events += segments * cost;
        group.cost = group.cost.max(cost);
        group.outstanding += (window * slots).min(by_size(slots, window * mss));
        let both = || route.iter().chain(self.route(flow.reverse));
        group.room += match narrowest {
            None => f64::INFINITY,
            Some(_) => manners.bound(both().map(|&link| self.room(link, SENT * rate, packet)).sum()),
        };
        group.acks = group.acks.max(manners.acks);
        group.first[0] += first * slots;
        group.first[1] += first * connections;
        // A segment of the first window may be sent and dropped, whatever the links let through.
        group.rows += connections * (3.0 * OVERHEAD + 2.0 * first + 6.0) + 5.0 * timeouts;
    }

    // ---- Streams ----

    fn streams(&mut self) {
        let mut all = self.plan.streams.iter();
        for (key, file) in self.scenario.stream_files() {
            let count = file.common().count as usize;
            let Some(stream) = all.clone().next().filter(|_| count > 0) else { continue };
            all.nth(count - 1);
            let Datagrams { rate, packet, burst, pattern } = stream.datagrams;
            let (rate, bytes, burst) = (rate.bits_per_sec() as f64, f64::from(packet), f64::from(burst));
            let by_rate = rate * self.seconds / (8.0 * bytes);
            let packets = by_rate + burst + 1.0;
            let (mut left, mut events, mut held) = (packets, packets, 0.0);
            for &link in self.route(stream.forward) {
                held += (self.room(link, rate, bytes) + burst).min(left);
                left = left.min(self.rates[link as usize] * self.seconds / (8.0 * bytes) + 1.0);
                events += left * self.visits(&[link]);
            }
            let count = count as f64;
            let causes = format!("{key}.{}", if burst > by_rate { "burst" } else { "rate" });
            self.events.add(causes.clone(), count * events);
            self.bytes.add(causes, count * held * PACKET_BYTES);
            if let Pattern::OnOff { on, off } = pattern {
                let periods = occurrences(self.seconds, least(&on) + least(&off));
                self.events.add(format!("{key}.on"), count * periods);
            }
            if self.plan.trace.events {
                self.rows.add("trace.events", count * 3.0 * packets);
            }
        }
    }

    // ---- Queues and links ----

    fn queues(&mut self) {
        let named = if self.tables.is_empty() { 2 } else { self.plan.links.len() };
        for (number, link) in (0u32..).zip(&self.plan.links).take(named) {
            let key = self.link_key(number);
            let size = if link.config.rate.is_some() { LINK_BYTES.1 } else { LINK_BYTES.0 };
            self.bytes.add(key.clone(), size);
            self.queue(&link.config.queue, &format!("{key}.queue"), self.rates[number as usize]);
        }
        // A link for each round-trip time of its own; those of hosts were counted with them.
        let others = self.plan.links.len().saturating_sub(named);
        self.bytes.add("path", others as f64 * LINK_BYTES.0);
    }

    /// What a queue discipline does besides: PIE's updates, and the turns of round robin.
    fn queue(&mut self, queue: &Queue, key: &str, rate: f64) {
        let classes = match queue {
            Queue::Pie(pie) => {
                self.events.add(format!("{key}.t_update"), self.seconds / pie.t_update.secs_f64());
                return;
            }
            Queue::FqCodel(fq) => return self.turns(key, rate, fq.quantum, fq.flows),
            Queue::Drr(drr) => {
                self.turns(key, rate, drr.quantum, drr.flows);
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

    fn turns(&mut self, key: &str, rate: f64, quantum: u32, flows: u32) {
        self.events.add(format!("{key}.quantum"), rate * self.seconds / 8.0 / f64::from(quantum));
        self.bytes.add(format!("{key}.flows"), f64::from(flows) * QUEUE_BYTES);
    }

    // ---- Samples ----

    /// The variables of the flows of a table, which deliver so many segments: all of a flow at each sample and each change of one.
    fn variables(&mut self, table: &Table<'_>, rtt: f64, delivered: f64) {
        let Table { flow, count, members, .. } = table;
        if !self.plan.trace.variables || members.is_some() {
            return;
        }
        let algorithm = registry::find(flow.cc.name).and_then(|entry| entry.build(&flow.cc.settings()).ok());
        let start = slow_start::find(flow.slow_start.name);
        let start = start.and_then(|entry| entry.build(&flow.slow_start.settings()).ok());
        let Some((algorithm, start)) = algorithm.zip(start) else { return };
        let (mut kept, mut is_discrete) = (0.0, false);
        Controller::new(algorithm, start, flow.tcp.quantisation, 1.0).variables(&mut |variable, _| {
            kept += 1.0;
            is_discrete |= !variable.values.is_empty();
        });
        let changes = (count * CHANGES * self.seconds / rtt).min(SENT * delivered) * f64::from(is_discrete);
        let rows = kept * (count * self.times() + changes);
        self.rows.add("trace.variables", rows);
        self.bytes.add("trace.variables", rows * ROW_BYTES);
    }

    /// How often samples are taken.
    fn times(&self) -> f64 {
        (self.plan.duration.picos() / self.plan.trace.interval.picos()) as f64 + 1.0
    }

    /// Samples: rows of flows, crowds, streams and links, and rates for the metrics.
    fn sample(&mut self) {
        let plan = self.plan;
        let times = self.times();
        let measured = (plan.measure.to.picos() / plan.measure.interval.picos()) as f64 + 2.0;
        let flows = match self.scenario.engine {
            // All, or where they are too many, a class of those that start at about the same time.
            Engine::Model if plan.flows.len() > MOST_MODELLED => {
                let starts = self.seconds / SAME_START_S + 1.0;
                self.scenario.flow.iter().map(|flow| (flow.count as f64).min(starts)).sum()
            }
            _ => plan.flows.len() as f64,
        };
        let links = plan.links.iter().filter(|link| link.config.rate.is_some()).count() as f64;
        let members = flows + plan.crowds.len() as f64 + plan.streams.len() as f64;
        let rows = times * (members + links);
        let users =
            |crowd: &Crowd| if let Members::Users(users, _) = crowd.members { users as f64 } else { 1.0 };
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
        for replay in &plan.replays {
            let periods = replay.period.map_or(1.0, |period| self.seconds / period.secs_f64() + 1.0);
            let key = format!("{}.trace", self.link_key(replay.link));
            self.events.add(key, periods * replay.steps.len() as f64);
        }
        self.events.add("duration", REPORTS);
    }

    // ---- Keys ----

    /// The table of a link, and whether it is the reverse of that.
    fn link_key(&self, link: u32) -> String {
        match self.tables.get(link as usize) {
            Some(number) => format!("link.{number}"),
            None if link == 1 => "path.reverse".to_owned(),
            None => "path".to_owned(),
        }
    }

    /// The key of the highest rate of a link.
    fn rate_key(&self, link: u32) -> String {
        let config = &self.plan.links[link as usize].config;
        let highest =
            self.plan.changes.iter().filter(|change| change.link == link).max_by_key(|change| change.rate);
        if let Some(change) = highest.filter(|change| change.rate > config.rate)
            && let Some(event) = self.scenario.event.iter().position(|event| {
                event.rate == change.rate && event.link == self.plan.links[link as usize].name
            })
        {
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
            "sessions" if self.scenario.sessions[number].per_second.is_some() => "per_second",
            "sessions" if self.scenario.sessions[number].load.is_some() => "load",
            "sessions" => "vectors",
            "flow" if self.scenario.flow[number].transfers.is_some() => "transfers",
            _ => "count",
        };
        format!("{key}.{name}")
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
