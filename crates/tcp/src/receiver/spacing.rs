//! The time between segments, by which Linux delays an ACK.

use elephan_units::Time;

use crate::sender::TICK;

/// The longest delay (include/net/tcp.h, `TCP_DELACK_MAX`), in ticks.
const LONGEST: u32 = 200;

/// Linux's estimate of the time between segments (`icsk_ack.ato`), in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spacing {
    estimate: u32,
    /// When the last segment arrived in order.
    last: u32,
}

fn ticks(time: Time) -> u32 {
    (time.picos() / TICK.picos()) as u32
}

/// The retransmission timeout after the handshake alone measured `rtt` (RFC 6298 with Linux's minimum), in ticks.
fn rto(rtt: Time) -> u32 {
    ticks(rtt + (rtt * 2).max(TICK * u64::from(LONGEST)))
}

impl Spacing {
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

    /// For how long an ACK is delayed: a round-trip time at most, and `least` at least (net/ipv4/tcp_output.c,
    /// `tcp_send_delayed_ack`).
    pub fn delay(self, least: Time, rtt: Time) -> Time {
        let longest = TICK * rtt.picos().div_ceil(TICK.picos());
        (TICK * u64::from(self.estimate)).min(longest).max(least)
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
    }

    #[test]
    fn a_silence_is_longer_than_the_timeout() {
        // 60 ms, and at least 200 more.
        let ms = Time::from_millis;
        let mut spacing = Spacing::default();
        assert!(!spacing.on_data(ms(1000), ms(40), ms(60)));
        assert!(!spacing.on_data(ms(1260), ms(40), ms(60)));
        assert!(spacing.on_data(ms(1521), ms(40), ms(60)));
    }
}
