//! H-TCP (Leith and Shorten 2004; thesis, equations 6.7 to 6.14): the increase grows with the time
//! since the last congestion event, and the decrease leaves the queue just empty.
//!
//! The sources leave four things open. The choices here, each a parameter where it changes results:
//! - The increase is scaled with the round-trip time by `T_min / 100 ms`, within 0.1 and 2, as in the
//!   authors' Linux code; the thesis prints `T_min` itself, in seconds, which is 10 times less.
//! - `B(k)`, the goodput before a congestion event, is the rate over each full round trip without recovery,
//!   smoothed with weight 1/4, as in that code. An event before there was one is no change of goodput.
//! - `T_max` follows that code: samples count while all data arrives in order, each may raise it by 20 ms at
//!   most, and it fades towards `T_min` by 5% at each event. A single delayed ACK does not count.
//! - After a change of goodput, Linux keeps beta at 0.5 for one further epoch (`settle`), and below
//!   10 ms of round-trip time always (`adaptive_min_rtt`). The published rule does neither.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Congestion, State, Window};
use crate::linux::Form;
use crate::parameter::{parameters, words};
use crate::reno;
use crate::variable::{Tell, variables};

/// Smallest fraction of the window that is kept: Standard TCP's.
const BETA_MIN: f64 = 0.5;
/// Round-trip time at which Linux does not scale the increase, in seconds, and limits of the scale.
const REFERENCE_RTT: f64 = 0.1;
const SCALE: (f64, f64) = (0.1, 2.0);
/// Weight of a new round trip in the smoothed goodput.
const GOODPUT_WEIGHT: f64 = 0.25;
/// A round-trip time that exceeds the largest by more than this does not count as queueing.
const MAX_RTT_RISE: Time = Time::from_millis(20);
/// Part of `T_max - T_min` that remains after a congestion event.
const MAX_RTT_MEMORY: f64 = 0.95;

words! {
    /// How the increase is scaled with the smallest round-trip time.
    pub enum RttScaling {
        /// By its ratio to 100 ms, within 0.1 and 2, as Linux does.
        Reference = "reference",
        /// By itself in seconds (thesis, equation 6.9).
        Seconds = "seconds",
        /// Not at all.
        Off = "off",
    }
}

parameters! {
    /// H-TCP's parameters.
    pub struct Parameters {
        /// Time after a congestion event in which the window grows as in Standard TCP (thesis, equation 6.9).
        delta_l: f64 = 1.0, 0.0..=1e6, "s";
        /// Relative change of goodput between two congestion events above which the window is halved
        /// (equation 6.10); inf never halves for it.
        delta_b: f64 = 0.2, 0.0..=f64::INFINITY, "";
        /// Maximum fraction of the window that remains after a congestion event (equation 6.10); 0.5 turns the adaptive
        /// back-off off.
        beta_max: f64 = 0.8, 0.5..=1.0, "";
        /// How the increase is scaled with the smallest round-trip time: by T_min / 100 ms within 0.1 and 2
        /// ("reference", as Linux), by T_min in seconds ("seconds", equation 6.9), or not ("off").
        rtt_scaling: RttScaling = RttScaling::Reference;
        /// Smallest round-trip time for adaptive back-off; 0.01 in Linux.
        adaptive_min_rtt: f64 = 0.0, 0.0..=1e6, "s";
        /// Whether the first congestion event after a change of goodput halves the window too, as in Linux.
        settle: bool = false;
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_htcp.c, with its constants; the other
        /// parameters are then ignored.
        form: Form = Form::Published;
    }
}

/// The current round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    number: u64,
    /// Its start, moved later by any time in which nothing was sent; and the segments delivered until then.
    begin: Time,
    delivered: f64,
    /// Whether no part of it was in recovery.
    is_full: bool,
}

elephan_units::with_defaults! {
    /// H-TCP.
    #[derive(Clone, Debug)]
    pub struct Htcp {
        parameters: Parameters = Parameters::default(),
        /// The last increase; unknown before the first.
        alpha: f64 = f64::NAN,
        /// Fraction of the window that was kept at the last congestion event.
        beta: f64 = BETA_MIN,
        /// Time of the last congestion event; at first, the start of the connection. Moved later by any time in
        /// which nothing was sent.
        last_congestion: Option<Time> = None,
        /// `T_max`; zero before the first sample.
        max_rtt: Time = Time::ZERO,
        /// Smoothed goodput of this epoch, and goodput before the last congestion event, in segments per second.
        goodput: Option<f64> = None,
        goodput_before: Option<f64> = None,
        round: Round = Round::default(),
        /// Whether a congestion event without a change of goodput has passed.
        settled: bool = false,
    }
}

