//! Distributions of times, sizes and counts.

use elephan_units::Stream;
use rand::RngExt;

/// A distribution of a quantity: seconds, bytes, or a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Uniform from the first to the second.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto's: density `a k^a / x^(a + 1)` above `k`.
    Pareto {
        /// The scale k: the smallest value.
        minimum: f64,
        /// The shape a. The mean is infinite up to 1, the variance up to 2.
        shape: f64,
    },
}

impl Distribution {
    /// A Pareto distribution of this mean; `None` if the shape is not above 1, because then no mean exists.
    pub fn pareto_of_mean(mean: f64, shape: f64) -> Option<Self> {
        (shape > 1.0).then(|| Self::Pareto { minimum: mean * (shape - 1.0) / shape, shape })
    }

    /// Draws a value, by inversion: one draw from the stream for each value, so that a changed parameter does
    /// not change other draws.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        // In (0, 1], so that logarithm and power are finite.
        let u = 1.0 - stream.random::<f64>();
        match *self {
            Self::Constant(value) => value,
            Self::Uniform(from, to) => from + (to - from) * u,
            Self::Exponential(mean) => -mean * libm::log(u),
            Self::Pareto { minimum, shape } => minimum * libm::pow(u, -1.0 / shape),
        }
    }

    /// The mean; infinite for a Pareto distribution whose shape is not above 1.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Uniform(from, to) => f64::midpoint(from, to),
            Self::Exponential(mean) => mean,
            Self::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { minimum, shape } => minimum * shape / (shape - 1.0),
        }
    }

    /// The probability of this value, which is positive, or more.
    fn reaches(&self, value: f64) -> f64 {
        match *self {
            Self::Constant(constant) => f64::from(u8::from(constant >= value)),
            Self::Uniform(from, to) if from < to => ((to - value) / (to - from)).clamp(0.0, 1.0),
            Self::Uniform(from, _) => f64::from(u8::from(from >= value)),
            Self::Exponential(mean) => libm::exp(-value / mean),
            Self::Pareto { minimum, .. } if value <= minimum => 1.0,
            Self::Pareto { minimum, shape } => libm::pow(minimum / value, shape),
        }
    }

    /// The mean of the values as counts: rounded, and at least one.
    pub fn mean_count(&self) -> f64 {
        /// Above this mean rounding moves it by less than one in a million.
        const LARGE: f64 = 1e6;
        /// Counts up to this are summed; beyond it the sum is an integral.
        const SUMMED: u32 = 10_000;
        let mean = self.mean();
        if mean > LARGE {
            return mean;
        }
        // A count is k or more if its value is k - 1/2 or more.
        let reached = (2..=SUMMED).map(|count| self.reaches(f64::from(count) - 0.5));
        let from = f64::from(SUMMED);
        let rest = match *self {
            Self::Constant(value) => value.round() - from,
            Self::Uniform(low, high) if low < from && high > from => {
                (high - from).powi(2) / (2.0 * (high - low))
            }
            Self::Uniform(..) => mean - from,
            Self::Exponential(mean) => mean * libm::exp(-from / mean),
            Self::Pareto { minimum, .. } if minimum >= from => mean - from,
            Self::Pareto { shape, .. } => from * self.reaches(from) / (shape - 1.0),
        };
        1.0 + reached.sum::<f64>() + rest.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elephan_units::Seed;

    #[test]
    fn counts_have_their_means() {
        for (distribution, mean) in [
            (Distribution::Constant(0.2), 1.0),
            (Distribution::Constant(3.5), 4.0),
            (Distribution::Constant(30_000.0), 30_000.0),
            (Distribution::Uniform(0.5, 4.5), 2.5),
            (Distribution::Uniform(5000.0, 25_000.0), 15_000.0),
            (Distribution::Pareto { minimum: 20_000.0, shape: 2.0 }, 40_000.0),
            // The sum of a geometric series: 1 + q^1.5 / (1 - q) with q = exp(-1/2).
            (Distribution::Exponential(2.0), 1.0 + (-0.75f64).exp() / (1.0 - (-0.5f64).exp())),
        ] {
            let found = distribution.mean_count();
            assert!((found / mean - 1.0).abs() < 1e-6, "{distribution:?}: {found}, not {mean}");
        }
        let pareto = Distribution::Pareto { minimum: 1.0, shape: 2.43 };
        let drawn = draws(pareto).into_iter().map(|value| value.round().max(1.0)).sum::<f64>() / DRAWS as f64;
        assert!((drawn / pareto.mean_count() - 1.0).abs() < 0.02, "{drawn}, {}", pareto.mean_count());
        assert_eq!(Distribution::Pareto { minimum: 1.0, shape: 1.0 }.mean_count(), f64::INFINITY);
    }

    const DRAWS: usize = 100_000;
    const SEED: u64 = 20_061;

    fn draws(distribution: Distribution) -> Vec<f64> {
        let mut stream = Seed::new(SEED).stream("test of a distribution", 0);
        let mut draws: Vec<f64> = (0..DRAWS).map(|_| distribution.draw(&mut stream)).collect();
        draws.sort_by(f64::total_cmp);
        draws
    }

    /// The largest distance of the sample's distribution function from the true one (Kolmogorov and Smirnov),
    /// times the square root of the number of draws: above 1.63 in one of a hundred samples, above 1.95 in
    /// one of a thousand.
    fn kolmogorov(distribution: Distribution, below: impl Fn(f64) -> f64) -> f64 {
        let draws = draws(distribution);
        let n = draws.len() as f64;
        let distance = |(i, &x): (usize, &f64)| {
            let p = below(x);
            ((i as f64 + 1.0) / n - p).max(p - i as f64 / n)
        };
        draws.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
    }

    #[test]
    fn each_has_its_distribution_function() {
        type Function = fn(f64) -> f64;
        let cases: [(Distribution, Function); 4] = [
            (Distribution::Uniform(2.0, 4.0), |x| (x - 2.0) / 2.0),
            (Distribution::Exponential(3.0), |x| 1.0 - (-x / 3.0).exp()),
            // Kelly's think times and file sizes.
            (Distribution::Pareto { minimum: 10.0, shape: 2.0 }, |x| 1.0 - (10.0 / x).powf(2.0)),
            (Distribution::Pareto { minimum: 12_000.0, shape: 1.2 }, |x| 1.0 - (12_000.0 / x).powf(1.2)),
        ];
        for (distribution, below) in cases {
            let distance = kolmogorov(distribution, below);
            assert!(distance < 1.95, "seed {SEED}: {distribution:?} is {distance} away");
        }
    }

    #[test]
    fn a_wrong_distribution_is_told_apart() {
        // The same test rejects a shape of 1.22 for a distribution of 1.2.
        let drawn = Distribution::Pareto { minimum: 12_000.0, shape: 1.22 };
        assert!(kolmogorov(drawn, |x| 1.0 - (12_000.0 / x).powf(1.2)) > 1.95);
    }

    #[test]
    fn means_are_those_of_the_formula() {
        // Standard deviation of the mean: the mean times the coefficient of variation, divided by the square
        // root of the number of draws, here at most 1.5 for Pareto of shape 2.2 (sqrt(1/(a (a - 2))) = 1.5):
        // 0.5 %. Four of them.
        for distribution in [
            Distribution::Constant(7.0),
            Distribution::Uniform(2.0, 4.0),
            Distribution::Exponential(3.0),
            Distribution::Pareto { minimum: 10.0, shape: 2.2 },
        ] {
            let mean = draws(distribution).iter().sum::<f64>() / DRAWS as f64;
            let error = mean / distribution.mean() - 1.0;
            assert!(error.abs() < 0.02, "seed {SEED}: {distribution:?} has the mean {mean}");
        }
    }

    #[test]
    fn tails_are_as_heavy_as_the_shape_says() {
        for shape in [1.2, 1.5, 2.0] {
            // Hill's estimate of the shape from the largest 1000 of 100 000; its standard deviation is shape / sqrt(1000).
            let draws = draws(Distribution::Pareto { minimum: 1.0, shape });
            let tail = &draws[DRAWS - 1000..];
            let logs: f64 = tail.iter().map(|x| (x / draws[DRAWS - 1001]).ln()).sum();
            let estimate = 1000.0 / logs;
            assert!((estimate / shape - 1.0).abs() < 0.1, "seed {SEED}: {shape} is estimated as {estimate}");
        }
    }

    #[test]
    fn a_mean_is_asked_of_a_pareto_only_where_there_is_one() {
        assert_eq!(Distribution::pareto_of_mean(72_000.0, 1.0), None);
        assert_eq!(Distribution::Pareto { minimum: 1.0, shape: 1.0 }.mean(), f64::INFINITY);
        let files = Distribution::pareto_of_mean(72_000.0, 1.2).unwrap();
        assert!((files.mean() - 72_000.0).abs() < 1e-6);
        // Kelly's Table 4: k = 12 000.
        assert!(matches!(files, Distribution::Pareto { minimum, .. } if (minimum - 12_000.0).abs() < 1e-6));
    }
}
