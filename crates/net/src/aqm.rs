//! Active queue management (AQM) by the disciplines that decide when a packet arrives.

use elephan_units::{Rate, Seed};

use crate::adaptive_red::AdaptiveRedState;
use crate::packet::{Ecn, Packet};
use crate::pie::PieState;
use crate::queue::Queue;
use crate::red::RedState;
use crate::verdict::{Moment, Verdict};
use crate::wred::WredState;

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
