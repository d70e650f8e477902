//! A link as a whole: what it reports, and its changes during a run.

use std::collections::BTreeMap;

use elephan_units::{Rate, Time};

use super::far::FarEnd;
use super::near::NearEnd;
use super::wire::Wire;
use crate::class_states::{ClassCounters, ClassQueue};
use crate::config::{LinkConfig, Loss};
use crate::ledger::{LinkCounters, Reason};
use crate::loss::Losses;
use crate::packet::Packet;
use crate::serializer::{Serializer, bytes_of};
use crate::statistics::QueueStatistics;
use crate::vary::Varied;
use crate::waiting::Waiting;

/// Both ends of a link at the same time, and the wire between them with all packets that the near end has given
/// to it.
pub struct View<'a, P: Packet> {
    /// The near end.
    pub near: &'a mut NearEnd<P>,
    /// The packets between.
    pub wire: &'a mut Wire<P>,
    /// The far end.
    pub far: &'a mut FarEnd<P>,
}

// ---- Reports ----

impl<P: Packet> View<'_, P> {
    /// Bytes that the transmitter has put on the wire by `now`. Waiting packets do not count; of the packet
    /// in service the part that has left counts, to the nearest byte.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        let near = &mut *self.near;
        near.serve(self.wire, now);
        let counters = &near.ledger.counters;
        let begun = counters.bytes_accepted - counters.bytes_discarded - near.waiting.bytes;
        if let Some(server) = &near.server {
            return begun - server.unsent(now);
        }
        let Some(rate) = near.service_rate else { return begun };
        let left = u128::from(near.next_start.since(now).picos()) * u128::from(rate.bits_per_sec());
        begun - bytes_of(left)
    }

    /// The packets that wait in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.near.waiting(self.wire, now)
    }

    /// Packets on the link: waiting, in service or propagating, including those that the wire will lose.
    #[cfg(test)]
    pub(super) fn in_transit(&self) -> u64 {
        let stored = self.near.queue.as_ref().map_or(0, |queue| queue.waiting().packets);
        let held = self.far.varied.as_ref().map_or(0, |varied| varied.len());
        (self.wire.len() + held) as u64 + stored
    }

    #[cfg(test)]
    pub(super) fn transmitter_is_busy(&mut self, now: Time) -> bool {
        self.near.next_start(self.wire, now) > now
    }

    /// The link's counters.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters { lost: self.far.lost, delivered: self.far.delivered, ..self.near.ledger.counters }
    }

    /// Bits that the rate has allowed by `now`, while the link was up; `None` if it has no rate.
    pub fn allowed_bits(&self, now: Time) -> Option<f64> {
        let near = &self.near;
        near.config.rate.map(|_| (near.allowed + self.allowed_since_change(now)) as f64 * 1e-12)
    }

    fn allowed_since_change(&self, now: Time) -> u128 {
        let is_up = self.near.ingress.as_ref().is_none_or(|ingress| !ingress.down);
        if let Some(schedule) = &self.near.config.schedule {
            let allowed = schedule.allowed(now).saturating_sub(schedule.allowed(self.near.allowed_until));
            return if is_up { allowed } else { 0 };
        }
        let rate = self.near.config.rate.filter(|_| is_up).map_or(0, Rate::bits_per_sec);
        u128::from(now.since(self.near.allowed_until).picos()) * u128::from(rate)
    }

    /// Counters of each class of a scheduler; empty for other disciplines.
    pub fn classes(&mut self, now: Time) -> Vec<ClassCounters> {
        self.near.serve(self.wire, now);
        let mut classes = Vec::new();
        if let Some(queue) = &self.near.queue {
            queue.count_classes(&mut classes);
        }
        classes
    }

    /// The queueing statistics.
    pub fn statistics(&self) -> &QueueStatistics {
        &self.near.statistics
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.near.config
    }

    /// The measuring window begins: [`View::statistics`] and [`View::earlier`] restart. Its packets are those
    /// offered from `first` on; all packets offered so far came before.
    pub fn measure(&mut self, first: Time) {
        self.near.statistics = QueueStatistics::new(first);
        self.near.unchecked = 0;
        self.near.ledger.first = first;
        self.near.ledger.earlier = LinkCounters::default();
        self.far.lost_earlier = 0;
        self.far.earlier = self.near.entered;
        self.wire.earlier.clear();
    }

    /// The counts of drops, losses and marks, since the measuring window began, of packets that had been
    /// offered before it.
    pub fn earlier(&self) -> LinkCounters {
        LinkCounters { lost: self.far.lost_earlier, ..self.near.ledger.earlier }
    }
}

