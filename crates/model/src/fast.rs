//! FAST TCP (Jin, Wei and Low 2004; thesis, equations 6.18 to 6.20): an equilibrium with the queue, not with losses.

use elephan_cc::fast::Parameters;

use crate::standard::Standard;

/// FAST TCP on a path of more than 100 Mbit/s of goodput, where the thesis sets alpha to 200 segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Fast {
    /// Weight of the new window in an update.
    pub gamma: f64,
    /// Segments that a flow keeps queued.
    pub alpha: f64,
}

/// The equilibrium of `flows` flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equilibrium {
    /// Window of each flow in segments: its share of the pipe, and alpha.
    pub window: f64,
    /// Segments in the queue: `flows alpha`. The buffer must hold them, otherwise there is no such
    /// equilibrium.
    pub queue: f64,
    /// Round-trip time in s.
    pub rtt: f64,
}

impl Fast {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { gamma: parameters.gamma, alpha: parameters.alpha_high }
    }

    /// The equilibrium of equation 6.18, `w = (T_min/T) w + alpha`, for flows of the same `alpha` that know
    /// the path's true smallest round-trip time `min_rtt`, on a link of `rate` segments/s. A flow that
    /// started while a queue existed does not know it, and gets more.
    pub fn equilibrium(&self, flows: f64, rate: f64, min_rtt: f64) -> Equilibrium {
        let queue = flows * self.alpha;
        Equilibrium { window: rate * min_rtt / flows + self.alpha, queue, rtt: min_rtt + queue / rate }
    }

    /// Equation 6.18 without queueing: `w + gamma alpha` every other round trip, halved at a loss. Its
    /// response to losses on an idle path is that of this AIMD.
    pub(crate) fn unqueued(&self) -> Standard {
        Standard { a: self.gamma * self.alpha / 2.0, beta: 0.5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equilibrium_solves_the_published_equation() {
        let it = Fast { gamma: 0.5, alpha: 200.0 };
        // 250 Mbit/s, 82 ms, two flows: a queue of 400 packets, in agreement with the thesis.
        let Equilibrium { window, queue, rtt } = it.equilibrium(2.0, 250e6 / 12e3, 0.082);
        assert_eq!(queue, 400.0);
        let next = (1.0 - it.gamma) * window + it.gamma * (0.082 / rtt * window + it.alpha);
        assert!((next - window).abs() < 1e-9, "{window} becomes {next}");
        // The sum of both windows equals the content of pipe and queue.
        assert!((2.0 * window - (250e6 / 12e3 * 0.082 + queue)).abs() < 1e-9);
    }
}
