//! What SACK blocks report: data received beyond a hole, and duplicate data.

use super::sack::RecentRuns;
use crate::runs::Runs;
use crate::segment::SackBlocks;

/// Data received beyond a hole, and duplicate data that was not reported yet.
#[derive(Clone, Debug, Default)]
pub struct Beyond {
    /// As offsets.
    runs: Runs,
    /// Bytes in them.
    pub bytes: u64,
    /// The runs that changed last, most recent first (RFC 2018, section 4).
    recent: RecentRuns,
    /// Duplicate data that was not reported yet (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
}

impl Beyond {
    /// Whether data is missing below what was received.
    pub fn has_holes(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.duplicate.is_none()
    }

    /// Everything below `right` is now received in order: removes the runs that this reaches. Returns the end of what is in
    /// order, and the first part that had arrived before.
    pub fn fill(&mut self, right: u64) -> (u64, Option<(u64, u64)>) {
        let (mut next, mut doubled) = (right, None);
        while let Some((left, end)) = self.runs.first()
            && left <= next
        {
            self.runs.pop_first();
            self.bytes -= end - left;
            if left < right && doubled.is_none() {
                doubled = Some((left, end.min(right)));
            }
            next = next.max(end);
        }
        self.recent.forget_below(next);
        (next, doubled)
    }

    /// `[left, right)` arrived beyond a hole: returns the run that now contains it, and the first part that had arrived before.
    #[inline]
    pub fn insert(&mut self, left: u64, right: u64) -> ((u64, u64), Option<(u64, u64)>) {
        let doubled = self.runs.overlapping(left, right).map(|run| (left.max(run.0), right.min(run.1)));
        let merged = self.runs.insert(left, right, |left, right| self.bytes += right - left);
        (merged, doubled)
    }

    /// The runs that changed last.
    pub fn recent(&self) -> RecentRuns {
        self.recent
    }

    /// `run` changed: it is reported first.
    #[inline(always)]
    pub fn touch(&mut self, run: (u64, u64)) {
        self.recent.touch(run);
    }

    /// `segment` arrived: what it grows is reported first, as Linux does it.
    pub fn extend(&mut self, segment: (u64, u64)) {
        self.recent.extend(segment);
    }

    /// `[left, end)` is discarded; its first part that had arrived before is to be reported.
    pub fn report_duplicate(&mut self, left: u64, end: u64) {
        if let Some(run) = self.runs.overlapping(left, end) {
            self.duplicate = Some((left.max(run.0), end.min(run.1)));
            // The block after the report must contain it.
            self.recent.touch(run);
        }
    }

    /// The SACK blocks of an ACK: a duplicate first, then the runs that changed last.
    pub fn take_blocks(&mut self, blocks: &mut SackBlocks, origin: u32, at_most: usize) {
        let duplicate = self.duplicate.take();
        self.recent.push_to(blocks, duplicate, origin, at_most);
    }
}
