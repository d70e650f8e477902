//! Streams of datagrams in a file: `[[cbr]]` and `[[on_off]]`.

use elephan_traffic::{Datagrams, Pattern, UDP_HEADERS};
use elephan_units::{Bytes, Rate, Time};

use crate::distribution::DistributionFile;
use crate::file::Scenario;
use crate::plan::Stream;
use crate::resolve::Network;
use crate::start::StartFile;
use crate::topology::Topology;
use crate::traffic::{Common, traffic};

/// Limit of packets sent at one instant. No buffer holds more, and simulated time does not advance meanwhile.
const MOST_IN_A_BURST: u32 = 1_000_000;

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

    fn start(self) -> StartFile {
        of_both!(self, file => file.start)
    }

    /// What it is called where it has no label.
    fn kind(self) -> &'static str {
        match self {
            Self::Cbr(_) => "cbr",
            Self::OnOff(_) => "on-off",
        }
    }

    fn datagrams(self, key: &str, network: &mut Network) -> Option<Datagrams> {
        let (rate, packet, burst) = of_both!(self, file => (file.rate, file.packet, file.burst));
        if rate.bits_per_sec() == 0 {
            network.wrong(format!("{key}.rate"), "a rate above zero", "\"0 bit/s\"");
        }
        if !(u64::from(UDP_HEADERS) + 1..=65_535).contains(&packet.get()) {
            let expected = "a size from 29 to 65535 bytes, which has room for the headers";
            network.wrong(format!("{key}.packet"), expected, format_args!("\"{packet}\""));
        }
        if !(1..=MOST_IN_A_BURST).contains(&burst) {
            network.wrong(format!("{key}.burst"), format_args!("from 1 to {MOST_IN_A_BURST} packets"), burst);
        }
        let pattern = match self {
            Self::Cbr(_) => Pattern::Constant,
            Self::OnOff(file) => {
                let on = network.note(file.on.distribution(&format!("{key}.on"), false));
                let off = network.note(file.off.distribution(&format!("{key}.off"), true));
                Pattern::OnOff { on: on?, off: off? }
            }
        };
        Some(Datagrams { rate, packet: packet.get() as u32, burst, pattern })
    }
}

impl Scenario {
    /// Every stream of the file, with its key.
    pub(crate) fn stream_files(&self) -> impl Iterator<Item = (String, StreamFile<'_>)> {
        let cbr = self.cbr.iter().enumerate().map(|(n, file)| (format!("cbr.{n}"), StreamFile::Cbr(file)));
        let on_off =
            self.on_off.iter().enumerate().map(|(n, file)| (format!("on_off.{n}"), StreamFile::OnOff(file)));
        cbr.chain(on_off)
    }

    /// Every stream of the plan.
    pub(crate) fn streams(&self, topology: &mut Topology<'_>, network: &mut Network) -> Vec<Stream> {
        let mut streams: Vec<Stream> = Vec::new();
        for (key, file) in self.stream_files() {
            let first = streams.len() as u64;
            let name = |n: u64| format!("stream {}", first + n);
            let common = file.common();
            let placed = topology.place(&common.place, common.count, &key, name, network);
            let datagrams = file.datagrams(&key, network);
            let start = self.start(file.start(), common.stop, &key, network);
            let (Some((_, routes)), Some(datagrams)) = (placed, datagrams) else { continue };
            streams.extend(routes.into_iter().map(|[forward, _]| Stream {
                label: common.label.unwrap_or(file.kind()).to_owned(),
                datagrams,
                dscp: common.dscp,
                forward,
                start,
                stop: common.stop,
            }));
        }
        streams
    }
}
