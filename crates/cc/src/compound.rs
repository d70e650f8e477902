//! Compound TCP (draft-sridharan-tcpm-ctcp-02; Tan et al. 2006): the sum of Standard TCP's window and of a delay window,
//! which grows fast while the queue is short and gives way when it is not.

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Start, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::round::RoundRtt;
use crate::variable::{Tell, variables};

/// Part of Standard TCP's queue at a loss that `gamma` aims at (draft, section 5).
const SHARE: f64 = 0.75;

parameters! {
    /// Compound TCP's parameters.
    pub struct Parameters {
        /// Growth in a round trip while the queue is short is alpha cwnd^k (draft-sridharan-tcpm-ctcp-02, section 3).
        alpha: f64 = 0.125, 0.0..=1.0, "";
        /// Exponent of that growth (section 3; 0.8 would respond to losses as HighSpeed TCP does).
        k: f64 = 0.75, 0.0..=1.0, "";
        /// Fraction of the window that is removed at a loss (section 3).
        beta: f64 = 0.5, 0.0..=1.0, "";
        /// What each queued segment takes from the delay window in a round trip with a long queue (section 3).
        eta: f64 = 1.0, 0.0..=1e6, "";
        /// Queued segments from which the queue is long, before the first loss (section 3).
        gamma: f64 = 30.0, 0.0..=1e9, "segments";
        /// Lower bound of gamma, which losses adapt (section 5).
        gamma_low: f64 = 5.0, 0.0..=1e9, "segments";
        /// Upper bound of gamma (section 5).
        gamma_high: f64 = 30.0, 0.0..=1e9, "segments";
        /// Weight of a loss in the average that adapts gamma (section 5; the value of ns-3's TcpCompound); 0 keeps gamma.
        lambda: f64 = 0.8, 0.0..=1.0, "";
    }
}

/// Compound TCP.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    parameters: Parameters,
    rounds: RoundRtt,
    /// The delay window, which is part of the window.
    dwnd: f64,
    gamma: f64,
    /// Whether the queue was long in the last round trip, and what the next ACK therefore takes from the delay window.
    is_long: bool,
    surplus: f64,
    /// Whether that was done since the last ACK: the threshold follows the window.
    gave_way: bool,
    /// Segments that Standard TCP's window had in the queue in the last round trip.
    queued: Option<f64>,
}

impl Compound {
    /// Compound TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, gamma: parameters.gamma, ..Self::default() }
    }

    /// Section 5: adapts `gamma` so that a flow yields before a Standard TCP would lose a segment.
    fn tune(&mut self) {
        let Parameters { gamma_low, gamma_high, lambda, .. } = self.parameters;
        if let Some(queued) = self.queued.take()
            && lambda > 0.0
        {
            let average = (1.0 - lambda) * self.gamma + lambda * SHARE * queued;
            self.gamma = average.max(gamma_low).min(gamma_high);
        }
    }
}

impl Algorithm for Compound {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        // The endpoint may have reduced the window.
        self.dwnd = self.dwnd.min(window.cwnd);
        if let Some(queueing) = self.rounds.queueing(ack)
            && !ack.in_recovery()
        {
            let queued = queueing * window.cwnd;
            self.queued = Some(queueing * (window.cwnd - self.dwnd));
            self.is_long = queued >= self.gamma;
            self.surplus = if self.is_long { self.dwnd.min(self.parameters.eta * queued) } else { 0.0 };
        }
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        // A window that gave way does not begin slow start.
        self.gave_way.then(|| {
            let growth = self.increase(window, ack);
            self.gave_way = false;
            Start { growth, ends: true }
        })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let Parameters { alpha, k, .. } = self.parameters;
        self.gave_way = self.surplus > 0.0;
        let change = if self.gave_way {
            -std::mem::take(&mut self.surplus)
        } else if self.is_long {
            0.0
        } else {
            // Of this, Standard TCP's window grows by 1 in a round trip.
            (alpha * libm::pow(window.cwnd, k) - 1.0).max(0.0) * ack.segments / window.cwnd
        };
        self.dwnd = (self.dwnd + change).max(0.0);
        reno::increase(window, ack) + change
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let standard = (window.cwnd - self.dwnd) / 2.0;
        let left = ((1.0 - self.parameters.beta) * window.cwnd).max(standard);
        (self.surplus, self.gave_way, self.is_long) = (0.0, false, false);
        self.rounds.wipe();
        if event.cause == Cause::Timeout {
            (self.dwnd, self.gamma, self.queued) = (0.0, self.parameters.gamma, None);
        } else {
            self.tune();
            self.dwnd = left - standard;
        }
        left
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// The delay window, which is part of the window (section 3).
            dwnd: "segments" = self.dwnd;
            /// Queued segments above which the delay window gives way (section 5).
            gamma: "segments" = self.gamma;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::{History, close};

