//! A packet of TCP, from the headers that a capture has of it.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};

/// Address and port.
pub type End = SocketAddr;

/// What is kept of a TCP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// When it was captured, in ns since the beginning of the clock.
    pub time_ns: i64,
    /// Who sent it.
    pub source: End,
    /// To whom.
    pub target: End,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgment number, if `ack_set`.
    pub ack: u32,
    /// Payload, in bytes, whether it was captured or not.
    pub payload: u32,
    /// The IP packet, in bytes.
    pub bytes: u32,
    /// Window field, without its scale.
    pub window: u16,
    /// Flag SYN.
    pub syn: bool,
    /// Flag ACK.
    pub ack_set: bool,
    /// Option of a SYN: maximum segment size.
    pub mss: Option<u16>,
    /// Option of a SYN: window scale.
    pub scale: Option<u8>,
    /// Timestamps (RFC 7323): value and echo.
    pub stamps: Option<(u32, u32)>,
    /// SACK blocks, in the order of the option.
    pub sack: [Option<(u32, u32)>; 4],
}

/// How a packet begins, by the number of its link type.
/// Source: <https://www.tcpdump.org/linktypes.html>.
pub(crate) enum Frame {
    Ethernet,
    Ip,
    /// A header of so many bytes before the IP packet.
    Before(usize),
    /// A header of so many bytes, and within it the `EtherType`.
    Cooked(usize, usize),
}

pub(crate) fn frame(link_type: i32) -> Option<Frame> {
    Some(match link_type {
        1 => Frame::Ethernet,
        12 | 14 | 101 | 228 | 229 => Frame::Ip,
        0 | 108 => Frame::Before(4),
        113 => Frame::Cooked(16, 14),
        276 => Frame::Cooked(20, 0),
        _ => return None,
    })
}

/// What is in a captured packet.
pub(crate) enum Content {
    Tcp(Box<Packet>),
    /// TCP, of which the capture has too little.
    Cut,
    Other,
}

/// Reads a packet of which the capture has `data`, and which had `whole` bytes on the link.
pub(crate) fn parse(frame: &Frame, data: &[u8], whole: u32, time_ns: i64) -> Content {
    let sliced = match *frame {
        Frame::Ethernet => LaxSlicedPacket::from_ethernet(data).ok(),
        Frame::Ip => LaxSlicedPacket::from_ip(data).ok(),
        Frame::Before(header) => data.get(header..).and_then(|ip| LaxSlicedPacket::from_ip(ip).ok()),
        Frame::Cooked(header, kind) => data.get(header..).map(|ip| {
            let kind = u16::from_be_bytes([data[kind], data[kind + 1]]);
            LaxSlicedPacket::from_ether_type(EtherType(kind), ip)
        }),
    };
    let Some(sliced) = sliced else { return Content::Other };
    // The IP header says how long the packet is. It says zero where the packet is too large for its field (TSO of IPv6, BIG TCP).
    let (addresses, ip_header, told, is_tcp) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let addresses = [IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr())];
            let length = usize::from(header.ihl()) * 4;
            (addresses, length, u32::from(header.total_len()), ip.payload_ip_number().0 == 6)
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let addresses = [IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr())];
            let told = u32::from(header.payload_length());
            let length = 40 + ip.extensions().slice().len();
            (addresses, length, if told == 0 { 0 } else { told + 40 }, ip.payload().ip_number.0 == 6)
        }
        _ => return Content::Other,
    };
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        return if is_tcp { Content::Cut } else { Content::Other };
    };
    let link_header = match *frame {
        Frame::Ethernet => 14 + 4 * sliced.link_exts.len() as u32,
        Frame::Ip => 0,
        Frame::Before(header) | Frame::Cooked(header, _) => header as u32,
    };
    let bytes = if told == 0 { whole.saturating_sub(link_header) } else { told };
    let headers = ip_header as u32 + u32::from(tcp.data_offset()) * 4;
    let mut packet = Packet {
        time_ns,
        source: SocketAddr::new(addresses[0], tcp.source_port()),
        target: SocketAddr::new(addresses[1], tcp.destination_port()),
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        payload: bytes.saturating_sub(headers),
        bytes,
        window: tcp.window_size(),
        syn: tcp.syn(),
        ack_set: tcp.ack(),
        mss: None,
        scale: None,
        stamps: None,
        sack: [None; 4],
    };
    for option in tcp.options_iterator() {
        match option {
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => packet.mss = Some(mss),
            Ok(TcpOptionElement::WindowScale(scale)) => packet.scale = Some(scale.min(14)),
            Ok(TcpOptionElement::Timestamp(value, echo)) => packet.stamps = Some((value, echo)),
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, rest)) => {
                packet.sack = [Some(first), rest[0], rest[1], rest[2]];
            }
            Ok(_) => {}
            // What follows a damaged option cannot be found.
            Err(_) => break,
        }
    }
    Content::Tcp(Box::new(packet))
}
