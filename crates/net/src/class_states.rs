//! The classes of a link while it runs, each with a queue of its own, from which schedulers choose.

use std::collections::BTreeMap;

use elephan_units::{Rate, Seed, Time};

use crate::classes::{Class, share};
use crate::ledger::Ledger;
use crate::packet::{Head, Packet};
use crate::queue::Queue;
use crate::waiting::{Limit, Waiting};

/// What a scheduler needs of the queue of a class, whatever its discipline.
pub(crate) trait ClassQueue {
    /// A queue of discipline `queue` before a transmitter of `rate`; `index` selects its random streams.
    fn new(queue: &Queue, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self;

    /// The packet at this place of the ledger arrives; returns whether it was accepted. Other packets may have been dropped for it.
    fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool;

    /// Takes the packet to be served at `now` out of the queue, and returns its place; `None` if the queue is empty.
    fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32>;

    /// Size of the packet to be served next, in bytes, if the order alone determines it; 1 if it depends on
    /// more, and a packet waits.
    fn head_bytes<P: Packet>(&self, ledger: &Ledger<P>) -> Option<u32>;

    /// The waiting packets.
    fn waiting(&self) -> Waiting;

    /// The transmitter's rate changed.
    fn tune(&mut self, rate: Rate);

    /// Sets new weights for classes, by name; other classes keep theirs.
    fn set_weights(&mut self, weights: &BTreeMap<String, f64>);

    /// The counters of each class, in the order of the file; a class's own classes follow it.
    fn count_classes(&self, counters: &mut Vec<ClassCounters>);
}

/// A class's counters; they never decrease. The counters of an outer class include those of its inner
/// classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassCounters {
    /// Its name.
    pub name: String,
    /// Packets offered.
    pub offered: u64,
    /// Packets that were offered and were not accepted, or were dropped later.
    pub dropped: u64,
    /// Packets served.
    pub served: u64,
    /// Their bytes, headers included.
    pub bytes_served: u64,
    /// Sum of their queueing delays, s.
    pub delay_sum_s: f64,
    /// Number of dropped packets that had been offered before the measuring window and were dropped in it.
    pub dropped_earlier: u64,
    /// The share of the rate that its weight currently gives; with weighted schedulers it is a guarantee.
    pub rate_share: f64,
}

/// A class while a link runs.
pub(crate) struct ClassState<Q> {
    pub weight: f64,
    pub queue: Q,
    counters: ClassCounters,
    /// Its share of the rate, for automatic settings.
    rate_share: f64,
}

impl<Q: ClassQueue> ClassState<Q> {
    /// The place of the packet of this class that is served next.
    #[inline]
    pub fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        let before = ledger.earlier.dropped;
        let place = self.queue.dequeue(now, ledger);
        self.counters.dropped_earlier += ledger.earlier.dropped - before;
        let stored = ledger.packets.at(place?);
        if ledger.clearing {
            self.counters.dropped_earlier += u64::from(stored.arrived < ledger.first);
            return place;
        }
        self.counters.served += 1;
        self.counters.bytes_served += u64::from(stored.head.bytes());
        self.counters.delay_sum_s += now.since(stored.arrived).secs_f64();
        place
    }

    /// Whether no packet waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.waiting().packets == 0
    }
}

/// The classes of a link.
pub(crate) struct ClassStates<Q> {
    pub states: Vec<ClassState<Q>>,
    /// The class of each codepoint.
    table: [u8; 64],
}

impl<Q: ClassQueue> ClassStates<Q> {
    pub fn new(classes: &[Class], limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        let sum: f64 = classes.iter().map(|class| class.weight.unwrap_or(1.0)).sum();
        let states = classes
            .iter()
            .zip(limits(classes, limit))
            .zip(1..)
            .map(|((class, limit), number)| {
                let weight = class.weight.unwrap_or(1.0);
                let rate_share = weight / sum;
                let own = index << 8 | number;
                let queue = Q::new(&class.queue, limit, scaled(rate, rate_share), seed, own);
                let counters = ClassCounters { name: class.name.clone(), ..ClassCounters::default() };
                ClassState { weight, queue, counters, rate_share }
            })
            .collect();
        let mut table = [0; 64];
        for (dscp, entry) in (0u8..).zip(&mut table) {
            let named = classes.iter().position(|class| class.dscp.iter().any(|set| set.contains(dscp)));
            let others = || classes.iter().position(|class| class.dscp.is_empty());
            *entry = named.or_else(others).unwrap_or(0) as u8;
        }
        Self { states, table }
    }

    /// A packet arrives; returns its class, if the class accepted it.
    #[inline]
    pub fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> Option<usize> {
        let number = usize::from(self.table[usize::from(ledger.packets.at(place).head.dscp() & 63)]);
        let class = &mut self.states[number];
        class.counters.offered += 1;
        let before = ledger.earlier.dropped;
        let accepted = class.queue.enqueue(place, now, ledger);
        class.counters.dropped_earlier += ledger.earlier.dropped - before;
        accepted.then_some(number)
    }

    pub fn waiting(&self) -> Waiting {
        self.states.iter().fold(Waiting::default(), |sum, class| {
            let waiting = class.queue.waiting();
            Waiting { packets: sum.packets + waiting.packets, bytes: sum.bytes + waiting.bytes }
        })
    }

