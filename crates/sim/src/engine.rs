//! Virtual time: links, connections, and what happens next.

use elephan_metrics::trace::EventKind;
use elephan_net::Link;
use elephan_scenario::plan::{Flow, Plan};
use elephan_tcp::{Counters, Endpoint, Segment};
use elephan_traffic::Demand;
use elephan_units::Time;

use crate::connection::{Connection, RECEIVER, SENDER};
use crate::crowd::{Crowd, Page};
use crate::events::Events;
use crate::host::Host;
use crate::links;
use crate::packet::{Datagram, Packet};
use crate::standstill::Standstill;
use crate::stream::Stream;

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
    fn finished(&mut self, flow: u32, connection: &Connection, now: Time);
    /// A transfer of a crowd ended, and with it perhaps a page.
    fn crowd_finished(&mut self, crowd: u32, connection: &Connection, page: Option<Page>, now: Time);
    /// The time that [`Observer::next_tick`] named has come.
    fn tick(&mut self, engine: &mut Engine<'_>, now: Time) -> Result<(), crate::Error>;
    /// When the observer next wants to look; `Time::MAX` for never.
    fn next_tick(&self) -> Time;
    /// Whether the run is to end at once.
    fn is_cancelled(&self) -> bool;
}

/// The engine looks whether it is cancelled after so many steps: well below a millisecond.
const STEPS_BETWEEN_LOOKS: u32 = 1024;

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

/// Whose a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// A flow of the plan, whose number is the slot's.
    Flow,
    /// A user of a crowd.
    User { crowd: u32, user: u32 },
    /// A crowd whose flows arrive by themselves.
    Arrival { crowd: u32 },
}

/// A slot for one connection at a time: of a flow, of a user, or of flows that arrive by themselves, one after the other.
pub struct Running {
    owner: Owner,
    /// The present connection.
    pub connection: Option<Box<Connection>>,
    /// What its connections before the present one counted: at the sender, and delivered at the receiver.
    before: Counters,
    /// Connections opened so far.
    opened: u64,
}

/// Everything that a run consists of.
///
/// Of simultaneous events those of links come first, by number; then those of streams of datagrams, and arrivals of flows; then those
/// of connections, whose two ends have an event each; then changes of links; and last the observer, who so sees
/// what the others left behind.
pub struct Engine<'a> {
    plan: &'a Plan,
    /// The links, by number.
    pub links: Vec<Link<Packet>>,
    /// All routes, one after the other, each with an [`END`].
    hops: Vec<u32>,
    /// Where each route of the plan begins in `hops`.
    routes: Vec<u32>,
    /// Slots for connections: first one for each flow, by number, then one for each user, then those that arriving flows need.
    slots: Vec<Running>,
    /// The crowds, by number.
    pub crowds: Vec<Crowd>,
    /// The hosts of flows, by number of the flow, where sending costs something.
    pub hosts: Vec<Option<Box<Host>>>,
    /// The streams of datagrams, by number.
    pub streams: Vec<Stream>,
    /// Apart from the other events: they are the most by far, and their sources few.
    arrivals: Events,
    /// First the streams, by number; then the crowds, whose event is an arrival; then the hosts; then twice the slot's number, and
    /// [`SENDER`], whose event also is the start of a connection, or [`RECEIVER`].
    timers: Events,
    /// Where the slots begin among these.
    first_slot: usize,
    /// Changes of the plan that have happened.
    changed: usize,
    /// Events handled.
    pub handled: u64,
    /// Steps until the engine looks whether it is to stop: events handled, and packets given to links. Whatever goes on without
    /// end takes steps. Counted down, which costs the least; an event may take more than are left.
    steps_left: i64,
    /// What it was when the engine last looked.
    steps_granted: i64,
    standstill: Standstill,
    /// Why it stops; none while it goes on.
    stopped: Option<crate::Error>,
}

/// Who takes a step.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A link.
    Link(usize),
    /// A stream of datagrams.
    Stream(u32),
    /// A crowd, whose flows arrive.
    Crowd(usize),
    /// The flow of a slot.
    Slot(u32),
    /// The observer.
    Observer,
}

