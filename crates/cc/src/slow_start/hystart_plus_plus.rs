//! HyStart++ (RFC 9406): leaves the first slow start before it overshoots, when the smallest round-trip time
//! of a round rises. It then uses a conservative slow start (CSS) for a few rounds, and returns to slow start
//! if the round-trip time falls again.

use elephan_units::Time;

use crate::algorithm::{Ack, Start};
use crate::parameter::parameters;
use crate::variable::{Tell, seconds, variables};

parameters! {
    /// HyStart++'s parameters (RFC 9406, section 4.3).
    pub struct Parameters {
        /// Minimum rise of the round-trip time that ends slow start: MIN_RTT_THRESH.
        min_rtt_thresh: f64 = 0.004, 0.0..=10.0, "s";
        /// Maximum rise threshold of the round-trip time: MAX_RTT_THRESH.
        max_rtt_thresh: f64 = 0.016, 0.0..=10.0, "s";
        /// Between these limits, the threshold is the last round's minimum round-trip time divided by this: MIN_RTT_DIVISOR.
        min_rtt_divisor: f64 = 8.0, 1.0..=1e6, "";
        /// Number of samples in a round before it is evaluated: N_RTT_SAMPLE.
        n_rtt_sample: f64 = 8.0, 1.0..=1e6, "samples";
        /// Divisor of the window growth in CSS: CSS_GROWTH_DIVISOR.
        css_growth_divisor: f64 = 4.0, 1.0..=1e6, "";
        /// Number of rounds of CSS, including the first: CSS_ROUNDS.
        css_rounds: f64 = 5.0, 1.0..=1e6, "rounds";
        /// Maximum number of segments that one ACK may add, in place of byte counting's limit: L. A sender that paces (`tcp.pacing`)
        /// has no limit.
        l: f64 = 8.0, 1.0..=f64::INFINITY, "segments";
    }
}

/// The phase of HyStart++.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Conservative slow start.
    Css {
        /// The smallest round-trip time of the round that ended slow start.
        baseline: Time,
        /// Number of rounds begun, including the one in which it began.
        rounds: f64,
    },
    /// Later slow starts are standard, because `ssthresh` ends them (section 4.3).
    Finished,
}

/// The phases, in their order.
const PHASES: &[&str] = &["slow_start", "css", "finished"];

elephan_units::with_defaults! {
    /// HyStart++.
    #[derive(Clone, Debug)]
    pub struct HyStartPlusPlus {
        parameters: Parameters = Parameters::default(),
        phase: Phase = Phase::SlowStart,
        /// The endpoint's count of round trips in the current round.
        round: u64 = 0,
        /// Smallest round-trip time of the last round and of the current one; `Time::MAX` without a sample.
        last_min: Time = Time::MAX,
        current_min: Time = Time::MAX,
        samples: f64 = 0.0,
    }
}

impl HyStartPlusPlus {
    /// HyStart++ before the first ACK.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// The sender paces: section 4.3 then has no limit of what an ACK may add.
    pub fn pace(&mut self) {
        self.parameters.l = f64::INFINITY;
    }

    /// Whether this is the first slow start, in which L limits what an ACK may add.
    pub fn is_first(&self) -> bool {
        self.phase != Phase::Finished
    }

    /// Processes the round-trip time of an ACK, and evaluates the round.
    pub fn observe(&mut self, ack: &Ack) {
        if self.phase == Phase::Finished {
            return;
        }
        if ack.round > self.round {
            self.round = ack.round;
            self.last_min = self.current_min;
            self.current_min = Time::MAX;
            self.samples = 0.0;
            if let Phase::Css { rounds, .. } = &mut self.phase {
                *rounds += 1.0;
            }
        }
        let Some(rtt) = ack.rtt else { return };
        self.current_min = self.current_min.min(rtt);
        self.samples += 1.0;
        if self.samples < self.parameters.n_rtt_sample {
            return;
        }
        match self.phase {
            Phase::SlowStart
                if self.last_min < Time::MAX
                    && self.current_min >= self.last_min.saturating_add(self.threshold()) =>
            {
                self.phase = Phase::Css { baseline: self.current_min, rounds: 1.0 };
            }
            Phase::Css { baseline, .. } if self.current_min < baseline => self.phase = Phase::SlowStart,
            _ => {}
        }
    }

    /// `RttThresh`: an eighth of the last round's smallest round-trip time, within 4 and 16 ms.
    fn threshold(&self) -> Time {
        let Parameters { min_rtt_thresh, max_rtt_thresh, min_rtt_divisor, .. } = self.parameters;
        let eighth = self.last_min.secs_f64() / min_rtt_divisor;
        Time::from_secs_f64(eighth.min(max_rtt_thresh).max(min_rtt_thresh))
    }

    /// The growth of the window, and whether slow start is over.
    pub fn grow(&mut self, ack: &Ack) -> Start {
        let growth = ack.segments.min(self.parameters.l);
        match self.phase {
            Phase::SlowStart => Start { growth, ends: false },
            Phase::Css { rounds, .. } if rounds > self.parameters.css_rounds => {
                self.finish();
                Start { growth: 0.0, ends: true }
            }
            Phase::Css { .. } => Start { growth: growth / self.parameters.css_growth_divisor, ends: false },
            Phase::Finished => Start { growth: ack.segments, ends: false },
        }
    }

    /// The first slow start is over: later ones are standard.
    pub fn finish(&mut self) {
        self.phase = Phase::Finished;
    }

