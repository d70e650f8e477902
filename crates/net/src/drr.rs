//! Deficit round robin: queues share a link by bytes, whatever their packet sizes.
//!
//! Shreedhar and Varghese, "Efficient Fair Queuing using Deficit Round Robin", SIGCOMM 1995 and IEEE/ACM
//! Transactions on Networking 4(3), 1996. With classes, their weights multiply the quantum. Without classes,
//! flows are hashed to queues and share the buffer; when it is full, packets of the longest queue are
//! dropped, as in the paper.

use std::collections::{BTreeMap, VecDeque};

use elephan_units::{Rate, Seed, Time};
use rand::RngExt;

use crate::class_states::{ClassCounters, ClassQueue, ClassStates};
use crate::classes::Drr;
use crate::fq_codel::hash;
use crate::ledger::{Ledger, Reason};
use crate::packet::{Head, Packet};
use crate::packets::Packets;
use crate::waiting::{Limit, Waiting};

/// The queues.
enum Queues<Q> {
    Classes(ClassStates<Q>),
    Flows { queues: Vec<Packets>, waiting: Waiting, limit: Limit, perturbation: u64 },
}

impl<Q: ClassQueue> Queues<Q> {
    /// A packet arrives; returns its queue, if it was accepted.
    #[inline]
    fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> Option<usize> {
        let (queues, waiting, limit, perturbation) = match self {
            Self::Classes(classes) => return classes.enqueue(place, now, ledger),
            Self::Flows { queues, waiting, limit, perturbation } => (queues, waiting, *limit, *perturbation),
        };
        let head = &ledger.packets.at(place).head;
        let bytes = head.bytes();
        let own = (hash(head.flow(), perturbation) % queues.len() as u64) as usize;
        while waiting.fills(limit, bytes) {
            let more = queues[own].waiting.bytes + u64::from(bytes);
            let longest = queues.iter_mut().max_by_key(|queue| queue.waiting.bytes);
            let longest = longest.filter(|longest| longest.waiting.bytes > more);
            let Some(last) = longest.and_then(|longest| longest.pop_back(&ledger.packets)) else {
                ledger.counters.drop(Reason::Full);
                return None;
            };
            waiting.remove(ledger.packets.at(last).head.bytes());
            ledger.discard(last, Reason::Full, now);
        }
        waiting.add(bytes);
        queues[own].push(place, &mut ledger.packets);
        Some(own)
    }

    #[inline]
    fn head_bytes<P: Packet>(&self, number: usize, ledger: &Ledger<P>) -> Option<u32> {
        match self {
            Self::Classes(classes) => classes.states[number].queue.head_bytes(ledger),
            Self::Flows { queues, .. } => {
                queues[number].front().map(|place| ledger.packets.at(place).head.bytes())
            }
        }
    }

    #[inline]
    fn dequeue<P: Packet>(&mut self, number: usize, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        match self {
            Self::Classes(classes) => classes.states[number].dequeue(now, ledger),
            Self::Flows { queues, waiting, .. } => {
                let place = queues[number].pop(&ledger.packets)?;
                waiting.remove(ledger.packets.at(place).head.bytes());
                Some(place)
            }
        }
    }
}

/// The state of a queue in the round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Bytes that it gets in a round; 0 for a queue that is served only when the others are empty.
    quantum: i64,
    deficit: i64,
    /// Whether it is in the round.
    active: bool,
}

/// Deficit round robin's state.
pub(crate) struct DrrState<Q> {
    queues: Queues<Q>,
    turns: Vec<Turn>,
    round: VecDeque<u32>,
    /// Whether the queue at the front of the round has been given its quantum.
    begun: bool,
    quantum: u32,
}

impl<Q: ClassQueue> DrrState<Q> {
    pub fn new(config: &Drr, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        let mut turns = vec![Turn { quantum: i64::from(config.quantum), deficit: 0, active: false }];
        let queues = if config.class.is_empty() {
            turns.resize(config.flows as usize, turns[0]);
            let queues = vec![Packets::default(); config.flows as usize];
            let perturbation = seed.stream("hash of flows on link", index).random();
            Queues::Flows { queues, waiting: Waiting::default(), limit, perturbation }
        } else {
            turns.resize(config.class.len(), turns[0]);
            Queues::Classes(ClassStates::new(&config.class, limit, rate, seed, index))
        };
        let mut state = Self { queues, turns, round: VecDeque::new(), begun: false, quantum: config.quantum };
        state.weigh();
        state
    }

    /// Quanta in proportion to weights; the smallest weight above zero has the quantum of the file.
    fn weigh(&mut self) {
        let Queues::Classes(classes) = &self.queues else { return };
        let weights = classes.states.iter().map(|class| class.weight);
        let least = weights.clone().filter(|&weight| weight > 0.0).fold(f64::INFINITY, f64::min);
        for (turn, weight) in self.turns.iter_mut().zip(weights) {
            turn.quantum = (f64::from(self.quantum) * weight / least).round() as i64;
        }
    }

