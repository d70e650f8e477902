//! BIC-TCP (Xu, Harfoush and Rhee 2004; thesis, equations 6.15 to 6.17): a binary search for the window at
//! the last loss, and beyond it a search for a new maximum that starts as slowly.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::linux::Form;
use crate::parameter::parameters;
use crate::reno;
use crate::variable::{Tell, variables};

/// Low-utilisation detection: minimum growth in a round trip without a target (Linux: `cnt` of 20).
const LEAST_GROWTH: f64 = 0.05;
/// Low-utilisation detection ignores the first second after a loss, when queues are short.
const SETTLING: Time = Time::from_secs(1);

parameters! {
    /// BIC-TCP's parameters.
    pub struct Parameters {
        /// Each step covers the fraction 1/B of the distance to the target (thesis, equation 6.15).
        b: f64 = 4.0, 2.0..=1e3, "";
        /// Fraction of the window that remains after a loss (equation 6.16); 7/8 in the 2004 paper.
        beta: f64 = 0.8, 0.0..=1.0, "";
        /// Window up to which the algorithm is Standard TCP (thesis, section 6.1.4).
        low_window: f64 = 14.0, 1.0..=1e9, "segments";
        /// Largest increase in a round trip: S_max (Xu 2004). Linux's file has 16, but doubles every increase.
        s_max: f64 = 32.0, 1.0..=1e6, "segments";
        /// Round trips for the last B segments before the target, and the first B beyond it: smooth_part (Linux).
        smooth_part: f64 = 20.0, 1.0..=1e6, "round trips";
        /// Whether the target is lowered further if the window did not reach the previous one
        /// (equation 6.16).
        fast_convergence: bool = true;
        /// Low-utilisation detection: whether a short queue discards the target and makes the window grow by at least 5% in a
        /// round trip until the next loss. The thesis, section 6.1.4, names it without a rule; this is a reconstruction of the
        /// authors' Linux patch.
        low_utilisation: bool = false;
        /// The queue is short below this fraction of the largest queueing delay.
        low_utilisation_threshold: f64 = 0.15, 0.0..=1.0, "";
        /// Time for which the queue must be short.
        low_utilisation_period: f64 = 2.0, 0.0..=1e6, "s";
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_bic.c, with its constants; the other
        /// parameters are then ignored.
        form: Form = Form::Published;
    }
}

/// BIC-TCP.
#[derive(Clone, Debug)]
pub struct Bic {
    parameters: Parameters,
    /// `w_target`: the window that the search approaches; zero before the first loss.
    target: f64,
    max_rtt: Time,
    /// Earliest time since which the queue may have been short, unless it was longer in between; moved later by
    /// any time in which nothing was sent.
    short_since: Time,
}

impl Bic {
    /// BIC-TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, target: 0.0, max_rtt: Time::ZERO, short_since: Time::ZERO }
    }

    /// Equation 6.17: the increase in a round trip at window `w`.
    fn a(&self, w: f64) -> f64 {
        let Parameters { b, s_max, smooth_part, .. } = self.parameters;
        let smooth = b / smooth_part;
        if w < self.target {
            let step = (self.target - w) / b;
            if step <= 1.0 { smooth } else { step.min(s_max) }
        } else {
            let beyond = w - self.target;
            if beyond < b { smooth } else { (beyond / (b - 1.0)).min(s_max) }
        }
    }

    /// Low-utilisation detection: whether the queue has been short for long enough.
    fn is_underused(&self, ack: &Ack) -> bool {
        ack.now.since(self.short_since).secs_f64() > self.parameters.low_utilisation_period
    }
}

