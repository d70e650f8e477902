//! H-TCP as Linux has it (tcp_htcp.c), in integers: the increase with 7 binary digits after the point,
//! round-trip times in milliseconds, rounded up.
//!
//! What differs from the published rule:
//! - The increase is scaled by `8 T_min / 100 ms`, whose inverse is rounded down to a whole number between 4 and
//!   80, and is recomputed only when the window has grown by a segment; after a loss the first segment is added
//!   at the speed of before.
//! - Time counts from the end of a recovery, and idle time counts.
//! - Goodput is measured when a window of segments has been delivered; what is compared at a loss is the largest
//!   since three round trips after the last loss. After a change both this loss and the next halve the window.
//! - Below 10 ms of round-trip time every loss halves the window.
//! - At the ACK that adds a segment, the segments that it acknowledges do not count towards the next one.

use super::{Acknowledged, Counter, HZ, jiffies, jiffies_of, microseconds, segments};
use crate::algorithm::{Ack, Algorithm, Cause, Congestion, State, Window};
use crate::variable::{Tell, variables};

/// One, with 7 binary digits after the point.
const ONE: u32 = 1 << 7;
/// Smallest and largest fraction of the window that a loss leaves.
const BETA: (u32, u32) = (ONE / 2, 102);
/// Most milliseconds by which a sample may raise the largest round-trip time.
const MAX_RTT_RISE: u32 = 20;
/// Round-trip time, in milliseconds, up to which every loss halves the window.
const SHORT_RTT: u32 = 10;
/// Round trips after a loss whose goodput replaces what was measured, and is not averaged.
const FRESH: u32 = 3;

/// The last congestion event, the largest round-trip time and the goodput before a reduction.
#[derive(Clone, Copy, Debug)]
struct Past {
    last_congestion: Option<u32>,
    max_rtt: u32,
    goodput_before: u32,
}

elephan_units::with_defaults! {
    /// Linux's H-TCP.
    #[derive(Clone, Debug)]
    pub struct Htcp {
        /// The increase and the fraction that a loss leaves, with 7 binary digits after the point.
        alpha: u32 = ONE,
        beta: u32 = BETA.0,
        /// Whether a loss without a change of goodput has passed.
        adapts: bool = false,
        min_rtt: u32 = 0,
        max_rtt: u32 = 0,
        /// Start of the connection, or end of the last recovery.
        last_congestion: Option<u32> = None,
        /// In a recovery, at whose end the clock starts: what an undo restores.
        undo: Option<Past> = None,
        /// The sender's state before this ACK.
        state: State = State::Open,
        /// Segments of the last ACK.
        acked: u32 = 1,
        /// Segments delivered since the goodput was last measured, and when that was.
        delivered_since: u32 = 0,
        measured: Option<u32> = None,
        /// Averaged goodput, its largest since the last loss, and that at the loss before: segments per second.
        goodput: u32 = 0,
        goodput_max: u32 = 0,
        goodput_before: u32 = 0,
        acknowledged: Acknowledged = Acknowledged::default(),
        counter: Counter = Counter::default(),
    }
}

impl Htcp {
    /// Milliseconds since the last congestion event.
    fn since_congestion(&self, now: u32) -> u32 {
        self.last_congestion.map_or(0, |last| now.saturating_sub(last))
    }

