//! Weighted round robin of classes: numbers of packets in proportion to weights, whatever their sizes.
//!
//! Katevenis, Sidiropoulos and Courcoubetis, "Weighted Round-Robin Cell Multiplexing in a General-Purpose ATM
//! Switch Chip", IEEE JSAC 9(8), 1991. As in the paper, the turns of a class are spread over the round: at
//! 90:10 every tenth packet is of the second class.

use elephan_units::{Rate, Seed, Time};

use crate::class_states::{ClassQueue, ClassStates};
use crate::classes::Wrr;
use crate::ledger::Ledger;
use crate::packet::Packet;
use crate::waiting::Limit;

/// Weighted round robin's state.
pub(crate) struct WrrState<Q> {
    pub classes: ClassStates<Q>,
    /// The credit of each class, in units of weight.
    owed: Vec<f64>,
}

impl<Q: ClassQueue> WrrState<Q> {
    pub fn new(config: &Wrr, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        let classes = ClassStates::new(&config.class, limit, rate, seed, index);
        Self { classes, owed: vec![0.0; config.class.len()] }
    }

    #[inline]
    pub fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        loop {
            // Each waiting class is credited with its weight; the class with the largest credit is served,
            // and is debited the sum of the weights.
            let (mut sum, mut most) = (0.0, None::<usize>);
            for (number, class) in self.classes.states.iter().enumerate() {
                if class.is_empty() {
                    self.owed[number] = 0.0;
                    continue;
                }
                self.owed[number] += class.weight;
                sum += class.weight;
                let more = most.is_none_or(|best| {
                    let best_weight = self.classes.states[best].weight;
                    // A class without weight waits for the classes with weight.
                    class.weight > 0.0 && (best_weight == 0.0 || self.owed[number] > self.owed[best])
                });
                if more {
                    most = Some(number);
                }
            }
            let number = most?;
            self.owed[number] -= sum;
            let place = self.classes.states[number].dequeue(now, ledger);
            if place.is_some() {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Class;
    use crate::packet_queue::PacketQueue;
    use crate::testing::{Parcel, parcel};
    use std::collections::BTreeMap;

    fn state(weights: [f64; 2], each: u64) -> (WrrState<PacketQueue>, Ledger<Parcel>) {
        let class = |name: &str, dscp: &[&str], weight| Class {
            name: name.to_owned(),
            dscp: dscp.iter().map(|name| name.parse().unwrap()).collect(),
            weight: Some(weight),
            buffer_share: None,
            queue: crate::Queue::default(),
        };
        let config = Wrr { class: vec![class("af", &["af"], weights[0]), class("be", &[], weights[1])] };
        assert_eq!(crate::Queue::Wrr(config.clone()).mistakes(), []);
        let rate = Rate::from_bits_per_sec(12_000_000);
        let mut wrr = WrrState::<PacketQueue>::new(&config, Limit::Packets(100_000), rate, Seed::new(1), 0);
        let mut ledger = Ledger::new();
        for id in 0..each {
            for dscp in [10, 0] {
                let place = ledger.put(Parcel { dscp, ..parcel(id) });
                assert!(wrr.classes.enqueue(place, Time::ZERO, &mut ledger).is_some());
            }
        }
        (wrr, ledger)
    }

    fn assured((wrr, ledger): &mut (WrrState<PacketQueue>, Ledger<Parcel>), packets: usize) -> Vec<bool> {
        let mut next = || wrr.dequeue(Time::ZERO, ledger).map(|place| ledger.take(place));
        (0..packets).map(|_| next().unwrap().dscp == 10).collect()
    }

    #[test]
    fn turns_are_spread_over_the_round() {
        assert_eq!(
            assured(&mut state([3.0, 1.0], 10), 8),
            [true, true, false, true, true, true, false, true]
        );
        let mut wrr = state([0.9, 0.1], 2000);
        let served = assured(&mut wrr, 1000);
        for window in served.windows(10) {
            assert_eq!(window.iter().filter(|&&assured| assured).count(), 9);
        }
    }

    #[test]
    fn what_one_class_leaves_the_other_gets() {
        let mut wrr = state([0.9, 0.1], 10);
        let served = assured(&mut wrr, 20);
        assert_eq!(served.iter().filter(|&&assured| assured).count(), 10);
        assert!(wrr.0.dequeue(Time::ZERO, &mut wrr.1).is_none());
    }

    #[test]
    fn weights_change_in_mid_run_and_may_be_zero() {
        let mut wrr = state([90.0, 10.0], 2000);
        assert_eq!(assured(&mut wrr, 1000).iter().filter(|&&assured| assured).count(), 900);
        wrr.0.classes.set_weights(&BTreeMap::from([("af".to_owned(), 10.0), ("be".to_owned(), 90.0)]));
        assert_eq!(assured(&mut wrr, 1000).iter().filter(|&&assured| assured).count(), 100);
        wrr.0.classes.set_weights(&BTreeMap::from([("af".to_owned(), 0.0)]));
        let served = assured(&mut wrr, 2000);
        // 1000 of 2000 best-effort packets were left, and are served first.
        assert!(
            served[..1000].iter().all(|&assured| !assured) && served[1000..].iter().all(|&assured| assured)
        );
    }

    #[test]
    fn a_class_keeps_to_its_share_of_the_buffer() {
        let class = |name: &str, dscp: Vec<_>, buffer_share| Class {
            name: name.to_owned(),
            dscp,
            weight: None,
            buffer_share,
            queue: crate::Queue::default(),
        };
        let config = Wrr {
            class: vec![class("ef", vec!["ef".parse().unwrap()], Some(0.1)), class("be", Vec::new(), None)],
        };
        let rate = Rate::from_bits_per_sec(12_000_000);
        let mut wrr = WrrState::<PacketQueue>::new(&config, Limit::Packets(100), rate, Seed::new(1), 0);
        let mut ledger = Ledger::new();
        for dscp in [46, 0] {
            let accepted = (0..200).filter(|&id| {
                let place = ledger.put(Parcel { dscp, ..parcel(id) });
                wrr.classes.enqueue(place, Time::ZERO, &mut ledger).is_some()
            });
            assert_eq!(accepted.count(), if dscp == 46 { 10 } else { 90 });
        }
        assert_eq!(ledger.counters.dropped_full, 300);
        let mut counters = Vec::new();
        wrr.classes.count(&mut counters);
        assert_eq!((counters[0].offered, counters[0].dropped, counters[1].dropped), (200, 190, 110));
    }
}
