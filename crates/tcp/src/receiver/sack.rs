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
    /// The place of the first run that `segment` overlaps or continues, or the number of runs if there is none.
    pub fn touching(&self, segment: (u64, u64)) -> usize {
        let runs = self.as_slice();
        runs.iter().position(|run| segment.0 <= run.1 && run.0 <= segment.1).unwrap_or(runs.len())
    }

    /// `segment` arrived (Linux, net/ipv4/tcp_input.c, `tcp_sack_new_ofo_skb`): the first run that it touches grows by it, moves
    /// to the front and absorbs the others that it then touches; without one the segment is a run of its own, even if it
    /// joins runs that were forgotten.
    pub fn extend(&mut self, segment: (u64, u64)) {
        let mut grown = segment;
        let place = self.touching(segment);
        if let Some(&(left, right)) = self.as_slice().get(place) {
            grown = (grown.0.min(left), grown.1.max(right));
        }
        let mut rest = Self::default();
        for (at, &run) in self.as_slice().iter().enumerate() {
            if at == place {
                continue;
            }
            if run.0 <= grown.1 && grown.0 <= run.1 {
                grown = (grown.0.min(run.0), grown.1.max(run.1));
            } else {
                rest.runs[usize::from(rest.count)] = run;
                rest.count += 1;
            }
        }
        rest.touch(grown);
        *self = rest;
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
        runs.touch((30, 32));
        assert_eq!(runs.as_slice(), [(30, 32), (50, 51), (40, 41), (20, 21)]);
        runs.touch((30, 42));
        assert_eq!(runs.as_slice(), [(30, 42), (50, 51), (20, 21)]);
        runs.forget_below(42);
        assert_eq!(runs.as_slice(), [(50, 51)]);
    }
    #[test]
    fn a_segment_grows_the_run_that_it_touches_and_absorbs_the_others() {
        let mut runs = RecentRuns::default();
        for left in [10, 20, 30, 40] {
            runs.extend((left, left + 5));
        }
        assert_eq!(runs.as_slice(), [(40, 45), (30, 35), (20, 25), (10, 15)]);
        assert_eq!((runs.touching((50, 55)), runs.touching((25, 28)), runs.touching((35, 40))), (4, 2, 0));
        runs.extend((25, 30));
        assert_eq!(runs.as_slice(), [(20, 35), (40, 45), (10, 15)]);
        for left in [60, 70] {
            runs.extend((left, left + 5));
        }
        // The run of 10 is forgotten: what continues it is a run of its own.
        assert_eq!(runs.as_slice(), [(70, 75), (60, 65), (20, 35), (40, 45)]);
        runs.extend((15, 18));
        assert_eq!(runs.as_slice(), [(15, 18), (70, 75), (60, 65), (20, 35)]);
    }
}
