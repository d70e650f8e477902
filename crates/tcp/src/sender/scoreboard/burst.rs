//! Segments of which nothing is known but that they were sent, once: those that were sent together are one entry.

use std::collections::VecDeque;

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

impl Burst {
    /// Offset after its last byte.
    fn end(&self) -> u64 {
        self.first.end() + u64::from(self.count - 1) * u64::from(self.first.len)
    }

    /// The last segment.
    fn last(&self) -> Record {
        self.first.behind(self.count - 1)
    }
}

impl Bursts {
    /// Adds `count` segments: this one, and those of the same length behind it.
    #[inline]
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
        if self.bursts.len() == self.bursts.capacity() {
            self.make_room();
        }
        self.bursts.push_back(Burst { first, count });
    }

    /// Makes room for half as many again: small windows are many, and doubling would leave a quarter of their memory
    /// unused.
    #[cold]
    fn make_room(&mut self) {
        self.bursts.reserve_exact((self.bursts.len() / 2).max(4));
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
            self.bursts.pop_front();
        } else {
            (burst.first, burst.count) = (first.behind(1), burst.count - 1);
        }
        Some(first)
    }

    /// Removes all segments below `offset`, of which the first is one: returns the last of them, and their number.
    #[inline]
    pub fn remove_below(&mut self, offset: u64) -> (Record, u32) {
        let (mut removed, mut last) = (0, Record::default());
        while let Some(burst) = self.bursts.front_mut() {
            if burst.end() <= offset {
                last = burst.last();
                removed += burst.count;
                self.bursts.pop_front();
                continue;
            }
            let acked = offset.saturating_sub(burst.first.offset) as u32;
            // Most that are acknowledged in part are so by one segment, and a division takes longer than the rest.
            let len = u32::from(burst.first.len);
            let count = if acked < 2 * len { u32::from(acked >= len) } else { acked / len };
            if count > 0 {
                last = burst.first.behind(count - 1);
                (burst.first, burst.count) = (burst.first.behind(count), burst.count - count);
                removed += count;
            }
            break;
        }
        (last, removed)
    }
}
