//! What the packets of a connection show: a scoreboard of its data, seen from the place of the capture.

use std::collections::{BTreeMap, VecDeque};

use crate::packet::Packet;
use crate::{Connection, End};

/// Whether data was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Again {
    /// It is new, and beyond all that was seen.
    No,
    /// The same data passed before: it was lost behind the capture, or its sender believed so.
    Seen,
    /// It fills a hole: it was lost or delayed before the capture.
    Late,
    /// It had been acknowledged already: it was sent in vain.
    Needless,
}

/// A packet with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    /// When it passed, in ns.
    pub time_ns: i64,
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Payload, in bytes.
    pub payload: u32,
    /// The IP packet, in bytes.
    pub bytes: u32,
    /// Whether it was seen before.
    pub again: Again,
    /// When the same data passed before ([`Again::Seen`]), or its hole was first seen ([`Again::Late`]); otherwise `time_ns`.
    pub before_ns: i64,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// When it passed, in ns.
    pub time_ns: i64,
    /// Bytes of the stream that the receiver has said to have, once each.
    pub delivered: u64,
    /// When the last data that it is the first to acknowledge had passed, in ns, if that was sent only once; otherwise -1.
    pub sent_ns: i64,
    /// Offset of the end of that data.
    pub sent_offset: u64,
    /// Bytes that passed and are not acknowledged.
    pub flight: u64,
    /// The advertised window, in bytes; zero where the scale is unknown.
    pub window: u64,
    /// Whether it reports data that arrived twice (RFC 2883).
    pub dsack: bool,
}

/// A connection, with its data in the direction that has more of it.
#[derive(Debug, Default)]
pub struct Followed {
    /// Who sends the data, and to whom.
    pub ends: Option<[End; 2]>,
    /// Largest segment that its ends allow, in bytes, if their SYNs were captured.
    pub mss: Option<u32>,
    /// Headers of a packet with data, in bytes.
    pub headers: u32,
    /// Times of the handshake in ns (SYN, its answer, the answer to that), if captured and not repeated.
    pub handshake_ns: Option<[i64; 3]>,
    /// Packets with data.
    pub data: Vec<Data>,
    /// Acknowledgments.
    pub acks: Vec<Ack>,
    /// From an acknowledgment to the first data that echoes its timestamp: when the data passed, and how long it took, in ns.
    pub answers: Vec<(i64, i64)>,
}

/// Data that was seen and is not acknowledged.
#[derive(Clone, Copy)]
struct Piece {
    end: u64,
    sent_ns: i64,
    is_again: bool,
}

#[derive(Default)]
struct Board {
    /// By the offset of the first byte; they do not overlap.
    outstanding: BTreeMap<u64, Piece>,
    /// Their bytes.
    flight: u64,
    /// What was selectively acknowledged above `una`: from, to.
    sacked: BTreeMap<u64, u64>,
    /// Holes, as they were first seen: from, (to, when).
    holes: BTreeMap<u64, (u64, i64)>,
    una: u64,
    highest: u64,
    delivered: u64,
    /// The last data that the present acknowledgment delivers.
    newest: Option<(u64, Piece)>,
}

impl Board {
    /// Data passes.
    fn send(&mut self, from: u64, to: u64, now: i64) -> (Again, i64) {
        let before = if from >= self.highest {
            if from > self.highest {
                self.holes.insert(self.highest, (from, now));
            }
            (Again::No, now)
        } else if to <= self.una || self.is_sacked(from, to) {
            return (Again::Needless, now);
        } else if let Some((_, piece)) =
            self.outstanding.range(..to).next_back().filter(|(_, piece)| piece.end > from)
        {
            (Again::Seen, piece.sent_ns)
        } else {
            let hole = self.holes.range(..=from).next_back().filter(|(_, hole)| hole.0 > from);
            (Again::Late, hole.map_or(now, |(_, hole)| hole.1))
        };
        self.highest = self.highest.max(to);
        self.cut(from.max(self.una), to, |_, _| {});
        let is_again = before.0 != Again::No;
        let mut from = from.max(self.una);
        let within = self.sacked.range(..=from).next_back().filter(|(_, end)| **end > from);
        from = within.map_or(from, |(_, &end)| end);
        let parts: Vec<(u64, u64)> = self.sacked.range(from..to.max(from)).map(|(&a, &b)| (a, b)).collect();
        for (start, end) in parts.into_iter().chain([(to, to)]) {
            self.insert(from, Piece { end: start, sent_ns: now, is_again });
            from = end;
        }
        before
    }

