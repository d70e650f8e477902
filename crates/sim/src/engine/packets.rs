//! Packets in transit: where a route begins, and what happens at its end.

use elephan_metrics::trace::EventKind;
use elephan_net::Times;
use elephan_network::{Driver, Part};
use elephan_tcp::Header;
use elephan_units::Time;

use crate::detail::Event;
use crate::engine::site::Running;
use crate::engine::source::Source;
use crate::packet::{Datagram, Head, Packet};
use crate::state::connection::{Half, RECEIVER, SENDER};
use crate::state::site::Site;
use crate::state::timers::Timer;

impl<const DETAILED: bool> Driver for Running<'_, '_, DETAILED> {
    type Packet = Packet;
    const FOLLOWS: bool = DETAILED;

    #[inline]
    fn part(&mut self) -> &mut Part<Packet> {
        self.part
    }

    #[inline]
    fn steps(&mut self) {
        self.site.steps.take();
    }

    #[inline]
    fn goes_on(&mut self, packet: &Packet, now: Time) -> bool {
        self.site.steps.are_left() || !self.stops(Source::of(packet), now)
    }

    fn crosses(&mut self, link: u32, packet: &Packet, now: Time) {
        if let Some(detail) = &mut self.site.detail {
            detail.captures.write(link, packet, now);
        }
    }

    fn dropped(&mut self, link: u32, packet: &Packet, at: Time) {
        self.tell_of_packet(EventKind::Drop, packet, Some(link), at);
    }

