//! Virtual time: links, connections, and what happens next.

use elephan_net::Link;
use elephan_scenario::plan::{Flow, Plan};
use elephan_tcp::{Counters, Endpoint, Segment};
use elephan_traffic::Demand;
use elephan_units::Time;

use crate::connection::{Connection, RECEIVER, SENDER};
use crate::events::Events;
use crate::packet::{Datagram, Packet};
use crate::stream::Stream;
use crate::trace::EventKind;

/// What an engine tells of what it does. All methods are called at the moment they speak of.
pub trait Observer {
    /// Whether [`Observer::event`] and [`Observer::crosses`] are to be called.
    const DETAILED: bool;

    /// A packet, a window or a connection did something.
    fn event(&mut self, engine: &Engine<'_>, now: Time, event: Event<'_>);
    /// A packet begins to cross a link.
    fn crosses(&mut self, link: u32, packet: &Packet, now: Time);
    /// A flow's window was reduced.
    fn congestion(&mut self, flow: u32, now: Time);
    /// A flow opened a connection.
    fn started(&mut self, flow: u32, now: Time);
    /// A transfer of a flow ended.
    fn finished(&mut self, flow: u32, transfer: u64, bytes: u64, started: Time, now: Time);
    /// The time that [`Observer::next_tick`] named has come.
    fn tick(&mut self, engine: &mut Engine<'_>, now: Time) -> Result<(), crate::Error>;
    /// When the observer next wants to look; `Time::MAX` for never.
    fn next_tick(&self) -> Time;
}

/// What [`Observer::event`] is told.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// To which flow.
    pub flow: u32,
    /// On which link.
    pub link: Option<u32>,
    /// Which segment.
    pub segment: Option<&'a Segment>,
}

/// A flow while the plan is carried out.
pub struct Running {
    /// The present connection.
    pub connection: Option<Box<Connection>>,
    /// What its connections before the present one counted: at the sender, and delivered at the receiver.
    before: Counters,
    /// Connections opened so far.
    opened: u64,
}

/// Everything that a run consists of.
///
/// Of simultaneous events those of links come first, by number; then those of streams of datagrams; then those of flows, whose two
/// ends have an event each; and last
/// the observer, who so sees what the others left behind.
pub struct Engine<'a> {
    plan: &'a Plan,
    /// The links, by number.
    pub links: Vec<Link<Packet>>,
    /// All routes, one after the other, each with an [`END`].
    hops: Vec<u32>,
    /// Where each route of the plan begins in `hops`.
    routes: Vec<u32>,
    /// The flows, by number.
    pub flows: Vec<Running>,
    /// The streams of datagrams, by number.
    pub streams: Vec<Stream>,
    /// Apart from the other events: they are the most by far, and their sources few.
    arrivals: Events,
    /// First the streams, by number; then twice the flow's number, and [`SENDER`], whose event also is the flow's start, or
    /// [`RECEIVER`].
    timers: Events,
    /// Events handled.
    pub handled: u64,
}

/// The end of a route.
const END: u32 = u32::MAX;

impl<'a> Engine<'a> {
    /// An engine at time zero.
    pub fn new(plan: &'a Plan) -> Self {
        let links: Vec<_> =
            (0u64..).zip(&plan.links).map(|(i, link)| Link::new(link.config.clone(), plan.seed, i)).collect();
        let (mut hops, mut routes) = (Vec::new(), Vec::new());
        for route in &plan.routes {
            routes.push(hops.len() as u32);
            hops.extend(route);
            hops.push(END);
        }
        let streams: Vec<Stream> =
            (0u64..).zip(&plan.streams).map(|(i, stream)| Stream::new(stream, plan, i)).collect();
        let mut timers = Events::new(streams.len() + 2 * plan.flows.len());
        for (number, stream) in streams.iter().enumerate() {
            timers.schedule(number, stream.next());
        }
        let mut flows = Vec::with_capacity(plan.flows.len());
        for (number, flow) in plan.flows.iter().enumerate() {
            flows.push(Running { connection: None, before: Counters::default(), opened: 0 });
            timers.schedule(streams.len() + 2 * number + SENDER, flow.start.draw(plan.seed, number as u64));
        }
        let arrivals = Events::new(links.len());
        Self { plan, links, hops, routes, flows, streams, arrivals, timers, handled: 0 }
    }

