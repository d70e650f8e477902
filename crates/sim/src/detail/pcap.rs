//! Captures: the packets of a link in the format of tcpdump.
//!
//! The format is pcap with nanoseconds and raw IPv4 (draft-ietf-opsawg-pcap; link type 101). Only headers are
//! written; the snapshot length cuts off the payload. The payload is all zeros and adds nothing to the
//! checksum, so the checksum is correct.

use std::io::{self, Write};

use elephan_tcp::{IP_HEADER, Segment, TCP_HEADER};
use elephan_units::Time;

use crate::packet::Packet;

/// Magic number of pcap with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// LINKTYPE_RAW: packets begin with the IP header.
const LINK_TYPE: u32 = 101;
/// Long enough for headers with all options: 20 bytes of IP and up to 60 of TCP.
const SNAP_LENGTH: u32 = 80;
/// The port of receivers; senders count up from it, one port for each connection.
const PORT: u16 = 5001;

/// Protocol numbers of IP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A capture that is being written.
pub struct Capture<W: Write> {
    out: W,
}

impl<W: Write> Capture<W> {
    /// Writes the file's header.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0])?;
        out.write_all(&[0; 8])?;
        out.write_all(&SNAP_LENGTH.to_le_bytes())?;
        out.write_all(&LINK_TYPE.to_le_bytes())?;
        Ok(Self { out })
    }

    /// Writes a packet.
    pub fn write(&mut self, packet: &Packet, now: Time) -> io::Result<()> {
        let headers = headers(packet);
        let nanos = now.picos() / 1_000;
        self.out.write_all(&((nanos / 1_000_000_000) as u32).to_le_bytes())?;
        self.out.write_all(&((nanos % 1_000_000_000) as u32).to_le_bytes())?;
        self.out.write_all(&(headers.len() as u32).to_le_bytes())?;
        self.out.write_all(&packet.wire_bytes().to_le_bytes())?;
        self.out.write_all(&headers)
    }

    /// Completes the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The IP header of a packet, and its TCP or UDP header. Streams of datagrams have separate addresses.
fn headers(packet: &Packet) -> Vec<u8> {
    let segment = &packet.segment();
    let is_datagram = packet.datagram().is_some();
    let (net, protocol) = if is_datagram { (12, UDP) } else { (10, TCP) };
    let sender = [net, (packet.head.flow >> 16) as u8, (packet.head.flow >> 8) as u8, packet.head.flow as u8];
    let receiver = [net + 1, sender[1], sender[2], sender[3]];
    let client = PORT.wrapping_add(packet.head.connection);
    let (source, target, ports) = if packet.is_backward() {
        (receiver, sender, (PORT, client))
    } else {
        (sender, receiver, (client, PORT))
    };

    let mut ip = Vec::with_capacity(SNAP_LENGTH as usize);
    let total = packet.wire_bytes() as u16;
    ip.extend([0x45, packet.traffic_class()]);
    ip.extend(total.to_be_bytes());
    // Identification 0; don't fragment; TTL 64; the protocol; the checksum is filled in later.
    ip.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    ip.extend(source);
    ip.extend(target);
    let sum = checksum(&ip, 0);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    // The pseudo header: addresses, protocol, length of the TCP or UDP part.
    let length = total - IP_HEADER as u16;
    let pseudo = [&source[..], &target[..]].concat();
    let start = pseudo.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>()
        + u32::from(protocol)
        + u32::from(length);
    if is_datagram {
        let udp: Vec<u8> =
            [ports.0, ports.1, length, 0].iter().flat_map(|field| field.to_be_bytes()).collect();
        let sum = match checksum(&udp, start) {
            // Zero means no checksum (RFC 768).
            0 => 0xffff,
            sum => sum,
        };
        ip.extend(&udp[..6]);
        ip.extend(sum.to_be_bytes());
        return ip;
    }
    let options = options(segment);
    let mut tcp = Vec::with_capacity(TCP_HEADER as usize + options.len());
    tcp.extend(ports.0.to_be_bytes());
    tcp.extend(ports.1.to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.to_be_bytes());
    tcp.extend([(((TCP_HEADER as usize + options.len()) / 4) << 4) as u8, segment.flags.bits()]);
    tcp.extend(segment.window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(options);
    let sum = checksum(&tcp, start);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    ip.extend(tcp);
    ip
}

/// TCP options in Linux's order, padded to four bytes.
fn options(segment: &Segment) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    if segment.mss > 0 {
        bytes.extend([2, 4]);
        bytes.extend(segment.mss.to_be_bytes());
    }
    if segment.sack_permitted {
        bytes.extend([4, 2]);
        if !segment.timestamps {
            bytes.extend([1, 1]);
        }
    } else if segment.timestamps {
        bytes.extend([1, 1]);
    }
    if segment.timestamps {
        bytes.extend([8, 10]);
        bytes.extend(segment.ts_val.to_be_bytes());
        bytes.extend(segment.ts_ecr.to_be_bytes());
    }
    if segment.window_scale_plus_one > 0 {
        bytes.extend([1, 3, 3, segment.window_scale_plus_one - 1]);
    }
    if !segment.sack.is_empty() {
        let blocks = segment.sack.as_slice();
        bytes.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            bytes.extend(left.to_be_bytes());
            bytes.extend(right.to_be_bytes());
        }
    }
    debug_assert_eq!(bytes.len() as u32, segment.options_bytes());
    bytes
}

