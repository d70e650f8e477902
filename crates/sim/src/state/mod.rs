//! The complete state of a run, except for what is recorded.

pub mod app;
pub mod connection;
pub mod crowd;
pub mod host;
pub mod site;
pub mod slot;
mod standstill;
pub mod steps;
pub mod stream;
pub mod talker;
pub mod timers;

use elephan_metrics::{Control, Reception};
use elephan_network::{Network, Paths};
use elephan_scenario::plan::{Flow, Plan};
use elephan_tcp::{Counters, Endpoint};

use crate::packet::Packet;
use crate::partition::Partition;
use crate::state::app::App;
use crate::state::connection::{RECEIVER, SENDER, Transfer, stacks};
use crate::state::crowd::Crowd;
use crate::state::host::Host;
use crate::state::site::Site;
use crate::state::slot::{Owner, Sink, Slot, add};
use crate::state::stream::Stream;
use crate::state::talker::Talker;
use crate::state::timers::Timer;

/// The complete state of a run.
pub struct State<'a> {
    /// The plan being carried out.
    pub plan: &'a Plan,
    /// Links, and their records; a part for each site.
    pub network: Network<Packet>,
    /// The sites, by number.
    pub sites: Vec<Site<'a>>,
    /// The sites of each flow's sender and receiver.
    ends: Vec<[u32; 2]>,
    /// Events handled that belong to no site.
    pub handled: u64,
}

impl<'a> State<'a> {
    /// The state at time zero. For whether packets are followed in transit, see
    /// [`elephan_network::Driver::FOLLOWS`].
    pub fn new(plan: &'a Plan, partition: &Partition, control: &'a dyn Control, follows: bool) -> Self {
        let network = Network::in_parts(plan, &partition.ends, follows);
        let crowds = Crowds::new(plan);
        let paths = network.paths();
        // Of each site the first slot, and whether senders and receivers are there.
        let mut slots = vec![(crowds.next, [false; 2]); partition.sites as usize];
        let firsts = plan.crowds.iter().zip(&crowds.all).map(|(crowd, made)| (&crowd.flow, made.first));
        for (flow, slot) in plan.flows.iter().zip(0..).chain(firsts) {
            for (end, site) in sites_of(paths, flow).into_iter().enumerate() {
                let (first, here) = &mut slots[site as usize];
                *first = slot.min(*first);
                here[end] = true;
            }
        }
        let stacks = stacks(plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow)));
        let sites = (0..).zip(slots).map(|(site, (first, here))| {
            Site::new(plan, control, (paths.clone(), stacks.clone()), site, (first, crowds.next), here)
        });
        let ends = plan.flows.iter().map(|flow| sites_of(paths, flow)).collect();
        let mut state = Self { sites: sites.collect(), ends, plan, network, handled: 0 };
        state.populate(crowds);
        state
    }

    /// Gives each flow and user its slots, and sets the time of each first event.
    fn populate(&mut self, crowds: Crowds) {
        let plan = self.plan;
        let paths = self.network.paths().clone();
        for (number, plan_of) in plan.streams.iter().enumerate() {
            let [from, to] = paths.ends(plan_of.forward).map(|site| site as usize);
            let stream = Stream::new(plan_of, plan, number as u64);
            self.sites[from].timers.schedule(Timer::Stream(number as u32), stream.next());
            self.sites[from].streams[number] = Some(stream);
            self.sites[to].receptions[number] = Some(Reception::new());
        }
        for (slot, flow) in (0u32..).zip(&plan.flows) {
            let [from, to] = sites_of(&paths, flow).map(|site| site as usize);
            self.sites[from].add_slot(slot, Owner::Flow, flow.start.draw(plan.seed, u64::from(slot)));
            self.sites[to].add_sink(slot, None);
        }
        for (number, (crowd, made)) in (0u32..).zip(plan.crowds.iter().zip(crowds.all)) {
            let [from, to] = sites_of(&paths, &crowd.flow).map(|site| site as usize);
            for (user, start) in (0u32..).zip(made.members.starts()) {
                let slot = made.first + user;
                self.sites[from].add_slot(slot, Owner::User { crowd: number, user }, start);
                self.sites[to].add_sink(slot, Some(number));
            }
            self.sites[from].timers.schedule(Timer::Arrival(number), made.members.next());
            for site in [from, to] {
                self.sites[site].scripts[number as usize] = made.members.script().cloned();
            }
            self.sites[from].crowds[number as usize] = Some(made);
        }
    }

    /// The flows of the plan, by number.
    pub fn flows(&self) -> impl Iterator<Item = FlowState<'_>> {
        (0..).zip(&self.ends).map(|(number, &ends)| self.flow(number, ends))
    }

    fn flow(&self, number: u32, ends: [u32; 2]) -> FlowState<'_> {
        let [from, to] = ends.map(|site| &self.sites[site as usize]);
        let place = from.place(number);
        let sink = &to.sinks[to.place(number)];
        FlowState {
            slot: &from.slots[place],
            delivered: sink.delivered(),
            arrived: sink.arrived(),
            host: from.hosts.get(place).and_then(Option::as_deref),
            app: from.apps.get(place).and_then(Option::as_deref),
        }
    }

    /// The crowds of the plan, by number, with the sum of the counters of all their connections.
    pub fn crowds(&self) -> impl Iterator<Item = (&Crowd, Counters)> {
        let numbered = self.plan.crowds.iter().enumerate();
        numbered.map(|(number, crowd)| {
            let [from, to] =
                sites_of(self.network.paths(), &crowd.flow).map(|site| &self.sites[site as usize]);
            let crowd = from.crowds[number].as_ref().expect("a crowd is where its senders are");
            let counters = crowd.slots.iter().fold(Counters::default(), |mut sum, &slot| {
                add(&mut sum, &from.slots[from.place(slot)].counters());
                sum.bytes_delivered += to.sinks.get(to.place(slot)).map_or(0, Sink::delivered);
                if let Some(talker) = to.talker(slot, RECEIVER) {
                    // What its end has received is counted above.
                    let delivered = sum.bytes_delivered;
                    add(&mut sum, &talker.before);
                    if let Some(Some(half)) = to.sinks.get(to.place(slot)).map(|sink| &sink.connection) {
                        add(&mut sum, &half.endpoint.counters());
                    }
                    sum.bytes_delivered = delivered;
                }
                sum
            });
            (crowd, counters)
        })
    }

    /// Payload that has arrived so far at the receivers of a crowd, duplicates included.
    pub fn arrived_of(&self, number: usize, crowd: &Crowd) -> u64 {
        let [from, to] = self.sites_of_crowd(number);
        let slots = crowd.slots.iter();
        let arrived = slots.filter_map(|&slot| to.sinks.get(to.place(slot))).map(Sink::arrived).sum::<u64>();
        let talkers = crowd.slots.iter().filter_map(|&slot| Some((slot, from.talker(slot, SENDER)?)));
        let answers = talkers.map(|(slot, talker)| {
            let sender = from.slots[from.place(slot)].sender();
            talker.arrived_before + sender.map_or(0, Endpoint::bytes_arrived)
        });
        arrived + answers.sum::<u64>()
    }

    fn sites_of_crowd(&self, number: usize) -> [&Site<'a>; 2] {
        sites_of(self.network.paths(), &self.plan.crowds[number].flow).map(|site| &self.sites[site as usize])
    }

    /// The transfers of a crowd that are not finished.
    pub fn unfinished_of<'s>(&'s self, number: usize, crowd: &'s Crowd) -> impl Iterator<Item = Transfer> {
        let ends = self.sites_of_crowd(number);
        let transfers = self.slots_of(number, crowd).filter_map(Slot::unfinished);
        let mut units = Vec::new();
        for (end, site) in ends.into_iter().enumerate() {
            let talkers = crowd.slots.iter().filter_map(|&slot| site.talker(slot, end));
            units.extend(talkers.flat_map(Talker::unfinished));
        }
        transfers.chain(units)
    }

    /// The slots of the senders of a crowd.
    pub fn slots_of<'s>(&'s self, number: usize, crowd: &'s Crowd) -> impl Iterator<Item = &'s Slot> {
        let [from, _] = sites_of(self.network.paths(), &self.plan.crowds[number].flow);
        let site = &self.sites[from as usize];
        crowd.slots.iter().map(|&slot| &site.slots[site.place(slot)])
    }

    /// The streams of the plan, by number: their sources and their receptions.
    pub fn streams(&self) -> impl Iterator<Item = (&Stream, &Reception)> {
        self.plan.streams.iter().enumerate().map(|(number, stream)| {
            let [from, to] = self.network.paths().ends(stream.forward);
            let source = self.sites[from as usize].streams[number].as_ref();
            let reception = self.sites[to as usize].receptions[number].as_ref();
            source.zip(reception).expect("a stream is where its route starts and ends")
        })
    }

    /// The measuring window of the streams begins.
    pub fn measure_streams(&mut self) {
        let sent: Vec<u64> = self.streams().map(|(source, _)| source.sent).collect();
        for (number, (stream, sent)) in self.plan.streams.iter().zip(sent).enumerate() {
            let [_, to] = self.network.paths().ends(stream.forward);
            if let Some(reception) = &mut self.sites[to as usize].receptions[number] {
                reception.measure(sent);
            }
        }
    }
}

