//! A packet on its way: a segment, whose it is, and how far it has come.

use elephan_net::Ecn;
use elephan_tcp::Segment;

/// A packet, copied by value.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What it carries.
    pub segment: Segment,
    /// The flow's number.
    pub flow: u32,
    /// Where it is, in the engine's list of all routes.
    pub at: u32,
    /// Which connection of the flow it belongs to, wrapping: late packets of the last transfer are not the next one's.
    pub connection: u16,
    /// Size with headers.
    bytes: u16,
    backward: bool,
    ecn: Ecn,
}

impl Packet {
    /// A packet at the start of its route, which is `at`.
    #[inline]
    pub fn new(segment: Segment, flow: u32, connection: u16, at: u32, backward: bool, capable: bool) -> Self {
        let ecn = if capable && segment.len > 0 { Ecn::Capable0 } else { Ecn::NotCapable };
        Self { bytes: segment.packet_bytes() as u16, segment, flow, at, connection, backward, ecn }
    }

    /// Whether it goes from receiver to sender.
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// The ECN field as it stands in the header.
    pub fn ecn_bits(&self) -> u8 {
        self.ecn as u8
    }

    /// Whether it was marked.
    pub fn is_marked(&self) -> bool {
        self.ecn == Ecn::Congestion
    }
}

impl elephan_net::Packet for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Congestion;
    }
}
