//! The steady state of every algorithm, by one construction: the growth of the window from one loss to the
//! next.
//!
//! One loss in `1/p` packets makes a periodic sawtooth. Let the loss occur at window `W`. The climb from the
//! window after the loss back to `W` takes `rounds(W)` round trips and carries `packets(W)` packets, so `p =
//! 1/packets(W)`, the mean window is `packets(W)/rounds(W)`, and the recovery time is `rounds(W)`. Each
//! algorithm defines its climb, in closed form if there is one. This gives the *derived* response function.
//! The function printed in a paper, often an approximation, is the *published* one.
//!
//! Three things are not modelled: the round trip in which the window is constant while a loss is repaired,
//! timeouts, and whole windows. So both forms are valid for windows of more than about ten segments and
//! climbs of more than a few round trips.

use elephan_cc::registry::{self, AnyParameters};
use elephan_units::entry::Value;
use elephan_units::{Mistake, OneOf};

use crate::bic::Bic;
use crate::cubic::Cubic;
use crate::epoch::Epoch;
use crate::fast::Fast;
use crate::highspeed::HighSpeed;
use crate::htcp::Htcp;
use crate::ltcp::Ltcp;
use crate::scalable::Scalable;
use crate::solve;
use crate::standard::Standard;

/// The steady state of an algorithm, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// Standard TCP, any additive increase and multiplicative decrease.
    Standard(Standard),
    /// HighSpeed TCP.
    HighSpeed(HighSpeed),
    /// Scalable TCP.
    Scalable(Scalable),
    /// H-TCP.
    Htcp(Htcp),
    /// BIC-TCP.
    Bic(Bic),
    /// FAST TCP.
    Fast(Fast),
    /// Layered TCP.
    Ltcp(Ltcp),
    /// CUBIC.
    Cubic(Cubic),
}

/// Why there is no model of an algorithm, or no result from it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// An algorithm without a model, or a setting that it refuses.
    #[error("{0}")]
    Refused(Mistake),
    /// A computation was cancelled.
    #[error("the computation was cancelled")]
    Cancelled,
    /// The steps of an integration became too short.
    #[error(
        "the fluid equations could not be integrated at {time:.3} s: the steps that their error allows are too short"
    )]
    NoSolution {
        /// Time that was reached, s.
        time: f64,
    },
}

/// The algorithm whose model is used for the algorithm `name`: itself, or a simpler one with the same
/// response to losses. `None` if there is no model.
pub fn modelled(name: &str) -> Option<&'static str> {
    let model =
        |name: &str| AnyParameters::of(name, &[]).and_then(Result::ok).and_then(|it| Algorithm::of(&it));
    let own = model(name)?;
    // A name that also selects a recovery is not the simplest.
    registry::ALL
        .iter()
        .filter(|entry| entry.implies.is_empty())
        .map(|entry| entry.name)
        .find(|other| model(other).is_some_and(|other| other == own))
}

/// Smallest and largest window in the search of a response function.
const WINDOWS: (f64, f64) = (1.0, 1e12);

impl Algorithm {
    /// The model of the algorithm `name`, as in a scenario, with the published parameters except for
    /// `settings`.
    pub fn new(name: &str, settings: &[(&str, Value)]) -> Result<Self, Error> {
        if settings.contains(&("form", Value::Word("linux"))) {
            let expected = "\"published\", the rule that is modelled";
            return Err(Error::Refused(Mistake::new("cc.form", expected, "\"linux\"")));
        }
        let parameters = AnyParameters::of(name, settings).transpose();
        let parameters = parameters.map_err(|mistake| Error::Refused(mistake.below("cc")))?;
        parameters.and_then(|parameters| Self::of(&parameters)).ok_or_else(|| {
            let names = registry::ALL.iter().map(|entry| entry.name).filter(|name| modelled(name).is_some());
            let expected = OneOf { known: &names.collect::<Vec<_>>(), found: name };
            Error::Refused(Mistake::new("cc", expected, format_args!("\"{name}\"")))
        })
    }

