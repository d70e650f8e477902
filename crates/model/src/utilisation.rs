//! Utilisation of a link by one AIMD flow, as a function of its DropTail buffer (thesis, section 5.4.1).
//!
//! `bdp` is rate times round-trip time in segments, `buffer` the capacity of the queue in segments; `gamma =
//! buffer/bdp`. The window at a loss is `P = bdp + buffer`. Valid for a single flow, one loss event in an
//! epoch, without slow start; for increases that are not constant if they grow little in an epoch. The growth
//! of the round-trip time while the queue fills is ignored in the durations, as in the source, and so in the
//! utilisation.

/// An AIMD flow alone on a link.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    /// Increase in segments for each round trip.
    pub a: f64,
    /// Fraction of the window that remains after a loss.
    pub beta: f64,
    /// Bandwidth-delay product in segments.
    pub bdp: f64,
    /// Capacity of the buffer, in segments.
    pub buffer: f64,
}

impl Alone {
    /// Round trips from a loss until the link is full again: `(bdp (1 - beta) - beta buffer)/a` (equation
    /// 5.2); zero if the queue does not empty.
    pub fn ramp_rounds(&self) -> f64 {
        ((self.bdp * (1.0 - self.beta) - self.beta * self.buffer) / self.a).max(0.0)
    }

    /// Round trips in which the queue fills: `buffer/a` (equation 5.3); if it did not empty, from its length
    /// after the loss.
    pub fn filling_rounds(&self) -> f64 {
        self.epoch_rounds() - self.ramp_rounds()
    }

    /// Round trips from loss to loss: `(1 - beta)(bdp + buffer)/a` (equation 5.4).
    pub fn epoch_rounds(&self) -> f64 {
        (1.0 - self.beta) * (self.bdp + self.buffer) / self.a
    }

    /// Share of the link's rate that is used (equation 5.6), see [`of`].
    pub fn utilisation(&self) -> f64 {
        of(self.beta, self.buffer / self.bdp)
    }
}

/// Utilisation of a flow that keeps `beta` of its window, with a buffer of `gamma` bandwidth-delay products (thesis, equation 5.6):
/// `(1 + 2 gamma - beta^2 (1 + gamma)^2)/(2 (1 - beta)(1 + gamma))` while `beta (1 + gamma) <= 1`, beyond that 1.
///
/// Capacity, round-trip time and increase do not enter. The thesis prints the condition for a queue that
/// empties as `1/(1 + gamma) <= beta`; it is the other way round. Its equation 5.5, from which this follows,
/// lacks a square.
pub fn of(beta: f64, gamma: f64) -> f64 {
    let left = beta * (1.0 + gamma);
    if left >= 1.0 {
        return 1.0;
    }
    (1.0 + 2.0 * gamma - left * left) / (2.0 * (1.0 - beta) * (1.0 + gamma))
}

/// The smallest buffer, in bandwidth-delay products, with which the link never idles: `1/beta - 1`.
pub fn sufficient_buffer(beta: f64) -> f64 {
    1.0 / beta - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values() {
        // Thesis, section 5.4.1: 75 % without a buffer, 100 % with a buffer of the bandwidth-delay product;
        // section 6.2.1: Scalable TCP 93.75 %.
        for (beta, gamma, printed) in [
            (0.5, 0.0, 0.75),
            (0.5, 1.0, 1.0),
            (0.875, 0.0, 0.9375),
            (0.8, 0.0, 0.9),
            (0.5, 0.2, 0.866_67),
            (0.5, 0.5, 0.958_33),
        ] {
            assert!((of(beta, gamma) - printed).abs() < 1e-5, "{beta} {gamma}: {}", of(beta, gamma));
        }
        assert_eq!(sufficient_buffer(0.5), 1.0);
    }

    #[test]
    fn the_sawtooth_round_by_round() {
        for (a, beta, buffer) in [(1.0, 0.5, 0.0), (1.0, 0.5, 300.0), (10.0, 0.8, 50.0), (5.0, 0.875, 200.0)]
        {
            let it = Alone { a, beta, bdp: 1000.0, buffer };
            let (mut w, mut served, mut rounds, mut ramp) = (beta * (it.bdp + buffer), 0.0, 0.0, 0.0);
            while w < it.bdp + buffer {
                // Steps of a hundredth of a round trip, whose length is that of the empty path.
                w += a * 0.01;
                served += 0.01 * (w / it.bdp).min(1.0);
                rounds += 0.01;
                ramp += if w < it.bdp { 0.01 } else { 0.0 };
            }
            assert!((it.utilisation() - served / rounds).abs() < 2e-3, "{beta} {buffer}");
            assert!((it.epoch_rounds() / rounds - 1.0).abs() < 1e-2);
            assert!((it.ramp_rounds() - ramp).abs() < 0.02);
            assert!((it.ramp_rounds() + it.filling_rounds() - it.epoch_rounds()).abs() < 1e-9);
        }
    }
}
