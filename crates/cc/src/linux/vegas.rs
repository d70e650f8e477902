//! Vegas as Linux has it (tcp_vegas.c): the window doubles in every round trip of slow start, and beyond it changes
//! once in a round trip, by a segment. Outside the open state it grows as Standard TCP's.

use elephan_units::Time;

use super::{Counter, microseconds, segments};
use crate::algorithm::{Ack, Algorithm, Congestion, Start, State, Window};
use crate::reno;

/// Queued segments below which the window grows, above which it shrinks, and above which slow start ends.
const ALPHA: u32 = 2;
const BETA: u32 = 4;
const GAMMA: u32 = 1;
/// A round trip with fewer samples is not evaluated: each may be of a delayed ACK.
const LEAST_SAMPLES: u32 = 3;
/// Smallest window that the rule leaves.
const MIN_WINDOW: f64 = 2.0;

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
        /// The round trip ends when more than this is acknowledged.
        end: u64 = 0,
        /// Whether all data arrived in order at the last ACK.
        open: bool = true,
        /// Whether the window has shrunk below the threshold, which follows it.
        shrunk: bool = false,
    }
}

/// What the rule says at an ACK.
enum Advice {
    /// To grow as Standard TCP does.
    Standard,
    /// To do nothing until the round trip ends.
    Wait,
    /// The window at the rate of the round trip that has ended, and the segments queued.
    Change { target: u32, queued: u32 },
}

impl Vegas {
    /// Discards what was measured in this round trip.
    fn wipe(&mut self) {
        (self.samples, self.min_us) = (0, u32::MAX);
    }

    /// The advice at an ACK that lets the window grow.
    fn advise(&mut self, window: &Window, ack: &Ack) -> Advice {
        if !self.open {
            return Advice::Standard;
        }
        if ack.una <= self.end {
            return Advice::Wait;
        }
        self.end = ack.next;
        let (samples, rtt) = (self.samples, u64::from(self.min_us));
        self.wipe();
        if samples < LEAST_SAMPLES {
            return Advice::Standard;
        }
        let (cwnd, base) = (u64::from(segments(window)), u64::from(self.base_us));
        let queued = u32::try_from(cwnd * (rtt - base) / base).unwrap_or(u32::MAX);
        Advice::Change { target: (cwnd * base / rtt) as u32, queued }
    }

    /// The change of a window in congestion avoidance.
    fn change(&mut self, window: &Window, ack: &Ack, advice: &Advice) -> f64 {
        match *advice {
            Advice::Standard => {
                let acked = self.counter.whole(ack);
                self.counter.grow(segments(window), acked)
            }
            Advice::Change { queued, .. } if queued > BETA => {
                self.shrunk = true;
                (MIN_WINDOW - window.cwnd).max(-1.0)
            }
            Advice::Change { queued, .. } if queued < ALPHA => 1.0,
            Advice::Change { .. } | Advice::Wait => 0.0,
        }
    }
}

impl Algorithm for Vegas {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let sample = microseconds(rtt).saturating_add(1);
            self.base_us = self.base_us.min(sample);
            self.min_us = self.min_us.min(sample);
            self.samples += 1;
        }
        let open = ack.state == State::Open;
        if open && !self.open {
            self.end = ack.next;
            self.wipe();
        }
        self.open = open;
    }

    fn has_slow_start(&self) -> bool {
        true
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        let advice = self.advise(window, ack);
        if self.shrunk {
            let growth = self.change(window, ack, &advice);
            self.shrunk = false;
            return Some(Start { growth, ends: true });
        }
        Some(match advice {
            Advice::Change { target, queued } if queued > GAMMA => {
                Start { growth: (f64::from(target + 1) - window.cwnd).min(0.0), ends: true }
            }
            Advice::Standard => Start { growth: ack.segments, ends: false },
            // What is beyond the threshold is not used.
            _ => Start { growth: ack.segments.min(window.ssthresh - window.cwnd), ends: false },
        })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let advice = self.advise(window, ack);
        self.change(window, ack, &advice)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        self.counter.count = 0;
        // The threshold is the window again.
        self.shrunk = false;
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
    use crate::{Cause, Quantisation};

    fn vegas() -> History {
        History::of("vegas").set("form", "linux").rtt_ms(100.0)
    }

    #[test]
    fn slow_start_doubles_in_every_round_trip_until_a_segment_is_queued() {
        // From 20: the first ACK begins a round trip of 20 segments, and the 22nd one of 41.
        let mut history = vegas().starting(20.0);
        history.acks(21, 1.0).window_is(41.0);
        history.ack(1.0).window_is(42.0);
        history.rtt_becomes(105).acks(41, 1.0).window_is(83.0);
        // 105 ms queue 83 * 5/100 = 4 segments. The window becomes that of the rate, 83 * 100/105 + 1 = 80.
        history.ack(1.0).window_is(80.0);
        assert!(!history.controller.in_slow_start());
    }

    #[test]
    fn the_window_changes_by_a_segment_in_a_round_trip() {
        // At 100: 101 ms queue 1 segment, 103 ms 3, 106 ms 5.
        for (ms, cwnd) in [(101, 101.0), (103, 100.0), (106, 99.0)] {
            for quantisation in [Quantisation::None, Quantisation::RoundDown] {
                let mut history = vegas().quantised(quantisation).starting(100.0);
                history.controller = history.controller.with_ssthresh(100.0);
                history.ack(1.0).rtt_becomes(ms).acks(101, 1.0).window_is(cwnd);
                // Nor does a window that has shrunk return to slow start.
                history.ack(1.0).ack(1.0).window_is(cwnd);
                assert!(!history.controller.in_slow_start());
            }
        }
    }

    #[test]
    fn a_loss_after_the_window_has_shrunk_leaves_the_next_slow_start_alone() {
        // 100 shrinks to 99, and a loss follows before the next ACK. After a timeout slow start goes on beyond the first ACK.
        let mut history = vegas().starting(100.0);
        history.controller = history.controller.with_ssthresh(100.0);
        history.ack(1.0).rtt_becomes(106).acks(101, 1.0).window_is(99.0);
        history.loss().event(Cause::Timeout);
        history.ack(1.0).window_is(2.0);
        assert!(history.controller.in_slow_start(), "{}", history.ssthresh());
    }
}
