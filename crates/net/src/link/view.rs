//! A link as a whole: what it reports, and its changes during a run.

use std::collections::BTreeMap;

use elephan_units::{Rate, Time};

use super::head::Head;
use super::tail::Tail;
use super::wire::Wire;
use crate::classes::ClassCounters;
use crate::config::{LinkConfig, Loss};
use crate::ledger::{LinkCounters, Reason};
use crate::loss::Losses;
use crate::packet::Packet;
use crate::serializer::{PICOS_BITS, Serializer};
use crate::statistics::QueueStatistics;
use crate::vary::Varied;
use crate::waiting::Waiting;

/// Both ends of a link at the same time, and the wire between them with all packets that the near end has given
/// to it.
pub struct View<'a, P> {
    /// The near end.
    pub tail: &'a mut Tail<P>,
    /// The packets between.
    pub wire: &'a mut Wire<P>,
    /// The far end.
    pub head: &'a mut Head<P>,
}

// ---- Reports ----

impl<P: Packet> View<'_, P> {
    /// Bytes that the transmitter has put on the wire by `now`. Waiting packets do not count; of the packet
    /// in service the part that has left counts, to the nearest byte.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        let tail = &mut *self.tail;
        tail.serve(self.wire, now);
        let counters = &tail.ledger.counters;
        let begun = counters.bytes_accepted - counters.bytes_discarded - tail.waiting.bytes;
        if let Some(server) = &tail.server {
            return begun - server.unsent(now);
        }
        let Some(rate) = tail.service_rate else { return begun };
        let left = u128::from(tail.next_start.since(now).picos()) * u128::from(rate.bits_per_sec());
        begun - ((left + PICOS_BITS / 2) / PICOS_BITS) as u64
    }

    /// The packets that wait in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.tail.waiting(self.wire, now)
    }

    /// Packets on the link: waiting, in service or propagating, including those that the wire will lose.
    #[cfg(test)]
    pub(super) fn in_transit(&self) -> u64 {
        let stored = self.tail.queue.as_ref().map_or(0, |queue| queue.waiting().packets);
        let held = self.head.varied.as_ref().map_or(0, |varied| varied.len());
        (self.wire.len() + held) as u64 + stored
    }

    #[cfg(test)]
    pub(super) fn transmitter_is_busy(&mut self, now: Time) -> bool {
        self.tail.next_start(self.wire, now) > now
    }

    /// The link's counters.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters { lost: self.head.lost, delivered: self.head.delivered, ..self.tail.ledger.counters }
    }

    /// Bits that the rate has allowed by `now`, while the link was up; `None` if it has no rate.
    pub fn allowed_bits(&self, now: Time) -> Option<f64> {
        let tail = &self.tail;
        tail.config.rate.map(|_| (tail.allowed + self.allowed_since_change(now)) as f64 * 1e-12)
    }

    fn allowed_since_change(&self, now: Time) -> u128 {
        let is_up = self.tail.ingress.as_ref().is_none_or(|ingress| !ingress.down);
        if let Some(schedule) = &self.tail.config.schedule {
            let allowed = schedule.allowed(now).saturating_sub(schedule.allowed(self.tail.allowed_until));
            return if is_up { allowed } else { 0 };
        }
        let rate = self.tail.config.rate.filter(|_| is_up).map_or(0, Rate::bits_per_sec);
        u128::from(now.since(self.tail.allowed_until).picos()) * u128::from(rate)
    }

    /// Counters of each class of a scheduler; empty for other disciplines.
    pub fn classes(&mut self, now: Time) -> Vec<ClassCounters> {
        self.tail.serve(self.wire, now);
        let mut classes = Vec::new();
        if let Some(queue) = &self.tail.queue {
            queue.count_classes(&mut classes);
        }
        classes
    }

    /// The queueing statistics.
    pub fn statistics(&self) -> &QueueStatistics {
        &self.tail.statistics
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.tail.config
    }

    /// The measuring window begins: [`View::statistics`] and [`View::earlier`] restart. Its packets are those
    /// offered from `first` on; all packets offered so far came before.
    pub fn measure(&mut self, first: Time) {
        self.tail.statistics = QueueStatistics::new(first);
        self.tail.ledger.first = first;
        self.tail.ledger.earlier = LinkCounters::default();
        self.head.lost_earlier = 0;
        self.head.earlier = self.tail.entered;
        self.wire.earlier.clear();
    }

    /// The counts of drops, losses and marks, since the measuring window began, of packets that had been
    /// offered before it.
    pub fn earlier(&self) -> LinkCounters {
        LinkCounters { lost: self.head.lost_earlier, ..self.tail.ledger.earlier }
    }
}

