//! Round-trip times and the retransmission timeout (RFC 6298; thesis, equations 4.6 to 4.8).

use elephan_units::Time;

/// RFC 6298, section 2.1: the timeout before the first sample.
const INITIAL_RTO: Time = Time::from_secs(1);
/// RFC 6298, section 5.7: the same if a SYN was lost.
const RTO_AFTER_LOST_SYN: Time = Time::from_secs(3);
/// RFC 6298, section 2.5: an upper bound of at least 60 seconds.
const MAX_RTO: Time = Time::from_secs(60);
/// A tick of the timestamp clock (RFC 7323, section 5.4).
pub const TICK: Time = Time::from_millis(1);

/// The timestamp clock, which wraps after 49 days. It starts at one, because an echo of zero carries no
/// information.
pub fn ticks(now: Time) -> u32 {
    (now.picos() / TICK.picos() + 1) as u32
}

/// The age of a timestamp that is echoed at `now`, at least: the time since the beginning of its tick.
pub fn age(echo: u32, now: Time) -> Time {
    let whole = TICK * u64::from(ticks(now).wrapping_sub(echo));
    whole + Time::from_picos(now.picos() % TICK.picos())
}

/// The end of the tick that is echoed at `now`: the segment was sent by then.
pub fn sent_by(echo: u32, now: Time) -> Option<Time> {
    (echo > 0).then(|| now.since(age(echo, now)) + TICK - Time::from_picos(1))
}

/// The estimator of one connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Rtt {
    srtt: Time,
    rttvar: Time,
    min: Time,
    rto_min: Time,
    variance_min: Time,
    /// Whether the SYN was sent more than once.
    syn_was_lost: bool,
    /// Whether a timeout is a number of ticks, as a kernel's.
    is_coarse: bool,
    /// Number of times the timeout was doubled since the last sample.
    backoff: u8,
    /// The timeout was spurious: the next sample replaces what it exceeds.
    was_too_small: bool,
}

impl Rtt {
    /// No sample yet. `rto_min` bounds the timeout, and `variance_min` its variance term, from below; `is_coarse` says whether it is
    /// a number of ticks.
    pub fn new(rto_min: Time, variance_min: Time, is_coarse: bool) -> Self {
        Self { rto_min, variance_min, is_coarse, ..Self::default() }
    }

    /// The handshake gave no sample, because the SYN was sent more than once.
    pub fn syn_was_lost(&mut self) {
        self.syn_was_lost = true;
    }

    /// Whether there was a sample, and no timeout since, and timeouts are exact.
    pub fn is_usual(&self) -> bool {
        self.srtt > Time::ZERO && self.backoff == 0 && !self.was_too_small && !self.is_coarse
    }

    /// Takes a sample, which also ends the back-off (Karn; RFC 6298, section 5.7).
    #[inline(always)]
    pub fn sample(&mut self, rtt: Time) {
        self.backoff = 0;
        self.observe(rtt);
        if self.srtt == Time::ZERO {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
            return;
        }
        if std::mem::take(&mut self.was_too_small) {
            // RFC 4015, section 3, step 7: as for a first sample, but never below what was known.
            (self.srtt, self.rttvar) = (self.srtt.max(rtt), self.rttvar.max(rtt / 2));
            return;
        }
        // RTTVAR first, with the old SRTT: RFC 6298, section 2.3; gains of 1/4 and 1/8.
        let error = self.srtt.since(rtt).max(rtt.since(self.srtt));
        self.rttvar = self.rttvar - self.rttvar / 4 + error / 4;
        self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
    }

    /// Takes a round-trip time that counts only towards the minimum.
    #[inline]
    pub fn observe(&mut self, rtt: Time) {
        self.min = if self.min == Time::ZERO { rtt } else { self.min.min(rtt) };
    }

    /// Doubles the timeout (RFC 6298, section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Ends the back-off without a sample: the timeout that caused it turned out to be spurious.
    pub fn forget_back_off(&mut self) {
        self.backoff = 0;
    }

    /// The timeout was spurious: it adapts to the next sample at once.
    pub fn was_too_small(&mut self) {
        self.was_too_small = true;
    }

