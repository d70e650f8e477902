//! FAST TCP (Jin, Wei and Low 2004; thesis, equations 6.18 to 6.20): moves the window to the value at which
//! `alpha` segments of its own are queued, by an equation in the queueing delay.
//!
//! Below `ssthresh` the window doubles at each update while there is no queueing delay, which corresponds to
//! `alpha = a w`. This start phase ends when the smallest round-trip time of a round exceeds the smallest of
//! all by `start_threshold`; the average would count the sender's own bursts as a queue. An update is spread
//! over the round trip that follows it, so that the window grows with ACKs, not in bursts.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Congestion, Start, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::variable::{Tell, variables};

/// Updates are made every other round trip (thesis, section 6.1.5).
const ROUNDS: u64 = 2;

parameters! {
    /// FAST's parameters.
    pub struct Parameters {
        /// Weight of the new window in an update (Jin 2004; the thesis prints 50, perhaps per cent).
        gamma: f64 = 0.5, 1e-6..=1.0, "";
        /// Segments to keep queued below rate_low of goodput (thesis, section 6.1.5).
        alpha_low: f64 = 8.0, 0.0..=1e9, "segments";
        /// Segments to keep queued between rate_low and rate_high (section 6.1.5).
        alpha_mid: f64 = 20.0, 0.0..=1e9, "segments";
        /// Segments to keep queued above rate_high (section 6.1.5).
        alpha_high: f64 = 200.0, 0.0..=1e9, "segments";
        /// Goodput from which alpha_mid applies (section 6.1.5).
        rate_low: f64 = 1e7, 0.0..=1e15, "bit/s";
        /// Goodput from which alpha_high applies (section 6.1.5).
        rate_high: f64 = 1e8, 0.0..=1e15, "bit/s";
        /// The weight of a sample in the average round-trip time is eta_window / cwnd (Jin 2004).
        eta_window: f64 = 3.0, 1e-3..=1e6, "segments";
        /// Upper bound of the weight of a sample in the average round-trip time (Jin 2004).
        eta_max: f64 = 0.25, 1e-6..=1.0, "";
        /// Queueing delay that ends slow start; the published rule has zero, which no packet network reaches.
        start_threshold: f64 = 0.000_75, 0.0..=10.0, "s";
    }
}

elephan_units::with_defaults! {
    /// FAST TCP.
    #[derive(Clone, Debug)]
    pub struct Fast {
        parameters: Parameters = Parameters::default(),
        /// Average round-trip time, in seconds; zero before the first sample.
        average_rtt: f64 = 0.0,
        /// The round trip that is being measured, and its smallest round-trip time; and that of the previous one.
        round: u64 = 0,
        round_min: Time = Time::MAX,
        last_round_min: Time = Time::MAX,
        /// Round, time and segments delivered at the last update, or congestion event. The time is moved later by any
        /// time in which nothing was sent.
        updated: Option<(u64, Time, f64)> = None,
        /// The remaining part of the last update, and the part that each acknowledged segment adds.
        left: f64 = 0.0,
        pace: f64 = 0.0,
    }
}

impl Fast {
    /// FAST with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// Segments to keep queued, from the goodput since the last update.
    fn alpha(&self, ack: &Ack) -> f64 {
        let Parameters { alpha_low, alpha_mid, alpha_high, rate_low, rate_high, .. } = self.parameters;
        let Some((_, since, delivered)) = self.updated else { return alpha_low };
        let seconds = ack.now.since(since).secs_f64();
        let goodput = (ack.delivered - delivered) * f64::from(ack.mss) * 8.0 / seconds;
        if goodput >= rate_high {
            alpha_high
        } else if goodput >= rate_low {
            alpha_mid
        } else {
            alpha_low
        }
    }

    /// Whether it is time for an update.
    fn is_due(&self, ack: &Ack) -> bool {
        self.updated.is_none_or(|(round, ..)| ack.round >= round + ROUNDS)
    }

    /// Starts to move from window `w` to `target`, at most twice as large; returns the first step.
    fn update(&mut self, w: f64, target: f64, ack: &Ack) -> f64 {
        self.updated = Some((ack.round, ack.now, ack.delivered));
        self.left = target.min(2.0 * w) - w;
        self.pace = (self.left / w).max(0.0);
        self.step(ack)
    }

