//! Scalable TCP (Kelly, section 3; thesis, equations 6.5 and 6.6).

use elephan_cc::scalable::Parameters;

use crate::epoch::Epoch;
use crate::standard::Standard;

/// Scalable TCP; with `lwnd` of 0 it is the algorithm without a legacy window.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalable {
    /// Segments for each acknowledged one.
    pub a: f64,
    /// Fraction that a loss removes.
    pub b: f64,
    /// The legacy window; up to it the algorithm is Standard TCP.
    pub lwnd: f64,
}

/// The algorithm below the legacy window.
const STANDARD: Standard = Standard { a: 1.0, beta: 0.5 };

impl Scalable {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { a: parameters.a, b: parameters.b, lwnd: parameters.lwnd }
    }

    /// Mean window at loss rate `p`: `(a/b)/p` above the legacy window, Standard TCP's `sqrt(1.5/p)` below
    /// (Kelly, section 3.1). With a/b = 0.08 the two do not meet: between the loss rates of 5.0e-3 and
    /// 5.9e-3, where both branches lead to the other, the window is about `lwnd`. Equation 1 of the paper
    /// holds for a/b = 0.09375, but not for the paper's own a and b.
    pub fn window(&self, p: f64) -> f64 {
        let standard = STANDARD.window(p);
        if standard <= self.lwnd { standard } else { (self.a / self.b / p).max(self.lwnd) }
    }

    /// Fraction that remains after a loss at window `w`.
    pub(crate) fn beta(&self, w: f64) -> f64 {
        if w <= self.lwnd { STANDARD.beta } else { 1.0 - self.b }
    }

    /// Segments for each round trip at window `w`.
    pub(crate) fn increase(&self, w: f64) -> f64 {
        if w <= self.lwnd { 1.0 } else { self.a * w }
    }

    /// The window grows by the factor `1 + a` in a round trip, and by `a` for each packet.
    pub(crate) fn epoch(&self, w: f64) -> Epoch {
        if w <= self.lwnd {
            return STANDARD.epoch(w);
        }
        let from = (1.0 - self.b) * w;
        let below = (self.lwnd - from).max(0.0);
        let start = from.max(self.lwnd);
        Epoch {
            rounds: below + libm::log(w / start) / libm::log1p(self.a),
            packets: below * f64::midpoint(from, self.lwnd) + (w - start) / self.a,
        }
    }

    /// Round trips until window `w` has doubled: `ln 2/ln(1 + a)` above the legacy window (Kelly, section 3.3).
    pub(crate) fn doubling(&self, w: f64) -> f64 {
        let below = (self.lwnd.min(2.0 * w) - w).max(0.0);
        below + libm::log((2.0 * w / (w + below)).max(1.0)) / libm::log1p(self.a)
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm;

    #[test]
    fn kellys_table_2() {
        // b, a, CoV, round trips of recovery, halving and doubling; the results do not depend on the window.
        for (b, a, cov, recovery, halving, doubling) in [
            (0.5, 0.04, 0.5, 17.7, 1.0, 17.7),
            (0.25, 0.02, 0.35, 14.5, 2.41, 35.0),
            (0.125, 0.01, 0.25, 13.4, 5.19, 69.7),
            (0.0625, 0.005, 0.18, 12.9, 10.7, 139.0),
        ] {
            let it = Algorithm::new("scalable", &[("a", a.into()), ("b", b.into())]).unwrap();
            let agrees = |found: f64, printed: f64, digit: f64| {
                assert!((found - printed).abs() <= digit / 2.0 * 1.02, "b = {b}: {found} for {printed}");
            };
            for w in [100.0, 1e5] {
                agrees(it.variation(w, 0.2), cov, 0.01);
                agrees(it.recovery(w, 0.2), recovery, 0.1);
                agrees(it.halving(w), halving, if halving > 9.0 { 0.1 } else { 0.01 });
                agrees(it.doubling(w, 0.2), doubling, if doubling > 99.0 { 1.0 } else { 0.1 });
            }
        }
    }

    #[test]
    fn where_scalable_has_twice_the_window_of_standard_tcp() {
        // Kelly, section 3.1, prints about 420; (a/b)/p = 2 sqrt(1.5/p) at p = (0.08/2.449)^2, where Standard TCP has 37.5.
        let it = Algorithm::new("scalable", &[]).unwrap();
        let p = (0.08f64 / 2.0).powi(2) / 1.5;
        assert!((it.published(p, 0.1).unwrap() / (1.5 / p).sqrt() - 2.0).abs() < 1e-9);
        assert!(((1.5 / p).sqrt() - 37.5).abs() < 0.1);
    }

    #[test]
    fn the_legacy_window_is_standard_tcp() {
        let with = Algorithm::new("scalable", &[]).unwrap();
        let reno = Algorithm::new("reno", &[]).unwrap();
        assert_eq!(with.published(0.01, 0.1), reno.published(0.01, 0.1));
        assert_eq!(with.recovery(12.0, 0.1), 6.0);
    }
}
