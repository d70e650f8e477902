//! The runs that SACK blocks report (RFC 2018, section 4): those that changed last, most recent first.

/// Up to four runs of offsets `[left, right)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentRuns {
    runs: [(u64, u64); 4],
    count: u8,
}

impl RecentRuns {
    /// `run` changed: it moves to the front, and the runs that it absorbed are removed. Returns the place where
    /// the first of them was, or the number of runs before if it is new.
    pub fn touch(&mut self, run: (u64, u64)) -> usize {
        let mut carried = run;
        let mut kept = 0;
        let mut place = usize::from(self.count);
        for at in 0..usize::from(self.count) {
            let old = self.runs[at];
            if run.0 <= old.0 && old.1 <= run.1 {
                place = place.min(at);
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
        place
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
        assert_eq!(runs.touch((60, 61)), 4);
        runs = RecentRuns::default();
        for (place, left) in [10, 20, 30, 40].into_iter().enumerate() {
            assert_eq!(runs.touch((left, left + 1)), place);
        }
        runs.touch((50, 51));
        assert_eq!(runs.as_slice(), [(50, 51), (40, 41), (30, 31), (20, 21)]);
        assert_eq!(runs.touch((30, 32)), 2);
        assert_eq!(runs.as_slice(), [(30, 32), (50, 51), (40, 41), (20, 21)]);
        runs.touch((30, 42));
        assert_eq!(runs.as_slice(), [(30, 42), (50, 51), (20, 21)]);
        runs.forget_below(42);
        assert_eq!(runs.as_slice(), [(50, 51)]);
    }
}
