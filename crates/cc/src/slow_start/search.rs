//! SEARCH, Slow start Exit At Right CHokepoint, version 3.0 (draft-chung-ietf-ccwg-00, June 2024, section 3): slow start ends when what was
//! delivered in a window of 3.5 round-trip times is clearly less than twice of what was delivered in that window a round trip before.
//!
//! Numbers of lines are those of the draft's algorithm. It differs in these points:
//!
//! - Time is divided into bins from the first round-trip sample of data on, which is INITIAL_RTT. The draft begins with the connection.
//! - Line 27 clears the bins that were passed, and not the last one that was filled, as the draft's text says.
//! - There is a bin more than NUM_BINS, because lines 13 to 17 may look at as many as W + EXTRA_BINS + 1.
//! - The bins are reset when too many were passed without an ACK, and when the application limits the window; and the window that it
//!   leaves is not below the initial one: version 3.1, the authors' module for Linux (`search_update_bins`, `search_exit_slow_start`).
//!
//! Version 4.0, in revisions of 2026 (draft-chung-ccwg-search-09 and later), compares with what was sent, and drains the queue; it is
//! another algorithm.

use elephan_units::Time;

use crate::algorithm::{Ack, Cause, Start, State, Window};
use crate::parameter::parameters;
use crate::variable::{Tell, seconds, variables};

parameters! {
    /// SEARCH's parameters (sections 3 and 4).
    pub struct Parameters {
        /// Time over which delivered data is compared, in initial round-trip times: the factor of WINDOW_SIZE.
        window: f64 = 3.5, 1.0..=100.0, "";
        /// Slow start ends when what was delivered falls short of twice the earlier amount by this share of that: THRESH.
        thresh: f64 = 0.35, 0.0..=1.0, "";
        /// Bins without an ACK, in units of those of an initial round-trip time, after which all bins are reset (version 3.1:
        /// `search_alpha`).
        alpha: f64 = 2.0, 0.0..=1e6, "";
    }
}

/// Bins of a window: W.
const W: i64 = 10;
/// Bins beyond those of a window: EXTRA_BINS.
const EXTRA_BINS: i64 = 15;
/// Bins that are kept.
const BINS: i64 = W + EXTRA_BINS + 1;

/// How far it is, as [`PHASES`] names it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Searching,
    /// The end is found, and slow start ends with the next growth.
    Found,
    Finished,
}

/// The phases, in their order.
const PHASES: &[&str] = &["searching", "found", "finished"];

elephan_units::with_defaults! {
    /// SEARCH.
    #[derive(Clone, Debug)]
    pub struct Search {
        parameters: Parameters = Parameters::default(),
        phase: Phase = Phase::Searching,
        /// The window at the first ACK, in segments; zero before it.
        initial_window: f64 = 0.0,
        /// INITIAL_RTT; `Time::MAX` before the first sample.
        initial_rtt: Time = Time::MAX,
        /// The last round-trip sample.
        rtt: Time = Time::MAX,
        /// Segments delivered in each of the last bins; the bin of an index is the one at its remainder.
        bins: [f64; BINS as usize] = [0.0; BINS as usize],
        /// The last bin that was filled: curr_idx.
        current: i64 = -1,
        bin_end: Time = Time::ZERO,
        /// Segments delivered up to the end of that bin.
        delivered: f64 = 0.0,
        /// What the last check compared: curr_delv and prev_delv; NaN without one.
        compared: (f64, f64) = (f64::NAN, f64::NAN),
        /// By how much the window is beyond the congestion point, where that is found.
        overshoot: f64 = 0.0,
    }
}

impl Search {
    /// SEARCH before the first ACK.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// BIN_DURATION (line 5).
    fn bin_duration(&self) -> Time {
        self.initial_rtt.mul_f64(self.parameters.window / W as f64).max(Time::from_picos(1))
    }

    /// Fills bins from `now` on. INITIAL_RTT stays if `keeps_rtt`.
    fn begin(&mut self, keeps_rtt: bool, now: Time) {
        let Self { parameters, initial_window, rtt, delivered, .. } = *self;
        let initial_rtt = if keeps_rtt { self.initial_rtt } else { rtt };
        *self = Self { initial_window, initial_rtt, rtt, delivered, ..Self::new(parameters) };
        self.bin_end = now.saturating_add(self.bin_duration());
    }

    /// Processes what an ACK delivered (lines 10 to 23).
    pub fn observe(&mut self, window: &Window, ack: &Ack) {
        let is_first = self.initial_window == 0.0;
        if is_first {
            self.initial_window = window.cwnd;
        }
        self.rtt = ack.rtt.unwrap_or(self.rtt);
        if self.initial_rtt == Time::MAX || self.phase == Phase::Finished {
            if self.rtt > Time::ZERO && self.rtt < Time::MAX {
                // What was delivered before belongs to the first bin of a connection, and to none of a later slow start.
                self.delivered = if is_first { 0.0 } else { ack.delivered };
                self.begin(false, ack.now);
            }
            return;
        }
        if ack.now <= self.bin_end || self.phase == Phase::Found {
            return;
        }
        if self.update_bins(ack) {
            self.check();
        }
    }