impl Algorithm for Bic {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        if !self.parameters.low_utilisation {
            return;
        }
        self.max_rtt = self.max_rtt.max(ack.rtt.unwrap_or(Time::ZERO));
        let queueing = |rtt: Time| rtt.since(ack.min_rtt).secs_f64();
        if queueing(ack.srtt) >= self.parameters.low_utilisation_threshold * queueing(self.max_rtt) {
            self.short_since = self.short_since.max(ack.now);
        } else if self.is_underused(ack) {
            self.target = 0.0;
        }
    }

    fn resume(&mut self, idle: Time) {
        // Without data there was no queue to be short.
        self.short_since += idle;
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        if window.cwnd <= self.parameters.low_window {
            return reno::increase(window, ack);
        }
        let mut a = self.a(window.cwnd);
        if self.parameters.low_utilisation && self.target == 0.0 {
            a = a.max(LEAST_GROWTH * window.cwnd);
        }
        a * reno::increase(window, ack)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let Parameters { beta, fast_convergence, low_window, .. } = self.parameters;
        self.short_since = event.now.saturating_add(SETTLING);
        self.target = if window.cwnd < self.target && fast_convergence {
            f64::midpoint(1.0, beta) * window.cwnd
        } else {
            window.cwnd
        };
        if window.cwnd <= low_window { reno::decrease(event) } else { beta * window.cwnd }
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// The window that the search approaches, w_target; unknown before the first loss.
            target: "segments" = if self.target > 0.0 { self.target } else { f64::NAN };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, close};

    #[test]
    fn the_increase_around_a_target_of_1000() {
        // Below: (1000 - w)/4, at most 32; 4/20 = 0.2 for the last 4. Beyond: 0.2 for the first 4, then
        // (w - 1000)/3, at most 32.
        let bic = Bic { target: 1000.0, ..Bic::new(Parameters::default()) };
        for (w, a) in [
            (500.0, 32.0),
            (872.0, 32.0),
            (900.0, 25.0),
            (995.0, 1.25),
            (996.0, 0.2),
            (1000.0, 0.2),
            (1003.9, 0.2),
            (1004.0, 4.0 / 3.0),
            (1048.0, 16.0),
            (1096.0, 32.0),
            (5000.0, 32.0),
        ] {
            close(bic.a(w), a, 1e-12);
        }
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // Loss at 1000: target 1000, window 800. ACK of 1: (1000 - 800)/4 = 50, at most 32: 800 + 32/800 = 800.04.
        // Loss below the target: target 0.9 * 800.04 = 720.036, window 640.032.
        // ACK of 2: (720.036 - 640.032)/4 = 20.001; 640.032 + 2 * 20.001/640.032 = 640.0945.
        let mut history = History::of("bic").at(1000.0);
        history.loss().window_is(800.0);
        history.ack(1.0).window_near(800.04, 1e-9);
        history.loss().window_near(640.032, 1e-9);
        history.ack(2.0).window_near(640.0945, 1e-6);
    }

    #[test]
    fn without_fast_convergence_the_target_is_the_window_at_the_loss() {
        // As above, but target 800.04: (800.04 - 640.032)/4 = 40.002, at most 32.
        let mut history = History::of("bic").set("fast_convergence", false).at(1000.0);
        history.loss().ack(1.0).loss().ack(2.0).window_near(640.032 + 2.0 * 32.0 / 640.032, 1e-9);
    }

    #[test]
    fn a_silence_is_no_short_queue() {
        let mut history = History::of("bic").set("low_utilisation", true).at(1245.0);
        history.rtt_becomes(150).ack(1.0).loss().rtt_becomes(100).idle(60.0).idle_acks(1);
        let before = history.cwnd();
        history.ack(1.0);
        close((history.cwnd() - before) * before, 32.0, 1e-6);
    }

    #[test]
    fn a_queue_that_stays_short_makes_it_forget_the_target() {
        // The largest queueing delay is 50 ms, so a short queue is one below 7.5 ms. After the loss the
        // window is 996 and the target 1245, (1245 - 996)/4 = 62 away: the window grows by 32. Without the
        // target it grows by 32 too, but by at least 0.05 * 996 = 49.8.
        let history_with = |detect: bool, queueing_ms: u64, seconds: u32| {
            let mut history = History::of("bic").set("low_utilisation", detect).at(1245.0);
            history.rtt_becomes(150).ack(1.0).loss().rtt_becomes(100 + queueing_ms);
            for _ in 0..100 * seconds {
                history.wait(0.01).idle_acks(1);
            }
            let before = history.cwnd();
            history.ack(1.0);
            (history.cwnd() - before) * before
        };
        // The first second is ignored, and two more must pass.
        for (detect, queueing_ms, seconds, a) in
            [(false, 5, 4, 32.0), (true, 5, 4, 49.8), (true, 10, 4, 32.0), (true, 5, 3, 32.0)]
        {
            close(history_with(detect, queueing_ms, seconds), a, 0.01);
        }
    }
}
