//! What a link counts, and why packets end.

use elephan_units::Time;

/// Why a queue, or the link itself, dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There was no room.
    Full,
    /// The discipline wanted a shorter queue.
    Early,
    /// It exceeded a policer's rate.
    Policed,
    /// The link was down, or went down with it.
    Down,
}

/// What a link has counted; all only grow. Every packet that was offered is in exactly one of
/// `dropped`, `lost`, `delivered`, or still on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets dropped, for one of the four reasons that follow.
    pub dropped: u64,
    /// Dropped for want of room.
    pub dropped_full: u64,
    /// Dropped by the discipline before the queue was full.
    pub dropped_early: u64,
    /// Dropped by a policer.
    pub dropped_policed: u64,
    /// Dropped since the link was down.
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

/// Counters, and on request the packets that were dropped after they had been accepted.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<P> {
    pub counters: LinkCounters,
    /// When, and which; nothing is kept unless [`crate::Link::keep_drops`] asks for it.
    pub drops: Option<Vec<(Time, P)>>,
    /// Packets that the wire lost, where somebody asks for them.
    pub lost: Option<Vec<P>>,
}

impl<P: crate::Packet> Ledger<P> {
    pub fn new() -> Self {
        Self { counters: LinkCounters::default(), drops: None, lost: None }
    }

    /// A packet that had been accepted is dropped.
    pub fn discard(&mut self, packet: &P, reason: Reason, now: Time) {
        self.counters.drop(reason);
        self.counters.bytes_discarded += u64::from(packet.bytes());
        if let Some(drops) = &mut self.drops {
            drops.push((now, *packet));
        }
    }
}
