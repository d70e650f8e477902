//! Pacing: segments leave one by one instead of in bursts.

use elephan_cc::Controller;
use elephan_units::Time;

/// Linux (net/ipv4/tcp_input.c, tcp_update_pacing_rate): twice the rate in slow start, so that it can double.
const SLOW_START_GAIN: f64 = 2.0;
/// Linux: 1.2 times the rate in congestion avoidance, so that pacing is never the limit.
const AVOIDANCE_GAIN: f64 = 1.2;

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    next: Time,
}

impl Pacer {
    /// The earliest time at which the next segment may leave.
    pub fn next(self) -> Time {
        self.next
    }

    /// A segment was sent. The pacing rate is a gain times `cwnd / srtt`, once a round-trip time is known.
    pub fn on_sent(&mut self, controller: &Controller, srtt: Time, now: Time) {
        if srtt > Time::ZERO {
            let gain = if controller.in_slow_start() { SLOW_START_GAIN } else { AVOIDANCE_GAIN };
            let rate = gain * controller.cwnd() / srtt.secs_f64();
            self.next = now.saturating_add(Time::from_secs_f64(1.0 / rate));
        }
    }
}
