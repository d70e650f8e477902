//! What the members of a table of the file may do: connections, segments, timeouts, and what each takes.

use elephan_traffic::{Demand, Distribution, Sizes};

use super::random::{capped, occurrences, share_lost, total, waits};
use super::{Estimator, MOST_REPEATS, OVERHEAD, SENT};
use crate::plan::{Flow, Members};

/// Timeouts in a row after which a connection is given up.
const TRIES: f64 = 16.0;
/// The largest window that TCP can express, bytes (RFC 7323, section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;
/// The smallest packets of a transfer in one direction, bytes: SYN, ACK, FIN.
const SMALLEST_TRANSFER: f64 = 120.0;

/// A table of the file, whose members are alike: flows, users of crowds, or arrivals.
pub(super) struct Table<'p> {
    pub key: String,
    /// The first member; the others differ in links of their own at most.
    pub flow: &'p Flow,
    /// The link that is the narrowest for it, where one has a rate; and how many links like it the members have.
    pub narrowest: Option<usize>,
    pub narrow: f64,
    /// Connections that there may be at a time, and in all.
    pub slots: f64,
    pub connections: f64,
    /// Data segments that it may deliver by itself, and which key allows that.
    pub segments: f64,
    pub segments_key: String,
    /// Segments outstanding at a time, by windows and sizes.
    pub outstanding: f64,
    /// Timeouts.
    pub timeouts: f64,
    /// Segments of a connection's first window.
    pub first: f64,
    /// Events of a data segment, of a connection besides its data, and of a timeout.
    pub costs: [f64; 3],
}

impl<'p> Estimator<'p> {
    /// Every table of flows, web users and arrivals.
    pub(super) fn tables_of_flows(&self) -> Vec<Table<'p>> {
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
    pub(super) fn visits(&self, links: &[u32]) -> f64 {
        let held = |link: u32| {
            self.plan.new_delays(link).next().is_some()
                || self.plan.links[link as usize].config.vary.is_some()
        };
        links.iter().map(|&link| if held(link) { 2.0 } else { 1.0 }).sum()
    }

    pub(super) fn route(&self, route: u32) -> &'p [u32] {
        &self.plan.routes[route as usize]
    }

    /// The round-trip time without queueing, s, at its shortest.
    pub(super) fn rtt(&self, flow: &Flow) -> f64 {
        let links = self.route(flow.forward).iter().chain(self.route(flow.reverse));
        links.map(|&link| self.delays[link as usize].0).sum()
    }

    /// What `count` members like `flow` may do.
    pub(super) fn table(
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

    /// The share of packets that the wires of a flow lose, data and acknowledgments.
    pub(super) fn loss(&self, flow: &Flow) -> f64 {
        let links = self.route(flow.forward).iter().chain(self.route(flow.reverse));
        let kept = |&link: &u32| {
            let losses = self.plan.new_losses(link).chain(self.plan.links[link as usize].config.loss);
            1.0 - losses.map(share_lost).fold(0.0, f64::max)
        };
        1.0 - links.map(kept).product::<f64>()
    }

    /// Full packets of a flow that a link lets through.
    pub(super) fn packets(&self, link: usize, flow: &Flow) -> f64 {
        self.rates[link].0 * self.seconds / (8.0 * flow.tcp.packet.get() as f64) + 2.0
    }
}
