//! HighSpeed TCP (RFC 3649): an AIMD whose increase `a(w)` and decrease `b(w)` depend on the window, so that
//! a window of 83,000 segments needs a loss rate of 1e-7 instead of 2e-10.
//!
//! RFC 3649 gives the two functions in closed form (section 5) and, for implementations, as a table of 73
//! windows at which `a(w)` passes the next whole number (appendix B). The two differ visibly: with the table
//! flows stay on steps, which the thesis finds unfair (section 8.3.1). A row of the table applies from its
//! window up to that of the next row; Linux uses the row above instead, whose `a` is larger by 1.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::linux::Form;
use crate::parameter::{parameters, words};
use crate::reno;

words! {
    /// How a(w) and b(w) are computed.
    pub enum Computation {
        /// By the formulas of RFC 3649, section 5.
        Continuous = "continuous",
        /// From the table of RFC 3649, appendix B.
        Table = "table",
    }
}

parameters! {
    /// HighSpeed TCP's parameters.
    pub struct Parameters {
        /// How a(w) and b(w) are computed: by the formulas of RFC 3649, section 5, or from the table of its
        /// appendix B, which was computed for the published values of the other parameters and ignores them.
        response: Computation = Computation::Continuous;
        /// Window up to which the algorithm is Standard TCP: Low_Window (section 5).
        w_low: f64 = 38.0, 2.0..=1e4, "segments";
        /// Intended window at loss rate p_high: High_Window (section 5).
        w_high: f64 = 83_000.0, 2e4..=1e9, "segments";
        /// Loss rate at w_low: Low_P (section 5).
        p_low: f64 = 1e-3, 1e-4..=1.0, "";
        /// Loss rate at w_high: High_P (section 5).
        p_high: f64 = 1e-7, 1e-15..=1e-5, "";
        /// Fraction of the window that is removed at w_high: High_Decrease (section 5).
        b_high: f64 = 0.1, 0.01..=0.5, "";
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_highspeed.c, with its constants; the other
        /// parameters are then ignored.
        form: Form = Form::Published;
    }
}

/// The functions `a(w)` and `b(w)` above the low window.
#[derive(Clone, Debug)]
struct Response {
    w_low: f64,
    b_high: f64,
    ln_w_low: f64,
    /// Slopes over the logarithm of the window: of `b`, and of the logarithm of `p`.
    slope_b: f64,
    slope_p: f64,
    ln_p_low: f64,
    table: bool,
}

impl Response {
    /// The functions for these parameters.
    fn new(parameters: &Parameters) -> Self {
        let &Parameters { response, w_low, w_high, p_low, p_high, b_high, .. } = parameters;
        let table = response == Computation::Table;
        let span = libm::log(w_high) - libm::log(w_low);
        Self {
            w_low: if table { f64::from(TABLE[0].0) } else { w_low },
            b_high,
            ln_w_low: libm::log(w_low),
            slope_b: (b_high - 0.5) / span,
            slope_p: (libm::log(p_high) - libm::log(p_low)) / span,
            ln_p_low: libm::log(p_low),
            table,
        }
    }

    /// Increase in a round trip at window `w`, in segments.
    fn a(&self, w: f64) -> f64 {
        if self.table {
            return (1 + row(w)) as f64;
        }
        let x = libm::log(w) - self.ln_w_low;
        let b = self.b_at(x);
        let p = libm::exp(self.ln_p_low + self.slope_p * x);
        2.0 * w * w * b * p / (2.0 - b)
    }

    /// Fraction of window `w` that is removed at a loss.
    fn b(&self, w: f64) -> f64 {
        if self.table { TABLE[row(w)].1 } else { self.b_at(libm::log(w) - self.ln_w_low) }
    }

    /// `d ln a / d ln w` at window `w`: how `a` changes near it.
    fn slope(&self, w: f64) -> f64 {
        let b = self.b(w);
        let slope_b = if b > self.b_high { self.slope_b } else { 0.0 };
        2.0 + self.slope_p + slope_b * (1.0 / b + 1.0 / (2.0 - b))
    }

    /// `b` at `x = ln w - ln w_low`. The RFC does not define it above `w_high`, where the line would go below
    /// zero: `b_high` is kept.
    fn b_at(&self, x: f64) -> f64 {
        (0.5 + self.slope_b * x).max(self.b_high)
    }
}

