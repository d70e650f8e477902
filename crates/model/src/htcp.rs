//! H-TCP (Leith and Shorten 2004; thesis, equations 6.7 to 6.14). No source prints a response function; this one is derived.

use crate::algorithm::{Epoch, Settings};
use crate::solve;

/// H-TCP.
///
/// The fraction that a loss leaves adapts to the round-trip times seen, `T_min/T_max` within 1/2 and `beta_max` (equation 6.10); here
/// it is `beta_max`, right for a path whose queue is short. [`Htcp::with_max_rtt`] gives that of another path.
#[derive(Clone, Debug)]
pub struct Htcp {
    delta_l: f64,
    beta_max: f64,
    scaling: Scaling,
    /// Fraction of the window that a loss leaves.
    pub beta: f64,
}

/// How the increase depends on the round-trip time (equation 6.9, and what its authors' code does).
#[derive(Clone, Copy, Debug)]
enum Scaling {
    Reference,
    Seconds,
    Off,
}

impl Htcp {
    pub(crate) fn of(settings: &Settings<'_>) -> Self {
        let scaling = match settings.word("rtt_scaling") {
            "reference" => Scaling::Reference,
            "seconds" => Scaling::Seconds,
            _ => Scaling::Off,
        };
        let beta_max = settings.number("beta_max");
        Self { delta_l: settings.number("delta_l"), beta_max, scaling, beta: beta_max }
    }

    /// On a path whose round-trip time varies from `min_rtt` to `max_rtt`, in s.
    #[must_use]
    pub fn with_max_rtt(mut self, min_rtt: f64, max_rtt: f64) -> Self {
        self.beta = (min_rtt / max_rtt).clamp(0.5, self.beta_max);
        self
    }

    fn scale(&self, rtt: f64) -> f64 {
        match self.scaling {
            Scaling::Reference => (rtt / 0.1).clamp(0.1, 2.0),
            Scaling::Seconds => rtt,
            Scaling::Off => 1.0,
        }
    }

    /// Seconds after a loss until the increase passes that of Standard TCP.
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

    /// The window climbs at `2 (1 - beta) alpha(Delta)` segments in a round trip (equation 6.8), so it has regained `(1 - beta) w`
    /// when the integral of alpha is `w T / 2`: whatever beta is.
    pub(crate) fn epoch(&self, w: f64, rtt: f64) -> Epoch {
        let time = self.time(w * rtt / 2.0, rtt);
        let window = |t: f64| self.beta * w + 2.0 * (1.0 - self.beta) * self.gained(t, rtt) / rtt;
        let kink = time.min(self.low_speed(rtt));
        let packets = solve::integral(window, 0.0, kink) + solve::integral(window, kink, time);
        Epoch { rounds: time / rtt, packets: packets / rtt }
    }

    /// Round trips from having regained `w`, where it lost, to window `to`.
    pub(crate) fn beyond(&self, w: f64, to: f64, rtt: f64) -> f64 {
        let reached =
            |target: f64| self.time((target - self.beta * w) * rtt / (2.0 * (1.0 - self.beta)), rtt);
        (reached(to) - reached(w)) / rtt
    }

    /// Mean of alpha under independent losses at rate `losses_per_s`: the time since the last one is exponential, and
    /// the transform of equation 6.9 is `1 + exp(-l Delta_L)(10/l + 1/(2 l^2))` for a scale of 1.
    pub(crate) fn mean_alpha(&self, losses_per_s: f64, rtt: f64) -> f64 {
        let (l, low, scale) = (losses_per_s, self.low_speed(rtt), self.scale(rtt));
        let over = low - self.delta_l;
        // From `low` on alpha is scale (1 + 10 x + x^2/4), and before it 1.
        let value = scale * (1.0 + 10.0 * over + over * over / 4.0);
        let slope = scale * (10.0 + over / 2.0);
        1.0 + libm::exp(-l * low) * (value - 1.0 + slope / l + scale / 2.0 / (l * l))
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

    #[test]
    fn mean_alpha_is_the_mean_over_exponential_ages() {
        for (rtt, scale) in [(0.1, 1.0), (0.02, 0.2)] {
            for l in [0.1, 1.0, 5.0] {
                let step = 1e-3;
                let summed: f64 = (0..200_000)
                    .map(|i| (f64::from(i) + 0.5) * step)
                    .map(|t| l * libm::exp(-l * t) * alpha(t, scale) * step)
                    .sum();
                let found = published().mean_alpha(l, rtt);
                assert!((found / summed - 1.0).abs() < 5e-3, "{rtt} {l}: {found} {summed}");
            }
        }
    }
}
