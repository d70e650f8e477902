//! The streams of datagrams.

use elephan_traffic::{Datagrams, Pattern, UDP_HEADERS};

use super::network::Network;
use super::topology::Topology;
use crate::file::{Scenario, StreamFile};
use crate::plan::Stream;

/// Limit of packets sent at one instant. No buffer holds more, and simulated time does not advance meanwhile.
const MOST_IN_A_BURST: u32 = 1_000_000;

impl Scenario {
    /// Every stream of the plan.
    pub(crate) fn streams(&self, topology: &mut Topology<'_>, network: &mut Network) -> Vec<Stream> {
        let mut streams: Vec<Stream> = Vec::new();
        for (key, file) in self.stream_files() {
            let first = streams.len() as u64;
            let name = |n: u64| format!("stream {}", first + n);
            let common = file.common();
            let placed = topology.place(&common.place, common.count, &key, name, network);
            let datagrams = datagrams(file, &key, network);
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

fn datagrams(stream: StreamFile<'_>, key: &str, network: &mut Network) -> Option<Datagrams> {
    let (rate, packet, burst) = stream.packets();
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
    let pattern = match stream {
        StreamFile::Cbr(_) => Pattern::Constant,
        StreamFile::OnOff(file) => {
            let on = network.note(file.on.distribution(&format!("{key}.on"), false));
            let off = network.note(file.off.distribution(&format!("{key}.off"), true));
            Pattern::OnOff { on: on?, off: off? }
        }
    };
    Some(Datagrams { rate, packet: packet.get() as u32, burst, pattern })
}
