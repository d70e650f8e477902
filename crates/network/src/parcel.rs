//! IPv4 packets of a kernel as the links see them, and the header fields that an engine reads and writes.

use elephan_net::{Ecn, Head, Packet};
use elephan_scenario::Plan;

use crate::driver::Routed;
use crate::network::Network;

/// The port on which the receiving host listens for flow 0; flow `n` has the `n`-th after it, and crowds and streams follow.
pub const FIRST_PORT: u16 = 5000;

/// An IPv4 packet of a kernel: the data that links need, and where the packet itself is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parcel {
    /// Where its owner stores it: an index or an address.
    pub place: usize,
    /// Its length, bytes.
    pub bytes: u32,
    /// The part of it that is headers of IP and of TCP or UDP, bytes.
    pub headers: u8,
    /// Its position on its route.
    pub position: u32,
    /// The header's second byte: codepoint and ECN field.
    pub service: u8,
    /// Whether a link has changed this byte.
    pub changed: bool,
    /// The host that sent it: 0 for the sending host, 1 for the listening one.
    pub direction: u8,
    /// Its flow, by the listener's port.
    pub flow: u16,
}

/// The routes of packets by the ports of their headers.
pub struct Routes(Vec<[u32; 2]>);

impl Routes {
    /// Of a plan: for each flow, then for each crowd, and then for each stream, where the routes of its data
    /// and of its return packets start.
    pub fn new<P: Packet>(plan: &Plan, network: &Network<P>) -> Self {
        let streams = plan.streams.iter().map(|stream| [stream.forward; 2]);
        let crowds = plan.crowds.iter().map(|crowd| &crowd.flow);
        let flows = plan.flows.iter().chain(crowds).map(|flow| [flow.forward, flow.reverse]);
        let routes = flows.chain(streams);
        Self(routes.map(|routes| routes.map(|route| network.start(route))).collect())
    }

    /// The packet with this `header`, of `bytes`, that the host `direction` sends; `None` if it is not IPv4.
    /// Packets that belong to no flow of the plan take the route of its first flow: a ping, iperf3.
    pub fn parcel(&self, header: &[u8], bytes: u32, direction: u8, place: usize) -> Option<Parcel> {
        let from_listener = direction == 1;
        let flow = classify(header, from_listener)?;
        let routes = self.0.get(flow).or(self.0.first()).copied().unwrap_or_default();
        let position = routes[usize::from(from_listener)];
        let (service, flow) = (header[1], flow as u16);
        let headers = headers(header);
        Some(Parcel { place, bytes, headers, position, service, changed: false, direction, flow })
    }
}

impl Parcel {
    /// Bytes of its payload.
    pub fn payload(&self) -> u32 {
        self.bytes.saturating_sub(u32::from(self.headers))
    }
}

/// The bits of the service byte that are not the codepoint.
const ECN: u8 = 3;

impl Packet for Parcel {
    type Head = Self;
    type Rest = ();

    fn head(&self) -> &Self {
        self
    }
    fn rest(&self) -> Option<()> {
        None
    }
    fn join(head: &Self, _: Option<()>) -> Self {
        *head
    }
}

impl Head for Parcel {
    fn has_rest(&self) -> bool {
        false
    }
    /// Never asked for: what a kernel sends is no run.
    fn behind(&self, _: u32) -> Self {
        *self
    }
    fn has_behind(&mut self, _: u32, _: &Self) -> bool {
        false
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        match self.service & ECN {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congestion,
        }
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        (self.service, self.changed) = (self.service & !ECN | ecn as u8, true);
    }
    fn dscp(&self) -> u8 {
        self.service >> 2
    }
    fn set_dscp(&mut self, dscp: u8) {
        (self.service, self.changed) = (dscp << 2 | self.service & ECN, true);
    }
    fn flow(&self) -> u64 {
        u64::from(self.flow) << 1 | u64::from(self.direction)
    }
}

impl Routed for Parcel {
    fn position(&self) -> u32 {
        self.position
    }
    fn onward(&self) -> Self {
        Self { position: self.position + 1, ..*self }
    }
}

/// The flow of an IPv4 packet; `None` for any other packet that a host sends.
fn classify(packet: &[u8], from_listener: bool) -> Option<usize> {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return None;
    }
    let ports = usize::from(packet[0] & 15) * 4 + if from_listener { 0 } else { 2 };
    let port = match packet.get(ports..ports + 2) {
        Some(port) if packet[9] == 6 || packet[9] == 17 => u16::from_be_bytes([port[0], port[1]]),
        _ => 0,
    };
    Some(usize::from(port.wrapping_sub(FIRST_PORT)))
}

/// The length of an IPv4 packet's headers, of IP and of TCP or UDP, bytes.
fn headers(packet: &[u8]) -> u8 {
    const UDP_HEADER: u8 = 8;
    let of_ip = (packet[0] & 15) * 4;
    let offset = packet.get(usize::from(of_ip) + 12).copied().unwrap_or_default();
    of_ip + if packet[9] == 6 { (offset >> 4) * 4 } else { UDP_HEADER }
}

/// Writes the second byte of an IPv4 header, and updates its checksum (RFC 1624).
pub fn set_service(packet: &mut [u8], service: u8) {
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = service;
    let after = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 24] = [
        0x45, 0x02, 0x00, 0x18, 0x00, 0x00, 0x40, 0x00, 0x40, 0x06, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30,
        0x39, 0x13, 0x8b,
    ];

    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 =
            header[..20].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for service in [0x03, 0xbb, 0xff] {
            let mut packet = HEADER;
            let right = checksum(&packet);
            packet[10..12].copy_from_slice(&right.to_be_bytes());
            assert_eq!(checksum(&packet), 0);
            set_service(&mut packet, service);
            assert_eq!((packet[1], checksum(&packet)), (service, 0));
        }
    }

    #[test]
    fn a_rewritten_ecn_field_leaves_the_codepoint() {
        for (ecn, service) in [(Ecn::NotCapable, 0xb8), (Ecn::Capable0, 0xba), (Ecn::Congestion, 0xbb)] {
            let mut parcel = Parcel { service: 0xb9, ..Parcel::default() };
            parcel.set_ecn(ecn);
            assert_eq!((parcel.service, parcel.changed, parcel.ecn()), (service, true, ecn));
        }
    }

    #[test]
    fn payload_is_what_follows_the_headers() {
        let payload =
            |packet: &[u8], bytes| Parcel { bytes, headers: headers(packet), ..Parcel::default() }.payload();
        let mut packet = [HEADER.as_slice(), &[0; 16]].concat();
        // A TCP header of 32 bytes, behind one of IP without options, and with 40 bytes of them.
        packet[32] = 0x80;
        assert_eq!(payload(&packet, 1500), 1448);
        packet.splice(20..20, [0; 40]);
        packet[0] = 0x4f;
        assert_eq!(payload(&packet, 1500), 1408);
        // UDP.
        packet[9] = 17;
        assert_eq!(payload(&packet, 1500), 1432);
        // An acknowledgment, and what is not a whole packet.
        assert_eq!((payload(&packet, 68), payload(&packet[..24], 24)), (0, 0));
    }

    #[test]
    fn the_listeners_port_tells_the_flow() {
        assert_eq!(classify(&HEADER, false), Some(3));
        assert_eq!(classify(&HEADER, true), Some(usize::from(12_345 - FIRST_PORT)));
        assert_eq!(classify(&[0x60; 40], false), None);
    }
}
