//! Packets sent at fixed intervals, without feedback: constant bit rate, and on-off sources.

use elephan_units::{Rate, Seed, Time};

use crate::periods::{Pattern, Periods};

/// Picoseconds in a second, times bits in a byte.
pub(crate) const PICOS_BITS: u128 = 8_000_000_000_000;

/// A source of datagrams of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datagrams {
    /// Rate while it sends, counting whole packets.
    pub rate: Rate,
    /// Size of a packet with its headers, bytes.
    pub packet: u32,
    /// Packets that leave at once, back to back; the pause after them maintains the rate. 1 spaces them
    /// evenly.
    pub burst: u32,
    /// The timing of its packets.
    pub pattern: Pattern,
}

/// IPv4 and UDP headers, bytes.
pub const UDP_HEADERS: u32 = 28;

impl Datagrams {
    /// Payload of a packet, bytes.
    pub fn payload_bytes(&self) -> u64 {
        u64::from(self.packet.saturating_sub(UDP_HEADERS))
    }

    /// Mean rate, counting whole packets, bit/s.
    pub fn mean_rate(&self) -> f64 {
        self.rate.bits_per_sec() as f64 * self.pattern.share()
    }
}

/// A source while it runs: determines when each packet leaves. Packet intervals count on-time only.
#[derive(Clone, Debug)]
pub struct Source {
    /// When the next burst leaves.
    periods: Periods,
    /// How many of its packets have not left.
    left: u32,
    burst: u32,
    /// Interval between bursts: whole picoseconds, and the remainder in units of 1/rate picoseconds.
    distance: Time,
    rest: u64,
    carry: u64,
    bits_per_sec: u64,
}

impl Source {
    /// Source number `index` of a run, which begins, on, at `start`. The rate and the burst are not zero.
    pub fn new(datagrams: &Datagrams, seed: Seed, index: u64, start: Time) -> Self {
        let picos = u128::from(datagrams.packet) * u128::from(datagrams.burst) * PICOS_BITS;
        let bits_per_sec = datagrams.rate.bits_per_sec();
        Self {
            periods: Periods::new(datagrams.pattern, seed.stream("on and off times", index), start),
            left: datagrams.burst,
            burst: datagrams.burst,
            distance: Time::from_picos((picos / u128::from(bits_per_sec)).try_into().unwrap_or(u64::MAX)),
            rest: (picos % u128::from(bits_per_sec)) as u64,
            carry: 0,
            bits_per_sec,
        }
    }

    /// When the next packet leaves, or the earliest time at which it may: [`Source::leaves`] distinguishes
    /// the two.
    pub fn next(&self) -> Time {
        self.periods.next()
    }

    /// The time of [`Source::next`] has come: returns whether a packet leaves. If not, there is a later time
    /// for the next call.
    pub fn leaves(&mut self) -> bool {
        self.periods.has_come()
    }

