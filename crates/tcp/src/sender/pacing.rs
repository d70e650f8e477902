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
    /// A pacer with a stack's rates: the first segment may leave at once.
    pub fn new(config: &Config) -> Self {
        Self { next: Time::ZERO, slow_start: config.pacing_slow_start, avoidance: config.pacing_avoidance }
    }

    /// The earliest time at which the next segment may leave.
    pub fn next(self) -> Time {
        self.next
    }

    /// A segment was sent. The pacing rate is a gain times `cwnd / srtt`, once a round-trip time is known. As in
    /// Linux (net/ipv4/tcp_input.c, `tcp_update_pacing_rate`), the gain of slow start holds up to half of
    /// `ssthresh`.
    pub fn on_sent(&mut self, controller: &Controller, srtt: Time, now: Time) {
        if srtt > Time::ZERO {
            let starts = controller.cwnd() < controller.ssthresh() / 2.0;
            let gain = if starts { self.slow_start } else { self.avoidance };
            let rate = gain * controller.cwnd() / srtt.secs_f64();
            self.next = now.saturating_add(Time::from_secs_f64(1.0 / rate));
        }
    }
}
