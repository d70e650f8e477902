//! Reception of a stream of numbered packets: count, delay and order.

use elephan_units::Time;
use hdrhistogram::Histogram;

use crate::summary::StreamSummary;

/// Resolution of delays: percentiles are accurate to 1 % above it.
const MICROSECOND: u64 = 1_000_000;

/// Counters of a stream at its receiver; they never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that arrived.
    pub packets: u64,
    /// Packets expected: one more than the highest number that arrived (RFC 3550, appendix A.3).
    pub expected: u64,
    /// Packets that arrived after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
}

impl Received {
    /// Packets that did not arrive although a later one did: they are lost, or overtaken and still in
    /// transit.
    pub fn lost(&self) -> u64 {
        self.expected - self.packets
    }
}

/// The receiver of a stream. A packet belongs to the measuring window in which it was sent. This is
/// determined by its number, so every packet that a window counts as received or lost was sent in it.
#[derive(Clone, Debug)]
pub struct Reception {
    received: Received,
    /// Number of the first packet of the measuring window, and the counters when the window began.
    first: u64,
    before: Received,
    /// Packets received since then that had been sent before the window.
    earlier: Received,
    delays: Histogram<u64>,
    delay_sum: u128,
    delay_max: Time,
    /// Delay of the previous packet, and the jitter so far, s.
    last: Option<Time>,
    jitter_s: f64,
}

impl Default for Reception {
    fn default() -> Self {
        Self::new()
    }
}

impl Reception {
    /// A receiver that has received nothing; its measuring window begins with the first packet.
    pub fn new() -> Self {
        Self {
            received: Received::default(),
            first: 0,
            before: Received::default(),
            earlier: Received::default(),
            delays: Histogram::new(2).expect("two digits are a valid precision"),
            delay_sum: 0,
            delay_max: Time::ZERO,
            last: None,
            jitter_s: 0.0,
        }
    }

    /// The measuring window restarts with packet `first`, the next that is sent.
    pub fn measure(&mut self, first: u64) {
        let (received, last, jitter_s) = (self.received, self.last, self.jitter_s);
        *self = Self { received, before: received, first, last, jitter_s, ..Self::new() };
    }

    /// Packet `number`, counted from 0, arrives `delay` after it was sent.
    pub fn receive(&mut self, number: u64, delay: Time) {
        if number < self.first {
            self.earlier.packets += 1;
            self.earlier.reordered += u64::from(number < self.received.expected);
        }
        let received = &mut self.received;
        received.packets += 1;
        received.reordered += u64::from(number < received.expected);
        received.expected = received.expected.max(number + 1);
        // RFC 3550, section 6.4.1: the mean deviation of the difference of two packets' transit times.
        if let Some(last) = self.last.replace(delay) {
            let difference = delay.since(last).max(last.since(delay)).secs_f64();
            self.jitter_s += (difference - self.jitter_s) / 16.0;
        }
        if number >= self.first {
            self.delays.record((delay.picos() / MICROSECOND).max(1)).expect("it grows with its values");
            self.delay_sum += u128::from(delay.picos());
            self.delay_max = self.delay_max.max(delay);
        }
    }

    /// The counters.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Metrics of the stream in the measuring window, which lasts for `span` and ends now. `sent` packets
    /// were sent since the stream started, of `payload` bytes each.
    pub fn summary(
        &self,
        label: String,
        started: Option<Time>,
        sent: u64,
        payload: u64,
        span: Time,
    ) -> StreamSummary {
        let arrived = self.received.packets - self.before.packets;
        let received = arrived - self.earlier.packets;
        StreamSummary {
            label,
            start_s: started.map(Time::secs_f64),
            goodput_bit_s: (arrived * payload) as f64 * 8.0 / span.secs_f64(),
            sent: sent - self.first,
            received,
            lost: self.received.expected.max(self.first) - self.first - received,
            reordered: self.received.reordered - self.before.reordered - self.earlier.reordered,
            delay_mean_s: self.delay_mean_s(),
            delay_p50_s: self.delay_quantile_s(0.5),
            delay_p99_s: self.delay_quantile_s(0.99),
            delay_max_s: self.delay_max_s(),
            jitter_s: self.jitter_s(),
        }
    }

    /// Mean one-way delay in the window, s; `None` without packets.
    pub fn delay_mean_s(&self) -> Option<f64> {
        let count = self.delays.len();
        let mean_s = self.delay_sum as f64 * 1e-12 / count as f64;
        self.delay_max_s().map(|most_s| mean_s.min(most_s))
    }

    /// A quantile of the one-way delay in the window, to 1 %, s; `None` without packets.
    pub fn delay_quantile_s(&self, quantile: f64) -> Option<f64> {
        // The value of a bin is its largest.
        let value_s = self.delays.value_at_quantile(quantile) as f64 * 1e-6;
        self.delay_max_s().map(|most_s| value_s.min(most_s))
    }

    /// The largest one-way delay in the window, s; `None` without packets.
    pub fn delay_max_s(&self) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delay_max.secs_f64())
    }

    /// Interarrival jitter (RFC 3550, section 6.4.1) after the last packet, s; `None` before the second.
    pub fn jitter_s(&self) -> Option<f64> {
        (self.received.packets > 1).then_some(self.jitter_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_loss_until_it_is_filled() {
        let mut reception = Reception::new();
        for number in [0, 1, 4] {
            reception.receive(number, Time::from_millis(10));
        }
        assert_eq!(reception.received().lost(), 2);
        reception.receive(2, Time::from_millis(10));
        let received = reception.received();
        assert_eq!((received.lost(), received.reordered, received.packets), (1, 1, 4));
    }

    #[test]
    fn a_packet_belongs_to_the_window_in_which_it_was_sent() {
        let mut reception = Reception::new();
        reception.receive(0, Time::from_millis(80));
        // Packets 1 to 3 were sent before the window; 2 is lost, and 3 arrives after 4.
        reception.measure(4);
        for (number, ms) in [(1, 90), (4, 10), (3, 70), (7, 20), (6, 30)] {
            reception.receive(number, Time::from_millis(ms));
        }
        let summary = reception.summary("s".into(), None, 9, 1000, Time::from_secs(1));
        assert_eq!((summary.sent, summary.received, summary.lost, summary.reordered), (5, 3, 1, 1));
        // Packets that arrive in the window count as its goodput, whenever they were sent.
        assert_eq!(summary.goodput_bit_s, 40_000.0);
        assert!((summary.delay_mean_s.unwrap() - 0.020).abs() < 1e-12);
        assert_eq!(summary.delay_max_s, Some(0.030));
        assert!((summary.delay_p50_s.unwrap() / 0.020 - 1.0).abs() < 0.01);
        assert_eq!(reception.received().lost(), 2);
    }

    #[test]
    fn jitter_by_hand() {
        // RFC 3550: J = 0 + (4 - 0)/16 = 0.25 ms, then 0.25 + (4 - 0.25)/16 = 0.484375 ms.
        let mut reception = Reception::new();
        for (number, ms) in [(0, 10), (1, 14), (2, 10)] {
            reception.receive(number, Time::from_millis(ms));
        }
        assert!((reception.jitter_s().unwrap() - 0.484_375e-3).abs() < 1e-12);
    }

    #[test]
    fn nothing_received_has_no_delay() {
        let reception = Reception::new();
        assert_eq!(
            (reception.delay_mean_s(), reception.jitter_s(), reception.delay_quantile_s(0.5)),
            (None, None, None)
        );
    }
}
