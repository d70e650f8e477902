//! Statistics of the delays and lengths that packets find in a queue.

use elephan_units::Time;
use hdrhistogram::Histogram;

/// Two significant digits: a percentile is accurate to 1 %.
const DIGITS: u8 = 2;
/// Unit of the stored delays, 100 ns: finer than a packet's service time at 100 Gbit/s.
const UNIT_PICOS: u64 = 100_000;

/// Queueing delays and lengths over a measuring window, collected as packets arrive.
///
/// The delay is from arrival to the start of service. A packet adds its own delay to the integral of the
/// queue's length (Little's law), so no sampling is needed.
#[derive(Clone, Debug)]
pub struct QueueStatistics {
    first: Time,
    packets: u64,
    /// Sum of delays, in picoseconds.
    sum: u128,
    longest: Time,
    most_packets: u64,
    /// Number of delays above zero by their bin, as [`bin`] counts them.
    delays: Vec<u64>,
}

/// Values below this have bins of their own; above, each doubling of the value has half as many. These are the bins of a
/// histogram of two significant digits, which takes the counts when a quantile is asked for.
const EXACT: u64 = 256;

/// The bin of a value.
#[inline]
fn bin(value: u64) -> usize {
    let shift = (value | (EXACT - 1)).ilog2() - (EXACT.ilog2() - 1);
    ((u64::from(shift) * (EXACT / 2)) + (value >> shift)) as usize
}

/// The smallest value of a bin.
fn smallest(bin: usize) -> u64 {
    let half = EXACT as usize / 2;
    let shift = (bin / half).saturating_sub(1);
    ((bin - shift * half) as u64) << shift
}

impl Default for QueueStatistics {
    fn default() -> Self {
        Self::new(Time::ZERO)
    }
}

impl QueueStatistics {
    /// Counts packets that arrive from `first` on.
    pub fn new(first: Time) -> Self {
        Self { first, packets: 0, sum: 0, longest: Time::ZERO, most_packets: 0, delays: Vec::new() }
    }

    /// A packet arrived and will wait for `delay`.
    #[inline]
    pub(crate) fn record(&mut self, delay: Time, now: Time) {
        if !self.counts(now) {
            return;
        }
        self.packets += 1;
        if delay == Time::ZERO {
            return;
        }
        self.sum += u128::from(delay.picos());
        self.longest = self.longest.max(delay);
        let bin = bin(delay.picos() / UNIT_PICOS);
        match self.delays.get_mut(bin) {
            Some(count) => *count += 1,
            None => self.add_bins(bin),
        }
    }

    /// Packets arrived, all when packets are counted, and do not wait.
    #[inline]
    pub(crate) fn record_none(&mut self, packets: u64) {
        self.packets += packets;
    }

    /// Whether a packet that arrives now is counted.
    #[inline]
    pub(crate) fn counts(&self, now: Time) -> bool {
        now >= self.first
    }

    /// Counts a delay in a bin beyond all so far.
    #[inline(never)]
    fn add_bins(&mut self, bin: usize) {
        self.delays.resize(bin + 1, 0);
        self.delays[bin] = 1;
    }

    /// The number of waiting packets after an arrival.
    #[inline]
    pub(crate) fn record_length(&mut self, waiting: u64, now: Time) {
        if self.counts(now) {
            self.most_packets = self.most_packets.max(waiting);
        }
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Mean queueing delay, in seconds; `None` if no packet arrived.
    pub fn mean_delay_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum as f64 * 1e-12 / self.packets as f64)
    }

    /// The delay that a share `quantile` of the packets did not exceed, in seconds, to 1 %; `None` if no packet arrived.
    pub fn delay_quantile_s(&self, quantile: f64) -> Option<f64> {
        if self.packets == 0 {
            return None;
        }
        let mut delays = Histogram::<u64>::new(DIGITS).expect("two digits are a valid precision");
        for (bin, &count) in self.delays.iter().enumerate().filter(|(_, count)| **count > 0) {
            delays.record_n(smallest(bin), count).expect("it grows with its values");
        }
        // Packets that did not wait are not in the histogram.
        let waited = delays.len() as f64;
        let beyond = (1.0 - quantile) * self.packets as f64;
        if beyond >= waited {
            return Some(0.0);
        }
        // The value of a bin is its largest.
        let delay = delays.value_at_quantile(1.0 - beyond / waited).saturating_mul(UNIT_PICOS);
        Some(Time::from_picos(delay).min(self.longest).secs_f64())
    }

    /// Mean number of waiting packets over `span`, not counting the one in service.
    pub fn mean_packets(&self, span: Time) -> f64 {
        if span == Time::ZERO { 0.0 } else { self.sum as f64 / span.picos() as f64 }
    }

    /// Maximum number of packets that waited at once.
    pub fn most_packets(&self) -> u64 {
        self.most_packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_are_those_of_the_histogram(value in (0..1u64 << 40, 0..33u32).prop_map(|(value, shift)| value >> shift)) {
            let mut histogram = Histogram::<u64>::new(DIGITS).expect("two digits are a valid precision");
            histogram.record(value).expect("it grows with its values");
            prop_assert_eq!(smallest(bin(value)), histogram.lowest_equivalent(value));
            prop_assert_eq!(bin(smallest(bin(value))), bin(value));
            prop_assert_eq!(bin(histogram.highest_equivalent(value)), bin(value));
            prop_assert_eq!(bin(histogram.next_non_equivalent(value)), bin(value) + 1);
        }
    }
}
