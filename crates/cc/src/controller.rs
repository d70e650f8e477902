//! What all algorithms share: the two windows, slow start, the loss window, whole windows, undo.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Window};
use crate::registry::AnyAlgorithm;
use crate::slow_start::SlowStart;

/// RFC 5681, equation 4: `ssthresh` is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;
/// RFC 5681, section 3.1: the loss window is one segment.
const LOSS_WINDOW: f64 = 1.0;

/// Whether the window is a real number or, as in kernels, an integer with a counter of ACKs.
///
/// Kernels code a decrease in one of two ways, and the published measurements tell them apart
/// (thesis, sections 8.2.1 and 9.1.2): a window of 18 with b = 1/8 becomes 16 or 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantisation {
    /// The papers' form: the window is a real number.
    #[default]
    None,
    /// Whole windows, and a decrease rounds up: coded `cwnd - floor(b * cwnd)`.
    RoundUp,
    /// Whole windows, and a decrease rounds down: coded `floor(beta * cwnd)`.
    RoundDown,
}

/// The congestion control of one connection.
#[derive(Clone)]
pub struct Controller {
    window: Window,
    algorithm: AnyAlgorithm,
    slow_start: SlowStart,
    quantisation: Quantisation,
    /// With whole windows: growth that is not yet worth a segment (a kernel's `cwnd_cnt / cwnd`).
    fraction: f64,
    /// What [`Controller::undo`] goes back to.
    before: Option<Box<(Window, AnyAlgorithm)>>,
}

impl Controller {
    /// A controller that starts with `initial_window` segments.
    pub fn new(
        algorithm: AnyAlgorithm,
        slow_start: SlowStart,
        quantisation: Quantisation,
        initial_window: f64,
    ) -> Self {
        Self {
            window: Window { cwnd: initial_window, ssthresh: f64::INFINITY },
            algorithm,
            slow_start,
            quantisation,
            fraction: 0.0,
            before: None,
        }
    }

    /// The congestion window, in segments; 1 or more.
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// The slow-start threshold, in segments; infinite until the first congestion event.
    pub fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    /// Whether the sender is in slow start.
    pub fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// The rate at which the algorithm wants to be paced, in segments per second.
    pub fn pacing_rate(&self) -> Option<f64> {
        self.algorithm.pacing_rate()
    }

    /// An ACK that told the sender something new.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.algorithm.observe(&self.window, ack);
        if ack.in_recovery || ack.segments == 0.0 {
            return;
        }
        let mut ack = *ack;
        if self.window.in_slow_start() && !self.algorithm.has_own_start() {
            ack.segments = self.slow_start.grow(&mut self.window, &ack);
            if ack.segments == 0.0 {
                return;
            }
        }
        let growth = self.algorithm.increase(&self.window, &ack);
        self.grow(growth);
    }

    fn grow(&mut self, growth: f64) {
        let growth = match self.quantisation {
            Quantisation::None => growth,
            Quantisation::RoundUp | Quantisation::RoundDown => {
                self.fraction += growth;
                let whole = libm::trunc(self.fraction);
                self.fraction -= whole;
                whole
            }
        };
        self.window.cwnd = (self.window.cwnd + growth).max(LOSS_WINDOW);
    }

    /// A congestion event; the caller sees to it that there is one for each window of data.
    pub fn on_congestion(&mut self, event: &Congestion) {
        self.before = Some(Box::new((self.window, self.algorithm.clone())));
        let target = self.algorithm.decrease(&self.window, event);
        let target = match self.quantisation {
            Quantisation::None => target,
            Quantisation::RoundUp => libm::ceil(target),
            Quantisation::RoundDown => libm::floor(target),
        };
        self.fraction = 0.0;
        self.window.ssthresh = target.max(MIN_SSTHRESH);
        self.window.cwnd = match event.cause {
            Cause::Timeout => LOSS_WINDOW,
            Cause::Loss | Cause::Ecn => self.window.ssthresh,
        };
    }

    /// Starts again from the loss window: a retransmitted segment timed out again, or Tahoe.
    pub fn collapse(&mut self) {
        self.window.cwnd = LOSS_WINDOW;
        self.fraction = 0.0;
    }

    /// Lowers `cwnd` to `segments` where it is above: congestion window moderation and validation.
    pub fn moderate(&mut self, segments: f64) {
        self.window.cwnd = self.window.cwnd.min(segments.max(LOSS_WINDOW));
    }

    /// Takes the last congestion event back: what looked like a loss was reordering or delay.
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            let (window, algorithm) = *before;
            self.window.cwnd = self.window.cwnd.max(window.cwnd);
            self.window.ssthresh = window.ssthresh;
            self.algorithm = algorithm;
        }
    }
}
