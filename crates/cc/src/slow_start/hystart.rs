//! HyStart (Ha and Rhee 2008), as Linux's CUBIC has it: slow start ends, without a conservative phase, when the
//! ACKs of a round trip arrive closely for half of the smallest round-trip time, or when the round-trip time
//! rises.
//!
//! A train of ACKs as long as half a round trip shows that half of what the path holds is in flight, and doubles
//! until the next. A timeout, after which the path may be another, starts the search again; other slow starts
//! after it has ended are standard.

use elephan_units::Time;

use crate::algorithm::{Ack, Cause, Start, Window};
use crate::parameter::parameters;
use crate::variable::{Tell, seconds, variables};

parameters! {
    /// HyStart's parameters.
    pub struct Parameters {
        /// Window from which it looks for the end of slow start (Linux: hystart_low_window).
        low_window: f64 = 16.0, 0.0..=1e9, "segments";
        /// Largest time between two ACKs of a train (Linux: hystart_ack_delta_us).
        ack_delta: f64 = 0.002, 0.0..=10.0, "s";
        /// Slow start ends when a train of ACKs is longer than this fraction of the smallest round-trip time: 0.5
        /// in Linux, and 1 with pacing. Linux adds up to 1 ms to that time for segmentation offload, and so does this.
        train: f64 = 0.5, 0.0..=1e6, "";
        /// Round-trip samples of a round after which their smallest is evaluated (Linux: HYSTART_MIN_SAMPLES).
        samples: f64 = 8.0, 0.0..=1e6, "samples";
        /// Slow start ends when the round-trip time exceeds the smallest by an eighth, but by this at least (Linux:
        /// HYSTART_DELAY_MIN).
        delay_min: f64 = 0.004, 0.0..=10.0, "s";
        /// And by this at most (Linux: HYSTART_DELAY_MAX).
        delay_max: f64 = 0.016, 0.0..=10.0, "s";
    }
}

/// Largest time that Linux allows for segmentation offload, and the bytes whose sending takes it.
const OFFLOAD: (f64, f64) = (0.001, 4.0 * 65_536.0);
/// Linux estimates that slow start sends twice the window in a round trip.
const RATE_FACTOR: f64 = 2.0;

/// How far it is, as [`PHASES`] names it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Search,
    /// The end is found, and slow start ends with the next growth.
    Found,
    Finished,
}

/// The phases, in their order.
const PHASES: &[&str] = &["searching", "found", "finished"];

elephan_units::with_defaults! {
    /// HyStart.
    #[derive(Clone, Debug)]
    pub struct HyStart {
        parameters: Parameters = Parameters::default(),
        phase: Phase = Phase::Search,
        /// The endpoint's count of round trips in the current round, and the round's start.
        round: u64 = 0,
        begin: Time = Time::ZERO,
        /// The last ACK of the train.
        train: Time = Time::ZERO,
        /// Smallest round-trip time of the round; `Time::MAX` without a sample.
        round_min: Time = Time::MAX,
        samples: f64 = 0.0,
    }
}

impl HyStart {
    /// HyStart before the first ACK.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// Processes the arrival of an ACK and its round-trip time; `min_rtt` is the smallest so far.
    pub fn observe(&mut self, window: &Window, ack: &Ack, min_rtt: Time) {
        let (Phase::Search, Some(rtt)) = (self.phase, ack.rtt) else { return };
        if ack.round > self.round {
            (self.round, self.begin, self.train) = (ack.round, ack.now, ack.now);
            (self.round_min, self.samples) = (Time::MAX, 0.0);
        }
        let Parameters { low_window, ack_delta, train, samples, delay_min, delay_max } = self.parameters;
        if window.cwnd < low_window {
            return;
        }
        if ack.now.since(self.train).secs_f64() <= ack_delta {
            self.train = ack.now;
            let allowed = train * (min_rtt.secs_f64() + offload(window, ack));
            if ack.now.since(self.begin).secs_f64() > allowed {
                self.phase = Phase::Found;
            }
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < samples {
            self.samples += 1.0;
        } else {
            let rise = (min_rtt.secs_f64() / 8.0).min(delay_max).max(delay_min);
            if self.round_min > min_rtt.saturating_add(Time::from_secs_f64(rise)) {
                self.phase = Phase::Found;
            }
        }
    }

    /// The growth of the window, and whether slow start is over.
    pub fn grow(&mut self, ack: &Ack) -> Start {
        if self.phase == Phase::Found {
            self.phase = Phase::Finished;
            return Start { growth: 0.0, ends: true };
        }
        Start { growth: ack.segments, ends: false }
    }

    /// A congestion event: after a timeout it searches again.
    pub fn on_congestion(&mut self, cause: Cause) {
        if cause == Cause::Timeout {
            *self = Self { round: self.round, begin: self.begin, ..Self::new(self.parameters) };
        } else if self.phase == Phase::Found {
            self.phase = Phase::Finished;
        }
    }

    /// Tells its variables, with Linux's names.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Whether it searches for the end of slow start, has found it and waits for the next growth, or is over until a timeout.
            start_phase: PHASES = f64::from(self.phase as u8);
            /// Arrival of the first ACK of this round trip (hystart_reset).
            round_start: "s" = self.begin.secs_f64();
            /// Arrival of the last ACK of this round trip's train.
            last_ack: "s" = self.train.secs_f64();
            /// Smallest round-trip time of this round trip; unknown before its first sample.
            curr_rtt: "s" = seconds(self.round_min);
            /// Round-trip samples of this round trip, up to those after which the smallest is evaluated.
            sample_cnt: "" = self.samples;
        }
    }
}

