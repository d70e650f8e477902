//! Compares a packet with the one that a script expects.

use std::fmt::Write;

use crate::script::{Ecn, Packet, TcpOption, flags};

/// The numbers of a connection. As in packetdrill a script's numbers count from the initial ones, except those of a SYN, which are
/// initial numbers themselves, and what a SYN acknowledges. The peer's initial number is the same in both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// The initial number of the stack under test.
    local: u32,
    /// The same in the script.
    scripted: u32,
    /// The initial number of the peer.
    peer: u32,
    /// That of a SYN of the peer which the stack has not answered.
    offered: Option<u32>,
    /// Whether the stack has sent a SYN that is not yet answered.
    opening: bool,
}

impl Numbers {
    /// A packet that the stack sent, with the script's numbers, where `expected` is at this place.
    pub fn of_stack(&mut self, packet: &Packet, expected: &Packet) -> Packet {
        let mut packet = packet.clone();
        if packet.flags & flags::SYN == 0 {
            packet.seq = packet.seq.wrapping_sub(self.local);
            shift(&mut packet, self.peer.wrapping_neg());
            return packet;
        }
        if expected.flags & flags::SYN != 0 {
            (self.local, self.scripted) = (packet.seq, expected.seq);
        }
        match packet.flags & flags::ACK {
            0 => self.opening = true,
            _ => self.peer = self.offered.take().unwrap_or(self.peer),
        }
        packet.seq = packet.seq.wrapping_sub(self.local).wrapping_add(self.scripted);
        packet
    }

    /// A packet that arrives, with the stack's numbers.
    pub fn of_script(&mut self, packet: &Packet) -> Packet {
        let mut packet = packet.clone();
        if packet.flags & flags::SYN == 0 {
            packet.seq = packet.seq.wrapping_add(self.peer);
            shift(&mut packet, self.local);
            return packet;
        }
        if std::mem::take(&mut self.opening) {
            self.peer = packet.seq;
        } else {
            self.offered = Some(packet.seq);
        }
        shift(&mut packet, self.local.wrapping_sub(self.scripted));
        packet
    }
}

/// Adds to what a packet acknowledges.
fn shift(packet: &mut Packet, by: u32) {
    packet.ack = packet.ack.map(|ack| ack.wrapping_add(by));
    for option in packet.options.iter_mut().flatten() {
        if let TcpOption::Sack(blocks) = option {
            for (left, right) in blocks {
                (*left, *right) = (left.wrapping_add(by), right.wrapping_add(by));
            }
        }
    }
}

/// If `seen` is shorter than what is expected: the part of it that `seen` has to be, and the rest. A device that takes large
/// packets from a stack shows them as one, another one shows the segments. A FIN is in the last.
pub fn first_part(expected: &Packet, seen: &Packet) -> Option<(Packet, Packet)> {
    if seen.len == 0 || seen.len >= expected.len {
        return None;
    }
    let first = Packet { len: seen.len, flags: expected.flags & !flags::FIN, ..expected.clone() };
    let seq = expected.seq.wrapping_add(seen.len);
    let rest = Packet { seq, len: expected.len - seen.len, ..expected.clone() };
    Some((first, rest))
}

/// In what a packet differs from the expected one. Timestamps of the stack itself are not compared, and PSH only where segments are
/// compared strictly: when a stack pushes, besides at the end of the data, depends on how large the packets are that it makes.
pub fn differences(expected: &Packet, seen: &Packet, strict: bool) -> Vec<&'static str> {
    let mut differences = Vec::new();
    let mut need = |holds: bool, name| {
        if !holds {
            differences.push(name);
        }
    };
    let compared = if strict { 0xff } else { !flags::PSH };
    need(expected.flags & compared == seen.flags & compared, "flags");
    need(expected.seq == seen.seq, "sequence number");
    need(expected.len == seen.len, "length");
    need(expected.flags & flags::ACK == 0 || expected.ack.unwrap_or(0) == seen.ack.unwrap_or(0), "ack");
    need(expected.window.is_none() || expected.window == seen.window, "win");
    need(
        match expected.ecn {
            None => true,
            Some(Ecn::Ect01) => matches!(seen.ecn, Some(Ecn::Ect0 | Ecn::Ect1)),
            ecn => ecn == seen.ecn,
        },
        "ECN",
    );
    if let Some(options) = &expected.options {
        let comparable = |options: &[TcpOption]| {
            let mut options: Vec<TcpOption> = options.iter().map(unstamped).collect();
            options.sort();
            options
        };
        need(comparable(options) == comparable(seen.options.as_deref().unwrap_or(&[])), "options");
    }
    differences
}

fn unstamped(option: &TcpOption) -> TcpOption {
    match option {
        TcpOption::Timestamps { ecr, .. } => TcpOption::Timestamps { val: 0, ecr: *ecr },
        other => other.clone(),
    }
}

/// A packet as a script writes it, without padding.
pub fn text(packet: &Packet) -> String {
    let mut text = String::new();
    let _ = match packet.ecn {
        None | Some(Ecn::None) => Ok(()),
        Some(Ecn::Ect0) => write!(text, "[ect0] "),
        Some(Ecn::Ect1) => write!(text, "[ect1] "),
        Some(Ecn::Ect01) => write!(text, "[ect01] "),
        Some(Ecn::Ce) => write!(text, "[ce] "),
    };
    let letters: String =
        flags::LETTERS.iter().filter(|(_, bit)| packet.flags & bit != 0).map(|(letter, _)| *letter).collect();
    text.push_str(if letters.is_empty() { "-" } else { &letters });
    let Packet { seq, len, .. } = packet;
    let _ = write!(text, " {seq}:{}({len})", seq.wrapping_add(*len));
    if let Some(ack) = packet.ack
        && packet.flags & flags::ACK != 0
    {
        let _ = write!(text, " ack {ack}");
    }
    if let Some(window) = packet.window {
        let _ = write!(text, " win {window}");
    }
    match packet.options.as_deref() {
        None => text.push_str(" <...>"),
        Some([]) => {}
        Some(options) => {
            let options: Vec<String> = options.iter().map(option_text).collect();
            let _ = write!(text, " <{}>", options.join(","));
        }
    }
    text
}

fn option_text(option: &TcpOption) -> String {
    match option {
        TcpOption::Mss(bytes) => format!("mss {bytes}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackPermitted => "sackOK".to_owned(),
        TcpOption::Timestamps { val, ecr } => format!("TS val {val} ecr {ecr}"),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<String> = blocks.iter().map(|(left, right)| format!("{left}:{right}")).collect();
            format!("sack {}", blocks.join(" "))
        }
        TcpOption::FastOpen { experimental, cookie } => {
            let mut text = if *experimental { "FOEXP".to_owned() } else { "FO".to_owned() };
            for (at, byte) in cookie.iter().enumerate() {
                let _ = write!(text, "{}{byte:02x}", if at == 0 { " " } else { "" });
            }
            text
        }
        TcpOption::Other(name) => name.clone(),
    }
}