impl Htcp {
    /// H-TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// Equations 6.9 and 6.11: the increase, `delta` seconds after a congestion event.
    fn alpha(&self, delta: f64, min_rtt: Time) -> f64 {
        let over = delta - self.parameters.delta_l;
        if over <= 0.0 {
            return 1.0;
        }
        let scale = match self.parameters.rtt_scaling {
            RttScaling::Reference => (min_rtt.secs_f64() / REFERENCE_RTT).clamp(SCALE.0, SCALE.1),
            RttScaling::Seconds => min_rtt.secs_f64(),
            RttScaling::Off => 1.0,
        };
        ((1.0 + 10.0 * over + 0.25 * over * over) * scale).max(1.0)
    }

    /// Equation 6.10: the fraction of the window that this congestion event leaves.
    fn adapt(&mut self, min_rtt: Time) -> f64 {
        let changed = match (self.goodput, self.goodput_before) {
            (Some(now), Some(before)) => (now - before).abs() > self.parameters.delta_b * before,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let settled = std::mem::replace(&mut self.settled, !changed);
        let halve = changed
            || (self.parameters.settle && !settled)
            || min_rtt.secs_f64() < self.parameters.adaptive_min_rtt
            || self.max_rtt == Time::ZERO;
        if halve {
            return BETA_MIN;
        }
        (min_rtt.secs_f64() / self.max_rtt.secs_f64()).clamp(BETA_MIN, self.parameters.beta_max)
    }
}

impl Algorithm for Htcp {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        self.last_congestion.get_or_insert(ack.now);
        if let Some(rtt) = ack.rtt
            && ack.state == State::Open
        {
            self.max_rtt = self.max_rtt.max(ack.min_rtt);
            if rtt <= self.max_rtt.saturating_add(MAX_RTT_RISE) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
        let is_measured = matches!(ack.state, State::Open | State::Disorder);
        self.round.is_full &= is_measured;
        if ack.round > self.round.number {
            let span = ack.now.since(self.round.begin).secs_f64();
            if self.round.is_full && span > 0.0 {
                let rate = (ack.delivered - self.round.delivered) / span;
                self.goodput = Some(match self.goodput {
                    Some(goodput) => goodput + GOODPUT_WEIGHT * (rate - goodput),
                    None => rate,
                });
            }
            let Ack { round: number, now: begin, delivered, .. } = *ack;
            self.round = Round { number, begin, delivered, is_full: is_measured };
        }
    }

