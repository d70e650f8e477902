//! Waiting packets, and their order in queues.

use elephan_units::Time;

use crate::packet::{Head, Packet};
use crate::waiting::Waiting;

/// A waiting packet.
pub(crate) struct Queued<H> {
    /// Its time of arrival.
    pub arrived: Time,
    pub head: H,
    /// The packets behind and before it in its queue, if there are any. Of a free place: the one that is free after it.
    behind: u32,
    before: u32,
}

/// The waiting packets of a link, each at a place that it keeps until it leaves.
pub(crate) struct Store<P: Packet> {
    places: Vec<Queued<P::Head>>,
    /// What few packets have besides, at the same places.
    rests: Vec<Option<P::Rest>>,
    /// The place of the next packet: of those that are free the last that was used, because it is still in the cache; or a new one.
    free: u32,
}

impl<P: Packet> Store<P> {
    pub fn new() -> Self {
        Self { places: Vec::new(), rests: Vec::new(), free: 0 }
    }

    /// Adds a packet; returns its place.
    #[inline(always)]
    pub fn insert(&mut self, head: &P::Head, rest: Option<P::Rest>, now: Time) -> u32 {
        let place = self.free;
        let queued = Queued { arrived: now, head: *head, behind: 0, before: 0 };
        if let Some(free) = self.places.get_mut(place as usize) {
            self.free = free.behind;
            *free = queued;
        } else {
            self.free += 1;
            self.places.push(queued);
            self.rests.push(None);
        }
        if rest.is_some() {
            self.rests[place as usize] = rest;
        }
        place
    }

    /// The packet at a place.
    #[inline(always)]
    pub fn at(&self, place: u32) -> &Queued<P::Head> {
        &self.places[place as usize]
    }

    #[inline(always)]
    pub fn at_mut(&mut self, place: u32) -> &mut Queued<P::Head> {
        &mut self.places[place as usize]
    }

    /// The packet at a place leaves: returns it, where it still is, and what it has besides its head.
    #[inline(always)]
    pub fn remove(&mut self, place: u32) -> (&Queued<P::Head>, Option<P::Rest>) {
        let queued = &mut self.places[place as usize];
        queued.behind = std::mem::replace(&mut self.free, place);
        let rest = if queued.head.has_rest() { self.rests[place as usize] } else { None };
        (queued, rest)
    }
}

/// A queue: places of packets, in order of arrival.
#[derive(Clone, Copy, Default)]
pub(crate) struct Packets {
    /// The ends, if there is a packet.
    first: u32,
    last: u32,
    pub waiting: Waiting,
}

impl Packets {
    /// The packet that arrived first.
    #[inline(always)]
    pub fn front(&self) -> Option<u32> {
        (self.waiting.packets > 0).then_some(self.first)
    }

    #[inline(always)]
    pub fn push<P: Packet>(&mut self, place: u32, store: &mut Store<P>) {
        if self.waiting.packets == 0 {
            self.first = place;
        } else {
            store.at_mut(self.last).behind = place;
        }
        let queued = store.at_mut(place);
        queued.before = self.last;
        self.last = place;
        self.waiting.add(queued.head.bytes());
    }

    /// Takes the packet that arrived first out of the queue.
    #[inline(always)]
    pub fn pop<P: Packet>(&mut self, store: &Store<P>) -> Option<u32> {
        let place = self.front()?;
        let queued = store.at(place);
        self.first = queued.behind;
        self.waiting.remove(queued.head.bytes());
        Some(place)
    }

    /// Takes the packet that arrived last out of the queue.
    pub fn pop_back<P: Packet>(&mut self, store: &Store<P>) -> Option<u32> {
        self.front()?;
        let place = self.last;
        let queued = store.at(place);
        self.last = queued.before;
        self.waiting.remove(queued.head.bytes());
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Parcel, parcel};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Queues in one store are as queues of their own, and places are used again, the last that was left first.
        #[test]
        fn queues_share_a_store(steps in prop::collection::vec((0usize..3, 0u8..5, 1u32..1500), 0..200)) {
            let mut store: Store<Parcel> = Store::new();
            let mut queues = [Packets::default(); 3];
            let mut expected: [VecDeque<(Time, Parcel)>; 3] = Default::default();
            let (mut most, mut left) = (0, None);
            for (id, (number, kind, bytes)) in (0..).zip(steps) {
                let (queue, expected) = (&mut queues[number], &mut expected[number]);
                if kind < 3 {
                    let (packet, now) = (Parcel { bytes, ..parcel(id) }, Time::from_picos(id));
                    let place = store.insert(&packet, packet.rest(), now);
                    prop_assert_eq!(left.take().unwrap_or(place), place);
                    queue.push(place, &mut store);
                    expected.push_back((now, packet));
                } else {
                    let (place, model) = if kind == 3 {
                        (queue.pop(&store), expected.pop_front())
                    } else {
                        (queue.pop_back(&store), expected.pop_back())
                    };
                    left = place.or(left);
                    let found = place.map(|place| store.remove(place));
                    let found = found.map(|(stored, rest)| (stored.arrived, Parcel::join(&stored.head, rest)));
                    prop_assert_eq!(found, model);
                }
                let bytes = expected.iter().map(|(_, packet)| u64::from(packet.bytes)).sum();
                prop_assert_eq!(queue.waiting, Waiting { packets: expected.len() as u64, bytes });
                prop_assert_eq!(queue.front().map(|place| store.at(place).head), expected.front().map(|stored| stored.1));
                most = most.max(queues.iter().map(|queue| queue.waiting.packets).sum::<u64>());
            }
            prop_assert_eq!(store.places.len() as u64, most);
        }
    }
}