    fn is_sacked(&self, from: u64, to: u64) -> bool {
        self.sacked.range(..=from).next_back().is_some_and(|(_, &end)| end >= to)
    }

    fn insert(&mut self, from: u64, piece: Piece) {
        if piece.end > from {
            self.flight += piece.end - from;
            self.outstanding.insert(from, piece);
        }
    }

    /// Takes the outstanding data of a range out, piece by piece.
    fn cut(&mut self, from: u64, to: u64, mut taken: impl FnMut(u64, Piece)) {
        let first = self.outstanding.range(..=from).next_back().filter(|(_, piece)| piece.end > from);
        let mut at = first.map_or(from, |(&start, _)| start);
        while let Some((&start, &piece)) = self.outstanding.range(at..to.max(at)).next() {
            self.outstanding.remove(&start);
            self.flight -= piece.end - start;
            at = piece.end;
            if start < from {
                self.insert(start, Piece { end: from, ..piece });
            }
            if piece.end > to {
                self.insert(to, piece);
            }
            taken(start.max(from), Piece { end: piece.end.min(to), ..piece });
        }
    }

    /// The receiver has a range, of which nothing was acknowledged before.
    fn deliver(&mut self, from: u64, to: u64) {
        if to <= from {
            return;
        }
        self.delivered += to - from;
        let mut newest = self.newest;
        self.cut(from, to, |start, piece| {
            if newest.is_none_or(|(_, last)| last.sent_ns <= piece.sent_ns) {
                newest = Some((start, piece));
            }
        });
        self.newest = newest;
    }

    /// A range is acknowledged; parts of it may have been before.
    fn sack(&mut self, from: u64, to: u64) {
        let (mut from, to) = (from.max(self.una), to.min(self.highest));
        if to <= from {
            return;
        }
        let (mut low, mut high) = (from, to);
        if let Some((&start, &end)) = self.sacked.range(..=from).next_back().filter(|(_, end)| **end >= from)
        {
            if end >= to {
                return;
            }
            (low, from) = (start, end);
        }
        while from <= to
            && let Some((&start, &end)) = self.sacked.range(from..=to).next()
        {
            self.deliver(from, start);
            self.sacked.remove(&start);
            high = high.max(end);
            from = end.max(from);
        }
        self.deliver(from, to);
        self.sacked.insert(low, high);
    }

    /// All before `ack` is acknowledged.
    fn acknowledge(&mut self, ack: u64) {
        let ack = ack.min(self.highest);
        if ack <= self.una {
            return;
        }
        self.sack(self.una, ack);
        self.una = ack;
        while let Some((&start, &end)) = self.sacked.range(..ack).next() {
            self.sacked.remove(&start);
            if end > ack {
                self.sacked.insert(ack, end);
            }
        }
        while let Some((&start, &(end, _))) = self.holes.iter().next().filter(|(start, _)| **start < ack) {
            if end > ack {
                break;
            }
            self.holes.remove(&start);
        }
    }
}

/// A sequence number as an offset in the stream, which is near `near`; none if it is before its beginning.
fn offset(seq: u32, first: u32, near: u64) -> Option<u64> {
    let step = seq.wrapping_sub(first).wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(step))
}