/// The Internet checksum (RFC 1071) of `bytes`, which are even in number, added to `start`.
fn checksum(bytes: &[u8], start: u32) -> u16 {
    let mut sum =
        start + bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Address, Datagram};
    use elephan_tcp::{Flags, SackBlocks};
    use proptest::prelude::*;

    #[test]
    fn a_datagram_has_a_udp_header() {
        let datagram = Datagram { number: 7, sent_at: Time::from_secs(1) };
        let packet = Packet::of_datagram(datagram, 1500, 3, 0);
        assert_eq!(packet.datagram(), Some(datagram));
        let bytes = headers(&packet);
        assert_eq!(bytes.len(), 28);
        assert_eq!(checksum(&bytes[..20], 0), 0);
        // Length 1480; the payload of zeros adds nothing to the checksum.
        assert_eq!(bytes[24..26], [0x05, 0xc8]);
        let pseudo: u32 = bytes[12..20].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
        assert_eq!(checksum(&bytes[20..], pseudo + 17 + 1480), 0);
    }

    proptest! {
        #[test]
        fn checksums_hold_and_lengths_agree(
            seq: u32, ack: u32, ts: u32, len in 0u16..1448, blocks in 0usize..4, timestamps: bool, syn: bool, flow: u32,
        ) {
            let mut sack = SackBlocks::default();
            for block in 0..blocks as u32 {
                sack.push(block * 1000, block * 1000 + 500);
            }
            let mut segment =
                Segment { seq, ack, len, window: 4096, ts_val: ts, timestamps, flags: Flags::ACK, ..Segment::default() };
            if syn {
                (segment.mss, segment.window_scale_plus_one, segment.sack_permitted) = (1460, 15, true);
            } else {
                segment.sack = sack;
            }
            let to = Address { flow, connection: 3, start: 0, backward: false, dscp: 0 };
            let packet = Packet::new(&segment, to, true);
            let bytes = headers(&packet);
            // A header with a correct checksum sums to zero.
            prop_assert_eq!(checksum(&bytes[..20], 0), 0);
            let pseudo: u32 = bytes[12..20].chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
            let tcp_length = segment.packet_bytes() - 20;
            prop_assert_eq!(checksum(&bytes[20..], pseudo + 6 + tcp_length), 0);
            prop_assert_eq!(bytes.len() as u32 + u32::from(len), segment.packet_bytes());
        }
    }
}
