//! Two ends joined by a pipe that loses, delays, reorders, duplicates and marks, from one seed.

use std::collections::BTreeMap;

use elephan_tcp::{Config, Endpoint, Flags, Segment, Stack};
use elephan_units::Time;

use super::controller;

/// The impairments of a pipe, the same in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Chances in 1000 that a segment is lost, sent twice, delayed further, or marked.
    pub lost: u32,
    pub doubled: u32,
    pub delayed: u32,
    pub marked: u32,
    /// One-way propagation delay.
    pub delay: Time,
    /// The maximum additional delay.
    pub jitter: Time,
    /// Service time of the bottleneck for a segment, and the capacity of its queue.
    pub service: Time,
    pub buffer: u64,
}

impl Faults {
    /// A pipe that only delays segments by `delay`.
    pub fn none(delay: Time) -> Self {
        Self {
            lost: 0,
            doubled: 0,
            delayed: 0,
            marked: 0,
            delay,
            jitter: Time::ZERO,
            service: Time::ZERO,
            buffer: u64::MAX,
        }
    }
}

/// A small generator that needs no library: xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2_685_821_657_736_338_717) | 1)
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(2_685_821_657_736_338_717) % bound.max(1)
    }
    fn in_1000(&mut self, chances: u32) -> bool {
        self.below(1000) < u64::from(chances)
    }
}

/// Two ends, and the segments in flight between them.
pub struct Pipe {
    pub ends: [Endpoint; 2],
    pub now: Time,
    pub faults: Faults,
    random: Random,
    /// By time of arrival and a serial number: the receiving end, the segment, and whether it is marked.
    flying: BTreeMap<(Time, u64), (usize, Segment, bool)>,
    serial: u64,
    free: [Time; 2],
    /// Whether impairments are active; they are switched off at the end of a test, so that it ends.
    pub faulty: bool,
    /// Number of events so far.
    steps: u64,
}

impl Pipe {
    pub fn new(algorithm: &str, configs: [&Config; 2], faults: Faults, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut iss = || (random.below(1 << 32)) as u32;
        let (a, b) = (iss(), iss());
        let ends = [
            Endpoint::connect(&Stack::new(configs[0], controller(algorithm, configs[0])), a),
            Endpoint::listen(&Stack::new(configs[1], controller(algorithm, configs[1])), b),
        ];
        Self {
            ends,
            now: Time::ZERO,
            faults,
            random,
            flying: BTreeMap::new(),
            serial: 0,
            free: [Time::ZERO; 2],
            faulty: true,
            steps: 0,
        }
    }

    /// Sends all pending segments of both ends. `look` is called for each segment before it is sent.
    pub fn pump(&mut self, look: &mut impl FnMut(&Self, usize, &Segment)) {
        for end in [0, 1] {
            while let Some(segment) = self.ends[end].poll_transmit(self.now) {
                look(self, end, &segment);
                let capable = self.ends[end].ecn_capable();
                self.send(end, segment, capable);
            }
        }
    }

    fn send(&mut self, from: usize, segment: Segment, capable: bool) {
        let faults = self.faults;
        let start = self.free[from].max(self.now);
        let full = start.since(self.now).picos() > faults.service.picos().saturating_mul(faults.buffer);
        if full || self.faulty && self.random.in_1000(faults.lost) {
            return;
        }
        self.free[from] = start + faults.service;
        let copies = 1 + u32::from(self.faulty && self.random.in_1000(faults.doubled));
        for _ in 0..copies {
            let mut arrival = start + faults.service + faults.delay;
            if self.faulty && self.random.in_1000(faults.delayed) {
                arrival += Time::from_picos(self.random.below(faults.jitter.picos()));
            }
            let marked = capable && self.faulty && self.random.in_1000(faults.marked);
            self.serial += 1;
            self.flying.insert((arrival, self.serial), (1 - from, segment, marked));
        }
    }

    /// Advances to the next event; false if there is none. Panics if the events do not end.
    pub fn step(&mut self, look: &mut impl FnMut(&Self, usize, &Segment)) -> bool {
        self.steps += 1;
        assert!(self.steps < 2_000_000, "no end at {}", self.now);
        self.pump(look);
        let arrival = self.flying.first_key_value().map_or(Time::MAX, |(&(at, _), _)| at);
        let timers = [self.ends[0].poll_timeout(), self.ends[1].poll_timeout()];
        let next = arrival.min(timers[0]).min(timers[1]);
        if next == Time::MAX {
            return false;
        }
        assert!(next >= self.now || next == timers[0] || next == timers[1]);
        self.now = next.max(self.now);
        for end in [0, 1] {
            if timers[end] <= self.now {
                self.ends[end].on_timer(self.now);
            }
        }
        if arrival <= self.now
            && let Some((_, (to, segment, marked))) = self.flying.pop_first()
        {
            self.ends[to].on_segment(&segment, marked, self.now);
        }
        self.pump(look);
        true
    }

    /// Whether everything that both ends wrote was delivered and acknowledged, including the FINs.
    pub fn is_done(&self) -> bool {
        self.ends.iter().all(|end| end.is_finished() && end.peer_is_finished())
    }

    /// Whether one end was aborted or reset.
    pub fn is_dead(&self) -> bool {
        self.ends.iter().any(Endpoint::is_reset)
    }
}

/// Whether a segment carries payload or a FIN.
pub fn is_data(segment: &Segment) -> bool {
    segment.len > 0 || segment.flags.contains(Flags::FIN)
}
