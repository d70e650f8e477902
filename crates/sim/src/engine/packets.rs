//! Packets in transit: where a route begins, and what happens at its end.

use elephan_metrics::trace::EventKind;
use elephan_network::{Driver, Network};
use elephan_tcp::Segment;
use elephan_units::Time;

use crate::engine::Engine;
use crate::engine::steps::Source;
use crate::observer::{Event, Observer};
use crate::packet::{Datagram, Packet};
use crate::state::connection::{RECEIVER, SENDER};
use crate::state::timers::Timer;

impl<O: Observer> Driver for Engine<'_, O> {
    type Packet = Packet;
    const FOLLOWS: bool = O::DETAILED;

    #[inline]
    fn network(&mut self) -> &mut Network<Packet> {
        &mut self.state.network
    }

    #[inline]
    fn steps(&mut self) {
        self.steps.take();
    }

    #[inline]
    fn goes_on(&mut self, packet: &Packet, now: Time) -> bool {
        self.steps.are_left() || !self.stops(Source::of(packet), now)
    }

    fn crosses(&mut self, link: u32, packet: &Packet, now: Time) {
        self.observer.crosses(link, packet, now);
    }

    fn dropped(&mut self, link: u32, packet: &Packet, at: Time) {
        self.tell_of_packet(EventKind::Drop, packet, Some(link), at);
    }

    #[inline]
    fn deliver(&mut self, packet: &Packet, now: Time) {
        if let Some(datagram) = packet.datagram() {
            self.state.streams[packet.flow as usize].receive(datagram, now);
            if O::DETAILED {
                self.tell_of_packet(EventKind::Receive, packet, None, now);
            }
            return;
        }
        // A packet of a closed connection has no receiver; the next connection has other ports.
        let connection = match &mut self.state.slots[packet.flow as usize].connection {
            Some(connection) if connection.number as u16 == packet.connection => connection,
            _ => return,
        };
        let end = if packet.is_backward() { SENDER } else { RECEIVER };
        if end == SENDER
            && let Some(Some(host)) = self.state.hosts.get_mut(packet.flow as usize)
        {
            if !host.admit(*packet) && O::DETAILED {
                self.tell_of_slot(EventKind::Drop, packet.flow, Some(&packet.segment), now);
            }
        } else {
            connection.receive(end, &packet.segment, packet.is_marked(), now);
            if O::DETAILED {
                self.tell_of_slot(EventKind::Receive, packet.flow, Some(&packet.segment), now);
            }
        }
        self.pump(packet.flow, end, now);
    }
}

impl<O: Observer> Engine<'_, O> {
    /// A stream sends its next datagram.
    pub(super) fn emit(&mut self, number: u32, now: Time) {
        let stream = &mut self.state.streams[number as usize];
        let plan = &self.state.plan.streams[number as usize];
        let sent = stream.send(now);
        self.state.timers.schedule(Timer::Stream(number), stream.next());
        let Some(sent) = sent else { return };
        let datagram = Datagram { number: sent, sent_at: now };
        let start = self.state.network.start(plan.forward);
        let packet = Packet::of_datagram(datagram, plan.datagrams.packet, number, start).with_dscp(plan.dscp);
        if O::DETAILED {
            self.tell_of_packet(EventKind::Send, &packet, None, now);
        }
        self.enter(&packet, now);
    }

    /// Sends the next segment of an end; returns false if there is none.
    #[inline]
    pub(super) fn transmit(&mut self, number: u32, end: usize, now: Time) -> bool {
        let Some(connection) = &mut self.state.slots[number as usize].connection else { return false };
        let endpoint = &mut connection.ends[end];
        let before = if O::DETAILED { endpoint.counters().segments_retransmitted } else { 0 };
        let polled = endpoint.poll_transmit(now);
        let Some(segment) = &polled else { return false };
        let capable = endpoint.ecn_capable();
        let (start, serial, dscp) = (connection.starts[end], connection.number as u16, connection.dscp);
        if O::DETAILED {
            use EventKind::{Ack, Retransmit, Send};
            let again = endpoint.counters().segments_retransmitted > before;
            let kind = match (segment.len > 0, again) {
                (false, _) => Ack,
                (true, false) => Send,
                (true, true) => Retransmit,
            };
            self.tell_of_slot(kind, number, Some(segment), now);
        }
        let packet = Packet::new(segment, number, serial, start, end == RECEIVER, capable).with_dscp(dscp);
        self.enter(&packet, now);
        true
    }

    /// Reports an event of a packet.
    fn tell_of_packet(&mut self, kind: EventKind, packet: &Packet, link: Option<u32>, now: Time) {
        let flow = self.state.number_of(packet);
        self.tell(Event { kind, flow, link, segment: Some(&packet.segment) }, now);
    }

    /// Reports an event of a slot.
    pub(super) fn tell_of_slot(&mut self, kind: EventKind, slot: u32, segment: Option<&Segment>, now: Time) {
        let flow = self.state.number_of_slot(slot);
        self.tell(Event { kind, flow, link: None, segment }, now);
    }
}
