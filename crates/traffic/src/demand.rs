//! What a flow sends.

use elephan_units::Bytes;

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Data without end.
    Unlimited,
    /// Transfers of one size, each on a connection of its own.
    Transfers {
        /// Payload of a transfer.
        size: Bytes,
        /// Number of successive transfers; none means until the run ends.
        count: Option<u64>,
    },
    /// Transfers of which a crowd draws times and sizes.
    Drawn,
}

impl Demand {
    /// Payload of a transfer, bytes; none where data have no end.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Transfers { size, .. } => Some(size.get()),
            Self::Unlimited | Self::Drawn => None,
        }
    }
}