    /// Runs to the end of the plan.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), crate::Error> {
        let mut tick = observer.next_tick();
        loop {
            let (arrival, link) = self.arrivals.next();
            let (timer, end) = self.timers.next();
            if arrival.min(timer).min(tick) > self.plan.duration {
                return Ok(());
            }
            self.handled += 1;
            if arrival <= timer && arrival <= tick {
                self.arrive(link, arrival, observer);
            } else if timer <= tick {
                match end.checked_sub(self.streams.len()) {
                    Some(end) => self.wake(end, timer, observer),
                    None => self.emit(end, timer, observer),
                }
            } else {
                observer.tick(self, tick)?;
                tick = observer.next_tick();
            }
        }
    }

    /// Packets reach the far end of a link.
    #[inline]
    fn arrive<O: Observer>(&mut self, number: usize, now: Time, observer: &mut O) {
        let next = loop {
            let link = &mut self.links[number];
            let next = link.next_event();
            if next > now {
                break next;
            }
            let Some(mut packet) = link.receive(now) else { continue };
            packet.at += 1;
            match self.hops[packet.at as usize] {
                END => self.deliver(&packet, now, observer),
                next => self.send(next, packet, now, observer),
            }
        };
        self.arrivals.schedule(number, next);
    }

    /// A packet comes to a link.
    #[inline]
    fn send<O: Observer>(&mut self, number: u32, packet: Packet, now: Time, observer: &mut O) {
        let link = &mut self.links[number as usize];
        let was_idle = link.is_idle();
        if link.send(packet, now) {
            if was_idle {
                let next = link.next_event();
                self.arrivals.schedule(number as usize, next);
            }
            if O::DETAILED {
                observer.crosses(number, &packet, now);
            }
        } else if O::DETAILED {
            let (kind, segment) = (EventKind::Drop, Some(&packet.segment));
            let flow = self.number_of(&packet);
            observer.event(self, now, Event { kind, flow, link: Some(number), segment });
        }
    }

    /// A packet reaches the end of its route.
    #[inline]
    fn deliver<O: Observer>(&mut self, packet: &Packet, now: Time, observer: &mut O) {
        if let Some(datagram) = packet.datagram() {
            self.streams[packet.flow as usize].receive(datagram, now);
            if O::DETAILED {
                let (kind, segment) = (EventKind::Receive, Some(&packet.segment));
                let flow = self.number_of(packet);
                observer.event(self, now, Event { kind, flow, link: None, segment });
            }
            return;
        }
        // A packet of a connection that has ended finds nobody; its successor has other ports.
        let connection = match &mut self.flows[packet.flow as usize].connection {
            Some(connection) if connection.number as u16 == packet.connection => connection,
            _ => return,
        };
        let end = if packet.is_backward() { SENDER } else { RECEIVER };
        connection.receive(end, &packet.segment, packet.is_marked(), now);
        if O::DETAILED {
            let (kind, segment) = (EventKind::Receive, Some(&packet.segment));
            observer.event(self, now, Event { kind, flow: packet.flow, link: None, segment });
        }
        self.pump(packet.flow, end, now, observer);
    }

    /// A stream sends its next datagram.
    fn emit<O: Observer>(&mut self, number: usize, now: Time, observer: &mut O) {
        let stream = &mut self.streams[number];
        let plan = &self.plan.streams[number];
        let datagram = Datagram { number: stream.send(now), sent_at: now };
        let at = self.routes[plan.forward as usize];
        let packet =
            Packet::of_datagram(datagram, plan.datagrams.packet, number as u32, at).with_dscp(plan.dscp);
        self.timers.schedule(number, stream.next());
        if O::DETAILED {
            let (kind, segment) = (EventKind::Send, Some(&packet.segment));
            let flow = self.number_of(&packet);
            observer.event(self, now, Event { kind, flow, link: None, segment });
        }
        self.send(self.hops[at as usize], packet, now, observer);
    }

    /// Whose a packet is, as traces number it: flows, then streams.
    fn number_of(&self, packet: &Packet) -> u32 {
        let before = if packet.datagram().is_some() { self.plan.flows.len() as u32 } else { 0 };
        before + packet.flow
    }

    /// Sends what an end has to send, and sees when it wants to be woken.
    #[inline]
    fn pump<O: Observer>(&mut self, number: u32, end: usize, now: Time, observer: &mut O) {
        loop {
            let Some(connection) = &mut self.flows[number as usize].connection else { return };
            let endpoint = &mut connection.ends[end];
            let before = if O::DETAILED { endpoint.counters().segments_retransmitted } else { 0 };
            let Some(segment) = endpoint.poll_transmit(now) else { break };
            let capable = endpoint.ecn_capable();
            let (at, serial, dscp) = (connection.routes[end], connection.number as u16, connection.dscp);
            if O::DETAILED {
                use EventKind::{Ack, Retransmit, Send};
                let again = endpoint.counters().segments_retransmitted > before;
                let kind = match (segment.len > 0, again) {
                    (false, _) => Ack,
                    (true, false) => Send,
                    (true, true) => Retransmit,
                };
                observer.event(self, now, Event { kind, flow: number, link: None, segment: Some(&segment) });
            }
            let packet = Packet::new(segment, number, serial, at, end == RECEIVER, capable).with_dscp(dscp);
            self.send(self.hops[at as usize], packet, now, observer);
        }
        if end == SENDER && self.watch(number, now, observer) {
            return;
        }
        let Some(connection) = &mut self.flows[number as usize].connection else { return };
        // Timers are lazy: one that moved back stays, fires early, and finds its new time then.
        let due = connection.due(end);
        if due < connection.wakes[end] {
            connection.wakes[end] = due;
            self.timers.schedule(self.streams.len() + 2 * number as usize + end, due);
        }
    }

    /// Notices that a window was reduced, that a transfer has ended, or that a connection is closed; in the last case there is
    /// nothing left to do for it.
    #[inline]
    fn watch<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) -> bool {
        let Some(connection) = &mut self.flows[number as usize].connection else { return true };
        let sender = &connection.ends[SENDER];
        let ends = sender.is_finished();
        let reductions = sender.counters().reductions;
        if reductions > connection.reductions {
            connection.reductions = reductions;
            observer.congestion(number, now);
            if O::DETAILED {
                let kind = EventKind::Congestion;
                observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
            }
        }
        ends && self.finish(number, now, observer)
    }

    /// A timer of an end, or the start of a flow.
    fn wake<O: Observer>(&mut self, timer: usize, now: Time, observer: &mut O) {
        let (number, end) = (timer / 2, timer % 2);
        let source = self.streams.len() + timer;
        self.timers.schedule(source, Time::MAX);
        let flow = &mut self.flows[number];
        let Some(connection) = &mut flow.connection else {
            if flow.opened == 0 {
                self.open(number as u32, now, observer);
            }
            return;
        };
        connection.wakes[end] = Time::MAX;
        if end == SENDER && connection.stop <= now {
            connection.stop = Time::MAX;
            connection.ends[SENDER].stop();
        } else {
            let due = connection.due(end);
            if due > now {
                connection.wakes[end] = due;
                self.timers.schedule(source, due);
                return;
            }
        }
        let endpoint = &mut connection.ends[end];
        let timeouts = endpoint.counters().timeouts;
        endpoint.on_timer(now);
        if O::DETAILED && endpoint.counters().timeouts > timeouts {
            let kind = EventKind::Timeout;
            observer.event(self, now, Event { kind, flow: number as u32, link: None, segment: None });
        }
        self.pump(number as u32, end, now, observer);
    }

    /// Opens the flow's next connection.
    fn open<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) {
        let flow = &self.plan.flows[number as usize];
        let running = &mut self.flows[number as usize];
        let routes = [flow.forward, flow.reverse].map(|route| self.routes[route as usize]);
        let connection = Connection::new(flow, number, running.opened, routes, self.plan.seed, now);
        running.connection = Some(Box::new(connection));
        running.opened += 1;
        observer.started(number, now);
        if O::DETAILED {
            let kind = EventKind::Start;
            observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
        }
        self.pump(number, SENDER, now, observer);
    }

    /// All that a connection's sender wrote is acknowledged. When the other end has closed too, the flow's next connection may
    /// follow; says whether it has.
    fn finish<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) -> bool {
        let flow = &self.plan.flows[number as usize];
        let running = &mut self.flows[number as usize];
        let Some(connection) = &mut running.connection else { return true };
        let closed = connection.ends[SENDER].peer_is_finished();
        if !connection.is_finished {
            connection.is_finished = true;
            if let Demand::Transfers { size, .. } = flow.demand {
                observer.finished(number, connection.number, size.get(), connection.opened_at, now);
            }
            if O::DETAILED {
                let kind = EventKind::Finish;
                observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
            }
        }
        if closed {
            let running = &mut self.flows[number as usize];
            running.before = running.counters();
            running.connection = None;
            for end in [SENDER, RECEIVER] {
                self.timers.schedule(self.streams.len() + 2 * number as usize + end, Time::MAX);
            }
            if let Demand::Transfers { count, .. } = flow.demand
                && count.is_none_or(|count| running.opened < count)
                && flow.stop.is_none_or(|stop| now < stop)
            {
                self.open(number, now, observer);
            }
        }
        closed
    }
}

