//! What happens next: at most one pending event for each source.

use elephan_units::Time;

/// An indexed heap of sources, by the time of their next event; among equals, by when it was scheduled.
///
/// Four children to a node: half the levels of a binary heap, and siblings share cache lines.
pub struct Events {
    heap: Vec<Node>,
    /// Where each source stands in the heap.
    places: Vec<u32>,
    scheduled: u64,
}

#[derive(Clone, Copy)]
struct Node {
    time: Time,
    order: u64,
    source: u32,
}

impl Node {
    #[inline]
    fn key(&self) -> (Time, u64) {
        (self.time, self.order)
    }
}

const ARITY: usize = 4;

impl Events {
    /// `sources` sources, none of which has an event.
    pub fn new(sources: usize) -> Self {
        let heap = (0..sources as u32).map(|source| Node { time: Time::MAX, order: 0, source }).collect();
        Self { heap, places: (0..sources as u32).collect(), scheduled: 0 }
    }

    /// The earliest event: when, and whose.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let node = &self.heap[0];
        (node.time, node.source as usize)
    }

    /// When `source` has its event; `Time::MAX` for none.
    #[inline]
    pub fn time_of(&self, source: usize) -> Time {
        self.heap[self.places[source] as usize].time
    }

    /// Gives `source` its event at `time`, in place of the one it had.
    #[inline]
    pub fn schedule(&mut self, source: usize, time: Time) {
        let place = self.places[source] as usize;
        let earlier = time < self.heap[place].time;
        self.scheduled += 1;
        self.heap[place].time = time;
        self.heap[place].order = self.scheduled;
        if earlier {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let node = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].key() <= node.key() {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, node);
    }

    #[inline]
    fn sink(&mut self, mut place: usize) {
        let node = self.heap[place];
        let len = self.heap.len();
        loop {
            let first = place * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child].key() < self.heap[least].key() {
                    least = child;
                }
            }
            if node.key() <= self.heap[least].key() {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, node);
    }

    #[inline]
    fn put(&mut self, place: usize, node: Node) {
        self.heap[place] = node;
        self.places[node.source as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_go_in_order_of_scheduling() {
        let mut events = Events::new(3);
        for source in [2, 0, 1] {
            events.schedule(source, Time::from_secs(1));
        }
        let order: Vec<usize> = std::iter::from_fn(|| {
            let (time, source) = events.next();
            events.schedule(source, Time::MAX);
            (time < Time::MAX).then_some(source)
        })
        .collect();
        assert_eq!(order, [2, 0, 1]);
    }

    proptest! {
        #[test]
        fn the_next_event_is_the_earliest(steps in prop::collection::vec((0usize..20, 0u64..1000), 1..300)) {
            let mut events = Events::new(20);
            let mut times = [(Time::MAX, 0); 20];
            for (step, (source, time)) in steps.into_iter().enumerate() {
                events.schedule(source, Time::from_picos(time));
                times[source] = (Time::from_picos(time), step + 1);
                let least = times.iter().min().unwrap();
                let (time, source) = events.next();
                prop_assert_eq!((time, times[source]), (least.0, *least));
            }
        }
    }
}
