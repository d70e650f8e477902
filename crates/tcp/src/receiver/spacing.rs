//! The time between segments, by which Linux delays an ACK.

use elephan_units::Time;

use crate::sender::TICK;

/// The longest delay (include/net/tcp.h, `TCP_DELACK_MAX`), in ticks.
const LONGEST: u32 = 200;

/// The retransmission timeout without a round-trip time (`TCP_TIMEOUT_INIT`).
const FIRST_RTO: Time = Time::from_secs(1);

/// Linux's estimate of the time between segments (`icsk_ack.ato`), in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spacing {
    /// Zero before the first segment.
    estimate: u32,
    /// When the last segment arrived in order.
    last: u32,
}

fn ticks(time: Time) -> u32 {
    (time.picos() / TICK.picos()) as u32
}

/// The retransmission timeout after the handshake alone measured `rtt`, or zero for nothing (RFC 6298 with Linux's minimum), in
/// ticks.
fn rto(rtt: Time) -> u32 {
    let known = rtt > Time::ZERO;
    ticks(if known { rtt + (rtt * 2).max(TICK * u64::from(LONGEST)) } else { FIRST_RTO })
}

impl Spacing {
    /// The connection was established.
    pub fn new(now: Time) -> Self {
        Self { estimate: 0, last: ticks(now) }
    }

    /// Data arrived in order, on a connection whose handshake took `rtt` and whose ACKs are delayed by at least `least`
    /// (net/ipv4/tcp_input.c, `tcp_event_data_recv`). Returns whether it is the first after a silence.
    pub fn on_data(&mut self, now: Time, least: Time, rtt: Time) -> bool {
        let (now, least, rto) = (ticks(now), ticks(least), rto(rtt));
        let gap = now.wrapping_sub(std::mem::replace(&mut self.last, now));
        if self.estimate == 0 {
            self.estimate = least;
        } else if gap <= least / 2 {
            self.estimate = self.estimate / 2 + least / 2;
        } else if gap < self.estimate {
            self.estimate = (self.estimate / 2 + gap).min(rto).min(LONGEST);
        } else {
            return gap > rto;
        }
        false
    }

    /// Whether no segment was acknowledged yet.
    pub fn is_new(self) -> bool {
        self.estimate == 0
    }

    /// A segment is acknowledged at once, for which the budget may end (net/ipv4/tcp_output.c, `tcp_dec_quickack_mode`).
    pub fn deflate(&mut self, least: Time) {
        self.estimate = ticks(least);
    }

    /// A delayed ACK went as late as it may (net/ipv4/tcp_timer.c, `tcp_delack_timer_handler`).
    pub fn inflate(&mut self, rtt: Time) {
        self.estimate = (2 * self.estimate).min(rto(rtt));
    }

    /// For how long an ACK is delayed: a round-trip time at most, and `least` at least (net/ipv4/tcp_output.c,
    /// `tcp_send_delayed_ack`).
    pub fn delay(self, least: Time, rtt: Time) -> Time {
        let known = rtt > Time::ZERO;
        let longest = if known { rtt.picos().div_ceil(TICK.picos()) } else { LONGEST.into() };
        (TICK * u64::from(self.estimate).min(longest).min(LONGEST.into())).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_more_than_half_the_delay_lengthens_it() {
        let ms = Time::from_millis;
        let mut spacing = Spacing::default();
        // tcp_event_data_recv: 40/2 + 30, 50/2 + 20, 45/2 + 20 and back to 40; 40 again after a gap of more.
        for (at, delay) in [(1, 40), (2, 40), (32, 50), (33, 45), (34, 42), (35, 41), (36, 40), (90, 40)] {
            assert!(!spacing.on_data(ms(at), ms(40), ms(60)), "{at}");
            assert_eq!(spacing.delay(ms(40), ms(60)), ms(delay), "{at}");
        }
        // No more than a round trip, in whole ticks.
        spacing.on_data(ms(120), ms(40), ms(60));
        assert_eq!(spacing.delay(ms(40), Time::from_micros(42_010)), ms(43));
        assert_eq!(spacing.delay(ms(40), ms(10)), ms(40));
        // Twice as long after a delay that ran out, 200 ms at most; and 40 ms after segments that were acknowledged at once.
        for delay in [100, 200, 200] {
            spacing.inflate(ms(300));
            assert_eq!(spacing.delay(ms(40), Time::ZERO), ms(delay));
        }
        spacing.deflate(ms(40));
        assert_eq!(spacing.delay(ms(40), ms(60)), ms(40));
    }

    #[test]
    fn a_silence_is_longer_than_the_timeout() {
        // 60 ms, and at least 200 more.
        let ms = Time::from_millis;
        let mut spacing = Spacing::default();
        assert!(!spacing.on_data(ms(1000), ms(40), ms(60)));
        assert!(!spacing.on_data(ms(1260), ms(40), ms(60)));
        assert!(spacing.on_data(ms(1521), ms(40), ms(60)));
        // A second where the handshake measured nothing.
        assert!(!spacing.on_data(ms(2521), ms(40), Time::ZERO));
        assert!(spacing.on_data(ms(3522), ms(40), Time::ZERO));
    }
}
