//! Active queue management (AQM) by the disciplines that decide when a packet arrives.

use elephan_units::{Rate, Seed, Time};

use crate::adaptive_red::AdaptiveRedState;
use crate::config::Limit;
use crate::packet::{Ecn, Packet};
use crate::pie::PieState;
use crate::queue::Queue;
use crate::red::RedState;
use crate::wred::WredState;

/// What waits for service in front of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets, the one in service not counted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Waiting {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }

    /// Whether a packet of `bytes` finds no room.
    #[inline]
    pub(crate) fn fills(&self, limit: Limit, bytes: u32) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        }
    }
}

/// What becomes of an arriving packet, if there is room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with a congestion mark.
    Mark,
    /// It is dropped early.
    Drop,
}

impl Verdict {
    /// What becomes of a packet that is to tell its sender of congestion: a mark instead of a drop, where it can carry one.
    #[inline]
    pub(crate) fn notify<P: Packet>(packet: &P, ecn: bool) -> Self {
        if ecn && packet.ecn() != Ecn::NotCapable { Self::Mark } else { Self::Drop }
    }
}

/// The queue when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Now.
    pub now: Time,
    /// What waits before the packet.
    pub waiting: Waiting,
    /// When all of that will have been served; when it lies in the past, the queue has been empty and idle since then.
    pub busy_until: Time,
}

/// The state of a discipline that decides when a packet arrives.
#[derive(Clone, Debug)]
pub(crate) enum EnqueueAqm {
    Threshold(u64),
    Red(RedState),
    AdaptiveRed(AdaptiveRedState),
    Wred(WredState),
    Pie(PieState),
}

impl EnqueueAqm {
    /// The state of `queue` at a transmitter of `rate`; none where it has none, or decides when packets leave.
    pub fn new(queue: &Queue, rate: Rate, seed: Seed, index: u64) -> Option<Self> {
        let stream = seed.stream("early drop on link", index);
        match queue {
            Queue::Threshold(threshold) => Some(Self::Threshold(threshold.packets)),
            Queue::Red(red) => Some(Self::Red(RedState::new(red, rate, stream))),
            Queue::AdaptiveRed(red) => Some(Self::AdaptiveRed(AdaptiveRedState::new(red, rate, stream))),
            Queue::Wred(wred) => Some(Self::Wred(WredState::new(wred, rate, stream))),
            Queue::Pie(pie) => Some(Self::Pie(PieState::new(pie, stream))),
            Queue::DropTail(_)
            | Queue::Codel(_)
            | Queue::FqCodel(_)
            | Queue::Drr(_)
            | Queue::Wrr(_)
            | Queue::Priority(_) => None,
        }
    }

    /// Decides on `packet`.
    #[inline]
    pub fn judge<P: Packet>(&mut self, packet: &P, moment: &Moment) -> Verdict {
        match self {
            Self::Threshold(packets) => {
                let marks = moment.waiting.packets >= *packets && packet.ecn() != Ecn::NotCapable;
                if marks { Verdict::Mark } else { Verdict::Accept }
            }
            Self::Red(red) => red.judge(packet, moment),
            Self::AdaptiveRed(red) => red.judge(packet, moment),
            Self::Wred(wred) => wred.judge(packet, moment),
            Self::Pie(pie) => pie.judge(packet, moment),
        }
    }

    /// The transmitter's rate changed: automatic settings follow it.
    pub fn tune(&mut self, rate: Rate) {
        match self {
            Self::Red(red) => red.tune(rate),
            Self::AdaptiveRed(red) => red.tune(rate),
            Self::Wred(wred) => wred.tune(rate),
            Self::Threshold(_) | Self::Pie(_) => {}
        }
    }
}
