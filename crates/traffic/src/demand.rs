//! The data that a flow sends.

use elephan_units::Bytes;

use crate::app::App;

/// The data that a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// Data without end.
    Unlimited,
    /// Transfers of one size, each on a separate connection.
    Transfers {
        /// Payload of a transfer.
        size: Bytes,
        /// Number of successive transfers; `None` means until the run ends.
        count: Option<u64>,
    },
    /// What an application writes, on one connection.
    App(App),
    /// Transfers whose times and sizes a crowd draws.
    Drawn,
}

impl Demand {
    /// Payload of a transfer, bytes; `None` if it sends none.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::Transfers { size, .. } => Some(size.get()),
            Self::Unlimited | Self::App(_) | Self::Drawn => None,
        }
    }
}
