//! Dynamic right-sizing (Fisk and Feng 2001; Linux, `tcp_rcv_space_adjust`): the window follows the rate at which
//! the application reads.

use elephan_units::Time;

/// The initial window: the largest one without scaling.
pub const FIRST_WINDOW: u64 = 65_535;
/// Linux: TCP_INIT_CWND, and the margin of `tcp_rcv_space_adjust`, in segments.
const INITIAL_SEGMENTS: u64 = 10;
const MARGIN_SEGMENTS: u64 = 16;

/// One receiver's measurement: the bytes delivered in a round trip, and the round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RightSizing {
    /// With Linux's rule: the most bytes delivered in a round trip so far, which begins at an initial window.
    most: Option<u64>,
    /// Without it: the window in units of the bytes delivered in a round trip.
    factor: f64,
    /// The round-trip time as measured by the receiver; zero before the first sample.
    rtt: Time,
    /// The bytes delivered when the current round trip began, and its start time.
    measured_from: (u64, Time),
    /// Without timestamps: the start time of a window, and the offset at which it is used up.
    window_ends: Option<(u64, Time)>,
}

impl RightSizing {
    /// The rule of Fisk and Feng, with this factor.
    pub fn new(factor: f64) -> Self {
        Self { factor, ..Self::default() }
    }

    /// Linux's rule, for segments of `mss` bytes.
    pub fn linux(mss: u32) -> Self {
        Self { most: Some(INITIAL_SEGMENTS * u64::from(mss)), ..Self::default() }
    }

    /// The round-trip time as measured by the receiver; zero before the first sample.
    pub fn rtt(&self) -> Time {
        self.rtt
    }

    /// Data arrived, of segments of `mss` bytes. `echo` is the age of the echoed timestamp; `next` and `delivered` are
    /// the bytes received in order and the bytes read by the application. Returns the requested window.
    pub fn on_data(
        &mut self,
        echo: Option<Time>,
        [next, delivered]: [u64; 2],
        window: u64,
        mss: u32,
        now: Time,
    ) -> u64 {
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
        // Less than before where early ACKs were withdrawn.
        let taken = delivered.saturating_sub(before);
        let Some(most) = &mut self.most else {
            // Twice the delivered bytes leave room for the next window of a sender in slow start.
            return (self.factor * taken as f64) as u64;
        };
        if taken <= *most {
            return window;
        }
        // Twice the delivered bytes, a margin, and twice what this grows by when the sender grows on.
        let asked = 2 * taken + MARGIN_SEGMENTS * u64::from(mss);
        let grow = u128::from(asked) * u128::from(taken - *most) / u128::from(*most);
        *most = taken;
        asked.saturating_add(u64::try_from(2 * grow).unwrap_or(u64::MAX))
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
        let mut sizing = RightSizing::new(2.0);
        let echo = Some(Time::from_millis(100));
        assert_eq!(sizing.on_data(echo, [0, 0], FIRST_WINDOW, 1000, Time::from_millis(100)), 0);
        let mut asked = 0;
        for ms in 101..=200 {
            let taken = (ms - 100) * 1000;
            asked = sizing.on_data(echo, [taken, taken], FIRST_WINDOW, 1000, Time::from_millis(ms));
        }
        assert_eq!(asked, 200_000);
        let mut sizing = RightSizing::new(1.25);
        sizing.on_data(echo, [0, 0], FIRST_WINDOW, 1000, Time::from_millis(100));
        assert_eq!(sizing.on_data(echo, [80_000; 2], FIRST_WINDOW, 1000, Time::from_millis(200)), 100_000);
    }

    #[test]
    fn linux_asks_for_room_for_a_sender_that_doubles() {
        // 40 kB after 20: 2 * 40 + 16 = 96 kB, and twice what that grows by, 96 * (40 - 20) / 20: 288 kB. Then 40 kB
        // again: nothing more.
        let mut sizing = RightSizing { most: Some(20_000), ..RightSizing::default() };
        let echo = Some(Time::from_millis(100));
        let asked = [(100, 0), (200, 40_000), (300, 80_000)].map(|(ms, taken)| {
            sizing.on_data(echo, [taken, taken], FIRST_WINDOW, 1000, Time::from_millis(ms))
        });
        assert_eq!(asked, [FIRST_WINDOW, 288_000, FIRST_WINDOW]);
    }

    #[test]
    fn without_timestamps_a_window_used_up_is_a_round_trip() {
        // 10 kB each 10 ms use up 65,535 bytes in 70 ms.
        let mut sizing = RightSizing::default();
        for tick in 0..8 {
            let now = Time::from_millis(10 * tick);
            sizing.on_data(None, [10_000 * tick; 2], FIRST_WINDOW, 1000, now);
        }
        assert_eq!(sizing.rtt, Time::from_millis(70));
    }
}
