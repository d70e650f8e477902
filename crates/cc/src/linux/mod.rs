//! The rules as Linux 6 computes them (net/ipv4/tcp_*.c): windows of whole segments, integer arithmetic, and a
//! clock of milliseconds.
//!
//! `form = "linux"` selects them, with the constants of Linux's files. The modules have the names of the
//! published rules. docs/algorithms describes how the two differ, and what that does to the window.

pub mod bic;
pub mod cubic;
pub mod hstcp;
pub mod htcp;
pub mod scalable;
pub mod vegas;

use elephan_units::Time;

use crate::algorithm::{Ack, Window};
use crate::parameter::words;

words! {
    /// Whose computation of a rule is used.
    pub enum Form {
        /// That of its paper or standard.
        Published = "published",
        /// That of Linux 6.
        Linux = "linux",
    }
}

/// Jiffies in a second: those of a kernel with `CONFIG_HZ_1000`.
const HZ: u32 = 1000;

/// The kernel's clock, which stops after 49 days.
fn jiffies(now: Time) -> u32 {
    u32::try_from(now.picos() / 1_000_000_000).unwrap_or(u32::MAX)
}

/// A round-trip time in microseconds, rounded down.
fn microseconds(rtt: Time) -> u32 {
    u32::try_from(rtt.picos() / 1_000_000).unwrap_or(u32::MAX)
}

/// Microseconds in jiffies, rounded up.
fn jiffies_of(microseconds: u32) -> u32 {
    microseconds.div_ceil(1000)
}

/// The window in whole segments, up to one at which products fit 32 bits.
fn segments(window: &Window) -> u32 {
    (window.cwnd as u32).min(1 << 25)
}

/// `cwnd` times `part / of`, rounded down.
fn share(cwnd: u32, part: u32, of: u32) -> u32 {
    (u64::from(cwnd) * u64::from(part) / u64::from(of)) as u32
}

/// The window at a loss that BIC and CUBIC search for; less if it did not reach the one before (fast convergence).
/// `beta` is what a loss leaves, in 1024ths.
fn target(cwnd: u32, before: u32, beta: u32) -> u32 {
    if cwnd < before { share(cwnd, 1024 + beta, 2048) } else { cwnd }
}

/// Acknowledged segments towards the next growth of the window: `snd_cwnd_cnt`.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    count: u32,
    /// Part of a segment that was acknowledged and is not yet counted: kernels count whole segments.
    part: f64,
}

/// Acknowledged parts of a segment are complete if less than this is missing: rounding errors.
const NEARLY: f64 = 1e-9;

impl Counter {
    /// The whole segments for which the window may grow at this ACK.
    fn whole(&mut self, ack: &Ack) -> u32 {
        self.part += ack.segments;
        let whole = libm::floor(self.part + NEARLY);
        self.part -= whole;
        whole as u32
    }

    /// The growth at an ACK of `acked` segments if each `per` of them add one: `tcp_cong_avoid_ai`. What was
    /// counted while `per` was larger adds one segment at most.
    fn grow(&mut self, per: u32, acked: u32) -> f64 {
        let early = u32::from(self.count >= per);
        if early == 1 {
            self.count = 0;
        }
        self.count += acked;
        let growth = self.count / per;
        self.count %= per;
        f64::from(early + growth)
    }
}

/// The segments that an ACK acknowledges cumulatively, which kernels pass on as `pkts_acked`.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged(u64);

impl Acknowledged {
    fn by(&mut self, ack: &Ack) -> u32 {
        let total = ack.una / u64::from(ack.mss);
        (total - std::mem::replace(&mut self.0, total)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::history::{History, ack};

    #[test]
    fn segments_count_when_they_are_whole() {
        let mut counter = Counter::default();
        let ack = Ack { segments: 0.4, ..ack(Time::from_millis(1)) };
        let whole = [0; 5].map(|_| counter.whole(&ack));
        assert_eq!(whole, [0, 0, 1, 0, 1]);
    }

    #[test]
    fn a_counter_that_was_for_a_larger_window_adds_one() {
        // 9 of 10 are counted. Then each 3 add one: one for the 9, and 2 for the 7, with 1 left.
        let mut counter = Counter { count: 9, part: 0.0 };
        assert_eq!((counter.grow(3, 7), counter.count), (3.0, 1));
        assert_eq!((counter.grow(3, 1), counter.count), (0.0, 2));
        assert_eq!((counter.grow(3, 1), counter.count), (1.0, 0));
    }

    #[test]
    fn every_window_of_whole_acks_is_whole() {
        for name in ["hstcp", "scalable", "htcp", "bic", "cubic", "vegas"] {
            let mut history = History::of(name).set("form", "linux").rtt_ms(50.0);
            for round in 0..60 {
                history.round_trip().ack(2.0);
                if round % 15 == 14 {
                    history.event(if round == 44 { Cause::Timeout } else { Cause::Loss });
                }
                assert_eq!(history.cwnd(), libm::trunc(history.cwnd()), "{name}");
            }
            assert!(history.cwnd() > 10.0, "{name}");
        }
    }
}
