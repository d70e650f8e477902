//! YeAH-TCP (Baiocchi, Castellani and Vacirca 2007): grows as Scalable TCP while its queue is short and as Standard TCP
//! beyond, where it also drains the queue before there is a loss.

use crate::algorithm::{Ack, Algorithm, Congestion, Start, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::round::RoundRtt;
use crate::variable::{Tell, variables};

/// Smallest estimate of the window of a competing Standard TCP, in segments.
const LEAST: f64 = 2.0;

/// The modes (section 2).
const MODES: &[&str] = &["fast", "slow"];

parameters! {
    /// YeAH-TCP's parameters, with the names of Linux's tcp_yeah.c, of which Castellani is the author.
    pub struct Parameters {
        /// Segments added for each segment acknowledged in the fast mode (Kelly 2003, section 3).
        a: f64 = 0.01, 0.0..=1.0, "";
        /// Queued segments above which the mode is slow and the queue is drained: Q_max (Baiocchi, Castellani and Vacirca 2007,
        /// section 2).
        alpha: f64 = 80.0, 0.0..=1e9, "segments";
        /// The mode is also slow if the queueing delay exceeds 1/phy of the smallest round-trip time (section 2).
        phy: f64 = 8.0, 1e-6..=1e9, "";
        /// Part of the queue that is drained in a round trip (section 2).
        gamma: f64 = 1.0, 0.0..=1.0, "";
        /// Largest fraction of the window that draining the queue removes in a round trip (section 2).
        epsilon: f64 = 0.5, 0.0..=1.0, "";
        /// Smallest fraction of the window that is removed at a loss (section 2).
        delta: f64 = 0.125, 0.0..=0.5, "";
        /// Successive round trips in the slow mode after which others are taken to be greedy: a loss halves the window (section 2).
        rho: f64 = 16.0, 0.0..=1e9, "";
        /// Round trips in the fast mode after which no Standard TCP is taken to compete (section 2).
        zeta: f64 = 50.0, 0.0..=1e9, "";
    }
}

/// YeAH-TCP.
#[derive(Clone, Debug, Default)]
pub struct Yeah {
    parameters: Parameters,
    rounds: RoundRtt,
    /// Segments queued in the last round trip that was evaluated, and those of them that the next ACK removes from the
    /// window.
    queued: f64,
    surplus: f64,
    /// Whether the queue was drained since the last ACK: the threshold follows the window.
    drained: bool,
    /// Window that a Standard TCP in its place would have. The queue is not drained below it.
    reno_window: f64,
    /// Successive round trips in the slow mode, and round trips in the fast mode since a loss.
    slow: u32,
    fast: u32,
}

impl Yeah {
    /// YeAH-TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, reno_window: LEAST, ..Self::default() }
    }

    /// A round trip has ended, and this part of its time was queueing.
    fn evaluate(&mut self, cwnd: f64, queueing: f64) {
        let Parameters { alpha, phy, gamma, epsilon, zeta, .. } = self.parameters;
        self.queued = queueing * cwnd;
        self.surplus = 0.0;
        // The queueing delay over the smallest round-trip time.
        let delay = queueing / (1.0 - queueing);
        if self.queued <= alpha && delay <= 1.0 / phy {
            self.slow = 0;
            self.fast += 1;
            if f64::from(self.fast) > zeta {
                (self.reno_window, self.fast) = (LEAST, 0);
            }
            return;
        }
        if self.queued > alpha && cwnd > self.reno_window {
            let drained = (gamma * self.queued).min(epsilon * cwnd);
            self.surplus = drained.min(cwnd - self.reno_window);
        }
        self.reno_window = if self.reno_window <= LEAST {
            f64::max((cwnd - self.surplus) / 2.0, LEAST)
        } else {
            self.reno_window + 1.0
        };
        self.slow = self.slow.saturating_add(1);
    }
}