    /// The model of the algorithm with these parameters; `None` if there is none.
    pub fn of(parameters: &AnyParameters) -> Option<Self> {
        match parameters {
            AnyParameters::Reno(it) => Some(Self::Standard(Standard::of(it))),
            AnyParameters::Hstcp(it) => Some(Self::HighSpeed(HighSpeed::of(it))),
            AnyParameters::HstcpFc(it) => Some(Self::HighSpeed(HighSpeed::of(&it.hstcp()))),
            AnyParameters::Scalable(it) => Some(Self::Scalable(Scalable::of(it))),
            AnyParameters::Htcp(it) => Some(Self::Htcp(Htcp::of(it))),
            AnyParameters::Bic(it) => Some(Self::Bic(Bic::of(it))),
            AnyParameters::Fast(it) => Some(Self::Fast(Fast::of(it))),
            AnyParameters::Ltcp(it) => Some(Self::Ltcp(Ltcp::of(it))),
            AnyParameters::Cubic(it) => Some(Self::Cubic(Cubic::of(it))),
            _ => None,
        }
    }

    /// The climb back to window `w`, in segments, after a loss there.
    pub fn epoch(&self, w: f64, rtt: f64) -> Epoch {
        match self {
            Self::Standard(it) => it.epoch(w),
            Self::HighSpeed(it) => it.epoch(w),
            Self::Scalable(it) => it.epoch(w),
            Self::Htcp(it) => it.epoch(w, rtt),
            Self::Bic(it) => it.epoch(w),
            Self::Fast(it) => it.unqueued().epoch(w),
            Self::Ltcp(it) => it.epoch(w),
            Self::Cubic(it) => it.epoch(w, rtt),
        }
    }

    /// The response function as printed: mean window in segments at loss rate `p`. `None` if no source prints
    /// one.
    pub fn published(&self, p: f64, rtt: f64) -> Option<f64> {
        match self {
            Self::Standard(it) => Some(it.window(p)),
            Self::HighSpeed(it) => Some(it.window(p)),
            Self::Scalable(it) => Some(it.window(p)),
            Self::Cubic(it) => Some(it.window(p, rtt)),
            Self::Htcp(_) | Self::Bic(_) | Self::Fast(_) | Self::Ltcp(_) => None,
        }
    }

    /// The derived response function: mean window in segments under one loss in `1/p` packets.
    pub fn window(&self, p: f64, rtt: f64) -> f64 {
        let peak = self.peak(p, rtt);
        let Epoch { rounds, packets } = self.epoch(peak, rtt);
        packets / rounds
    }

    /// Window at which the losses occur in the sawtooth of one loss in `1/p` packets.
    pub fn peak(&self, p: f64, rtt: f64) -> f64 {
        solve::increasing(|w| self.epoch(w, rtt).packets, 1.0 / p, WINDOWS.0, WINDOWS.1)
    }

    /// The inverse of [`Self::window`]: the loss rate that supports mean window `w`.
    pub fn loss(&self, w: f64, rtt: f64) -> f64 {
        let mean = |peak: f64| {
            let Epoch { rounds, packets } = self.epoch(peak, rtt);
            packets / rounds
        };
        1.0 / self.epoch(solve::increasing(mean, w, WINDOWS.0, WINDOWS.1), rtt).packets
    }

    /// Fraction of window `w` that remains after a loss.
    pub fn beta(&self, w: f64) -> f64 {
        match self {
            Self::Standard(it) => it.beta,
            Self::HighSpeed(it) => 1.0 - it.b(w),
            Self::Scalable(it) => it.beta(w),
            Self::Htcp(it) => it.beta,
            Self::Bic(it) => it.beta(w),
            Self::Fast(it) => it.unqueued().beta,
            Self::Ltcp(it) => it.beta(w),
            Self::Cubic(it) => it.beta,
        }
    }

    /// The increase in segments for each round trip, of a flow whose mean window is `w` under losses of that
    /// rate; for Layered TCP without the jumps between layers. For algorithms with memory (H-TCP, BIC-TCP,
    /// CUBIC, whose increase depends on the time or the window of the last loss) it is the increase that
    /// keeps `w` constant with [`Self::loss`].
    pub fn increase(&self, w: f64, rtt: f64) -> f64 {
        match self {
            Self::Standard(it) => it.a,
            Self::HighSpeed(it) => it.a(w),
            Self::Scalable(it) => it.increase(w),
            Self::Fast(it) => it.unqueued().a,
            Self::Ltcp(it) => it.mean_layers(w),
            Self::Htcp(_) | Self::Bic(_) | Self::Cubic(_) => (1.0 - self.beta(w)) * w * w * self.loss(w, rtt),
        }
    }

    /// Round trips until a flow that lost at window `w` has regained it.
    pub fn recovery(&self, w: f64, rtt: f64) -> f64 {
        self.epoch(w, rtt).rounds
    }