    /// The change of the window at this ACK: a reduction at once, an increase spread over the ACKs of a round
    /// trip.
    fn step(&mut self, ack: &Ack) -> f64 {
        let step = self.left.min(self.pace * ack.segments);
        self.left -= step;
        step
    }
}

impl Algorithm for Fast {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        if ack.round > self.round {
            self.round = ack.round;
            self.last_round_min = std::mem::replace(&mut self.round_min, Time::MAX);
        }
        if let Some(rtt) = ack.rtt {
            self.round_min = self.round_min.min(rtt);
            // Equation 6.20 with the paper's weight.
            let eta = (self.parameters.eta_window / window.cwnd).min(self.parameters.eta_max);
            let rtt = rtt.secs_f64();
            self.average_rtt =
                if self.average_rtt == 0.0 { rtt } else { (1.0 - eta) * self.average_rtt + eta * rtt };
        }
    }

    fn resume(&mut self, idle: Time) {
        // The goodput since the last update is that of the time in which data was sent.
        if let Some((_, since, _)) = &mut self.updated {
            *since += idle;
        }
    }

    fn has_slow_start(&self) -> bool {
        true
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        let threshold = ack.min_rtt.saturating_add(Time::from_secs_f64(self.parameters.start_threshold));
        if self.last_round_min < Time::MAX && self.last_round_min > threshold {
            // The rest of the last doubling is dropped, and the equation takes effect.
            self.left = 0.0;
            return Some(Start { growth: self.increase(window, ack), ends: true });
        }
        let due = self.is_due(ack);
        let growth = if due { self.update(window.cwnd, 2.0 * window.cwnd, ack) } else { self.step(ack) };
        Some(Start { growth, ends: false })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        if !self.is_due(ack) {
            return self.step(ack);
        }
        // Equation 6.18.
        let gamma = self.parameters.gamma;
        let ratio = (ack.min_rtt.secs_f64() / self.average_rtt).min(1.0);
        let target = (1.0 - gamma) * window.cwnd + gamma * (ratio * window.cwnd + self.alpha(ack));
        self.update(window.cwnd, target, ack)
    }

    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        // Equation 6.19; the next update waits until the round-trip time corresponds to the new window.
        self.updated = Some((self.round, event.now, event.delivered));
        self.left = 0.0;
        (self.round_min, self.last_round_min) = (Time::MAX, Time::MAX);
        reno::decrease(event)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Average round-trip time (equation 6.20); unknown before the first sample.
            average_rtt: "s" = if self.average_rtt > 0.0 { self.average_rtt } else { f64::NAN };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, ack, close};

    /// A connection at window `cwnd` with 10 ms of queueing, after two round trips.
    fn queueing_10_ms(cwnd: f64) -> History {
        let mut history = History::of("fast").set("alpha_low", 0.0).at(cwnd);
        history.rtt_becomes(110);
        // The first ACK makes an update without a goodput. With no alpha it would only shrink the window, so
        // it comes while nothing is queued.
        history.min_rtt = history.rtt;
        history.round_trip().round_trip();
        history.min_rtt = Time::from_millis(100);
        history
    }

    #[test]
    fn goodput_is_that_of_the_time_in_which_data_was_sent() {
        // As below, with a silence before the update: alpha is still 200.
        let mut history = queueing_10_ms(1000.0);
        history.idle(10.0).ack(1.0).window_near(1_000.054_545_5, 1e-6);
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // Two round trips of 1000 segments in 110 ms, 1460 bytes: 106 Mbit/s, alpha = 200.
        // Target 0.5 * 1000 + 0.5 (100/110 * 1000 + 200) = 1054.5454545, by 0.0545455 for each segment.
        let mut history = queueing_10_ms(1000.0);
        history.window_is(1000.0);
        history.ack(1.0).window_near(1_000.054_545_5, 1e-6);
        history.ack(2.0).window_near(1_000.163_636_4, 1e-6);
        history.round_trip().window_near(1_054.545_454_5, 1e-6);
        history.round_trip();
        // Now 0.5 * 1054.545 + 0.5 (958.678 + 200) = 1106.612.
        history.round_trip().window_near(1106.612, 1e-3);
        history.loss().window_near(553.306, 1e-3);
    }

    #[test]
    fn alpha_depends_on_goodput() {
        // At 110 ms and 1460 bytes a segment in the window is 106.18 kbit/s: 92 are 9.8 Mbit/s, 97 are 10.3,
        // 935 are 99.3, 950 are 100.9. Target: w (0.5 + 0.5/1.1) + alpha/2.
        for (cwnd, alpha) in [(92.0, 0.0), (97.0, 20.0), (935.0, 20.0), (950.0, 200.0)] {
            let mut history = queueing_10_ms(cwnd);
            history.ack(1.0).round_trip().window_near(cwnd * (0.5 + 0.5 / 1.1) + alpha / 2.0, 1e-6);
        }
    }

    #[test]
    fn an_update_at_most_doubles_the_window() {
        // 0.5 * 20 + 0.5 (20 + 100) = 70, at most 40: 20 more over a round trip, 1 for each segment.
        let mut fast = Fast::new(Parameters { alpha_low: 100.0, ..Parameters::default() });
        let step = fast.increase(&Window { cwnd: 20.0, ssthresh: 2.0 }, &ack(Time::from_millis(100)));
        assert_eq!(step, 1.0);
    }

    #[test]
    fn a_sample_weighs_a_quarter_at_most() {
        // 3/cwnd = 0.75 at 4, so 0.25: 100 + 0.25 * 20 = 105 ms. At 30: 3/30 = 0.1: 102 ms.
        for (cwnd, average) in [(4.0, 0.105), (30.0, 0.102)] {
            let mut fast = Fast::new(Parameters::default());
            for rtt in [100, 120] {
                fast.observe(&Window { cwnd, ssthresh: 2.0 }, &ack(Time::from_millis(rtt)));
            }
            close(fast.average_rtt, average, 1e-12);
        }
    }

    #[test]
    fn after_a_loss_it_waits_for_two_round_trips() {
        let mut history = queueing_10_ms(1000.0);
        history.idle_acks(1).loss();
        for moved in [false, false, true] {
            history.ack(1.0);
            assert_eq!(history.cwnd() != 500.0, moved);
            history.next_round();
        }
    }

    #[test]
    fn after_a_timeout_the_start_lasts_until_a_round_is_measured() {
        let mut history = queueing_10_ms(1000.0);
        history.event(crate::Cause::Timeout).ack(1.0);
        assert_eq!(history.ssthresh(), 500.0);
        history.next_round().ack(1.0);
        assert_eq!(history.ssthresh(), 2.0);
    }

    /// After a timeout on a path where other flows keep a queue, the start phase ends at once, but the growth
    /// continues.
    #[test]
    fn leaves_a_window_of_one_though_there_is_a_queue() {
        let mut history = History::of("fast").at(100.0);
        history.round_trip().event(crate::Cause::Timeout).rtt_becomes(150);
        for _ in 0..20 {
            history.round_trip();
        }
        // In equilibrium, where a third of the window is queued, alpha = 8: w/3 = 8.
        assert!((16.0..24.0).contains(&history.cwnd()), "{}", history.cwnd());
    }

    /// On a path of 10,000 segments/s and 100 ms it converges to alpha queued segments.
    #[test]
    fn comes_to_rest_with_alpha_queued() {
        for start in [600.0, 1500.0] {
            let mut history = History::of("fast").at(start);
            for _ in 0..400 {
                history.rtt = Time::from_secs_f64(f64::max(0.1, history.cwnd() / 10_000.0));
                history.round_trip();
            }
            history.window_near(1200.0, 1.0);
        }
    }

    #[test]
    fn its_start_doubles_every_other_round_trip_until_there_is_a_queue() {
        let mut history = History::of("fast").starting(10.0);
        for window in [20.0, 20.0, 40.0, 40.0, 80.0] {
            history.round_trip().window_near(window, 1e-9);
        }
        // 0.7 ms is below the threshold; 0.8 ms is above.
        history.rtt = Time::from_secs_f64(0.1007);
        history.round_trip().ack(1.0);
        assert!(history.controller.in_slow_start());
        history.rtt = Time::from_secs_f64(0.1008);
        history.next_round().ack(1.0).next_round().ack(1.0);
        assert!(!history.controller.in_slow_start());
    }
}
