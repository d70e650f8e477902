//! Data that was sent and not yet cumulatively acknowledged, in order: first one record for each segment, as far as something may be known
//! of any, and then bursts of segments of which nothing is known but that they were sent once. As long as nothing is missing there are
//! only bursts; a segment gets its record when it is first asked for or marked.
//!
//! All operations for an ACK take constant time, amortised over the segments, with selective acknowledgments
//! too: a segment is pushed once, selectively acknowledged once, marked lost once for each time it is lost,
//! and popped once. Segments are numbered by a serial number, the `id`. `losses.rs` determines which segments
//! are lost by counting, `overdue.rs` by time, and `next.rs` determines which one is retransmitted next.

mod burst;
mod losses;
mod next;
mod overdue;
mod record;

use std::collections::VecDeque;

use elephan_units::Time;

use crate::runs::Runs;

use burst::{Bursts, Removed, make_room, take_first};
use record::{FIN, IN_FLIGHT_AGAIN, LOST, RETRANSMITTED, SACKED};

pub use record::{Record, is_later};

/// Duplicate ACK threshold (RFC 5681, section 3.2; RFC 6675, section 2).
pub const DUP_THRESH: u64 = 3;

/// What an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// No segment sent later than this can have been acknowledged: the ACK's arrival less the smallest
    /// round-trip time.
    horizon: Time,
    /// No segment sent later than this was acknowledged cumulatively, as the echoed timestamp says.
    pub echoed: Option<Time>,
    /// Payload bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// Payload bytes for which the ACK counts towards the growth of the window, and in a recovery.
    pub counted: u64,
    /// Payload bytes newly acknowledged cumulatively, whether or not selectively before.
    pub cumulative: u64,
    /// Segments newly acknowledged cumulatively.
    pub segments: u64,
    /// What a governor is told besides, if there is one.
    pub told: Option<Arrivals>,
    /// Time when the newest of these segments that was sent only once was sent.
    pub newest: Option<Time>,
    /// Time of the last transmission of the first of these segments that was sent more than once.
    pub ambiguous: Option<Time>,
    /// Offset of the lowest of these segments that was sent only once; `u64::MAX` if there is none.
    pub lowest: u64,
    /// Of those of which it is known which transmission arrived, the last in the order of sequence: its offset, and when it
    /// was sent.
    pub last: Option<(u64, Time)>,
}

/// The segments that an ACK delivered, as they are reported to a governor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Segments newly acknowledged, cumulatively or selectively.
    pub count: u64,
    /// The latest transmission among these: its number, the segment's id, and when it was sent.
    pub latest: Option<(u32, u64, Time)>,
}

impl Arrivals {
    #[cold]
    fn add(&mut self, transmission: u32, id: u64, sent_at: Time) {
        self.count += 1;
        if self.latest.is_none_or(|(latest, ..)| is_later(transmission, latest)) {
            self.latest = Some((transmission, id, sent_at));
        }
    }
}

impl Delivered {
    /// An empty value. If a segment was retransmitted after `horizon`, the original is what arrived.
    pub fn new(horizon: Time) -> Self {
        Self { horizon, lowest: u64::MAX, ..Self::default() }
    }
}

/// What many flows never need.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// The blocks of the last ACK, which most ACKs repeat but for one (Linux's `recv_sack_cache`).
    blocks: [(u64, u64); 4],
    /// Ids whose retransmission was lost too.
    lost_again: VecDeque<u64>,
    /// Ids of the segments that were found lost since these were taken last, where they are kept.
    found: Vec<u64>,
}

/// The segments in flight, and the state of each. What an ACK touches while nothing is missing comes first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    /// The segments behind the records.
    bursts: Bursts,
    /// Id of the first segment, and number of segments.
    first: u64,
    len: u64,
    pipe: u64,
    /// When it was sent.
    latest_sent_at: Time,
    /// The latest transmission known to have arrived.
    latest_arrived: u32,
    /// Number of transmissions so far.
    transmissions: u32,
    records: VecDeque<Record>,
    /// Selectively acknowledged ids.
    runs: Runs,
    /// None while nothing was selectively acknowledged or retransmitted in vain.
    rare: Option<Box<Rare>>,
    /// Every id below this was checked for loss.
    examined: u64,
    /// NextSeg's rule 3 retransmits no id below this.
    unknown_from: u64,
    /// No id below this is lost and waits for its first retransmission.
    retransmit_from: u64,
    /// Segments that are lost, not selectively acknowledged, and not in flight again: they wait to be
    /// retransmitted.
    waiting: u32,
    /// Segments that are lost and not selectively acknowledged.
    lost: u32,
    /// Segments that are in flight again and not selectively acknowledged.
    retransmitted: u32,
    /// Segments that are selectively acknowledged.
    sacked: u32,
    /// Transmissions taken as lost since the connection began, wrapping.
    losses: u32,
    keeps_retransmissions: bool,
    /// Whether it is kept which segments were found lost.
    keeps_found: bool,
    /// Retransmissions in the order in which they were sent: the id and the number of the transmission. Kept
    /// only where lost retransmissions are to be detected (`keeps_retransmissions`).
    retransmissions: VecDeque<(u64, u32)>,
}

