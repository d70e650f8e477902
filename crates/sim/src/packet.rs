//! A packet in transit: its segment, its flow, and its position on the route.

use elephan_net::{Ecn, Head as _};
use elephan_network::Routed;
use elephan_tcp::{Header, SackBlocks, Segment};
use elephan_traffic::UDP_HEADERS;
use elephan_units::Time;

/// What every packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The header of its segment.
    pub header: Header,
    /// The flow's number.
    pub flow: u32,
    /// Its position on its route.
    pub position: u32,
    /// The connection of the flow that it belongs to, wrapping: late packets of the last transfer do not
    /// belong to the next one.
    pub connection: u16,
    /// Size with headers.
    pub bytes: u16,
    /// By how much the acknowledgment numbers of segments differ that follow each other in a run of which it is the first.
    stride: u16,
    /// Codepoint and ECN field as encoded in the header.
    class: u8,
    /// What it is: the bits that follow.
    kind: u8,
}

/// It is a datagram.
const DATAGRAM: u8 = 1;
/// It travels from receiver to sender.
const BACKWARD: u8 = 2;
/// It has options besides timestamps.
const OPTIONS: u8 = 4;
/// The bits of the class that are the ECN field.
const ECN: u8 = 3;

/// The options of a segment besides timestamps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    sack: SackBlocks,
    mss: u16,
    window_scale_plus_one: u8,
    sack_permitted: bool,
}

/// A packet, copied by value.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What every packet has.
    pub head: Head,
    options: Options,
}

/// The content of a datagram, as its receiver reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Number of datagrams that the stream sent before it.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Time,
}

/// Where packets of a connection go: the number of their flow, that of the connection, the start of their route, whether that
/// leads from receiver to sender, and their codepoint.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub flow: u32,
    pub connection: u16,
    pub start: u32,
    pub backward: bool,
    pub dscp: u8,
}

impl Head {
    /// The packet of a segment without options but timestamps, at the start of its route.
    #[inline(always)]
    pub fn new(header: Header, to: Address, capable: bool) -> Self {
        let ecn = if capable && header.len > 0 { Ecn::Capable0 } else { Ecn::NotCapable };
        let Address { flow, connection, start, backward, dscp } = to;
        Self {
            header,
            flow,
            position: start,
            connection,
            bytes: header.packet_bytes() as u16,
            stride: 0,
            class: dscp << 2 | ecn as u8,
            kind: u8::from(backward) * BACKWARD,
        }
    }

    /// Whether it is a TCP segment from sender to receiver that is not marked and has no options but timestamps.
    #[inline(always)]
    pub fn is_plain_data(&self) -> bool {
        self.kind == 0 && !self.is_marked()
    }

    /// Whether it is one from receiver to sender.
    #[inline(always)]
    pub fn is_plain_ack(&self) -> bool {
        self.kind == BACKWARD && !self.is_marked()
    }

    /// Whether its packet has nothing besides this head.
    #[inline(always)]
    pub fn is_all(&self) -> bool {
        self.kind & OPTIONS == 0
    }

    /// The same packet one link further on its route.
    #[inline(always)]
    pub fn onward(&self) -> Self {
        Self { position: self.position + 1, ..*self }
    }

    /// Whether it was marked.
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        self.class & ECN == Ecn::Congestion as u8
    }
}

impl Packet {
    /// A packet at the start of its route.
    #[inline]
    pub fn new(segment: &Segment, to: Address, capable: bool) -> Self {
        let Segment { sack, mss, window_scale_plus_one, sack_permitted, .. } = *segment;
        let options = Options { sack, mss, window_scale_plus_one, sack_permitted };
        let mut head = Head::new(segment.header(), to, capable);
        if !segment.is_bare() {
            head.bytes = segment.packet_bytes() as u16;
            head.kind |= OPTIONS;
        }
        Self { head, options }
    }

    /// Its segment.
    #[inline]
    pub fn segment(&self) -> Segment {
        let Options { sack, mss, window_scale_plus_one, sack_permitted } = self.options;
        Segment { sack, mss, window_scale_plus_one, sack_permitted, ..self.head.header.into() }
    }

    /// The same packet with this codepoint.
    #[inline]
    pub fn with_dscp(mut self, dscp: u8) -> Self {
        self.head.set_dscp(dscp);
        self
    }

    /// A datagram at this position, the start of its route. Its number and its time are stored in the fields
    /// of a segment's sequence numbers and timestamps; `flow` is the number of its stream.
    pub fn of_datagram(datagram: Datagram, bytes: u32, flow: u32, position: u32) -> Self {
        let (number, sent) = (datagram.number, datagram.sent_at.picos());
        let header = Header {
            seq: number as u32,
            ack: (number >> 32) as u32,
            ts_val: sent as u32,
            ts_ecr: (sent >> 32) as u32,
            len: bytes.saturating_sub(UDP_HEADERS) as u16,
            ..Header::default()
        };
        let bytes = bytes as u16;
        let head = Head { header, flow, position, connection: 0, bytes, stride: 0, class: 0, kind: DATAGRAM };
        Self { head, options: Options::default() }
    }

