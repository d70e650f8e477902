//! Input and verdict of a discipline that decides when a packet arrives.

use elephan_units::Time;

use crate::packet::{Ecn, Packet};
use crate::waiting::Waiting;

/// The fate of an arriving packet, if there is room for it.
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
    /// Treatment of a packet that is to signal congestion to its sender: a mark instead of a drop, where it can carry one.
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
