//! The metrics themselves. "Thesis" is Li 2006, chapter 7.

/// Jain's fairness index (Jain, Chiu, Hawe 1984; Tekala and Szabo 2006, equation 25): 1 if all are equal,
/// `1/n` if one has everything. NaN for no flows or no goodput at all.
pub fn jain(goodputs: &[f64]) -> f64 {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|x| x * x).sum();
    let n = goodputs.len().max(1) as f64;
    // Sums are rounded; the bounds are not.
    (sum * sum / (n * squares)).clamp(1.0 / n, 1.0)
}

/// Fairness as the ratio of the smallest goodput to the largest (thesis, equation 7.9, for two flows);
/// friendliness if one of the two is Standard TCP. NaN for no flows or no goodput at all.
pub fn fairness(goodputs: &[f64]) -> f64 {
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    least / most
}

/// Stability of one flow: the sample standard deviation of its goodput over its mean (thesis, equation 7.4, with the number
/// of samples less one). NaN for fewer than two samples or no goodput.
pub fn stability(samples: &[f64]) -> f64 {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / (n - 1.0)).sqrt() / mean
}

/// Overhead: the sum over flows of retransmitted over transferred bytes, over the aggregate goodput (thesis, equations 7.10
/// and 7.11), in 1/(bit/s). The thesis prints it in 1e-7/(Mbit/s): multiply by 1e13.
pub fn overhead(retransmitted_and_sent: &[(u64, u64)], aggregate_goodput_bit_s: f64) -> f64 {
    let shares = retransmitted_and_sent.iter().filter(|(_, sent)| *sent > 0);
    shares.map(|&(again, sent)| again as f64 / sent as f64).sum::<f64>() / aggregate_goodput_bit_s
}

/// One step of the short-term average goodput (thesis, equation 7.3, with the factor lambda that makes it an average): an
/// exponential average of time constant `tau`, over a sample of length `step`, both in seconds.
pub fn short_term(average: f64, sample: f64, step: f64, tau: f64) -> f64 {
    let keep = libm::exp(-step / tau);
    keep * average + (1.0 - keep) * sample
}

/// Time from the start of a flow until its short-term goodput first is within a factor `epsilon` of `target`,
/// either way (thesis, section 7.1.3: epsilon 0.8, target its long-term average). `samples` begin with the
/// flow; `step` and `tau` are in seconds. `None` if it never happens.
pub fn convergence(samples: &[f64], target: f64, epsilon: f64, step: f64, tau: f64) -> Option<f64> {
    let mut average = 0.0;
    for (index, &sample) in samples.iter().enumerate() {
        average = short_term(average, sample, step, tau);
        if (epsilon * target..=target / epsilon).contains(&average) {
            return Some((index + 1) as f64 * step);
        }
    }
    None
}

/// QoS efficiency factor of a class (thesis, equations 9.2 and 9.3): the throughput that it achieved over the
/// throughput that it was guaranteed, both counting IP packets, as a link's rate does. Below 1 it left some
/// of its share to others.
pub fn qos_efficiency(achieved: f64, guaranteed: f64) -> f64 {
    achieved / guaranteed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn jain_of_two_flows_by_hand() {
        // (1 + 3)^2 / (2 (1 + 9)) = 16/20.
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
    }

    #[test]
    fn fairness_is_the_smaller_over_the_larger() {
        assert_eq!(fairness(&[200.0, 50.0]), 0.25);
        assert_eq!(fairness(&[50.0, 200.0]), 0.25);
    }

    #[test]
    fn stability_by_hand() {
        // Mean 2, deviations -1, 0, 1: sqrt(2/2)/2.
        assert_eq!(stability(&[1.0, 2.0, 3.0]), 0.5);
    }

    #[test]
    fn overhead_in_the_units_of_the_thesis() {
        // Two flows that retransmit 1e-5 of what they send, at 200 Mbit/s together: 2e-5/200 = 1e-7 per Mbit/s.
        let overhead = overhead(&[(10, 1_000_000), (10, 1_000_000)], 200e6);
        assert!((overhead * 1e13 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn qos_efficiency_by_hand() {
        // 630 of 700 Mbit/s.
        assert!((qos_efficiency(630e6, 700e6) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn convergence_of_a_step_is_the_logarithm() {
        // 1 - exp(-t/tau) reaches 0.8 at t = tau ln 5 = 1.609 tau: the 17th step of tau/10.
        let time = convergence(&[1.0; 100], 1.0, 0.8, 0.1, 1.0);
        assert!((time.unwrap() - 1.7).abs() < 1e-9);
        assert_eq!(convergence(&[0.1; 100], 1.0, 0.8, 0.1, 1.0), None);
    }

    proptest! {
        #[test]
        fn jain_and_fairness_are_bounded_and_without_unit(
            goodputs in prop::collection::vec(0.001f64..1e9, 1..20), scale in 0.001f64..1000.0,
        ) {
            let n = goodputs.len() as f64;
            let scaled: Vec<f64> = goodputs.iter().map(|x| x * scale).collect();
            prop_assert!((1.0 / n..=1.0).contains(&jain(&goodputs)));
            prop_assert!((1.0 / n..=1.0).contains(&jain(&vec![goodputs[0]; goodputs.len()])));
            prop_assert!((0.0..=1.0).contains(&fairness(&goodputs)));
            prop_assert!((jain(&goodputs) - jain(&scaled)).abs() < 1e-9);
            prop_assert!((fairness(&goodputs) - fairness(&scaled)).abs() < 1e-9);
        }

        #[test]
        fn the_short_term_average_stays_between_its_samples(
            samples in prop::collection::vec(0.0f64..1e9, 1..50), step in 0.001f64..10.0, tau in 0.001f64..10.0,
        ) {
            let most = samples.iter().copied().fold(0.0, f64::max);
            let end = samples.iter().fold(0.0, |average, &sample| short_term(average, sample, step, tau));
            prop_assert!((0.0..=most * (1.0 + 1e-9)).contains(&end));
        }
    }
}
