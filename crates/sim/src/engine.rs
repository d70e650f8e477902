//! Virtual time: links, connections, and what happens next.

use elephan_cc::{Controller, registry, slow_start};
use elephan_net::Link;
use elephan_scenario::plan::{Cc, Flow, Plan, Setting};
use elephan_tcp::{Counters, Endpoint, Segment};
use elephan_traffic::Demand;
use elephan_units::Time;
use rand::RngExt;

use crate::events::Events;
use crate::packet::Packet;
use crate::trace::EventKind;

/// What an engine tells of what it does. All methods are called at the moment they speak of.
pub trait Observer {
    /// Whether [`Observer::event`] is to be called.
    const EVENTS: bool;

    /// A packet, a window or a connection did something.
    fn event(&mut self, engine: &Engine<'_>, now: Time, event: Event<'_>);
    /// A flow's window was reduced.
    fn congestion(&mut self, flow: u32, now: Time);
    /// A flow opened a connection.
    fn started(&mut self, flow: u32, now: Time);
    /// A transfer of a flow ended.
    fn finished(&mut self, flow: u32, transfer: u64, bytes: u64, started: Time, now: Time);
    /// A packet begins to cross a link.
    fn crosses(&mut self, link: u32, packet: &Packet, now: Time);
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
    /// Sender and receiver of the present connection.
    pub ends: Option<Box<[Endpoint; 2]>>,
    /// What its connections before the present one counted: at the sender, and delivered at the receiver.
    before: Counters,
    /// Connections opened so far.
    connections: u64,
    started: Time,
    /// Reductions seen so far of the present connection.
    reductions: u64,
    starts_at: Time,
}

/// Everything that a run consists of.
pub struct Engine<'a> {
    plan: &'a Plan,
    /// The links, by number.
    pub links: Vec<Link<Packet>>,
    /// The flows, by number.
    pub flows: Vec<Running>,
    events: Events,
    /// Events handled.
    pub handled: u64,
}

/// Which end of a connection.
const SENDER: usize = 0;
const RECEIVER: usize = 1;

impl<'a> Engine<'a> {
    /// An engine at time zero.
    pub fn new(plan: &'a Plan) -> Self {
        let links: Vec<_> = plan
            .links
            .iter()
            .enumerate()
            .map(|(i, link)| Link::new(link.config, plan.seed, i as u64))
            .collect();
        let mut events = Events::new(links.len() + 2 * plan.flows.len() + 1);
        let mut flows = Vec::with_capacity(plan.flows.len());
        for (number, flow) in plan.flows.iter().enumerate() {
            let starts_at = flow.start.draw(plan.seed, number as u64);
            flows.push(Running {
                ends: None,
                before: Counters::default(),
                connections: 0,
                started: Time::ZERO,
                reductions: 0,
                starts_at,
            });
            events.schedule(links.len() + 2 * number, starts_at);
        }
        Self { plan, links, flows, events, handled: 0 }
    }

