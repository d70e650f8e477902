//! IPv4 and TCP headers as bytes.

use std::net::Ipv4Addr;

use crate::script::{Ecn, Packet, TcpOption, flags};

/// Bytes of an IPv4 header without options, and of a TCP header without options.
const HEADER: usize = 20;
const TCP: u8 = 6;
/// Bytes of options in a header of TCP at most.
const MOST_OPTIONS: usize = 40;
/// The number of the experiment with TCP Fast Open (RFC 7413, appendix A).
const FAST_OPEN: [u8; 2] = [0xf9, 0x89];

/// Addresses and ports, from the sender's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where a packet comes from.
    pub from: (Ipv4Addr, u16),
    /// Where it goes.
    pub to: (Ipv4Addr, u16),
}

/// The bytes of a packet. Its payload is zeros.
pub fn encode(packet: &Packet, ends: Ends) -> Vec<u8> {
    let options = encode_options(packet.options.as_deref().unwrap_or(&[]));
    let mut tcp = Vec::with_capacity(HEADER + options.len() + packet.len as usize);
    tcp.extend(ends.from.1.to_be_bytes());
    tcp.extend(ends.to.1.to_be_bytes());
    tcp.extend(packet.seq.to_be_bytes());
    tcp.extend(packet.ack.unwrap_or(0).to_be_bytes());
    tcp.push((((HEADER + options.len()) / 4) as u8) << 4);
    tcp.push(packet.flags);
    tcp.extend(packet.window.unwrap_or(0).to_be_bytes());
    // Checksum and urgent pointer.
    tcp.extend([0; 4]);
    tcp.extend(options);
    tcp.resize(tcp.len() + packet.len as usize, 0);
    let addresses = [ends.from.0.octets(), ends.to.0.octets()].concat();
    let pseudo = [&addresses[..], &[0, TCP], &(tcp.len() as u16).to_be_bytes()].concat();
    let sum = checksum(&[&pseudo, &tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    let ecn = match packet.ecn {
        None | Some(Ecn::None) => 0,
        Some(Ecn::Ect1) => 1,
        Some(Ecn::Ect0 | Ecn::Ect01) => 2,
        Some(Ecn::Ce) => 3,
    };
    let mut bytes = vec![0x45, ecn];
    bytes.extend(((HEADER + tcp.len()) as u16).to_be_bytes());
    // Identification, and "do not fragment"; TTL; the checksum follows.
    bytes.extend([0, 0, 0x40, 0, 255, TCP, 0, 0]);
    bytes.extend(addresses);
    let sum = checksum(&[&bytes]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(tcp);
    bytes
}

/// The options of a header, aligned to four bytes if they then fit into it. The end of the list is zeros.
fn encode_options(options: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        encode_option(option, &mut bytes);
    }
    if bytes.len() > MOST_OPTIONS {
        bytes.clear();
        for option in options {
            let before = bytes.len();
            encode_option(option, &mut bytes);
            let padding = bytes[before..].iter().take_while(|byte| **byte == 1).count();
            bytes.drain(before..before + padding);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn encode_option(option: &TcpOption, bytes: &mut Vec<u8>) {
    match option {
        TcpOption::Mss(mss) => {
            bytes.extend([2, 4]);
            bytes.extend(mss.to_be_bytes());
        }
        TcpOption::WindowScale(shift) => bytes.extend([1, 3, 3, *shift]),
        TcpOption::SackPermitted => bytes.extend([1, 1, 4, 2]),
        TcpOption::Timestamps { val, ecr } => {
            bytes.extend([1, 1, 8, 10]);
            bytes.extend(val.to_be_bytes());
            bytes.extend(ecr.to_be_bytes());
        }
        TcpOption::Sack(blocks) => {
            bytes.extend([1, 1, 5, (2 + 8 * blocks.len()) as u8]);
            for (left, right) in blocks {
                bytes.extend(left.to_be_bytes());
                bytes.extend(right.to_be_bytes());
            }
        }
        TcpOption::FastOpen { experimental, cookie } => {
            let magic: &[u8] = if *experimental { &FAST_OPEN } else { &[] };
            bytes.push(if *experimental { 254 } else { 34 });
            bytes.push((2 + magic.len() + cookie.len()) as u8);
            bytes.extend(magic);
            bytes.extend(cookie);
        }
        TcpOption::Other(_) => {}
    }
}

/// Whether these options fit into a header with their padding.
pub fn fits(options: &[TcpOption]) -> bool {
    encode_options(options).len() <= MOST_OPTIONS
}

/// The packet in these bytes, if it is TCP over IPv4.
pub fn decode(bytes: &[u8]) -> Option<(Packet, Ends)> {
    if bytes.first()? >> 4 != 4 || *bytes.get(9)? != TCP {
        return None;
    }
    let long = usize::from(bytes[0] & 15) * 4;
    let tcp = bytes.get(long..usize::from(short(bytes, 2)?))?;
    let address = |at: usize| bytes.get(at..at + 4).map(|b| Ipv4Addr::new(b[0], b[1], b[2], b[3]));
    let ends = Ends { from: (address(12)?, short(tcp, 0)?), to: (address(16)?, short(tcp, 2)?) };
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    let ecn = [Ecn::None, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bytes[1] & 3)];
    let packet = Packet {
        ecn: Some(ecn),
        flags,
        seq: long_at(tcp, 4)?,
        len: tcp.len().checked_sub(header)? as u32,
        ack: (flags & flags::ACK != 0).then_some(long_at(tcp, 8)?),
        window: Some(short(tcp, 14)?),
        options: Some(decode_options(tcp.get(HEADER..header)?)?),
    };
    Some((packet, ends))
}

fn decode_options(mut bytes: &[u8]) -> Option<Vec<TcpOption>> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        match kind {
            0 => break,
            1 => bytes = rest,
            _ => {
                let length = usize::from(*rest.first()?);
                let value = bytes.get(2..length)?;
                options.push(match kind {
                    2 => TcpOption::Mss(short(value, 0)?),
                    3 => TcpOption::WindowScale(*value.first()?),
                    4 => TcpOption::SackPermitted,
                    5 => {
                        let block = |block: &[u8]| Some((long_at(block, 0)?, long_at(block, 4)?));
                        TcpOption::Sack(value.chunks(8).map(block).collect::<Option<_>>()?)
                    }
                    8 => TcpOption::Timestamps { val: long_at(value, 0)?, ecr: long_at(value, 4)? },
                    34 => TcpOption::FastOpen { experimental: false, cookie: value.to_vec() },
                    254 if value.starts_with(&FAST_OPEN) => {
                        TcpOption::FastOpen { experimental: true, cookie: value[FAST_OPEN.len()..].to_vec() }
                    }
                    kind => TcpOption::Other(format!("option {kind}")),
                });
                bytes = &bytes[length..];
            }
        }
    }
    Some(options)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

fn long_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// The Internet checksum (RFC 1071) of parts, all but the last of which have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_need_all_the_room_are_not_aligned() {
        let stamps = TcpOption::Timestamps { val: 1, ecr: 2 };
        let cookie = |bytes| TcpOption::FastOpen { experimental: true, cookie: vec![7; bytes] };
        let most =
            [TcpOption::Mss(1460), TcpOption::SackPermitted, stamps, TcpOption::WindowScale(8), cookie(16)];
        let bytes = encode_options(&most);
        assert_eq!(bytes.len(), MOST_OPTIONS);
        assert_eq!(decode_options(&bytes), Some(most.to_vec()));
        assert!(fits(&most) && !fits(&[cookie(37)]));
    }

    #[test]
    fn a_packet_survives_its_bytes() {
        let ends =
            Ends { from: (Ipv4Addr::new(192, 0, 2, 1), 40_000), to: (Ipv4Addr::new(192, 168, 0, 1), 8080) };
        let packet = Packet {
            ecn: Some(Ecn::Ce),
            flags: flags::ACK | flags::PSH,
            seq: 7,
            len: 3,
            ack: Some(9),
            window: Some(1000),
            options: Some(vec![
                TcpOption::Timestamps { val: 1, ecr: 2 },
                TcpOption::Sack(vec![(10, 20), (30, 40)]),
            ]),
        };
        let bytes = encode(&packet, ends);
        assert_eq!(decode(&bytes), Some((packet, ends)));
        // The checksum of a packet with its checksum is zero.
        assert_eq!(checksum(&[&bytes[..HEADER]]), 0);
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "{length} bytes");
        }
    }
}