impl Running {
    /// Everything that the flow's connections counted; `bytes_delivered` is the receivers'.
    pub fn counters(&self) -> Counters {
        let mut sum = self.before;
        if let Some(connection) = &self.connection {
            let now = connection.ends[SENDER].counters();
            sum.segments_sent += now.segments_sent;
            sum.bytes_sent += now.bytes_sent;
            sum.segments_retransmitted += now.segments_retransmitted;
            sum.bytes_retransmitted += now.bytes_retransmitted;
            sum.bytes_acked += now.bytes_acked;
            sum.loss_events += now.loss_events;
            sum.ecn_events += now.ecn_events;
            sum.timeouts += now.timeouts;
            sum.reductions += now.reductions;
            sum.undos += now.undos;
            sum.bytes_delivered += connection.ends[RECEIVER].counters().bytes_delivered;
        }
        sum
    }

    /// The transfer that is not finished: its number, its size, and when it began.
    pub fn unfinished(&self, flow: &Flow) -> Option<(u64, u64, Time)> {
        match (flow.demand, &self.connection) {
            (Demand::Transfers { size, .. }, Some(connection)) if !connection.is_finished => {
                Some((connection.number, size.get(), connection.opened_at))
            }
            _ => None,
        }
    }

    /// The sender of the present connection.
    pub fn sender(&self) -> Option<&Endpoint> {
        self.connection.as_ref().map(|connection| &connection.ends[SENDER])
    }
}
