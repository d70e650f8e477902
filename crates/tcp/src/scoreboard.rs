//! What was sent and not yet cumulatively acknowledged: one record for each segment, in order.
//!
//! Everything an ACK asks of it is constant time when amortised over the segments, with selective
//! acknowledgments too: a segment is pushed once, selectively acknowledged once, marked lost once for
//! each time it is lost, and popped once. Segments are counted by a serial number, the `id`.

use std::collections::VecDeque;

use elephan_units::Time;

/// Selectively acknowledged.
const SACKED: u8 = 1;
/// Thought lost.
const LOST: u8 = 2;
/// A retransmission of it is thought to be in flight.
const IN_FLIGHT_AGAIN: u8 = 4;
/// Retransmitted at least once: its ACK is ambiguous (Karn).
const RETRANSMITTED: u8 = 8;
/// Carries the FIN.
const FIN: u8 = 16;

/// Duplicate ACK threshold (RFC 5681, section 3.2; RFC 6675, section 2).
pub const DUP_THRESH: u64 = 3;

/// A segment that was sent. 32 bytes, because a window of a million of them is walked at line rate.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Offset of its first byte.
    pub offset: u64,
    /// When it was last sent.
    pub sent_at: Time,
    /// Bytes that had been delivered when it was last sent.
    pub delivered: u64,
    /// Which transmission it was, counted from the start of the connection and wrapping.
    transmission: u32,
    /// Payload bytes.
    pub len: u16,
    flags: u8,
}

impl Record {
    /// Offset after its last byte; a FIN takes one.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len) + u64::from(self.is_fin())
    }
    /// Whether it carries the FIN.
    pub fn is_fin(&self) -> bool {
        self.flags & FIN != 0
    }
    /// Whether it was ever retransmitted.
    pub fn was_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }
    /// Bytes that it adds to the pipe: RFC 6675's SetPipe.
    fn in_pipe(&self) -> u64 {
        if self.flags & SACKED != 0 {
            return 0;
        }
        let copies = u64::from(self.flags & LOST == 0) + u64::from(self.flags & IN_FLIGHT_AGAIN != 0);
        copies * u64::from(self.len)
    }
}

/// What an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Payload bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// Payload bytes newly acknowledged cumulatively, whether or not selectively before.
    pub cumulative: u64,
    /// Segments newly acknowledged cumulatively.
    pub segments: u64,
    /// The newest of these segments that was sent only once: when, and what was delivered by then.
    pub newest: Option<(Time, u64)>,
    /// The last of the segments newly acknowledged, where it was retransmitted: when it last was sent.
    pub ambiguous: Option<Time>,
}

impl Delivered {
    fn count(&mut self, record: &Record) {
        if record.was_retransmitted() {
            self.ambiguous = Some(record.sent_at);
        } else if self.newest.is_none_or(|(sent_at, _)| sent_at <= record.sent_at) {
            self.newest = Some((record.sent_at, record.delivered));
        }
    }
}

/// The segments in flight, and what is known of each.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    records: VecDeque<Record>,
    /// Id of the first record.
    first: u64,
    /// Selectively acknowledged ids, as disjoint runs `[left, right)` in order.
    runs: VecDeque<(u64, u64)>,
    /// Every id below was looked at for loss.
    examined: u64,
    /// No id below is lost and waits for its first retransmission.
    retransmit_from: u64,
    /// Lost, not selectively acknowledged, and not in flight again: waiting to be retransmitted.
    waiting: u64,
    /// Retransmissions in the order in which they were sent: id, and which transmission.
    retransmissions: VecDeque<(u64, u32)>,
    /// Ids whose retransmission was lost too.
    lost_again: VecDeque<u64>,
    /// Transmissions so far.
    transmissions: u32,
    /// The latest transmission known to have arrived.
    latest_arrived: u32,
    pipe: u64,
}