    /// Tells its variables, with the RFC's names (section 4.2).
    pub fn variables(&self, tell: &mut Tell<'_>) {
        let (phase, baseline, rounds) = match self.phase {
            Phase::SlowStart => (0.0, f64::NAN, f64::NAN),
            Phase::Css { baseline, rounds } => (1.0, seconds(baseline), rounds),
            Phase::Finished => (2.0, f64::NAN, f64::NAN),
        };
        variables! { tell;
            /// Slow start, conservative slow start (CSS), or congestion avoidance and later slow starts, which are standard.
            start_phase: PHASES = phase;
            /// Smallest round-trip time of the last round, lastRoundMinRTT; unknown without a sample.
            last_round_min_rtt: "s" = seconds(self.last_min);
            /// Smallest round-trip time of this round, currentRoundMinRTT; unknown without a sample.
            current_round_min_rtt: "s" = seconds(self.current_min);
            /// Round-trip samples of this round, rttSampleCount.
            rtt_sample_count: "" = self.samples;
            /// Smallest round-trip time of the round that began CSS, cssBaselineMinRtt; unknown outside CSS.
            css_baseline_min_rtt: "s" = baseline;
            /// Rounds of CSS that have begun; unknown outside CSS.
            css_rounds: "" = rounds;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::History;

    /// A connection in the round after one of 8 samples of 80 ms: the threshold is 80/8 = 10 ms.
    fn after_a_round_of_80_ms() -> History {
        let mut history = History::of("reno").slow_start("hystart++").rtt_ms(80.0).starting(100.0);
        round(&mut history, 80, 8);
        history
    }

    /// A round of `samples` ACKs of one segment with this round-trip time.
    fn round(history: &mut History, ms: u64, samples: u32) {
        history.next_round().rtt_becomes(ms).acks(samples, 1.0);
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_to_a_quarter() {
        // 108 after the first round. 89 ms is no rise; 90 ms is: its eighth sample adds 1/4.
        let mut history = after_a_round_of_80_ms();
        history.window_is(108.0);
        round(&mut history, 89, 10);
        history.window_is(118.0);
        let mut history = after_a_round_of_80_ms();
        round(&mut history, 90, 7);
        history.window_is(115.0);
        history.ack(1.0).window_is(115.25);
        history.ack(2.0).window_is(115.75);
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (last, risen, css) in [(20, 23, false), (20, 24, true), (400, 415, false), (400, 416, true)] {
            let mut history = History::of("reno").slow_start("hystart++").rtt_ms(last as f64).starting(100.0);
            round(&mut history, last, 8);
            round(&mut history, risen, 8);
            history.window_near(if css { 115.25 } else { 116.0 }, 0.0);
        }
    }

    #[test]
    fn five_rounds_end_slow_start() {
        // The round of the rise is the first of five; the sixth begins in congestion avoidance.
        let mut history = after_a_round_of_80_ms();
        for _ in 0..5 {
            round(&mut history, 100, 8);
        }
        // 115.25 after the first, and 8/4 for each of four more.
        history.window_is(123.25);
        assert!(history.controller.in_slow_start());
        round(&mut history, 100, 1);
        assert!(!history.controller.in_slow_start());
        assert_eq!((history.cwnd(), history.ssthresh()), (123.25, 123.25));
        history.ack(1.0).window_near(123.25 + 1.0 / 123.25, 1e-12);
    }

    #[test]
    fn its_variables_follow_the_rounds() {
        let mut history = after_a_round_of_80_ms();
        round(&mut history, 100, 8);
        round(&mut history, 95, 3);
        // CSS since the round of 100 ms, of which this round of 3 samples is the second.
        let expected = [
            ("start_phase", 1.0),
            ("last_round_min_rtt", 0.1),
            ("current_round_min_rtt", 0.095),
            ("rtt_sample_count", 3.0),
            ("css_baseline_min_rtt", 0.1),
            ("css_rounds", 2.0),
        ];
        assert_eq!(history.variables(), expected);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_slow_start() {
        let mut history = after_a_round_of_80_ms();
        round(&mut history, 100, 8);
        history.window_is(115.25);
        // Seven samples of the next round are too few for a decision; the eighth resumes.
        round(&mut history, 82, 7);
        history.window_is(117.0);
        history.ack(1.0).window_is(118.0);
    }

    /// A round-trip time that a delayed ACK lengthens by 200 ms once in a round does not count, because the
    /// smallest of the round is used; and ACKs of two segments add two.
    #[test]
    fn delayed_acks_do_not_end_slow_start() {
        let mut history = History::of("reno").slow_start("hystart++").rtt_ms(80.0).starting(100.0);
        for _ in 0..6 {
            history.next_round();
            for sample in 0..10 {
                history.rtt_becomes(if sample == 0 { 280 } else { 80 }).ack(2.0);
            }
        }
        history.window_is(220.0);
        // A round with a single ACK, delayed, has too few samples.
        round(&mut history, 280, 1);
        history.window_is(221.0);
    }

    #[test]
    fn one_ack_adds_at_most_eight() {
        let mut history = after_a_round_of_80_ms();
        history.ack(20.0).window_is(116.0);
    }

    #[test]
    fn one_ack_adds_all_that_it_acknowledges_where_segments_are_paced() {
        let mut history = after_a_round_of_80_ms();
        history.controller.pace();
        history.ack(20.0).window_is(128.0);
    }

    #[test]
    fn after_a_congestion_event_slow_start_is_standard() {
        let mut history = after_a_round_of_80_ms();
        history.event(Cause::Timeout);
        round(&mut history, 80, 8);
        round(&mut history, 300, 16);
        history.window_is(25.0);
    }
}
