//! Streams of datagrams in a file: `[[cbr]]` and `[[on_off]]`.

use elephan_units::{Bytes, Rate, Time};

use super::traffic::{Common, traffic};
use crate::distribution::DistributionFile;
use crate::start::StartFile;

traffic! {
    /// Datagrams (UDP) at a constant rate, without feedback.
    pub struct CbrFile {
        /// Rate, counting IP packets.
        pub rate: Rate,
        /// Size of a packet, headers included.
        #[serde(default = "full")]
        pub packet: Bytes,
        /// Number of packets sent back to back; the pause after them maintains the rate. 1 spaces all packets evenly.
        #[serde(default = "single")]
        pub burst: u32,
        /// Start time.
        #[serde(default)]
        pub start: StartFile,
    }
}

traffic! {
    /// Datagrams (UDP) with on periods at a constant rate and silent off periods.
    pub struct OnOffFile {
        /// Rate during an on period, counting IP packets.
        pub rate: Rate,
        /// Length of an on period.
        pub on: DistributionFile<Time>,
        /// Length of an off period.
        pub off: DistributionFile<Time>,
        /// Size of a packet, headers included.
        #[serde(default = "full")]
        pub packet: Bytes,
        /// Number of packets sent back to back; the pause after them maintains the rate. 1 spaces all packets evenly.
        #[serde(default = "single")]
        pub burst: u32,
        /// Start of the first on period.
        #[serde(default)]
        pub start: StartFile,
    }
}

fn full() -> Bytes {
    Bytes::new(1500)
}
fn single() -> u32 {
    1
}

/// Either of the two.
#[derive(Clone, Copy)]
pub(crate) enum StreamFile<'a> {
    Cbr(&'a CbrFile),
    OnOff(&'a OnOffFile),
}

/// What both have.
macro_rules! of_both {
    ($self:ident, $file:ident => $value:expr) => {
        match $self {
            Self::Cbr($file) => $value,
            Self::OnOff($file) => $value,
        }
    };
}

impl<'a> StreamFile<'a> {
    pub fn common(self) -> Common<'a> {
        of_both!(self, file => file.common())
    }

    pub fn start(self) -> StartFile {
        of_both!(self, file => file.start)
    }

    /// What it is called where it has no label.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cbr(_) => "cbr",
            Self::OnOff(_) => "on-off",
        }
    }

    /// Rate, size of a packet, and packets back to back.
    pub fn packets(self) -> (Rate, Bytes, u32) {
        of_both!(self, file => (file.rate, file.packet, file.burst))
    }
}
