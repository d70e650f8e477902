//! A packet in transit: its segment, its flow, and its position on the route.

use elephan_net::Ecn;
use elephan_network::Routed;
use elephan_tcp::Segment;
use elephan_traffic::UDP_HEADERS;
use elephan_units::Time;

/// A packet, copied by value.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its content.
    pub segment: Segment,
    /// The flow's number.
    pub flow: u32,
    /// Its position on its route.
    position: u32,
    /// The connection of the flow that it belongs to, wrapping: late packets of the last transfer do not
    /// belong to the next one.
    pub connection: u16,
    /// Size with headers.
    bytes: u16,
    backward: bool,
    datagram: bool,
    ecn: Ecn,
    dscp: u8,
}

/// The content of a datagram, as its receiver reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Number of datagrams that the stream sent before it.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Time,
}

impl Packet {
    /// A packet at this position, the start of its route.
    #[inline]
    pub fn new(
        segment: &Segment,
        flow: u32,
        connection: u16,
        position: u32,
        backward: bool,
        capable: bool,
        dscp: u8,
    ) -> Self {
        let ecn = if capable && segment.len > 0 { Ecn::Capable0 } else { Ecn::NotCapable };
        let bytes = segment.packet_bytes() as u16;
        Self { bytes, segment: *segment, flow, position, connection, backward, datagram: false, ecn, dscp }
    }

    /// A copy of a packet that neither is a SYN nor has SACK blocks, field by field, with a sequence number so much
    /// higher.
    #[inline(always)]
    pub fn plain_at(&self, offset: u32) -> Self {
        let Segment { seq, ack, len, window, ts_val, ts_ecr, flags, timestamps, .. } = self.segment;
        let seq = seq.wrapping_add(offset);
        let segment =
            Segment { seq, ack, len, window, ts_val, ts_ecr, flags, timestamps, ..Segment::default() };
        let Self { flow, position, connection, bytes, backward, datagram, ecn, dscp, .. } = *self;
        Self { segment, flow, position, connection, bytes, backward, datagram, ecn, dscp }
    }

    /// The same packet with this codepoint.
    #[inline]
    pub fn with_dscp(self, dscp: u8) -> Self {
        Self { dscp, ..self }
    }

    /// A datagram at this position, the start of its route. Its number and its time are stored in the fields
    /// of a segment's sequence numbers and timestamps; `flow` is the number of its stream.
    pub fn of_datagram(datagram: Datagram, bytes: u32, flow: u32, position: u32) -> Self {
        let (number, sent) = (datagram.number, datagram.sent_at.picos());
        let segment = Segment {
            seq: number as u32,
            ack: (number >> 32) as u32,
            ts_val: sent as u32,
            ts_ecr: (sent >> 32) as u32,
            len: bytes.saturating_sub(UDP_HEADERS) as u16,
            ..Segment::default()
        };
        let bytes = bytes as u16;
        Self {
            segment,
            flow,
            position,
            connection: 0,
            bytes,
            backward: false,
            datagram: true,
            ecn: Ecn::NotCapable,
            dscp: 0,
        }
    }

    /// Its content, if it is a datagram.
    #[inline]
    pub fn datagram(&self) -> Option<Datagram> {
        let segment = &self.segment;
        let join = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        self.datagram.then(|| Datagram {
            number: join(segment.seq, segment.ack),
            sent_at: Time::from_picos(join(segment.ts_val, segment.ts_ecr)),
        })
    }

    /// Size with headers.
    pub fn wire_bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    /// Whether it travels from receiver to sender.
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// Codepoint and ECN field as encoded in the header.
    pub fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }

    /// Whether it was marked.
    pub fn is_marked(&self) -> bool {
        self.ecn == Ecn::Congestion
    }
}

impl Routed for Packet {
    #[inline]
    fn position(&self) -> u32 {
        self.position
    }
    #[inline]
    fn onward(&self) -> Self {
        Self { position: self.position + 1, ..*self }
    }
}

impl elephan_net::Packet for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Congestion;
    }
    #[inline]
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    #[inline]
    fn flow(&self) -> u64 {
        let serial = u64::from(self.flow) << 16 | u64::from(self.connection);
        serial << 2 | u64::from(self.backward) << 1 | u64::from(self.datagram)
    }
}
