//! Vegas as Linux has it (tcp_vegas.c): the window doubles in every round trip of slow start, and beyond it changes
//! once in a round trip, by a segment. Outside the open state it grows as Standard TCP's.

use elephan_units::Time;

use super::{Counter, segments};
use crate::algorithm::{Ack, Algorithm, Congestion, Start, State, Window};
use crate::reno;

/// Queued segments below which the window grows, above which it shrinks, and above which slow start ends.
const ALPHA: u32 = 2;
const BETA: u32 = 4;
const GAMMA: u32 = 1;
/// A round trip with fewer samples is not evaluated: each may be of a delayed ACK.
const LEAST_SAMPLES: u32 = 3;

elephan_units::with_defaults! {
    /// Linux's Vegas.
    #[derive(Clone, Debug)]
    pub struct Vegas {
        counter: Counter = Counter::default(),
        /// Smallest round-trip time since the last silence, and of the round trip that is being measured, in microseconds
        /// plus one.
        base_us: u32 = u32::MAX,
        min_us: u32 = u32::MAX,
        samples: u32 = 0,
        round: u64 = 0,
        /// Whether all data arrived in order at the last ACK.
        open: bool = true,
        /// Whether the window has shrunk below the threshold, which follows it.
        shrunk: bool = false,
        /// At the ACK that ends a round trip: the number of its samples, and the smallest.
        ended: Option<(u32, u32)> = None,
    }
}

impl Vegas {
    /// Discards what was measured in this round trip.
    fn wipe(&mut self) {
        (self.samples, self.min_us) = (0, u32::MAX);
    }

    /// The window at the rate of the round trip that has ended, and the segments queued, if it can be evaluated.
    fn evaluated(&mut self, window: &Window) -> Option<(u32, u32)> {
        let (_, rtt) = self.ended.filter(|&(samples, _)| samples >= LEAST_SAMPLES)?;
        let cwnd = u64::from(segments(window));
        let target = cwnd * u64::from(self.base_us) / u64::from(rtt);
        let queued = cwnd * u64::from(rtt - self.base_us) / u64::from(self.base_us);
        Some((target as u32, u32::try_from(queued).unwrap_or(u32::MAX)))
    }
}

impl Algorithm for Vegas {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let sample = u32::try_from(rtt.picos() / 1_000_000).unwrap_or(u32::MAX - 1).saturating_add(1);
            self.base_us = self.base_us.min(sample);
            self.min_us = self.min_us.min(sample);
            self.samples += 1;
        }
        let open = ack.state == State::Open;
        if open && !self.open {
            self.wipe();
        }
        self.open = open;
        self.ended = None;
        if ack.round > self.round {
            self.round = ack.round;
            self.ended = Some((self.samples, self.min_us));
            self.wipe();
        }
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        if std::mem::take(&mut self.shrunk) {
            return Some(Start { growth: 0.0, ends: true });
        }
        match self.evaluated(window) {
            Some((target, queued)) if self.open && queued > GAMMA => {
                Some(Start { growth: (f64::from(target + 1) - window.cwnd).min(0.0), ends: true })
            }
            _ => Some(Start { growth: ack.segments, ends: false }),
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        if !self.open || self.ended.is_some_and(|(samples, _)| samples < LEAST_SAMPLES) {
            let acked = self.counter.whole(ack);
            return self.counter.grow(segments(window), acked);
        }
        match self.evaluated(window) {
            Some((_, queued)) if queued > BETA => {
                self.shrunk = true;
                -1.0
            }
            Some((_, queued)) if queued < ALPHA => 1.0,
            _ => 0.0,
        }
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        self.counter.count = 0;
        libm::floor(reno::decrease(&Congestion { flight_size: window.cwnd, ..*event }))
    }

    fn resume(&mut self, _: Time) {
        self.base_us = u32::MAX;
        self.wipe();
    }
}

#[cfg(test)]
mod tests {
    use crate::history::History;

    /// A round trip of 20 samples of `ms`, and the first ACK of the next.
    fn round(history: &mut History, ms: u64) {
        history.rtt_becomes(ms).acks(20, 1.0).next_round().ack(1.0);
    }

    fn vegas() -> History {
        History::of("vegas").set("form", "linux").rtt_ms(100.0)
    }

    #[test]
    fn slow_start_doubles_in_every_round_trip_until_a_segment_is_queued() {
        // From 20: 21 in each round of 21 ACKs. Two segments are queued by 105 ms at 62: 62 * 5/100 = 3. The window
        // becomes that of the rate, 62 * 100/105 + 1 = 60.
        let mut history = vegas().starting(20.0);
        round(&mut history, 100);
        history.window_is(41.0);
        round(&mut history, 100);
        history.window_is(62.0);
        round(&mut history, 105);
        // The 20 samples of 105 ms were slow start's, up to 82; the ACK after them evaluates the round.
        assert_eq!((history.cwnd(), history.controller.in_slow_start()), (79.0, false));
    }

    #[test]
    fn the_window_changes_by_a_segment_in_a_round_trip() {
        // At 100: 101 ms queue 1 segment, 103 ms 3, 105 ms 4.
        for (ms, cwnd) in [(101, 101.0), (103, 100.0), (106, 99.0)] {
            let mut history = vegas().starting(100.0);
            history.controller = history.controller.with_ssthresh(100.0);
            round(&mut history, 100);
            history.window_is(101.0);
            history.controller.moderate(100.0);
            round(&mut history, ms);
            assert_eq!(history.cwnd(), cwnd, "{ms} ms");
            // Nor does a window that has shrunk return to slow start.
            history.ack(1.0).ack(1.0);
            assert_eq!((history.cwnd(), history.controller.in_slow_start()), (cwnd, false), "{ms} ms");
        }
    }
}