/// The time, in seconds, that Linux allows for segments that are sent and acknowledged together.
fn offload(window: &Window, ack: &Ack) -> f64 {
    let srtt = ack.srtt.secs_f64();
    (OFFLOAD.1 * srtt / (RATE_FACTOR * f64::from(ack.mss) * window.cwnd)).min(OFFLOAD.0)
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::History;

    /// A round of `acks` ACKs of one segment, `apart` milliseconds apart.
    fn round(history: &mut History, acks: u32, apart: f64) {
        history.next_round();
        for i in 0..acks {
            history.wait(if i == 0 { 0.1 } else { apart / 1e3 }).ack(1.0);
        }
    }

    fn hystart(cwnd: f64) -> History {
        let mut history = History::of("reno").slow_start("hystart").starting(cwnd);
        history.wait(1.0);
        history
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        // Half of 100 ms, with 1 ms for segmentation offload: 50.5 ms. Of ACKs 1 ms apart the 52nd comes 51 ms
        // after the first.
        let mut history = hystart(100.0);
        round(&mut history, 51, 1.0);
        history.window_is(151.0);
        round(&mut history, 51, 1.0);
        assert!(history.controller.in_slow_start());
        history.wait(0.001).ack(1.0);
        assert_eq!((history.cwnd(), history.ssthresh()), (202.0, 202.0));
        history.ack(1.0);
        assert!(history.cwnd() < 203.0);
    }

    #[test]
    fn its_variables_follow_the_train_and_the_smallest_round_trip_time() {
        // The round begins at 1.1 s. Its 52nd ACK finds the end 51 ms later; nine samples of 100 ms and more were taken.
        let mut history = hystart(100.0);
        round(&mut history, 51, 1.0);
        let expected = [
            ("start_phase", 0.0),
            ("round_start", 1.1),
            ("last_ack", 1.15),
            ("curr_rtt", 0.1),
            ("sample_cnt", 8.0),
        ];
        assert_eq!(history.variables(), expected);
        // An ACK that allows no growth leaves slow start to the next one.
        history.wait(0.001).ack_worth(1.0, 0.0);
        assert_eq!(history.variables()[0], ("start_phase", 1.0));
        history.ack(1.0);
        assert_eq!(history.variables()[0], ("start_phase", 2.0));
    }

    #[test]
    fn acks_that_are_far_apart_are_no_train() {
        // 2 ms is the limit; and one gap ends the train of a round.
        for (apart, ends) in [(2.0, true), (2.1, false)] {
            let mut history = hystart(100.0);
            round(&mut history, 40, apart);
            assert_eq!(!history.controller.in_slow_start(), ends, "{apart} ms");
        }
        let mut history = hystart(100.0);
        round(&mut history, 30, 1.0);
        history.wait(0.003);
        for _ in 0..40 {
            history.wait(0.001).ack(1.0);
        }
        assert!(history.controller.in_slow_start());
    }

    #[test]
    fn a_round_that_begins_with_a_small_window_has_no_train() {
        // ACKs at windows below 16 are not noted, so that there is a gap when it gets there.
        let mut history = hystart(8.0);
        round(&mut history, 60, 1.0);
        assert!(history.controller.in_slow_start());
        round(&mut history, 60, 1.0);
        assert!(!history.controller.in_slow_start());
    }

    #[test]
    fn a_rise_of_an_eighth_ends_slow_start_within_4_and_16_ms() {
        for (min, risen, ends) in [
            (80, 90, false),
            (80, 91, true),
            (20, 24, false),
            (20, 25, true),
            (400, 416, false),
            (400, 417, true),
        ] {
            let mut history = hystart(100.0).rtt_ms(f64::from(min));
            history.rtt_becomes(risen as u64).next_round();
            for _ in 0..8 {
                history.wait(0.003).ack(1.0);
            }
            history.window_is(108.0);
            history.wait(0.003).ack(1.0);
            assert_eq!(!history.controller.in_slow_start(), ends, "{min} {risen}");
        }
    }

    #[test]
    fn it_searches_again_after_a_timeout_only() {
        for (cause, ends) in [(Cause::Timeout, true), (Cause::Loss, false)] {
            let mut history = hystart(100.0);
            round(&mut history, 60, 1.0);
            assert!(!history.controller.in_slow_start());
            history.event(cause);
            history.controller = history.controller.clone().with_ssthresh(1000.0);
            round(&mut history, 60, 1.0);
            round(&mut history, 60, 1.0);
            assert_eq!(!history.controller.in_slow_start(), ends, "{cause:?}");
        }
    }
}
