//! A link in one direction: a queue, a transmitter, a wire.
//!
//! The queue disciplines here decide when a packet arrives and serve in order. So the start of a
//! packet's service is known when it arrives, and packets that wait and packets that propagate stand in
//! one ring, in order; a cursor tells them apart. A link needs one event at a time: its next arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use elephan_units::{Seed, Stream, Time};
use rand::RngExt;

use crate::config::{Delay, LinkConfig};
use crate::loss::Losses;
use crate::packet::Packet;
use crate::queue::{Verdict, Waiting, judge};
use crate::serializer::Serializer;
use crate::statistics::QueueStatistics;

/// What a link has counted; all only grow. Every packet that was offered is in exactly one of
/// `dropped`, `lost`, `delivered`, or still on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets that the queue refused.
    pub dropped: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Bytes accepted for transmission, headers included.
    pub bytes_accepted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    /// When it began to be served: until then it waits in the queue.
    start: Time,
    arrival: Time,
    fate: Fate,
    packet: P,
}

/// What the wire does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Deliver,
    Lose,
    /// It is held back, and overtaken.
    Hold,
}

/// A link in one direction.
pub struct Link<P> {
    config: LinkConfig,
    serializer: Option<Serializer>,
    losses: Losses,
    vary: Stream,
    /// Packets in order of service; those before `served` have begun to be served.
    ring: VecDeque<Entry<P>>,
    served: usize,
    waiting: Waiting,
    /// When the transmitter is free again.
    free_at: Time,
    /// Arrival of the last packet in the ring: with jitter, none overtakes it.
    last_arrival: Time,
    /// Packets held back by reordering, by arrival and order of service.
    held: BinaryHeap<Reverse<Held<P>>>,
    held_count: u64,
    counters: LinkCounters,
    statistics: QueueStatistics,
}

/// A packet held back, in order of arrival and then of service.
struct Held<P> {
    key: (Time, u64),
    packet: P,
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<P> Eq for Held<P> {}
impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<P: Packet> Link<P> {
    /// Link number `index` of a run.
    pub fn new(config: LinkConfig, seed: Seed, index: u64) -> Self {
        Self {
            serializer: config.rate.map(Serializer::new),
            losses: Losses::new(config.loss, seed, index),
            vary: seed.stream("delay on link", index),
            config,
            ring: VecDeque::new(),
            served: 0,
            waiting: Waiting::default(),
            free_at: Time::ZERO,
            last_arrival: Time::ZERO,
            held: BinaryHeap::new(),
            held_count: 0,
            counters: LinkCounters::default(),
            statistics: QueueStatistics::default(),
        }
    }

    /// Offers `packet` to the queue; returns whether it was accepted.
    #[inline]
    pub fn send(&mut self, mut packet: P, now: Time) -> bool {
        self.counters.offered += 1;
        self.serve(now);
        match judge(&self.config.queue, self.config.limit, self.waiting, &packet) {
            Verdict::Accept => {}
            Verdict::Mark => {
                packet.mark();
                self.counters.marked += 1;
            }
            Verdict::Drop => {
                self.counters.dropped += 1;
                return false;
            }
        }
        let bytes = packet.bytes();
        let start = self.free_at.max(now);
        if let Some(serializer) = &mut self.serializer {
            self.free_at = start + serializer.next(bytes);
        } else {
            self.free_at = start;
        }
        self.counters.bytes_accepted += u64::from(bytes);
        if start > now {
            self.waiting.packets += 1;
            self.waiting.bytes += u64::from(bytes);
        } else {
            self.served += 1;
        }
        self.statistics.record(start - now, self.waiting, now);
        let (fate, arrival) = (self.fate(), self.arrival());
        self.ring.push_back(Entry { start, arrival, fate, packet });
        true
    }

    #[inline]
    fn fate(&mut self) -> Fate {
        if self.losses.loses() {
            return Fate::Lose;
        }
        match self.config.vary {
            Some(Delay::Reorder { probability, .. }) if self.vary.random::<f64>() < probability => Fate::Hold,
            _ => Fate::Deliver,
        }
    }

    /// When the packet that the transmitter ends with at `free_at` reaches the far end.
    #[inline]
    fn arrival(&mut self) -> Time {
        let mut arrival = self.free_at + self.config.delay;
        if let Some(Delay::Jitter { max }) = self.config.vary {
            let extra = Time::from_picos(self.vary.random_range(0..=max.picos()));
            arrival = (arrival + extra).max(self.last_arrival);
            self.last_arrival = arrival;
        }
        arrival
    }

    /// Takes out of the queue what has begun to be served by `now`.
    #[inline]
    fn serve(&mut self, now: Time) {
        while let Some(entry) = self.ring.get(self.served) {
            if entry.start > now {
                break;
            }
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(entry.packet.bytes());
            self.served += 1;
        }
    }

    /// When the next packet reaches the far end, if it is not lost; `Time::MAX` when nothing is on its way.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        let ring = self.ring.front().map_or(Time::MAX, |entry| entry.arrival);
        match self.held.peek() {
            Some(Reverse(held)) => ring.min(held.key.0),
            None => ring,
        }
    }

