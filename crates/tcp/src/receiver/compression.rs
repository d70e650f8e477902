//! Compression of ACKs that report out-of-order data, as Linux does it (net/ipv4/tcp_input.c,
//! `__tcp_ack_snd_check`): the sender needs the first reports at once, and the others not one by one.

use elephan_units::Time;

use super::sack::RecentRuns;
use super::spacing::Spacing;

/// Number of reports that are sent at once after each advance: the sender's DupThresh
/// (`TCP_FASTRETRANS_THRESH`).
const AT_ONCE: u8 = 3;
/// Number of reports that are held back at most (`net.ipv4.tcp_comp_sack_nr`).
const MOST_HELD: u8 = 44;
/// The longest time for which a report is held back (`net.ipv4.tcp_comp_sack_delay_ns`).
const LONGEST: Time = Time::from_millis(1);
/// By which the kernel's timer may be late, and is, because nothing else wakes it (`net.ipv4.tcp_comp_sack_slack_ns`).
const SLACK: Time = Time::from_micros(100);

/// The reports since the last ACK, and since the last advance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compression {
    /// The cumulative acknowledgment that the count belongs to.
    next: u64,
    /// Number of reports sent at once for it.
    sent: u8,
    /// Number of reports held back.
    pub held: u8,
    /// What was held back and is told now, without what arrived last.
    pub early: Option<RecentRuns>,
    /// The round-trip time of the handshake; zero if it gave none.
    pub rtt: Time,
    /// By which acknowledgments of data in order are delayed.
    pub spacing: Spacing,
}

impl Compression {
    /// A segment arrived. Without a `deadline` an ACK was sent since the last report, and nothing is held back.
    pub fn begin(&mut self, deadline: Time) {
        if deadline == Time::MAX {
            self.held = 0;
        }
    }

    /// Out-of-order data is to be reported beside the acknowledgment of `next`: how long the report may be
    /// held back, or none if it is to be sent at once. `measured` is the round-trip time that the receiver
    /// measured since the handshake; zero if it measured none.
    pub fn hold(&mut self, next: u64, measured: Time) -> Option<Time> {
        let rtt = [self.rtt, measured].into_iter().filter(|&rtt| rtt > Time::ZERO).min()?;
        if self.held >= MOST_HELD {
            return None;
        }
        if self.next != next {
            (self.next, self.sent) = (next, 0);
        }
        if self.sent < AT_ONCE {
            self.sent += 1;
            return None;
        }
        self.held += 1;
        Some((rtt / 20).min(LONGEST) + SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_reports_go_at_once_and_44_are_held() {
        let mut reports = Compression { rtt: Time::from_millis(20), ..Compression::default() };
        let rtt = Time::from_millis(10);
        for next in [1000, 2000] {
            for _ in 0..AT_ONCE {
                assert_eq!(reports.hold(next, rtt), None);
            }
            for _ in 0..MOST_HELD {
                assert_eq!(reports.hold(next, rtt), Some(Time::from_micros(600)));
            }
            assert_eq!(reports.hold(next, rtt), None);
            reports.held = 0;
            assert_eq!(reports.hold(next, Time::from_millis(100)), Some(Time::from_micros(1100)));
            reports.held = 0;
        }
        // Without a round-trip time nothing is held back.
        assert_eq!(Compression::default().hold(1000, Time::ZERO), None);
    }
}
