//! The lateness of packets that leave a network whose time is not its own.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Lateness of the packets that a path handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Number of these packets.
    pub packets: u64,
    /// Mean lateness, s.
    pub lateness_mean_s: f64,
    /// Median lateness, s.
    pub lateness_p50_s: f64,
    /// 99th percentile of the lateness, s.
    pub lateness_p99_s: f64,
    /// Maximum lateness, s.
    pub lateness_max_s: f64,
}

impl Lateness {
    /// The summary of a histogram in units of `unit_s` seconds.
    pub fn of(histogram: &Histogram<u64>, unit_s: f64) -> Self {
        let seconds = |units: u64| units as f64 * unit_s;
        Self {
            packets: histogram.len(),
            lateness_mean_s: histogram.mean() * unit_s,
            lateness_p50_s: seconds(histogram.value_at_quantile(0.5)),
            lateness_p99_s: seconds(histogram.value_at_quantile(0.99)),
            lateness_max_s: seconds(histogram.max()),
        }
    }
}
