//! Dynamic right-sizing (Fisk and Feng 2001): the window follows the rate at which the application reads.

use elephan_units::Time;

/// The initial window: the largest one without scaling.
pub const FIRST_WINDOW: u64 = 65_535;

/// One receiver's measurement: the bytes delivered in a round trip, and the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RightSizing {
    /// The round-trip time as measured by the receiver; zero before the first sample.
    rtt: Time,
    /// The bytes delivered when the current round trip began, and its start time.
    measured_from: (u64, Time),
    /// Without timestamps: the start time of a window, and the offset at which it is used up.
    window_ends: Option<(u64, Time)>,
}

impl RightSizing {
    /// The round-trip time as measured by the receiver; zero before the first sample.
    pub fn rtt(&self) -> Time {
        self.rtt
    }

    /// Data arrived. `echo` is the age of the echoed timestamp; `next` and `delivered` are the bytes received
    /// in order and the bytes read by the application. Returns the requested window.
    pub fn on_data(&mut self, echo: Option<Time>, next: u64, delivered: u64, window: u64, now: Time) -> u64 {
        if let Some(sample) = echo {
            self.rtt = if self.rtt == Time::ZERO { sample } else { self.rtt - self.rtt / 8 + sample / 8 };
        } else {
            self.time_a_window(next, window, now);
        }
        let (before, since) = self.measured_from;
        if self.rtt == Time::ZERO || now.since(since) < self.rtt {
            return window;
        }
        self.measured_from = (delivered, now);
        // Twice the delivered bytes, so that a sender in slow start has room for its next window.
        2 * (delivered - before)
    }

    /// An upper bound of the round-trip time: the time from the opening of a window to its use.
    fn time_a_window(&mut self, next: u64, window: u64, now: Time) {
        match self.window_ends {
            Some((end, _)) if next < end => return,
            Some((_, since)) => {
                let sample = now.since(since);
                self.rtt = if self.rtt == Time::ZERO { sample } else { self.rtt.min(sample) };
            }
            None => {}
        }
        self.window_ends = Some((next + window, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_twice_what_was_taken_in_a_round_trip() {
        let mut sizing = RightSizing::default();
        let echo = Some(Time::from_millis(100));
        assert_eq!(sizing.on_data(echo, 0, 0, FIRST_WINDOW, Time::from_millis(100)), 0);
        let mut asked = 0;
        for ms in 101..=200 {
            let taken = (ms - 100) * 1000;
            asked = sizing.on_data(echo, taken, taken, FIRST_WINDOW, Time::from_millis(ms));
        }
        assert_eq!(asked, 200_000);
    }

    #[test]
    fn without_timestamps_a_window_used_up_is_a_round_trip() {
        // 10 kB each 10 ms use up 65,535 bytes in 70 ms.
        let mut sizing = RightSizing::default();
        for tick in 0..8 {
            let now = Time::from_millis(10 * tick);
            sizing.on_data(None, 10_000 * tick, 10_000 * tick, FIRST_WINDOW, now);
        }
        assert_eq!(sizing.rtt, Time::from_millis(70));
    }
}
