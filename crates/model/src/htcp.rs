//! H-TCP (Leith and Shorten 2004; thesis, equations 6.7 to 6.14). No source prints a response function; this one is derived.

use elephan_cc::htcp::{Parameters, RttScaling};

use crate::epoch::Epoch;
use crate::solve;

/// H-TCP.
///
/// The fraction that remains after a loss adapts to the observed round-trip times, `T_min/T_max` within 1/2
/// and `beta_max` (equation 6.10). Here it is `beta_max`, which is correct for a path with a short queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Htcp {
    delta_l: f64,
    scaling: RttScaling,
    /// Fraction of the window that remains after a loss.
    pub beta: f64,
}

impl Htcp {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { delta_l: parameters.delta_l, scaling: parameters.rtt_scaling, beta: parameters.beta_max }
    }

    fn scale(&self, rtt: f64) -> f64 {
        match self.scaling {
            RttScaling::Reference => (rtt / 0.1).clamp(0.1, 2.0),
            RttScaling::Seconds => rtt,
            RttScaling::Off => 1.0,
        }
    }

    /// Seconds after a loss until the increase exceeds that of Standard TCP.
    fn low_speed(&self, rtt: f64) -> f64 {
        // 1 + 10 x + x^2/4 = 1/scale.
        let lacking = (1.0 / self.scale(rtt) - 1.0).max(0.0);
        self.delta_l + (libm::sqrt(100.0 + lacking) - 10.0) * 2.0
    }

    /// Integral of alpha(Delta), equation 6.9, over the first `t` seconds after a loss.
    fn gained(&self, t: f64, rtt: f64) -> f64 {
        let low = self.low_speed(rtt);
        if t <= low {
            return t;
        }
        let polynomial = |x: f64| x + 5.0 * x * x + x * x * x / 12.0;
        low + self.scale(rtt) * (polynomial(t - self.delta_l) - polynomial(low - self.delta_l))
    }

    /// Seconds until `gained` is `target`.
    fn time(&self, target: f64, rtt: f64) -> f64 {
        solve::increasing(|t| self.gained(t, rtt), target, 1e-9, 1e9)
    }

    /// The window grows by `2 (1 - beta) alpha(Delta)` segments in a round trip (equation 6.8), so it has
    /// regained `(1 - beta) w` when the integral of alpha is `w T / 2`, for any beta.
    pub(crate) fn epoch(&self, w: f64, rtt: f64) -> Epoch {
        let time = self.time(w * rtt / 2.0, rtt);
        let window = |t: f64| self.beta * w + 2.0 * (1.0 - self.beta) * self.gained(t, rtt) / rtt;
        let kink = time.min(self.low_speed(rtt));
        let packets = solve::integral(window, 0.0, kink) + solve::integral(window, kink, time);
        Epoch { rounds: time / rtt, packets: packets / rtt }
    }

    /// Round trips from the point where the flow has regained `w`, at which it lost, to window `to`.
    pub(crate) fn beyond(&self, w: f64, to: f64, rtt: f64) -> f64 {
        let reached =
            |target: f64| self.time((target - self.beta * w) * rtt / (2.0 * (1.0 - self.beta)), rtt);
        (reached(to) - reached(w)) / rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn published() -> Htcp {
        match Algorithm::new("htcp", &[]) {
            Ok(Algorithm::Htcp(it)) => it,
            other => panic!("{other:?}"),
        }
    }

    /// Equation 6.9.
    fn alpha(delta: f64, scale: f64) -> f64 {
        let x = delta - 1.0;
        if x <= 0.0 { 1.0 } else { (scale * (1.0 + 10.0 * x + 0.25 * x * x)).max(1.0) }
    }

    #[test]
    fn the_integral_is_that_of_equation_6_9() {
        for (rtt, scale) in [(0.1, 1.0), (0.01, 0.1), (0.2, 2.0), (0.05, 0.5)] {
            let summed: f64 = (0..50_000).map(|i| alpha((f64::from(i) + 0.5) * 1e-4, scale) * 1e-4).sum();
            assert!((published().gained(5.0, rtt) / summed - 1.0).abs() < 1e-4, "{rtt}");
        }
    }
}