/// The last row of the table that begins at or below `w`.
fn row(w: f64) -> usize {
    TABLE.partition_point(|&(from, _)| f64::from(from) <= w).saturating_sub(1)
}

/// A tangent to `a(w)` is used up to this distance from its point of contact, as a fraction of the window.
/// There its error is less than 1e-4 of `a`, and a logarithm and an exponential for each ACK are saved.
const TANGENT_REACH: f64 = 1.0 / 64.0;

/// A tangent to `a(w)`.
#[derive(Clone, Copy, Debug)]
struct Tangent {
    w: f64,
    a: f64,
    /// Change of `a` for each segment.
    slope: f64,
}

/// HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct Hstcp {
    response: Response,
    tangent: Tangent,
}

impl Hstcp {
    /// HighSpeed TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { response: Response::new(&parameters), tangent: Tangent { w: 0.0, a: 0.0, slope: 0.0 } }
    }

    /// `a(w)`, from the table or from a tangent nearby.
    fn a(&mut self, w: f64) -> f64 {
        if self.response.table {
            return self.response.a(w);
        }
        if (w - self.tangent.w).abs() > TANGENT_REACH * w {
            let a = self.response.a(w);
            self.tangent = Tangent { w, a, slope: self.response.slope(w) * a / w };
        }
        self.tangent.a + self.tangent.slope * (w - self.tangent.w)
    }

    /// Window up to which the algorithm is Standard TCP.
    pub fn w_low(&self) -> f64 {
        self.response.w_low
    }
}

impl Algorithm for Hstcp {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        if window.cwnd <= self.response.w_low {
            return reno::increase(window, ack);
        }
        self.a(window.cwnd) * ack.segments / window.cwnd
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        if window.cwnd <= self.response.w_low {
            return reno::decrease(event);
        }
        (1.0 - self.response.b(window.cwnd)) * window.cwnd
    }
}

