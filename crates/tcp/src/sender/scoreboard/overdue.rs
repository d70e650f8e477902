//! Detects losses by time (RACK; RFC 8985, section 6.2, step 5): a segment is lost if one that was sent later
//! has arrived, and the segment is overdue.
//!
//! Segments that were sent once are in order of time by their id, and retransmitted ones in the order of the
//! queue of retransmissions. Each order is followed only as far as segments are overdue.

use elephan_units::Time;

use super::Scoreboard;
use super::burst::take_first;
use super::record::{IN_FLIGHT_AGAIN, LOST, RETRANSMITTED, Record, SACKED, is_later};

/// What was found to be overdue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Offset of the highest segment newly marked lost whose only transmission is overdue.
    pub lost: Option<u64>,
    /// The last retransmission that was marked lost.
    pub lost_again: Option<u32>,
    /// Segments sent at this time or before may become overdue without another ACK.
    pub pending: Option<Time>,
}

impl Scoreboard {
    /// Marks lost what was sent before the latest transmission that arrived, `wait` ago or longer.
    pub fn detect_overdue(&mut self, wait: Time, now: Time) -> Overdue {
        let mut found = Overdue::default();
        let mut id = self.examined.max(self.first);
        while id < self.next_id() {
            self.record_to(id.saturating_sub(1));
            let record = self.get(id);
            if record.flags & (SACKED | LOST | RETRANSMITTED) == 0 {
                if !is_later(self.latest_arrived, record.transmission) {
                    break;
                }
                let (offset, sent_at) = (record.offset, record.sent_at);
                if sent_at.saturating_add(wait) > now {
                    found.pending = Some(sent_at.max(self.last_pending()));
                    break;
                }
                self.mark_lost(id);
                found.lost = Some(offset);
            }
            id += 1;
        }
        self.examined = id;
        while let Some(&(id, transmission)) = self.retransmissions.front() {
            if self.is_current(id, transmission) {
                if !is_later(self.latest_arrived, transmission) {
                    break;
                }
                if self.get(id).sent_at.saturating_add(wait) > now {
                    found.pending = Some(self.latest_sent_at);
                    break;
                }
                if self.get(id).flags & IN_FLIGHT_AGAIN != 0 {
                    self.retransmission_is_lost(id);
                }
                // The last transmission stands for the segment: no copy of it is thought to be in flight.
                self.mark_lost(id);
                found.lost_again = Some(transmission);
            }
            take_first(&mut self.retransmissions);
        }
        found
    }

    /// When the last of the segments was sent that were overtaken. This is exact if it is the one below the
    /// highest that was selectively acknowledged, unless that segment was sent after all of which it is known which
    /// transmission arrived. Otherwise it is a bound: all were sent before the one that overtook them.
    fn last_pending(&self) -> Time {
        let last_run = self.runs.last();
        let below = last_run.and_then(|run| run.0.checked_sub(1)).filter(|&id| id >= self.first);
        let above = last_run.is_some_and(|run| self.may_be_overtaken_from(run.1));
        match below.map(|id| self.get(id)) {
            Some(record) if !above && record.flags & (LOST | RETRANSMITTED) == 0 => {
                record.sent_at.min(self.latest_sent_at)
            }
            _ => self.latest_sent_at,
        }
    }

    /// Whether a segment from `id` on may have been overtaken. The last one alone does not tell: an earlier one may
    /// have been overtaken by a retransmission, or by a segment that the receiver discarded later.
    fn may_be_overtaken_from(&self, id: u64) -> bool {
        let is_overtaken = |record: &Record| is_later(self.latest_arrived, record.transmission);
        // Segments that were sent once are in order, so the first of them stands for the rest. A retransmitted one
        // says nothing of those that follow it.
        let last = self.bursts.back().or(self.records.back().copied());
        last.is_some_and(|record| is_overtaken(&record))
            || id < self.next_id() && {
                let record = self.get(id);
                is_overtaken(record) || (record.was_retransmitted() && id + 1 < self.next_id())
            }
    }

    /// Whether `count` segments or more are selectively acknowledged.
    pub fn has_sacked_at_least(&self, count: u64) -> bool {
        let mut missing = count;
        self.runs.iter().any(|(left, right)| {
            missing = missing.saturating_sub(right - left);
            missing == 0
        })
    }

    /// Offset after the highest segment that was selectively acknowledged, if any.
    pub fn highest_sacked(&self) -> Option<u64> {
        self.runs.last().map(|(_, right)| self.get(right - 1).end())
    }

    /// A timeout: the first segment is lost, and whatever is not selectively acknowledged and was sent at
    /// `sent_by` or before (RFC 8985, section 6.3). What was sent later may still arrive, unless the receiver has
    /// reneged.
    pub fn old_is_lost(&mut self, sent_by: Time) {
        self.record_to(self.next_id());
        let reneged = self.forget_reneged();
        let first = self.first;
        for id in first..self.next_id() {
            let record = *self.get(id);
            if record.flags & SACKED == 0 && (reneged || id == first || record.sent_at <= sent_by) {
                if !record.waits() {
                    self.count_loss(id);
                }
                self.get_mut(id).flags = record.flags & !IN_FLIGHT_AGAIN | LOST;
            }
        }
        self.count();
        let mut kept = std::mem::take(&mut self.retransmissions);
        kept.retain(|&(id, transmission)| self.is_current(id, transmission) && !self.get(id).waits());
        self.retransmissions = kept;
        self.forget_lost_again();
        self.examined = first;
        self.retransmit_from = first;
    }

    /// Clears all loss marks, for an undo. Retransmissions that were taken as lost are waited for again, and with `again` so are
    /// segments that were sent once. Otherwise these wait for the retransmission timer.
    pub fn nothing_is_overdue(&mut self, again: bool) {
        let examined = self.examined;
        self.nothing_is_lost();
        if !again {
            self.examined = examined;
        }
        let waited = (self.first..)
            .zip(&self.records)
            .filter(|(_, record)| record.flags & (SACKED | RETRANSMITTED) == RETRANSMITTED)
            .map(|(id, record)| (id, record.transmission));
        let mut waited: Vec<_> = waited.collect();
        waited.sort_unstable_by_key(|&(_, number)| u32::MAX - self.transmissions.wrapping_sub(number));
        self.retransmissions = waited.into();
    }
}
