//! What flows deliver and streams send: events, and what queues and wires hold of it.

use std::collections::BTreeMap;

use elephan_net::Limit;
use elephan_traffic::{Datagrams, Pattern};

use super::random::{least, occurrences};
use super::tables::Table;
use super::{Estimator, FLOW_BYTES, OVERHEAD, SENT};

/// Bytes of a packet in a queue, and of a segment on a scoreboard, in rings that have grown to twice what they hold.
const PACKET_BYTES: f64 = 200.0;
const SEGMENT_BYTES: f64 = 160.0;

impl Estimator<'_> {
    /// What flows deliver and send: events, and what is in flight.
    pub(super) fn deliver(&mut self, tables: &[Table<'_>]) {
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
    pub(super) fn room(&self, narrowest: Option<usize>, tables: &[&Table<'_>]) -> f64 {
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

    /// What streams send.
    pub(super) fn send(&mut self) {
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
}
