//! Pacing: segments leave one by one, or super-segment by super-segment, instead of as the window admits them.

use elephan_cc::Controller;
use elephan_units::Time;

use super::super_segment::SuperSegments;
use crate::config::Config;

/// Segments that a connection sends before it is paced by super-segments (Linux, net/ipv4/tcp_output.c,
/// `tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// When the next segment may leave, and how many leave together.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    next: Time,
    /// Whether segments are paced, also where no governor asks for it.
    paces: bool,
    /// The rate in slow start and beyond, in units of `cwnd / srtt`.
    slow_start: f64,
    avoidance: f64,
    /// None where each segment leaves by itself.
    pub supers: Option<SuperSegments>,
}

impl Pacer {
    /// A pacer for a governor: where that has no rate of its own, segments leave at once.
    pub const AT_ONCE: Self = Self {
        next: Time::ZERO,
        paces: true,
        slow_start: f64::INFINITY,
        avoidance: f64::INFINITY,
        supers: None,
    };

    /// A pacer with a stack's rates: the first segment may leave at once.
    pub fn new(config: &Config) -> Self {
        Self {
            next: Time::ZERO,
            paces: config.pacing,
            slow_start: config.pacing_slow_start,
            avoidance: config.pacing_avoidance,
            supers: SuperSegments::new(config.burst),
        }
    }

    /// The earliest time at which the next segment may leave.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Whether a segment may leave: all of a super-segment leave together.
    pub fn may_send(&self, now: Time) -> bool {
        self.next <= now || self.supers.is_some_and(|supers| supers.left > 0)
    }

    /// Whether the time of the next segment is other than at once.
    pub fn is_pacing(&self) -> bool {
        self.paces || self.next > Time::ZERO
    }

    /// Linux's gain (net/ipv4/tcp_input.c, `tcp_update_pacing_rate`): that of slow start holds up to half of `ssthresh`.
    pub fn gain(&self, cwnd: f64, ssthresh: f64) -> f64 {
        if cwnd < ssthresh / 2.0 { self.slow_start } else { self.avoidance }
    }

    /// A segment of `bytes` was sent, number `count` of the connection. The pacing rate is the governor's if it has one, and
    /// otherwise a gain times `cwnd / srtt`, once a round-trip time is known.
    pub fn on_sent(&mut self, controller: &Controller, bytes: u64, count: u64, srtt: Time, now: Time) {
        if let Some(supers) = &mut self.supers {
            let (ended, own) = (supers.take_sent(bytes), controller.pacing_rate());
            let rate = if own > 0.0 { own } else { supers.rate };
            if (self.paces || own > 0.0)
                && let Some(bytes) = ended
            {
                let begins = self.next.max(now);
                // What it left late is made good for, up to half of the gap.
                let gap = Time::from_secs_f64(bytes as f64 / rate);
                let paced = rate.is_finite() && count >= UNPACED;
                let gap = if paced { gap - (begins - self.next).min(gap / 2) } else { Time::ZERO };
                self.next = begins.saturating_add(gap);
            }
            return;
        }
        if controller.pacing_rate() > 0.0 {
            let gap = bytes as f64 / controller.pacing_rate();
            self.next = now.saturating_add(Time::from_secs_f64(gap));
        } else if srtt > Time::ZERO {
            let rate =
                self.gain(controller.cwnd(), controller.ssthresh()) * controller.cwnd() / srtt.secs_f64();
            self.next = now.saturating_add(Time::from_secs_f64(1.0 / rate));
        }
    }
}
