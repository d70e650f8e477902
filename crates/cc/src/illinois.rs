//! TCP-Illinois (Liu, Basar and Srikant 2008): losses decide when the window grows and shrinks, and queueing delay
//! decides by how much. The shorter the queue, the larger the increase and the smaller the decrease.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Window};
use crate::parameter::parameters;
use crate::variable::{Tell, variables};

/// Increase and decrease of Standard TCP: below the window threshold, and after a timeout until a round trip is measured.
const STANDARD: (f64, f64) = (1.0, 0.5);

parameters! {
    /// TCP-Illinois' parameters. Delays are fractions of the largest queueing delay that was observed.
    pub struct Parameters {
        /// Increase in a round trip while the queue is short (Liu, Basar and Srikant 2008, section 3).
        alpha_max: f64 = 10.0, 0.0..=1e6, "segments";
        /// Increase in a round trip at the largest queueing delay (section 3).
        alpha_min: f64 = 0.3, 1e-6..=1e6, "segments";
        /// Largest fraction of the window that is removed at a loss (section 3).
        beta_max: f64 = 0.5, 0.0..=1.0, "";
        /// Smallest fraction of the window that is removed at a loss (section 3).
        beta_min: f64 = 0.125, 0.0..=1.0, "";
        /// Average queueing delay up to which the increase is alpha_max (section 3).
        d_1: f64 = 0.01, 0.0..=1.0, "";
        /// Average queueing delay up to which beta_min is removed (section 3).
        d_2: f64 = 0.1, 0.0..=1.0, "";
        /// Average queueing delay from which beta_max is removed (section 3).
        d_3: f64 = 0.8, 0.0..=1.0, "";
        /// Successive round trips below d_1 after which the increase is alpha_max again (section 3).
        theta: f64 = 5.0, 0.0..=1e9, "";
        /// Window below which the algorithm is Standard TCP (the value of Linux's tcp_illinois.c, of which Liu is an author).
        win_thresh: f64 = 15.0, 1.0..=1e9, "segments";
    }
}

/// TCP-Illinois.
#[derive(Clone, Debug, Default)]
pub struct Illinois {
    parameters: Parameters,
    /// Increase in this round trip, and the fraction that a loss removes.
    alpha: f64,
    beta: f64,
    max_rtt: Time,
    /// Round trip that is being measured, and the number and the sum, in seconds, of its samples.
    round: u64,
    samples: u32,
    sum: f64,
    /// Whether the delay was above `d_1` since the increase was last `alpha_max`, and round trips below it since.
    above: bool,
    below: u32,
}

impl Illinois {
    /// TCP-Illinois with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, alpha: parameters.alpha_max, beta: parameters.beta_max, ..Self::default() }
    }

    /// Sets increase and decrease for the next round trip.
    fn adapt(&mut self, cwnd: f64, min_rtt: Time) {
        if cwnd < self.parameters.win_thresh {
            (self.alpha, self.beta) = STANDARD;
        } else if self.samples > 0 {
            let longest = self.max_rtt.since(min_rtt).secs_f64();
            let average = (self.sum / f64::from(self.samples) - min_rtt.secs_f64()).max(0.0);
            self.alpha = self.next_alpha(average, longest);
            self.beta = self.next_beta(average, longest);
        }
    }

    /// `f_1` of section 3: `alpha_max` up to `d_1`, then a hyperbola to `alpha_min` at the longest delay.
    fn next_alpha(&mut self, average: f64, longest: f64) -> f64 {
        let Parameters { alpha_max, alpha_min, d_1, theta, .. } = self.parameters;
        let low = d_1 * longest;
        if average <= low {
            self.below = self.below.saturating_add(1);
            if self.above && f64::from(self.below) < theta {
                return self.alpha;
            }
            self.above = false;
            return alpha_max;
        }
        (self.above, self.below) = (true, 0);
        let (average, longest) = (average - low, longest - low);
        longest * alpha_max / (longest + average * (alpha_max - alpha_min) / alpha_min)
    }

    /// `f_2` of section 3: linear from `beta_min` at `d_2` to `beta_max` at `d_3`.
    fn next_beta(&self, average: f64, longest: f64) -> f64 {
        let Parameters { beta_max, beta_min, d_2, d_3, .. } = self.parameters;
        let (low, high) = (d_2 * longest, d_3 * longest);
        if average <= low {
            beta_min
        } else if average >= high {
            beta_max
        } else {
            beta_min + (beta_max - beta_min) * (average - low) / (high - low)
        }
    }
}

