//! Utilisation of a link by one AIMD flow, as a function of its DropTail buffer (thesis, section 5.4.1).
//!
//! Valid for a single flow, one loss event in an epoch, without slow start; for increases that are not constant if they grow
//! little in an epoch. The growth of the round-trip time while the queue fills is ignored, as in the source.

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
    }

    #[test]
    fn the_sawtooth_round_by_round() {
        for (a, beta, buffer) in [(1.0, 0.5, 0.0), (1.0, 0.5, 300.0), (10.0, 0.8, 50.0), (5.0, 0.875, 200.0)]
        {
            let bdp = 1000.0_f64;
            let (mut w, mut served, mut rounds) = (beta * (bdp + buffer), 0.0, 0.0);
            while w < bdp + buffer {
                // Steps of a hundredth of a round trip, whose length is that of the empty path.
                w += a * 0.01;
                served += 0.01 * (w / bdp).min(1.0);
                rounds += 0.01;
            }
            assert!((of(beta, buffer / bdp) - served / rounds).abs() < 2e-3, "{beta} {buffer}");
        }
    }
}
