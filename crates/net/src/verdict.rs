//! Input and verdict of a discipline that decides when a packet arrives.

use elephan_units::Time;

use crate::packet::{Ecn, Head};
use crate::waiting::Waiting;

/// The decision on an arriving packet, if there is room for it.
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
    /// The decision for a packet that is to signal congestion to its sender: a mark if it is ECN-capable,
    /// otherwise a drop.
    #[inline]
    pub(crate) fn notify<H: Head>(packet: &H, ecn: bool) -> Self {
        if ecn && packet.ecn() != Ecn::NotCapable { Self::Mark } else { Self::Drop }
    }
}

/// The state of the queue when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The current time.
    pub now: Time,
    /// The packets waiting before this one.
    pub waiting: Waiting,
    /// When all of them will have been served; if this is in the past, the queue has been empty and idle
    /// since then.
    pub busy_until: Time,
}
