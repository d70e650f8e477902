//! A sent segment and its state.

use elephan_units::Time;

/// Selectively acknowledged.
pub(super) const SACKED: u8 = 1;
/// Marked lost.
pub(super) const LOST: u8 = 2;
/// A retransmission of it is thought to be in flight.
pub(super) const IN_FLIGHT_AGAIN: u8 = 4;
/// Retransmitted at least once: its ACK is ambiguous (Karn).
pub(super) const RETRANSMITTED: u8 = 8;
/// Carries the FIN.
pub(super) const FIN: u8 = 16;

/// A sent segment. The size of 24 bytes matters, because a window of a million records is walked at line
/// rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// Offset of its first byte.
    pub offset: u64,
    /// When it was last sent.
    pub sent_at: Time,
    /// Number of its last transmission, counted from the start of the connection, wrapping.
    pub(super) transmission: u32,
    /// Payload bytes.
    pub len: u16,
    pub(super) flags: u8,
}

impl Record {
    /// The segment so many places behind this one, if both are of one length and were sent one after the other at one time.
    #[inline]
    pub(super) fn behind(&self, places: u32) -> Self {
        Self {
            offset: self.offset + u64::from(places) * u64::from(self.len),
            transmission: self.transmission.wrapping_add(places),
            ..*self
        }
    }
    /// Offset after its last byte; a FIN takes one byte of sequence space.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len) + u64::from(self.is_fin())
    }
    /// Whether it carries the FIN.
    pub fn is_fin(&self) -> bool {
        self.flags & FIN != 0
    }
    /// Whether its last transmission came after number `transmission`.
    pub fn was_sent_after(&self, transmission: u32) -> bool {
        is_later(self.transmission, transmission)
    }
    /// Whether it was ever retransmitted.
    pub fn was_retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }
    /// Whether it is lost, and waits to be retransmitted.
    pub(super) fn waits(&self) -> bool {
        self.flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST
    }
    /// Bytes that it adds to the pipe (RFC 6675's SetPipe).
    pub(super) fn in_pipe(&self) -> u64 {
        if self.flags & SACKED != 0 {
            return 0;
        }
        let copies = u64::from(self.flags & LOST == 0) + u64::from(self.flags & IN_FLIGHT_AGAIN != 0);
        copies * u64::from(self.len)
    }
}

/// Whether transmission `a` came after `b`; the numbers count from the start of the connection, and wrap.
pub fn is_later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}
