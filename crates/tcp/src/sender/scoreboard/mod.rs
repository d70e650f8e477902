//! What was sent and not yet cumulatively acknowledged: one record for each segment, in order.
//!
//! Everything an ACK asks of it is constant time when amortised over the segments, with selective acknowledgments too: a
//! segment is pushed once, selectively acknowledged once, marked lost once for each time it is lost, and popped once. Segments
//! are counted by a serial number, the `id`. Which are lost is in `losses.rs`, which is retransmitted next in `next.rs`.

mod losses;
mod next;
mod record;

use std::collections::VecDeque;

use elephan_units::Time;

use record::{FIN, IN_FLIGHT_AGAIN, LOST, Record, SACKED};

pub use record::is_later;

/// Duplicate ACK threshold (RFC 5681, section 3.2; RFC 6675, section 2).
pub const DUP_THRESH: u64 = 3;

/// What an ACK delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// Nothing that was sent later than this can have been acknowledged: one smallest round trip ago.
    horizon: Time,
    /// Payload bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// Payload bytes newly acknowledged cumulatively, whether or not selectively before.
    pub cumulative: u64,
    /// Segments newly acknowledged cumulatively.
    pub segments: u64,
    /// The newest of these segments that was sent only once: when.
    pub newest: Option<Time>,
    /// The first of these segments that was sent more than once: when it was sent last.
    pub ambiguous: Option<Time>,
}

impl Delivered {
    /// Nothing yet. Where a segment was retransmitted after `horizon`, it was the original that arrived.
    pub fn new(horizon: Time) -> Self {
        Self { horizon, bytes: 0, cumulative: 0, segments: 0, newest: None, ambiguous: None }
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
    /// No id below is retransmitted by NextSeg's rule 3.
    unknown_from: u64,
    /// No id below is lost and waits for its first retransmission.
    retransmit_from: u64,
    /// Lost, not selectively acknowledged, and not in flight again: waiting to be retransmitted.
    waiting: u64,
    /// Retransmissions in the order in which they were sent: id, and which transmission. Kept to find
    /// those that were lost, where that is wanted.
    retransmissions: VecDeque<(u64, u32)>,
    keeps_retransmissions: bool,
    /// Ids whose retransmission was lost too.
    lost_again: VecDeque<u64>,
    /// Transmissions so far.
    transmissions: u32,
    /// The latest transmission known to have arrived.
    latest_arrived: u32,
    pipe: u64,
}

impl Scoreboard {
    /// An empty one, which finds lost retransmissions or not.
    pub fn new(lost_retransmissions: bool) -> Self {
        Self { keeps_retransmissions: lost_retransmissions, ..Self::default() }
    }

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

    /// The oldest segment's id, for a retransmission whatever is known of it.
    pub fn front_id(&self) -> Option<u64> {
        (!self.records.is_empty()).then_some(self.first)
    }

    /// Segments outstanding.
    pub fn len(&self) -> u64 {
        self.records.len() as u64
    }

    /// How many segments are lost and were not retransmitted since.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether some segment is lost and was not retransmitted since.
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
    pub fn push(&mut self, offset: u64, len: u16, fin: bool, now: Time) {
        let transmission = self.next_transmission();
        let flags = if fin { FIN } else { 0 };
        self.records.push_back(Record { offset, sent_at: now, transmission, len, flags });
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
                let record = *record;
                self.arrived(&record, delivered);
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

    /// Notes when what arrived was sent, as far as it is known which transmission it was.
    fn arrived(&mut self, record: &Record, delivered: &mut Delivered) {
        if record.was_retransmitted() {
            delivered.ambiguous.get_or_insert(record.sent_at);
            // RFC 8985, section 6.2, step 2: too soon for the retransmission.
            if record.sent_at > delivered.horizon {
                return;
            }
        } else if delivered.newest.is_none_or(|sent_at| sent_at <= record.sent_at) {
            delivered.newest = Some(record.sent_at);
        }
        if is_later(record.transmission, self.latest_arrived) {
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
        self.arrived(&record, delivered);
        delivered.bytes += u64::from(record.len);
    }

    /// Transmissions so far, new and again, wrapping.
    pub fn transmissions(&self) -> u32 {
        self.transmissions
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