    /// The next packet that has reached the far end by `now`; call it until there is none.
    #[inline]
    pub fn receive(&mut self, now: Time) -> Option<P> {
        loop {
            let ring = self.ring.front().map_or(Time::MAX, |entry| entry.arrival);
            if let Some(Reverse(held)) = self.held.peek()
                && held.key.0 <= now.min(ring)
            {
                self.counters.delivered += 1;
                return self.held.pop().map(|Reverse(held)| held.packet);
            }
            if ring > now {
                return None;
            }
            // What arrives has been served, whether or not anybody looked since.
            if self.served == 0 {
                self.serve(now);
            }
            let entry = self.ring.pop_front()?;
            self.served -= 1;
            match entry.fate {
                Fate::Deliver => {
                    self.counters.delivered += 1;
                    return Some(entry.packet);
                }
                Fate::Lose => self.counters.lost += 1,
                Fate::Hold => {
                    let extra = match self.config.vary {
                        Some(Delay::Reorder { extra, .. }) => extra,
                        _ => Time::ZERO,
                    };
                    self.held_count += 1;
                    let key = (entry.arrival + extra, self.held_count);
                    self.held.push(Reverse(Held { key, packet: entry.packet }));
                }
            }
        }
    }

    /// What waits in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.serve(now);
        self.waiting
    }

    /// Packets on the link: waiting, in service or propagating, those included that the wire will lose.
    pub fn in_transit(&self) -> u64 {
        (self.ring.len() + self.held.len()) as u64
    }

    /// What was counted.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What packets met in the queue.
    pub fn statistics(&self) -> &QueueStatistics {
        &self.statistics
    }

    /// Restricts [`Link::statistics`] to packets that arrive from `from` on, before `to`.
    pub fn measure(&mut self, from: Time, to: Time) {
        self.statistics = QueueStatistics::new(from, to);
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Loss, Queue};
    use crate::packet::Ecn;
    use elephan_units::Rate;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Parcel {
        id: u64,
        bytes: u32,
        ecn: Ecn,
    }

    impl Packet for Parcel {
        fn bytes(&self) -> u32 {
            self.bytes
        }
        fn ecn(&self) -> Ecn {
            self.ecn
        }
        fn mark(&mut self) {
            self.ecn = Ecn::Congestion;
        }
    }

    fn parcel(id: u64) -> Parcel {
        Parcel { id, bytes: 1500, ecn: Ecn::Capable0 }
    }

    /// 12 Mbit/s: a packet of 1500 bytes each millisecond.
    fn config(limit: u64) -> LinkConfig {
        LinkConfig {
            rate: Some(Rate::from_bits_per_sec(12_000_000)),
            delay: Time::from_millis(10),
            limit: Limit::Packets(limit),
            queue: Queue::DropTail,
            loss: None,
            vary: None,
        }
    }

    #[test]
    fn the_packet_in_service_is_not_in_the_queue() {
        let mut link = Link::new(config(2), Seed::new(1), 0);
        let accepted: Vec<bool> = (0..4).map(|id| link.send(parcel(id), Time::ZERO)).collect();
        assert_eq!(accepted, [true, true, true, false]);
        assert_eq!(link.waiting(Time::ZERO).packets, 2);
        // The first leaves the transmitter at 1 ms; the second enters it, and makes room.
        assert!(!link.send(parcel(4), Time::from_micros(999)));
        assert!(link.send(parcel(5), Time::from_millis(1)));
    }

    #[test]
    fn arrivals_are_service_and_propagation_later() {
        let mut link = Link::new(config(10), Seed::new(1), 0);
        link.send(parcel(0), Time::ZERO);
        link.send(parcel(1), Time::ZERO);
        assert_eq!(link.next_arrival(), Time::from_millis(11));
        assert_eq!(link.receive(Time::from_micros(10_999)), None);
        assert_eq!(link.receive(Time::from_millis(11)).map(|p| p.id), Some(0));
        assert_eq!(link.receive(Time::from_millis(11)), None);
        assert_eq!(link.next_arrival(), Time::from_millis(12));
    }

    #[test]
    fn a_threshold_marks_those_that_find_as_many_waiting() {
        let mut link =
            Link::new(LinkConfig { queue: Queue::Threshold { packets: 2 }, ..config(10) }, Seed::new(1), 0);
        (0..5).for_each(|id| assert!(link.send(parcel(id), Time::ZERO)));
        let marks: Vec<bool> = std::iter::from_fn(|| link.receive(Time::from_secs(1)))
            .map(|p| p.ecn == Ecn::Congestion)
            .collect();
        // In service, then 0, 1, 2 and 3 waiting in front.
        assert_eq!(marks, [false, false, false, true, true]);
    }

    #[test]
    fn littles_law_gives_the_mean_queue() {
        // Two packets at once each 2 ms at 1 ms a packet: the second of each pair waits 1 ms, so the queue holds
        // one packet half of the time.
        let mut link = Link::new(config(10), Seed::new(1), 0);
        for pair in 0..1000 {
            link.send(parcel(0), Time::from_millis(2 * pair));
            link.send(parcel(1), Time::from_millis(2 * pair));
        }
        let statistics = link.statistics();
        assert!((statistics.mean_packets(Time::from_secs(2)) - 0.5).abs() < 1e-9);
        assert!((statistics.mean_delay_s() - 0.5e-3).abs() < 1e-9);
        assert!((statistics.delay_quantile_s(0.9) - 1e-3).abs() < 2e-5);
        assert_eq!(statistics.delay_quantile_s(0.4), 0.0);
    }

    fn vary() -> impl Strategy<Value = Option<Delay>> {
        prop_oneof![
            Just(None),
            (0u64..20).prop_map(|ms| Some(Delay::Jitter { max: Time::from_millis(ms) })),
            (0.0..1.0, 1u64..20).prop_map(|(probability, ms)| Some(Delay::Reorder {
                probability,
                extra: Time::from_millis(ms)
            })),
        ]
    }

    proptest! {
        #[test]
        fn every_packet_is_accounted_for(
            seed: u64,
            limit in 1u64..20,
            bytes_limit: bool,
            loss in prop_oneof![Just(None), (0.0..0.5).prop_map(|p| Some(Loss::Random { probability: p }))],
            vary in vary(),
            gaps in prop::collection::vec((0u64..3_000, 40u32..1501), 1..300),
        ) {
            let limit = if bytes_limit { Limit::Bytes(limit * 1500) } else { Limit::Packets(limit) };
            let mut link = Link::new(LinkConfig { limit, loss, vary, ..config(1) }, Seed::new(seed), 0);
            let (mut now, mut received) = (Time::ZERO, Vec::new());
            for (id, &(gap, bytes)) in gaps.iter().enumerate() {
                now += Time::from_micros(gap);
                while let Some(packet) = link.receive(now) {
                    received.push(packet);
                }
                link.send(Parcel { id: id as u64, bytes, ecn: Ecn::NotCapable }, now);
                let waiting = link.waiting(now);
                match limit {
                    Limit::Packets(packets) => prop_assert!(waiting.packets <= packets),
                    Limit::Bytes(bytes) => prop_assert!(waiting.bytes <= bytes),
                }
                let c = *link.counters();
                prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered + link.in_transit());
            }
            while link.next_arrival() < Time::MAX {
                now = link.next_arrival();
                while let Some(packet) = link.receive(now) {
                    received.push(packet);
                }
            }
            let bits: u64 = received.iter().map(|p: &Parcel| u64::from(p.bytes) * 8).sum();
            // Never above its rate: all of it was served between the start and the last arrival.
            prop_assert!(bits as f64 <= 12e6 * now.secs_f64());
            let c = link.counters();
            prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered);
            prop_assert_eq!(c.delivered, received.len() as u64);
            let ids: Vec<u64> = received.iter().map(|p| p.id).collect();
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), ids.len(), "no packet twice");
            if !matches!(vary, Some(Delay::Reorder { .. })) {
                prop_assert_eq!(sorted, ids, "order kept");
            }
        }
    }
}
