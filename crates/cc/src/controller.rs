//! What all algorithms share: the two windows, slow start, the loss window, whole windows, undo.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Start, Window};
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

/// Everything that a congestion event changes, and that an undo takes back.
#[derive(Clone)]
struct State {
    window: Window,
    algorithm: AnyAlgorithm,
    slow_start: SlowStart,
    /// With whole windows: growth that is not yet worth a segment (a kernel's `cwnd_cnt / cwnd`).
    fraction: f64,
}

/// The congestion control of one connection.
#[derive(Clone)]
pub struct Controller {
    state: State,
    quantisation: Quantisation,
    /// The state before the last congestion event, until it is undone.
    before: Option<Box<State>>,
}

impl Controller {
    /// A controller that starts with `initial_window` segments.
    pub fn new(
        algorithm: AnyAlgorithm,
        slow_start: SlowStart,
        quantisation: Quantisation,
        initial_window: f64,
    ) -> Self {
        let window = Window { cwnd: initial_window.max(LOSS_WINDOW), ssthresh: f64::INFINITY };
        let state = State { window, algorithm, slow_start, fraction: 0.0 };
        Self { state, quantisation, before: None }
    }

    /// The same, with an initial slow-start threshold of `segments` in place of none.
    #[must_use]
    pub fn with_ssthresh(mut self, segments: f64) -> Self {
        self.state.window.ssthresh = segments.max(MIN_SSTHRESH);
        self
    }

    /// The congestion window, in segments; 1 or more.
    pub fn cwnd(&self) -> f64 {
        self.state.window.cwnd
    }

    /// The slow-start threshold, in segments; infinite until the first congestion event.
    pub fn ssthresh(&self) -> f64 {
        self.state.window.ssthresh
    }

    /// Whether the sender is in slow start, or in a start of the algorithm's own.
    pub fn in_slow_start(&self) -> bool {
        self.state.window.in_slow_start()
    }

    /// The rate at which the algorithm wants to be paced, in segments per second.
    pub fn pacing_rate(&self) -> Option<f64> {
        self.state.algorithm.pacing_rate()
    }

    /// An ACK that told the sender something new.
    pub fn on_ack(&mut self, ack: &Ack) {
        let State { window, algorithm, slow_start, .. } = &mut self.state;
        algorithm.observe(window, ack);
        if ack.in_recovery {
            return;
        }
        if window.in_slow_start() {
            slow_start.observe(ack);
            if ack.segments > 0.0 {
                let start = algorithm.start(window, ack).unwrap_or_else(|| slow_start.grow(window, ack));
                self.start(start, ack);
            }
        } else if ack.segments > 0.0 {
            let growth = algorithm.increase(window, ack);
            self.grow(growth, ack.segments);
        }
    }

    /// Moves the window below `ssthresh`, and with what the ACK is worth beyond it, above.
    fn start(&mut self, start: Start, ack: &Ack) {
        let State { window, fraction, .. } = &self.state;
        let room = window.ssthresh - window.cwnd - fraction;
        if start.growth <= room {
            self.grow(start.growth, ack.segments);
            if start.ends {
                self.state.window.ssthresh = self.state.window.cwnd.max(MIN_SSTHRESH);
                // A window below the smallest threshold would be in slow start again.
                self.state.window.cwnd = self.state.window.ssthresh;
            }
            return;
        }
        self.grow(room, ack.segments);
        let rest = Ack { segments: ack.segments * (1.0 - room / start.growth), ..*ack };
        let growth = self.state.algorithm.increase(&self.state.window, &rest);
        self.grow(growth, rest.segments);
    }

    /// Moves the window by `growth` segments, upwards by `most` at most: the pace of slow start
    /// (RFC 5681, section 3.1), which kernels keep too, as their window grows by one for an ACK.
    fn grow(&mut self, growth: f64, most: f64) {
        // An algorithm from outside may divide by zero; the window stays what it was.
        let growth = if growth.is_finite() { growth.min(most) } else { 0.0 };
        let State { window, fraction, .. } = &mut self.state;
        let growth = match self.quantisation {
            Quantisation::None => growth,
            Quantisation::RoundUp | Quantisation::RoundDown => {
                *fraction += growth;
                let whole = libm::trunc(*fraction);
                *fraction -= whole;
                whole
            }
        };
        window.cwnd = (window.cwnd + growth).max(LOSS_WINDOW);
    }

    /// A congestion event; the caller sees to it that there is one for each window of data.
    pub fn on_congestion(&mut self, event: &Congestion) {
        match &mut self.before {
            Some(before) => **before = self.state.clone(),
            before @ None => *before = Some(Box::new(self.state.clone())),
        }
        let State { window, algorithm, slow_start, fraction } = &mut self.state;
        slow_start.on_congestion();
        let target = algorithm.decrease(window, event);
        let target = match self.quantisation {
            Quantisation::None => target,
            Quantisation::RoundUp => libm::ceil(target),
            Quantisation::RoundDown => libm::floor(target),
        };
        *fraction = 0.0;
        // `max` also turns the NaN of an algorithm from outside into the smallest threshold.
        window.ssthresh = target.max(MIN_SSTHRESH);
        window.cwnd = match event.cause {
            Cause::Timeout => LOSS_WINDOW,
            // What is in flight may exceed the window, as after a timeout; the window may not rise.
            Cause::Loss | Cause::Ecn => window.ssthresh.min(window.cwnd),
        };
    }

    /// Starts again from the loss window: a retransmitted segment timed out again, or Tahoe.
    pub fn collapse(&mut self) {
        self.state.window.cwnd = LOSS_WINDOW;
        self.state.fraction = 0.0;
    }

    /// Lowers `cwnd` to `segments` where it is above: congestion window moderation and validation.
    pub fn moderate(&mut self, segments: f64) {
        let segments = match self.quantisation {
            Quantisation::None => segments,
            Quantisation::RoundUp | Quantisation::RoundDown => libm::floor(segments),
        };
        if segments < self.state.window.cwnd {
            self.state.window.cwnd = segments.max(LOSS_WINDOW);
            self.state.fraction = 0.0;
        }
    }

    /// Takes the last congestion event back: what looked like a loss was reordering or delay.
    ///
    /// Where the window has outgrown what it was, all stays as it is (RFC 9438, section 4.9.2).
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take()
            && self.state.window.cwnd <= before.window.cwnd
        {
            self.state = *before;
        }
    }
}