    /// Its content, if it is a datagram.
    #[inline]
    pub fn datagram(&self) -> Option<Datagram> {
        let Head { header, kind, .. } = &self.head;
        let join = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        (kind & DATAGRAM != 0).then(|| Datagram {
            number: join(header.seq, header.ack),
            sent_at: Time::from_picos(join(header.ts_val, header.ts_ecr)),
        })
    }

    /// Size with headers.
    pub fn wire_bytes(&self) -> u32 {
        u32::from(self.head.bytes)
    }

    /// Whether it travels from receiver to sender.
    pub fn is_backward(&self) -> bool {
        self.head.kind & BACKWARD != 0
    }

    /// Codepoint and ECN field as encoded in the header.
    pub fn traffic_class(&self) -> u8 {
        self.head.class
    }

    /// Whether it was marked.
    pub fn is_marked(&self) -> bool {
        self.head.is_marked()
    }
}

impl Routed for Packet {
    #[inline]
    fn position(&self) -> u32 {
        self.head.position
    }
    #[inline]
    fn onward(&self) -> Self {
        Self { head: self.head.onward(), ..*self }
    }
}

impl elephan_net::Packet for Packet {
    type Head = Head;
    type Rest = Options;

    #[inline(always)]
    fn head(&self) -> &Head {
        &self.head
    }
    #[inline(always)]
    fn rest(&self) -> Option<Options> {
        (!self.head.is_all()).then_some(self.options)
    }
    #[inline(always)]
    fn join(head: &Head, rest: Option<Options>) -> Self {
        Self { head: *head, options: rest.unwrap_or_default() }
    }
}

impl elephan_net::Head for Head {
    #[inline(always)]
    fn has_rest(&self) -> bool {
        !self.is_all()
    }
    #[inline(always)]
    fn behind(&self, places: u32) -> Self {
        let seq = self.header.seq.wrapping_add(places * u32::from(self.header.len));
        let ack = self.header.ack.wrapping_add(places * u32::from(self.stride));
        Self { header: Header { seq, ack, ..self.header }, ..*self }
    }
    #[inline(always)]
    fn has_behind(&mut self, places: u32, next: &Self) -> bool {
        let (header, other) = (&self.header, &next.header);
        if next.flow != self.flow || header.ts_val != other.ts_val {
            return false;
        }
        if places == 1 {
            let Ok(stride) = u16::try_from(other.ack.wrapping_sub(header.ack)) else { return false };
            self.stride = stride;
        }
        let expected = self.behind(places);
        header.ts_ecr == other.ts_ecr
            && (expected.header.seq, expected.header.ack) == (other.seq, other.ack)
            && (header.window, header.len, header.flags, header.timestamps)
                == (other.window, other.len, other.flags, other.timestamps)
            && (self.position, self.connection) == (next.position, next.connection)
            && (self.bytes, self.class, self.kind) == (next.bytes, next.class, next.kind)
            && self.is_all()
    }
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        match self.class & ECN {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congestion,
        }
    }
    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.class = self.class & !ECN | ecn as u8;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.class >> 2
    }
    #[inline]
    fn set_dscp(&mut self, dscp: u8) {
        self.class = dscp << 2 | self.class & ECN;
    }
    #[inline]
    fn flow(&self) -> u64 {
        let serial = u64::from(self.flow) << 16 | u64::from(self.connection);
        serial << 2 | u64::from(self.kind & (BACKWARD | DATAGRAM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elephan_tcp::Flags;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = Head> {
        (0u32..3, 0u32..3, 0u32..2, 0u16..3, any::<bool>()).prop_map(|(seq, ack, ts_val, len, backward)| {
            let flags = Flags::ACK;
            let header = Header {
                seq: (u32::MAX - 1).wrapping_add(2 * seq),
                ack: (u32::MAX - 1).wrapping_add(2 * ack),
                ts_val,
                len,
                flags,
                ..Header::default()
            };
            Head::new(header, Address { flow: 1, connection: 2, start: 3, backward, dscp: 0 }, false)
        })
    }

    proptest! {
        /// Whatever is said to be behind the last segment of a run is what the run gives back.
        #[test]
        fn a_run_gives_its_segments_back(heads in prop::collection::vec(heads(), 2..6)) {
            let mut first = heads[0];
            let behind = (1u32..).zip(&heads[1..]).take_while(|(place, head)| first.has_behind(*place, head)).count();
            for (place, head) in (0u32..).zip(&heads[..=behind]) {
                prop_assert_eq!(Head { stride: 0, ..first.behind(place) }, *head);
            }
        }
    }

    #[test]
    fn data_and_acks_follow_each_other() {
        let to = Address { flow: 0, connection: 0, start: 0, backward: true, dscp: 0 };
        let ack = |ack| Head::new(Header { ack, ..Header::default() }, to, false);
        let mut first = ack(u32::MAX);
        assert!(
            first.has_behind(1, &ack(2895))
                && first.has_behind(2, &ack(5791))
                && !first.has_behind(3, &ack(5792))
        );
        let data = |seq| Head::new(Header { seq, len: 1448, ..Header::default() }, to, false);
        let mut first = data(0);
        assert!(
            first.has_behind(1, &data(1448))
                && first.has_behind(2, &data(2896))
                && !first.has_behind(3, &data(2896))
        );
        assert!(!first.has_behind(1, &ack(0)));
    }
}
