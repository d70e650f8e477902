//! Waiting packets, in order of arrival.

use std::collections::VecDeque;

use elephan_units::Time;

use crate::packet::Packet;

/// A waiting packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queued<P> {
    /// Its time of arrival.
    pub arrived: Time,
    pub packet: P,
}

/// Packets in order.
pub(crate) struct Packets<P> {
    pub packets: VecDeque<Queued<P>>,
    pub bytes: u64,
}

impl<P: Packet> Packets<P> {
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, packet: P, now: Time) {
        self.bytes += u64::from(packet.bytes());
        self.packets.push_back(Queued { arrived: now, packet });
    }

    /// Takes the packet that arrived first.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        let stored = self.packets.pop_front()?;
        self.bytes -= u64::from(stored.packet.bytes());
        Some(stored)
    }

    /// Takes the packet that arrived last.
    pub fn pop_back(&mut self) -> Option<Queued<P>> {
        let stored = self.packets.pop_back()?;
        self.bytes -= u64::from(stored.packet.bytes());
        Some(stored)
    }
}
