//! A scenario with nothing left to interpret: what an engine runs.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use elephan_metrics::Setup;
use elephan_net::{Limit, LinkConfig, Loss};
use elephan_tcp::Config;
use elephan_traffic::{Datagrams, Demand, Start};
use elephan_units::entry::Value;
use elephan_units::{Bytes, Rate, Seed, Time};

pub use elephan_traffic::Members;

use crate::estimate::bound::Estimate;
pub use crate::file::Host;

/// A resolved scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of every random process.
    pub seed: Seed,
    /// When the run ends.
    pub duration: Time,
    /// Every link, in one direction each.
    pub links: Vec<Link>,
    /// Routes that flows share: indices into `links`, in the order in which a packet crosses them.
    pub routes: Vec<Vec<u32>>,
    /// Every flow, `count` expanded.
    pub flows: Vec<Flow>,
    /// Every crowd of short flows, `count` expanded.
    pub crowds: Vec<Crowd>,
    /// Every stream of datagrams, `count` expanded.
    pub streams: Vec<Stream>,
    /// What changes during the run, in order of time.
    pub changes: Vec<Change>,
    /// Delays and losses of links that change as a trace has them. Rates are in [`LinkConfig::schedule`].
    pub replays: Vec<Replay>,
    /// The link that utilisation, loss rate and queueing delay are reported of first:
    /// the dumbbell's bottleneck, or the slowest link that most flows cross.
    pub bottleneck: u32,
    /// The measuring window.
    pub measure: Measure,
    /// What is recorded.
    pub trace: Trace,
    /// What it takes to run it.
    pub estimate: Estimate,
}

impl Plan {
    /// What a collector of the metrics of its run needs.
    pub fn setup(&self) -> Setup {
        Setup {
            from: self.measure.from,
            to: self.measure.to,
            interval: self.measure.interval,
            rtts: self.flows.iter().map(|flow| flow.rtt).collect(),
            bottleneck: self.links[self.bottleneck as usize].config.rate,
        }
    }

    /// The label of each flow.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| flow.label.as_str())
    }

    /// Every propagation delay that a link gets during the run.
    pub fn new_delays(&self, link: u32) -> impl Iterator<Item = Time> {
        let changes = self.changes.iter().filter(move |change| change.link == link);
        changes.filter_map(|change| change.delay).chain(self.replayed(link).filter_map(|step| step.delay))
    }

    /// The least propagation delay of a route during the run.
    pub fn least_delay(&self, route: u32) -> Time {
        let least =
            |&link: &u32| self.new_delays(link).fold(self.links[link as usize].config.delay, Ord::min);
        self.routes[route as usize].iter().map(least).fold(Time::ZERO, |sum, delay| sum + delay)
    }

    /// Every kind of losses that a link gets during the run.
    pub fn new_losses(&self, link: u32) -> impl Iterator<Item = Loss> {
        let changes = self.changes.iter().filter(move |change| change.link == link);
        changes.filter_map(|change| change.loss).chain(self.replayed(link).filter_map(|step| step.loss))
    }

    fn replayed(&self, link: u32) -> impl Iterator<Item = &ReplayStep> {
        self.replays.iter().filter(move |replay| replay.link == link).flat_map(|replay| replay.steps.iter())
    }

    /// A buffer for everything that the path of this flow can hold, several times over, in bytes: that of receiving sockets
    /// whose scenario sets none. A kernel counts its own overhead too.
    pub fn buffer(&self, flow: &Flow) -> u64 {
        let routes = [flow.forward, flow.reverse];
        let links = routes.iter().flat_map(|&route| &self.routes[route as usize]);
        let bytes = links.map(|&link| {
            let config = &self.links[link as usize].config;
            let queued = match config.limit {
                Limit::Packets(packets) => packets.saturating_mul(flow.tcp.packet.get()),
                Limit::Bytes(bytes) => bytes,
            };
            config.rate.map_or(0, |rate| queued.saturating_add(rate.bytes_in(flow.rtt).get()))
        });
        let held = bytes.fold(1 << 20, u64::saturating_add);
        held.saturating_mul(4).min(1 << 30)
    }

    /// A receive window that grows is that of a socket with that buffer, where the scenario sets no other bound. A kernel's buffer is twice
    /// that, of which it expects half for itself, so that the whole but for a segment is offered after the SYN (Linux from 6.10 on,
    /// net/ipv4/tcp_input.c, `tcp_init_buffer_space`). The first segment shows how much it is (net/ipv4/tcp_input.c, `tcp_measure_rcv_mss`), and the
    /// window grows to what is left.
    pub(crate) fn bound_growing_windows(&mut self) {
        // What the flow before had and got, for the same buffer: neighbours share it.
        let mut before: Option<(Arc<FlowTable>, u64, Arc<FlowTable>)> = None;
        let (mut flows, mut crowds) = (std::mem::take(&mut self.flows), std::mem::take(&mut self.crowds));
        for flow in flows.iter_mut().chain(crowds.iter_mut().map(|crowd| &mut crowd.flow)) {
            let grows = flow.tcp.first_receive_window.is_some() && !flow.tcp.auto_tuning;
            if grows && flow.tcp.receive_buffer.is_none() {
                let first = self.buffer(flow);
                let same = before
                    .take()
                    .filter(|(table, buffer, _)| Arc::ptr_eq(table, &flow.table) && *buffer == first);
                let bounded =
                    same.map_or_else(|| Arc::new(flow.table.bounded(first)), |(.., bounded)| bounded);
                before = Some((std::mem::replace(&mut flow.table, Arc::clone(&bounded)), first, bounded));
            }
        }
        (self.flows, self.crowds) = (flows, crowds);
    }
}

