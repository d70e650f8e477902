//! Selects the segment that is retransmitted next: RFC 6675's NextSeg().

use elephan_units::Time;

use super::Scoreboard;
use super::burst::make_room;
use super::record::{IN_FLIGHT_AGAIN, LOST, RETRANSMITTED, Record, SACKED};

impl Scoreboard {
    /// RFC 6675's NextSeg, rule 1: the first segment that is lost and was not retransmitted since.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        while let Some(id) = self.rare.as_ref().and_then(|rare| rare.lost_again.front().copied()) {
            if id >= self.first && self.get(id).flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST {
                return Some(id);
            }
            self.rare.get_or_insert_default().lost_again.pop_front();
        }
        for id in self.retransmit_from.max(self.first)..self.recorded() {
            if self.get(id).flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST {
                self.retransmit_from = id;
                return Some(id);
            }
        }
        None
    }

    /// Whether some segment is neither known to have arrived nor known to be lost, and a segment above it has
    /// arrived; [`Scoreboard::next_unknown`] returns that segment.
    pub fn has_unknown(&self) -> bool {
        self.runs.last().is_some_and(|(_, highest)| self.unknown_from.max(self.examined) < highest)
    }

    /// NextSeg, rule 3: the first segment below the highest selectively acknowledged one that is not known to have arrived and
    /// was never retransmitted.
    pub fn next_unknown(&mut self) -> Option<u64> {
        let (_, highest) = self.runs.last()?;
        let from = self.unknown_from.max(self.examined).max(self.first);
        let found = (from..highest).find(|&id| self.get(id).flags & (SACKED | LOST | RETRANSMITTED) == 0);
        self.unknown_from = found.unwrap_or(highest).max(from);
        found
    }

    /// NextSeg, rule 4: the last segment outstanding that is not known to have arrived.
    pub fn last_unknown(&self) -> Option<u64> {
        let above = self.runs.last().map_or(self.first, |(_, right)| right);
        let last = self.next_id().checked_sub(1)?;
        (last >= above && last >= self.first).then_some(last)
    }

    /// Records a retransmission of segment `id`; returns what to send.
    pub fn retransmit(&mut self, id: u64, now: Time) -> Record {
        let transmission = self.next_transmission();
        let record = self.get_mut(id);
        let waited = record.flags & (LOST | IN_FLIGHT_AGAIN) == LOST;
        let again = record.flags & IN_FLIGHT_AGAIN != 0;
        record.flags |= IN_FLIGHT_AGAIN | RETRANSMITTED;
        (record.sent_at, record.transmission) = (now, transmission);
        let record = *record;
        self.waiting -= u32::from(waited);
        if !again {
            self.retransmitted += 1;
            self.pipe += u64::from(record.len);
        }
        if self.keeps_retransmissions {
            make_room(&mut self.retransmissions);
            self.retransmissions.push_back((id, transmission));
        }
        record
    }
}