    /// The next packet has left.
    pub fn sent(&mut self) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.left = self.burst;
        let mut distance = self.distance;
        self.carry += self.rest;
        if self.carry >= self.bits_per_sec {
            self.carry -= self.bits_per_sec;
            distance = distance.saturating_add(Time::from_picos(1));
        }
        self.periods.advance(distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;

    const SEED: u64 = 5;

    fn cbr(rate: &str, burst: u32) -> Datagrams {
        Datagrams { rate: rate.parse().unwrap(), packet: 1500, burst, pattern: Pattern::Constant }
    }

    fn times(datagrams: &Datagrams, seconds: u64) -> Vec<Time> {
        let mut source = Source::new(datagrams, Seed::new(SEED), 0, Time::ZERO);
        let mut times = Vec::new();
        while source.next() < Time::from_secs(seconds) {
            let next = source.next();
            if source.leaves() {
                times.push(next);
                source.sent();
            }
        }
        times
    }

    #[test]
    fn even_spacing_is_exact_and_does_not_drift() {
        // 622.08 Mbit/s is 51 840 packets of 1500 bytes a second.
        let times = times(&cbr("622.08 Mbit/s", 1), 3);
        assert_eq!(times.len(), 3 * 51_840);
        assert_eq!(times[51_840], Time::from_secs(1));
    }

    #[test]
    fn a_burst_leaves_at_once_and_keeps_the_rate() {
        // 12 Mbit/s: a packet each millisecond.
        let times = times(&cbr("12 Mbit/s", 4), 1);
        assert_eq!(times.len(), 1000);
        assert_eq!(times[..5], [0, 0, 0, 0, 4].map(Time::from_millis));
    }

    #[test]
    fn an_on_off_source_has_its_mean_rate() {
        // On for 20 ms, shorter than ten packets; off for 60 ms: a quarter of 12 Mbit/s. 25 000 cycles: the standard
        // deviation of the mean of the cycle is below 1 %.
        for on in [Distribution::Exponential(0.02), Distribution::Pareto { minimum: 0.012, shape: 2.5 }] {
            let off = Distribution::Exponential(0.06);
            let datagrams = Datagrams { pattern: Pattern::OnOff { on, off }, ..cbr("12 Mbit/s", 1) };
            assert!((datagrams.mean_rate() - 3e6).abs() < 1.0);
            let rate = times(&datagrams, 2000).len() as f64 * 12_000.0 / 2000.0;
            assert!((rate / 3e6 - 1.0).abs() < 0.03, "seed {SEED}: {rate}");
        }
    }

    #[test]
    fn off_times_have_the_tail_that_was_asked_for() {
        let (on, off) = (Distribution::Constant(0.01), Distribution::Pareto { minimum: 0.1, shape: 1.5 });
        let datagrams = Datagrams { pattern: Pattern::OnOff { on, off }, ..cbr("12 Mbit/s", 1) };
        let times = times(&datagrams, 20_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).secs_f64()).collect();
        let offs = gaps.iter().filter(|gap| **gap > 0.05).count() as f64;
        // Pareto: one of 10^1.5 = 31.6 is longer than ten times the smallest.
        let long = gaps.iter().filter(|gap| **gap > 1.0).count() as f64;
        assert!((long / offs * 31.62 - 1.0).abs() < 0.1, "seed {SEED}: {long} of {offs}");
    }

    #[test]
    fn a_burst_that_takes_years_of_on_periods_takes_no_longer_than_is_simulated() {
        // 1000 packets at 1 kbit/s are 12 000 s of on-time, a microsecond at a time.
        let (on, off) = (Distribution::Constant(1e-6), Distribution::Exponential(1e-6));
        let slow = Datagrams { pattern: Pattern::OnOff { on, off }, ..cbr("1 kbit/s", 1000) };
        assert_eq!(times(&slow, 2), [Time::ZERO; 1000]);
        // Skipping in pieces equals skipping at once: 12 ms of on-time, 20 us at a time, 600 periods, or 6000
        // for ten packets.
        let pattern =
            Pattern::OnOff { on: Distribution::Constant(20e-6), off: Distribution::Constant(20e-6) };
        let bursts = times(&Datagrams { pattern, ..cbr("1 Mbit/s", 10) }, 1);
        let starts: Vec<Time> = bursts.chunks(10).map(|burst| burst[0]).collect();
        assert_eq!(starts, [0, 240, 480, 720, 960].map(Time::from_millis));
    }

    #[test]
    fn a_pause_longer_than_the_clock_is_no_short_one() {
        // 40 packets of 65 535 bytes are 243 days, and the clock ends after 213.
        let slow = Datagrams { packet: 65_535, ..cbr("1 bit/s", 40) };
        let mut source = Source::new(&slow, Seed::new(SEED), 0, Time::ZERO);
        (0..40).for_each(|_| source.sent());
        assert_eq!(source.next(), Time::MAX);
    }
}