impl Scoreboard {
    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The id that the next new segment gets.
    pub fn next_id(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// RFC 6675's pipe: payload bytes thought to be in flight.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// The oldest segment outstanding.
    pub fn front(&self) -> Option<&Record> {
        self.records.front()
    }

    /// Whether some segment is lost and was not sent again since.
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    fn get(&self, id: u64) -> &Record {
        &self.records[(id - self.first) as usize]
    }

    fn get_mut(&mut self, id: u64) -> &mut Record {
        &mut self.records[(id - self.first) as usize]
    }

    fn next_transmission(&mut self) -> u32 {
        self.transmissions = self.transmissions.wrapping_add(1);
        self.transmissions
    }

    /// A new segment was sent.
    pub fn push(&mut self, offset: u64, len: u16, fin: bool, now: Time, delivered: u64) {
        let transmission = self.next_transmission();
        let flags = if fin { FIN } else { 0 };
        self.records.push_back(Record { offset, sent_at: now, delivered, transmission, len, flags });
        self.pipe += u64::from(len);
    }

    /// Takes everything below `offset` off, adding it to `delivered`.
    pub fn acknowledge(&mut self, offset: u64, delivered: &mut Delivered) {
        while let Some(record) = self.records.front() {
            if record.end() > offset {
                break;
            }
            delivered.cumulative += u64::from(record.len);
            delivered.segments += 1;
            if record.flags & SACKED == 0 {
                delivered.bytes += u64::from(record.len);
                delivered.count(record);
                let record = *record;
                self.arrived(&record);
                self.pipe -= record.in_pipe();
                self.waiting -= u64::from(record.flags & (LOST | IN_FLIGHT_AGAIN) == LOST);
            }
            self.records.pop_front();
            self.first += 1;
        }
        while let Some(run) = self.runs.front_mut() {
            if run.1 > self.first {
                run.0 = run.0.max(self.first);
                break;
            }
            self.runs.pop_front();
        }
    }

    fn arrived(&mut self, record: &Record) {
        if record.transmission.wrapping_sub(self.latest_arrived).cast_signed() > 0 {
            self.latest_arrived = record.transmission;
        }
    }

    /// The id of the first segment that begins at or after `offset`.
    ///
    /// Segments are at most `mss` long, so that division gives a lower bound, exact but for short ones.
    fn id_at(&self, offset: u64, mss: u32) -> u64 {
        let Some(front) = self.records.front() else { return self.first };
        let count = self.records.len();
        let guess = (offset.saturating_sub(front.offset) / u64::from(mss)) as usize;
        if guess >= count {
            return self.next_id();
        }
        if self.records[guess].offset >= offset {
            return self.first + guess as u64;
        }
        let (mut low, mut high) = (guess + 1, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.records[middle].offset < offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.first + low as u64
    }

    /// A selective acknowledgment of `[left, right)`; only what it newly covers is looked at.
    pub fn sack(&mut self, left: u64, right: u64, mss: u32, delivered: &mut Delivered) {
        let from = self.id_at(left, mss).max(self.first);
        let mut to = self.id_at(right, mss);
        // A block that ends within a segment does not cover it.
        while to > from && self.get(to - 1).end() > right {
            to -= 1;
        }
        if from >= to {
            return;
        }
        // Runs that touch [from, to) become one; what lay between them is new.
        let mut at = self.runs.len();
        while at > 0 && self.runs[at - 1].1 >= from {
            at -= 1;
            if at > 0 && at + 8 < self.runs.len() {
                // Far from the end: find the place by bisection instead.
                at = self.runs.partition_point(|run| run.1 < from);
                break;
            }
        }
        let mut merged = (from, to);
        let mut fresh = from;
        let mut last = at;
        while let Some(&(run_left, run_right)) = self.runs.get(last) {
            if run_left > to {
                break;
            }
            for id in fresh..run_left.min(to) {
                self.mark_sacked(id, delivered);
            }
            fresh = fresh.max(run_right);
            merged = (merged.0.min(run_left), merged.1.max(run_right));
            last += 1;
        }
        for id in fresh..to {
            self.mark_sacked(id, delivered);
        }
        match last - at {
            0 => self.runs.insert(at, merged),
            1 => self.runs[at] = merged,
            _ => {
                self.runs[at] = merged;
                self.runs.drain(at + 1..last);
            }
        }
    }

    fn mark_sacked(&mut self, id: u64, delivered: &mut Delivered) {
        let record = *self.get(id);
        self.pipe -= record.in_pipe();
        self.waiting -= u64::from(record.flags & (LOST | IN_FLIGHT_AGAIN) == LOST);
        self.get_mut(id).flags |= SACKED;
        self.arrived(&record);
        delivered.bytes += u64::from(record.len);
        delivered.count(&record);
    }

    /// Marks what RFC 6675's IsLost() calls lost: unacknowledged with `DUP_THRESH` segments
    /// selectively acknowledged above it; with `fack`, everything that far below the highest one.
    ///
    /// Returns whether something new was found.
    pub fn detect_losses(&mut self, fack: bool) -> bool {
        let Some(&(_, highest)) = self.runs.back() else { return false };
        let boundary = if fack {
            highest.saturating_sub(DUP_THRESH)
        } else {
            // The third selectively acknowledged segment from above.
            let mut missing = DUP_THRESH;
            let mut boundary = 0;
            for &(left, right) in self.runs.iter().rev() {
                if right - left >= missing {
                    boundary = right - missing;
                    break;
                }
                missing -= right - left;
            }
            boundary
        };
        let mut found = false;
        for id in self.examined.max(self.first)..boundary {
            found |= self.mark_lost(id);
        }
        self.examined = self.examined.max(boundary);
        found
    }

    /// Marks the oldest segment lost: three duplicate ACKs, or a partial ACK, without SACK.
    pub fn front_is_lost(&mut self) {
        if !self.records.is_empty() {
            self.mark_lost(self.first);
        }
    }

    fn mark_lost(&mut self, id: u64) -> bool {
        let record = self.get_mut(id);
        if record.flags & (SACKED | LOST) != 0 {
            return false;
        }
        record.flags |= LOST;
        let (len, again) = (u64::from(record.len), record.flags & IN_FLIGHT_AGAIN != 0);
        self.pipe -= len;
        if !again {
            self.waiting += 1;
            self.retransmit_from = self.retransmit_from.min(id);
        }
        true
    }

    /// Finds retransmissions that were lost: `DUP_THRESH` later transmissions arrived.
    ///
    /// The order of transmission stands in for RFC 8985's times; RFC 6675 leaves these to the timer. Returns the last
    /// transmission that was found lost.
    pub fn detect_lost_retransmissions(&mut self) -> Option<u32> {
        let mut found = None;
        while let Some(&(id, transmission)) = self.retransmissions.front() {
            let gone = id < self.first
                || self.get(id).flags & SACKED != 0
                || self.get(id).transmission != transmission;
            if !gone {
                let later = self.latest_arrived.wrapping_sub(transmission).cast_signed();
                if later < DUP_THRESH as i32 {
                    break;
                }
                found = Some(transmission);
                let record = self.get_mut(id);
                record.flags &= !IN_FLIGHT_AGAIN;
                self.pipe -= u64::from(self.get(id).len);
                if self.get(id).flags & LOST != 0 {
                    self.waiting += 1;
                    self.lost_again.push_back(id);
                }
            }
            self.retransmissions.pop_front();
        }
        found
    }

    /// Transmissions so far, new and again, wrapping.
    pub fn transmissions(&self) -> u32 {
        self.transmissions
    }

    /// A timeout: everything that is not selectively acknowledged is lost (RFC 6675, section 5.1).
    pub fn all_is_lost(&mut self) {
        // A receiver that lets go of what it acknowledged selectively (RFC 2018, section 8).
        if self.records.front().is_some_and(|record| record.flags & SACKED != 0) {
            self.runs.clear();
            for record in &mut self.records {
                record.flags &= !SACKED;
            }
        }
        self.waiting = 0;
        for record in &mut self.records {
            record.flags &= !IN_FLIGHT_AGAIN;
            if record.flags & SACKED == 0 {
                record.flags |= LOST;
                self.waiting += 1;
            }
        }
        self.pipe = 0;
        self.retransmissions.clear();
        self.lost_again.clear();
        self.examined = self.next_id();
        self.retransmit_from = self.first;
    }

    /// RFC 6675's NextSeg, rule 1: the first segment that is lost and was not sent again since.
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        while let Some(&id) = self.lost_again.front() {
            if id >= self.first && self.get(id).flags & (SACKED | IN_FLIGHT_AGAIN) == 0 {
                return Some(id);
            }
            self.lost_again.pop_front();
        }
        for id in self.retransmit_from.max(self.first)..self.next_id() {
            if self.get(id).flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST {
                self.retransmit_from = id;
                return Some(id);
            }
        }
        None
    }

    /// NextSeg, rule 3: the first segment below the highest selectively acknowledged one that is not
    /// known to have arrived and was never sent again.
    pub fn next_unknown(&self) -> Option<u64> {
        let &(_, highest) = self.runs.back()?;
        (self.examined.max(self.first)..highest)
            .find(|&id| self.get(id).flags & (SACKED | LOST | RETRANSMITTED) == 0)
    }

    /// NextSeg, rule 4: the last segment outstanding that is not known to have arrived.
    pub fn last_unknown(&self) -> Option<u64> {
        let above = self.runs.back().map_or(self.first, |&(_, right)| right);
        let last = self.next_id().checked_sub(1)?;
        (last >= above && last >= self.first).then_some(last)
    }

    /// The oldest segment, for a retransmission whatever is known of it.
    pub fn front_id(&self) -> Option<u64> {
        (!self.records.is_empty()).then_some(self.first)
    }

    /// Segment `id` is sent again; returns what to send.
    pub fn retransmit(&mut self, id: u64, now: Time, delivered: u64) -> Record {
        let transmission = self.next_transmission();
        let record = self.get_mut(id);
        let waited = record.flags & (LOST | IN_FLIGHT_AGAIN) == LOST;
        let again = record.flags & IN_FLIGHT_AGAIN != 0;
        record.flags |= IN_FLIGHT_AGAIN | RETRANSMITTED;
        (record.sent_at, record.delivered, record.transmission) = (now, delivered, transmission);
        let record = *record;
        self.waiting -= u64::from(waited);
        if !again {
            self.pipe += u64::from(record.len);
        }
        self.retransmissions.push_back((id, transmission));
        record
    }

    /// Lost segments that were not sent again are taken to be in flight after all: an undo.
    pub fn nothing_is_lost(&mut self) {
        for id in self.first..self.next_id() {
            let record = self.get_mut(id);
            if record.flags & (SACKED | LOST) == LOST {
                record.flags &= !LOST;
                let (len, waited) = (u64::from(record.len), record.flags & IN_FLIGHT_AGAIN == 0);
                self.pipe += len;
                self.waiting -= u64::from(waited);
            }
        }
    }

    /// Recounts what is kept as counters, for tests.
    #[cfg(test)]
    pub fn check(&self) {
        assert_eq!(self.pipe, self.records.iter().map(Record::in_pipe).sum::<u64>(), "pipe");
        let waiting = self.records.iter().filter(|r| r.flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST);
        assert_eq!(self.waiting, waiting.count() as u64, "waiting");
        let sacked: Vec<u64> =
            (self.first..self.next_id()).filter(|&id| self.get(id).flags & SACKED != 0).collect();
        let in_runs: Vec<u64> = self.runs.iter().flat_map(|&(left, right)| left..right).collect();
        assert_eq!(sacked, in_runs, "runs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1000;

    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for id in 0..count {
            board.push(id * 1000, 1000, false, Time::from_millis(id), 0);
        }
        board
    }

    #[test]
    fn three_segments_above_make_a_hole_a_loss() {
        // RFC 6675, IsLost: segment 0 is lost once three above it are acknowledged, not before.
        let mut board = sent(6);
        let mut delivered = Delivered::default();
        board.sack(1000, 3000, MSS, &mut delivered);
        assert!(!board.detect_losses(false));
        board.sack(1000, 4000, MSS, &mut delivered);
        assert!(board.detect_losses(false));
        assert_eq!(delivered.bytes, 3000);
        // Six sent, three arrived, one lost: two in the pipe.
        assert_eq!(board.pipe(), 2000);
        assert_eq!(board.next_lost(), Some(0));
    }

    #[test]
    fn fack_counts_holes_below_the_highest() {
        let mut board = sent(8);
        board.sack(5000, 6000, MSS, &mut Delivered::default());
        assert!(!board.detect_losses(false));
        assert!(board.detect_losses(true));
        // 5 is acknowledged; 0, 1 and 2 are three or more below it.
        assert_eq!(board.pipe(), 8000 - 1000 - 3000);
    }

    #[test]
    fn a_lost_retransmission_is_found_by_later_arrivals() {
        let mut board = sent(6);
        let mut delivered = Delivered::default();
        board.sack(1000, 5000, MSS, &mut delivered);
        board.detect_losses(false);
        board.retransmit(0, Time::from_millis(50), 0);
        for id in 6..10 {
            board.push(id * 1000, 1000, false, Time::from_millis(60 + id), 0);
        }
        board.sack(1000, 8000, MSS, &mut delivered);
        board.detect_lost_retransmissions();
        assert_eq!(board.next_lost(), None);
        board.sack(1000, 9000, MSS, &mut delivered);
        board.detect_lost_retransmissions();
        assert_eq!(board.next_lost(), Some(0));
        board.check();
    }

    #[test]
    fn short_segments_are_found_too() {
        let mut board = Scoreboard::default();
        let mut offset = 0;
        for len in [1000, 10, 1000, 1, 999, 1000] {
            board.push(offset, len, false, Time::ZERO, 0);
            offset += u64::from(len);
        }
        let mut delivered = Delivered::default();
        board.sack(1010, 2011, MSS, &mut delivered);
        assert_eq!(delivered.bytes, 1001);
        board.check();
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        Ack(u64),
        Sack(u64, u64),
        Detect(bool),
        Retransmit,
        Rescue,
        Timeout,
        Undo,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Push),
            2 => (0u64..8).prop_map(Step::Ack),
            4 => (0u64..40, 1u64..6).prop_map(|(left, len)| Step::Sack(left, len)),
            4 => any::<bool>().prop_map(Step::Detect),
            4 => Just(Step::Retransmit),
            1 => Just(Step::Rescue),
            1 => Just(Step::Timeout),
            1 => Just(Step::Undo),
        ]
    }

