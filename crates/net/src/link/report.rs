//! What a link reports: its counters, the packets that it dropped or lost, and its queueing statistics.

use elephan_units::{Rate, Time};

use super::Link;
use crate::classes::ClassCounters;
use crate::ledger::LinkCounters;
use crate::packet::Packet;
use crate::serializer::PICOS_BITS;
use crate::statistics::QueueStatistics;

impl<P: Packet> Link<P> {
    /// Bytes that the transmitter has put on the wire by `now`. Waiting packets do not count; of the packet
    /// in service the part that has left counts, to the nearest byte.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.serve(now);
        let counters = &self.ledger.counters;
        let begun = counters.bytes_accepted - counters.bytes_discarded - self.waiting.bytes;
        let Some(rate) = self.service_rate else { return begun };
        let left = u128::from(self.next_start.since(now).picos()) * u128::from(rate.bits_per_sec());
        begun - ((left + PICOS_BITS / 2) / PICOS_BITS) as u64
    }

    /// Packets on the link: waiting, in service or propagating, including those that the wire will lose.
    pub fn in_transit(&self) -> u64 {
        let stored = self.queue.as_ref().map_or(0, |queue| queue.waiting().packets);
        (self.ring.len() + self.varied.as_ref().map_or(0, |varied| varied.len())) as u64 + stored
    }

    /// The link's counters.
    pub fn counters(&self) -> &LinkCounters {
        &self.ledger.counters
    }

    /// Bits that the rate has allowed by `now`, while the link was up; `None` if it has no rate.
    pub fn allowed_bits(&self, now: Time) -> Option<f64> {
        self.config.rate.map(|_| (self.allowed + self.allowed_since_change(now)) as f64 * 1e-12)
    }

    pub(super) fn allowed_since_change(&self, now: Time) -> u128 {
        let is_up = self.ingress.as_ref().is_none_or(|ingress| !ingress.down);
        let rate = self.config.rate.filter(|_| is_up).map_or(0, Rate::bits_per_sec);
        u128::from(now.since(self.allowed_until).picos()) * u128::from(rate)
    }

    #[cfg(test)]
    pub(super) fn transmitter_is_busy(&mut self, now: Time) -> bool {
        self.serve(now);
        self.next_start > now
    }

    /// Counters of each class of a scheduler; empty for other disciplines.
    pub fn classes(&mut self, now: Time) -> Vec<ClassCounters> {
        self.serve(now);
        let mut classes = Vec::new();
        if let Some(queue) = &self.queue {
            queue.count_classes(&mut classes);
        }
        classes
    }

    /// From now on, keeps the packets that are dropped after they were accepted, for [`Link::drops`].
    pub fn keep_drops(&mut self) {
        self.ledger.drops = Some(Vec::new());
    }

    /// The accepted packets that were dropped since the last call, with the times of the drops.
    pub fn drops(&mut self) -> Vec<(Time, P)> {
        self.ledger.drops.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on, keeps the packets that the wire loses, for [`Link::lost`].
    pub fn keep_lost(&mut self) {
        self.ledger.lost = Some(Vec::new());
    }

    /// The packets that the wire has lost since the last call.
    pub fn lost(&mut self) -> Vec<P> {
        self.ledger.lost.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The queueing statistics.
    pub fn statistics(&self) -> &QueueStatistics {
        &self.statistics
    }

    /// The measuring window begins: [`Link::statistics`] and [`Link::earlier`] restart. Its packets are those
    /// offered from `first` on; all packets offered so far came before.
    pub fn measure(&mut self, first: Time) {
        self.statistics = QueueStatistics::new(first);
        self.ledger.first = first;
        self.ledger.earlier = LinkCounters::default();
        self.earlier = (self.number() + self.ring.len() as u64, Vec::new());
    }

    /// The counts of drops, losses and marks, since the measuring window began, of packets that had been
    /// offered before it.
    pub fn earlier(&self) -> &LinkCounters {
        &self.ledger.earlier
    }
}
