//! A schedule of events: at most one pending event for each source.

use elephan_units::Time;

/// An indexed heap of sources, by the time of their next event; among equals, by number.
///
/// So the order of simultaneous events follows from the plan alone, regardless of the order of scheduling.
/// Nodes have four children: this halves the number of levels of a binary heap, and siblings share a cache
/// line.
pub struct Events {
    /// Time and source in one number, whose order is that of the pair.
    heap: Vec<u128>,
    /// The position of each source in the heap.
    places: Vec<u32>,
    /// Number of sources; additional entries of the heap fill the last group.
    sources: usize,
}

const ARITY: usize = 4;

#[inline]
fn key(time: Time, source: usize) -> u128 {
    u128::from(time.picos()) << 64 | source as u128
}

#[inline]
fn time(key: u128) -> Time {
    Time::from_picos((key >> 64) as u64)
}

#[inline]
fn source(key: u128) -> usize {
    key as usize
}

impl Events {
    /// A heap of `sources` sources without events.
    pub fn new(sources: usize) -> Self {
        Self::with_room(sources, 0)
    }

    /// The same, with room for so many more.
    pub fn with_room(sources: usize, more: usize) -> Self {
        let room = sources + more + ARITY;
        let mut events = Self { heap: Vec::with_capacity(room), places: Vec::with_capacity(room), sources };
        events.fill();
        events
    }

    /// Extends the heap for all sources to whole groups of children, so that no node has fewer. The entries
    /// that fill the last group never move.
    fn fill(&mut self) {
        let filled = 1 + self.sources.saturating_sub(1).next_multiple_of(ARITY);
        // The new entries are at the end: nothing is below them, and everything above is earlier.
        self.heap.extend((self.heap.len()..filled).map(|source| key(Time::MAX, source)));
        self.places.extend(self.places.len() as u32..filled as u32);
    }

    /// Adds a source without an event; returns its number.
    pub fn add(&mut self) -> usize {
        self.sources += 1;
        self.fill();
        self.sources - 1
    }

    /// The earliest event: its time and source; [`Time::MAX`] if there is none.
    #[inline]
    pub fn next(&self) -> (Time, usize) {
        let key = self.heap[0];
        (time(key), source(key))
    }

    /// The earliest event of any other source than this one.
    #[inline]
    pub fn next_but(&self, but: usize) -> (Time, usize) {
        let first = self.heap[0];
        let key = match self.heap.get(1..) {
            _ if source(first) != but => first,
            Some(&[a, b, c, d, ..]) => a.min(b).min(c.min(d)),
            _ => return (Time::MAX, usize::MAX),
        };
        (time(key), source(key))
    }

    /// Sets the event of `source` to `time`, and replaces its previous event.
    #[inline]
    pub fn schedule(&mut self, source: usize, time: Time) {
        let place = self.places[source] as usize;
        let key = key(time, source);
        if key < self.heap[place] {
            self.rise(place, key);
        } else {
            self.sink(place, key);
        }
    }

    fn rise(&mut self, mut place: usize, key: u128) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] < key {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, key);
    }

    #[inline]
    fn sink(&mut self, mut place: usize, key: u128) {
        loop {
            let first = place * ARITY + 1;
            let Some(&[a, b, c, d, ..]) = self.heap.get(first..) else { break };
            let left = if b < a { (first + 1, b) } else { (first, a) };
            let right = if d < c { (first + 3, d) } else { (first + 2, c) };
            let (child, least) = if right.1 < left.1 { right } else { left };
            if key < least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, key);
    }

    #[inline]
    fn put(&mut self, place: usize, key: u128) {
        self.heap[place] = key;
        self.places[source(key)] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_go_in_order_of_sources() {
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
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn a_source_that_is_added_has_its_turn() {
        let mut events = Events::new(1);
        let added = events.add();
        assert_eq!(events.next(), (Time::MAX, 0));
        events.schedule(added, Time::from_secs(1));
        assert_eq!(events.next(), (Time::from_secs(1), 1));
    }

    proptest! {
        #[test]
        fn the_next_event_is_the_earliest(
            sources in 1usize..40, added in 0usize..40, steps in prop::collection::vec((0usize..80, 0u64..1000), 1..300),
        ) {
            let mut events = Events::new(sources);
            for number in sources..sources + added {
                prop_assert_eq!(events.add(), number);
            }
            let sources = sources + added;
            let mut times = vec![Time::MAX; sources];
            for (source, time) in steps {
                let source = source % sources;
                events.schedule(source, Time::from_picos(time));
                times[source] = Time::from_picos(time);
                let least = (0..sources).map(|source| (times[source], source)).min().unwrap();
                prop_assert_eq!(events.next(), least);
                let other = (0..sources).filter(|&other| other != source);
                let other = other.map(|source| (times[source], source)).min();
                let other = other.filter(|other| other.0 < Time::MAX).unwrap_or((Time::MAX, usize::MAX));
                prop_assert_eq!(events.next_but(source).0, other.0);
                prop_assert!(other.0 == Time::MAX || events.next_but(source) == other);
            }
        }
    }
}