    /// Round trips from window `w` to twice that, when capacity has become free: the climb of a flow that
    /// lost at `w`. BIC-TCP and CUBIC pass their old window on the way, and H-TCP has passed its second of
    /// low speed; CUBIC starts from its plateau.
    pub fn doubling(&self, w: f64, rtt: f64) -> f64 {
        match self {
            Self::Scalable(it) => it.doubling(w),
            Self::Htcp(it) => it.beyond(w, 2.0 * w, rtt),
            Self::Bic(it) => it.beyond(w, 2.0 * w),
            Self::Cubic(it) => it.beyond(w, 2.0 * w, rtt),
            _ => solve::integral(|w| 1.0 / self.increase(w, rtt), w, 2.0 * w),
        }
    }

    /// Round trips from window `w` to half of that under a loss in each round trip. The number is not rounded
    /// up to whole losses (Kelly, section 3.3: ln(1/2)/ln(1 - b)), and the fraction that a loss removes is
    /// that at `w`.
    pub fn halving(&self, w: f64) -> f64 {
        libm::log(0.5) / libm::log(self.beta(w))
    }

    /// Coefficient of variation of the rate under independent losses of small probability, about mean window `w`.
    ///
    /// Linear noise about the equilibrium of `dw = a(w) - b(w) w` at each loss, with `p w` losses for each
    /// round trip: `CoV^2 = b / (2 (2 + e_b - e_a))` with `e_a`, `e_b` the elasticities of `a` and `b` in
    /// `w`. Scalable TCP has `e_a = 1`, `e_b = 0` and so `sqrt(b/2)`, which is Kelly's equation 2; Standard
    /// TCP has `sqrt(b)/2`, 0.354, while the exact value is 0.41. Valid if the window depends on many past
    /// losses, so the accuracy is better for smaller `b`; for windows above the low-speed mode.
    pub fn variation(&self, w: f64, rtt: f64) -> f64 {
        let elasticity = |f: &dyn Fn(f64) -> f64| {
            let h: f64 = 0.05;
            libm::log(f(w * (1.0 + h)) / f(w * (1.0 - h))) / libm::log((1.0 + h) / (1.0 - h))
        };
        let e_a = elasticity(&|w| self.increase(w, rtt));
        let e_b = elasticity(&|w| 1.0 - self.beta(w));
        ((1.0 - self.beta(w)) / (2.0 * (2.0 + e_b - e_a))).sqrt()
    }

    /// Coefficient of variation of the window over one periodic sawtooth, that of a single flow at a full
    /// DropTail queue. For an AIMD it is `(1 - beta)/(sqrt(3) (1 + beta))`.
    pub fn sawtooth_variation(&self, w: f64) -> f64 {
        let beta = self.beta(w);
        (1.0 - beta) / (3.0f64.sqrt() * (1.0 + beta))
    }

    /// The unfairness of the algorithm between flows of different round-trip times: exponents `n` of
    /// `rate_1/rate_2 = (rtt_2/rtt_1)^n` about loss rate `p`.
    ///
    /// Let `w = c T^e / p^d` (`d` and `e` are taken from the derived response function). Flows that lose each
    /// packet with the same probability have `n = 1 - e`. Flows that lose together, at the same moments, have
    /// `p_i w_i/T_i` in common and so `n = (1 - e)/(1 - d)` (Xu, Harfoush and Rhee 2004, theorem 1, with e =
    /// 0). With `d` of 1, as for Scalable TCP, there is no such state: the flow with the shortest round-trip
    /// time takes the whole capacity.
    pub fn rtt_unfairness(&self, p: f64, rtt: f64) -> RttUnfairness {
        let (h, log) = (1.2f64, |x: f64| libm::log(x));
        let d = log(self.window(p / h, rtt) / self.window(p * h, rtt)) / (2.0 * log(h));
        let e = log(self.window(p, rtt * h) / self.window(p, rtt / h)) / (2.0 * log(h));
        let synchronised = if d < 0.995 { (1.0 - e) / (1.0 - d) } else { f64::INFINITY };
        RttUnfairness { loss_exponent: d, rtt_exponent: e, independent: 1.0 - e, synchronised }
    }
}

/// Exponents of a response function, and the resulting unfairness between flows of different round-trip
/// times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttUnfairness {
    /// `d` of `w = c T^e / p^d`.
    pub loss_exponent: f64,
    /// `e` of `w = c T^e / p^d`.
    pub rtt_exponent: f64,
    /// Exponent of the ratio of rates if losses are independent.
    pub independent: f64,
    /// Exponent of the ratio of rates if all flows lose together.
    pub synchronised: f64,
}

#[cfg(test)]
mod tests;