// ---- Changes ----

/// The link must be configured for them beforehand, by [`LinkConfig::changes`].
impl<P: Packet> View<'_, P> {
    /// A new rate: the packet in service keeps the old one. A link with a schedule does not have one.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        self.begin_change(now);
        self.near.config.rate = Some(rate);
        self.near.serializer = Some(Serializer::new(rate));
        if let Some(queue) = &mut self.near.queue {
            queue.tune(rate);
        }
    }

    /// A new propagation delay, for packets that have not left the transmitter yet. Others keep the old one,
    /// and may be overtaken.
    pub fn set_delay(&mut self, delay: Time, now: Time) {
        self.near.advance(self.wire, now);
        let Self { near, wire, far } = self;
        while let Some(finish) = wire.front().map(|run| run.times.first()).filter(|&finish| finish <= now) {
            let arrival = finish.saturating_add(far.delay);
            let number = far.number();
            if let Some(packet) = far.off_the_wire(wire) {
                far.varied
                    .get_or_insert_with(|| Box::new(Varied::new(None, near.seed, near.index)))
                    .hold(packet, number, arrival);
            }
        }
        far.delay = delay;
        near.config.delay = delay;
    }

    /// A new loss model on the wire.
    pub fn set_loss(&mut self, loss: Option<Loss>) {
        let near = &mut *self.near;
        near.loss_changes += 1;
        self.far.losses = Losses::new(loss, near.seed, near.index | near.loss_changes << 32);
        near.config.loss = loss;
    }

    /// New weights for classes of a scheduler, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>, now: Time) {
        self.near.advance(self.wire, now);
        if let Some(queue) = &mut self.near.queue {
            queue.set_weights(weights);
            if let Some(rate) = self.near.config.rate {
                queue.tune(rate);
            }
        }
    }

    /// The link goes down and drops all its packets, or comes up again.
    pub fn set_up(&mut self, up: bool, now: Time) {
        self.begin_change(now);
        self.near.ingress.get_or_insert_default().down = !up;
        if up {
            return;
        }
        let near = &mut *self.near;
        if let Some(queue) = &mut near.queue {
            queue.clear(now, &mut near.ledger);
            near.waiting = queue.waiting();
        }
        // Bytes that had left the transmitter still count as transmitted.
        let transmitted = self.transmitted(now);
        let Self { near, wire, far } = self;
        let before: Vec<bool> =
            (far.number()..).take(wire.len()).map(|number| far.is_earlier(wire, number)).collect();
        let varied = far.varied.as_mut().map(|varied| varied.clear()).unwrap_or_default();
        let held: Vec<(bool, P)> =
            varied.into_iter().map(|(number, packet)| (far.is_earlier(wire, number), packet)).collect();
        for (is_earlier, packet) in before.into_iter().zip(wire.drain()).chain(held) {
            near.ledger.counters.drop(Reason::Down);
            if is_earlier {
                near.ledger.earlier.drop(Reason::Down);
            }
            if let Some(drops) = &mut near.ledger.drops {
                drops.push((now, packet));
            }
        }
        let free_at = near.server.as_mut().map_or(now, |server| server.clear(now));
        (near.free_at, near.next_start, near.entered) = (free_at, now, far.number());
        far.earlier = 0;
        let discarded = self.transmitted(now) - transmitted;
        self.near.ledger.counters.bytes_discarded += discarded;
    }

    /// The rate, or whether the link is up, changes at `now`.
    fn begin_change(&mut self, now: Time) {
        debug_assert!(self.near.config.changes, "a link that changes is configured so beforehand");
        self.near.advance(self.wire, now);
        self.near.allowed += self.allowed_since_change(now);
        self.near.allowed_until = now;
    }
}
