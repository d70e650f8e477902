//! A site: what is in one place, and advances together.

use std::collections::VecDeque;
use std::sync::Arc;

use elephan_cc::governor::Fault;
use elephan_metrics::{Control, Reception};
use elephan_network::Paths;
use elephan_scenario::Estimate;
use elephan_scenario::plan::{Flow, Plan};
use elephan_tcp::Stack;
use elephan_traffic::Script;
use elephan_units::Time;

use crate::detail::Detail;
use crate::error::Error;
use crate::report::{Key, Log, Rank};
use crate::state::app::App;
use crate::state::connection::SENDER;
use crate::state::crowd::Crowd;
use crate::state::host::Host;
use crate::state::slot::{Owner, Sink, Slot};
use crate::state::steps::Steps;
use crate::state::stream::Stream;
use crate::state::talker::Talker;
use crate::state::timers::{Timer, Timers};

/// A run of so few events is not ended: they take some ten seconds.
const HARMLESS_EVENTS: f64 = if cfg!(test) { 1e3 } else { 1e8 };
/// The same for rows of traced events, of some 100 MB.
const HARMLESS_ROWS: f64 = if cfg!(test) { 1e3 } else { 1e6 };

/// A site, without its ends of links.
pub struct Site<'a> {
    /// The plan being carried out.
    pub plan: &'a Plan,
    /// The caller's control of the run.
    pub control: &'a dyn Control,
    /// The routes.
    pub paths: Arc<Paths>,
    /// The stacks of the flows, then of the crowds.
    stacks: Arc<[Arc<Stack>]>,
    /// Its number.
    pub number: u32,
    /// The number of the first slot in the two lists that follow, and of the next new slot.
    pub first: u32,
    pub next: u32,
    /// Slots for the senders here.
    pub slots: Vec<Slot>,
    /// Slots for the receivers here.
    pub sinks: Vec<Sink>,
    /// By number, the crowds whose senders are here.
    pub crowds: Vec<Option<Crowd>>,
    /// The hosts of flows, by number of the slot from `first` on, if processing takes time.
    pub hosts: Vec<Option<Box<Host>>>,
    /// The applications of flows, by number of the slot from `first` on, if any writes over time.
    pub apps: Vec<Option<Box<App>>>,
    /// Ends of sessions, of senders and of receivers, by number of the slot from `first` on, if there are any.
    pub talkers: [Vec<Option<Box<Talker>>>; 2],
    /// By number of the crowd, what its sessions say, if it has any.
    pub scripts: Vec<Option<Script>>,
    /// By number, the streams of datagrams whose senders are here.
    pub streams: Vec<Option<Stream>>,
    /// By number, the streams of datagrams whose receivers are here.
    pub receptions: Vec<Option<Reception>>,
    /// Events that do not belong to links.
    pub timers: Timers,
    /// Number of events handled, and of those in the last round.
    pub handled: u64,
    pub last: u64,
    /// Checks whether the run stops.
    pub steps: Steps,
    /// The event being handled.
    pub current: Key,
    /// What it reports, in order.
    pub log: Log,
    /// Single packets, if they are recorded.
    pub detail: Option<Detail<'a>>,
    /// News from sites that advance before this one, and for those that advance after it, with their numbers.
    pub inbox: VecDeque<News>,
    pub outbox: Vec<(u32, News)>,
}

/// What a site tells another, which knows it at once.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// The event in which it happened.
    pub key: Key,
    /// The slot.
    pub slot: u32,
    /// What happened.
    pub what: What,
}

/// What happened to a slot.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// It is new, and belongs to this crowd.
    Added(u32),
    /// Its next connection is that of this session.
    Opened(u64),
    /// Its current connection closed, and whether the sender had received all that the receiver wrote.
    Closed(bool),
}

impl<'a> Site<'a> {
    /// An empty site, for slots from `first` on, of which senders and receivers may be `here`; `next` is the next new one.
    pub fn new(
        plan: &'a Plan,
        control: &'a dyn Control,
        (paths, stacks): (Arc<Paths>, Arc<[Arc<Stack>]>),
        number: u32,
        (first, next): (u32, u32),
        here: [bool; 2],
    ) -> Self {
        let hosts = if plan.flows.iter().any(|flow| flow.host.is_some()) { plan.flows.len() } else { 0 };
        Self {
            plan,
            control,
            paths,
            stacks,
            number,
            first,
            next,
            slots: Vec::new(),
            sinks: Vec::new(),
            crowds: plan.crowds.iter().map(|_| None).collect(),
            hosts: Vec::new(),
            apps: Vec::new(),
            talkers: Default::default(),
            scripts: plan.crowds.iter().map(|_| None).collect(),
            streams: plan.streams.iter().map(|_| None).collect(),
            receptions: plan.streams.iter().map(|_| None).collect(),
            timers: Timers::new(plan.streams.len(), plan.crowds.len(), hosts, (first, next), here),
            handled: 0,
            last: 0,
            steps: Steps::default(),
            current: Key { at: Time::ZERO, rank: Rank::Arrival(0) },
            log: Log::default(),
            detail: None,
            inbox: VecDeque::new(),
            outbox: Vec::new(),
        }
    }

    /// The place of a slot in the lists.
    #[inline]
    pub fn place(&self, slot: u32) -> usize {
        (slot - self.first) as usize
    }

