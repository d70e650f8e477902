//! How much waits, and how much may.

use elephan_units::Bytes;

/// How much a queue may hold. The packet in service is not counted, as in ns-2 and ns-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets of any size.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
}

/// Bytes as a file gives them, for `Limit`.
impl From<Bytes> for Limit {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes.get())
    }
}

/// What waits for service in front of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets, the one in service not counted.
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

    /// Whether a packet of `bytes` finds no room.
    #[inline]
    pub(crate) fn fills(&self, limit: Limit, bytes: u32) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(most) => self.bytes + u64::from(bytes) > most,
        }
    }
}
