//! The counters of a link, and the reasons for drops.

use elephan_units::Time;

use crate::packet::{Head, Packet};
use crate::packets::Store;

/// Why a queue, or the link itself, dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There was no room.
    Full,
    /// The discipline dropped it early, to shorten the queue.
    Early,
    /// It exceeded a policer's rate.
    Policed,
    /// The link was down, or went down while it held the packet.
    Down,
}

/// A link's counters; they never decrease. Every packet that was offered is in exactly one of `dropped`,
/// `lost`, `delivered`, or still on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets dropped, for one of the four reasons that follow.
    pub dropped: u64,
    /// Dropped because the buffer was full.
    pub dropped_full: u64,
    /// Dropped by the discipline before the queue was full.
    pub dropped_early: u64,
    /// Dropped by a policer.
    pub dropped_policed: u64,
    /// Dropped because the link was down.
    pub dropped_down: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Bytes accepted for transmission, headers included.
    pub bytes_accepted: u64,
    /// Of these, bytes that were dropped before they were served.
    pub bytes_discarded: u64,
}

impl LinkCounters {
    /// The difference to `before`, less `earlier`.
    #[must_use]
    pub fn since(&self, before: &Self, earlier: &Self) -> Self {
        Self {
            offered: self.offered - before.offered - earlier.offered,
            dropped: self.dropped - before.dropped - earlier.dropped,
            dropped_full: self.dropped_full - before.dropped_full - earlier.dropped_full,
            dropped_early: self.dropped_early - before.dropped_early - earlier.dropped_early,
            dropped_policed: self.dropped_policed - before.dropped_policed - earlier.dropped_policed,
            dropped_down: self.dropped_down - before.dropped_down - earlier.dropped_down,
            lost: self.lost - before.lost - earlier.lost,
            marked: self.marked - before.marked - earlier.marked,
            delivered: self.delivered - before.delivered - earlier.delivered,
            bytes_accepted: self.bytes_accepted - before.bytes_accepted - earlier.bytes_accepted,
            bytes_discarded: self.bytes_discarded - before.bytes_discarded - earlier.bytes_discarded,
        }
    }

    /// Counts a dropped packet.
    pub(crate) fn drop(&mut self, reason: Reason) {
        self.dropped += 1;
        match reason {
            Reason::Full => self.dropped_full += 1,
            Reason::Early => self.dropped_early += 1,
            Reason::Policed => self.dropped_policed += 1,
            Reason::Down => self.dropped_down += 1,
        }
    }
}

/// Counters, the packets that wait, and on request those that were dropped after they had been accepted.
pub(crate) struct Ledger<P: Packet> {
    pub counters: LinkCounters,
    /// The packets in the queues of the link.
    pub packets: Store<P>,
    /// Packets offered from this time on belong to the measuring window.
    pub first: Time,
    /// Drops, losses and marks of packets that had been offered before the window.
    pub earlier: LinkCounters,
    /// Whether the queue is being emptied because the link goes down: packets taken from it are not served.
    pub clearing: bool,
    /// The times and packets of such drops; nothing is kept unless [`crate::NearEnd::keep_drops`] was called.
    pub drops: Option<Vec<(Time, P)>>,
}

impl<P: Packet> Ledger<P> {
    pub fn new() -> Self {
        let counters = LinkCounters::default();
        let packets = Store::new();
        Self { counters, packets, first: Time::ZERO, earlier: counters, clearing: false, drops: None }
    }

    /// Drops an accepted packet, which was taken out of its queue.
    pub fn discard(&mut self, place: u32, reason: Reason, now: Time) {
        let (stored, rest) = self.packets.remove(place);
        self.counters.drop(reason);
        self.counters.bytes_discarded += u64::from(stored.head.bytes());
        if stored.arrived < self.first {
            self.earlier.drop(reason);
        }
        if let Some(drops) = &mut self.drops {
            drops.push((now, P::join(&stored.head, rest)));
        }
    }

    /// Marks an accepted packet.
    pub fn mark(&mut self, place: u32) {
        let stored = self.packets.at_mut(place);
        stored.head.mark();
        self.counters.marked += 1;
        self.earlier.marked += u64::from(stored.arrived < self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_what_came_after_it_began() {
        // Each counter: the current value, less the value before, less the packets offered earlier.
        let all = |number| LinkCounters {
            offered: number,
            dropped: number + 1,
            dropped_full: number + 2,
            dropped_early: number + 3,
            dropped_policed: number + 4,
            dropped_down: number + 5,
            lost: number + 6,
            marked: number + 7,
            delivered: number + 8,
            bytes_accepted: number + 9,
            bytes_discarded: number + 10,
        };
        let found = all(1000).since(&all(100), &all(0));
        // 1000 + n - (100 + n) - n is 900 - n.
        assert_eq!((found.offered, found.dropped, found.dropped_full), (900, 899, 898));
        assert_eq!((found.dropped_early, found.dropped_policed, found.dropped_down), (897, 896, 895));
        assert_eq!((found.lost, found.marked, found.delivered), (894, 893, 892));
        assert_eq!((found.bytes_accepted, found.bytes_discarded), (891, 890));
    }
}