    /// Runs to the end of the plan.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<(), crate::Error> {
        let ticker = self.links.len() + 2 * self.flows.len();
        self.events.schedule(ticker, observer.next_tick());
        loop {
            let (now, source) = self.events.next();
            if now > self.plan.duration {
                return Ok(());
            }
            self.handled += 1;
            if source < self.links.len() {
                self.arrive(source, now, observer);
            } else if source < ticker {
                self.wake(source - self.links.len(), now, observer);
            } else {
                observer.tick(self, now)?;
                self.events.schedule(ticker, observer.next_tick());
            }
        }
    }

    /// Packets reach the far end of a link.
    #[inline]
    fn arrive<O: Observer>(&mut self, link: usize, now: Time, observer: &mut O) {
        while let Some(mut packet) = self.links[link].receive(now) {
            let flow = &self.plan.flows[packet.flow as usize];
            let route = if packet.backward { flow.reverse } else { flow.forward };
            let route = &self.plan.routes[route as usize];
            packet.hop += 1;
            match route.get(usize::from(packet.hop)) {
                Some(&next) => self.send(next, packet, now, observer),
                None => self.deliver(&packet, now, observer),
            }
        }
        let next = self.links[link].next_arrival();
        self.events.schedule(link, next);
    }

    /// A packet comes to a link.
    #[inline]
    fn send<O: Observer>(&mut self, number: u32, packet: Packet, now: Time, observer: &mut O) {
        let link = &mut self.links[number as usize];
        if link.send(packet, now) {
            observer.crosses(number, &packet, now);
            let next = link.next_arrival();
            if next < self.events.time_of(number as usize) {
                self.events.schedule(number as usize, next);
            }
        } else if O::EVENTS {
            observer.event(
                self,
                now,
                Event {
                    kind: EventKind::Drop,
                    flow: packet.flow,
                    link: Some(number),
                    segment: Some(&packet.segment),
                },
            );
        }
    }

    /// A packet reaches the end of its route.
    #[inline]
    fn deliver<O: Observer>(&mut self, packet: &Packet, now: Time, observer: &mut O) {
        let flow = &mut self.flows[packet.flow as usize];
        // A packet of a connection that has ended finds nobody; its successor has other ports.
        if packet.connection != flow.connections as u16 {
            return;
        }
        let Some(ends) = &mut flow.ends else { return };
        let end = if packet.backward { SENDER } else { RECEIVER };
        ends[end].on_segment(&packet.segment, packet.is_marked(), now);
        if O::EVENTS {
            let kind = EventKind::Receive;
            let segment = Some(&packet.segment);
            observer.event(self, now, Event { kind, flow: packet.flow, link: None, segment });
        }
        self.pump(packet.flow, end, now, observer);
    }

    /// Sends what an end has to send, and sees when it wants to be woken.
    fn pump<O: Observer>(&mut self, number: u32, end: usize, now: Time, observer: &mut O) {
        let plan = self.plan;
        let flow = &plan.flows[number as usize];
        let route = if end == SENDER { flow.forward } else { flow.reverse };
        let first = plan.routes[route as usize][0];
        loop {
            let running = &mut self.flows[number as usize];
            let connection = running.connections as u16;
            let Some(ends) = &mut running.ends else { return };
            let endpoint = &mut ends[end];
            let before = if O::EVENTS { endpoint.counters().segments_retransmitted } else { 0 };
            let Some(segment) = endpoint.poll_transmit(now) else { break };
            let capable = endpoint.ecn_capable();
            if O::EVENTS {
                use EventKind::{Ack, Retransmit, Send};
                let again = endpoint.counters().segments_retransmitted > before;
                let kind = match (segment.len > 0, again) {
                    (false, _) => Ack,
                    (true, false) => Send,
                    (true, true) => Retransmit,
                };
                observer.event(self, now, Event { kind, flow: number, link: None, segment: Some(&segment) });
            }
            self.send(
                first,
                Packet::new(segment, number, connection, end == RECEIVER, capable),
                now,
                observer,
            );
        }
        if end == SENDER {
            self.watch(number, now, observer);
        } else if let Some(ends) = &mut self.flows[number as usize].ends
            && ends[RECEIVER].peer_is_finished()
            && !ends[RECEIVER].is_closed()
        {
            ends[RECEIVER].close();
            return self.pump(number, end, now, observer);
        }
        let source = self.links.len() + 2 * number as usize + end;
        let wake = self.due(number as usize, end);
        // Timers are lazy: one that moved back stays, fires early, and finds its new time then.
        if wake < self.events.time_of(source) {
            self.events.schedule(source, wake);
        }
    }

    /// Notices that a window was reduced, or a transfer has ended.
    #[inline]
    fn watch<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) {
        let running = &mut self.flows[number as usize];
        let Some(ends) = &running.ends else { return };
        let reductions = ends[SENDER].counters().reductions;
        if reductions > running.reductions {
            running.reductions = reductions;
            observer.congestion(number, now);
            if O::EVENTS {
                let kind = EventKind::Congestion;
                observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
            }
        }
        if self.flows[number as usize].ends.as_ref().is_some_and(|ends| ends[SENDER].is_finished()) {
            self.finish(number, now, observer);
        }
    }

    /// When an end wants to be woken: by its own timers, or because the flow stops.
    #[inline]
    fn due(&self, number: usize, end: usize) -> Time {
        let Some(ends) = &self.flows[number].ends else { return Time::MAX };
        let timeout = ends[end].poll_timeout();
        match self.plan.flows[number].stop {
            Some(stop) if end == SENDER && !ends[SENDER].is_closed() => timeout.min(stop),
            _ => timeout,
        }
    }

    /// A timer of an end, or the start of a flow.
    fn wake<O: Observer>(&mut self, timer: usize, now: Time, observer: &mut O) {
        let (number, end) = (timer / 2, timer % 2);
        let source = self.links.len() + timer;
        let flow = &mut self.flows[number];
        self.events.schedule(source, Time::MAX);
        let Some(ends) = &mut flow.ends else {
            if end == SENDER && now == flow.starts_at {
                self.open(number as u32, now, observer);
            }
            return;
        };
        if end == SENDER
            && self.plan.flows[number].stop.is_some_and(|stop| stop <= now)
            && !ends[SENDER].is_closed()
        {
            ends[SENDER].stop();
        }
        let due = ends[end].poll_timeout();
        if due > now && !(end == SENDER && ends[SENDER].is_closed()) {
            let due = self.due(number, end);
            self.events.schedule(source, due);
            return;
        }
        let timeouts = ends[end].counters().timeouts;
        ends[end].on_timer(now);
        if O::EVENTS && ends[end].counters().timeouts > timeouts {
            let kind = EventKind::Timeout;
            observer.event(self, now, Event { kind, flow: number as u32, link: None, segment: None });
        }
        self.pump(number as u32, end, now, observer);
    }

    /// Opens the flow's next connection.
    fn open<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) {
        let flow = &self.plan.flows[number as usize];
        let running = &mut self.flows[number as usize];
        let mut stream =
            self.plan.seed.stream("initial sequence number", u64::from(number) << 32 | running.connections);
        let mut sender = Endpoint::connect(&flow.tcp, controller(flow), stream.random());
        let receiver = Endpoint::listen(&flow.tcp, controller(flow), stream.random());
        match flow.demand {
            Demand::Unlimited => sender.write(u64::MAX),
            Demand::Transfers { size, .. } => {
                sender.write(size.get());
                sender.close();
            }
        }
        running.ends = Some(Box::new([sender, receiver]));
        running.connections += 1;
        running.started = now;
        running.reductions = 0;
        observer.started(number, now);
        if O::EVENTS {
            let kind = EventKind::Start;
            observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
        }
        self.pump(number, SENDER, now, observer);
    }

    /// The flow's connection has done its work; the next one may follow.
    fn finish<O: Observer>(&mut self, number: u32, now: Time, observer: &mut O) {
        if O::EVENTS {
            let kind = EventKind::Finish;
            observer.event(self, now, Event { kind, flow: number, link: None, segment: None });
        }
        let running = &mut self.flows[number as usize];
        running.before = running.counters();
        running.ends = None;
        let (transfer, started) = (running.connections - 1, running.started);
        let again = match self.plan.flows[number as usize].demand {
            Demand::Unlimited => false,
            Demand::Transfers { size, count } => {
                observer.finished(number, transfer, size.get(), started, now);
                count.is_none_or(|count| running.connections < count)
            }
        };
        if again && self.plan.flows[number as usize].stop.is_none_or(|stop| now < stop) {
            self.open(number, now, observer);
        }
    }
}