    proptest! {
        #[test]
        fn counters_equal_a_recount(steps in prop::collection::vec(step(), 1..200)) {
            let mut board = Scoreboard::default();
            let (mut next, mut una, mut total) = (0, 0, 0);
            for (tick, step) in steps.into_iter().enumerate() {
                let now = Time::from_millis(tick as u64);
                let mut delivered = Delivered::default();
                match step {
                    Step::Push => {
                        board.push(next * 1000, 1000, false, now, 0);
                        next += 1;
                    }
                    Step::Ack(count) => {
                        una = (una + count).min(next);
                        board.acknowledge(una * 1000, &mut delivered);
                    }
                    Step::Sack(left, len) => {
                        let (left, right) = (una + 1 + left, (una + 1 + left + len).min(next));
                        if left < right {
                            board.sack(left * 1000, right * 1000, MSS, &mut delivered);
                        }
                    }
                    Step::Detect(fack) => {
                        board.detect_losses(fack);
                        board.detect_lost_retransmissions();
                    }
                    Step::Retransmit => {
                        if let Some(id) = board.next_lost() {
                            board.retransmit(id, now, 0);
                        }
                    }
                    Step::Rescue => {
                        if let Some(id) = board.last_unknown() {
                            board.retransmit(id, now, 0);
                        }
                    }
                    // A receiver that keeps what it acknowledged never leaves a front like this.
                    Step::Timeout if board.front().is_some_and(|front| front.flags & SACKED != 0) => {}
                    Step::Timeout => board.all_is_lost(),
                    Step::Undo => board.nothing_is_lost(),
                }
                total += delivered.bytes;
                board.check();
                prop_assert!(total <= next * 1000, "nothing is delivered twice");
            }
            let mut delivered = Delivered::default();
            board.acknowledge(next * 1000, &mut delivered);
            prop_assert_eq!(total + delivered.bytes, next * 1000);
            prop_assert_eq!(board.pipe(), 0);
        }
    }
}
