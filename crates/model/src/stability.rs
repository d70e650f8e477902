//! Kelly's stability condition: when many flows of Scalable TCP converge and when they oscillate (Kelly,
//! section 3.4, equation 3; Vinnicombe 2002).
//!
//! The algorithm is locally stable about its equilibrium, for any topology and any mix of round-trip times,
//! if `a < p_j(y_j) / (y_j p_j'(y_j))` at every link `j`: the increase for each acknowledged segment is less
//! than the inverse of the elasticity of the link's loss probability in its load. The condition is
//! sufficient, not necessary.

/// How a link's loss probability depends on its load `rho = y/C`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// A FIFO queue of `buffer` packets with random arrivals, in its heavy-traffic form `p = rho^buffer` (the
    /// form of the paper, with which the condition becomes `buffer < 1/a`).
    Power {
        /// Buffer, packets.
        buffer: f64,
    },
    /// A FIFO queue of `buffer` packets, Poisson arrivals, exponential service: `p = (1 - rho) rho^B / (1 - rho^(B + 1))`.
    Mm1b {
        /// Buffer, packets.
        buffer: f64,
    },
    /// Only the excess is lost: `p = 1 - 1/rho` above `rho = 1`. The fluid limit of any DropTail queue.
    Excess,
}

impl LossModel {
    /// Loss probability at load `rho`.
    pub fn loss(&self, rho: f64) -> f64 {
        match *self {
            Self::Power { buffer } => libm::pow(rho, buffer),
            Self::Mm1b { buffer } => {
                let log = libm::log(rho);
                if (log * (buffer + 1.0)).abs() < 1e-9 {
                    return 1.0 / (buffer + 1.0);
                }
                (1.0 - rho) * libm::exp(buffer * log) / -libm::expm1((buffer + 1.0) * log)
            }
            Self::Excess => (1.0 - 1.0 / rho).max(0.0),
        }
    }

    /// The load at which the loss probability is `p`; none below any (0 < p < 1).
    pub fn load(&self, p: f64) -> f64 {
        match *self {
            Self::Power { buffer } => libm::pow(p, 1.0 / buffer),
            Self::Mm1b { .. } => crate::solve::increasing(|rho| self.loss(rho), p, 1e-6, 1e6),
            Self::Excess => 1.0 / (1.0 - p),
        }
    }

    /// Elasticity `rho p'/p` at load `rho`.
    pub fn elasticity(&self, rho: f64) -> f64 {
        match *self {
            Self::Power { buffer } => buffer,
            Self::Mm1b { .. } => {
                let h = 1e-4;
                (libm::log(self.loss(rho * (1.0 + h))) - libm::log(self.loss(rho * (1.0 - h)))) / (2.0 * h)
            }
            // p = 1 - 1/rho: rho p'/p = (1/rho)/p.
            Self::Excess => 1.0 / rho / self.loss(rho),
        }
    }
}

/// The quantities of a link in the condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Load at the equilibrium, `y/C`.
    pub load: f64,
    /// Loss probability at the equilibrium.
    pub loss: f64,
    /// `p/(y p')`: Scalable TCP's `a` must be less.
    pub limit: f64,
    /// Whether Scalable TCP's `a` is less than this.
    pub stable: bool,
}

/// The condition at a link of `rate` segments/s that `flows` flows of Scalable TCP (`a`, `b`, round-trip time
/// `rtt` s) load. In equilibrium each flow has the window `(a/b)/p`, so the load is the solution of `flows
/// (a/b)/(p rtt) = rho rate`.
pub fn at_link(a: f64, b: f64, flows: f64, rtt: f64, rate: f64, model: LossModel) -> Margin {
    // The load that flows offer decreases with p, the load of the model increases with it.
    let offered = |p: f64| flows * a / b / (p * rtt) / rate;
    let loss = crate::solve::increasing(|p| model.load(p) / offered(p), 1.0, 1e-12, 0.999_999);
    let load = model.load(loss);
    let limit = 1.0 / model.elasticity(load);
    Margin { load, loss, limit, stable: a < limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_bound_of_one_over_a() {
        // 1/a = 100 packets for a = 0.01, for any link.
        for (flows, rate) in [(10.0, 1e4), (1000.0, 2e5)] {
            let margin = |buffer| at_link(0.01, 0.125, flows, 0.1, rate, LossModel::Power { buffer });
            assert!(margin(99.0).stable);
            assert!(!margin(101.0).stable);
            // Without rounding of the equilibrium: load and loss satisfy both equations.
            let Margin { load, loss, .. } = margin(50.0);
            assert!((flows * 0.08 / loss / 0.1 / (load * rate) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn an_overloaded_queue_loses_the_excess() {
        // M/M/1/B far above a load of 1 is the fluid limit; at 1 it is 1/(B + 1).
        let queue = LossModel::Mm1b { buffer: 100.0 };
        assert!((queue.loss(1.3) / LossModel::Excess.loss(1.3) - 1.0).abs() < 1e-9);
        assert!((queue.loss(1.0) - 1.0 / 101.0).abs() < 1e-9);
        assert!((queue.load(queue.loss(0.97)) - 0.97).abs() < 1e-9);
    }

    #[test]
    fn elasticities_are_the_slopes() {
        for model in [LossModel::Power { buffer: 30.0 }, LossModel::Mm1b { buffer: 30.0 }, LossModel::Excess]
        {
            let (rho, h) = (1.05, 1e-6);
            let slope = (model.loss(rho + h) - model.loss(rho - h)) / (2.0 * h);
            let expected = rho * slope / model.loss(rho);
            assert!((model.elasticity(rho) / expected - 1.0).abs() < 1e-3, "{model:?}");
        }
    }
}
