//! Files: pcap and pcapng, in either byte order and any resolution of time.

use std::fs::File;
use std::io;
use std::path::Path;

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use crate::packet::{Content, Frame, Packet, frame, parse};

/// Holds any packet: the largest of BIG TCP has half of this.
const BUFFER: usize = 1 << 20;

/// Why a capture cannot be read. The file's name is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read.
    #[error("{0}")]
    File(#[from] io::Error),
    /// It is something else.
    #[error("expected a capture (pcap or pcapng), found another file")]
    NotACapture,
    /// Its content is damaged.
    #[error("expected packets, found damage after {0} of them")]
    Damaged(usize),
    /// The header before the IP packet is unknown.
    #[error("expected packets of Ethernet, of Linux's \"any\" or of IP, found link type {0}")]
    LinkType(i32),
    /// The snapshot length was too short.
    #[error(
        "expected the headers of TCP, found {0} packets that were cut within them; a snapshot length of 128 has them (tcpdump -s 128)"
    )]
    Cut(usize),
    /// There is no TCP.
    #[error("expected packets of TCP, found none among {0}")]
    NoTcp(usize),
}

/// The TCP packets of a file.
#[derive(Debug)]
pub struct Capture {
    /// The packets, in the order of the file.
    pub packets: Vec<Packet>,
    /// Whether the file ends within a packet, as that of a capture that was killed does.
    pub is_cut: bool,
}

/// An interface of a pcapng file: how its packets begin, units of time in a second, and its offset in s.
struct Interface {
    frame: Result<Frame, i32>,
    units: u64,
    offset_s: i64,
}

impl Interface {
    fn new(link_type: i32, units: u64, offset_s: i64) -> Self {
        Self { frame: frame(link_type).ok_or(link_type), units, offset_s }
    }
}

/// Reads all TCP packets of a file.
pub fn read(path: &Path) -> Result<Capture, Error> {
    let file = File::open(path)?;
    let mut reader = create_reader(BUFFER, file).map_err(|error| match error {
        PcapError::ReadError => Error::File(io::Error::other("the file cannot be read")),
        _ => Error::NotACapture,
    })?;
    let (mut packets, mut all, mut short) = (Vec::new(), 0, 0);
    let mut interfaces = Vec::new();
    let mut take = |interface: Option<&Interface>, stamp: u64, data: &[u8], whole: u32| {
        all += 1;
        let interface = interface.ok_or(Error::Damaged(all - 1))?;
        let frame = interface.frame.as_ref().map_err(|&number| Error::LinkType(number))?;
        let ns = i128::from(stamp) * 1_000_000_000 / i128::from(interface.units.max(1));
        let time_ns = (ns + i128::from(interface.offset_s) * 1_000_000_000) as i64;
        match parse(frame, data, whole, time_ns) {
            Content::Tcp(packet) => packets.push(*packet),
            Content::Cut => short += 1,
            Content::Other => {}
        }
        Ok::<(), Error>(())
    };
    let mut is_cut = false;
    let mut read = 0;
    loop {
        let is_last = reader.reader_exhausted();
        match reader.next() {
            Ok((size, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                        interfaces = vec![Interface::new(header.network.0, units, 0)];
                    }
                    PcapBlockOwned::Legacy(block) => {
                        read += 1;
                        let units = interfaces.first().map_or(1, |one: &Interface| one.units);
                        let stamp = u64::from(block.ts_sec) * units + u64::from(block.ts_usec);
                        take(interfaces.first(), stamp, block.data, block.origlen)?;
                    }
                    // A section numbers its interfaces from zero.
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                        let units = block.ts_resolution().unwrap_or(1_000_000);
                        interfaces.push(Interface::new(block.linktype.0, units, block.ts_offset()));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        read += 1;
                        let stamp = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        let data = &block.data[..block.data.len().min(block.caplen as usize)];
                        take(interfaces.get(block.if_id as usize), stamp, data, block.origlen)?;
                    }
                    // A simple packet has no time.
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(size);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::UnexpectedEof) => {
                is_cut = true;
                break;
            }
            Err(PcapError::Incomplete(_)) => {
                if is_last {
                    is_cut = true;
                    break;
                }
                if reader.refill().is_err() {
                    return Err(Error::Damaged(read));
                }
            }
            Err(_) => return Err(Error::Damaged(read)),
        }
    }
    if short > packets.len() {
        return Err(Error::Cut(short));
    }
    if packets.is_empty() {
        return Err(Error::NoTcp(all));
    }
    Ok(Capture { packets, is_cut })
}