// ---- Changes ----

/// The link must be configured for them beforehand, by [`LinkConfig::changes`].
impl<P: Packet> View<'_, P> {
    /// A new rate: the packet in service keeps the old one. A link with a schedule does not have one.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        self.begin_change(now);
        self.tail.config.rate = Some(rate);
        self.tail.serializer = Some(Serializer::new(rate));
        if let Some(queue) = &mut self.tail.queue {
            queue.tune(rate);
        }
    }

    /// A new propagation delay, for packets that have not left the transmitter yet. Others keep the old one,
    /// and may be overtaken.
    pub fn set_delay(&mut self, delay: Time, now: Time) {
        self.tail.advance(self.wire, now);
        let Self { tail, wire, head } = self;
        while let Some(finish) = wire.front().map(|flying| flying.finish).filter(|&finish| finish <= now) {
            let arrival = finish.saturating_add(head.delay);
            let number = head.number();
            if let Some(packet) = head.off_the_wire(wire) {
                head.varied
                    .get_or_insert_with(|| Box::new(Varied::new(None, tail.seed, tail.index)))
                    .hold(packet, number, arrival);
            }
        }
        head.delay = delay;
        tail.config.delay = delay;
    }

    /// A new loss model on the wire.
    pub fn set_loss(&mut self, loss: Option<Loss>) {
        let tail = &mut *self.tail;
        tail.loss_changes += 1;
        self.head.losses = Losses::new(loss, tail.seed, tail.index | tail.loss_changes << 32);
        tail.config.loss = loss;
    }

    /// New weights for classes of a scheduler, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>, now: Time) {
        self.tail.advance(self.wire, now);
        if let Some(queue) = &mut self.tail.queue {
            queue.set_weights(weights);
            if let Some(rate) = self.tail.config.rate {
                queue.tune(rate);
            }
        }
    }

    /// The link goes down and drops all its packets, or comes up again.
    pub fn set_up(&mut self, up: bool, now: Time) {
        self.begin_change(now);
        self.tail.ingress.get_or_insert_default().down = !up;
        if up {
            return;
        }
        let tail = &mut *self.tail;
        if let Some(queue) = &mut tail.queue {
            queue.clear(now, &mut tail.ledger);
            tail.waiting = queue.waiting();
        }
        // Bytes that had left the transmitter still count as transmitted.
        let transmitted = self.transmitted(now);
        let Self { tail, wire, head } = self;
        let before: Vec<bool> =
            (head.number()..).take(wire.len()).map(|number| head.is_earlier(wire, number)).collect();
        let varied = head.varied.as_mut().map(|varied| varied.clear()).unwrap_or_default();
        let held: Vec<(bool, P)> =
            varied.into_iter().map(|(number, packet)| (head.is_earlier(wire, number), packet)).collect();
        for (is_earlier, packet) in before.into_iter().zip(wire.drain()).chain(held) {
            tail.ledger.counters.drop(Reason::Down);
            if is_earlier {
                tail.ledger.earlier.drop(Reason::Down);
            }
            if let Some(drops) = &mut tail.ledger.drops {
                drops.push((now, packet));
            }
        }
        let free_at = tail.server.as_mut().map_or(now, |server| server.clear(now));
        (tail.free_at, tail.next_start, tail.entered) = (free_at, now, head.number());
        head.earlier = 0;
        let discarded = self.transmitted(now) - transmitted;
        self.tail.ledger.counters.bytes_discarded += discarded;
    }

    /// The rate, or whether the link is up, changes at `now`.
    fn begin_change(&mut self, now: Time) {
        debug_assert!(self.tail.config.changes, "a link that changes is configured so beforehand");
        self.tail.advance(self.wire, now);
        self.tail.allowed += self.allowed_since_change(now);
        self.tail.allowed_until = now;
    }
}
