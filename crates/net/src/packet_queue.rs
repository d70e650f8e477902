//! Queues that keep their packets until the transmitter takes one: for disciplines that decide when a packet
//! leaves, or in which order.

use std::collections::BTreeMap;

use elephan_units::{Rate, Seed, Time};

use crate::class_states::{ClassCounters, ClassQueue};
use crate::codel::{Codel, Control};
use crate::drr::DrrState;
use crate::fq_codel::FqCodelState;
use crate::ledger::{Ledger, Reason};
use crate::packet::{Head, Packet};
use crate::packets::Packets;
use crate::priority::PriorityState;
use crate::queue::{EnqueueAqm, Queue};
use crate::verdict::{Moment, Verdict};
use crate::waiting::{Limit, Waiting};
use crate::wrr::WrrState;

/// A queue of packets that the ledger keeps.
pub(crate) enum PacketQueue {
    Fifo(Fifo),
    FqCodel(FqCodelState),
    Drr(DrrState<Self>),
    Wrr(WrrState<Self>),
    Priority(PriorityState<Self>),
}

impl PacketQueue {
    /// Whether `queue` cannot determine at a packet's arrival when it will leave.
    pub fn is_needed(queue: &Queue) -> bool {
        matches!(
            queue,
            Queue::Codel(_) | Queue::FqCodel(_) | Queue::Drr(_) | Queue::Wrr(_) | Queue::Priority(_)
        )
    }

    /// Drops all packets.
    pub fn clear<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) {
        ledger.clearing = true;
        // Packets that a discipline drops early meanwhile are gone too.
        while let Some(place) = self.dequeue(now, ledger) {
            ledger.discard(place, Reason::Down, now);
        }
        ledger.clearing = false;
    }
}

impl ClassQueue for PacketQueue {
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
    fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.enqueue(place, now, ledger),
            Self::FqCodel(fq) => fq.enqueue(place, now, ledger),
            Self::Drr(drr) => drr.enqueue(place, now, ledger),
            Self::Wrr(wrr) => wrr.classes.enqueue(place, now, ledger).is_some(),
            Self::Priority(priority) => priority.classes.enqueue(place, now, ledger).is_some(),
        }
    }

    #[inline(always)]
    fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        match self {
            Self::Fifo(fifo) => fifo.dequeue(now, ledger),
            Self::FqCodel(fq) => fq.dequeue(now, ledger),
            Self::Drr(drr) => drr.dequeue(now, ledger),
            Self::Wrr(wrr) => wrr.dequeue(now, ledger),
            Self::Priority(priority) => priority.dequeue(now, ledger),
        }
    }

    #[inline]
    fn head_bytes<P: Packet>(&self, ledger: &Ledger<P>) -> Option<u32> {
        match self {
            Self::Fifo(fifo) => fifo.packets.front().map(|place| ledger.packets.at(place).head.bytes()),
            _ => (self.waiting().packets > 0).then_some(1),
        }
    }

    #[inline]
    fn waiting(&self) -> Waiting {
        match self {
            Self::Fifo(fifo) => fifo.packets.waiting,
            Self::FqCodel(fq) => fq.waiting,
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
pub(crate) struct Fifo {
    packets: Packets,
    limit: Limit,
    aqm: Option<Box<EnqueueAqm>>,
    codel: Option<Box<(Codel, Control)>>,
    /// The waiting time of the last packet served, and when the last of all was taken.
    last_delay: Time,
    emptied: Time,
}

impl Fifo {
    fn new(queue: &Queue, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        let codel = match queue {
            Queue::Codel(codel) => Some(Box::new((*codel, Control::default()))),
            _ => None,
        };
        Self {
            packets: Packets::default(),
            limit,
            aqm: EnqueueAqm::new(queue, rate, seed, index).map(Box::new),
            codel,
            last_delay: Time::ZERO,
            emptied: Time::ZERO,
        }
    }

    #[inline(always)]
    fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        let (head, waiting) = (&mut ledger.packets.at_mut(place).head, self.packets.waiting);
        let mut verdict = Verdict::Accept;
        if let Some(aqm) = &mut self.aqm {
            let busy_until =
                if waiting.packets == 0 { self.emptied } else { now.saturating_add(self.last_delay) };
            verdict = aqm.judge(head, &Moment { now, waiting, busy_until });
        }
        if verdict == Verdict::Drop || waiting.fills(self.limit, head.bytes()) {
            let reason = if verdict == Verdict::Drop { Reason::Early } else { Reason::Full };
            ledger.counters.drop(reason);
            return false;
        }
        if verdict == Verdict::Mark {
            head.mark();
            ledger.counters.marked += 1;
        }
        self.packets.push(place, &mut ledger.packets);
        true
    }

    #[inline(always)]
    fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        let place = match self.codel.as_deref_mut() {
            Some((codel, control)) => control.dequeue(codel, &mut self.packets, now, ledger),
            None => self.packets.pop(&ledger.packets),
        };
        if self.packets.waiting.packets == 0 {
            self.emptied = now;
        }
        if let Some(place) = place {
            self.last_delay = now.since(ledger.packets.at(place).arrived);
        }
        place
    }
}
