//! The matrix model of AIMD flows that share a DropTail link (Shorten, Wirth and Leith 2006; thesis, sections 5.4.1 and 7.1.4).
//!
//! Time is divided at the congestion events. At each event some flows back off, `w_i -> beta_i w_i`, and
//! until the next event each gains `(a_i/T_i) tau`, with `tau` such that the sum of rates equals the link's
//! rate again. So `w(k+1) = A(k) w(k)`, and `A = diag(beta) + c (1 - beta)^T / sum(c_i/T_i)` over the rates.
//! Valid for queues that are short relative to the bandwidth-delay product, so that `T_i` is constant, and
//! for increases that change little in an epoch.

/// A flow in the matrix model.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Increase in segments for each round trip.
    pub a: f64,
    /// Fraction of the window that is kept when it backs off.
    pub beta: f64,
    /// Round-trip time in s.
    pub rtt: f64,
    /// Probability that it backs off at a congestion event: its synchronisation factor lambda, 1 if all flows
    /// lose together.
    pub synchronisation: f64,
}

impl Flow {
    /// Increase of the rate, in segments/s for each second.
    fn slope(&self) -> f64 {
        self.a / (self.rtt * self.rtt)
    }
}

/// Rates in segments/s just before the next congestion event, given those before this one and which flows back off now.
pub fn step(flows: &[Flow], rates: &[f64], backs_off: &[bool]) -> Vec<f64> {
    let kept: Vec<f64> = flows
        .iter()
        .zip(rates.iter().zip(backs_off))
        .map(|(flow, (&rate, &off))| if off { flow.beta * rate } else { rate })
        .collect();
    let given_up: f64 = rates.iter().sum::<f64>() - kept.iter().sum::<f64>();
    let slopes: f64 = flows.iter().map(Flow::slope).sum();
    flows.iter().zip(kept).map(|(flow, rate)| rate + flow.slope() * given_up / slopes).collect()
}

/// The expected next rates, if flows back off independently of each other: one row for each flow of the
/// matrix `E[A] = diag(1 - lambda_i b_i) + s_i lambda_j b_j / sum(s)`, with `s` the slopes `a/T^2` and `b = 1
/// - beta`.
pub fn expected_matrix(flows: &[Flow]) -> Vec<Vec<f64>> {
    let slopes: f64 = flows.iter().map(Flow::slope).sum();
    let taken = |flow: &Flow| flow.synchronisation * (1.0 - flow.beta);
    (0..flows.len())
        .map(|i| {
            let gain = flows[i].slope() / slopes;
            let row = flows.iter().enumerate().map(|(j, other)| {
                let kept = if i == j { 1.0 - taken(other) } else { 0.0 };
                kept + gain * taken(other)
            });
            row.collect()
        })
        .collect()
}

/// The shares of the link's rate to which the expected matrix converges: `x_i ~ a_i / (T_i^2 lambda_i (1 -
/// beta_i))`.
///
/// For two flows of equal `a` and `beta` the ratio is `(lambda_j/lambda_i)(T_j/T_i)^2`, the thesis' fairness of Standard TCP
/// (section 7.1.4): square of the ratio of round-trip times, times the ratio of synchronisation.
pub fn shares(flows: &[Flow]) -> Vec<f64> {
    let each: Vec<f64> = flows.iter().map(|f| f.slope() / (f.synchronisation * (1.0 - f.beta))).collect();
    let sum: f64 = each.iter().sum();
    each.into_iter().map(|share| share / sum).collect()
}

/// Fairness of two flows: the smaller of their rates over the larger (thesis, equation 7.9).
pub fn fairness(one: Flow, other: Flow) -> f64 {
    let shares = shares(&[one, other]);
    (shares[0] / shares[1]).min(shares[1] / shares[0])
}

/// Number of congestion events until an unfairness between equal flows has decreased to a share `rest`, if
/// all lose together: `ln rest/ln beta`, because `beta` is the second eigenvalue of the synchronised matrix.
pub fn convergence_events(beta: f64, rest: f64) -> f64 {
    libm::log(rest) / libm::log(beta)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Flow = Flow { a: 1.0, beta: 0.5, rtt: 0.1, synchronisation: 1.0 };

    #[test]
    fn synchronised_flows_converge_to_the_square_of_the_round_trip_times() {
        let flows = [STANDARD, Flow { rtt: 0.2, ..STANDARD }];
        let mut rates = vec![100.0, 9900.0];
        for _ in 0..60 {
            rates = step(&flows, &rates, &[true, true]);
            assert!((rates.iter().sum::<f64>() - 1e4).abs() < 1e-6);
        }
        assert!((rates[0] / rates[1] - 4.0).abs() < 1e-9);
        assert!((fairness(flows[0], flows[1]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn what_unfairness_is_left_after_an_event_is_beta() {
        let flows = [Flow { beta: 0.8, ..STANDARD }; 2];
        let rates = step(&flows, &[9000.0, 1000.0], &[true, true]);
        assert!(((rates[0] - rates[1]) / 8000.0 - 0.8).abs() < 1e-12);
        // Ten events leave 0.8^10 = 10.7 %.
        assert!((convergence_events(0.8, 0.107_374) - 10.0).abs() < 1e-4);
    }

    #[test]
    fn shares_are_the_fixed_point_of_the_expected_matrix() {
        let flows = [
            Flow { synchronisation: 0.7, ..STANDARD },
            Flow { rtt: 0.162, synchronisation: 0.9, ..STANDARD },
            Flow { a: 5.0, beta: 0.8, rtt: 0.05, synchronisation: 0.4 },
        ];
        let (shares, matrix) = (shares(&flows), expected_matrix(&flows));
        for (row, &share) in matrix.iter().zip(&shares) {
            let next: f64 = row.iter().zip(&shares).map(|(m, x)| m * x).sum();
            assert!((next / share - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn random_back_offs_have_the_expected_shares_in_the_mean() {
        let flows =
            [Flow { synchronisation: 0.5, ..STANDARD }, Flow { rtt: 0.15, synchronisation: 0.8, ..STANDARD }];
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let (mut rates, mut sums) = (vec![50.0, 50.0], [0.0; 2]);
        for _ in 0..200_000 {
            let off = flows.map(|flow| uniform() < flow.synchronisation);
            rates = step(&flows, &rates, &off);
            sums = [sums[0] + rates[0], sums[1] + rates[1]];
        }
        let shares = shares(&flows);
        assert!((sums[0] / (sums[0] + sums[1]) - shares[0]).abs() < 0.01, "{sums:?} {shares:?}");
    }
}
