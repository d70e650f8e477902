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
///
/// Queues and wires keep packets as heads, and beside them what few packets have: most packets of a long fat network are data and
/// acknowledgments without options of their own.
pub trait Packet: Copy {
    /// What every packet has.
    type Head: Head;
    /// What few packets have besides.
    type Rest: Copy;

    /// Its head.
    fn head(&self) -> &Self::Head;
    /// What it has besides, if anything.
    fn rest(&self) -> Option<Self::Rest>;
    /// The packet of two parts.
    fn join(head: &Self::Head, rest: Option<Self::Rest>) -> Self;
}

/// What every packet has: all that the elements of a link look at.
pub trait Head: Copy {
    /// Whether the packet has more.
    fn has_rest(&self) -> bool;
    /// The head of the packet so many places behind this one in a [`Run`](crate::Run).
    #[must_use]
    fn behind(&self, places: u32) -> Self;
    /// Whether `next` is that head. The one that is one place behind another decides how those behind it differ.
    fn has_behind(&mut self, places: u32, next: &Self) -> bool;

    /// Size of the packet in bytes, IP header included.
    fn bytes(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field.
    fn set_ecn(&mut self, ecn: Ecn);
    /// Marks congestion; called only for capable packets.
    #[inline]
    fn mark(&mut self) {
        self.set_ecn(Ecn::Congestion);
    }
    /// The differentiated services codepoint, 0 to 63 (RFC 2474).
    fn dscp(&self) -> u8;
    /// Sets the codepoint: a policer remarks packets that are out of profile.
    fn set_dscp(&mut self, dscp: u8);
    /// A number shared by the packets of one connection and direction, like a hash of addresses and ports.
    fn flow(&self) -> u64;
}
