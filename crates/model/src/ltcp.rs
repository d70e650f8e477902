//! Layered TCP (Bhandarkar, section 3): layers, and the speed-ups of its table.

use elephan_cc::ltcp::Parameters;

use crate::epoch::Epoch;

/// Layered TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Ltcp {
    /// Window up to which there is one layer, W_T.
    pub w_t: f64,
    /// Ratio of a layer's step to the one before: `1/(1 - 4 beta_L)` (equation 8, which is unreadable in print).
    pub alpha: f64,
}

/// A layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// Its number K.
    pub k: f64,
    /// The window above which it applies, W_K.
    pub from: f64,
    /// Its step d_K.
    pub step: f64,
}

impl Ltcp {
    pub(crate) fn of(parameters: &Parameters) -> Self {
        Self { w_t: parameters.w_t, alpha: 1.0 / (1.0 - 4.0 * parameters.beta_l) }
    }

    /// Layer `k`: `d_K = alpha^(K-1) W_T`, `W_K = W_T (alpha^(K-1) - 1)/(alpha - 1)` (equations 1 and 3 to 5).
    pub fn numbered(&self, k: u32) -> Layer {
        let power = libm::pow(self.alpha, f64::from(k) - 1.0);
        Layer { k: k.into(), from: self.w_t * (power - 1.0) / (self.alpha - 1.0), step: self.w_t * power }
    }

    /// The layer of window `w`: `W_K < w <= W_K + d_K`.
    pub fn layer(&self, w: f64) -> Layer {
        let mut layer = Layer { k: 1.0, from: 0.0, step: self.w_t };
        while w > layer.from + layer.step {
            layer = Layer { k: layer.k + 1.0, from: layer.from + layer.step, step: layer.step * self.alpha };
        }
        layer
    }

    /// The mean number of layers at windows near `w`: the steps of [`Self::layer`], interpolated without its
    /// jumps.
    pub fn mean_layers(&self, w: f64) -> f64 {
        (0.5 + libm::log1p((self.alpha - 1.0) * w / self.w_t) / libm::log(self.alpha)).max(1.0)
    }

    /// Fraction that remains after a loss at window `w` (equation 6, whose pseudo-code prints a product in
    /// place of the sum).
    pub(crate) fn beta(&self, w: f64) -> f64 {
        let Layer { k, from, step } = self.layer(w);
        if k == 1.0 {
            return 0.5;
        }
        1.0 - (step / self.alpha / 2.0 + (1.0 - 1.0 / self.alpha) * (w - from) / 2.0) / w
    }

    /// K segments in each round trip, layer by layer.
    pub(crate) fn epoch(&self, w: f64) -> Epoch {
        let (mut epoch, mut from) = (Epoch { rounds: 0.0, packets: 0.0 }, self.beta(w) * w);
        let mut layer = self.layer(from);
        while from < w {
            let to = w.min(layer.from + layer.step);
            let rounds = (to - from) / layer.k;
            epoch.rounds += rounds;
            epoch.packets += rounds * f64::midpoint(from, to);
            layer = Layer { k: layer.k + 1.0, from: to, step: layer.step * self.alpha };
            from = to;
        }
        epoch
    }

    /// The factor by which window `W_K` is reached faster from `W_T` than with Standard TCP: `(W_K - W_T) /
    /// sum of d_i/i` over layers 2 to K - 1. The table prints this value; equation 9 counts the first layer
    /// too and gives less. It is 1 up to the second layer.
    pub fn claiming_speed_up(&self, k: u32) -> f64 {
        let rounds: f64 = (2..k).map(|i| self.numbered(i).step / f64::from(i)).sum();
        if rounds == 0.0 { 1.0 } else { (self.numbered(k).from - self.w_t) / rounds }
    }

    /// The factor by which a loss at window `W_K` is recovered faster than with Standard TCP: `W_K (K -
    /// 1)/d_(K-1)`, which tends to `(K - 1)/(4 beta_L)` for many layers (section 3.3).
    pub fn recovery_speed_up(&self, k: u32) -> f64 {
        self.numbered(k).from * (f64::from(k) - 1.0) / self.numbered(k - 1).step
    }

    /// The loss rate that supports window `W_K`: one loss removes `d_(K-1)/2`, which `K - 1` layers regain in
    /// `d_(K-1)/(2 (K-1))` round trips of about `W_K` packets, so `2 (K - 1)/(W_K d_(K-1))`. That is `1.875
    /// (K - 1)` times Standard TCP's `8/(3 W^2)`; the paper prints about 1.5 (K - 1).
    pub fn supporting_loss(&self, k: u32) -> f64 {
        2.0 * (f64::from(k) - 1.0) / (self.numbered(k).from * self.numbered(k - 1).step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn published() -> Ltcp {
        match Algorithm::new("ltcp", &[]) {
            Ok(Algorithm::Ltcp(it)) => it,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_papers_table() {
        // Figure 3: K, d_K, W_K, speed-up in claiming, speed-up in recovery.
        let it = published();
        for (k, step, from, claiming, recovery) in [
            (3, 138.89, 133.33, 2.00, 3.20),
            (4, 231.48, 272.22, 2.53, 5.88),
            (5, 385.80, 503.70, 3.11, 8.70),
            (8, 1786.12, 2604.18, 5.29, 17.01),
            (13, 22_969.68, 34_379.52, 10.00, 29.93),
            (17, 177_235.20, 265_777.80, 14.11, 39.99),
        ] {
            let layer = it.numbered(k);
            assert!((layer.step / step - 1.0).abs() < 1e-5, "d_{k} = {}", layer.step);
            assert!((layer.from / from - 1.0).abs() < 4e-5, "W_{k} = {}", layer.from);
            assert!((it.claiming_speed_up(k) - claiming).abs() < 0.006, "{k}: {}", it.claiming_speed_up(k));
            assert!((it.recovery_speed_up(k) - recovery).abs() < 0.011, "{k}: {}", it.recovery_speed_up(k));
        }
        assert_eq!(it.claiming_speed_up(2), 1.0);
    }

    #[test]
    fn supporting_loss_is_the_derived_multiple() {
        let it = published();
        for k in [10, 14, 17] {
            let standard = 8.0 / 3.0 / it.numbered(k).from.powi(2);
            let factor = it.supporting_loss(k) / standard / (f64::from(k) - 1.0);
            assert!((factor - 1.875).abs() < 0.02, "{k}: {factor}");
        }
    }

    #[test]
    fn a_layer_by_its_number_and_by_its_window() {
        let it = published();
        for k in 1..15 {
            let Layer { k, from, step } = it.numbered(k);
            let found = it.layer(from + step / 2.0);
            assert_eq!(found.k, k);
            assert!((found.from - from).abs() <= 1e-9 * from);
            // In the middle of a layer the mean is its number; at its ends it differs by half a layer.
            assert!((it.mean_layers(from + step / 2.0) - k).abs() < 0.1 || k < 2.0);
        }
    }
}