impl Source {
    /// Who sent a packet.
    fn of(packet: &Packet) -> Self {
        if packet.datagram().is_some() { Self::Stream(packet.flow) } else { Self::Slot(packet.flow) }
    }
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
        let host = |flow: &Flow| flow.host.map(|costs| Box::new(Host::new(costs)));
        let costs_something = plan.flows.iter().any(|flow| flow.host.is_some());
        let hosts: Vec<_> = if costs_something { plan.flows.iter().map(host).collect() } else { Vec::new() };
        let first_slot = streams.len() + plan.crowds.len() + hosts.len();
        let arrivals = Events::new(links.len());
        let timers = Events::new(first_slot);
        let (slots, crowds) = (Vec::with_capacity(plan.flows.len()), Vec::new());
        let mut engine = Self {
            plan,
            links,
            hops,
            routes,
            slots,
            crowds,
            hosts,
            streams,
            arrivals,
            timers,
            first_slot,
            changed: 0,
            handled: 0,
            steps_left: STEPS_BETWEEN_LOOKS.into(),
            steps_granted: STEPS_BETWEEN_LOOKS.into(),
            standstill: Standstill::default(),
            stopped: None,
        };
        engine.populate();
        engine
    }

    /// Gives everybody a slot, and the time of the first thing that they do.
    fn populate(&mut self) {
        let plan = self.plan;
        for (number, stream) in self.streams.iter().enumerate() {
            self.timers.schedule(number, stream.next());
        }
        for (number, flow) in plan.flows.iter().enumerate() {
            self.add_slot(Owner::Flow, flow.start.draw(plan.seed, number as u64));
        }
        let mut users = 0;
        for (number, crowd) in (0u32..).zip(&plan.crowds) {
            let made = Crowd::new(crowd, plan.seed, u64::from(number), self.slots.len() as u32, users);
            for user in 0..made.users.len() as u32 {
                let start =
                    crowd.flow.start.draw_for("start of web user", plan.seed, users + u64::from(user));
                self.add_slot(Owner::User { crowd: number, user }, start);
            }
            users += made.users.len() as u64;
            self.timers.schedule(self.streams.len() + number as usize, made.next());
            self.crowds.push(made);
        }
    }

    /// Adds a slot whose first connection begins at `start`; its number.
    fn add_slot(&mut self, owner: Owner, start: Time) -> u32 {
        self.slots.push(Running { owner, connection: None, before: Counters::default(), opened: 0 });
        let timer = self.timers.add();
        self.timers.add();
        self.timers.schedule(timer + SENDER, start);
        self.slots.len() as u32 - 1
    }

    /// The flows of the plan, by number.
    pub fn flows(&self) -> &[Running] {
        &self.slots[..self.plan.flows.len()]
    }

    /// The slots of a crowd.
    pub fn slots_of(&self, crowd: &Crowd) -> impl Iterator<Item = &Running> {
        crowd.slots.iter().map(|&slot| &self.slots[slot as usize])
    }

    /// What the plan says of the flows of a slot.
    fn plan_of(&self, slot: u32) -> &'a Flow {
        match self.slots[slot as usize].owner {
            Owner::Flow => &self.plan.flows[slot as usize],
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => &self.plan.crowds[crowd as usize].flow,
        }
    }

    /// Runs to the end of the plan.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), crate::Error> {
        if O::DETAILED {
            self.links.iter_mut().for_each(Link::keep_drops);
        }
        let mut tick = observer.next_tick().min(self.next_change());
        loop {
            let (arrival, link) = self.arrivals.next();
            let (timer, end) = self.timers.next();
            let now = arrival.min(timer).min(tick);
            if now > self.plan.duration {
                return Ok(());
            }
            self.handled += 1;
            self.steps_left -= 1;
            if self.steps_left <= 0 {
                self.look(|engine| engine.source_of(link, arrival, end, timer, now), now, observer)?;
            }
            if arrival <= timer && arrival <= tick {
                self.arrive(link, arrival, observer);
            } else if timer <= tick {
                match end.checked_sub(self.first_slot) {
                    Some(end) => self.wake(end, timer, observer),
                    None if end < self.streams.len() => self.emit(end, timer, observer),
                    None => match (end - self.streams.len()).checked_sub(self.crowds.len()) {
                        Some(host) => self.pump(host as u32, SENDER, timer, observer),
                        None => self.arrival(end - self.streams.len(), timer, observer),
                    },
                }
            } else {
                self.change(tick, observer);
                if observer.next_tick() <= tick {
                    observer.tick(self, tick)?;
                }
                tick = observer.next_tick().min(self.next_change());
            }
        }
    }

    /// Sees whether the run is cancelled, and whether time advances.
    #[cold]
    fn look<O: Observer>(
        &mut self,
        source: impl FnOnce(&Self) -> Source,
        now: Time,
        observer: &O,
    ) -> Result<(), crate::Error> {
        if let Some(error) = self.stopped.take() {
            return Err(error);
        }
        if observer.is_cancelled() {
            return Err(crate::Error::Cancelled);
        }
        let mut standstill = std::mem::take(&mut self.standstill);
        let steps = (self.steps_granted - self.steps_left) as u64;
        let look_soon = standstill.look(steps, now, || self.name_of(source(self)))?;
        self.standstill = standstill;
        self.steps_granted = if look_soon { 1 } else { STEPS_BETWEEN_LOOKS.into() };
        self.steps_left = self.steps_granted;
        Ok(())
    }

    /// Whether a loop within an event is to be left, because the run stops: asked when no steps are left.
    #[cold]
    fn stops<O: Observer>(&mut self, source: Source, now: Time, observer: &O) -> bool {
        // No steps are granted then: whoever is next to look is told too.
        self.stopped = self.look(|_| source, now, observer).err();
        self.stopped.is_some()
    }

    /// Whose the event at `now` is, of the earliest arrival and the earliest timer.
    fn source_of(&self, link: usize, arrival: Time, end: usize, timer: Time, now: Time) -> Source {
        if arrival <= now {
            return Source::Link(link);
        }
        if timer > now {
            return Source::Observer;
        }
        let (streams, crowds) = (self.streams.len(), self.crowds.len());
        match end.checked_sub(self.first_slot) {
            Some(end) => Source::Slot((end / 2) as u32),
            None if end < streams => Source::Stream(end as u32),
            None if end < streams + crowds => Source::Crowd(end - streams),
            None => Source::Slot((end - streams - crowds) as u32),
        }
    }

    fn name_of(&self, source: Source) -> String {
        let plan = self.plan;
        match source {
            Source::Link(link) => format!("link {:?}", plan.links[link].name),
            Source::Stream(stream) => format!("stream {:?}", plan.streams[stream as usize].label),
            Source::Crowd(crowd) => format!("arrivals {:?}", plan.crowds[crowd].flow.label),
            Source::Slot(slot) => format!("flow {:?}", self.plan_of(slot).label),
            Source::Observer => "samples".to_owned(),
        }
    }

    /// When the next change of the plan happens; `Time::MAX` for never.
    fn next_change(&self) -> Time {
        self.plan.changes.get(self.changed).map_or(Time::MAX, |change| change.at)
    }

    /// Links change, where it is time.
    fn change<O: Observer>(&mut self, now: Time, observer: &mut O) {
        while let Some(change) = self.plan.changes.get(self.changed).filter(|change| change.at <= now) {
            self.changed += 1;
            let link = &mut self.links[change.link as usize];
            links::apply(change, link, now);
            let next = link.next_event();
            self.arrivals.schedule(change.link as usize, next);
            self.tell_drops(change.link, observer);
        }
    }

    /// Tells of packets that a link dropped after it had accepted them.
    fn tell_drops<O: Observer>(&mut self, number: u32, observer: &mut O) {
        if !O::DETAILED {
            return;
        }
        for (at, packet) in self.links[number as usize].drops() {
            let (kind, segment) = (EventKind::Drop, Some(&packet.segment));
            let flow = self.number_of(&packet);
            observer.event(self, at, Event { kind, flow, link: Some(number), segment });
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
            // Bound by reference, here and where a segment is sent: a move is a copy of all its bytes.
            let received = link.receive(now);
            self.tell_drops(number as u32, observer);
            let Some(packet) = &received else { continue };
            match self.hops[packet.at as usize + 1] {
                END => self.deliver(packet, now, observer),
                next => self.send(next, &packet.onward(), now, observer),
            }
            if self.steps_left <= 0 && self.stops(Source::of(packet), now, observer) {
                return;
            }
        };
        self.arrivals.schedule(number, next);
    }

    /// A packet comes to a link.
    #[inline]
    fn send<O: Observer>(&mut self, number: u32, packet: &Packet, now: Time, observer: &mut O) {
        self.steps_left -= 1;
        let link = &mut self.links[number as usize];
        let was_idle = link.is_idle();
        if link.send(*packet, now) {
            if was_idle {
                let next = link.next_event();
                self.arrivals.schedule(number as usize, next);
            }
            if O::DETAILED {
                observer.crosses(number, packet, now);
            }
        } else if O::DETAILED {
            let (kind, segment) = (EventKind::Drop, Some(&packet.segment));
            let flow = self.number_of(packet);
            observer.event(self, now, Event { kind, flow, link: Some(number), segment });
        }
        self.tell_drops(number, observer);
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
        let connection = match &mut self.slots[packet.flow as usize].connection {
            Some(connection) if connection.number as u16 == packet.connection => connection,
            _ => return,
        };
        let end = if packet.is_backward() { SENDER } else { RECEIVER };
        if end == SENDER
            && let Some(Some(host)) = self.hosts.get_mut(packet.flow as usize)
        {
            if !host.admit(*packet) && O::DETAILED {
                self.tell(EventKind::Drop, packet.flow, Some(&packet.segment), now, observer);
            }
        } else {
            connection.receive(end, &packet.segment, packet.is_marked(), now);
            if O::DETAILED {
                self.tell(EventKind::Receive, packet.flow, Some(&packet.segment), now, observer);
            }
        }
        self.pump(packet.flow, end, now, observer);
    }

    /// A stream sends its next datagram.
    fn emit<O: Observer>(&mut self, number: usize, now: Time, observer: &mut O) {
        let stream = &mut self.streams[number];
        let plan = &self.plan.streams[number];
        let sent = stream.send(now);
        self.timers.schedule(number, stream.next());
        let Some(sent) = sent else { return };
        let datagram = Datagram { number: sent, sent_at: now };
        let at = self.routes[plan.forward as usize];
        let packet =
            Packet::of_datagram(datagram, plan.datagrams.packet, number as u32, at).with_dscp(plan.dscp);
        if O::DETAILED {
            let (kind, segment) = (EventKind::Send, Some(&packet.segment));
            let flow = self.number_of(&packet);
            observer.event(self, now, Event { kind, flow, link: None, segment });
        }
        self.send(self.hops[at as usize], &packet, now, observer);
    }

    /// Whose a packet is, as traces number it: flows, then crowds, then streams.
    fn number_of(&self, packet: &Packet) -> u32 {
        if packet.datagram().is_some() {
            return (self.plan.flows.len() + self.plan.crowds.len()) as u32 + packet.flow;
        }
        self.number_of_slot(packet.flow)
    }

    fn number_of_slot(&self, slot: u32) -> u32 {
        match self.slots[slot as usize].owner {
            Owner::Flow => slot,
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => self.plan.flows.len() as u32 + crowd,
        }
    }

    /// A flow arrives by itself.
    fn arrival<O: Observer>(&mut self, number: usize, now: Time, observer: &mut O) {
        let crowd = &mut self.crowds[number];
        let size = crowd.arrive();
        self.timers.schedule(self.streams.len() + number, crowd.next());
        let idle = crowd.idle.pop();
        let slot = idle.unwrap_or_else(|| {
            let slot = self.add_slot(Owner::Arrival { crowd: number as u32 }, Time::MAX);
            self.crowds[number].slots.push(slot);
            slot
        });
        self.open(slot, Some(size), now, observer);
    }

    /// Lets an end send what it has to send, and sees when it wants to be woken.
    #[inline]
    fn pump<O: Observer>(&mut self, number: u32, end: usize, now: Time, observer: &mut O) {
        if end == SENDER && matches!(self.hosts.get(number as usize), Some(Some(_))) {
            self.work(number, now, observer);
        } else {
            while self.transmit(number, end, now, observer) {
                if self.steps_left <= 0 && self.stops(Source::Slot(number), now, observer) {
                    break;
                }
            }
        }
        if end == SENDER && self.watch(number, now, observer) {
            return;
        }
        let Some(connection) = &mut self.slots[number as usize].connection else { return };
        // Timers are lazy: one that moved back stays, fires early, and finds its new time then.
        let due = connection.due(end);
        if due < connection.wakes[end] {
            // What a busy host did not let go is past its time.
            let due = due.max(now);
            connection.wakes[end] = due;
            self.timers.schedule(self.first_slot + 2 * number as usize + end, due);
        }
    }

    /// Sends the next segment of an end; false where there is none.
    #[inline]
    fn transmit<O: Observer>(&mut self, number: u32, end: usize, now: Time, observer: &mut O) -> bool {
        let Some(connection) = &mut self.slots[number as usize].connection else { return false };
        let endpoint = &mut connection.ends[end];
        let before = if O::DETAILED { endpoint.counters().segments_retransmitted } else { 0 };
        let polled = endpoint.poll_transmit(now);
        let Some(segment) = &polled else { return false };
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
            self.tell(kind, number, Some(segment), now, observer);
        }
        let packet = Packet::new(segment, number, serial, at, end == RECEIVER, capable).with_dscp(dscp);
        self.send(self.hops[at as usize], &packet, now, observer);
        true
    }

    /// The processor of a sending host, one thing at a time: a packet that it has looked at takes effect; then what may be sent is
    /// sent; then comes the next packet of the backlog.
    fn work<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) {
        let slot = number as usize;
        while let Some(Some(host)) = self.hosts.get_mut(slot)
            && host.is_free(now)
            && let Some(connection) = &mut self.slots[slot].connection
        {
            if let Some(packet) = host.processed()
                && connection.number as u16 == packet.connection
            {
                connection.receive(SENDER, &packet.segment, packet.is_marked(), now);
                if O::DETAILED {
                    self.tell(EventKind::Receive, number, Some(&packet.segment), now, observer);
                }
            }
            if self.device_has_room(slot, now) && self.transmit(number, SENDER, now, observer) {
                self.hosts[slot].iter_mut().for_each(|host| host.sent(now));
                if self.steps_left <= 0 && self.stops(Source::Slot(number), now, observer) {
                    return;
                }
                continue;
            }
            let sender = self.slots[slot].sender();
            let walk = |segment: &Segment| sender.map_or((0, 0), |sender| sender.sack_walk(segment));
            if !self.hosts[slot].as_mut().is_some_and(|host| host.take(walk, now)) {
                break;
            }
        }
        let next = self.hosts[slot].as_ref().map_or(Time::MAX, |host| host.next(now));
        self.timers.schedule(self.streams.len() + self.crowds.len() + slot, next);
    }

    /// Whether the device's queue has room for what a sender would send. Where it has none, the sender is told.
    fn device_has_room(&mut self, slot: usize, now: Time) -> bool {
        let Some(limit) = self.hosts[slot].as_ref().and_then(|host| host.device_limit()) else { return true };
        let Some(connection) = &mut self.slots[slot].connection else { return false };
        let device = self.hops[connection.routes[SENDER] as usize] as usize;
        let sender = &mut connection.ends[SENDER];
        let has_room = self.links[device].waiting(now).packets < limit;
        if !has_room && sender.would_send(now) {
            sender.on_local_congestion(now);
        }
        has_room
    }

    /// Notices that a window was reduced, that a transfer has ended, or that a connection is closed; in the last case there is
    /// nothing left to do for it.
    #[inline]
    fn watch<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) -> bool {
        let Some(connection) = &mut self.slots[number as usize].connection else { return true };
        let sender = &connection.ends[SENDER];
        let ends = sender.is_finished();
        let reductions = sender.counters().reductions;
        if reductions > connection.reductions {
            connection.reductions = reductions;
            if (number as usize) < self.plan.flows.len() {
                observer.congestion(number, now);
            }
            if O::DETAILED {
                self.tell(EventKind::Congestion, number, None, now, observer);
            }
        }
        ends && self.finish(number, now, observer)
    }

    /// A timer of an end, or the start of a flow.
    fn wake<O: Observer>(&mut self, timer: usize, now: Time, observer: &mut O) {
        let (number, end) = (timer / 2, timer % 2);
        let source = self.first_slot + timer;
        self.timers.schedule(source, Time::MAX);
        let Some(connection) = &mut self.slots[number].connection else {
            self.begin(number as u32, now, observer);
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
            self.tell(EventKind::Timeout, number as u32, None, now, observer);
        }
        self.pump(number as u32, end, now, observer);
        self.hold(number, end, now);
        self.give_up(number as u32, now, observer);
    }

    /// A sender's timer that was answered and is still due waits for its host: for the processor, whose own event comes when it is
    /// free, or for room in the queue of the device. Its later timers do not wait.
    fn hold(&mut self, slot: usize, end: usize, now: Time) {
        let (SENDER, Some(Some(host))) = (end, self.hosts.get(slot)) else { return };
        let Some(connection) = &mut self.slots[slot].connection else { return };
        if connection.wakes[SENDER] > now {
            return;
        }
        let room = if host.is_free(now) {
            let device = self.hops[connection.routes[SENDER] as usize] as usize;
            self.links[device].next_start(now)
        } else {
            Time::MAX
        };
        let next = room.min(connection.ends[SENDER].poll_timeout_after(now));
        connection.wakes[SENDER] = next;
        self.timers.schedule(self.first_slot + 2 * slot + SENDER, next);
    }

    /// A connection of a crowd whose sender gave up after too many timeouts makes room for the next.
    fn give_up<O: Observer>(&mut self, slot: u32, now: Time, observer: &mut O) {
        let running = &self.slots[slot as usize];
        let (Owner::User { crowd, .. } | Owner::Arrival { crowd }) = running.owner else { return };
        if running.sender().is_some_and(Endpoint::is_reset) {
            self.crowds[crowd as usize].failed += 1;
            self.close(slot, now, observer);
        }
    }

    /// Tells of an event of a slot.
    fn tell<O: Observer>(
        &self,
        kind: EventKind,
        slot: u32,
        segment: Option<&Segment>,
        now: Time,
        observer: &mut O,
    ) {
        observer.event(self, now, Event { kind, flow: self.number_of_slot(slot), link: None, segment });
    }

    /// The time of a slot's next connection has come.
    fn begin<O: Observer>(&mut self, slot: u32, now: Time, observer: &mut O) {
        let running = &self.slots[slot as usize];
        match running.owner {
            Owner::Flow if running.opened == 0 => {
                let size = self.plan.flows[slot as usize].demand.size();
                self.open(slot, size, now, observer);
            }
            Owner::User { crowd, user } => {
                let crowd = &mut self.crowds[crowd as usize];
                if now < crowd.stop {
                    let visitor = &mut crowd.users[user as usize];
                    visitor.asks(now);
                    let size = visitor.request.size;
                    self.open(slot, Some(size), now, observer);
                }
            }
            Owner::Flow | Owner::Arrival { .. } => {}
        }
    }

    /// Opens a slot's next connection, for a transfer of `size` or without end.
    fn open<O: Observer>(&mut self, slot: u32, size: Option<u64>, now: Time, observer: &mut O) {
        let flow = self.plan_of(slot);
        let running = &mut self.slots[slot as usize];
        let transfer = match running.owner {
            Owner::Flow => running.opened,
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => {
                let opened = &mut self.crowds[crowd as usize].opened;
                *opened += 1;
                *opened - 1
            }
        };
        let routes = [flow.forward, flow.reverse].map(|route| self.routes[route as usize]);
        let number = (slot, running.opened);
        let connection = Connection::new(flow, number, (transfer, size), routes, self.plan.seed, now);
        running.connection = Some(Box::new(connection));
        running.opened += 1;
        if running.owner == Owner::Flow {
            observer.started(slot, now);
        }
        if O::DETAILED {
            self.tell(EventKind::Start, slot, None, now, observer);
        }
        self.pump(slot, SENDER, now, observer);
    }

    /// All that a connection's sender wrote is acknowledged. When the other end has closed too, the slot's next connection may
    /// follow; says whether it has.
    fn finish<O: Observer>(&mut self, slot: u32, now: Time, observer: &mut O) -> bool {
        let running = &mut self.slots[slot as usize];
        let Some(connection) = &mut running.connection else { return true };
        let closed = connection.ends[SENDER].peer_is_finished();
        if !connection.is_finished {
            connection.is_finished = true;
            match running.owner {
                Owner::Flow if connection.size.is_some() => observer.finished(slot, connection, now),
                Owner::Flow => {}
                Owner::User { crowd: number, user } => {
                    let crowd = &mut self.crowds[number as usize];
                    crowd.finished += 1;
                    let page = crowd.users[user as usize].receives();
                    observer.crowd_finished(number, connection, page, now);
                }
                Owner::Arrival { crowd } => {
                    self.crowds[crowd as usize].finished += 1;
                    observer.crowd_finished(crowd, connection, None, now);
                }
            }
            if O::DETAILED {
                self.tell(EventKind::Finish, slot, None, now, observer);
            }
        }
        if closed {
            self.close(slot, now, observer);
        }
        closed
    }

    /// A connection is gone: what follows in its slot.
    fn close<O: Observer>(&mut self, slot: u32, now: Time, observer: &mut O) {
        let timer = self.first_slot + 2 * slot as usize;
        for end in [SENDER, RECEIVER] {
            self.timers.schedule(timer + end, Time::MAX);
        }
        let running = &mut self.slots[slot as usize];
        running.before = running.counters();
        running.connection = None;
        match running.owner {
            Owner::Flow => {
                let flow = &self.plan.flows[slot as usize];
                if let Demand::Transfers { size, count } = flow.demand
                    && count.is_none_or(|count| running.opened < count)
                    && flow.stop.is_none_or(|stop| now < stop)
                {
                    self.open(slot, Some(size.get()), now, observer);
                }
            }
            Owner::User { crowd, user } => {
                let next = self.crowds[crowd as usize].users[user as usize].turns(now);
                self.timers.schedule(timer + SENDER, next);
            }
            Owner::Arrival { crowd } => self.crowds[crowd as usize].idle.push(slot),
        }
    }
}