impl Scoreboard {
    /// An empty scoreboard; the argument says whether it detects lost retransmissions.
    pub fn new(lost_retransmissions: bool) -> Self {
        Self { keeps_retransmissions: lost_retransmissions, ..Self::default() }
    }

    /// From now on it is kept which segments are found lost.
    pub fn keep_found(&mut self) {
        self.keeps_found = true;
    }

    /// Whether any segments were found lost since they were taken last.
    #[inline]
    pub fn has_found(&self) -> bool {
        self.keeps_found && self.rare.as_ref().is_some_and(|rare| !rare.found.is_empty())
    }

    /// The ids of these segments, in the order in which they were found lost.
    pub fn take_found(&mut self) -> Vec<u64> {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.found)).unwrap_or_default()
    }

    /// Whether nothing is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id that the next new segment will get.
    pub fn next_id(&self) -> u64 {
        self.first + self.len
    }

    /// RFC 6675's pipe: payload bytes thought to be in flight.
    pub fn pipe(&self) -> u64 {
        self.pipe
    }

    /// The id of the oldest segment outstanding, or of the next new one.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The oldest segment outstanding.
    pub fn front(&self) -> Option<&Record> {
        self.records.front().or_else(|| self.bursts.front())
    }

    /// The oldest segment's id, for a retransmission regardless of its state.
    pub fn front_id(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.first)
    }

    /// Number of segments outstanding.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether any segment outstanding was selectively acknowledged.
    pub fn has_sacked(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether nothing was selectively acknowledged, is lost or was retransmitted, as far as losses are detected by
    /// counting.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.runs.is_empty() && self.waiting == 0 && self.retransmissions.is_empty()
    }

    /// Whether nothing is known of any segment but that it was sent once.
    pub fn is_untouched(&self) -> bool {
        self.records.is_empty() && self.retransmissions.is_empty()
    }

    /// Number of segments that are lost and were not retransmitted since.
    pub fn waiting(&self) -> u64 {
        self.waiting.into()
    }

    /// Number of segments that are lost and not known to have arrived since, retransmitted or not.
    pub fn lost(&self) -> u64 {
        self.lost.into()
    }

    /// Number of segments of which a retransmission is thought to be in flight.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted.into()
    }

    /// Number of segments that are selectively acknowledged.
    pub fn sacked(&self) -> u64 {
        self.sacked.into()
    }

    /// Number of transmissions taken as lost since the connection began, wrapping.
    pub fn losses(&self) -> u32 {
        self.losses
    }

    /// Whether any segment is lost and was not retransmitted since.
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The id after the last segment that has a record.
    fn recorded(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Gives the next segment without a record one; returns whether there was any.
    fn record_next(&mut self) -> bool {
        let Some(next) = self.bursts.pop_front() else { return false };
        make_room(&mut self.records);
        self.records.push_back(next);
        true
    }

    /// Gives all segments up to this one records.
    #[inline]
    fn record_to(&mut self, id: u64) {
        while self.recorded() <= id && self.record_next() {}
    }

    /// A segment that has a record, or is the first without one.
    fn get(&self, id: u64) -> &Record {
        match self.records.get((id - self.first) as usize) {
            Some(record) => record,
            None => self.bursts.front().expect("a segment that is asked for is outstanding"),
        }
    }

    /// A record to be marked.
    fn get_mut(&mut self, id: u64) -> &mut Record {
        self.record_to(id);
        &mut self.records[(id - self.first) as usize]
    }

    fn next_transmission(&mut self) -> u32 {
        self.transmissions = self.transmissions.wrapping_add(1);
        self.transmissions
    }

    /// A new segment was sent.
    #[inline]
    pub fn push(&mut self, offset: u64, len: u16, fin: bool, now: Time) {
        self.push_burst(offset, len, 1, if fin { FIN } else { 0 }, now);
    }

    /// New segments of `len` bytes were sent, `count` of them.
    #[inline]
    pub fn push_many(&mut self, offset: u64, len: u16, count: u32, now: Time) {
        self.push_burst(offset, len, count, 0, now);
    }

    #[inline(always)]
    fn push_burst(&mut self, offset: u64, len: u16, count: u32, flags: u8, now: Time) {
        let transmission = self.transmissions.wrapping_add(1);
        self.transmissions = self.transmissions.wrapping_add(count);
        self.bursts.push(Record { offset, sent_at: now, transmission, len, flags }, count);
        self.len += u64::from(count);
        self.pipe += u64::from(count) * u64::from(len);
    }

    /// The fast path of [`Scoreboard::acknowledge`], if the scoreboard [`is untouched`](Scoreboard::is_untouched): removes everything
    /// below `offset`, or returns `None`, with nothing changed, unless that is a segment or more.
    #[inline(always)]
    pub fn acknowledge_untouched(&mut self, offset: u64) -> Option<Removed> {
        let removed = self.bursts.remove_below(offset)?;
        self.first += u64::from(removed.count);
        self.len -= u64::from(removed.count);
        self.pipe -= removed.bytes;
        if is_later(removed.transmission, self.latest_arrived) {
            (self.latest_arrived, self.latest_sent_at) = (removed.transmission, removed.sent_at);
        }
        Some(removed)
    }

    /// Removes everything below `offset`, and adds it to `delivered`.
    pub fn acknowledge(&mut self, offset: u64, delivered: &mut Delivered) {
        let horizon = delivered.horizon;
        delivered.horizon = horizon.min(delivered.echoed.unwrap_or(horizon));
        while let Some(&record) = self.front() {
            if record.end() > offset {
                break;
            }
            if take_first(&mut self.records).is_none() {
                self.bursts.pop_front();
            }
            delivered.cumulative += u64::from(record.len);
            delivered.segments += 1;
            if record.flags & SACKED == 0 {
                delivered.bytes += u64::from(record.len);
                self.arrived(self.first, &record, delivered);
                self.leaves(&record);
            } else {
                self.sacked -= 1;
            }
            self.first += 1;
            self.len -= 1;
        }
        delivered.horizon = horizon;
        self.runs.remove_below(self.first);
        if self.records.is_empty() {
            // All that it says is of segments that had records.
            self.rare = None;
        }
    }

    /// No retransmission is known to be lost.
    fn forget_lost_again(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.lost_again.clear();
        }
    }

    /// A segment has arrived: it no longer counts as in flight, lost or retransmitted.
    fn leaves(&mut self, record: &Record) {
        if record.flags & (LOST | IN_FLIGHT_AGAIN) == 0 {
            self.pipe -= u64::from(record.len);
            return;
        }
        self.pipe -= record.in_pipe();
        self.waiting -= u32::from(record.waits());
        self.lost -= u32::from(record.flags & LOST != 0);
        self.retransmitted -= u32::from(record.flags & IN_FLIGHT_AGAIN != 0);
    }

    /// Recounts what waits, is lost, is in flight again and in the pipe.
    fn count(&mut self) {
        self.record_to(self.next_id());
        (self.waiting, self.lost, self.retransmitted, self.pipe) = (0, 0, 0, 0);
        for record in self.records.iter().filter(|record| record.flags & SACKED == 0) {
            self.waiting += u32::from(record.waits());
            self.lost += u32::from(record.flags & LOST != 0);
            self.retransmitted += u32::from(record.flags & IN_FLIGHT_AGAIN != 0);
            self.pipe += record.in_pipe();
        }
    }

    /// Records when the delivered segment was sent, if it is known which transmission arrived.
    fn arrived(&mut self, id: u64, record: &Record, delivered: &mut Delivered) {
        let mut is_known = true;
        if record.was_retransmitted() {
            delivered.ambiguous.get_or_insert(record.sent_at);
            // RFC 8985, section 6.2, step 2: the ACK came too soon for the retransmission.
            is_known = record.sent_at <= delivered.horizon;
        } else {
            if delivered.newest.is_none_or(|sent_at| sent_at <= record.sent_at) {
                delivered.newest = Some(record.sent_at);
            }
            delivered.lowest = delivered.lowest.min(record.offset);
        }
        if is_known {
            if delivered.last.is_none_or(|(offset, _)| offset < record.offset) {
                delivered.last = Some((record.offset, record.sent_at));
            }
            if is_later(record.transmission, self.latest_arrived) {
                (self.latest_arrived, self.latest_sent_at) = (record.transmission, record.sent_at);
            }
        }
        if let Some(arrivals) = &mut delivered.told {
            arrivals.add(record.transmission, id, record.sent_at);
        }
    }

    /// Whether the segment at `offset` was retransmitted and is selectively acknowledged.
    pub fn is_sacked_again(&self, offset: u64, mss: u32) -> bool {
        let id = self.id_at(offset, mss);
        offset >= self.records.front().map_or(u64::MAX, |front| front.offset)
            && id < self.recorded()
            && self.get(id).flags & (SACKED | RETRANSMITTED) == SACKED | RETRANSMITTED
    }

    /// The id of the first segment that begins at or after `offset`, of those that have records; the next if there is none.
    ///
    /// Segments are at most `mss` long, so division gives a lower bound. It is exact unless there are short
    /// segments.
    fn id_at(&self, offset: u64, mss: u32) -> u64 {
        let Some(front) = self.records.front() else { return self.first };
        let count = self.records.len();
        let guess = (offset.saturating_sub(front.offset) / u64::from(mss)) as usize;
        if guess >= count {
            return self.recorded();
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

    /// The blocks of the last ACK, which tell nothing new.
    #[inline]
    pub fn last_blocks(&self) -> [(u64, u64); 4] {
        self.rare.as_ref().map_or_else(Default::default, |rare| rare.blocks)
    }

    /// An ACK has this block in this place, and it was processed.
    #[inline]
    pub fn note_block(&mut self, place: usize, block: (u64, u64)) {
        self.rare.get_or_insert_default().blocks[place] = block;
    }

    /// The fast path of [`Scoreboard::sack`], for a block that begins in the last run, or where it ends: the run
    /// grows by the segments that the block covers. Returns false, with nothing changed, for another.
    #[inline]
    fn sack_further(&mut self, left: u64, right: u64, delivered: &mut Delivered) -> bool {
        let Some((from, to)) = self.runs.last() else { return false };
        if to == self.next_id() || left < self.get(from).offset || left > self.get(to).offset {
            return false;
        }
        let mut end = to;
        while end < self.next_id() && self.get(end).end() <= right {
            self.mark_sacked(end, delivered);
            end += 1;
        }
        self.runs.extend_last(end);
        true
    }

    /// A selective acknowledgment of `[left, right)`. Only the newly covered part is examined.
    #[inline]
    pub fn sack(&mut self, left: u64, right: u64, mss: u32, delivered: &mut Delivered) {
        if !self.sack_further(left, right, delivered) {
            self.sack_anywhere(left, right, mss, delivered);
        }
    }

    #[inline(never)]
    fn sack_anywhere(&mut self, left: u64, right: u64, mss: u32, delivered: &mut Delivered) {
        while self.bursts.front().is_some_and(|record| record.offset < right) {
            self.record_next();
        }
        let from = self.id_at(left, mss).max(self.first);
        let mut to = self.id_at(right, mss);
        // A block that ends within a segment does not cover it.
        while to > from && self.get(to - 1).end() > right {
            to -= 1;
        }
        if from >= to {
            return;
        }
        let mut runs = std::mem::take(&mut self.runs);
        runs.insert(from, to, |left, right| {
            for id in left..right {
                self.mark_sacked(id, delivered);
            }
        });
        self.runs = runs;
    }

    #[inline]
    fn mark_sacked(&mut self, id: u64, delivered: &mut Delivered) {
        let marked = self.get_mut(id);
        let record = *marked;
        marked.flags |= SACKED;
        self.sacked += 1;
        self.leaves(&record);
        delivered.bytes += u64::from(record.len);
        self.arrived(id, &record, delivered);
    }

    /// Whether a segment in flight was ever retransmitted.
    pub fn was_retransmitted(&self, id: u64) -> bool {
        id < self.recorded() && self.get(id).was_retransmitted()
    }

    /// The same with a record for each segment, for tests that compare.
    #[cfg(test)]
    pub fn recorded_all(&self) -> Self {
        let mut board = self.clone();
        board.record_to(board.next_id());
        board
    }

    /// Number of transmissions so far, retransmissions included, wrapping.
    pub fn transmissions(&self) -> u32 {
        self.transmissions
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