/// Follows a connection. Data before the first acknowledgment that was captured counts as acknowledged.
pub fn follow(connection: &Connection) -> Followed {
    let sent = |end: End| -> u64 {
        connection.packets.iter().filter(|p| p.source == end).map(|p| u64::from(p.payload)).sum()
    };
    let [a, b] = connection.ends;
    let ends = if sent(a) >= sent(b) { [a, b] } else { [b, a] };
    let mut found = Followed { ends: Some(ends), ..Followed::default() };
    let syns: Vec<&Packet> = connection.packets.iter().filter(|p| p.syn).collect();
    let of = |end: End| syns.iter().find(|p| p.source == end).copied();
    let (syn, answer) = (of(ends[0]), of(ends[1]));
    found.mss = syn.and_then(|p| p.mss).into_iter().chain(answer.and_then(|p| p.mss)).min().map(u32::from);
    found.handshake_ns = handshake(connection, &syns);
    // Scales count only if both ends sent one (RFC 7323, section 2.2).
    let scale = match (syn, answer) {
        (Some(syn), Some(answer)) => Some(syn.scale.and(answer.scale).unwrap_or(0)),
        _ => None,
    };
    let mut board = Board::default();
    let mut first = syn.map(|p| p.seq.wrapping_add(1));
    let mut stamps: VecDeque<(u32, i64)> = VecDeque::new();
    for packet in &connection.packets {
        if packet.source == ends[0] {
            if packet.payload == 0 {
                continue;
            }
            let first = *first.get_or_insert(packet.seq);
            let Some(from) = offset(packet.seq, first, board.highest) else { continue };
            let (again, before_ns) = board.send(from, from + u64::from(packet.payload), packet.time_ns);
            found.headers = found.headers.max(packet.bytes.saturating_sub(packet.payload));
            let (time_ns, payload, bytes) = (packet.time_ns, packet.payload, packet.bytes);
            found.data.push(Data { time_ns, offset: from, payload, bytes, again, before_ns });
            if let Some((_, echo)) = packet.stamps
                && let Some(place) = stamps.iter().position(|(value, _)| *value == echo)
            {
                found.answers.push((time_ns, time_ns - stamps[place].1));
                stamps.drain(..=place);
            }
        } else if packet.ack_set && !packet.syn {
            if let Some((value, _)) = packet.stamps
                && stamps.back().is_none_or(|(last, _)| value.wrapping_sub(*last).cast_signed() > 0)
            {
                stamps.push_back((value, packet.time_ns));
            }
            let Some(first) = first else { continue };
            let Some(ack) = offset(packet.ack, first, board.una) else { continue };
            board.newest = None;
            let mut dsack = false;
            for (number, &(left, right)) in packet.sack.iter().flatten().enumerate() {
                let (Some(left), Some(right)) =
                    (offset(left, first, board.una), offset(right, first, board.una))
                else {
                    continue;
                };
                // RFC 2883, section 4: the first block, if it is below the acknowledgment or within the second.
                dsack |=
                    number == 0 && (right <= ack || board.is_sacked(left, right) && is_in_second(packet));
                if right > ack && left < right {
                    board.sack(left.max(ack), right);
                }
            }
            board.acknowledge(ack);
            let newest = board.newest.filter(|(_, piece)| !piece.is_again);
            found.acks.push(Ack {
                time_ns: packet.time_ns,
                delivered: board.delivered,
                sent_ns: newest.map_or(-1, |(_, piece)| piece.sent_ns),
                sent_offset: newest.map_or(0, |(_, piece)| piece.end),
                flight: board.flight,
                window: scale.map_or(0, |scale| u64::from(packet.window) << scale),
                dsack,
            });
        }
    }
    found
}

/// Whether a packet's first SACK block is within its second.
fn is_in_second(packet: &Packet) -> bool {
    match packet.sack {
        [Some(one), Some(two), ..] => {
            one.0.wrapping_sub(two.0).cast_signed() >= 0 && two.1.wrapping_sub(one.1).cast_signed() >= 0
        }
        _ => false,
    }
}

fn handshake(connection: &Connection, syns: &[&Packet]) -> Option<[i64; 3]> {
    let [syn, answer] = syns else { return None };
    let third = connection.packets.iter().find(|p| p.source == syn.source && !p.syn && p.ack_set)?;
    (!syn.ack_set && answer.ack_set && answer.source != syn.source).then_some([
        syn.time_ns,
        answer.time_ns,
        third.time_ns,
    ])
}

#[cfg(test)]
mod tests;
