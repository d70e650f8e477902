//! BIC-TCP (Xu, Harfoush and Rhee 2004; thesis, equations 6.15 to 6.17). The response function is derived: a
//! flow that always loses at the same window has its target there.

use elephan_cc::bic::Parameters;

use crate::epoch::Epoch;
use crate::standard::Standard;

/// BIC-TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Bic {
    b: f64,
    beta: f64,
    low_window: f64,
    s_max: f64,
    smooth_part: f64,
}

impl Bic {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self {
            b: parameters.b,
            beta: parameters.beta,
            low_window: parameters.low_window,
            s_max: parameters.s_max,
            smooth_part: parameters.smooth_part,
        }
    }

    /// Fraction that remains after a loss at window `w`.
    pub(crate) fn beta(&self, w: f64) -> f64 {
        if w <= self.low_window { 0.5 } else { self.beta }
    }

    /// Equation 6.17 below the target: `S_max` for each round trip while the target is further than `B
    /// S_max`, then the fraction `1/B` of the distance, then `B/smooth_part` over the last `B` segments.
    pub(crate) fn epoch(&self, w: f64) -> Epoch {
        if w <= self.low_window {
            return Standard { a: 1.0, beta: 0.5 }.epoch(w);
        }
        let mut epoch = Epoch { rounds: 0.0, packets: 0.0 };
        let mut line = |from: f64, to: f64, slope: f64| {
            let rounds = (to - from).max(0.0) / slope;
            epoch.rounds += rounds;
            epoch.packets += rounds * f64::midpoint(from, to);
        };
        let from = self.beta * w;
        line(from, self.low_window, 1.0);
        let from = from.max(self.low_window);
        let search = (w - self.b * self.s_max).max(from);
        line(from, search, self.s_max);
        // The last B segments.
        let last = (w - self.b).max(search);
        line(last, w, self.b / self.smooth_part);
        // Between: the distance decreases by the factor exp(-1/B) in a round trip.
        if last > search {
            let rounds = self.b * libm::log((w - search) / (w - last));
            epoch.rounds += rounds;
            epoch.packets += w * rounds - self.b * (last - search);
        }
        epoch
    }

    /// Round trips from the target `w` to window `to`: the search for a new maximum.
    pub(crate) fn beyond(&self, w: f64, to: f64) -> f64 {
        let distance = to - w;
        let slow = distance.min(self.b) * self.smooth_part / self.b;
        // The distance grows by the factor exp(1/(B-1)) in a round trip from B to S_max (B-1), then by S_max.
        let fast = distance.min(self.s_max * (self.b - 1.0)).max(self.b);
        slow + (self.b - 1.0) * libm::log(fast / self.b) + (distance - fast).max(0.0) / self.s_max
    }
}
