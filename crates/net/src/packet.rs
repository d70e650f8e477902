//! The packet properties that a link and a queue use.

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: the packet is dropped instead of marked.
    #[default]
    NotCapable = 0b00,
    /// ECN-capable, ECT(1).
    Capable1 = 0b01,
    /// ECN-capable, ECT(0).
    Capable0 = 0b10,
    /// Congestion experienced.
    Congestion = 0b11,
}

/// A packet: copied by value, never boxed.
pub trait Packet: Copy {
    /// Size in bytes, IP header included.
    fn bytes(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Marks congestion; called only for capable packets.
    fn mark(&mut self);
    /// The differentiated services codepoint, 0 to 63 (RFC 2474).
    fn dscp(&self) -> u8;
    /// Sets the codepoint: a policer remarks packets that are out of profile.
    fn set_dscp(&mut self, dscp: u8);
    /// A number shared by the packets of one connection and direction, like a hash of addresses and ports.
    fn flow(&self) -> u64;
}
