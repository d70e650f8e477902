//! CUBIC as Linux has it (tcp_cubic.c), in integers: windows in whole segments, time in 1024ths of a second, and
//! HyStart as its slow start.
//!
//! What differs from RFC 9438:
//! - The function's value one smallest (not smoothed) round-trip time ahead is the target; it is computed once in
//!   a jiffy, and again after 31 ms if the window stays. Each `cwnd / (target - cwnd)` acknowledged segments, 2 at
//!   least, add one.
//! - Before the first loss, and after a timeout, the window grows by at least 5 % in a round trip.
//! - The window of a Reno-friendly AIMD grows by one for each `15/8 cwnd` segments to the end: the increase is
//!   never that of Standard TCP.
//! - `W_max` after a timeout is zero, as for a new connection, and slow start has HyStart again.
//! - Only silence is left out of the clock, not the time in which the window is not the limit.
//!
//! The kernel's cube root, by a table and one step of Newton's, is within 0.2 % of the exact one used here.

use elephan_units::Time;

use super::{Counter, HZ, jiffies, jiffies_of, microseconds, segments, share, target};
use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Start, Window};
use crate::slow_start::hystart::{self, HyStart};
use crate::variable::{Tell, variables};

/// Fraction of the window that a loss leaves, in 1024ths.
const BETA: u32 = 717;
/// C of the cubic function, 0.4, in 1024ths of a segment for the cube of a second.
const C: u64 = 410;
/// Eighths of a window of acknowledged segments that add one to the Reno-friendly window.
const RENO_PER_SEGMENT: u32 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// Most acknowledged segments that add one while the capacity is unknown.
const MOST_WITHOUT_MAXIMUM: u32 = 20;
/// Fewest acknowledged segments that add one.
const FEWEST: u32 = 2;

/// The time from one congestion event to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Its start, in jiffies.
    begin: u32,
    /// Time until the function is flat, in 1024ths of a second, and the window at which it is.
    k: u64,
    origin: u32,
    /// The Reno-friendly window, and the acknowledged segments towards its next growth.
    reno: u32,
    acked: u32,
}

elephan_units::with_defaults! {
    /// Linux's CUBIC.
    #[derive(Clone, Debug)]
    pub struct Cubic {
        /// Acknowledged segments that add one.
        per_segment: u32 = 0,
        /// The window at the last loss, after fast convergence; zero if there was none.
        max: u32 = 0,
        /// Window and time of the last computation.
        computed: (u32, u32) = (0, 0),
        epoch: Option<Epoch> = None,
        /// Smallest round-trip time; zero before the first sample.
        min_rtt: Time = Time::ZERO,
        start: HyStart = HyStart::new(hystart::Parameters::default()),
        counter: Counter = Counter::default(),
    }
}

impl Epoch {
    fn new(begin: u32, cwnd: u32, max: u32) -> Self {
        // cbrt((max - cwnd) / C) seconds.
        let missing = u64::from(max.saturating_sub(cwnd));
        let k = libm::cbrt(((missing << 40) / C) as f64) as u64;
        Self { begin, k, origin: max.max(cwnd), reno: cwnd, acked: 0 }
    }

    /// The window that the function has at this time.
    fn target(&self, now: u32, min_rtt: Time) -> u32 {
        let since = u64::from(now.saturating_sub(self.begin)) + u64::from(jiffies_of(microseconds(min_rtt)));
        let t = since * 1024 / u64::from(HZ);
        let off = u128::from(t.abs_diff(self.k));
        let delta = u32::try_from((u128::from(C) * off * off * off) >> 40).unwrap_or(u32::MAX);
        if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }
}

impl Cubic {
    /// Computes how many acknowledged segments add one at this window, at an ACK of `acked`.
    fn compute(&mut self, cwnd: u32, acked: u32, now: u32) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        let (last, at) = self.computed;
        if last == cwnd && now - at <= HZ / 32 {
            return;
        }
        if self.epoch.is_none() || now != at {
            self.computed = (cwnd, now);
            let epoch = self.epoch.get_or_insert_with(|| Epoch { acked, ..Epoch::new(now, cwnd, self.max) });
            let target = epoch.target(now, self.min_rtt);
            self.per_segment = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
            if self.max == 0 {
                self.per_segment = self.per_segment.min(MOST_WITHOUT_MAXIMUM);
            }
        }
        if let Some(epoch) = &mut self.epoch {
            let per = (cwnd * RENO_PER_SEGMENT / 8).max(1);
            // The last complete one counts when there is more.
            let grown = epoch.acked.saturating_sub(1) / per;
            epoch.acked -= grown * per;
            epoch.reno += grown;
            if epoch.reno > cwnd {
                self.per_segment = self.per_segment.min(cwnd / (epoch.reno - cwnd));
            }
        }
        self.per_segment = self.per_segment.max(FEWEST);
    }
}