/// RFC 3649, appendix B: the window from which `a` is the number of the row, counted from 1, and `b`.
#[rustfmt::skip]
pub const TABLE: [(u32, f64); 73] = [
    (38, 0.50), (118, 0.44), (221, 0.41), (347, 0.38), (495, 0.37), (663, 0.35), (851, 0.34),
    (1058, 0.33), (1284, 0.32), (1529, 0.31), (1793, 0.30), (2076, 0.29), (2378, 0.28), (2699, 0.28),
    (3039, 0.27), (3399, 0.27), (3778, 0.26), (4177, 0.26), (4596, 0.25), (5036, 0.25), (5497, 0.24),
    (5979, 0.24), (6483, 0.23), (7009, 0.23), (7558, 0.22), (8130, 0.22), (8726, 0.22), (9346, 0.21),
    (9991, 0.21), (10661, 0.21), (11358, 0.20), (12082, 0.20), (12834, 0.20), (13614, 0.19),
    (14424, 0.19), (15265, 0.19), (16137, 0.19), (17042, 0.18), (17981, 0.18), (18955, 0.18),
    (19965, 0.17), (21013, 0.17), (22101, 0.17), (23230, 0.17), (24402, 0.16), (25618, 0.16),
    (26881, 0.16), (28193, 0.16), (29557, 0.15), (30975, 0.15), (32450, 0.15), (33986, 0.15),
    (35586, 0.14), (37253, 0.14), (38992, 0.14), (40808, 0.14), (42707, 0.13), (44694, 0.13),
    (46776, 0.13), (48961, 0.13), (51258, 0.13), (53677, 0.12), (56230, 0.12), (58932, 0.12),
    (61799, 0.12), (64851, 0.11), (68113, 0.11), (71617, 0.11), (75401, 0.10), (79517, 0.10),
    (84035, 0.10), (89053, 0.10), (94717, 0.09),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, close};

    /// RFC 3649, appendix B computes the table with p(w) = 0.078/w^1.2 and starts a row where `a` has
    /// grown by more than 1 since the row before.
    #[test]
    fn the_table_follows_from_the_formulas() {
        let b = |w: f64| {
            0.5 + (0.1 - 0.5) * (libm::log(w) - libm::log(38.0)) / (libm::log(83_000.0) - libm::log(38.0))
        };
        let a = |w: f64| w * w * 2.0 * b(w) / ((2.0 - b(w)) * libm::pow(w, 1.2) * 12.8);
        let mut rows = vec![(38, 0.50)];
        let mut last = 1.0;
        for w in 38..100_000 {
            if a(f64::from(w)) > last + 1.0 {
                last = a(f64::from(w));
                rows.push((w, (b(f64::from(w)) * 100.0).round() / 100.0));
            }
        }
        assert_eq!(rows, TABLE);
    }

    #[test]
    fn the_formulas_give_the_rows_of_the_table() {
        let response = Response::new(&Parameters::default());
        // Above 83,000 the formulas keep b_high, and the table continues.
        for (index, &(w, b)) in TABLE.iter().enumerate().filter(|&(_, &(w, _))| w <= 83_000) {
            let w = f64::from(w);
            close(response.b(w), b, 0.0051);
            // The table's p(w) = 0.078/w^1.2 is rounded, and its rows begin where a has passed a whole number.
            close(response.a(w) / (index + 1) as f64, 1.0, 0.04);
        }
    }

    #[test]
    fn a_and_b_at_the_published_windows() {
        // x = (ln w - ln 38)/(ln 83000 - ln 38), ln 38 = 3.637586, ln 83000 = 11.326596, span 7.689010.
        // w = 1000: x = 3.270169/7.689010 = 0.425304; b = 0.5 - 0.4 x = 0.329878;
        //   p = 1e-3 * 1e-4^x = 1.98967e-5; a = 2e6 * 0.329878 * 1.98967e-5 / 1.670122 = 7.8599.
        // w = 83000: b = 0.1, p = 1e-7, a = 2 * 6.889e9 * 0.1 * 1e-7 / 1.9 = 72.516.
        let response = Response::new(&Parameters::default());
        close(response.b(1000.0), 0.329_878, 1e-6);
        close(response.a(1000.0), 7.8599, 1e-4);
        close(response.b(83_000.0), 0.1, 1e-12);
        close(response.a(83_000.0), 72.516, 1e-3);
        close(response.b(1e6), 0.1, 0.0);
    }

    #[test]
    fn tangents_are_close() {
        let mut hstcp = Hstcp::new(Parameters::default());
        for step in [1.003, 1.0 / 1.003] {
            let mut w = if step > 1.0 { 38.1 } else { 1e6 };
            // Except where b(w) bends, at w_high.
            while (38.0..=1e6).contains(&w) {
                let exact = hstcp.response.a(w);
                let tolerance = if (81_000.0..85_000.0).contains(&w) { 1e-2 } else { 1e-4 };
                close(hstcp.a(w) / exact, 1.0, tolerance);
                w *= step;
            }
        }
    }

    #[test]
    fn windows_after_acks_and_losses_with_the_table() {
        // 1100 is in row 8 (from 1058): a = 8, b = 0.33.
        // ACK of 1:      1100 + 8/1100 = 1100.0072727.
        // loss:          0.67 * 1100.0072727 = 737.0048727, in row 6 (from 663): a = 6, b = 0.35.
        // ACK of 2:      737.0048727 + 2 * 6/737.0048727 = 737.0211549.
        // loss:          0.65 * 737.0211549 = 479.0637507.
        let mut history = History::of("hstcp").set("response", "table").at(1100.0);
        history.ack(1.0).window_near(1_100.007_272_7, 1e-7);
        history.loss().window_near(737.004_872_7, 1e-7);
        history.ack(2.0).window_near(737.021_154_9, 1e-7);
        history.loss().window_near(479.063_750_7, 1e-7);
    }

    #[test]
    fn windows_after_acks_and_losses_with_the_formulas() {
        // ACK at 1000: 1000 + 7.8599/1000 = 1000.0078599. Loss: b at 1000.0079 is smaller than at 1000 by
        // 0.4 * 7.9e-6/7.689 = 4e-7, 0.3298779; 0.6701221 * 1000.0078599 = 670.1274.
        let mut history = History::of("hstcp").at(1000.0);
        history.ack(1.0).window_near(1_000.007_859_9, 1e-6);
        history.loss().window_near(670.1274, 1e-4);
        assert_eq!(history.ssthresh(), history.cwnd());
    }
}
