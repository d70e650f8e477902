//! The runs that SACK blocks report (RFC 2018, section 4): those that changed last, most recent first.

use crate::segment::SackBlocks;
use crate::sequence;

/// Up to four runs of offsets `[left, right)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentRuns {
    runs: [(u64, u64); 4],
    count: u8,
}

impl RecentRuns {
    /// The place of the first run that `run` covers, or the number of runs if it covers none.
    pub fn place(&self, run: (u64, u64)) -> usize {
        let runs = self.as_slice();
        runs.iter().position(|old| run.0 <= old.0 && old.1 <= run.1).unwrap_or(runs.len())
    }

    /// `run` changed: it moves to the front, and the runs that it absorbed are removed.
    #[inline(always)]
    pub fn touch(&mut self, run: (u64, u64)) {
        let mut carried = run;
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            let old = self.runs[at];
            if run.0 <= old.0 && old.1 <= run.1 {
                continue;
            }
            self.runs[kept] = carried;
            carried = old;
            kept += 1;
        }
        if let Some(slot) = self.runs.get_mut(kept) {
            *slot = carried;
            kept += 1;
        }
        self.count = kept as u8;
    }

    /// Everything below `next` was acknowledged; removes the runs below it.
    pub fn forget_below(&mut self, next: u64) {
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            if self.runs[at].0 > next {
                self.runs[kept] = self.runs[at];
                kept += 1;
            }
        }
        self.count = kept as u8;
    }

    /// Appends the SACK blocks of an ACK: a `duplicate` first, then these runs.
    pub fn push_to(
        &self,
        blocks: &mut SackBlocks,
        duplicate: Option<(u64, u64)>,
        origin: u32,
        at_most: usize,
    ) {
        for &(left, right) in duplicate.iter().chain(self.as_slice()).take(at_most) {
            blocks.push(sequence::wire(left, origin), sequence::wire(right, origin));
        }
    }

    /// The runs, most recent first.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.runs[..usize::from(self.count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_comes_first_and_the_oldest_of_five_goes() {
        let mut runs = RecentRuns::default();
        for left in [10, 20, 30, 40, 50] {
            runs.touch((left, left + 1));
        }
        assert_eq!(runs.as_slice(), [(50, 51), (40, 41), (30, 31), (20, 21)]);
        assert_eq!((runs.place((60, 61)), runs.place((30, 32))), (4, 2));
        runs.touch((30, 32));
        assert_eq!(runs.as_slice(), [(30, 32), (50, 51), (40, 41), (20, 21)]);
        runs.touch((30, 42));
        assert_eq!(runs.as_slice(), [(30, 42), (50, 51), (20, 21)]);
        runs.forget_below(42);
        assert_eq!(runs.as_slice(), [(50, 51)]);
    }
}
