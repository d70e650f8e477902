//! Undo of a reduction that D-SACK shows to have been spurious (RFC 3708, section 2): every retransmission
//! since that reduction was reported as a duplicate. And what every undo does, whatever showed it.
//!
//! Linux counts otherwise (net/ipv4/tcp_input.c, `tcp_init_undo`, `tcp_check_dsack`); with `undo = "windows"` so does this module. Each reduction
//! for a loss begins with the retransmissions that are in flight, a probe among them, which later does not count; any duplicate of
//! data beyond the left edge at the reduction counts, also one that was reported before; and where more duplicates were reported than
//! segments were retransmitted, the network makes them, and the report says nothing at all (`tcp_dsack_seen`).

use elephan_cc::Undo as Restored;
use elephan_units::Time;

use super::Sender;
use super::acknowledge::Before;
use super::phase::Phase;
use super::scoreboard::Delivered;
use super::settings::Repair;
use crate::report::Counters;

/// What an ACK shows of the last reduction: it was spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spurious {
    /// Every retransmission was reported as a duplicate.
    Reported,
    /// Data that was sent once arrived after a timeout.
    Timeout,
    /// An original arrived late, as the echoed timestamp says.
    Delayed,
}

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
    /// Offset and bytes of the last report. They are kept because the network may duplicate the report too.
    last: u64,
    last_len: u32,
    /// As Linux has it: whether `from` is the left edge at the last reduction (`undo_marker`).
    is_marked: bool,
    /// As Linux has it: number of segments that were reported as duplicates (`dsack_dups`).
    duplicates: u32,
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

    /// As Linux has it: the window was reduced for a loss when everything below `una` was acknowledged and this number of
    /// retransmissions was in flight.
    pub fn begin(&mut self, una: u64, retransmitted: u64) {
        (self.sent_again, self.unreported) = (retransmitted > 0, retransmitted as u32);
        (self.is_marked, self.from, self.to) = (true, una, una);
    }

    /// As Linux has it: whether a report of `[left, right)` may be due to one of the segments that were `retransmitted`, in all. It counts.
    pub fn is_credible(&mut self, left: u64, right: u64, mss: u32, retransmitted: u64) -> bool {
        self.duplicates = self.duplicates.saturating_add(segments(left, right, mss));
        u64::from(self.duplicates) <= retransmitted
    }

    /// As Linux has it: the peer reported `[left, right)` as a duplicate, at an ACK before which everything below `una` was
    /// acknowledged.
    pub fn on_credible_duplicate(&mut self, left: u64, right: u64, una: u64, mss: u32) {
        let counts =
            right <= una && right > self.from || right > una && left >= self.from && right <= self.to;
        if self.sent_again && counts {
            self.unreported = self.unreported.saturating_sub(segments(left, right, mss));
        }
    }

    /// `[left, right)` was retransmitted.
    pub fn on_retransmission(&mut self, left: u64, right: u64) {
        if !std::mem::replace(&mut self.sent_again, true) {
            self.unreported = 0;
            if !self.is_marked {
                (self.from, self.to) = (left, right);
            }
        }
        self.unreported += 1;
        (self.from, self.to) = (self.from.min(left), self.to.max(right));
    }

    /// The peer reported `[left, right)` as a duplicate.
    pub fn on_duplicate(&mut self, left: u64, right: u64, mss: u32) {
        let len = right.wrapping_sub(left) as u32;
        let reported_again = (self.last, self.last_len) == (left, len);
        (self.last, self.last_len) = (left, len);
        if self.sent_again && !reported_again && left >= self.from && right <= self.to {
            self.unreported = self.unreported.saturating_sub(segments(left, right, mss));
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

/// Number of segments of a duplicate.
fn segments(left: u64, right: u64, mss: u32) -> u32 {
    right.saturating_sub(left).div_ceil(u64::from(mss)).max(1) as u32
}

impl Sender {
    /// Whether recoveries are undone as in Linux 4.10 and later.
    pub(super) fn undoes_as_linux(&self) -> bool {
        self.settings.undo == Restored::Windows
    }

    /// Whether an ACK shows that the last reduction was spurious. `advanced` says whether it moved the left edge, `duplicate`
    /// whether it is a duplicate ACK, and `reported` whether it reports a duplicate segment.
    #[inline]
    pub(super) fn find_spurious(
        &mut self,
        advanced: bool,
        duplicate: bool,
        reported: bool,
        echoed: Option<u32>,
        delivered: &Delivered,
    ) -> Option<Spurious> {
        // In Linux, after a timeout only an ACK that moves the left edge is asked (`tcp_process_loss`).
        let asks = advanced || !self.phase.is_restart() || !self.undoes_as_linux();
        if reported && asks && self.undo.is_spurious() {
            return Some(Spurious::Reported);
        }
        if self.frto.is_some() && self.frto_finds_spurious(advanced, duplicate, reported, delivered) {
            return Some(Spurious::Timeout);
        }
        let delayed = advanced && self.eifel.examined.is_some() && self.eifel_finds_spurious(echoed);
        delayed.then_some(Spurious::Delayed)
    }

    /// Whether an ACK, before which the left edge was `una`, does not undo the reduction yet. In Linux, an original that arrives late
    /// and does not end the recovery is noted as reordering, and nothing is undone, lost or retransmitted as long as other
    /// retransmissions are in flight (`tcp_try_undo_partial`).
    #[inline(never)]
    pub(super) fn is_awaited(&mut self, found: Spurious, una: u64) -> bool {
        let Some(recover) = self.phase.recover() else { return false };
        if found != Spurious::Delayed || self.space.una >= recover || !self.undoes_as_linux() {
            return false;
        }
        if let Some(rack) = &mut self.rack {
            rack.note_reordering(una, self.settings.mss);
        }
        let awaited = self.board.retransmitted() > 0;
        if let Phase::Sack(recovery) = &mut self.phase {
            recovery.only_new = awaited;
        }
        awaited
    }

    /// Undoes the last reduction, as an ACK has shown; returns whether the same ACK shows losses.
    ///
    /// In Linux what is missing is examined again at once, and may be a reason for another recovery. After duplicate reports
    /// and at the ACK that ends a recovery it stays lost (`tcp_try_undo_dsack`, `tcp_try_undo_recovery`), otherwise it is lost only if it is overdue
    /// (`tcp_undo_cwnd_reduction`).
    #[inline(never)]
    pub(super) fn undo_spurious(
        &mut self,
        found: Spurious,
        before: Before,
        counters: &mut Counters,
        now: Time,
    ) -> bool {
        let as_linux = self.undoes_as_linux();
        let reported = found == Spurious::Reported && !self.phase.is_restart();
        let stays =
            as_linux && (reported || self.phase.recover().is_some_and(|recover| self.space.una >= recover));
        self.undo_reduction(!stays, counters, now);
        if as_linux
            && reported
            && let Some(rack) = &mut self.rack
        {
            rack.extend();
        }
        match self.settings.repair {
            Repair::Sack { fack, reduction, .. } if as_linux => {
                self.repair_with_sack(fack, reduction, before, counters, now)
            }
            _ => false,
        }
    }
}