/// A flow of the plan.
pub struct FlowState<'s> {
    /// Where it is sent.
    pub slot: &'s Slot,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Payload that has arrived so far, duplicates included.
    pub arrived: u64,
    /// Its sending host, if processing takes time there.
    pub host: Option<&'s Host>,
    /// Its application, if it writes over time.
    pub app: Option<&'s App>,
}

impl FlowState<'_> {
    /// The transfer, or the chunks, that are not finished.
    pub fn unfinished(&self) -> impl Iterator<Item = Transfer> {
        self.slot.unfinished().into_iter().chain(self.app.into_iter().flat_map(App::unfinished))
    }

    /// Sum of the counters of all its connections; `bytes_delivered` is counted at the receivers.
    pub fn counters(&self) -> Counters {
        let mut counters = self.slot.counters();
        counters.bytes_delivered += self.delivered;
        counters
    }
}

/// The crowds of a plan, before they are where their senders are.
struct Crowds {
    all: Vec<Crowd>,
    /// The number of the first slot that no flow and no user has.
    next: u32,
}

impl Crowds {
    fn new(plan: &Plan) -> Self {
        let (mut all, mut next, mut users) = (Vec::new(), plan.flows.len() as u32, 0);
        for (number, crowd) in (0u64..).zip(&plan.crowds) {
            let made = Crowd::new(crowd, plan.seed, number, next, users);
            let count = made.members.starts().len();
            next += count as u32;
            users += count as u64;
            all.push(made);
        }
        Self { all, next }
    }
}

/// The sites of a flow's senders and receivers.
fn sites_of(paths: &Paths, flow: &Flow) -> [u32; 2] {
    paths.ends(flow.forward)
}