/// A link in one direction.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name: `bottleneck`, `bottleneck.reverse`, or as the file calls it.
    pub name: String,
    /// Its numbers.
    pub config: LinkConfig,
}

/// A change of a link during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// The link.
    pub link: u32,
    /// Its new rate.
    pub rate: Option<Rate>,
    /// Its new propagation delay.
    pub delay: Option<Time>,
    /// Its new losses on the wire.
    pub loss: Option<Loss>,
    /// New weights of classes, by name.
    pub weights: BTreeMap<String, f64>,
    /// Whether it goes down or comes up.
    pub up: Option<bool>,
}

/// Delays and losses of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The link.
    pub link: u32,
    /// What changes, in order of time from zero on.
    pub steps: Arc<[ReplayStep]>,
    /// After this time, which is later than all of them, they begin again.
    pub period: Option<Time>,
}

/// A change of a link's delay or losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayStep {
    /// Time of the change.
    pub at: Time,
    /// The new propagation delay.
    pub delay: Option<Time>,
    /// The new losses on the wire.
    pub loss: Option<Loss>,
}

/// A flow. A million of one table have one [`FlowTable`].
#[derive(Clone, Debug)]
pub struct Flow {
    /// What it has in common with the flows of its table.
    pub table: Arc<FlowTable>,
    /// Route of data, an index into [`Plan::routes`].
    pub forward: u32,
    /// Route of acknowledgments.
    pub reverse: u32,
}

impl Flow {
    /// The flows of a table on their routes, forward and back.
    pub(crate) fn on(routes: &[[u32; 2]], table: FlowTable) -> impl Iterator<Item = Self> {
        let table = Arc::new(table);
        routes.iter().map(move |&[forward, reverse]| Self { table: Arc::clone(&table), forward, reverse })
    }
}

impl Deref for Flow {
    type Target = FlowTable;

    fn deref(&self) -> &FlowTable {
        &self.table
    }
}

/// What the flows of one table of the scenario have in common.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// What tables and plots call it.
    pub label: String,
    /// Name of the congestion control algorithm and its settings, all known and in range.
    pub cc: Cc,
    /// Name of the slow start and its settings.
    pub slow_start: Cc,
    /// The TCP stack of both ends.
    pub tcp: Config,
    /// The codepoint of its packets in both directions.
    pub dscp: u8,
    /// What sending costs its host; none where hosts are infinitely fast.
    pub host: Option<Host>,
    /// Round-trip time without queueing and serialisation.
    pub rtt: Time,
    /// Start time.
    pub start: Start,
    /// When it stops writing, before the run ends; none means never.
    pub stop: Option<Time>,
    /// What it sends.
    pub demand: Demand,
}

impl FlowTable {
    /// The same with a receive window that grows to what a socket with a buffer of `first` bytes can offer.
    fn bounded(&self, first: u64) -> Self {
        let mut table = self.clone();
        let mss = table.tcp.mss();
        table.tcp.first_receive_window = Some(Bytes::new(first - u64::from(mss)));
        table.tcp.receive_buffer = Some(Bytes::new(elephan_tcp::window_of_memory(2 * first, mss)));
        table
    }
}

/// Many transfers of one kind between two places, each on a connection of its own.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// What they have in common; its demand is [`Demand::Drawn`]. Of users its start is when each asks for the first page, of
    /// arrivals when they begin.
    pub flow: Flow,
    /// Who wants them.
    pub members: Members,
}

/// A stream of datagrams (UDP), which nobody acknowledges.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What tables and plots call it.
    pub label: String,
    /// What it sends.
    pub datagrams: Datagrams,
    /// The codepoint of its packets.
    pub dscp: u8,
    /// Its route, an index into [`Plan::routes`].
    pub forward: u32,
    /// Start time.
    pub start: Start,
    /// When it stops; none means never.
    pub stop: Option<Time>,
}

/// A name from a registry, and settings by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Cc {
    /// The registered name.
    pub name: &'static str,
    /// Settings that the file gives.
    pub settings: Vec<(String, Value)>,
}

impl Cc {
    /// The name without settings.
    pub const fn plain(name: &'static str) -> Self {
        Self { name, settings: Vec::new() }
    }

    /// The settings as registries take them.
    pub fn settings(&self) -> Vec<(&str, Value)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), *value)).collect()
    }
}

/// The measuring window, and how often rates are sampled within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Metrics count from here,
    pub from: Time,
    /// to here.
    pub to: Time,
    /// Sampling interval from which stability and convergence are computed from.
    pub interval: Time,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Sampling interval of flows and queues.
    pub interval: Time,
    /// Whether every event of every flow and queue is kept.
    pub events: bool,
    /// Whether the variables of the flows' algorithms are kept.
    pub variables: bool,
    /// Whether every transfer is kept.
    pub transfers: bool,
    /// Names of links whose packets are written to a pcap file.
    pub pcap: Vec<String>,
}