    pub fn waiting(&self) -> Waiting {
        match &self.queues {
            Queues::Classes(classes) => classes.waiting(),
            Queues::Flows { waiting, .. } => *waiting,
        }
    }

    pub fn tune(&mut self, rate: Rate) {
        if let Queues::Classes(classes) = &mut self.queues {
            classes.tune(rate);
        }
    }

    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>) {
        let Queues::Classes(classes) = &mut self.queues else { return };
        classes.set_weights(weights);
        let waits: Vec<bool> = classes.states.iter().map(|class| !class.is_empty()).collect();
        self.weigh();
        // The round restarts with the queues that now have a quantum.
        self.round.clear();
        self.begun = false;
        for (number, waits) in waits.into_iter().enumerate() {
            self.turns[number].active = false;
            if waits {
                self.join(number);
            }
        }
    }

    pub fn count_classes(&self, counters: &mut Vec<ClassCounters>) {
        if let Queues::Classes(classes) = &self.queues {
            classes.count(counters);
        }
    }

    fn join(&mut self, number: usize) {
        let turn = &mut self.turns[number];
        if !turn.active && turn.quantum > 0 {
            turn.active = true;
            turn.deficit = 0;
            self.round.push_back(number as u32);
        }
    }

    #[inline]
    pub fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        let Some(number) = self.queues.enqueue(place, now, ledger) else { return false };
        self.join(number);
        true
    }

    /// Figure 3 of the paper, one packet at a time.
    #[inline]
    pub fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        while let Some(&front) = self.round.front() {
            let number = front as usize;
            let turn = &mut self.turns[number];
            if !self.begun {
                turn.deficit += turn.quantum;
                self.begun = true;
            }
            let Some(bytes) = self.queues.head_bytes(number, ledger) else {
                (turn.active, turn.deficit) = (false, 0);
                self.round.pop_front();
                self.begun = false;
                continue;
            };
            if i64::from(bytes) > turn.deficit {
                self.round.rotate_left(1);
                self.begun = false;
                continue;
            }
            if let Some(place) = self.queues.dequeue(number, now, ledger) {
                turn.deficit -= i64::from(ledger.packets.at(place).head.bytes());
                return Some(place);
            }
        }
        // Only the queue without weight has packets left.
        (0..self.turns.len())
            .filter(|&number| self.turns[number].quantum == 0)
            .find_map(|number| self.queues.dequeue(number, now, ledger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Class;
    use crate::packet::Ecn;
    use crate::packet_queue::PacketQueue;
    use crate::testing::{Parcel, parcel};
    use proptest::prelude::*;

    fn of(flow: u64, id: u64, bytes: u32) -> Parcel {
        Parcel { flow, bytes, ecn: Ecn::NotCapable, ..parcel(id) }
    }

    fn state(config: &Drr, limit: u64) -> DrrState<PacketQueue> {
        let rate = Rate::from_bits_per_sec(12_000_000);
        DrrState::new(config, Limit::Packets(limit), rate, Seed::new(1), 0)
    }

    #[test]
    fn the_papers_figures() {
        // Figures 1 and 2 of the paper: quantum 500, first queue 200, 750, 20; second 500, 500; ...
        let (mut drr, mut ledger) = (state(&Drr { quantum: 500, ..Drr::default() }, 100), Ledger::new());
        for (flow, sizes) in [(1, vec![200, 750, 20]), (2, vec![500, 500]), (3, vec![200, 600, 100])] {
            for (id, bytes) in sizes.into_iter().enumerate() {
                drr.enqueue(ledger.put(of(flow, id as u64, bytes)), Time::ZERO, &mut ledger);
            }
        }
        let order: Vec<(u64, u32)> = std::iter::from_fn(|| next(&mut drr, &mut ledger))
            .map(|packet| (packet.flow, packet.bytes))
            .collect();
        // Round 1: 200 of flow 1 leaves 300, too little for 750; 500 of flow 2; 200 of flow 3 leaves 300.
        // Round 2: 800: 750 and 20; 500; 800: 600 and 100.
        let expected = [(1, 200), (2, 500), (3, 200), (1, 750), (1, 20), (2, 500), (3, 600), (3, 100)];
        assert_eq!(order, expected);
    }

    #[test]
    fn the_longest_queue_pays_for_want_of_room() {
        let (mut drr, mut ledger) = (state(&Drr::default(), 10), Ledger::new());
        for id in 0..10 {
            assert!(drr.enqueue(ledger.put(of(1, id, 1500)), Time::ZERO, &mut ledger));
        }
        assert!(drr.enqueue(ledger.put(of(2, 0, 1500)), Time::ZERO, &mut ledger), "at the expense of flow 1");
        assert!(
            !drr.enqueue(ledger.put(of(1, 10, 1500)), Time::ZERO, &mut ledger),
            "it is the longest itself"
        );
        assert_eq!((drr.waiting().packets, ledger.counters.dropped_full), (10, 2));
        let left: Vec<u64> =
            std::iter::from_fn(|| next(&mut drr, &mut ledger)).map(|packet| packet.id).collect();
        assert_eq!(left, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    fn next(drr: &mut DrrState<PacketQueue>, ledger: &mut Ledger<Parcel>) -> Option<Parcel> {
        drr.dequeue(Time::ZERO, ledger).map(|place| ledger.take(place))
    }

    fn classes(weights: &[f64]) -> Drr {
        let class = |(number, &weight): (usize, &f64)| Class {
            name: format!("c{number}"),
            dscp: if number == 0 { Vec::new() } else { vec![number.to_string().parse().unwrap()] },
            weight: Some(weight),
            buffer_share: None,
            queue: crate::Queue::default(),
        };
        Drr { class: weights.iter().enumerate().map(class).collect(), ..Drr::default() }
    }

    #[test]
    fn weights_change_in_mid_run() {
        let (mut drr, mut ledger) = (state(&classes(&[9.0, 1.0]), 100_000), Ledger::new());
        let fill = |drr: &mut DrrState<PacketQueue>, ledger: &mut Ledger<Parcel>| {
            for dscp in [0, 1] {
                for id in 0..20_000 {
                    drr.enqueue(ledger.put(Parcel { dscp, ..of(0, id, 1500) }), Time::ZERO, ledger);
                }
            }
        };
        fill(&mut drr, &mut ledger);
        let mut share = |drr: &mut DrrState<PacketQueue>| {
            (0..10_000).filter(|_| next(drr, &mut ledger).unwrap().dscp == 0).count()
        };
        assert_eq!(share(&mut drr), 9000);
        drr.set_weights(&BTreeMap::from([("c0".to_owned(), 1.0), ("c1".to_owned(), 9.0)]));
        assert_eq!(share(&mut drr), 1000);
        drr.set_weights(&BTreeMap::from([("c1".to_owned(), 0.0)]));
        assert_eq!(share(&mut drr), 10_000);
        // One class is empty, and the class without weight is served nevertheless: 20 000 of each came in.
        assert_eq!(share(&mut drr), 0);
    }

    proptest! {
        #[test]
        fn bytes_are_fair_whatever_the_sizes(
            sizes in prop::collection::vec(prop::collection::vec(40u32..1501, 1..20), 2..6),
        ) {
            // Each flow is backlogged with its own pattern of packet sizes; distinct flows have distinct
            // queues here.
            let mut drr = state(&Drr { flows: 65_536, ..Drr::default() }, 1_000_000);
            let mut ledger = Ledger::new();
            for (flow, sizes) in sizes.iter().enumerate() {
                let bytes: u32 = sizes.iter().sum();
                for _ in 0..=400_000 / bytes {
                    for &size in sizes {
                        drr.enqueue(ledger.put(of(flow as u64, 0, size)), Time::ZERO, &mut ledger);
                    }
                }
            }
            let mut served = vec![0u64; sizes.len()];
            while served.iter().all(|&bytes| bytes < 380_000) {
                let packet = next(&mut drr, &mut ledger).unwrap();
                served[packet.flow as usize] += u64::from(packet.bytes);
            }
            // Theorem 2 of the paper: the difference between backlogged flows is at most quantum + 2 Max,
            // here 3 times 1500 bytes.
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            prop_assert!(most - least <= 4500, "{:?}", served);
        }

        #[test]
        fn classes_share_bytes_by_weight(weights in prop::collection::vec(1u32..20, 2..5), small in 40u32..1500) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let mut drr = state(&classes(&weights), 10_000_000);
            let mut ledger = Ledger::new();
            for dscp in 0..weights.len() as u8 {
                // Every second class has small packets.
                let bytes = if dscp % 2 == 0 { 1500 } else { small };
                for id in 0..3_000_000 / u64::from(bytes) {
                    drr.enqueue(ledger.put(Parcel { dscp, ..of(0, id, bytes) }), Time::ZERO, &mut ledger);
                }
            }
            let mut served = vec![0u64; weights.len()];
            while served.iter().all(|&bytes| bytes < 2_900_000) {
                let packet = next(&mut drr, &mut ledger).unwrap();
                served[packet.dscp as usize] += u64::from(packet.bytes);
            }
            let sum: f64 = weights.iter().sum();
            let total: u64 = served.iter().sum();
            for (weight, bytes) in weights.iter().zip(&served) {
                let share = *bytes as f64 / total as f64;
                prop_assert!((share - weight / sum).abs() < 0.02, "{:?} by {:?}", served, weights);
            }
        }
    }
}