impl Algorithm for Illinois {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        if ack.round > self.round {
            self.adapt(window.cwnd, ack.min_rtt);
            self.round = ack.round;
            (self.samples, self.sum) = (0, 0.0);
        }
        if let Some(rtt) = ack.rtt {
            self.max_rtt = self.max_rtt.max(rtt);
            self.samples += 1;
            self.sum += rtt.secs_f64();
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.alpha * ack.segments / window.cwnd
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let left = (1.0 - self.beta) * window.cwnd;
        if event.cause == Cause::Timeout {
            (self.alpha, self.beta) = STANDARD;
            (self.above, self.below) = (false, 0);
            (self.samples, self.sum) = (0, 0.0);
        }
        left
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Increase in this round trip (section 3).
            alpha: "segments" = self.alpha;
            /// Fraction of the window that a loss removes (section 3).
            beta: "" = self.beta;
            /// Largest round-trip time; unknown before the first.
            max_rtt: "s" = if self.max_rtt > Time::ZERO { self.max_rtt.secs_f64() } else { f64::NAN };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::{History, close};

    /// A connection that has seen 100 ms of queueing, at a window of `cwnd`.
    fn seen_100_ms(cwnd: f64) -> History {
        let mut history = History::of("illinois").at(cwnd);
        round(&mut history, 100);
        history
    }

    /// A round trip with samples of this much queueing delay, which the ACK that follows evaluates.
    fn round(history: &mut History, queueing_ms: u64) {
        history.rtt_becomes(100 + queueing_ms).idle_acks(4).next_round().rtt_becomes(100);
    }

    /// What an ACK adds to the window, times the window; and the fraction that a loss then removes.
    fn alpha_and_beta(history: &History) -> (f64, f64) {
        let mut history = history.clone();
        let cwnd = history.cwnd();
        history.ack(1.0);
        let (grown, alpha) = (history.cwnd(), (history.cwnd() - cwnd) * cwnd);
        history.loss();
        (alpha, 1.0 - history.cwnd() / grown)
    }

    #[test]
    fn increase_and_decrease_follow_the_queueing_delay() {
        // Of 100 ms: d_1 = 1 ms, d_2 = 10 ms, d_3 = 80 ms. At 9 ms: 99 * 10/(99 + 8 * 9.7/0.3) = 2.7679404. At 45 ms:
        // 990/(99 + 44 * 9.7/0.3) = 0.6506024, and 0.125 + 0.375/2. At 81 ms: 990/(99 + 80 * 9.7/0.3) = 0.3686236.
        for (ms, alpha, beta) in
            [(9, 2.767_940_4, 0.125), (45, 0.650_602_4, 0.3125), (81, 0.368_623_6, 0.5), (100, 0.3, 0.5)]
        {
            let mut history = seen_100_ms(200.0);
            round(&mut history, ms);
            let found = alpha_and_beta(&history);
            close(found.0, alpha, 1e-6);
            close(found.1, beta, 1e-9);
        }
    }

    #[test]
    fn the_first_round_trips_without_a_queue_grow_fastest() {
        let mut history = History::of("illinois").at(200.0);
        for _ in 0..2 {
            let (alpha, _) = alpha_and_beta(&history);
            close(alpha, 10.0, 1e-9);
            round(&mut history, 0);
        }
        close(alpha_and_beta(&history).1, 0.125, 1e-12);
    }

    #[test]
    fn after_a_queue_five_successive_round_trips_without_one_grow_fastest() {
        let mut history = seen_100_ms(200.0);
        round(&mut history, 100);
        for rounds in [4, 5] {
            // A queue in between begins the count again.
            round(&mut history, 100);
            for _ in 0..rounds {
                round(&mut history, 0);
            }
            let (alpha, beta) = alpha_and_beta(&history);
            close(alpha, if rounds == 5 { 10.0 } else { 0.3 }, 1e-9);
            close(beta, 0.125, 1e-12);
        }
    }

    #[test]
    fn small_windows_are_standard_tcps() {
        for (cwnd, alpha, beta) in [(14.9, 1.0, 0.5), (15.1, 10.0, 0.125)] {
            let mut history = History::of("illinois").at(cwnd);
            round(&mut history, 0);
            let found = alpha_and_beta(&history);
            close(found.0, alpha, 1e-9);
            close(found.1, beta, 1e-9);
        }
    }

    #[test]
    fn after_a_timeout_it_is_standard_tcp_until_a_round_trip_is_measured() {
        // A timeout at 200 with beta = 1/8 leaves a threshold of 175.
        let mut history = History::of("illinois").at(200.0);
        round(&mut history, 0);
        history.idle_acks(1).event(Cause::Timeout);
        close(history.ssthresh(), 175.0, 1e-9);
        while history.controller.in_slow_start() {
            history.ack(1.0);
        }
        let (alpha, beta) = alpha_and_beta(&history);
        close(alpha, 1.0, 1e-9);
        close(beta, 0.5, 1e-9);
    }
}
