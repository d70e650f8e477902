//! The events of a run, as the simulator reports them: from the headers of the packets, and from the kernel's TCP.

use std::collections::HashMap;

use elephan_metrics::trace::{EventKind, EventRow, EventTrace, UNKNOWN};
use elephan_network::{FIRST_PORT, Parcel};
use elephan_scenario::Plan;
use elephan_units::Time;

/// `struct elephan_window`: the window of a TCP socket, segments; zeros for other packets.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Window {
    cwnd: u32,
    ssthresh: u32,
}

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// States of congestion (`enum tcp_ca_state`) from which the window is being reduced.
const CA_CWR: u8 = 2;
const CA_LOSS: u8 = 4;

/// The sending host.
pub const SENDER: u8 = 0;

const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// What events tell of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Header {
    /// Port of the sending host.
    port: u16,
    seq: u32,
    ack: u32,
    payload: u32,
    flags: u8,
    is_tcp: bool,
}

/// Whether a sender that goes from this state of congestion to the other one reduces its window: it begins recovery or responds
/// to a mark, or its timer expired.
pub fn reduces(before: u8, state: u8) -> bool {
    (state >= CA_CWR && before < CA_CWR) || (state == CA_LOSS && before < CA_LOSS)
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Sequence number of the SYN.
    first: u32,
    /// The number after the highest that was sent.
    next: u32,
    /// The number after the FIN, until it is acknowledged.
    closed: Option<u32>,
}

/// Keeps the events of a run.
pub struct Events {
    trace: EventTrace,
    /// The window of each flow's sender.
    windows: Vec<Window>,
    /// Flows, crowds and streams. Packets of others, such as a ping, have no events.
    numbers: usize,
    /// By flow, port of the sending host, and host.
    sent: HashMap<(u16, u16, u8), Sent>,
    /// Of the packets in the network, by place.
    headers: HashMap<usize, Header>,
}

impl Events {
    /// Of a run that has not begun.
    pub fn new(plan: &Plan) -> Self {
        Self {
            trace: EventTrace::default(),
            windows: vec![Window { cwnd: 0, ssthresh: INFINITE_SSTHRESH }; plan.flows.len()],
            numbers: plan.flows.len() + plan.crowds.len() + plan.streams.len(),
            sent: HashMap::new(),
            headers: HashMap::new(),
        }
    }

    /// A packet leaves its host.
    pub fn leaves(&mut self, parcel: &Parcel, header: &[u8], window: Window, now: Time) {
        let number = usize::from(parcel.flow);
        let Some(header) = read(header, parcel).filter(|_| number < self.numbers) else { return };
        self.headers.insert(parcel.place, header);
        self.learn(number, parcel.direction, window);
        let mut again = false;
        if header.is_tcp {
            let sent = self.sent.entry((parcel.flow, header.port, parcel.direction)).or_default();
            let end = header.seq.wrapping_add(header.payload);
            if header.flags & SYN != 0 {
                let opens = sent.first != header.seq || sent.next == 0;
                *sent = Sent { first: header.seq, next: end.wrapping_add(1), closed: None };
                if opens && header.flags & ACK == 0 {
                    self.tell(EventKind::Start, parcel.flow, None, Header::default(), now);
                }
            } else {
                again = is_before(header.seq, sent.next);
                if is_before(sent.next, end) {
                    sent.next = end;
                }
                if header.flags & FIN != 0 {
                    sent.closed = Some(end.wrapping_add(1));
                }
            }
        }
        let kind = match (header.payload > 0, again) {
            (false, _) => EventKind::Ack,
            (true, false) => EventKind::Send,
            (true, true) => EventKind::Retransmit,
        };
        self.tell(kind, parcel.flow, None, header, now);
    }

    /// A packet has left the network, with this event on this link; a wire that loses a packet causes none.
    pub fn gone(&mut self, parcel: &Parcel, event: Option<(EventKind, Option<u32>)>, at: Time) {
        let Some(header) = self.headers.remove(&parcel.place) else { return };
        let Some((kind, link)) = event else { return };
        self.tell(kind, parcel.flow, link, header, at);
        if kind == EventKind::Receive && header.is_tcp && parcel.direction != SENDER {
            let sent = self.sent.get_mut(&(parcel.flow, header.port, SENDER));
            let closed = sent.and_then(|sent| sent.closed.take_if(|closed| !is_before(header.ack, *closed)));
            if closed.is_some() {
                self.tell(EventKind::Finish, parcel.flow, None, Header::default(), at);
            }
        }
    }

    /// A sender's connection to a port enters another state of congestion: before, and then.
    pub fn enters(&mut self, port: u16, (before, state): (u8, u8), window: Window, now: Time) {
        let flow = port.wrapping_sub(FIRST_PORT);
        if usize::from(flow) >= self.numbers {
            return;
        }
        self.learn(usize::from(flow), SENDER, window);
        if state == CA_LOSS {
            self.tell(EventKind::Timeout, flow, None, Header::default(), now);
        }
        if reduces(before, state) {
            self.tell(EventKind::Congestion, flow, None, Header::default(), now);
        }
    }

    /// The events, in order of time.
    pub fn finish(mut self) -> EventTrace {
        self.trace.sort();
        self.trace
    }

    fn learn(&mut self, number: usize, host: u8, window: Window) {
        if let Some(known) = self.windows.get_mut(number)
            && host == SENDER
            && window.cwnd > 0
        {
            *known = window;
        }
    }

