//! The complete state of a run, except for the observer.

pub mod connection;
pub mod crowd;
pub mod host;
pub mod slot;
pub mod stream;
pub mod timers;

use elephan_network::Network;
use elephan_scenario::plan::{Flow, Plan};
use elephan_tcp::Counters;
use elephan_units::Time;

use crate::packet::Packet;
use crate::state::connection::SENDER;
use crate::state::crowd::Crowd;
use crate::state::host::Host;
use crate::state::slot::{Owner, Slot, add};
use crate::state::stream::Stream;
use crate::state::timers::{Timer, Timers};

/// The complete state of a run.
pub struct State<'a> {
    /// The plan being carried out.
    pub plan: &'a Plan,
    /// Links, routes, and their records.
    pub network: Network<Packet>,
    /// Slots for connections: first one for each flow, by number, then one for each user, then those that
    /// arriving flows need.
    pub slots: Vec<Slot>,
    /// The crowds, by number.
    pub crowds: Vec<Crowd>,
    /// The hosts of flows, by number of the flow, if processing takes time.
    pub hosts: Vec<Option<Box<Host>>>,
    /// The streams of datagrams, by number.
    pub streams: Vec<Stream>,
    /// Events that do not belong to links.
    pub timers: Timers,
    /// Number of events handled.
    pub handled: u64,
}

impl<'a> State<'a> {
    /// The state at time zero. For whether packets are followed in transit, see
    /// [`elephan_network::Driver::FOLLOWS`].
    pub fn new(plan: &'a Plan, follows: bool) -> Self {
        let streams: Vec<Stream> =
            (0u64..).zip(&plan.streams).map(|(i, stream)| Stream::new(stream, plan, i)).collect();
        let host = |flow: &Flow| flow.host.map(|costs| Box::new(Host::new(costs)));
        let costs_something = plan.flows.iter().any(|flow| flow.host.is_some());
        let hosts: Vec<_> = if costs_something { plan.flows.iter().map(host).collect() } else { Vec::new() };
        let mut state = Self {
            plan,
            network: Network::new(plan, follows),
            slots: Vec::with_capacity(plan.flows.len()),
            crowds: Vec::new(),
            timers: Timers::new(streams.len(), plan.crowds.len(), hosts.len()),
            hosts,
            streams,
            handled: 0,
        };
        state.populate();
        state
    }

    /// Gives each flow and user a slot, and sets the time of each first event.
    fn populate(&mut self) {
        let plan = self.plan;
        for (number, stream) in (0u32..).zip(&self.streams) {
            self.timers.schedule(Timer::Stream(number), stream.next());
        }
        for (number, flow) in plan.flows.iter().enumerate() {
            self.add_slot(Owner::Flow, flow.start.draw(plan.seed, number as u64));
        }
        let mut users = 0;
        for (number, crowd) in (0u32..).zip(&plan.crowds) {
            let made = Crowd::new(crowd, plan.seed, u64::from(number), self.slots.len() as u32, users);
            for (user, start) in (0u32..).zip(made.members.starts()) {
                self.add_slot(Owner::User { crowd: number, user }, start);
            }
            users += made.members.starts().len() as u64;
            self.timers.schedule(Timer::Arrival(number), made.members.next());
            self.crowds.push(made);
        }
    }

    /// Adds a slot whose first connection begins at `start`; returns its number.
    pub fn add_slot(&mut self, owner: Owner, start: Time) -> u32 {
        let number = self.slots.len() as u32;
        self.slots.push(Slot::new(owner));
        self.timers.add_slot();
        self.timers.schedule(Timer::End(number, SENDER), start);
        number
    }

    /// The flows of the plan, by number.
    pub fn flows(&self) -> &[Slot] {
        &self.slots[..self.plan.flows.len()]
    }

    /// The slots of a crowd.
    pub fn slots_of(&self, crowd: &Crowd) -> impl Iterator<Item = &Slot> {
        crowd.slots.iter().map(|&slot| &self.slots[slot as usize])
    }

    /// Sum of the counters of all connections of a crowd.
    pub fn counters_of(&self, crowd: &Crowd) -> Counters {
        self.slots_of(crowd).fold(Counters::default(), |mut sum, slot| {
            add(&mut sum, &slot.counters());
            sum
        })
    }

    /// The plan's settings for the flows of a slot.
    pub fn plan_of(&self, slot: u32) -> &'a Flow {
        match self.slots[slot as usize].owner {
            Owner::Flow => &self.plan.flows[slot as usize],
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => &self.plan.crowds[crowd as usize].flow,
        }
    }

    /// The flow, crowd or stream of a packet, by its number in traces: flows, then crowds, then streams.
    pub fn number_of(&self, packet: &Packet) -> u32 {
        if packet.datagram().is_some() {
            return (self.plan.flows.len() + self.plan.crowds.len()) as u32 + packet.flow;
        }
        self.number_of_slot(packet.flow)
    }

    /// The flow or crowd of a slot, by its number in traces.
    pub fn number_of_slot(&self, slot: u32) -> u32 {
        match self.slots[slot as usize].owner {
            Owner::Flow => slot,
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => self.plan.flows.len() as u32 + crowd,
        }
    }
}
