//! TCP Vegas (Brakmo and Peterson 1995): keeps between `alpha` and `beta` segments of its own queued, which
//! it estimates from the round-trip time.
//!
//! The round-trip time of a round is the smallest of its samples, as in Linux, so that delayed ACKs do not
//! count as queueing. A round with fewer than three samples is not evaluated, and the window grows as in
//! Reno. At a loss the window is halved.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Congestion, Start, Window};
use crate::linux::Form;
use crate::parameter::parameters;
use crate::reno;
use crate::round::LEAST_SAMPLES;
use crate::variable::{Tell, variables};

parameters! {
    /// Vegas' parameters, in segments queued.
    pub struct Parameters {
        /// Queued segments below which the window grows by one in the next round trip (Brakmo and Peterson 1995, section 3.2; 2
        /// in Linux).
        alpha: f64 = 1.0, 0.0..=1e9, "segments";
        /// Queued segments above which the window shrinks by one in the next round trip (section
        /// 3.2; 4 in Linux).
        beta: f64 = 3.0, 0.0..=1e9, "segments";
        /// Queued segments above which slow start ends (section 3.3).
        gamma: f64 = 1.0, 0.0..=1e9, "segments";
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_vegas.c, with its constants; the other
        /// parameters are then ignored.
        form: Form = Form::Published;
    }
}

/// TCP Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    parameters: Parameters,
    /// Round trip that is being measured, its samples, and the smallest.
    round: u64,
    samples: u32,
    round_min: Time,
    /// Segments queued in the last round, if it could be evaluated.
    queued: Option<f64>,
    /// In slow start: whether the window doubles in this round trip, or stays constant for the measurement.
    doubling: bool,
}

impl Vegas {
    /// Vegas with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, round: 0, samples: 0, round_min: Time::MAX, queued: None, doubling: true }
    }
}

impl Algorithm for Vegas {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        if ack.round > self.round {
            // Expected minus actual rate, times the smallest round-trip time: w - w T_min/T.
            self.queued = (self.samples >= LEAST_SAMPLES)
                .then(|| window.cwnd * (1.0 - ack.min_rtt.secs_f64() / self.round_min.secs_f64()));
            self.round = ack.round;
            self.samples = 0;
            self.round_min = Time::MAX;
            self.doubling = !self.doubling;
        }
        if let Some(rtt) = ack.rtt {
            self.samples += 1;
            self.round_min = self.round_min.min(rtt);
        }
    }

    fn has_slow_start(&self) -> bool {
        true
    }

    fn start(&mut self, _: &Window, ack: &Ack) -> Option<Start> {
        // The result of a round with a constant window is known when the next doubling begins.
        Some(match self.queued {
            // Exits to the window that the path holds, as in Linux; a reduction by one segment in each round
            // trip would take minutes.
            Some(queued) if self.doubling && queued > self.parameters.gamma => {
                Start { growth: -queued, ends: true }
            }
            _ => Start { growth: if self.doubling { ack.segments } else { 0.0 }, ends: false },
        })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let Parameters { alpha, beta, .. } = self.parameters;
        match self.queued {
            Some(queued) if queued > beta => -reno::increase(window, ack),
            Some(queued) if queued >= alpha => 0.0,
            _ => reno::increase(window, ack),
        }
    }

    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        // Measurements from before the change of the window are discarded.
        self.queued = None;
        (self.samples, self.round_min) = (0, Time::MAX);
        reno::decrease(event)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Segments queued in the last round trip (section 3.2); unknown if it had too few samples.
            queued: "segments" = self.queued.unwrap_or(f64::NAN);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::History;

    /// A connection at a window of 100 whose last round had this round-trip time.
    fn after_a_round_of(ms: u64) -> History {
        let mut history = History::of("vegas").at(100.0);
        history.rtt_becomes(ms).idle_acks(3);
        history.round = 1;
        history
    }

    #[test]
    fn the_window_follows_what_is_queued() {
        // 100 (1 - 100/T): T = 100 ms: 0 < 1, increase. 102 ms: 1.96, no change. 104 ms: 3.85 > 3, decrease.
        for (ms, change) in [(100, 1.0), (102, 0.0), (104, -1.0)] {
            let mut history = after_a_round_of(ms);
            history.ack(1.0).window_near(100.0 + change / 100.0, 1e-12);
            history.ack(2.0).window_near(100.0 + 3.0 * change / 100.0, 1e-4);
        }
    }

    #[test]
    fn a_round_of_two_samples_is_not_judged() {
        let mut history = History::of("vegas").at(100.0);
        history.rtt_becomes(200).idle_acks(2);
        history.round = 1;
        history.ack(1.0).window_near(100.01, 1e-12);
    }

    #[test]
    fn its_start_doubles_every_other_round_trip_and_ends_with_a_queue() {
        let mut history = History::of("vegas").starting(10.0);
        for window in [20.0, 20.0, 40.0, 40.0, 80.0] {
            history.round_trip().window_is(window);
        }
        // At 80 the path holds 64: 125 ms. The round with a constant window measures 80 (1 - 100/125) = 16
        // queued.
        history.rtt_becomes(125).round_trip();
        assert!(history.controller.in_slow_start());
        history.ack(1.0);
        assert!(!history.controller.in_slow_start());
        history.window_near(64.0, 1e-9);
        assert_eq!(history.ssthresh(), history.cwnd());
    }

    #[test]
    fn a_loss_halves_the_window() {
        // And the amount queued before it no longer counts.
        let mut history = after_a_round_of(104);
        history.idle_acks(1).loss().window_is(50.0);
        history.idle_acks(2).next_round().ack(1.0).window_near(50.02, 1e-12);
    }
}