impl Running {
    /// Everything that the flow's connections counted; `bytes_delivered` is the receivers'.
    pub fn counters(&self) -> Counters {
        let mut sum = self.before;
        if let Some(ends) = &self.ends {
            let now = ends[SENDER].counters();
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
            sum.bytes_delivered += ends[RECEIVER].counters().bytes_delivered;
        }
        sum
    }

    /// The transfer that is not finished: its number, its size, and when it began.
    pub fn unfinished(&self, flow: &Flow) -> Option<(u64, u64, Time)> {
        match flow.demand {
            Demand::Transfers { size, .. } if self.ends.is_some() => {
                Some((self.connections - 1, size.get(), self.started))
            }
            _ => None,
        }
    }

    /// The sender of the present connection.
    pub fn sender(&self) -> Option<&Endpoint> {
        self.ends.as_ref().map(|ends| &ends[SENDER])
    }
}

fn controller(flow: &Flow) -> Controller {
    let algorithm = registry::find(&flow.cc.name)
        .and_then(|entry| entry.build(&settings(&flow.cc)).ok())
        .expect("a plan names known algorithms with settings in range");
    let start = slow_start::find(&flow.slow_start.name)
        .and_then(|entry| entry.build(&settings(&flow.slow_start)).ok())
        .expect("a plan names known slow starts with settings in range");
    Controller::new(algorithm, start, flow.tcp.quantisation, f64::from(flow.tcp.initial_window))
}

fn settings(cc: &Cc) -> Vec<(&str, elephan_cc::parameter::Value<'_>)> {
    use elephan_cc::parameter::Value;
    let value = |setting: &'_ Setting| match setting {
        Setting::Number(number) => Value::Number(*number),
        Setting::Flag(flag) => Value::Flag(*flag),
        Setting::Word(_) => Value::Flag(false),
    };
    cc.settings
        .iter()
        .map(|(name, setting)| {
            let value = if let Setting::Word(word) = setting { Value::Word(word) } else { value(setting) };
            (name.as_str(), value)
        })
        .collect()
}
