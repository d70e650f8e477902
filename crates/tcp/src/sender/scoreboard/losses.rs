//! Detects which segments are lost: RFC 6675's IsLost(), retransmissions that did not arrive, and the effect
//! of a timeout.

use std::collections::VecDeque;

use super::burst::take_first;
use super::record::{IN_FLIGHT_AGAIN, LOST, SACKED, is_later};
use super::{DUP_THRESH, Scoreboard};

impl Scoreboard {
    /// Marks segments as lost by RFC 6675's IsLost(): unacknowledged with `DUP_THRESH` segments selectively
    /// acknowledged above them. With `fack`, marks everything that far below the highest acknowledged
    /// segment.
    ///
    /// Returns the offset of the highest segment newly marked lost, if any.
    #[inline(always)]
    pub fn detect_losses(&mut self, fack: bool) -> Option<u64> {
        let (left, highest) = self.runs.last()?;
        let boundary = if fack || highest - left >= DUP_THRESH {
            highest.saturating_sub(DUP_THRESH)
        } else {
            self.third_from_above()
        };
        let mut found = None;
        // The last run holds none that is missing.
        for id in self.examined.max(self.first)..boundary.min(left) {
            if self.mark_lost(id) {
                found = Some(self.get(id).offset);
            }
        }
        self.examined = self.examined.max(boundary);
        found
    }

    /// The third selectively acknowledged segment from above; zero if there are fewer.
    fn third_from_above(&self) -> u64 {
        let mut missing = DUP_THRESH;
        for (left, right) in self.runs.iter().rev() {
            if right - left >= missing {
                return right - missing;
            }
            missing -= right - left;
        }
        0
    }

    /// Marks the oldest segment lost, without SACK: after three duplicate ACKs, or a partial ACK.
    pub fn front_is_lost(&mut self) {
        if !self.is_empty() {
            self.mark_lost(self.first);
        }
    }

    pub(super) fn mark_lost(&mut self, id: u64) -> bool {
        let record = self.get_mut(id);
        if record.flags & (SACKED | LOST) != 0 {
            return false;
        }
        record.flags |= LOST;
        let (len, again) = (u64::from(record.len), record.flags & IN_FLIGHT_AGAIN != 0);
        self.pipe -= len;
        self.lost += 1;
        self.count_loss(id);
        if !again {
            self.waiting += 1;
            self.retransmit_from = self.retransmit_from.min(id);
        }
        true
    }

    /// A transmission of this segment is taken as lost.
    pub(super) fn count_loss(&mut self, id: u64) {
        self.losses = self.losses.wrapping_add(1);
        if self.keeps_found {
            self.rare.get_or_insert_default().found.push(id);
        }
    }

    /// Detects lost retransmissions: `DUP_THRESH` later transmissions arrived.
    ///
    /// The order of transmission takes the place of RFC 8985's times; RFC 6675 leaves these losses to the
    /// timer. Returns the last transmission that was marked lost.
    #[inline(always)]
    pub fn detect_lost_retransmissions(&mut self) -> Option<u32> {
        let mut found = None;
        while let Some(&(id, transmission)) = self.retransmissions.front() {
            if self.is_current(id, transmission) {
                if !is_later(self.latest_arrived, transmission.wrapping_add(DUP_THRESH as u32 - 1)) {
                    break;
                }
                found = Some(transmission);
                self.retransmission_is_lost(id);
            }
            take_first(&mut self.retransmissions);
        }
        found
    }

    pub(super) fn retransmission_is_lost(&mut self, id: u64) {
        let record = self.get_mut(id);
        record.flags &= !IN_FLIGHT_AGAIN;
        let (len, lost) = (u64::from(record.len), record.flags & LOST != 0);
        self.pipe -= len;
        self.retransmitted -= 1;
        if lost {
            self.count_loss(id);
            self.waiting += 1;
            self.rare.get_or_insert_default().lost_again.push_back(id);
        }
    }

    /// Whether this is the last transmission of a segment that is not known to have arrived.
    pub(super) fn is_current(&self, id: u64, transmission: u32) -> bool {
        id >= self.first && {
            let record = self.get(id);
            record.flags & SACKED == 0 && record.transmission == transmission
        }
    }

    /// A timeout: everything that is not selectively acknowledged is lost (RFC 6675, section 5.1).
    pub fn all_is_lost(&mut self) {
        self.record_to(self.next_id());
        self.forget_reneged();
        for id in self.first..self.next_id() {
            let record = *self.get(id);
            if record.flags & SACKED == 0 {
                if !record.waits() {
                    self.count_loss(id);
                }
                self.get_mut(id).flags |= LOST;
            }
            self.get_mut(id).flags &= !IN_FLIGHT_AGAIN;
        }
        self.count();
        self.retransmissions = VecDeque::new();
        self.forget_lost_again();
        self.examined = self.next_id();
        self.retransmit_from = self.first;
    }

    /// Where the first segment was selectively acknowledged, the receiver discards data that it acknowledged
    /// selectively (reneging; RFC 2018, section 8): none of it counts as arrived. Returns whether this is so.
    pub(super) fn forget_reneged(&mut self) -> bool {
        let reneged = self.records.front().is_some_and(|record| record.flags & SACKED != 0);
        if reneged {
            self.runs.clear();
            self.sacked = 0;
            if let Some(rare) = &mut self.rare {
                rare.blocks = Default::default();
            }
            for record in &mut self.records {
                record.flags &= !SACKED;
            }
        }
        reneged
    }

    /// Clears all loss marks, for an undo. Segments that stay unacknowledged are checked again.
    pub fn nothing_is_lost(&mut self) {
        for record in &mut self.records {
            if record.flags & (SACKED | LOST) == LOST {
                record.flags &= !LOST;
            }
        }
        self.count();
        self.forget_lost_again();
        self.examined = self.first;
        self.unknown_from = self.first;
    }
}
