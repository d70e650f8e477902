//! HighSpeed TCP (RFC 3649, section 5; thesis, equations 6.1 to 6.4; Nabeshima, section 2).

use elephan_cc::hstcp::Parameters;

use crate::epoch::Epoch;
use crate::solve;
use crate::standard::Standard;

/// HighSpeed TCP in its continuous form. The table of RFC 3649's appendix B rounds `a` to whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct HighSpeed {
    w_low: f64,
    w_high: f64,
    p_low: f64,
    p_high: f64,
    b_high: f64,
}

impl HighSpeed {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self {
            w_low: parameters.w_low,
            w_high: parameters.w_high,
            p_low: parameters.p_low,
            p_high: parameters.p_high,
            b_high: parameters.b_high,
        }
    }

    /// The position of `w` between `w_low` (0) and `w_high` (1), by logarithm.
    fn x(&self, w: f64) -> f64 {
        libm::log(w / self.w_low) / libm::log(self.w_high / self.w_low)
    }

    /// Fraction of window `w` that a loss removes: from 1/2 at `w_low` to `b_high` at `w_high` (RFC 3649,
    /// section 5).
    pub fn b(&self, w: f64) -> f64 {
        if w <= self.w_low { 0.5 } else { (0.5 + self.x(w) * (self.b_high - 0.5)).max(self.b_high) }
    }

    /// Increase for each round trip at window `w`: `2 w^2 b p(w) / (2 - b)`. The thesis (equation 6.3) prints
    /// `w_high^2 p_high` in place of `w^2 p(w)`, which holds at `w_high` only.
    pub fn a(&self, w: f64) -> f64 {
        if w <= self.w_low {
            return 1.0;
        }
        let p = self.p_low * libm::pow(self.p_high / self.p_low, self.x(w));
        let b = self.b(w);
        2.0 * w * w * b * p / (2.0 - b)
    }

    /// Mean window at loss rate `p`: the line through `(p_low, w_low)` and `(p_high, w_high)` in logarithms, which for the
    /// published parameters is `0.12/p^0.835` (RFC 3649, section 3). Standard TCP above `p_low`.
    pub fn window(&self, p: f64) -> f64 {
        let standard = Standard { a: 1.0, beta: 0.5 }.window(p);
        if standard <= self.w_low {
            return standard;
        }
        let x = libm::log(p / self.p_low) / libm::log(self.p_high / self.p_low);
        self.w_low * libm::pow(self.w_high / self.w_low, x.max(0.0))
    }

    pub(crate) fn epoch(&self, w: f64) -> Epoch {
        let low = Standard { a: 1.0, beta: 0.5 };
        if w <= self.w_low {
            return low.epoch(w);
        }
        let from = (1.0 - self.b(w)) * w;
        // The part below w_low, if any, is a line; a(w) is smooth above.
        let below = (self.w_low - from).max(0.0);
        let start = from.max(self.w_low * (1.0 + 1e-12));
        Epoch {
            rounds: below + solve::integral(|w| 1.0 / self.a(w), start, w),
            packets: below * f64::midpoint(from, self.w_low) + solve::integral(|w| w / self.a(w), start, w),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn published() -> HighSpeed {
        match Algorithm::new("hstcp", &[]) {
            Ok(Algorithm::HighSpeed(it)) => it,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rfc_3649s_windows() {
        // RFC 3649, appendix B: w, a, b; the table rounds a down and b to two digits.
        let it = published();
        for (w, a, b) in
            [(118.0, 2.0, 0.44), (1058.0, 8.0, 0.33), (10_661.0, 30.0, 0.21), (83_981.0, 72.0, 0.1)]
        {
            assert!((it.a(w) - a).abs() < 0.1 * a, "a({w}) = {}", it.a(w));
            assert!((it.b(w) - b).abs() < 0.006, "b({w}) = {}", it.b(w));
        }
        assert_eq!((it.a(38.0), it.b(38.0)), (1.0, 0.5));
    }

    #[test]
    fn rfc_3649s_response_function() {
        let it = published();
        for p in [1e-3f64, 1e-4, 1e-5, 1e-6, 1e-7] {
            let printed = 0.12 / libm::pow(p, 0.835);
            assert!((it.window(p) / printed - 1.0).abs() < 0.02, "{p}: {} for {printed}", it.window(p));
        }
        // Nabeshima, section 2: 83 000 segments at 1e-7, and 9.96 Gbit/s at 100 ms.
        assert!((it.window(1e-7) - 83_000.0).abs() < 1e-6);
    }
}
