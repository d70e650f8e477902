//! A TCP segment as a small plain value: the header fields and the length of the payload, without its
//! content.

use std::ops::{BitOr, BitOrAssign};

/// The flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push: the last segment of an application write.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is valid.
    pub const ACK: Self = Self(0x10);
    /// Echo of a congestion mark (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// The flags as encoded in the header's byte.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Whether all of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The SACK option: up to four blocks of `[left, right)` sequence numbers, the newest first (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Appends a block; returns whether there was room.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = (left, right);
        self.count += 1;
        true
    }
    /// The blocks, the newest first.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What every segment has: its header, of the options only timestamps, and its length. Sequence numbers are as on the wire: 32 bits
/// that wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgment number; valid only with [`Flags::ACK`].
    pub ack: u32,
    /// Timestamp value (RFC 7323), in ticks of 1 ms; valid only if `timestamps` is set.
    pub ts_val: u32,
    /// Timestamp echo reply, in the same ticks; valid only if `timestamps` is set.
    pub ts_ecr: u32,
    /// The window field as on the wire, before scaling.
    pub window: u16,
    /// Payload, in bytes.
    pub len: u16,
    /// Flags.
    pub flags: Flags,
    /// Whether the timestamps option is present.
    pub timestamps: bool,
}

impl Header {
    /// Bytes of the IPv4 packet that carries a segment with this header and no other options.
    #[inline]
    pub fn packet_bytes(&self) -> u32 {
        IP_HEADER + TCP_HEADER + if self.timestamps { TIMESTAMPS } else { 0 } + u32::from(self.len)
    }

    /// Whether it is one of an open connection that goes well: no flags but ACK and PSH.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.flags.bits() & !Flags::PSH.bits() == Flags::ACK.bits()
    }
}

/// A TCP segment. Sequence numbers are as on the wire: 32 bits that wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (of the SYN, where there is one).
    pub seq: u32,
    /// Acknowledgment number; valid only with [`Flags::ACK`].
    pub ack: u32,
    /// Payload, in bytes.
    pub len: u16,
    /// The window field as on the wire, before scaling.
    pub window: u16,
    /// Timestamp value (RFC 7323), in ticks of 1 ms; valid only if `timestamps` is set.
    pub ts_val: u32,
    /// Timestamp echo reply, in the same ticks; valid only if `timestamps` is set.
    pub ts_ecr: u32,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// Flags.
    pub flags: Flags,
    /// Whether the timestamps option is present.
    pub timestamps: bool,
    /// On a SYN: the maximum segment size option; 0 if absent.
    pub mss: u16,
    /// On a SYN: the window scale option plus one; 0 if absent.
    pub window_scale_plus_one: u8,
    /// On a SYN: whether the SACK-permitted option is present.
    pub sack_permitted: bool,
}

/// Data segments that are sent one after the other at one time, and differ only in their sequence number.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// The first, which has no options but timestamps; the sequence number of each is that of the one before it plus its length.
    pub first: Header,
    /// Their number.
    pub count: u16,
    /// Whether they are to be sent ECN-capable, as [`Endpoint::ecn_capable`](crate::Endpoint::ecn_capable) says of a single segment.
    pub ecn_capable: bool,
    /// Whether nothing follows them at this time: [`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit) would return `None`.
    pub is_all: bool,
}

/// Bytes of an IPv4 header without options.
pub const IP_HEADER: u32 = 20;
/// Bytes of a TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// Bytes of the timestamps option with its padding.
pub(crate) const TIMESTAMPS: u32 = 12;

impl From<Header> for Segment {
    #[inline]
    fn from(header: Header) -> Self {
        let Header { seq, ack, ts_val, ts_ecr, window, len, flags, timestamps } = header;
        Self { seq, ack, len, window, ts_val, ts_ecr, flags, timestamps, ..Self::default() }
    }
}

impl Segment {
    /// Bytes of options, padded to a multiple of four, as Linux lays them out.
    pub fn options_bytes(&self) -> u32 {
        let mut bytes = 0;
        if self.mss > 0 {
            bytes += 4;
        }
        if self.window_scale_plus_one > 0 {
            bytes += 4;
        }
        if self.timestamps {
            bytes += TIMESTAMPS;
        }
        if self.sack_permitted {
            // Shares a 32-bit word with the timestamps' padding if both options are present.
            bytes += if self.timestamps { 0 } else { 4 };
        }
        if !self.sack.is_empty() {
            bytes += 4 + 8 * self.sack.as_slice().len() as u32;
        }
        bytes
    }

    /// Bytes of the IPv4 packet that carries this segment. A link's rate counts these bytes.
    pub fn packet_bytes(&self) -> u32 {
        IP_HEADER + TCP_HEADER + self.options_bytes() + u32::from(self.len)
    }

    /// Whether it has no options but timestamps, so that the header says everything.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.sack.is_empty() && self.mss == 0 && self.window_scale_plus_one == 0 && !self.sack_permitted
    }

    /// Its header.
    #[inline]
    pub fn header(&self) -> Header {
        let Self { seq, ack, len, window, ts_val, ts_ecr, flags, timestamps, .. } = *self;
        Header { seq, ack, ts_val, ts_ecr, window, len, flags, timestamps }
    }

    /// Sequence space that the segment takes: its payload, plus one for a SYN and one for a FIN.
    pub fn seq_len(&self) -> u32 {
        u32::from(self.len)
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }
}