    /// Fills the bins up to now (lines 24 to 31). Returns false if they were reset.
    fn update_bins(&mut self, ack: &Ack) -> bool {
        let duration = self.bin_duration();
        let passed = (ack.now.since(self.bin_end).picos() / duration.picos()).cast_signed() + 1;
        let of_rtt = (self.initial_rtt.picos() / duration.picos()) as f64;
        let is_app_limited = ack.segments == 0.0 && ack.state == State::Open;
        if is_app_limited || passed as f64 > self.parameters.alpha * of_rtt.max(1.0) {
            self.delivered = ack.delivered;
            self.begin(passed <= W, ack.now);
            return false;
        }
        self.bin_end = self.bin_end.saturating_add(duration * passed.cast_unsigned());
        for _ in 0..passed {
            self.current += 1;
            self.set(self.current, 0.0);
        }
        self.set(self.current, ack.delivered - self.delivered);
        self.delivered = ack.delivered;
        true
    }

    /// Compares what was delivered with twice what was delivered a round trip before (lines 12 to 22).
    fn check(&mut self) {
        let duration = self.bin_duration();
        let back = (self.rtt.picos() / duration.picos()).cast_signed();
        let previous = self.current - back;
        if previous < W || back > EXTRA_BINS {
            return;
        }
        let fraction = (self.rtt.picos() % duration.picos()) as f64 / duration.picos() as f64;
        let delivered = self.sum_bins(self.current - W, self.current, 0.0);
        let before = self.sum_bins(previous - W, previous, fraction);
        self.compared = (delivered, before);
        if self.norm_diff() >= self.parameters.thresh {
            self.phase = Phase::Found;
            let congestion = self.current - (2 * self.initial_rtt.picos() / duration.picos()).cast_signed();
            self.overshoot = self.sum_bins(congestion, self.current, 0.0);
        }
    }

    /// By which share the delivered amount falls short of twice the earlier one (line 18); NaN without one.
    fn norm_diff(&self) -> f64 {
        let (delivered, before) = self.compared;
        (2.0 * before - delivered) / (2.0 * before)
    }

    /// Segments delivered in the bins after `first` up to `last`, all of these shifted back by a `fraction` of a bin (lines 32 to 38).
    fn sum_bins(&self, first: i64, last: i64, fraction: f64) -> f64 {
        let middle: f64 = (first + 1..last).map(|index| self.get(index)).sum();
        middle + self.get(first) * fraction + self.get(last) * (1.0 - fraction)
    }

    fn place(index: i64) -> usize {
        index.rem_euclid(BINS) as usize
    }

    fn get(&self, index: i64) -> f64 {
        if index < 0 { 0.0 } else { self.bins[Self::place(index)] }
    }

    fn set(&mut self, index: i64, segments: f64) {
        self.bins[Self::place(index)] = segments;
    }

    /// The growth of the window, and whether slow start is over (lines 39 to 42).
    pub fn grow(&mut self, window: &Window, ack: &Ack) -> Start {
        if self.phase == Phase::Found {
            self.phase = Phase::Finished;
            let most = (window.cwnd - self.initial_window).max(0.0);
            return Start { growth: -self.overshoot.min(most), ends: true };
        }
        Start { growth: ack.segments, ends: false }
    }

    /// A congestion event: after a timeout it measures the initial round-trip time again.
    pub fn on_congestion(&mut self, cause: Cause) {
        if cause == Cause::Timeout {
            let Self { parameters, initial_window, .. } = *self;
            *self = Self { initial_window, phase: Phase::Finished, ..Self::new(parameters) };
        } else {
            self.phase = Phase::Finished;
        }
    }

