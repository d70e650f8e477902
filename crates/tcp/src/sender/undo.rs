//! Undo of a reduction that D-SACK shows to have been spurious (RFC 3708, section 2): every retransmission
//! since that reduction was reported as a duplicate.

/// State of the retransmissions since the first reduction of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// Whether the last reduction was for a loss, and may be undone.
    armed: bool,
    /// The retransmitted data; `None` if nothing was retransmitted.
    sent_again: Option<SentAgain>,
    /// The last report. It is kept because the network may duplicate the report too.
    last: (u64, u64),
}

/// The retransmitted data.
#[derive(Clone, Copy, Debug)]
struct SentAgain {
    /// Number of retransmissions, less those reported as duplicates.
    unreported: u32,
    /// All retransmissions lie within these offsets. Duplicates outside them were made by the network.
    from: u64,
    to: u64,
}

impl Undo {
    /// The window was reduced. `first` says whether this was the first reduction of the recovery; the other
    /// argument says whether the reduction may prove spurious.
    pub fn on_reduction(&mut self, first: bool, may_be_spurious: bool) {
        if first {
            self.sent_again = None;
        }
        self.armed = may_be_spurious;
    }

    /// `[left, right)` was retransmitted.
    pub fn on_retransmission(&mut self, left: u64, right: u64) {
        let before = self.sent_again.unwrap_or(SentAgain { unreported: 0, from: left, to: right });
        self.sent_again = Some(SentAgain {
            unreported: before.unreported + 1,
            from: before.from.min(left),
            to: before.to.max(right),
        });
    }

    /// The peer reported `[left, right)` as a duplicate.
    pub fn on_duplicate(&mut self, left: u64, right: u64, mss: u32) {
        let reported_again = std::mem::replace(&mut self.last, (left, right)) == (left, right);
        if let Some(sent) = &mut self.sent_again
            && !reported_again
            && left >= sent.from
            && right <= sent.to
        {
            let segments = (right - left).div_ceil(u64::from(mss)).max(1);
            sent.unreported = sent.unreported.saturating_sub(segments as u32);
        }
    }

    /// Whether all retransmitted data was reported as duplicate, so that the last reduction is to be undone.
    pub fn is_spurious(&self) -> bool {
        self.armed && self.sent_again.is_some_and(|sent| sent.unreported == 0)
    }

    /// The last reduction was undone, or is not to be.
    pub fn disarm(&mut self) {
        self.armed = false;
    }
}
