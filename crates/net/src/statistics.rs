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
    most_packets: u64,
    /// Allocated when a packet first has to wait.
    delays: Option<Histogram<u64>>,
}

impl Default for QueueStatistics {
    fn default() -> Self {
        Self::new(Time::ZERO)
    }
}

impl QueueStatistics {
    /// Counts packets that arrive from `first` on.
    pub fn new(first: Time) -> Self {
        Self { first, packets: 0, sum: 0, most_packets: 0, delays: None }
    }

    /// A packet arrived and will wait for `delay`, as one of `waiting` packets.
    #[inline]
    pub(crate) fn record(&mut self, delay: Time, waiting: u64, now: Time) {
        if now < self.first {
            return;
        }
        self.packets += 1;
        if delay == Time::ZERO {
            return;
        }
        self.sum += u128::from(delay.picos());
        self.most_packets = self.most_packets.max(waiting);
        let delays = self
            .delays
            .get_or_insert_with(|| Histogram::new(DIGITS).expect("two digits are a valid precision"));
        delays.record(delay.picos() / UNIT_PICOS).expect("it grows with its values");
    }

    /// The number of waiting packets after an arrival.
    #[inline]
    pub(crate) fn record_length(&mut self, waiting: u64, now: Time) {
        if now >= self.first {
            self.most_packets = self.most_packets.max(waiting);
        }
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Mean queueing delay, in seconds; zero if no packet arrived.
    pub fn mean_delay_s(&self) -> f64 {
        if self.packets == 0 { 0.0 } else { self.sum as f64 * 1e-12 / self.packets as f64 }
    }

    /// The delay that a share `quantile` of the packets did not exceed, in seconds, to 1 %.
    pub fn delay_quantile_s(&self, quantile: f64) -> f64 {
        let Some(delays) = &self.delays else { return 0.0 };
        // Packets that did not wait are not in the histogram.
        let waited = delays.len() as f64;
        let beyond = (1.0 - quantile) * self.packets as f64;
        if beyond >= waited {
            return 0.0;
        }
        delays.value_at_quantile(1.0 - beyond / waited) as f64 * UNIT_PICOS as f64 * 1e-12
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
