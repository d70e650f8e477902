//! Segments of which nothing is known but that they were sent, once: those that were sent together are one entry.

use std::collections::VecDeque;

use elephan_units::Time;

use super::record::{FIN, Record};

/// Full segments that were sent one after the other at one time, or any one segment.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// The first segment.
    first: Record,
    /// Number of segments.
    count: u32,
}

/// Segments that were sent once, in order.
#[derive(Clone, Debug, Default)]
pub struct Bursts {
    bursts: VecDeque<Burst>,
}

/// Segments that were removed: their payload bytes, their number, and of the last of them the number of its transmission and when it
/// was sent.
#[derive(Clone, Copy, Debug)]
pub struct Removed {
    pub bytes: u64,
    pub count: u32,
    pub transmission: u32,
    pub sent_at: Time,
}

/// Makes room in a full queue for half as many again: small windows are many, and doubling would leave a quarter of their memory unused.
#[inline(always)]
pub fn make_room<T>(queue: &mut VecDeque<T>) {
    #[cold]
    fn grow<T>(queue: &mut VecDeque<T>) {
        queue.reserve_exact((queue.len() / 2).max(2));
    }
    if queue.len() == queue.capacity() {
        grow(queue);
    }
}

/// Removes the first of a queue. An empty one gives its memory back: of many flows, few repair a loss at a time.
pub fn take_first<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let first = queue.pop_front();
    if queue.is_empty() {
        *queue = VecDeque::new();
    }
    first
}

impl Removed {
    /// The first `count` segments of a burst.
    #[inline(always)]
    fn add(&mut self, burst: &Burst, count: u32) {
        self.bytes += u64::from(count) * u64::from(burst.first.len);
        self.count += count;
        self.transmission = burst.first.transmission.wrapping_add(count - 1);
        self.sent_at = burst.first.sent_at;
    }
}

impl Burst {
    /// What it takes of the sequence space.
    #[inline(always)]
    fn len(&self) -> u64 {
        u64::from(self.count) * u64::from(self.first.len) + u64::from(self.first.is_fin())
    }

    /// The last segment.
    fn last(&self) -> Record {
        self.first.behind(self.count - 1)
    }
}

impl Bursts {
    /// Adds `count` segments: this one, and those of the same length behind it.
    #[inline(always)]
    pub fn push(&mut self, first: Record, count: u32) {
        if let Some(last) = self.bursts.back_mut()
            && last.first.sent_at == first.sent_at
            && last.first.len == first.len
            && last.first.transmission.wrapping_add(last.count) == first.transmission
            && (last.first.flags | first.flags) & FIN == 0
        {
            last.count += count;
            return;
        }
        make_room(&mut self.bursts);
        self.bursts.push_back(Burst { first, count });
    }

    /// The first segment.
    #[inline]
    pub fn front(&self) -> Option<&Record> {
        self.bursts.front().map(|burst| &burst.first)
    }

    /// The last segment.
    pub fn back(&self) -> Option<Record> {
        self.bursts.back().map(Burst::last)
    }

    /// Removes the first segment.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Record> {
        let burst = self.bursts.front_mut()?;
        let first = burst.first;
        if burst.count == 1 {
            take_first(&mut self.bursts);
        } else {
            (burst.first, burst.count) = (first.behind(1), burst.count - 1);
        }
        Some(first)
    }

    /// Removes all segments below `offset`; `None` if the first is not one.
    #[inline(always)]
    pub fn remove_below(&mut self, offset: u64) -> Option<Removed> {
        let mut removed = Removed { bytes: 0, count: 0, transmission: 0, sent_at: Time::ZERO };
        while let Some(burst) = self.bursts.front_mut() {
            let bytes = offset.saturating_sub(burst.first.offset);
            if bytes == 0 {
                break;
            }
            if bytes < burst.len() {
                // A FIN comes alone, and most bursts that are acknowledged in part are so by one segment: a division takes longer than
                // the rest.
                let len = u64::from(burst.first.len);
                let count = if bytes < 2 * len { u32::from(bytes >= len) } else { (bytes / len) as u32 };
                if count > 0 && burst.count > 1 {
                    removed.add(burst, count);
                    burst.first = burst.first.behind(count);
                    burst.count -= count;
                }
                break;
            }
            removed.add(burst, burst.count);
            self.bursts.pop_front();
        }
        (removed.count > 0).then_some(removed)
    }
}
