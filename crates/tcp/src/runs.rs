//! Disjoint runs of numbers, in order: what arrived beyond a hole.
//!
//! The overshoot of a slow start leaves as many runs as half a window has segments, and their holes are filled in any
//! order, so that no change may take time in proportion to the number of runs. The last run is kept apart, because most
//! arrivals extend it.

use std::collections::BTreeMap;

/// Disjoint runs `[left, right)` that do not touch.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// All but the last: the right end of each, by its left end.
    below: BTreeMap<u64, u64>,
    last: Option<(u64, u64)>,
}

impl Runs {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The first run.
    #[inline]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.below.first_key_value().map(|(&left, &right)| (left, right)).or(self.last)
    }

    /// The last run.
    #[inline]
    pub fn last(&self) -> Option<(u64, u64)> {
        self.last
    }

    /// The runs in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.below.iter().map(|(&left, &right)| (left, right)).chain(self.last)
    }

    /// Removes the first run.
    pub fn pop_first(&mut self) -> Option<(u64, u64)> {
        let Some(first) = self.below.pop_first() else { return self.last.take() };
        self.give_back();
        Some(first)
    }

    /// A map that has become empty keeps the memory of eleven runs.
    fn give_back(&mut self) {
        if self.below.is_empty() {
            self.below = BTreeMap::new();
        }
    }

    /// Removes everything below `from`.
    #[inline]
    pub fn remove_below(&mut self, from: u64) {
        while let Some((left, right)) = self.first()
            && left < from
        {
            self.pop_first();
            if right > from {
                self.insert(from, right, |_, _| ());
            }
        }
    }

    /// Removes all runs.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The last run grows up to `right`.
    #[inline]
    pub fn extend_last(&mut self, right: u64) {
        if let Some(last) = &mut self.last {
            last.1 = right;
        }
    }

    /// The first run that contains any of `[left, right)`.
    #[inline]
    pub fn overlapping(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        let last = self.last.filter(|last| left < last.1)?;
        let below = if left < last.0 { self.overlapping_below(left, right) } else { None };
        below.or_else(|| (last.0 < right).then_some(last))
    }

    /// The same of all but the last.
    fn overlapping_below(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        let mut below = self.below.range(..right).map(|(&start, &end)| (start, end));
        let mut found = below.next_back().filter(|run| run.1 > left)?;
        while let Some(run) = below.next_back().filter(|run| run.1 > left) {
            found = run;
        }
        Some(found)
    }

    /// Adds `[left, right)`, which is not empty, and merges it with the runs that it touches: returns the run that now
    /// contains it. `add` is called for each part, in order, that no run contained.
    #[inline]
    pub fn insert(&mut self, left: u64, right: u64, mut add: impl FnMut(u64, u64)) -> (u64, u64) {
        let Some(last) = self.last.filter(|last| left >= last.0) else {
            return self.insert_below(left, right, add);
        };
        if left > last.1 {
            self.below.insert(last.0, last.1);
            self.last = Some((left, right));
            add(left, right);
            return (left, right);
        }
        if right <= last.1 {
            return last;
        }
        add(last.1, right);
        self.last = Some((last.0, right));
        (last.0, right)
    }

    /// The same for what begins below the last run.
    #[inline(never)]
    fn insert_below(&mut self, left: u64, right: u64, mut add: impl FnMut(u64, u64)) -> (u64, u64) {
        let (mut merged, mut from) = ((left, right), left);
        let (mut next, mut followers) = (left, 0);
        for (&start, end) in self.below.range_mut(..=right).rev() {
            if start > left {
                (next, followers) = (start, followers + 1);
                continue;
            }
            if *end >= right {
                return (start, *end);
            }
            if *end >= left {
                (merged.0, from) = (start, *end);
                if followers == 0 && self.last.is_some_and(|last| last.0 > right) {
                    *end = right;
                    add(from, right);
                    return (start, right);
                }
            }
            break;
        }
        for more in (0..followers).rev() {
            add(from, next);
            if let Some(end) = self.below.remove(&next) {
                (merged.1, from) = (right.max(end), end);
            }
            if more > 0
                && let Some((&start, _)) = self.below.range(from..=right).next()
            {
                next = start;
            }
        }
        let last = self.last.filter(|last| last.0 <= right);
        if let Some((start, end)) = last {
            add(from, start);
            (merged.1, from) = (right.max(end), end);
        }
        if from < right {
            add(from, right);
        }
        if last.is_some() || self.last.is_none() {
            self.below.remove(&merged.0);
            self.give_back();
            self.last = Some(merged);
        } else {
            self.below.insert(merged.0, merged.1);
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    /// The runs of a set of numbers.
    fn runs_of(set: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &number in set {
            match runs.last_mut() {
                Some(last) if last.1 == number => last.1 += 1,
                _ => runs.push((number, number + 1)),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn runs_are_those_of_a_set(steps in prop::collection::vec((0u64..60, 1u64..12, 0u8..5), 1..60)) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for (left, len, kind) in steps {
                let right = left + len;
                match kind {
                    0 => {
                        runs.remove_below(left);
                        set = set.split_off(&left);
                    }
                    1 => {
                        let popped = runs.pop_first();
                        prop_assert_eq!(popped, runs_of(&set).first().copied());
                        if let Some(run) = popped {
                            set = set.split_off(&run.1);
                        }
                    }
                    _ => {
                        let new: BTreeSet<u64> = (left..right).filter(|number| !set.contains(number)).collect();
                        let overlapping = runs_of(&set).into_iter().find(|run| run.0 < right && left < run.1);
                        prop_assert_eq!(runs.overlapping(left, right), overlapping);
                        let mut added = Vec::new();
                        let merged = runs.insert(left, right, |from, to| added.push((from, to)));
                        prop_assert_eq!(added, runs_of(&new));
                        set.extend(left..right);
                        let containing = runs_of(&set).into_iter().find(|run| run.0 <= left && right <= run.1);
                        prop_assert_eq!(Some(merged), containing);
                    }
                }
                let expected = runs_of(&set);
                prop_assert_eq!(runs.iter().collect::<Vec<_>>(), expected.clone());
                prop_assert_eq!((runs.first(), runs.last()), (expected.first().copied(), expected.last().copied()));
                prop_assert_eq!(runs.is_empty(), expected.is_empty());
                if let Some(&(left, right)) = expected.last() {
                    runs.extend_last(right + 2);
                    set.extend(left..right + 2);
                }
            }
        }
    }
}
