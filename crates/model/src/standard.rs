//! Standard TCP: the square root law, PFTK, and the quantities of Kelly's Table 1.

use elephan_cc::reno::Parameters;

use crate::epoch::Epoch;

/// Additive increase, multiplicative decrease.
#[derive(Clone, Debug, PartialEq)]
pub struct Standard {
    /// Segments for each round trip.
    pub a: f64,
    /// Fraction of the window that remains after a loss.
    pub beta: f64,
}

impl Standard {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { a: parameters.a, beta: parameters.beta }
    }

    /// Mean window in segments at loss rate `p`: `sqrt(a (1 + beta) / (2 (1 - beta) p))`, with a = 1 and beta = 1/2
    /// `sqrt(3/2p)` (thesis, equation 5.8; Kelly, section 3.1). Exact for the periodic sawtooth.
    pub fn window(&self, p: f64) -> f64 {
        (self.a * (1.0 + self.beta) / (2.0 * (1.0 - self.beta) * p)).sqrt()
    }

    /// A line from `beta w` to `w`.
    pub(crate) fn epoch(&self, w: f64) -> Epoch {
        let rounds = (1.0 - self.beta) * w / self.a;
        Epoch { rounds, packets: rounds * (1.0 + self.beta) * w / 2.0 }
    }
}

/// Throughput in bit/s of Standard TCP with timeouts (Padhye, Firoiu, Towsley and Kurose 1998; thesis, equation 5.7).
///
/// `p` is the loss rate, `rtt` and `rto` are in s, `segment_bytes` is the size at which a segment counts,
/// `per_ack` the number of segments for each acknowledgment (the thesis' equation is for 1; b in the
/// original). Valid for losses that come in runs, and for any `p`: the term with the timeout dominates above
/// about 1 %. The thesis prints `3 sqrt(3p/8)`; the original has `min(1, 3 sqrt(3p/8))`, which is used here.
pub fn pftk_bit_s(p: f64, rtt: f64, rto: f64, segment_bytes: f64, per_ack: f64) -> f64 {
    let recovered = rtt * (2.0 * per_ack * p / 3.0).sqrt();
    let timeouts = rto * (3.0 * (3.0 * per_ack * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    8.0 * segment_bytes / (recovered + timeouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Standard = Standard { a: 1.0, beta: 0.5 };

    #[test]
    fn kellys_table_1() {
        // Rate in Mbit/s, window, recovery in s, loss rate; 1500 bytes, 200 ms. Up to 100 Mbit/s the paper
        // continues its computation with the rounded windows.
        for (mbit, window, recovery, loss) in [
            (1.0, 17.0, 1.7, 5.2e-3),
            (10.0, 170.0, 17.0, 5.2e-5),
            (100.0, 1700.0, 170.0, 5.2e-7),
            (1000.0, 17_000.0, 28.0 * 60.0, 5.4e-9),
            (10_000.0, 170_000.0, 283.0 * 60.0, 5.4e-11),
        ] {
            let w: f64 = mbit * 1e6 * 0.2 / 12e3;
            assert!((w / window - 1.0).abs() < 0.021, "{w} for {window}");
            let recovery_s = STANDARD.epoch(w).rounds * 0.2;
            assert!((recovery_s / recovery - 1.0).abs() < 0.021, "{recovery_s}");
            let printed = if mbit <= 100.0 { window } else { w };
            assert!(((STANDARD.window(loss) / printed).powi(2) - 1.0).abs() < 0.01, "{printed}");
        }
    }

    #[test]
    fn the_thesis_450_mbit_s() {
        // Section 5.4.2: 1e-7 at 100 ms is 450 Mbit/s; timeouts have no effect there.
        let without = pftk_bit_s(1e-7, 0.1, 0.0, 1448.0, 1.0);
        assert!((without / 448.6e6 - 1.0).abs() < 1e-3, "{without}");
        assert!((pftk_bit_s(1e-7, 0.1, 0.2, 1448.0, 1.0) / without - 1.0).abs() < 1e-3);
        // Acknowledging every second segment costs a factor sqrt(2).
        let delayed = pftk_bit_s(1e-7, 0.1, 0.2, 1448.0, 2.0);
        assert!((without / delayed - 2.0f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn timeouts_take_over_at_high_loss() {
        // By hand at p = 0.1, T = 100 ms, T_0 = 1 s: 3 sqrt(0.0375) = 0.581, times 0.1 * 1.32 = 0.0767 s, and 0.0258 s.
        let rate = pftk_bit_s(0.1, 0.1, 1.0, 1500.0, 1.0);
        assert!((rate / (12_000.0 / (0.025_82 + 0.076_68)) - 1.0).abs() < 1e-3, "{rate}");
        // Beyond p = 8/27 the minimum applies: without it the rate would be lower.
        let bounded = pftk_bit_s(0.5, 0.1, 1.0, 1500.0, 1.0);
        assert!((bounded / (12_000.0 / (0.1 * (1.0f64 / 3.0).sqrt() + 0.5 * 9.0)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn figures_of_nabeshima() {
        // 7.2 Gbit/s on average: 60 000 segments, 4.17e-10; the peak is 80 000, so 40 000 round trips of recovery.
        assert!(((STANDARD.window(4.17e-10) / 60_000.0).powi(2) - 1.0).abs() < 1e-3);
        assert!((STANDARD.epoch(80_000.0).rounds - 40_000.0).abs() < 1.0);
    }
}