    fn tell(&mut self, kind: EventKind, flow: u16, link: Option<u32>, header: Header, now: Time) {
        let window = self.windows.get(usize::from(flow)).filter(|window| window.cwnd > 0);
        self.trace.push(EventRow {
            time_s: now.secs_f64(),
            kind: kind as u8,
            flow: u32::from(flow),
            link: link.unwrap_or(UNKNOWN),
            seq: if header.payload > 0 { header.seq } else { header.ack },
            bytes: header.payload,
            cwnd_segments: window.map_or(f64::NAN, |window| f64::from(window.cwnd)),
            ssthresh_segments: match window {
                None => f64::NAN,
                Some(&Window { ssthresh: INFINITE_SSTHRESH.., .. }) => f64::INFINITY,
                Some(window) => f64::from(window.ssthresh),
            },
        });
    }
}

/// Whether a sequence number is below another one (RFC 9293, section 3.4).
fn is_before(seq: u32, other: u32) -> bool {
    seq.wrapping_sub(other).cast_signed() < 0
}

/// The headers of an IPv4 packet; `None` if it is neither TCP nor UDP.
fn read(packet: &[u8], parcel: &Parcel) -> Option<Header> {
    let start = usize::from(packet[0] & 15) * 4;
    let two = |at: usize| Some(u16::from_be_bytes(packet.get(start + at..start + at + 2)?.try_into().ok()?));
    let four = |at: usize| Some(u32::from_be_bytes(packet.get(start + at..start + at + 4)?.try_into().ok()?));
    let payload = |header: usize| parcel.bytes.saturating_sub((start + header) as u32);
    let port = two(if parcel.direction == SENDER { 0 } else { 2 })?;
    match packet[9] {
        TCP => {
            let header = usize::from(packet.get(start + 12)? >> 4) * 4;
            let flags = *packet.get(start + 13)?;
            Some(Header { port, seq: four(4)?, ack: four(8)?, payload: payload(header), flags, is_tcp: true })
        }
        // A datagram begins with its number, in the order of the machine.
        UDP => {
            let seq = four(UDP_HEADER).unwrap_or_default().swap_bytes();
            Some(Header { port, seq, payload: payload(UDP_HEADER), ..Header::default() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use elephan_scenario::Scenario;

    use super::*;

    const ADVANCED: u32 = 1000;

    /// A TCP packet without options.
    fn packet(direction: u8, flags: u8, seq: u32, ack: u32, payload: u32) -> (Parcel, Vec<u8>) {
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, TCP];
        header.resize(20, 0);
        let ports = if direction == SENDER { [40_000, FIRST_PORT] } else { [FIRST_PORT, 40_000] };
        header.extend(ports.iter().flat_map(|port: &u16| port.to_be_bytes()));
        header.extend([seq, ack].iter().flat_map(|number| number.to_be_bytes()));
        header.extend([0x50, flags]);
        (Parcel { place: seq as usize, bytes: 40 + payload, direction, ..Parcel::default() }, header)
    }

    #[test]
    fn a_connection_is_told_from_its_headers() {
        let text =
            r#"{"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "10 ms"}, "flow": [{"cc": "reno"}]}"#;
        let plan = Scenario::from_json(text, "test", &[]).and_then(|s| s.resolve("test")).unwrap();
        let mut events = Events::new(&plan);
        // Sequence numbers pass zero.
        let first = u32::MAX - ADVANCED;
        let window = Window { cwnd: 10, ssthresh: INFINITE_SSTHRESH };
        let sent = [
            (SENDER, SYN, first, 0, 0),
            (1, SYN | ACK, 7, first.wrapping_add(1), 0),
            (SENDER, ACK, first.wrapping_add(1), 8, ADVANCED),
            (SENDER, ACK, first.wrapping_add(1 + ADVANCED), 8, ADVANCED),
            (SENDER, ACK, first.wrapping_add(1), 8, ADVANCED),
            (SENDER, ACK | FIN, first.wrapping_add(1 + 2 * ADVANCED), 8, 0),
            (1, ACK, 8, first.wrapping_add(2 + 2 * ADVANCED), 0),
        ];
        for (number, (direction, flags, seq, ack, payload)) in sent.into_iter().enumerate() {
            let now = Time::from_millis(number as u64);
            let (parcel, header) = packet(direction, flags, seq, ack, payload);
            let window = if direction == SENDER { window } else { Window { cwnd: 3, ssthresh: 3 } };
            events.leaves(&parcel, &header, window, now);
            let event = if number == 2 { (EventKind::Drop, Some(0)) } else { (EventKind::Receive, None) };
            events.gone(&parcel, Some(event), now);
            if number == 3 {
                events.enters(FIRST_PORT, (0, 3), Window { cwnd: 10, ssthresh: 5 }, now);
                events.enters(FIRST_PORT, (3, CA_LOSS), Window { cwnd: 1, ssthresh: 5 }, now);
            }
        }
        let told = events.finish();
        let names: Vec<_> = told.kind.iter().map(|&kind| EventKind::NAMES[usize::from(kind)]).collect();
        let expected = "start ack receive ack receive send drop send receive congestion timeout congestion \
                        retransmit receive ack receive ack receive finish";
        assert_eq!(names.join(" "), expected);
        assert_eq!(told.seq[5..7], [first.wrapping_add(1); 2]);
        assert_eq!(told.link[5..8], [UNKNOWN, 0, UNKNOWN]);
        assert_eq!(told.cwnd_segments[8..13], [10.0, 10.0, 1.0, 1.0, 10.0]);
        assert_eq!(told.ssthresh_segments[8..10], [f64::INFINITY, 5.0]);
    }
}
