//! The amount of waiting data, and its limit.

use elephan_units::Bytes;

/// How much a queue may hold. The packet in service is not counted, as in ns-2 and ns-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets of any size.
    Packets(u64),
    /// A number of bytes.
    Bytes(u64),
}

/// Bytes as a file gives them, for `Limit`.
impl From<Bytes> for Limit {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes.get())
    }
}

/// The packets that wait for service before a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Number of packets, not counting the one in service.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Waiting {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }

    /// Whether there is no room for a packet of `bytes`.
    #[inline]
    pub(crate) fn fills(&self, limit: Limit, bytes: u32) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        }
    }
}
