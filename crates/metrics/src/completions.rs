//! Completion times of transfers, or pages.

use elephan_units::Time;
use hdrhistogram::Histogram;

use crate::summary::TransferSummary;

/// Completion times, stored in bounded memory.
#[derive(Clone, Debug)]
pub struct Completions {
    /// Completion times in microseconds.
    times: Histogram<u64>,
    longest_s: f64,
    sum_s: f64,
    bytes: u64,
}

impl Default for Completions {
    fn default() -> Self {
        let times = Histogram::new(2).expect("two digits are a valid precision");
        Self { times, longest_s: 0.0, sum_s: 0.0, bytes: 0 }
    }
}

impl Completions {
    /// Adds a completion with this payload.
    pub fn record(&mut self, took: Time, bytes: u64) {
        let micros = took.picos() / 1_000_000;
        self.times.record(micros.max(1)).expect("it grows with its values");
        self.longest_s = self.longest_s.max(took.secs_f64());
        self.sum_s += took.secs_f64();
        self.bytes += bytes;
    }

    /// The summary; `None` if there were no completions.
    pub fn summary(&self) -> Option<TransferSummary> {
        let count = self.times.len();
        // The value of a bin is its largest.
        let quantile = |q| Some((self.times.value_at_quantile(q) as f64 * 1e-6).min(self.longest_s));
        (count > 0).then(|| TransferSummary {
            count,
            bytes: self.bytes,
            mean_s: Some((self.sum_s / count as f64).min(self.longest_s)),
            p50_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_exact_and_quantiles_are_close() {
        let mut completions = Completions::default();
        assert_eq!(completions.summary(), None);
        (1..=100).for_each(|ms| completions.record(Time::from_millis(ms), 10));
        let summary = completions.summary().unwrap();
        assert_eq!((summary.count, summary.bytes), (100, 1000));
        assert!((summary.mean_s.unwrap() - 0.0505).abs() < 1e-12);
        assert!((summary.p95_s.unwrap() / 0.095 - 1.0).abs() < 0.01);
    }
}