impl Running {
    /// Everything that the flow's connections counted; `bytes_delivered` is the receivers'.
    pub fn counters(&self) -> Counters {
        let mut sum = self.before;
        if let Some(connection) = &self.connection {
            add(&mut sum, connection.ends[SENDER].counters());
            sum.bytes_delivered += connection.ends[RECEIVER].counters().bytes_delivered;
        }
        sum
    }

    /// The connection of a transfer that is not finished.
    pub fn unfinished(&self) -> Option<&Connection> {
        self.connection.as_deref().filter(|connection| connection.size.is_some() && !connection.is_finished)
    }

    /// The sender of the present connection.
    pub fn sender(&self) -> Option<&Endpoint> {
        self.connection.as_ref().map(|connection| &connection.ends[SENDER])
    }
}

/// Adds counters up.
pub fn add(sum: &mut Counters, more: &Counters) {
    sum.segments_sent += more.segments_sent;
    sum.bytes_sent += more.bytes_sent;
    sum.segments_retransmitted += more.segments_retransmitted;
    sum.bytes_retransmitted += more.bytes_retransmitted;
    sum.bytes_acked += more.bytes_acked;
    sum.bytes_delivered += more.bytes_delivered;
    sum.loss_events += more.loss_events;
    sum.ecn_events += more.ecn_events;
    sum.stalls += more.stalls;
    sum.timeouts += more.timeouts;
    sum.reductions += more.reductions;
    sum.undos += more.undos;
}