impl Algorithm for Cubic {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        // Samples of the first second after a loss are not used.
        if self.epoch.is_some_and(|epoch| jiffies(ack.now) < epoch.begin.saturating_add(HZ)) {
            return;
        }
        if self.min_rtt == Time::ZERO || rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
        if window.in_slow_start() && !ack.in_recovery() {
            self.start.observe(window, ack, self.min_rtt);
        }
    }

    fn has_slow_start(&self) -> bool {
        true
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        let start = self.start.grow(ack);
        Some(if start.ends { Start { growth: self.increase(window, ack), ..start } } else { start })
    }

    fn resume(&mut self, idle: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.begin = epoch.begin.saturating_add(jiffies(idle));
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let acked = self.counter.whole(ack);
        self.compute(segments(window), acked, jiffies(ack.now));
        self.counter.grow(self.per_segment, acked)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let cwnd = segments(window);
        if event.cause == Cause::Timeout {
            *self = Self::default();
        } else {
            self.max = target(cwnd, self.max, BETA);
            self.epoch = None;
            self.counter.count = 0;
        }
        f64::from(share(cwnd, BETA, 1024))
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        let of = |read: fn(&Epoch) -> f64| self.epoch.as_ref().map_or(f64::NAN, read);
        variables! { tell;
            /// The window at the last loss, after fast convergence; unknown without one.
            w_max: "segments" = if self.max > 0 { f64::from(self.max) } else { f64::NAN };
            /// Time at which this stage of congestion avoidance began, without what was idle; unknown between stages.
            t_epoch: "s" = of(|epoch| f64::from(epoch.begin) / f64::from(HZ));
            /// Time from there until the cubic function is flat.
            k: "s" = of(|epoch| epoch.k as f64 / 1024.0);
            /// The window of the Reno-friendly AIMD.
            w_est: "segments" = of(|epoch| f64::from(epoch.reno));
        }
        self.start.variables(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{History, close};

    #[test]
    fn the_function() {
        // Loss at 1000: 700. K = cbrt(300/0.4) = 9.0856 s; in 1024ths, with C of 410/1024 = 0.400390625, 9300.6.
        // One smallest round-trip time of 100 ms ahead at 0 s: 1000 - 0.40039 (9.0826 - 0.0996)^3 = 709; flat at
        // K; 6 s later 1000 + 0.40039 * 6.1^3 = 1090.
        let epoch = Epoch::new(0, 700, 1000);
        assert_eq!(epoch.k, 9300);
        for (now, target) in [(0, 710), (8983, 1000), (14_983, 1086), (15_083, 1090)] {
            assert_eq!(epoch.target(now, Time::from_millis(100)), target, "{now}");
        }
        // Without a maximum it is flat where it begins.
        let epoch = Epoch::new(0, 700, 600);
        assert_eq!((epoch.k, epoch.origin), (0, 700));
    }

    #[test]
    fn windows_after_acks_and_losses() {
        let mut history = History::of("cubic").set("form", "linux").at(1000.0);
        history.ack(1.0).loss().window_is(700.0);
        // The target is 710: each 70 segments add one.
        history.acks(69, 1.0).window_is(700.0);
        history.ack(1.0).window_is(701.0);
        // Below the maximum: the next is 701 * 1741/2048 = 595.
        history.loss().window_is(490.0);
        for _ in 0..20 {
            history.wait(0.1).ack(2.0);
        }
        history.event(Cause::Timeout).window_is(1.0);
    }

    #[test]
    fn it_is_as_friendly_as_reno() {
        // At 10 ms and small windows the Reno-friendly window is larger: one for each 15/8 of a window.
        let mut history = History::of("cubic").set("form", "linux").rtt_ms(10.0).at(40.0);
        history.loss().window_is(28.0);
        for _ in 0..19 {
            history.round_trip();
        }
        // The window itself follows with a delay of a few round trips.
        history.window_near(28.0 + 8.0 / 15.0 * 16.0, 1.0);
    }

    #[test]
    fn silence_does_not_count() {
        let after = |seconds: f64| {
            let mut history = History::of("cubic").set("form", "linux").at(100.0);
            history.loss().ack(1.0).wait(2.0).ack(1.0).idle(seconds).round_trip();
            history.cwnd()
        };
        close(after(10.0), after(0.0), 1.0);
    }

    #[test]
    fn its_slow_start_is_hystart() {
        // The round-trip time rises from 100 to 113 ms, an eighth and more: at the ninth sample of that round
        // slow start is over.
        let mut history = History::of("cubic").set("form", "linux").slow_start("limited").starting(200.0);
        for rtt in [100, 113] {
            history.next_round().rtt_becomes(rtt);
            for _ in 0..8 {
                history.wait(0.005).ack(1.0);
            }
            assert!(history.controller.in_slow_start());
        }
        history.window_is(216.0);
        history.ack(1.0);
        assert_eq!((history.cwnd(), history.ssthresh()), (216.0, 216.0));
    }
}