impl Algorithm for Yeah {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        if let Some(queueing) = self.rounds.queueing(ack)
            && !ack.in_recovery()
        {
            self.evaluate(window.cwnd, queueing);
        }
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        // Slow start ends when the queue is drained, and a drained queue does not begin one.
        (self.surplus > 0.0 || self.drained).then(|| {
            let growth = self.increase(window, ack);
            self.drained = false;
            Start { growth, ends: true }
        })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.drained = self.surplus > 0.0;
        if self.drained {
            return -std::mem::take(&mut self.surplus);
        }
        let standard = reno::increase(window, ack);
        if self.slow > 0 { standard } else { standard.max(self.parameters.a * ack.segments) }
    }

    fn decrease(&mut self, window: &Window, _: &Congestion) -> f64 {
        let Parameters { delta, rho, .. } = self.parameters;
        let half = window.cwnd / 2.0;
        let removed =
            if f64::from(self.slow) < rho { self.queued.min(half).max(delta * window.cwnd) } else { half };
        (self.surplus, self.drained) = (0.0, false);
        self.rounds.wipe();
        self.fast = 0;
        self.reno_window = f64::max(self.reno_window / 2.0, LEAST);
        window.cwnd - removed
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Whether the window grows as in Scalable TCP (fast) or as in Standard TCP (slow; section 2).
            mode: MODES = f64::from(self.slow > 0);
            /// Segments queued in the last round trip that was evaluated.
            queued: "segments" = self.queued;
            /// Window that a Standard TCP in its place would have.
            reno_window: "segments" = self.reno_window;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::History;

    #[test]
    fn it_grows_as_scalable_tcp_while_the_queue_is_short() {
        // 1000 (1 - 100/105) = 47.6 segments, and 5 ms of 100. With 13 ms, more than an eighth of 100, 1/1000.
        for (cwnd, ms, added) in [(1000.0, 105, 0.01), (50.0, 105, 0.02), (500.0, 113, 0.002)] {
            let mut history = History::of("yeah").at(cwnd);
            history.round_of(ms, 1.0).window_near(cwnd + added, 1e-9);
        }
    }

    #[test]
    fn it_drains_a_long_queue_once_in_a_round_trip_and_stays_in_congestion_avoidance() {
        // 1000 (1 - 100/110) = 90.9 segments: above 80. Then as Standard TCP: 909.09 + 1/909.09.
        let mut history = History::of("yeah").at(1000.0);
        history.controller = history.controller.with_ssthresh(1000.0);
        history.round_of(110, 1.0).window_near(1000.0 / 1.1, 1e-9);
        history.ack(1.0);
        assert!(!history.controller.in_slow_start());
        history.window_near(1000.0 / 1.1 + 1.1 / 1000.0, 1e-9);
        // Of 1000 segments 600 are queued, and half is drained at most.
        let mut history = History::of("yeah").at(1000.0);
        history.round_of(250, 1.0).window_near(500.0, 1e-9);
    }

    #[test]
    fn slow_start_ends_with_a_long_queue() {
        let mut history = History::of("yeah").starting(1000.0);
        history.round_of(105, 1.0);
        assert_eq!((history.cwnd(), history.controller.in_slow_start()), (1001.0, true));
        history.round_of(110, 1.0).window_near(1001.0 / 1.1, 1e-9);
        assert_eq!((history.ssthresh(), history.controller.in_slow_start()), (history.cwnd(), false));
    }

    #[test]
    fn the_queue_is_not_drained_below_the_window_of_a_standard_tcp() {
        // After the first round trip 909.09, of which half is the window of Standard TCP; it grows by one in each round trip
        // with a long queue. 909.09 (1 - 100/250) = 545 are to be drained, half is allowed: 454.5; then 455.5 and 456.5 remain.
        let mut history = History::of("yeah").at(1000.0);
        history.round_of(110, 1.0).round_of(250, 1.0).window_near(500.0 / 1.1, 1e-9);
        history.controller = history.controller.with_ssthresh(2.0);
        history.round_of(250, 0.0);
        history.controller.moderate(450.0);
        history.ack(1.0).window_near(450.0 + 1.0 / 450.0, 1e-9);
    }

    #[test]
    fn a_loss_removes_the_queue() {
        // 1000 at 105 ms: 47.6 queued, but an eighth at least. At 125 ms 200. At 250 ms 600, but half at most.
        for (ms, left) in [(105, 875.0), (125, 800.0), (250, 500.0)] {
            let mut history = History::of("yeah").at(1000.0);
            history.round_of(ms, 0.0).loss().window_near(left, 1e-9);
        }
    }

    #[test]
    fn against_greedy_flows_a_loss_halves_the_window() {
        // 500 at 113 ms: the mode is slow without a queue to drain; 57.5 segments are queued, less than an eighth.
        for (rounds, left) in [(15, 437.5), (16, 250.0)] {
            let mut history = History::of("yeah").at(500.0);
            for _ in 0..rounds {
                history.round_of(113, 0.0);
            }
            history.loss().window_near(left, 1e-9);
        }
    }

    #[test]
    fn after_fifty_round_trips_without_a_queue_the_queue_is_drained_again() {
        // The first round trip makes Standard TCP's window half of 909.09. Of 700 segments 420 are queued at 250 ms, of which
        // half of the window, 350, may be drained; but only down to 454.5 before the 51st fast round trip.
        for (rounds, left) in [(50, 500.0 / 1.1), (51, 350.0)] {
            let mut history = History::of("yeah").at(1000.0);
            history.round_of(110, 0.0);
            history.controller.moderate(700.0);
            for _ in 0..rounds {
                history.round_of(100, 0.0);
            }
            history.round_of(250, 1.0).window_near(left, 1e-9);
        }
    }
}
