//! HighSpeed TCP with fast convergence (Nabeshima and Yata 2004): a flow whose window decreases from loss to
//! loss has more than its share, and halves the window.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::hstcp::{self, Hstcp};
use crate::linux::Form;
use crate::parameter::parameters;
use crate::reno;

parameters! {
    /// Parameters of HighSpeed TCP with fast convergence.
    pub struct Parameters {
        /// How a(w) and b(w) are computed, as for hstcp.
        response: hstcp::Computation = hstcp::Computation::Continuous;
        /// Window up to which the algorithm is Standard TCP: Low_Window (RFC 3649, section 5).
        w_low: f64 = 38.0, 2.0..=1e4, "segments";
        /// Intended window at loss rate p_high: High_Window (RFC 3649, section 5).
        w_high: f64 = 83_000.0, 2e4..=1e9, "segments";
        /// Loss rate at w_low: Low_P (RFC 3649, section 5).
        p_low: f64 = 1e-3, 1e-4..=1.0, "";
        /// Loss rate at w_high: High_P (RFC 3649, section 5).
        p_high: f64 = 1e-7, 1e-15..=1e-5, "";
        /// Fraction of the window that is removed at w_high: High_Decrease (RFC 3649, section 5).
        b_high: f64 = 0.1, 0.01..=0.5, "";
        /// Losses of a downward trend after which the window may be halved (Nabeshima 2004, section 3).
        n1: f64 = 2.0, 1.0..=1e6, "losses";
        /// Losses of a downward trend after which its largest window is discarded (section 3).
        n2: f64 = 10.0, 1.0..=1e6, "losses";
        /// The window is halved when it is below the trend's largest by this share of the largest: 1/s_divisor (section 4.1).
        s_divisor: f64 = 32.0, 1.0..=1e6, "";
        /// Smallest such difference (section 4.1).
        s_min: f64 = 50.0, 0.0..=1e9, "segments";
        /// Largest such difference (section 4.1).
        s_max: f64 = 200.0, 0.0..=1e9, "segments";
    }
}

impl Parameters {
    /// The parameters that HighSpeed TCP has.
    pub fn hstcp(&self) -> hstcp::Parameters {
        let &Self { response, w_low, w_high, p_low, p_high, b_high, .. } = self;
        hstcp::Parameters { response, w_low, w_high, p_low, p_high, b_high, form: Form::Published }
    }
}

/// HighSpeed TCP with fast convergence.
#[derive(Clone, Debug)]
pub struct HstcpFc {
    hstcp: Hstcp,
    parameters: Parameters,
    /// Largest window of the current downward trend.
    w_max: f64,
    /// Window at the previous loss.
    w_prev: f64,
    /// Losses of the current downward trend.
    num_dec: f64,
}

impl HstcpFc {
    /// The algorithm with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        let hstcp = Hstcp::new(parameters.hstcp());
        Self { hstcp, parameters, w_max: 0.0, w_prev: 0.0, num_dec: 0.0 }
    }

    /// Nabeshima 2004, figure 3: whether this loss shows that the flow has more than its share.
    fn is_above_fair_share(&mut self, cwnd: f64) -> bool {
        let Parameters { n1, n2, s_divisor, s_min, s_max, .. } = self.parameters;
        if cwnd <= self.hstcp.w_low() {
            return false;
        }
        if self.w_prev <= cwnd {
            (self.w_max, self.w_prev, self.num_dec) = (cwnd, cwnd, 0.0);
            return false;
        }
        self.num_dec += 1.0;
        let s = (self.w_max / s_divisor).min(s_max).max(s_min);
        if self.num_dec >= n1 && self.w_max - cwnd >= s {
            (self.w_max, self.w_prev, self.num_dec) = (0.0, 0.0, 0.0);
            return true;
        }
        self.w_prev = cwnd;
        if self.num_dec == n2 {
            (self.w_max, self.num_dec) = (cwnd, 0.0);
        }
        false
    }
}

