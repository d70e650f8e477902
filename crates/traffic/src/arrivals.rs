//! Flows that arrive at random: a Poisson process, independent of the flows' progress.

use std::sync::Arc;

use elephan_units::{Seed, Stream, Time};

use crate::distribution::Distribution;

/// The sizes of arriving flows, or of an application's chunks.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Random sizes, in bytes; rounded, and at least one.
    Drawn(Distribution),
    /// Sizes from a list in order, which restarts after its end; not empty.
    Listed(Arc<[u64]>),
}

impl Sizes {
    /// The size number `index`, bytes; one that is drawn comes from `stream`.
    pub(crate) fn next(&self, index: u64, stream: &mut Stream) -> u64 {
        match self {
            Self::Drawn(distribution) => distribution.draw(stream).round().max(1.0) as u64,
            Self::Listed(list) => list[(index % list.len() as u64) as usize],
        }
    }

    /// The mean, bytes; infinite if a distribution has none.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Drawn(distribution) => distribution.mean(),
            Self::Listed(list) => list.iter().map(|&size| size as f64).sum::<f64>() / list.len() as f64,
        }
    }
}

/// A Poisson process of sized flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// Mean number of flows that arrive in a second.
    pub per_second: f64,
    /// Their sizes.
    pub sizes: Sizes,
}

/// A process while it runs. Times and sizes come from separate random streams: a change of the sizes does not
/// change the times.
#[derive(Clone, Debug)]
pub struct Arriving {
    arrivals: Arrivals,
    times: Stream,
    sizes: Stream,
    next: Time,
    count: u64,
}

impl Arriving {
    /// Process number `index` of a run, which begins at `start`.
    pub fn new(arrivals: &Arrivals, seed: Seed, index: u64, start: Time) -> Self {
        let mut process = Self {
            arrivals: arrivals.clone(),
            times: seed.stream("times of arrival", index),
            sizes: seed.stream("sizes of arrivals", index),
            next: start,
            count: 0,
        };
        process.advance();
        process
    }

    fn advance(&mut self) {
        let gap = Distribution::Exponential(1.0 / self.arrivals.per_second).draw(&mut self.times);
        self.next = self.next.saturating_add(Time::from_secs_f64(gap));
    }

    /// When the next flow arrives.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next flow has arrived; returns its size, bytes.
    pub fn arrive(&mut self) -> u64 {
        self.advance();
        let size = self.arrivals.sizes.next(self.count, &mut self.sizes);
        self.count += 1;
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 11;

    fn process(sizes: Sizes) -> Arriving {
        Arriving::new(&Arrivals { per_second: 20.0, sizes }, Seed::new(SEED), 0, Time::from_secs(1))
    }

    #[test]
    fn arrivals_are_poisson() {
        // Counts in 5000 intervals of 1 s: mean 20 and variance 20, with standard deviations of 0.063 and 0.4.
        let mut process = process(Sizes::Drawn(Distribution::Constant(1.0)));
        let mut counts = vec![0.0f64; 5001];
        while process.next() < Time::from_secs(5001) {
            counts[process.next().secs_f64() as usize] += 1.0;
            process.arrive();
        }
        assert_eq!(counts[0], 0.0);
        let counts = &counts[1..];
        let mean = counts.iter().sum::<f64>() / 5000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 4999.0;
        assert!(
            (mean - 20.0).abs() < 0.25 && (variance - 20.0).abs() < 1.6,
            "seed {SEED}: {mean}, {variance}"
        );
    }

    #[test]
    fn a_list_is_read_in_turn() {
        let mut process = process(Sizes::Listed(Arc::new([5, 7, 9])));
        let sizes: Vec<u64> = (0..5).map(|_| process.arrive()).collect();
        assert_eq!(sizes, [5, 7, 9, 5, 7]);
        assert_eq!(process.arrivals.sizes.mean(), 7.0);
    }

    #[test]
    fn other_sizes_arrive_at_the_same_times() {
        let times = |sizes| {
            let mut process = process(sizes);
            (0..100).map(|_| (process.next(), process.arrive()).0).collect::<Vec<_>>()
        };
        let drawn = Sizes::Drawn(Distribution::Pareto { minimum: 1000.0, shape: 1.2 });
        assert_eq!(times(drawn), times(Sizes::Listed(Arc::new([5]))));
    }
}
