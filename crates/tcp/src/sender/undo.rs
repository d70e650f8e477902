//! Undo of a reduction that D-SACK shows to have been spurious (RFC 3708, section 2): every retransmission
//! since that reduction was reported as a duplicate.

/// State of the retransmissions since the first reduction of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// Whether the last reduction was for a loss, and may be undone.
    armed: bool,
    /// Whether anything was retransmitted; the next three mean nothing before.
    sent_again: bool,
    /// Number of retransmissions, less those reported as duplicates.
    unreported: u32,
    /// All retransmissions lie within these offsets. Duplicates outside them were made by the network.
    from: u64,
    to: u64,
    /// The last report. It is kept because the network may duplicate the report too.
    last: (u64, u64),
}

impl Undo {
    /// The window was reduced. `first` says whether this was the first reduction of the recovery; the other
    /// argument says whether the reduction may prove spurious.
    pub fn on_reduction(&mut self, first: bool, may_be_spurious: bool) {
        if first {
            self.sent_again = false;
        }
        self.armed = may_be_spurious;
    }

    /// `[left, right)` was retransmitted.
    pub fn on_retransmission(&mut self, left: u64, right: u64) {
        if !std::mem::replace(&mut self.sent_again, true) {
            (self.unreported, self.from, self.to) = (0, left, right);
        }
        self.unreported += 1;
        (self.from, self.to) = (self.from.min(left), self.to.max(right));
    }

    /// The peer reported `[left, right)` as a duplicate.
    pub fn on_duplicate(&mut self, left: u64, right: u64, mss: u32) {
        let reported_again = std::mem::replace(&mut self.last, (left, right)) == (left, right);
        if self.sent_again && !reported_again && left >= self.from && right <= self.to {
            let segments = (right - left).div_ceil(u64::from(mss)).max(1);
            self.unreported = self.unreported.saturating_sub(segments as u32);
        }
    }

    /// Whether all retransmitted data was reported as duplicate, so that the last reduction is to be undone.
    pub fn is_spurious(&self) -> bool {
        self.armed && self.sent_again && self.unreported == 0
    }

    /// The last reduction was undone, or is not to be.
    pub fn disarm(&mut self) {
        self.armed = false;
    }
}
