//! CUBIC (RFC 9438).

use elephan_cc::cubic::Parameters;

use crate::epoch::Epoch;
use crate::solve;
use crate::standard::Standard;

/// CUBIC.
#[derive(Clone, Debug, PartialEq)]
pub struct Cubic {
    c: f64,
    /// Fraction that remains after a loss.
    pub beta: f64,
}

impl Cubic {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { c: parameters.c, beta: parameters.beta }
    }

    /// Mean window in segments at loss rate `p` and `rtt` s (RFC 9438, section 5.1, figure 5):
    /// `(C (3 + beta)/(4 (1 - beta)))^(1/4) (rtt/p)^(3/4)`, and never less than Standard TCP's (section 4.3).
    pub fn window(&self, p: f64, rtt: f64) -> f64 {
        let factor = self.c * (3.0 + self.beta) / (4.0 * (1.0 - self.beta));
        let cubic = libm::sqrt(libm::sqrt(factor)) * libm::pow(rtt / p, 0.75);
        cubic.max(Standard { a: 1.0, beta: 0.5 }.window(p))
    }

    /// Increase of the Reno-friendly window for each round trip (section 4.3).
    fn friendly(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }

    /// The larger of the cubic function and the Reno-friendly window, until it is `w`.
    pub(crate) fn epoch(&self, w: f64, rtt: f64) -> Epoch {
        // Equation 2: K, in s.
        let k = libm::cbrt(w * (1.0 - self.beta) / self.c);
        let rounds = (k / rtt).min((1.0 - self.beta) * w / self.friendly());
        let window = |round: f64| {
            let t = round * rtt - k;
            (self.c * t * t * t + w).max(self.beta * w + self.friendly() * round)
        };
        Epoch { rounds, packets: solve::integral(window, 0.0, rounds) }
    }

    /// Round trips from the plateau at `w` to window `to`: the cubic function, or Standard TCP if that is
    /// faster.
    pub(crate) fn beyond(&self, w: f64, to: f64, rtt: f64) -> f64 {
        (libm::cbrt((to - w) / self.c) / rtt).min(to - w)
    }
}

#[cfg(test)]
mod tests {
    use crate::Algorithm;

    #[test]
    fn rfc_9438s_tables() {
        // RFC 9438, section 5.1, tables 1 and 2: mean windows at 100 ms and at 10 ms, for C = 0.4.
        let it = Algorithm::new("cubic", &[]).unwrap();
        for (p, rtt, printed) in [
            (1e-4, 0.1, 187.0),
            (1e-5, 0.1, 1054.0),
            (1e-6, 0.1, 5926.0),
            (1e-7, 0.1, 33_325.0),
            (1e-8, 0.1, 187_400.0),
            (1e-6, 0.01, 1225.0),
            (1e-7, 0.01, 5926.0),
            (1e-8, 0.01, 33_325.0),
        ] {
            let found = it.published(p, rtt).unwrap();
            assert!((found / printed - 1.0).abs() < 0.01, "{p} {rtt}: {found} for {printed}");
        }
    }
}
