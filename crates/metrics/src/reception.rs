//! What arrives of a stream of numbered packets: how many, how late, in which order.

use elephan_units::Time;
use hdrhistogram::Histogram;

/// The smallest delay that is told apart: percentiles are right to 1 % above it.
const MICROSECOND: u64 = 1_000_000;

/// Counters of a stream at its receiver; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets that arrived.
    pub packets: u64,
    /// Packets that were to arrive: one more than the highest number that did (RFC 3550, appendix A.3).
    pub expected: u64,
    /// Packets that arrived after one with a higher number (RFC 4737, section 3.3).
    pub reordered: u64,
}

impl Received {
    /// Packets that did not arrive though a later one did; what overtook them for good or for now.
    pub fn lost(&self) -> u64 {
        self.expected - self.packets
    }
}

/// The receiver of a stream.
#[derive(Clone, Debug)]
pub struct Reception {
    received: Received,
    /// Where delays count: from the first to the second.
    window: (Time, Time),
    delays: Histogram<u64>,
    delay_sum: u128,
    delay_max: Time,
    /// Delay of the packet before, and the jitter so far, s.
    last: Option<Time>,
    jitter_s: f64,
}

impl Reception {
    /// A receiver that has received nothing; delays count from `from` to `to`.
    pub fn new(from: Time, to: Time) -> Self {
        Self {
            received: Received::default(),
            window: (from, to),
            delays: Histogram::new(2).expect("two digits are a valid precision"),
            delay_sum: 0,
            delay_max: Time::ZERO,
            last: None,
            jitter_s: 0.0,
        }
    }

    /// Packet `number`, counted from 0, arrives `delay` after it was sent.
    pub fn receive(&mut self, number: u64, delay: Time, now: Time) {
        let received = &mut self.received;
        received.packets += 1;
        received.reordered += u64::from(number < received.expected);
        received.expected = received.expected.max(number + 1);
        // RFC 3550, section 6.4.1: the mean deviation of the difference of two packets' transit times.
        if let Some(last) = self.last.replace(delay) {
            let difference = delay.since(last).max(last.since(delay)).secs_f64();
            self.jitter_s += (difference - self.jitter_s) / 16.0;
        }
        if self.window.0 <= now && now <= self.window.1 {
            self.delays.record((delay.picos() / MICROSECOND).max(1)).expect("it grows with its values");
            self.delay_sum += u128::from(delay.picos());
            self.delay_max = self.delay_max.max(delay);
        }
    }

    /// What was counted.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Mean one-way delay in the window, s; none without packets.
    pub fn delay_mean_s(&self) -> Option<f64> {
        let count = self.delays.len();
        (count > 0).then(|| self.delay_sum as f64 * 1e-12 / count as f64)
    }

    /// A quantile of the one-way delay in the window, to 1 %, s; none without packets.
    pub fn delay_quantile_s(&self, quantile: f64) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delays.value_at_quantile(quantile) as f64 * 1e-6)
    }

    /// The largest one-way delay in the window, s; none without packets.
    pub fn delay_max_s(&self) -> Option<f64> {
        (!self.delays.is_empty()).then(|| self.delay_max.secs_f64())
    }

    /// Interarrival jitter (RFC 3550, section 6.4.1) after the last packet, s; none before the second.
    pub fn jitter_s(&self) -> Option<f64> {
        (self.received.packets > 1).then_some(self.jitter_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reception() -> Reception {
        Reception::new(Time::ZERO, Time::from_secs(10))
    }

    #[test]
    fn a_gap_is_a_loss_until_it_is_filled() {
        let mut reception = reception();
        for number in [0, 1, 4] {
            reception.receive(number, Time::from_millis(10), Time::from_secs(1));
        }
        assert_eq!(reception.received().lost(), 2);
        reception.receive(2, Time::from_millis(10), Time::from_secs(1));
        let received = reception.received();
        assert_eq!((received.lost(), received.reordered, received.packets), (1, 1, 4));
    }

    #[test]
    fn delays_count_in_the_window_only() {
        let mut reception = reception();
        for (ms, s) in [(10, 1), (20, 2), (90, 11)] {
            reception.receive(0, Time::from_millis(ms), Time::from_secs(s));
        }
        assert!((reception.delay_mean_s().unwrap() - 0.015).abs() < 1e-12);
        assert_eq!(reception.delay_max_s(), Some(0.02));
        assert!((reception.delay_quantile_s(0.5).unwrap() / 0.01 - 1.0).abs() < 0.01);
    }

    #[test]
    fn jitter_by_hand() {
        // RFC 3550: J = 0 + (4 - 0)/16 = 0.25 ms, then 0.25 + (4 - 0.25)/16 = 0.484375 ms.
        let mut reception = reception();
        for (number, ms) in [(0, 10), (1, 14), (2, 10)] {
            reception.receive(number, Time::from_millis(ms), Time::ZERO);
        }
        assert!((reception.jitter_s().unwrap() - 0.484_375e-3).abs() < 1e-12);
    }

    #[test]
    fn nothing_received_has_no_delay() {
        let reception = reception();
        assert_eq!(
            (reception.delay_mean_s(), reception.jitter_s(), reception.delay_quantile_s(0.5)),
            (None, None, None)
        );
    }
}
