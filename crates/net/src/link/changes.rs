//! Changes of a link during a run. The link must be configured for them beforehand, by
//! [`LinkConfig::changes`](crate::LinkConfig::changes).

use std::collections::BTreeMap;

use elephan_units::{Rate, Time};

use super::Link;
use crate::config::Loss;
use crate::ledger::Reason;
use crate::loss::Losses;
use crate::packet::Packet;
use crate::serializer::Serializer;
use crate::vary::Varied;

impl<P: Packet> Link<P> {
    /// A new rate: the packet in service keeps the old one.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        debug_assert!(self.config.changes, "a link that changes is configured so beforehand");
        self.advance(now);
        self.allowed += self.allowed_since_change(now);
        self.allowed_until = now;
        self.config.rate = Some(rate);
        self.serializer = Some(Serializer::new(rate));
        if let Some(queue) = &mut self.queue {
            queue.tune(rate);
        }
    }

    /// A new propagation delay, for packets that have not left the transmitter yet. Others keep the old one,
    /// and may be overtaken.
    pub fn set_delay(&mut self, delay: Time, now: Time) {
        self.advance(now);
        let (seed, index) = (self.seed, self.index);
        while let Some(entry) = self.ring.front().filter(|entry| entry.finish <= now) {
            let arrival = entry.finish.saturating_add(self.config.delay);
            let number = self.number();
            if let Some(packet) = self.off_the_wire() {
                self.varied
                    .get_or_insert_with(|| Box::new(Varied::new(None, seed, index)))
                    .hold(packet, number, arrival);
            }
        }
        self.config.delay = delay;
    }

    /// A new loss model on the wire.
    pub fn set_loss(&mut self, loss: Option<Loss>) {
        self.loss_changes += 1;
        self.losses = Losses::new(loss, self.seed, self.index | self.loss_changes << 32);
        self.config.loss = loss;
    }

    /// New weights for classes of a scheduler, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>, now: Time) {
        self.advance(now);
        if let Some(queue) = &mut self.queue {
            queue.set_weights(weights);
            if let Some(rate) = self.config.rate {
                queue.tune(rate);
            }
        }
    }

    /// The link goes down and drops all its packets, or comes up again.
    pub fn set_up(&mut self, up: bool, now: Time) {
        debug_assert!(self.config.changes, "a link that changes is configured so beforehand");
        self.advance(now);
        self.allowed += self.allowed_since_change(now);
        self.allowed_until = now;
        self.ingress.get_or_insert_default().down = !up;
        if up {
            return;
        }
        if let Some(queue) = &mut self.queue {
            queue.clear(now, &mut self.ledger);
            self.waiting = queue.waiting();
        }
        // Bytes that had left the transmitter still count as transmitted.
        let transmitted = self.transmitted(now);
        let ring: Vec<_> = (self.number()..).zip(self.ring.drain(..).map(|entry| entry.packet)).collect();
        let varied = self.varied.as_mut().map(|varied| varied.clear()).unwrap_or_default();
        for (number, packet) in ring.into_iter().chain(varied) {
            self.ledger.counters.drop(Reason::Down);
            if self.is_earlier(number) {
                self.ledger.earlier.drop(Reason::Down);
            }
            if let Some(drops) = &mut self.ledger.drops {
                drops.push((now, packet));
            }
        }
        (self.served, self.free_at, self.next_start) = (0, now, now);
        self.earlier = (0, Vec::new());
        self.ledger.counters.bytes_discarded += self.transmitted(now) - transmitted;
    }
}