    /// The timeout: SRTT + 4 RTTVAR, with both minimums, doubled for each back-off.
    #[inline]
    pub fn rto(&self) -> Time {
        let base = if self.srtt == Time::ZERO {
            if self.syn_was_lost { RTO_AFTER_LOST_SYN } else { INITIAL_RTO }
        } else {
            self.srtt.saturating_add((self.rttvar * 4).max(self.variance_min))
        };
        let mut timeout = base.max(self.rto_min);
        if self.is_coarse {
            // Linux, include/net/tcp.h, `__tcp_set_rto`.
            timeout = Time::from_picos(timeout.min(MAX_RTO).picos().next_multiple_of(TICK.picos()));
        }
        (timeout * (1 << self.backoff)).min(MAX_RTO)
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Time {
        self.srtt
    }

    /// Smallest round-trip time; zero before the first sample.
    pub fn min(&self) -> Time {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_sets_srtt_and_half_of_it_as_variation() {
        let mut rtt = Rtt::new(Time::from_millis(200), Time::ZERO, false);
        assert_eq!(rtt.rto(), Time::from_secs(1));
        rtt.sample(Time::from_millis(100));
        // RTO = 100 + 4 * 50 ms.
        assert_eq!(rtt.rto(), Time::from_millis(300));
    }

    #[test]
    fn linux_bounds_the_variance_term() {
        // 100 ms with less and less variation: 300 ms and not 200, however many samples there are.
        let mut rtt = Rtt::new(Time::from_millis(1), Time::from_millis(200), false);
        for _ in 0..100 {
            rtt.sample(Time::from_millis(100));
        }
        assert_eq!(rtt.rto(), Time::from_millis(300));
        rtt.sample(Time::from_millis(400));
        // RTTVAR = 300/4 = 75 ms (almost: the rest of the variation before); SRTT = 137.5 ms.
        assert_eq!(rtt.rto().picos() / 1_000_000_000, 437);
    }

    #[test]
    fn a_kernel_s_timeout_is_a_number_of_ticks_before_it_is_doubled() {
        let mut rtt = Rtt::new(Time::from_millis(1), Time::from_millis(200), true);
        rtt.sample(Time::from_micros(51_500));
        assert_eq!(rtt.rto(), Time::from_millis(252));
        rtt.back_off();
        assert_eq!(rtt.rto(), Time::from_millis(504));
        rtt.sample(Time::MAX);
        assert_eq!(rtt.rto(), MAX_RTO);
    }

    #[test]
    fn variation_is_updated_before_the_mean() {
        let mut rtt = Rtt::new(Time::from_millis(1), Time::ZERO, false);
        rtt.sample(Time::from_millis(100));
        rtt.sample(Time::from_millis(180));
        // RTTVAR = 3/4 * 50 + 1/4 * |100 - 180| = 57.5 ms; SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms.
        assert_eq!(rtt.srtt(), Time::from_millis(110));
        assert_eq!(rtt.rto(), Time::from_millis(110 + 230));
    }

    #[test]
    fn backs_off_to_a_minute_and_comes_back() {
        let mut rtt = Rtt::new(Time::from_secs(1), Time::ZERO, false);
        rtt.sample(Time::from_millis(100));
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(rtt.rto(), Time::from_secs(expected));
            rtt.back_off();
        }
        rtt.sample(Time::from_millis(100));
        assert_eq!(rtt.rto(), Time::from_secs(1));
    }

    #[test]
    fn a_lost_syn_makes_the_first_timeout_three_seconds() {
        let mut rtt = Rtt::new(Time::from_millis(200), Time::ZERO, false);
        rtt.syn_was_lost();
        assert_eq!(rtt.rto(), Time::from_secs(3));
        rtt.sample(Time::from_millis(100));
        assert_eq!(rtt.rto(), Time::from_millis(300));
    }

    #[test]
    fn the_clock_of_timestamps_starts_at_one_and_wraps() {
        assert_eq!(ticks(Time::ZERO), 1);
        assert_eq!(ticks(Time::from_micros(1999)), 2);
        assert_eq!(ticks(Time::from_millis(u64::from(u32::MAX))), 0);
    }
}