    /// A round trip of a thousand ACKs without a queue: of the 12.5 segments that they add at 10,000, 12.4 are the delay
    /// window's.
    fn thousand_acks(history: &mut History) {
        history.acks(1000, 1.0).next_round();
    }

    #[test]
    fn it_grows_by_a_power_of_the_window_while_the_queue_is_short() {
        // 10000^0.75/8 = 125 segments in a round trip, 0.0125 for each. At 10 it is less than 1: Standard TCP.
        for (cwnd, added) in [(10_000.0, 0.0125), (10.0, 0.1)] {
            let mut history = History::of("compound").at(cwnd);
            history.round_of(100, 1.0).window_near(cwnd + added, 1e-9);
            history.ack(2.0).window_near(cwnd + 3.0 * added, 2e-2 * added);
        }
    }

    #[test]
    fn the_delay_window_gives_way_to_a_queue() {
        // 10 ms of 110 are 910 segments: all of the delay window goes, and what is left grows as Standard TCP's.
        let mut history = History::of("compound").at(10_000.0);
        history.controller = history.controller.with_ssthresh(10_000.0);
        thousand_acks(&mut history);
        history.window_near(10_012.5, 1e-2);
        history.round_of(110, 0.0).ack(1.0).window_near(10_000.1, 1e-3);
        let before = history.cwnd();
        history.ack(1.0).window_near(before + 1.0 / before, 1e-9);
        assert!(!history.controller.in_slow_start());
    }

    #[test]
    fn a_part_of_the_delay_window_goes_if_the_queue_is_shorter() {
        // eta = 0.01 takes 0.01 * 910 = 9.1 segments of 12.4.
        let mut history = History::of("compound").set("eta", 0.01).at(10_000.0);
        thousand_acks(&mut history);
        let before = history.cwnd();
        history.round_of(110, 1.0).window_near(before - 0.01 * before / 11.0 + 1.0 / before, 1e-9);
    }

    #[test]
    fn a_loss_halves_the_window_and_both_parts_of_it() {
        // 10012.5 halves to 5006.25; with beta = 0.75 Standard TCP's window of 10000.1 still only halves.
        for (beta, left) in [(0.5, 5006.25), (0.75, 5000.05)] {
            let mut history = History::of("compound").set("beta", beta).at(10_000.0);
            thousand_acks(&mut history);
            history.loss().window_near(left, 1e-2);
            // A queue takes the rest of the delay window.
            history.round_of(110, 1.0).window_near(5000.05, 1e-2);
        }
    }

    #[test]
    fn a_timeout_leaves_no_delay_window() {
        let mut history = History::of("compound").at(10_000.0);
        thousand_acks(&mut history);
        history.event(Cause::Timeout);
        close(history.ssthresh(), 5006.25, 1e-2);
        history.round_of(200, 1.0).window_is(2.0);
    }

    #[test]
    fn losses_adapt_the_length_at_which_a_queue_is_long() {
        // 100 at 108 ms: 7.4 queued. After the loss gamma = 0.2 * 30 + 0.8 * 0.75 * 7.407 = 10.44. At 500 and 102 ms
        // 9.8 are queued: an ACK adds 500^0.75/8/500 = 0.0264. At 103 ms 14.6 are queued, and leave.
        for (ms, change) in [(102, 0.0264), (103, -14.56)] {
            let mut history = History::of("compound").at(100.0);
            history.round_of(108, 0.0).loss().window_is(50.0);
            history.rtt_becomes(100);
            while history.cwnd() < 500.0 {
                history.ack(1.0);
            }
            history.next_round();
            let before = history.cwnd();
            history.round_of(ms, 1.0);
            close(history.cwnd() - before, change, 0.01);
        }
    }
}