    fn resume(&mut self, idle: Time) {
        // The increase counts the time in which the flow could probe, as CUBIC's does (RFC 9438, section 5.8);
        // H-TCP's sources do not mention silence.
        if let Some(last) = &mut self.last_congestion {
            *last += idle;
        }
        self.round.begin += idle;
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let delta = self.last_congestion.map_or(0.0, |last| ack.now.since(last).secs_f64());
        self.alpha = self.alpha(delta, ack.min_rtt);
        2.0 * (1.0 - self.beta) * self.alpha * reno::increase(window, ack)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        self.beta = self.adapt(event.min_rtt);
        self.goodput_before = self.goodput.take().or(self.goodput_before);
        self.round.is_full = false;
        self.last_congestion = Some(event.now);
        let queueing = self.max_rtt.since(event.min_rtt);
        self.max_rtt = self.max_rtt - queueing + queueing.mul_f64(MAX_RTT_MEMORY);
        if self.beta == BETA_MIN { reno::decrease(event) } else { self.beta * window.cwnd }
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Increase in a round trip, before its scaling with beta (equations 6.9 and 6.11), at the last ACK that let the window grow.
            alpha: "segments" = self.alpha;
            /// Fraction of the window that the last congestion event left (equation 6.10).
            beta: "" = self.beta;
            /// Time of the last congestion event, later by what was idle; at first the start of the connection.
            last_congestion: "s" = self.last_congestion.map_or(f64::NAN, Time::secs_f64);
            /// Largest round-trip time, T_max; unknown before the first.
            max_rtt: "s" = if self.max_rtt > Time::ZERO { self.max_rtt.secs_f64() } else { f64::NAN };
            /// Smoothed goodput since the last congestion event, B(k); unknown before a full round trip.
            goodput: "segments/s" = self.goodput.unwrap_or(f64::NAN);
            /// Goodput before the last congestion event.
            goodput_before: "segments/s" = self.goodput_before.unwrap_or(f64::NAN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, ack, close, loss};

    #[test]
    fn windows_after_acks_and_losses() {
        // Loss at 100: no goodput to compare with, so beta = 0.5: 50.
        // After 1 s: alpha = 1, 2 (1 - 0.5) * 1/50 = 0.02: 50.02.
        // After 3 s: alpha = 1 + 10 * 2 + 0.25 * 4 = 22, scaled by 100 ms/100 ms: 22/50.02 = 0.4398241.
        let mut history = History::of("htcp").at(100.0);
        history.loss().window_is(50.0);
        history.wait(1.0).ack(1.0).window_near(50.02, 1e-12);
        history.wait(2.0).ack(1.0).window_near(50.459_824_1, 1e-7);
    }

    #[test]
    fn the_increase_scales_with_the_round_trip_time() {
        // 3 s after the loss f = 22: times RTT/100 ms within 0.1 and 2; times RTT in seconds; unscaled.
        for (scaling, rtt_ms, alpha) in [
            ("reference", 50.0, 11.0),
            ("reference", 300.0, 44.0),
            ("reference", 1.0, 2.2),
            ("seconds", 100.0, 2.2),
            ("seconds", 10.0, 1.0),
            ("off", 50.0, 22.0),
        ] {
            let mut history = History::of("htcp").set("rtt_scaling", scaling).rtt_ms(rtt_ms).at(1000.0);
            history.loss().wait(3.0).ack(1.0).window_near(500.0 + alpha / 500.0, 1e-9);
        }
    }

    #[test]
    fn the_decrease_leaves_the_queue_empty_while_goodput_is_steady() {
        // T_min/T_max = 100/150 = 0.6667. Goodput 1000/s after 900/s: 100 <= 0.2 * 900. After 800/s:
        // 200 > 160. T_max = 110 ms: 0.909, but at most 0.8. T_max = 300 ms: 0.333, but at least 0.5.
        for (before, max_rtt, beta) in [
            (900.0, 150, 2.0 / 3.0),
            (800.0, 150, 0.5),
            (1000.0, 110, 0.8),
            (1000.0, 300, 0.5),
            (1300.0, 150, 0.5),
        ] {
            let mut htcp = Htcp::new(Parameters::default());
            htcp.goodput = Some(1000.0);
            htcp.goodput_before = Some(before);
            htcp.max_rtt = Time::from_millis(max_rtt);
            let left = htcp.decrease(&Window { cwnd: 600.0, ssthresh: 2.0 }, &loss(600.0));
            close(left, beta * 600.0, 1e-9);
            assert_eq!((htcp.goodput, htcp.goodput_before), (None, Some(1000.0)));
            // From this point it grows by 2 (1 - beta).
            assert_eq!(htcp.beta * 600.0, left);
        }
    }

    #[test]
    fn a_loss_before_goodput_could_be_measured_is_no_change_and_keeps_what_was_measured_before() {
        let mut htcp = Htcp::new(Parameters::default());
        let window = Window { cwnd: 600.0, ssthresh: 2.0 };
        htcp.goodput_before = Some(1000.0);
        htcp.max_rtt = Time::from_millis(125);
        close(htcp.decrease(&window, &loss(600.0)), 480.0, 1e-9);
        assert_eq!((htcp.goodput, htcp.goodput_before), (None, Some(1000.0)));
        // Before the first measurement of all it halves.
        let mut htcp = Htcp::new(Parameters::default());
        htcp.max_rtt = Time::from_millis(125);
        assert_eq!(htcp.decrease(&window, &loss(600.0)), 300.0);
    }

    /// A connection with a steady goodput of 1000/s: round-trip times from 100 to 110 ms, and a loss at 100.
    fn steady() -> History {
        let mut history = History::of("htcp").at(100.0);
        steady_rounds(&mut history, 10);
        history.loss();
        steady_rounds(&mut history, 10);
        history
    }

    /// Round trips of 100 segments in 100 ms, with a window of 100.
    fn steady_rounds(history: &mut History, count: u32) {
        for _ in 0..count {
            history.next_round();
            for i in 0..100 {
                history.wait(0.001).rtt_becomes(100 + i / 10).idle_acks(1);
            }
        }
    }

    /// The fraction of the window that a loss leaves.
    fn left_by_a_loss(history: &mut History) -> f64 {
        let before = history.cwnd();
        history.loss();
        history.cwnd() / before
    }

    #[test]
    fn a_part_of_a_round_trip_is_no_measure_of_goodput() {
        // Two losses within a round trip, recovery from half of one to half of the next, and a loss a round
        // trip later: no goodput but the steady one was measured.
        let mut history = steady();
        let beta = left_by_a_loss(&mut history);
        close(beta, 0.8, 1e-12);
        close(left_by_a_loss(&mut history), beta, 1e-12);
        for recovering in [true, false] {
            history.in_recovery = recovering;
            for i in 0..100 {
                history.round += u64::from(i == 50);
                history.wait(0.001);
                // Half as fast: retransmissions, and the reduced window.
                history.ack_worth(0.5, 0.0);
            }
        }
        close(left_by_a_loss(&mut history), beta, 1e-12);
        steady_rounds(&mut history, 3);
        close(left_by_a_loss(&mut history), beta, 1e-12);
    }

    #[test]
    fn silence_is_not_time_since_a_loss_and_does_not_lower_goodput() {
        let mut history = steady();
        history.idle(20.0);
        steady_rounds(&mut history, 1);
        let beta = left_by_a_loss(&mut history);
        close(beta, 0.8, 1e-12);
        history.wait(0.5).idle(20.0);
        let before = history.cwnd();
        history.ack(1.0).window_near(before + 2.0 * (1.0 - beta) / before, 1e-12);
    }

    #[test]
    fn a_delayed_ack_is_no_queueing() {
        // 200 ms more than before: does not count. Nor does anything outside the open state.
        let mut htcp = Htcp::new(Parameters::default());
        let window = Window { cwnd: 100.0, ssthresh: 2.0 };
        let mut sample = |ms, state| {
            htcp.observe(&window, &Ack { state, ..ack(Time::from_millis(ms)) });
            htcp.max_rtt
        };
        for (ms, state, max) in [
            (101, State::Open, 101),
            (301, State::Open, 101),
            (121, State::Open, 121),
            (142, State::Open, 121),
            (130, State::Recovery, 121),
            (130, State::Disorder, 121),
            (140, State::Open, 140),
        ] {
            assert_eq!(sample(ms, state), Time::from_millis(max));
        }
        // T_min is 100 ms: 40 ms of queueing fade to 38 ms.
        htcp.decrease(&window, &loss(100.0));
        assert_eq!(htcp.max_rtt, Time::from_millis(138));
    }

    #[test]
    fn linux_waits_for_one_more_event_and_for_10_ms() {
        let steady = |parameters, settled| {
            let mut htcp = Htcp::new(parameters);
            htcp.goodput = Some(1000.0);
            htcp.goodput_before = Some(1000.0);
            htcp.max_rtt = Time::from_millis(125);
            htcp.settled = settled;
            htcp.adapt(Time::from_millis(100))
        };
        let settle = Parameters { settle: true, ..Parameters::default() };
        assert_eq!(steady(settle, false), 0.5);
        close(steady(settle, true), 0.8, 1e-12);
        let long = Parameters { adaptive_min_rtt: 0.101, ..Parameters::default() };
        assert_eq!(steady(long, true), 0.5);
    }

    #[test]
    fn goodput_is_measured_over_round_trips_and_smoothed() {
        // Rounds of 100 segments in 100 ms: 1000/s. Then one of 120: 1000 + 0.25 * (1200 - 1000) = 1050.
        let mut htcp = Htcp::new(Parameters::default());
        let mut delivered = 0.0;
        for (round, segments) in [(0, 100.0), (1, 100.0), (2, 100.0), (3, 120.0)] {
            delivered += segments;
            htcp.observe(
                &Window { cwnd: 100.0, ssthresh: 2.0 },
                &Ack {
                    now: Time::from_millis(100 * (round + 1)),
                    delivered,
                    round,
                    ..ack(Time::from_millis(100))
                },
            );
        }
        close(htcp.goodput.unwrap(), 1050.0, 1e-9);
    }
}
