//! A link in one direction: a queue, a transmitter, a wire.
//!
//! The disciplines here decide when a packet arrives and serve in order. So the end of a packet's service is known when it
//! arrives, and packets that wait and packets that propagate stand in one ring, in order; a cursor tells them apart. A link
//! needs one event at a time.
//!
//! A discipline that decides when a packet leaves (CoDel), or in which order (fair queueing), keeps its packets itself and
//! gives the transmitter one at a time: [`Link::next_event`] is then the end of service, if that comes before the next
//! arrival, and [`Link::receive`] fetches the packet that is served next into the ring. A new rate concerns the packets behind
//! the cursor, whose times it shifts; before a new delay, what is on the wire moves to the side heap with its old one.

use std::collections::VecDeque;

use elephan_units::{Seed, Time};

use crate::config::LinkConfig;
use crate::loss::Losses;
use crate::packet::Packet;
use crate::queue::{Verdict, Waiting, judge};
use crate::serializer::{PICOS_BITS, Serializer};
use crate::statistics::QueueStatistics;
use crate::vary::Varied;

/// What a link has counted; all only grow. Every packet that was offered is in exactly one of
/// `dropped`, `lost`, `delivered`, or still on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets that the queue refused for want of room.
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
    /// When the transmitter ends with it.
    finish: Time,
    packet: P,
}

/// A link in one direction.
pub struct Link<P> {
    /// Packets in order of service; those before `served` have begun to be served.
    ring: VecDeque<Entry<P>>,
    served: usize,
    /// When the last of these leaves the transmitter, and the next begins.
    next_start: Time,
    /// When the transmitter has nothing more to do.
    free_at: Time,
    waiting: Waiting,
    serializer: Option<Serializer>,
    losses: Losses,
    varied: Option<Box<Varied<P>>>,
    counters: LinkCounters,
    statistics: QueueStatistics,
    config: LinkConfig,
}

impl<P: Packet> Link<P> {
    /// Link number `index` of a run.
    pub fn new(config: LinkConfig, seed: Seed, index: u64) -> Self {
        Self {
            ring: VecDeque::new(),
            served: 0,
            next_start: Time::ZERO,
            free_at: Time::ZERO,
            waiting: Waiting::default(),
            serializer: config.rate.map(Serializer::new),
            losses: Losses::new(config.loss, seed, index),
            varied: config.vary.map(|vary| Box::new(Varied::new(vary, seed, index))),
            counters: LinkCounters::default(),
            statistics: QueueStatistics::default(),
            config,
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
        self.counters.bytes_accepted += u64::from(bytes);
        let start = self.free_at.max(now);
        let service = self.serializer.as_mut().map_or(Time::ZERO, |serializer| serializer.next(bytes));
        let finish = start.saturating_add(service);
        self.free_at = finish;
        if start > now {
            self.waiting.packets += 1;
            self.waiting.bytes += u64::from(bytes);
        } else {
            self.served += 1;
            self.next_start = finish;
        }
        self.statistics.record(start - now, self.waiting.packets, now);
        self.ring.push_back(Entry { finish, packet });
        true
    }

    /// Takes out of the queue what has begun to be served by `now`.
    #[inline]
    fn serve(&mut self, now: Time) {
        while self.next_start <= now
            && let Some(entry) = self.ring.get(self.served)
        {
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(entry.packet.bytes());
            self.next_start = entry.finish;
            self.served += 1;
        }
    }

    /// When the head of the ring comes to the end of the wire.
    #[inline]
    fn head(&self) -> Time {
        self.ring.front().map_or(Time::MAX, |entry| entry.finish.saturating_add(self.config.delay))
    }

    /// Whether a packet that is sent now brings the next event forward.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.ring.is_empty()
    }

    /// When [`Link::receive`] is to be called next; `Time::MAX` when nothing is on its way.
    #[inline]
    pub fn next_event(&self) -> Time {
        match &self.varied {
            None => self.head(),
            Some(varied) => self.head().min(varied.next()),
        }
    }

    /// The next packet that has reached the far end by `now`; call it while [`Link::next_event`] is not later than `now`.
    #[inline]
    pub fn receive(&mut self, now: Time) -> Option<P> {
        if self.varied.is_some() {
            return self.receive_varied(now);
        }
        while self.head() <= now {
            if let Some(packet) = self.off_the_wire() {
                self.counters.delivered += 1;
                return Some(packet);
            }
        }
        None
    }

    fn receive_varied(&mut self, now: Time) -> Option<P> {
        loop {
            let arrival = self.head();
            let varied = self.varied.as_mut()?;
            if let Some(packet) = varied.take(now.min(arrival)) {
                self.counters.delivered += 1;
                return Some(packet);
            }
            if arrival > now {
                return None;
            }
            if let Some(packet) = self.off_the_wire() {
                self.varied.as_mut()?.hold(packet, arrival);
            }
        }
    }

    /// Takes the head of the ring off the wire, when its time has come; none where the wire lost it.
    #[inline]
    fn off_the_wire(&mut self) -> Option<P> {
        let entry = self.ring.pop_front()?;
        if self.served > 0 {
            self.served -= 1;
        } else {
            // It has been served by now, though nobody looked since.
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(entry.packet.bytes());
            self.next_start = entry.finish;
        }
        if self.losses.loses() {
            self.counters.lost += 1;
            return None;
        }
        Some(entry.packet)
    }

    /// What waits in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.serve(now);
        self.waiting
    }

    /// Bytes that the transmitter has put on the wire by `now`: none of what waits, and of the packet in service what
    /// has left, to the nearest byte.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.serve(now);
        let begun = self.counters.bytes_accepted - self.waiting.bytes;
        let Some(rate) = self.config.rate else { return begun };
        let left = u128::from(self.next_start.since(now).picos()) * u128::from(rate.bits_per_sec());
        begun - ((left + PICOS_BITS / 2) / PICOS_BITS) as u64
    }

    /// Packets on the link: waiting, in service or propagating, those included that the wire will lose.
    pub fn in_transit(&self) -> u64 {
        (self.ring.len() + self.varied.as_ref().map_or(0, |varied| varied.len())) as u64
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
    use crate::config::{Delay, Limit, Loss, Queue};
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
        assert_eq!(link.next_event(), Time::from_millis(11));
        assert_eq!(link.receive(Time::from_micros(10_999)), None);
        assert_eq!(link.receive(Time::from_millis(11)).map(|p| p.id), Some(0));
        assert_eq!(link.receive(Time::from_millis(11)), None);
        assert_eq!(link.next_event(), Time::from_millis(12));
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
            while link.next_event() < Time::MAX {
                now = link.next_event();
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