    /// Takes a round-trip time, in milliseconds.
    fn take_rtt(&mut self, rtt: u32) {
        if self.min_rtt == 0 || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if self.state == State::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt <= self.max_rtt.saturating_add(MAX_RTT_RISE) {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    /// Counts segments delivered, and measures the goodput when they are a window.
    fn measure(&mut self, acked: u32, cwnd: u32, now: u32) {
        if !matches!(self.state, State::Open | State::Disorder) {
            self.delivered_since = 0;
            self.measured = Some(now);
            return;
        }
        self.delivered_since += acked;
        // An increase larger than the window wraps around, and nothing is measured.
        let enough = cwnd.wrapping_sub((self.alpha / ONE).max(1));
        // The first span begins when the kernel's clock was zero, long ago.
        let span = self.measured.map_or(u32::MAX, |measured| now - measured);
        if self.min_rtt == 0 || self.delivered_since < enough || span < self.min_rtt {
            return;
        }
        let goodput = (u64::from(self.delivered_since) * u64::from(HZ) / u64::from(span)) as u32;
        if self.since_congestion(now) / self.min_rtt <= FRESH {
            self.goodput = goodput;
            self.goodput_max = goodput;
        } else {
            self.goodput = (3 * self.goodput + goodput) / 4;
            self.goodput_max = self.goodput_max.max(self.goodput);
        }
        self.delivered_since = 0;
        self.measured = Some(now);
    }

    /// Computes the fraction that this congestion event leaves.
    fn adapt_beta(&mut self) {
        let (now, before) = (u64::from(self.goodput_max), u64::from(self.goodput_before));
        self.goodput_before = self.goodput_max;
        let changed = !(4 * before..=6 * before).contains(&(5 * now));
        if !changed && self.adapts && self.min_rtt > SHORT_RTT && self.max_rtt > 0 {
            self.beta = (self.min_rtt.saturating_mul(ONE) / self.max_rtt).clamp(BETA.0, BETA.1);
        } else {
            self.beta = BETA.0;
            self.adapts = !changed;
        }
    }

    /// Computes the increase, `2 (1 - beta)` times that since the last congestion event.
    fn adapt_alpha(&mut self, now: u32) {
        let since = self.since_congestion(now);
        let mut factor = 1;
        if since > HZ {
            let over = since - HZ;
            // In the kernel's 32 bits the square wraps around after two minutes.
            let square = (over / 2).wrapping_mul(over / 2) / HZ;
            factor += (10_u32.wrapping_mul(over).wrapping_add(square)) / HZ;
        }
        if self.min_rtt > 0 {
            let scale = (8 * HZ / self.min_rtt.saturating_mul(10)).clamp(4, 80);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl Algorithm for Htcp {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        let now = jiffies(ack.now);
        let rtt = ack.rtt.map(|rtt| jiffies_of(microseconds(rtt)));
        // The connection began when the first data was sent.
        self.last_congestion.get_or_insert(now - rtt.unwrap_or(0).min(now));
        let acked = self.acknowledged.by(ack);
        if self.state == State::Open {
            self.acked = acked;
        }
        if let Some(rtt) = rtt {
            self.take_rtt(rtt);
        }
        self.measure(acked, segments(window), now);
        self.state = ack.state;
        if self.state == State::Open && self.undo.take().is_some() {
            self.last_congestion = Some(now);
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let acked = std::mem::replace(&mut self.acked, 1);
        if self.counter.count.wrapping_mul(self.alpha) / ONE < segments(window) {
            self.counter.count += acked;
            return 0.0;
        }
        self.counter.count = 0;
        self.adapt_alpha(jiffies(ack.now));
        1.0
    }

    fn undo(&mut self) {
        if let Some(Past { last_congestion, max_rtt, goodput_before }) = self.undo.take() {
            (self.last_congestion, self.max_rtt, self.goodput_before) =
                (last_congestion, max_rtt, goodput_before);
        }
    }

    fn uses_rest(&self) -> bool {
        false
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let now = jiffies(event.now);
        self.adapt_beta();
        self.adapt_alpha(now);
        let queueing = self.max_rtt.saturating_sub(self.min_rtt);
        self.max_rtt = self.max_rtt - queueing + queueing.saturating_mul(95) / 100;
        self.counter.count = 0;
        let (max_rtt, goodput_before) = (self.max_rtt, self.goodput_before);
        let last_congestion = self.last_congestion.replace(now);
        self.undo = Some(Past { last_congestion, max_rtt, goodput_before });
        self.state = match event.cause {
            Cause::Loss => State::Recovery,
            Cause::Ecn => State::Cwr,
            Cause::Timeout => State::Loss,
        };
        f64::from(segments(window) * self.beta / ONE)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Increase in a round trip, scaled with beta.
            alpha: "segments" = f64::from(self.alpha) / f64::from(ONE);
            /// Fraction of the window that the last congestion event left.
            beta: "" = f64::from(self.beta) / f64::from(ONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;

    fn increase_after(seconds: u32, min_rtt: u32) -> u32 {
        let mut htcp = Htcp { min_rtt, last_congestion: Some(0), ..Htcp::default() };
        htcp.adapt_alpha(HZ * seconds);
        htcp.alpha
    }

    #[test]
    fn the_increase() {
        // After 3 s: 1 + (10 * 2000 + 1000 * 1000/1000)/1000 = 22, times 8 over 8000/(10 T_min): at 100 ms 8, at
        // 82 ms 9.75 and so 9: 176/9 = 19; at 300 ms the smallest, 4: 44; at 5 ms the largest, 80: 2.
        // In the first second 1, and not less after scaling.
        for (seconds, min_rtt, alpha) in
            [(3, 100, 22), (3, 82, 19), (3, 300, 44), (3, 5, 2), (1, 5, 1), (1, 300, 2)]
        {
            assert_eq!(increase_after(seconds, min_rtt), alpha * ONE, "{seconds} s, {min_rtt} ms");
        }
    }

    #[test]
    fn what_a_loss_leaves() {
        // T_min/T_max = 100/150: 85/128. After a change of goodput by more than a fifth two losses halve.
        let mut htcp = Htcp { min_rtt: 100, adapts: true, ..Htcp::default() };
        let mut loss = |goodput, max_rtt| {
            htcp.goodput_max = goodput;
            htcp.max_rtt = max_rtt;
            htcp.adapt_beta();
            htcp.beta
        };
        let found = [
            loss(1000, 150),
            loss(1000, 150),
            loss(1000, 150),
            loss(1200, 110),
            loss(959, 150),
            loss(959, 150),
            loss(959, 300),
            loss(770, 150),
            loss(770, 150),
        ];
        assert_eq!(found, [64, 64, 85, 102, 64, 64, 64, 85, 85]);
    }

    #[test]
    fn short_paths_halve() {
        let mut htcp = Htcp { min_rtt: 10, max_rtt: 12, adapts: true, ..Htcp::default() };
        htcp.adapt_beta();
        assert_eq!(htcp.beta, 64);
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // Loss at 100: 50. The first ACK after recovery counts 1, each later one 2, except for one at which the
        // window grows: 26 ACKs make 51, and the next adds a segment and counts none; so do 26 more (52 of 51).
        let mut history = History::of("htcp").set("form", "linux").at(100.0);
        history.loss().window_is(50.0);
        let mut windows = Vec::new();
        for _ in 0..54 {
            history.ack(2.0);
            windows.push(history.cwnd());
        }
        let grew = |from: f64| windows.iter().position(|cwnd| *cwnd > from).unwrap() + 1;
        assert_eq!((grew(50.0), grew(51.0)), (27, 54));
    }

    #[test]
    fn time_counts_from_the_end_of_recovery() {
        let mut history = History::of("htcp").set("form", "linux").at(100.0);
        history.ack(1.0).loss();
        history.in_recovery = true;
        history.wait(5.0).ack(1.0);
        history.in_recovery = false;
        history.ack(1.0);
        // Half a second later the increase is still one: 50 are counted before the 50th ACK.
        history.wait(0.5).acks(49, 1.0).window_is(50.0);
        history.ack(1.0).window_is(51.0);
    }

    #[test]
    fn a_long_sample_is_no_queueing() {
        let mut htcp = Htcp::default();
        let mut sample = |state, rtt| {
            htcp.state = state;
            htcp.take_rtt(rtt);
            (htcp.min_rtt, htcp.max_rtt)
        };
        for (state, rtt, found) in [
            (State::Recovery, 100, (100, 0)),
            (State::Open, 121, (100, 100)),
            (State::Open, 120, (100, 120)),
            (State::Open, 300, (100, 120)),
            (State::Recovery, 130, (100, 120)),
            (State::Open, 140, (100, 140)),
        ] {
            assert_eq!(sample(state, rtt), found, "{state:?} {rtt}");
        }
    }
}