    /// The slot of a sender here.
    #[inline]
    pub fn slot(&mut self, slot: u32) -> &mut Slot {
        let place = self.place(slot);
        &mut self.slots[place]
    }

    /// Makes a slot for a sender here. Its first connection begins at `start`.
    pub fn add_slot(&mut self, slot: u32, owner: Owner, start: Time) {
        let place = self.place(slot);
        if self.slots.is_empty() {
            self.slots.reserve_exact((self.next - self.first) as usize);
        }
        while self.slots.len() <= place {
            self.slots.push(Slot::new(Owner::Flow));
        }
        self.slots[place].owner = owner;
        self.timers.reach(slot);
        self.timers.schedule(Timer::End(slot, SENDER), start);
        if let Owner::Flow = owner
            && let Some(costs) = self.plan.flows[slot as usize].host
        {
            self.hosts.resize_with(self.hosts.len().max(place + 1), || None);
            self.hosts[place] = Some(Box::new(Host::new(costs)));
        }
    }

    /// The application of the flow of a slot here, if it writes over time.
    pub fn app(&mut self, slot: u32) -> Option<&mut App> {
        let place = self.place(slot);
        self.apps.get_mut(place)?.as_deref_mut()
    }

    /// Gives the flow of a slot here an application.
    pub fn add_app(&mut self, slot: u32, app: App) {
        let place = self.place(slot);
        self.apps.resize_with(self.apps.len().max(place + 1), || None);
        self.apps[place] = Some(Box::new(app));
    }

    /// Gives an end in a slot here a session.
    pub fn add_talker(&mut self, slot: u32, end: usize, session: u64) {
        let place = self.place(slot);
        let talkers = &mut self.talkers[end];
        talkers.resize_with(talkers.len().max(place + 1), || None);
        let before = talkers[place].take();
        talkers[place] = Some(Box::new(Talker::new(session, before)));
    }

    /// The end of a session in a slot here.
    pub fn talker(&self, slot: u32, end: usize) -> Option<&Talker> {
        self.talkers[end].get(self.place(slot))?.as_deref()
    }

    /// Makes a slot for a receiver here.
    pub fn add_sink(&mut self, slot: u32, crowd: Option<u32>) {
        let place = self.place(slot);
        if self.sinks.is_empty() {
            self.sinks.reserve_exact((self.next - self.first) as usize);
        }
        while self.sinks.len() <= place {
            self.sinks.push(Sink::new(None));
        }
        self.sinks[place].crowd = crowd;
        self.timers.reach(slot);
    }

    /// The plan's settings for the flows of a slot, which is a flow's or belongs to this crowd.
    pub fn plan_of(&self, slot: u32, crowd: Option<u32>) -> &'a Flow {
        let plan = self.plan;
        crowd.map_or_else(|| &plan.flows[slot as usize], |crowd| &plan.crowds[crowd as usize].flow)
    }

    /// The stack of the connections of a slot, which is a flow's or belongs to this crowd.
    pub fn stack_of(&self, slot: u32, crowd: Option<u32>) -> &Arc<Stack> {
        let number = crowd.map_or(slot as usize, |crowd| self.plan.flows.len() + crowd as usize);
        &self.stacks[number]
    }

    /// Fails if the events here, or the rows of traced ones, are far beyond what was estimated of the whole run.
    pub fn check_estimate(&self, at: Time) -> Result<(), Error> {
        let Estimate { events, rows, .. } = &self.plan.estimate;
        let traced = self.detail.as_ref().map_or(0, Detail::rows);
        for (bound, done, harmless, what) in [
            (events, self.handled as f64, HARMLESS_EVENTS, "events"),
            (rows, traced as f64, HARMLESS_ROWS, "rows"),
        ] {
            let most = bound.most(harmless);
            if done > most {
                return Err(Error::Beyond { key: bound.key.clone(), most, what, at });
            }
        }
        Ok(())
    }

    /// Records the variables of the flows that have a sender here, if the plan asks for them.
    pub fn sample_variables(&mut self, now: Time) {
        let Some(detail) = self.detail.as_mut().filter(|_| self.plan.trace.variables) else { return };
        for (flow, slot) in (0..self.plan.flows.len() as u32).zip(&self.slots) {
            if let Some(sender) = slot.sender() {
                detail.variables.sample(flow, sender.controller(), now);
            }
        }
    }

    /// Whether any connection has an algorithm that may fail.
    pub fn may_fail(&self) -> bool {
        self.stacks.iter().any(|stack| stack.is_governed())
    }

    /// What failed in the congestion control of senders here: the slot, the number of its flow and its algorithm, and the
    /// fault.
    pub fn faults(&self) -> impl Iterator<Item = (u32, (u32, &'static str), &Fault)> {
        (self.first..).zip(&self.slots).filter_map(|(number, slot)| {
            let fault = slot.fault()?;
            let flow = self.plan_of(number, slot.owner.crowd());
            Some((number, (self.number_of_slot(number), flow.cc.name), fault))
        })
    }

    /// The flow or crowd of a slot, by its number in traces.
    pub fn number_of_slot(&self, slot: u32) -> u32 {
        let crowd = self.slots[self.place(slot)].owner.crowd();
        crowd.map_or(slot, |crowd| self.plan.flows.len() as u32 + crowd)
    }
}
