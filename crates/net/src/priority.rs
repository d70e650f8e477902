//! Strict priority of classes: the first class that has a packet is served (RFC 2475, section 3; EF of RFC
//! 3246 is often implemented so).

use elephan_units::{Rate, Seed, Time};

use crate::class_states::{ClassQueue, ClassStates};
use crate::classes::Priority;
use crate::ledger::Ledger;
use crate::packet::Packet;
use crate::waiting::Limit;

/// Strict priority's state.
pub(crate) struct PriorityState<Q> {
    pub classes: ClassStates<Q>,
}

impl<Q: ClassQueue> PriorityState<Q> {
    pub fn new(config: &Priority, limit: Limit, rate: Rate, seed: Seed, index: u64) -> Self {
        Self { classes: ClassStates::new(&config.class, limit, rate, seed, index) }
    }

    #[inline]
    pub fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        self.classes.states.iter_mut().find_map(|class| class.dequeue(now, ledger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Class;
    use crate::packet_queue::PacketQueue;
    use crate::testing::{Parcel, parcel};

    #[test]
    fn the_highest_class_goes_first() {
        let class = |name: &str, dscp: &[&str]| Class {
            name: name.to_owned(),
            dscp: dscp.iter().map(|name| name.parse().unwrap()).collect(),
            weight: None,
            buffer_share: None,
            queue: crate::Queue::default(),
        };
        let config = Priority { class: vec![class("ef", &["ef"]), class("af", &["af"]), class("be", &[])] };
        let rate = Rate::from_bits_per_sec(12_000_000);
        let mut queue = PriorityState::<PacketQueue>::new(&config, Limit::Packets(30), rate, Seed::new(1), 0);
        let mut ledger = Ledger::new();
        for dscp in [0, 10, 46, 0, 46, 34] {
            queue.classes.enqueue(ledger.put(Parcel { dscp, ..parcel(0) }), Time::ZERO, &mut ledger);
        }
        let mut next = || queue.dequeue(Time::ZERO, &mut ledger).map(|place| ledger.take(place));
        let order: Vec<u8> = std::iter::from_fn(|| Some(next()?.dscp)).collect();
        assert_eq!(order, [46, 46, 10, 34, 0, 0]);
    }
}
