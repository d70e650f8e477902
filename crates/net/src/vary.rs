//! Delays of single packets: jitter, aggregation and heavy tails, which preserve their order, and reordering, which does not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use elephan_units::{Seed, Stream, Time};
use rand::RngExt;

use crate::config::Delay;

/// Packets beyond the end of the wire that wait for an individual delay.
pub struct Varied<P> {
    delay: Option<Delay>,
    stream: Stream,
    held: BinaryHeap<Reverse<Held<P>>>,
    /// The latest arrival so far: no packet overtakes it, where the order is kept.
    latest: Time,
}

impl<P> Varied<P> {
    /// The delays of link number `index`; without a `delay`, packets arrive at the time given to
    /// [`Varied::hold`].
    pub fn new(delay: Option<Delay>, seed: Seed, index: u64) -> Self {
        let stream = seed.stream("delay on link", index);
        Self { delay, stream, held: BinaryHeap::new(), latest: Time::ZERO }
    }

    /// Adds packet `number` of the wire, which reached its end at `now`. Among equal arrival times, the first
    /// in is the first out.
    pub fn hold(&mut self, packet: P, number: u64, now: Time) {
        let arrival = match self.delay {
            None => now,
            Some(Delay::Jitter { max }) => {
                let extra = Time::from_picos(self.stream.random_range(0..=max.picos()));
                self.in_order(now.saturating_add(extra))
            }
            Some(Delay::HeavyTail { median, shape }) => {
                // 1 - u is in (0, 1], so that the delay is finite.
                let exceeded = 1.0 - self.stream.random::<f64>();
                self.in_order(now.saturating_add(pareto(median, shape, exceeded)))
            }
            Some(Delay::Aggregate { slot }) => self.in_order(end_of_slot(slot, now)),
            Some(Delay::Reorder { probability, extra }) => {
                let held = self.stream.random::<f64>() < probability;
                if held { now.saturating_add(extra) } else { now }
            }
        };
        self.held.push(Reverse(Held { key: (arrival, number), packet }));
    }

    /// When a packet arrives that would do so at `arrival` if it could overtake others.
    fn in_order(&mut self, arrival: Time) -> Time {
        self.latest = self.latest.max(arrival);
        self.latest
    }

    /// When the next packet arrives; `Time::MAX` for none.
    pub fn next(&self) -> Time {
        self.held.peek().map_or(Time::MAX, |Reverse(held)| held.key.0)
    }

    /// The next packet that has arrived by `now`.
    pub fn take(&mut self, now: Time) -> Option<P> {
        if self.next() > now {
            return None;
        }
        self.held.pop().map(|Reverse(held)| held.packet)
    }

    /// Takes all packets, with their numbers, in the order of arrival.
    pub fn clear(&mut self) -> Vec<(u64, P)> {
        std::iter::from_fn(|| self.held.pop()).map(|Reverse(held)| (held.key.1, held.packet)).collect()
    }

    /// Number of packets held.
    pub fn len(&self) -> usize {
        self.held.len()
    }
}

impl Delay {
    /// The longest additional delay; with a heavy tail, which has none, the one that one of 10^9 packets exceeds.
    pub fn longest(self) -> Time {
        match self {
            Self::Jitter { max: extra } | Self::Reorder { extra, .. } | Self::Aggregate { slot: extra } => {
                extra
            }
            Self::HeavyTail { median, shape } => pareto(median, shape, 1e-9),
        }
    }
}

/// The delay that a share `exceeded` of all packets exceeds, by Pareto's distribution of type II with this median: a delay of x is exceeded
/// with the probability (1 + x / s)^-shape (Johnson, Kotz and Balakrishnan 1994, "Continuous Univariate Distributions", chapter 20), and s
/// follows from the median.
fn pareto(median: Time, shape: f64, exceeded: f64) -> Time {
    let over_s = |exceeded: f64| libm::expm1(-libm::log(exceeded) / shape);
    Time::from_picos((median.picos() as f64 * (over_s(exceeded) / over_s(0.5))) as u64)
}

/// The first end of a slot that is not before `now`.
fn end_of_slot(slot: Time, now: Time) -> Time {
    let slots = now.picos().div_ceil(slot.picos());
    slots.checked_mul(slot.picos()).map_or(Time::MAX, Time::from_picos)
}

/// A delayed packet, ordered by arrival.
struct Held<P> {
    key: (Time, u64),
    packet: P,
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<P> Eq for Held<P> {}
impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When packets arrive that reach the end of the wire at these times; they arrive in the order of their numbers.
    fn arrivals(delay: Delay, ends: impl IntoIterator<Item = Time>) -> Vec<Time> {
        let mut varied = Varied::new(Some(delay), Seed::new(1), 0);
        for (number, end) in (0..).zip(ends) {
            varied.hold(number, number, end);
        }
        let mut arrivals = Vec::new();
        while varied.len() > 0 {
            let at = varied.next();
            assert_eq!(varied.take(at), Some(arrivals.len() as u64));
            arrivals.push(at);
        }
        arrivals
    }

    #[test]
    fn a_heavy_tail_has_its_median_and_its_power() {
        let (median, packets) = (Time::from_millis(2), 100_000);
        for shape in [1.5, 2.0, 4.0] {
            // So far apart that none waits for the one before it.
            let ends: Vec<Time> = (0..packets).map(|number| Time::from_secs(100 * number)).collect();
            let delays = arrivals(Delay::HeavyTail { median, shape }, ends.iter().copied());
            for (times, expected) in [
                (1, 0.5),
                // (1 + 10 (2^(1/shape) - 1))^-shape.
                (10, libm::pow(1.0 + 10.0 * (libm::pow(2.0, 1.0 / shape) - 1.0), -shape)),
            ] {
                let more = |(at, end): (&Time, &Time)| at.since(*end) > Time::from_millis(2 * times);
                let count = delays.iter().zip(&ends).filter(|&pair| more(pair)).count() as f64;
                let mean = packets as f64 * expected;
                // Four standard deviations either way.
                let band = 4.0 * libm::sqrt(mean * (1.0 - expected));
                assert!(
                    (count - mean).abs() < band,
                    "shape {shape}: {count} above {times} medians, expected {mean}"
                );
            }
        }
    }

    #[test]
    fn a_packet_waits_for_one_that_the_tail_delays() {
        // A packet each 10 us with delays of 1 ms: nearly all wait for another, and arrivals() asserts their order.
        let ends: Vec<Time> = (0..1000).map(|number| Time::from_micros(10 * number)).collect();
        let found =
            arrivals(Delay::HeavyTail { median: Time::from_millis(1), shape: 2.0 }, ends.iter().copied());
        assert!(found.iter().zip(&ends).all(|(at, end)| at >= end));
        assert!(found.windows(2).filter(|pair| pair[0] == pair[1]).count() > 900);
    }

    #[test]
    fn what_leaves_within_a_slot_arrives_at_its_end() {
        let ms = Time::from_millis;
        let early = Time::from_picos(1);
        // At the end of a slot a packet arrives at once; a picosecond later it waits for the next end. One that a shorter delay
        // brings to the end of the wire earlier does not overtake.
        let ends = [ms(0), early, ms(5), ms(5) + early, ms(7), ms(21), ms(14), ms(25)];
        let found = arrivals(Delay::Aggregate { slot: ms(5) }, ends);
        assert_eq!(found, [0, 5, 5, 10, 10, 25, 25, 25].map(ms));
        assert_eq!(end_of_slot(ms(5), Time::MAX), Time::MAX);
    }
}
