//! Start times.

use elephan_units::{Seed, Time};
use rand::RngExt;

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// At a time drawn uniformly from the first to the second.
    Uniform(Time, Time),
    /// At a time drawn from an exponential distribution with this mean, after `from`.
    Exponential {
        /// Mean of the distribution.
        mean: Time,
        /// Earliest start.
        from: Time,
    },
}

impl Start {
    /// The start of flow number `index`: the same for the same seed, whatever the other flows do.
    pub fn draw(&self, seed: Seed, index: u64) -> Time {
        self.draw_for("start of flow", seed, index)
    }

    /// The start time number `index` of something other than a flow, drawn from a separate stream `purpose`.
    pub fn draw_for(&self, purpose: &str, seed: Seed, index: u64) -> Time {
        let mut stream = seed.stream(purpose, index);
        match *self {
            Self::At(time) => time,
            Self::Uniform(from, to) => Time::from_picos(stream.random_range(from.picos()..=to.picos())),
            Self::Exponential { mean, from } => {
                // By inversion; 1 - u is in (0, 1], so that the logarithm is finite.
                let u = 1.0 - stream.random::<f64>();
                from.saturating_add(mean.mul_f64(-libm::log(u)))
            }
        }
    }

    /// The latest start that can be drawn; for an exponential distribution, the 99.9 % quantile.
    pub fn latest(&self) -> Time {
        match *self {
            Self::At(time) => time,
            Self::Uniform(_, to) => to,
            Self::Exponential { mean, from } => from.saturating_add(mean.mul_f64(libm::log(1000.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(start: Start) -> Vec<f64> {
        (0..10_000).map(|flow| start.draw(Seed::new(1), flow).secs_f64()).collect()
    }

    #[test]
    fn uniform_starts_fill_their_interval() {
        let starts = starts(Start::Uniform(Time::from_secs(5), Time::from_secs(25)));
        assert!(starts.iter().all(|start| (5.0..=25.0).contains(start)));
        // Mean 15 s, standard deviation of the mean 20 / sqrt(12 * 10 000) = 0.058 s.
        assert!((starts.iter().sum::<f64>() / 1e4 - 15.0).abs() < 0.25);
    }

    #[test]
    fn exponential_starts_have_their_mean() {
        let start = Start::Exponential { mean: Time::from_secs(2), from: Time::from_secs(1) };
        let starts = starts(start);
        assert!(starts.iter().all(|&start| start >= 1.0));
        // Mean 3 s, standard deviation of the mean 0.02 s.
        assert!((starts.iter().sum::<f64>() / 1e4 - 3.0).abs() < 0.08);
        let late = starts.iter().filter(|&&s| s > start.latest().secs_f64()).count();
        assert!(late < 30, "{late} of 10 000 after the 99.9 % quantile");
    }

    #[test]
    fn a_start_does_not_depend_on_the_others() {
        let start = Start::Uniform(Time::ZERO, Time::from_secs(1));
        assert_eq!(start.draw(Seed::new(3), 7), start.draw(Seed::new(3), 7));
        assert_ne!(start.draw(Seed::new(3), 7), start.draw(Seed::new(3), 8));
    }
}