    /// Tells its variables, with the draft's names.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        let is_measured = self.initial_rtt < Time::MAX;
        let (curr_delv, prev_delv) = self.compared;
        variables! { tell;
            /// Whether it searches for the end of slow start, has found it and waits for the next growth, or is over until the next one.
            start_phase: PHASES = f64::from(self.phase as u8);
            /// Length of a bin, BIN_DURATION (line 5); unknown before the first round-trip time.
            bin_duration: "s" = if is_measured { seconds(self.bin_duration()) } else { f64::NAN };
            /// Number of bins that are filled, curr_idx + 1.
            bins_filled: "" = (self.current + 1) as f64;
            /// Segments delivered in the last window of bins, curr_delv (line 15); unknown before the first check.
            curr_delv: "segments" = curr_delv;
            /// Segments delivered in the same time a round trip before, prev_delv (line 17); unknown before the first check.
            prev_delv: "segments" = prev_delv;
            /// Share by which curr_delv falls short of twice prev_delv, norm_diff (line 18); unknown before the first check.
            norm_diff: "" = self.norm_diff();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::History;

    /// A connection with bins of 35 ms, the first of which is filled with these segments.
    fn after_a_bin_of(segments: f64) -> History {
        let mut history = History::of("reno").slow_start("search").starting(100.0);
        // The first ACK, at 0.1 s, begins the bins; 40 ms later the first is over.
        history.wait(0.1).ack(0.5 * segments).wait(0.04).ack(0.5 * segments);
        history
    }

    /// Another bin with these segments.
    fn bin(history: &mut History, segments: f64) {
        history.wait(0.035).ack(segments);
    }

    #[test]
    fn a_constant_delivery_ends_slow_start_with_thirteen_bins() {
        // A round trip is 100/35 = 2 bins and 6/7 of one: from bin 12 on there are ten of a round trip before. All have 7: curr_delv = 70;
        // prev_delv = 9 * 7 + 7 * 6/7 + 7 * 1/7 = 70; norm_diff = (140 - 70)/140 = 0.5. The window is 100 + 12 * 7 = 184, and
        // 2 * 100/35 = 5 bins of it, 35, are beyond the congestion point.
        let mut history = after_a_bin_of(7.0);
        for _ in 1..12 {
            bin(&mut history, 7.0);
        }
        history.window_is(184.0);
        assert!(history.controller.in_slow_start());
        bin(&mut history, 7.0);
        assert_eq!((history.cwnd(), history.ssthresh()), (149.0, 149.0));
        let expected = [
            ("start_phase", 2.0),
            ("bin_duration", 0.035),
            ("bins_filled", 13.0),
            ("curr_delv", 70.0),
            ("prev_delv", 70.0),
            ("norm_diff", 0.5),
        ];
        assert_eq!(history.variables(), expected);
    }

    #[test]
    fn a_norm_below_the_threshold_does_not_end_it() {
        // Bins 0 to 7 have 2, later ones 6. At bin 14: curr_delv = 3 * 2 + 7 * 6 = 48; prev_delv = 5 * 2 + 4 * 6 + 2 * 6/7 + 6/7 = 36.5714;
        // norm_diff = (73.1429 - 48)/73.1429 = 0.34375. At bin 15: 52 and 40.5714, 0.35915.
        let mut history = after_a_bin_of(2.0);
        for index in 1..15 {
            bin(&mut history, if index < 8 { 2.0 } else { 6.0 });
        }
        assert!(history.controller.in_slow_start());
        assert_eq!(history.variables().last(), Some(&("norm_diff", 0.343_75)));
        bin(&mut history, 6.0);
        assert!(!history.controller.in_slow_start());
        // 100 + 16 + 7 * 6 = 158, less five bins of 6.
        history.window_is(128.0);
    }

    #[test]
    fn a_delivery_that_doubles_in_each_round_trip_goes_on() {
        let mut history = after_a_bin_of(1.0);
        for index in 1..60 {
            bin(&mut history, libm::exp2(0.35 * f64::from(index)));
        }
        assert!(history.controller.in_slow_start());
        let (_, norm_diff) = history.variables()[5];
        assert!(norm_diff.abs() < 0.03, "{norm_diff}");
    }

    #[test]
    fn it_leaves_no_less_than_the_initial_window() {
        let mut history = after_a_bin_of(7.0);
        for _ in 1..12 {
            bin(&mut history, 7.0);
        }
        history.controller.moderate(110.0);
        bin(&mut history, 7.0);
        assert_eq!((history.cwnd(), history.ssthresh()), (100.0, 100.0));
    }

    #[test]
    fn without_acks_for_two_round_trips_the_bins_begin_anew() {
        // alpha = 2 times the 2 bins of a round trip: four bins may pass.
        for (bins, filled) in [(4.0, 13.0), (5.0, 0.0)] {
            let mut history = after_a_bin_of(7.0);
            for _ in 1..9 {
                bin(&mut history, 7.0);
            }
            history.wait(0.035 * bins).ack(7.0);
            assert_eq!(history.variables()[2], ("bins_filled", filled));
        }
        // More than a window of bins, and the round-trip time is measured again.
        let mut history = after_a_bin_of(7.0);
        history.rtt_becomes(200).wait(0.5).ack(1.0);
        assert_eq!(history.variables()[1], ("bin_duration", 0.07));
    }

    #[test]
    fn an_application_that_limits_the_window_ends_nothing() {
        let mut history = after_a_bin_of(7.0);
        for _ in 1..40 {
            history.wait(0.035).ack_worth(7.0, 0.0);
        }
        assert!(history.controller.in_slow_start());
        assert_eq!(history.variables()[2], ("bins_filled", 0.0));
    }

    #[test]
    fn a_later_slow_start_searches_from_the_beginning() {
        for cause in [Cause::Loss, Cause::Timeout] {
            let mut history = after_a_bin_of(7.0);
            for _ in 1..11 {
                bin(&mut history, 7.0);
            }
            history.event(cause);
            history.controller = history.controller.clone().with_ssthresh(1e6);
            bin(&mut history, 7.0);
            assert_eq!(
                history.variables()[..3],
                [("start_phase", 0.0), ("bin_duration", 0.035), ("bins_filled", 0.0)]
            );
        }
    }
}