    pub fn tune(&mut self, rate: Rate) {
        for class in &mut self.states {
            class.queue.tune(scaled(rate, class.rate_share));
        }
    }

    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>) {
        for class in &mut self.states {
            if let Some(&weight) = weights.get(&class.counters.name) {
                class.weight = weight;
            }
            class.queue.set_weights(weights);
        }
        let sum: f64 = self.states.iter().map(|class| class.weight).sum();
        for class in &mut self.states {
            class.rate_share = class.weight / sum;
        }
    }

    pub fn count(&self, counters: &mut Vec<ClassCounters>) {
        for class in &self.states {
            let waiting = class.queue.waiting().packets;
            let dropped = class.counters.offered - class.counters.served - waiting;
            counters.push(ClassCounters { dropped, rate_share: class.rate_share, ..class.counters.clone() });
            class.queue.count_classes(counters);
        }
    }
}

/// The buffer limit of each class: its share of the buffer, and at least a packet if possible; the sum does
/// not exceed the buffer.
fn limits(classes: &[Class], limit: Limit) -> Vec<Limit> {
    let (Limit::Packets(whole) | Limit::Bytes(whole)) = limit;
    let mut parts: Vec<u64> =
        classes.iter().map(|class| ((whole as f64 * share(class, classes) + 1e-9) as u64).max(1)).collect();
    while parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part)) > whole
        && let Some(most) = parts.iter_mut().max().filter(|most| **most > 0)
    {
        *most -= 1;
    }
    let unit = |part| if let Limit::Packets(_) = limit { Limit::Packets(part) } else { Limit::Bytes(part) };
    parts.into_iter().map(unit).collect()
}

/// A share of a rate, at least 1 bit/s.
fn scaled(rate: Rate, share: f64) -> Rate {
    Rate::from_bits_per_sec(((rate.bits_per_sec() as f64 * share) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_queue::PacketQueue;
    use crate::testing::{Parcel, parcel};

    fn class(name: &str, weight: f64, buffer_share: Option<f64>) -> Class {
        let dscp = if name == "others" { Vec::new() } else { vec![name.parse().unwrap()] };
        Class { name: name.to_owned(), dscp, weight: Some(weight), buffer_share, queue: Queue::default() }
    }

    #[test]
    fn classes_divide_the_buffer_and_never_have_more_than_it() {
        let of = |shares: &[Option<f64>], limit| {
            let classes: Vec<Class> = shares.iter().map(|share| class("others", 1.0, *share)).collect();
            limits(&classes, limit)
        };
        let packets = |parts: &[u64]| parts.iter().map(|part| Limit::Packets(*part)).collect::<Vec<_>>();
        assert_eq!(of(&[Some(0.5), None, None], Limit::Packets(100)), packets(&[50, 25, 25]));
        assert_eq!(of(&[Some(0.25), None], Limit::Bytes(4000)), [Limit::Bytes(1000), Limit::Bytes(3000)]);
        // A class has a packet, which the largest gives: 2 + 1 + 1 would be more than 3.
        assert_eq!(of(&[Some(0.8), None, None], Limit::Packets(3)), packets(&[1, 1, 1]));
        assert_eq!(of(&[Some(0.96), None, None], Limit::Packets(50)), packets(&[48, 1, 1]));
        assert_eq!(of(&[Some(0.99), None, None], Limit::Packets(100)), packets(&[98, 1, 1]));
        assert_eq!(
            of(&[None, None], Limit::Packets(1)).iter().filter(|part| **part == Limit::Packets(0)).count(),
            1
        );
    }

    #[test]
    fn a_class_has_a_share_of_the_rate() {
        let rate = Rate::from_bits_per_sec;
        assert_eq!(scaled(rate(1000), 0.25), rate(250));
        assert_eq!(scaled(rate(1000), 0.0), rate(1));
    }

    #[test]
    fn shares_follow_the_weights_and_packets_are_counted_by_class() {
        let classes = [class("af11", 3.0, None), class("others", 1.0, None)];
        let rate = Rate::from_bits_per_sec(8_000_000);
        let mut states: ClassStates<PacketQueue> =
            ClassStates::new(&classes, Limit::Packets(4), rate, Seed::new(1), 0);
        let shares = |states: &ClassStates<PacketQueue>| {
            let mut counters = Vec::new();
            states.count(&mut counters);
            counters.into_iter().map(|one| (one.offered, one.dropped, one.rate_share)).collect::<Vec<_>>()
        };
        assert_eq!(shares(&states), [(0, 0, 0.75), (0, 0, 0.25)]);
        let mut ledger = Ledger::new();
        // Two of four packets of buffer for each class.
        let accepted: Vec<_> = [10, 10, 10, 0]
            .map(|dscp| {
                let place = ledger.put(Parcel { dscp, bytes: 100, ..parcel(0) });
                states.enqueue(place, Time::ZERO, &mut ledger)
            })
            .into();
        assert_eq!(accepted, [Some(0), Some(0), None, Some(1)]);
        assert_eq!(states.waiting(), Waiting { packets: 3, bytes: 300 });
        states.set_weights(&BTreeMap::from([("others".to_owned(), 5.0)]));
        assert_eq!(shares(&states), [(3, 1, 0.375), (1, 0, 0.625)]);
    }
}