    #[inline]
    fn deliver(&mut self, packet: &Packet, now: Time) {
        if let Some(datagram) = packet.datagram() {
            if let Some(reception) = &mut self.site.receptions[packet.head.flow as usize] {
                reception.receive(datagram.number, now - datagram.sent_at);
            }
            if DETAILED {
                self.tell_of_packet(EventKind::Receive, packet, None, now);
            }
            return;
        }
        if packet.is_backward() {
            if self.acknowledged(packet, now) {
                self.pump::<SENDER>(packet.head.flow, now);
            }
        } else if self.received(packet, now) {
            self.pump::<RECEIVER>(packet.head.flow, now);
        }
    }
}

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// A packet reaches the sending half of its connection. Returns false if it has none: a packet of a closed
    /// connection has no receiver; the next connection has other ports.
    #[inline]
    fn acknowledged(&mut self, packet: &Packet, now: Time) -> bool {
        let place = self.site.place(packet.head.flow);
        let Some(connection) = &mut self.site.slots[place].connection else { return false };
        if connection.half.number as u16 != packet.head.connection {
            return false;
        }
        if let Some(Some(host)) = self.site.hosts.get_mut(place) {
            if !host.admit(*packet) && DETAILED {
                self.tell_of_slot(EventKind::Drop, packet.head.flow, Some(&packet.head.header), now);
            }
        } else {
            connection.half.endpoint.on_segment(&packet.segment(), packet.is_marked(), now);
            if DETAILED {
                self.tell_of_slot(EventKind::Receive, packet.head.flow, Some(&packet.head.header), now);
            }
        }
        true
    }

    /// A packet reaches the receiving half of its connection, which the first packet makes. Returns false if
    /// nothing follows from it, or its connection is closed.
    #[inline]
    fn received(&mut self, packet: &Packet, now: Time) -> bool {
        let place = self.site.place(packet.head.flow);
        let sink = &mut self.site.sinks[place];
        match &mut sink.connection {
            Some(half) if half.number as u16 == packet.head.connection => {
                half.receive(&packet.segment(), packet.is_marked(), now);
                if !DETAILED && half.endpoint.is_quiet() && half.endpoint.poll_timeout() >= half.wake {
                    return false;
                }
            }
            None if sink.closed as u16 == packet.head.connection => {
                let (number, crowd) = (sink.closed, sink.crowd);
                let flow = self.site.plan_of(packet.head.flow, crowd);
                let stack = self.site.stack_of(packet.head.flow, crowd);
                let (start, seed) = (self.site.paths.start(flow.reverse), self.site.plan.seed);
                let mut half =
                    Box::new(Half::receiving(flow, stack, (packet.head.flow, number), start, seed));
                if self.begin_talk(packet.head.flow, RECEIVER, crowd, now) {
                    half.only_receives = false;
                    // It has something to send, so that nothing takes it for a receiver only.
                    half.endpoint.write(0);
                }
                half.receive(&packet.segment(), packet.is_marked(), now);
                self.site.sinks[place].connection = Some(half);
            }
            _ => {
                sink.arrived_late(packet.head.header.len.into());
                return false;
            }
        }
        if DETAILED {
            self.tell_of_slot(EventKind::Receive, packet.head.flow, Some(&packet.head.header), now);
        }
        true
    }

    /// A stream sends its next datagram.
    pub(super) fn emit(&mut self, number: u32, now: Time) {
        let Some(stream) = &mut self.site.streams[number as usize] else { return };
        let plan = &self.site.plan.streams[number as usize];
        let sent = stream.send(now);
        self.site.timers.schedule(Timer::Stream(number), stream.next());
        let Some(sent) = sent else { return };
        let datagram = Datagram { number: sent, sent_at: now };
        let start = self.site.paths.start(plan.forward);
        let packet = Packet::of_datagram(datagram, plan.datagrams.packet, number, start).with_dscp(plan.dscp);
        if DETAILED {
            self.tell_of_packet(EventKind::Send, &packet, None, now);
        }
        self.enter(&packet, now);
    }

    /// Sends all pending segments of an end.
    #[inline]
    pub(super) fn transmit_all(&mut self, number: u32, end: usize, now: Time) {
        while self.transmit(number, end, now)
            && self.half(number, end).is_some_and(|half| !half.endpoint.is_quiet())
            && self.may_go_on(number, now)
        {}
    }

    /// Whether a flow may go on to send: the run does not stop.
    #[inline]
    fn may_go_on(&mut self, number: u32, now: Time) -> bool {
        self.site.steps.are_left() || !self.stops(Source::Slot(number), now)
    }

    /// Sends the next segment of an end; returns false if there is none.
    #[inline]
    pub(super) fn transmit(&mut self, number: u32, end: usize, now: Time) -> bool {
        let Some(half) = self.half(number, end) else { return false };
        let endpoint = &mut half.endpoint;
        let before = if DETAILED { endpoint.counters().segments_retransmitted } else { 0 };
        let polled = endpoint.poll_transmit(now);
        let Some(segment) = &polled else { return false };
        let capable = endpoint.ecn_capable();
        let again = DETAILED && endpoint.counters().segments_retransmitted > before;
        let to = half.address(number, end);
        if !DETAILED && segment.is_bare() {
            let head = Head::new(segment.header(), to, capable);
            let Some(near) = self.part.near_at(to.start) else { return true };
            self.part.send_run(near, head.bytes.into(), &Times::at_once(1, now), &head);
            self.site.steps.take();
            return true;
        }
        let packet = Packet::new(segment, to, capable);
        if DETAILED {
            use EventKind::{Ack, Retransmit, Send};
            let kind = match (segment.len > 0, again) {
                (false, _) => Ack,
                (true, false) => Send,
                (true, true) => Retransmit,
            };
            self.tell_of_slot(kind, number, Some(&segment.header()), now);
        }
        self.enter(&packet, now);
        true
    }

    /// Reports an event of a packet.
    fn tell_of_packet(&mut self, kind: EventKind, packet: &Packet, link: Option<u32>, now: Time) {
        let plan = self.site.plan;
        let flow = if packet.datagram().is_some() {
            (plan.flows.len() + plan.crowds.len()) as u32 + packet.head.flow
        } else {
            self.site.number_of_slot(packet.head.flow)
        };
        self.tell_of(Event { kind, flow, link, segment: Some(&packet.head.header) }, now);
    }

    /// Reports an event of a slot.
    pub(super) fn tell_of_slot(&mut self, kind: EventKind, slot: u32, segment: Option<&Header>, now: Time) {
        let flow = self.site.number_of_slot(slot);
        self.tell_of(Event { kind, flow, link: None, segment }, now);
    }

    fn tell_of(&mut self, event: Event<'_>, now: Time) {
        let is_flow = (event.flow as usize) < self.site.plan.flows.len();
        let place = self.site.place(event.flow);
        let Site { slots, detail, .. } = &mut *self.site;
        let sender = if is_flow { slots[place].sender() } else { None };
        if let Some(detail) = detail {
            detail.event(sender, event, now);
        }
    }
}
