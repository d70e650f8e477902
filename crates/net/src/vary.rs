//! Delays of single packets: jitter, which preserves their order, and reordering, which does not.

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
    /// The latest arrival so far: with jitter, no packet overtakes it.
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
                self.latest = self.latest.max(now.saturating_add(extra));
                self.latest
            }
            Some(Delay::Reorder { probability, extra }) => {
                let held = self.stream.random::<f64>() < probability;
                if held { now.saturating_add(extra) } else { now }
            }
        };
        self.held.push(Reverse(Held { key: (arrival, number), packet }));
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
