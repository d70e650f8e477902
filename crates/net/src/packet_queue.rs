//! Queues that keep their packets until the transmitter takes one: for disciplines that decide when a packet
//! leaves, or in which order.

use std::collections::BTreeMap;

use elephan_units::{Rate, Seed, Time};

use crate::class_states::{ClassCounters, ClassQueue};
use crate::codel::Control;
use crate::drr::DrrState;
use crate::fq_codel::FqCodelState;
use crate::ledger::{Ledger, Reason};
use crate::packet::Packet;
use crate::packets::{Packets, Queued};
use crate::priority::PriorityState;
use crate::queue::{EnqueueAqm, Queue};
use crate::verdict::{Moment, Verdict};
use crate::waiting::{Limit, Waiting};
use crate::wrr::WrrState;

/// A queue, and the packets in it.
pub(crate) enum PacketQueue<P> {
    Fifo(Fifo<P>),
    FqCodel(FqCodelState<P>),
    Drr(DrrState<P, Self>),
    Wrr(WrrState<Self>),
    Priority(PriorityState<Self>),
}

impl<P: Packet> PacketQueue<P> {
    /// Whether `queue` cannot determine at a packet's arrival when it will leave.
    pub fn is_needed(queue: &Queue) -> bool {
        matches!(
            queue,
            Queue::Codel(_) | Queue::FqCodel(_) | Queue::Drr(_) | Queue::Wrr(_) | Queue::Priority(_)
        )
    }

    /// Drops all packets.
    pub fn clear(&mut self, now: Time, ledger: &mut Ledger<P>) {
        ledger.clearing = true;
        // Packets that a discipline drops early meanwhile are gone too.
        while let Some(stored) = self.dequeue(now, ledger) {
            ledger.discard(&stored, Reason::Down, now);
        }
        ledger.clearing = false;
    }
}

impl<P: Packet> ClassQueue for PacketQueue<P> {
    type Packet = P;

    fn new(queue: &Queue, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        match queue {
            Queue::FqCodel(config) => Self::FqCodel(FqCodelState::new(config, limit, seed, index)),
            Queue::Drr(config) => Self::Drr(DrrState::new(config, limit, rate, seed, index)),
            Queue::Wrr(config) => Self::Wrr(WrrState::new(config, limit, rate, seed, index)),
            Queue::Priority(config) => Self::Priority(PriorityState::new(config, limit, rate, seed, index)),
            // A single queue in order, with decisions at its ends.
            _ => Self::Fifo(Fifo::new(queue, limit, rate, seed, index)),
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, packet: P, now: Time, ledger: &mut Ledger<P>) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.enqueue(packet, now, ledger),
            Self::FqCodel(fq) => fq.enqueue(packet, now, ledger),
            Self::Drr(drr) => drr.enqueue(packet, now, ledger),
            Self::Wrr(wrr) => wrr.classes.enqueue(packet, now, ledger).is_some(),
            Self::Priority(priority) => priority.classes.enqueue(packet, now, ledger).is_some(),
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        match self {
            Self::Fifo(fifo) => fifo.dequeue(now, ledger),
            Self::FqCodel(fq) => fq.dequeue(now, ledger),
            Self::Drr(drr) => drr.dequeue(now, ledger),
            Self::Wrr(wrr) => wrr.dequeue(now, ledger),
            Self::Priority(priority) => priority.dequeue(now, ledger),
        }
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        match self {
            Self::Fifo(fifo) => fifo.packets.packets.front().map(|stored| stored.packet.bytes()),
            _ => (self.waiting().packets > 0).then_some(1),
        }
    }

    #[inline]
    fn waiting(&self) -> Waiting {
        match self {
            Self::Fifo(fifo) => fifo.waiting,
            Self::FqCodel(fq) => fq.waiting(),
            Self::Drr(drr) => drr.waiting(),
            Self::Wrr(wrr) => wrr.classes.waiting(),
            Self::Priority(priority) => priority.classes.waiting(),
        }
    }

    fn tune(&mut self, rate: Rate) {
        match self {
            Self::Fifo(Fifo { aqm, .. }) => {
                if let Some(aqm) = aqm {
                    aqm.tune(rate);
                }
            }
            Self::FqCodel(_) => {}
            Self::Drr(drr) => drr.tune(rate),
            Self::Wrr(wrr) => wrr.classes.tune(rate),
            Self::Priority(priority) => priority.classes.tune(rate),
        }
    }

    fn set_weights(&mut self, weights: &BTreeMap<String, f64>) {
        match self {
            Self::Fifo(_) | Self::FqCodel(_) => {}
            Self::Drr(drr) => drr.set_weights(weights),
            Self::Wrr(wrr) => wrr.classes.set_weights(weights),
            Self::Priority(priority) => priority.classes.set_weights(weights),
        }
    }

    fn count_classes(&self, counters: &mut Vec<ClassCounters>) {
        match self {
            Self::Fifo(_) | Self::FqCodel(_) => {}
            Self::Drr(drr) => drr.count_classes(counters),
            Self::Wrr(wrr) => wrr.classes.count(counters),
            Self::Priority(priority) => priority.classes.count(counters),
        }
    }
}

/// Packets in order; the decision is made at their arrival, or by CoDel when they leave.
pub(crate) struct Fifo<P> {
    packets: Packets<P>,
    pub waiting: Waiting,
    limit: Limit,
    aqm: Option<Box<EnqueueAqm>>,
    codel: Option<Box<Control>>,
    /// The waiting time of the last packet served, and when the last of all was taken.
    last_delay: Time,
    emptied: Time,
}

impl<P: Packet> Fifo<P> {
    fn new(queue: &Queue, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        let codel = match queue {
            Queue::Codel(codel) => Some(Box::new(Control::new(*codel))),
            _ => None,
        };
        Self {
            packets: Packets::new(),
            waiting: Waiting::default(),
            limit,
            aqm: EnqueueAqm::new(queue, rate, seed, index).map(Box::new),
            codel,
            last_delay: Time::ZERO,
            emptied: Time::ZERO,
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, mut packet: P, now: Time, ledger: &mut Ledger<P>) -> bool {
        let mut verdict = Verdict::Accept;
        if let Some(aqm) = &mut self.aqm {
            let busy_until =
                if self.waiting.packets == 0 { self.emptied } else { now.saturating_add(self.last_delay) };
            verdict = aqm.judge(&packet, &Moment { now, waiting: self.waiting, busy_until });
        }
        if verdict == Verdict::Drop || self.waiting.fills(self.limit, packet.bytes()) {
            let reason = if verdict == Verdict::Drop { Reason::Early } else { Reason::Full };
            ledger.counters.drop(reason);
            return false;
        }
        if verdict == Verdict::Mark {
            packet.mark();
            ledger.counters.marked += 1;
        }
        self.packets.push(packet, now);
        self.recount();
        true
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let stored = match &mut self.codel {
            Some(codel) => codel.dequeue(&mut self.packets, now, ledger),
            None => self.packets.pop(),
        };
        self.recount();
        if self.waiting.packets == 0 {
            self.emptied = now;
        }
        if let Some(stored) = &stored {
            self.last_delay = now.since(stored.arrived);
        }
        stored
    }

    #[inline]
    fn recount(&mut self) {
        self.waiting = Waiting { packets: self.packets.packets.len() as u64, bytes: self.packets.bytes };
    }
}