impl Algorithm for HstcpFc {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.hstcp.increase(window, ack)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        if self.is_above_fair_share(window.cwnd) {
            return reno::decrease(event);
        }
        self.hstcp.decrease(window, event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{close, loss};

    /// The windows after losses at these windows, one after the other.
    fn after(parameters: Parameters, windows: &[f64]) -> Vec<f64> {
        let mut algorithm = HstcpFc::new(parameters);
        let window = |cwnd| Window { cwnd, ssthresh: 2.0 };
        windows.iter().map(|&cwnd| algorithm.decrease(&window(cwnd), &loss(cwnd))).collect()
    }

    /// The windows that HighSpeed TCP keeps: with ln 38 = 3.637586 and ln 83000 - ln 38 = 7.689010, b(w) =
    /// 0.5 - 0.4 (ln w - 3.637586)/7.689010.
    fn plain(cwnd: f64) -> f64 {
        (0.5 + 0.4 * (libm::log(cwnd) - 3.637_586) / 7.689_010) * cwnd
    }

    #[track_caller]
    fn all_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            close(*found, *expected, 1e-3);
        }
    }

    #[test]
    fn halves_a_window_that_keeps_falling() {
        // 1000: up from 0, W_max = 1000. 990: numDec = 1 < N1. 940: numDec = 2, 1000 - 940 = 60, and
        // S = clip(1000/32, 50, 200) = 50: halved, all reset. 600: up from 0.
        let found = after(Parameters::default(), &[1000.0, 990.0, 940.0, 600.0]);
        all_close(&found, &[plain(1000.0), plain(990.0), 470.0, plain(600.0)]);
        // ln 1000 = 6.907755: b = 0.5 - 0.4 * 0.425304 = 0.329878.
        close(found[0], 670.122, 1e-3);
    }

    #[test]
    fn waits_until_the_fall_is_large_enough() {
        // 960 is only 40 below 1000; 945 is 55 below.
        let found = after(Parameters::default(), &[1000.0, 990.0, 960.0, 945.0]);
        all_close(&found, &[plain(1000.0), plain(990.0), plain(960.0), 472.5]);
        // S = clip(10000/32 = 312.5, 50, 200) = 200: 9801 is 199 below, 9800 is 200 below.
        let found = after(Parameters::default(), &[10_000.0, 9900.0, 9801.0, 9800.0]);
        all_close(&found, &[plain(10_000.0), plain(9900.0), plain(9801.0), 4900.0]);
    }

    #[test]
    fn a_rise_ends_the_trend() {
        // 990 is above 980: W_max = 990, numDec = 0; 945: numDec = 1; 940: numDec = 2, 50 below 990.
        let windows = [1000.0, 980.0, 990.0, 945.0, 940.0];
        let found = after(Parameters::default(), &windows);
        all_close(&found, &[plain(1000.0), plain(980.0), plain(990.0), plain(945.0), 470.0]);
    }

    #[test]
    fn an_old_largest_window_does_not_count() {
        // N2 = 3: at 997, the third decrease, W_max becomes 997. So 948 is 49 below, and not 52.
        let parameters = Parameters { n2: 3.0, ..Parameters::default() };
        let windows = [1000.0, 999.0, 998.0, 997.0, 996.0, 948.0, 947.0];
        let found = after(parameters, &windows);
        let mut expected = windows.map(plain);
        expected[6] = 473.5;
        all_close(&found, &expected);
    }

    #[test]
    fn up_to_w_low_it_is_standard_tcp_and_forgets_nothing() {
        // The loss at 38 halves and leaves W_max = 1000, numDec = 1: 940 is the second of the trend.
        let found = after(Parameters::default(), &[1000.0, 990.0, 38.0, 940.0]);
        all_close(&found, &[plain(1000.0), plain(990.0), 19.0, 470.0]);
    }
}
