//! BIC-TCP as Linux has it (tcp_bic.c): the same search with whole segments, `s_max` of 16, and two
//! corrections for delayed ACKs at once.
//!
//! It counts acknowledged segments, and also divides the number that adds one by the average number of
//! segments that an ACK acknowledges. So with delayed ACKs the window grows twice as fast as the rule says, except
//! up to `LOW_WINDOW`. The average begins with 2, and is kept in whole 16ths, rounded up: with an ACK for each
//! segment it stays at 31/16. Before the first loss, and after a timeout, the window grows by at least 5 % in a
//! round trip, doubled likewise.

use super::{Acknowledged, Counter, HZ, jiffies, segments, share, target};
use crate::algorithm::{Ack, Algorithm, Cause, Congestion, State, Window};

/// Window up to which it is Standard TCP.
const LOW_WINDOW: u32 = 14;
/// Largest increase for each window of acknowledged segments, before it is doubled.
const MAX_INCREMENT: u32 = 16;
/// Each step covers 1/B of the distance.
const B: u32 = 4;
/// Windows of acknowledged segments for the last B segments before the target, before it is doubled.
const SMOOTH_PART: u32 = 20;
/// Fraction of the window that a loss leaves, in 1024ths.
const BETA: u32 = 819;
/// Most acknowledged segments that add one without a target.
const MOST_WITHOUT_TARGET: u32 = 20;
/// The average number of segments of an ACK is kept in 16ths, and a new one has this share of it.
const RATIO: u32 = 16;

elephan_units::with_defaults! {
    /// Linux's BIC-TCP.
    #[derive(Clone, Debug)]
    pub struct Bic {
        /// Acknowledged segments that add one.
        per_segment: u32 = 0,
        /// The window that the search approaches; zero before the first loss.
        target: u32 = 0,
        /// Window and time of the last computation.
        computed: (u32, u32) = (0, 0),
        /// Segments of an ACK, on average, in 16ths.
        ack_segments: u32 = 2 * RATIO,
        /// The sender's state before this ACK.
        state: State = State::Open,
        acknowledged: Acknowledged = Acknowledged::default(),
        counter: Counter = Counter::default(),
    }
}

impl Bic {
    /// The number of acknowledged segments that add one at this window.
    fn per_segment(&self, cwnd: u32) -> u32 {
        if cwnd <= LOW_WINDOW {
            return cwnd;
        }
        let smooth = cwnd * SMOOTH_PART / B;
        let linear = cwnd / MAX_INCREMENT;
        let per = if cwnd < self.target {
            match (self.target - cwnd) / B {
                0..=1 => smooth,
                step if step > MAX_INCREMENT => linear,
                step => cwnd / step,
            }
        } else {
            match cwnd - self.target {
                beyond if beyond < B => smooth,
                beyond if beyond < MAX_INCREMENT * (B - 1) => cwnd * (B - 1) / beyond,
                _ => linear,
            }
        };
        let per = if self.target == 0 { per.min(MOST_WITHOUT_TARGET) } else { per };
        (per * RATIO / self.ack_segments).max(1)
    }
}

impl Algorithm for Bic {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        let acked = self.acknowledged.by(ack);
        if self.state == State::Open {
            self.ack_segments = self.ack_segments - self.ack_segments / RATIO + acked;
        }
        self.state = ack.state;
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let acked = self.counter.whole(ack);
        let (cwnd, now) = (segments(window), jiffies(ack.now));
        let (last, at) = self.computed;
        if last != cwnd || now - at > HZ / 32 {
            self.computed = (cwnd, now);
            self.per_segment = self.per_segment(cwnd);
        }
        self.counter.grow(self.per_segment, acked)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let cwnd = segments(window);
        if event.cause == Cause::Timeout {
            *self = Self { acknowledged: self.acknowledged, ..Self::default() };
        } else {
            self.target = target(cwnd, self.target, BETA);
            self.counter.count = 0;
        }
        f64::from(if cwnd <= LOW_WINDOW { cwnd / 2 } else { share(cwnd, BETA, 1024) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, close};

    #[test]
    fn segments_that_add_one_around_a_target_of_1000() {
        // With ACKs of one segment (16/16) as the rule says; below, (1000 - w)/4 for each window, at most 16.
        let bic = Bic { target: 1000, ack_segments: 16, ..Bic::default() };
        for (cwnd, per) in [
            (14, 14),
            (500, 31),      // 500/16
            (900, 56),      // (1000 - 900)/4 = 25, so 16
            (960, 96),      // 960/10
            (995, 995 * 5), // one or less: 1/5
            (1003, 1003 * 5),
            (1010, 303), // 1010 * 3/10
            (1047, 66),  // 1047 * 3/47
            (1048, 65),  // 1048/16
        ] {
            assert_eq!(bic.per_segment(cwnd), per, "{cwnd}");
        }
        // Without a target at least 5 % of a window of 1000; with ACKs of two segments half as many.
        assert_eq!(Bic { ack_segments: 16, ..Bic::default() }.per_segment(1000), 20);
        assert_eq!(Bic::default().per_segment(1000), 10);
        assert_eq!(Bic { target: 1000, ..Bic::default() }.per_segment(500), 15);
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // Loss at 1000: 799 (819/1024 of it), target 1000. Each 799/16 = 49 segments, halved to 24, add one.
        let mut history = History::of("bic").set("form", "linux").at(1000.0);
        history.loss().window_is(799.0);
        for _ in 0..12 {
            history.window_is(799.0);
            history.ack(2.0);
        }
        history.window_is(800.0);
        // Below the target: the next target is 800 * 1843/2048 = 719.
        history.loss().window_is(639.0);
        // Timeout: no target, so 5 % in a round trip, doubled.
        history.event(Cause::Timeout);
        assert_eq!(history.ssthresh(), 511.0);
        let mut history = history.at(511.0);
        history.round_trip().window_near(511.0 * 1.05, 40.0);
    }

    #[test]
    fn every_increase_is_doubled() {
        // From 799 towards a target of 1000 in a round trip: 32, not 16, if an ACK acknowledges two segments,
        // and 31 with an ACK for each. Each loss takes one 16th from the average in that case.
        let grown = |segments: f64, losses: u32| {
            let mut history = History::of("bic").set("form", "linux").at(1000.0);
            for _ in 0..losses {
                for recovering in [false, true, false] {
                    history.in_recovery = recovering;
                    history.idle_acks(1);
                }
            }
            history.loss();
            for _ in 0..100 {
                history.ack_worth(segments, 0.0);
            }
            let before = history.cwnd();
            for _ in 0..(before / segments) as u32 {
                history.wait(0.1 * segments / before).ack(segments);
            }
            history.cwnd() - before
        };
        for (segments, losses, growth) in [(2.0, 0, 32.0), (1.0, 0, 31.0), (1.0, 15, 16.0)] {
            close(grown(segments, losses), growth, 1.0);
        }
    }
}
