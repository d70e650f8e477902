//! Layered TCP (Bhandarkar, Jain and Reddy): a flow with `K` layers grows like `K` flows of Standard TCP. A
//! layer is added for each step of the window, and each step is larger than the previous one.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::variable::{Tell, variables};

parameters! {
    /// Layered TCP's parameters.
    pub struct Parameters {
        /// Window up to which there is one layer: W_T (Bhandarkar, section 3).
        w_t: f64 = 50.0, 2.0..=1e9, "segments";
        /// Average share of the window that a loss costs (equation 7); each step is 1/(1 - 4 beta_l) times the previous one
        /// (equation 8). Convergence needs more than 1/12 (section 3.1).
        beta_l: f64 = 0.1, 0.01..=0.24, "";
    }
}

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layer {
    /// Its number, K.
    k: f64,
    /// The window above which it applies, W_K.
    from: f64,
    /// Its step, d_K: it applies up to W_K + d_K.
    step: f64,
}

/// Layered TCP.
#[derive(Clone, Debug)]
pub struct Ltcp {
    /// Ratio of a step to the one before, alpha_L (equation 8).
    alpha: f64,
    first: Layer,
    /// The layer of the last window.
    layer: Layer,
}

impl Ltcp {
    /// Layered TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        let Parameters { w_t, beta_l } = parameters;
        let first = Layer { k: 1.0, from: 0.0, step: w_t };
        Self { alpha: 1.0 / (1.0 - 4.0 * beta_l), first, layer: first }
    }

    /// The layer of window `w`: that K for which W_K < w <= W_K + d_K (equations 1, 3 and 4).
    fn layer(&mut self, w: f64) -> Layer {
        if w <= self.layer.from {
            // Counted up from the first layer each time, so that rounding errors do not accumulate.
            self.layer = self.first;
        }
        while w > self.layer.from + self.layer.step {
            let Layer { k, from, step } = self.layer;
            self.layer = Layer { k: k + 1.0, from: from + step, step: self.alpha * step };
        }
        self.layer
    }
}

impl Algorithm for Ltcp {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.layer(window.cwnd).k * reno::increase(window, ack)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let Layer { k, from, step } = self.layer(window.cwnd);
        if k == 1.0 {
            return reno::decrease(event);
        }
        // Equation 6: half of the last layer's step where this layer begins, half of this one's where it ends.
        let last_step = step / self.alpha;
        window.cwnd - (last_step / 2.0 + (1.0 - 1.0 / self.alpha) * (window.cwnd - from) / 2.0)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Number of layers, K, of the last window for which it was asked (equation 1).
            layers: "" = self.layer.k;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, close};

    /// Bhandarkar, figure 3: step and first window of each layer, with W_T = 50 and beta = 0.1; then how much
    /// faster than Standard TCP it claims bandwidth from the second layer on, and recovers from a loss.
    const FIGURE_3: [(f64, f64, f64, f64); 17] = [
        (50.00, 0.00, 1.00, 1.00),
        (83.33, 50.00, 1.00, 1.00),
        (138.89, 133.33, 2.00, 3.20),
        (231.48, 272.22, 2.53, 5.88),
        (385.80, 503.70, 3.11, 8.70),
        (643.00, 889.51, 3.76, 11.53),
        (1071.67, 1532.51, 4.49, 14.30),
        (1786.12, 2604.18, 5.29, 17.01),
        (2976.87, 4390.31, 6.14, 19.66),
        (4961.45, 7367.18, 7.05, 22.27),
        (8269.09, 12_328.63, 8.01, 24.85),
        (13_781.81, 20_597.71, 8.99, 27.40),
        (22_969.68, 34_379.52, 10.00, 29.93),
        (38_282.80, 57_349.21, 11.02, 32.46),
        (63_804.67, 95_632.01, 12.05, 34.97),
        (106_341.10, 159_436.70, 13.08, 37.48),
        (177_235.20, 265_777.80, 14.11, 39.99),
    ];

    #[test]
    fn layers_of_figure_3() {
        let mut ltcp = Ltcp::new(Parameters::default());
        for (index, &(step, from, ..)) in FIGURE_3.iter().enumerate() {
            let layer = ltcp.layer(from + 0.999 * step);
            assert_eq!(layer.k, (index + 1) as f64);
            close(layer.step, step, 2e-6 * step + 0.005);
            close(layer.from, from, 2e-6 * from + 0.005);
        }
        // And back down again.
        assert_eq!(ltcp.layer(134.0).k, 3.0);
        assert_eq!(ltcp.layer(50.0), Layer { k: 1.0, from: 0.0, step: 50.0 });
    }

    #[test]
    fn speed_ups_of_figure_3() {
        for &(_, from, claiming, recovery) in &FIGURE_3[2..13] {
            // Standard TCP needs a round trip for each segment: from - 50 to get there from W_T, and half
            // of its window to recover.
            let claimed = History::of("ltcp").at(50.0).round_trips_to(from);
            close((from - 50.0) / claimed, claiming, 0.03 * claiming);
            let mut lost = History::of("ltcp").at(from);
            lost.loss();
            close(from / 2.0 / lost.round_trips_to(from), recovery, 0.03 * recovery);
        }
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // 200 is in layer 3 (133.33 to 272.22). ACK: 200 + 3/200 = 200.015.
        // Loss: d_2/2 = 41.66667, and (1 - 0.6)(200.015 - 133.33333)/2 = 13.33633: 145.012.
        // Loss, still layer 3: 41.66667 + 0.2 * 11.67867 = 44.00240: 101.0096.
        // ACK of 2 in layer 2 (50 to 133.33): 101.0096 + 2 * 2/101.0096 = 101.0492.
        // Loss: d_1/2 = 25, and 0.2 * 51.0492 = 10.20984: 65.83936.
        // Loss: 25 + 0.2 * 15.83936 = 28.16787: 37.67149. Loss in layer 1: halved.
        let mut history = History::of("ltcp").at(200.0);
        history.ack(1.0).window_near(200.015, 1e-9);
        history.loss().window_near(145.012, 1e-9);
        history.loss().window_near(101.0096, 1e-9);
        history.ack(2.0).window_near(101.0492, 1e-6);
        history.loss().window_near(65.839_36, 1e-6);
        history.loss().window_near(37.671_49, 1e-5);
        history.loss().window_near(18.835_74, 1e-5);
    }
}
