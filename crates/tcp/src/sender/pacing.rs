//! Pacing: segments leave one by one instead of in bursts.

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::Config;

/// When the next segment may leave.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    next: Time,
    /// The rate in slow start and beyond, in units of `cwnd / srtt`.
    slow_start: f64,
    avoidance: f64,
}

impl Pacer {
    /// A pacer for a governor: where that has no rate of its own, segments leave at once.
    pub const AT_ONCE: Self = Self { next: Time::ZERO, slow_start: f64::INFINITY, avoidance: f64::INFINITY };

    /// A pacer with a stack's rates: the first segment may leave at once.
    pub fn new(config: &Config) -> Self {
        Self { next: Time::ZERO, slow_start: config.pacing_slow_start, avoidance: config.pacing_avoidance }
    }

    /// The earliest time at which the next segment may leave.
    pub fn next(self) -> Time {
        self.next
    }

    /// A segment of `bytes` was sent. The pacing rate is the governor's if it has one, and otherwise a gain times
    /// `cwnd / srtt`, once a round-trip time is known. As in
    /// Linux (net/ipv4/tcp_input.c, `tcp_update_pacing_rate`), the gain of slow start holds up to half of
    /// `ssthresh`.
    pub fn on_sent(&mut self, controller: &Controller, bytes: u64, srtt: Time, now: Time) {
        if controller.pacing_rate() > 0.0 {
            let gap = bytes as f64 / controller.pacing_rate();
            self.next = now.saturating_add(Time::from_secs_f64(gap));
        } else if srtt > Time::ZERO {
            let starts = controller.cwnd() < controller.ssthresh() / 2.0;
            let gain = if starts { self.slow_start } else { self.avoidance };
            let rate = gain * controller.cwnd() / srtt.secs_f64();
            self.next = now.saturating_add(Time::from_secs_f64(1.0 / rate));
        }
    }
}
