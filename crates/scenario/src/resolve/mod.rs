//! From the file to a plan; and everything that cannot work is refused here.

mod app;
mod changes;
mod crowds;
mod hosts;
mod network;
mod replays;
mod routes;
mod streams;
mod topology;

use elephan_abi::{linux, registered};
use elephan_tcp::{Config, Profile};
use elephan_traffic::{Demand, Start};
use elephan_units::{Bytes, Mistake, Rate, Seed, Time};
use serde_json::{Map, Value};

use network::Network;
use topology::Topology;

use crate::algorithm::{Algorithm, IMPORTED};
use crate::document::positive;
use crate::error::Error;
use crate::estimate::{Estimate, Estimator};
use crate::file::{Engine, FlowFile, Scenario, TraceFile, Transfers};
use crate::plan::{Crowd, Flow, FlowTable, Host, Measure, Plan, Stream, Trace};
use crate::read::typed;
use crate::start::StartFile;

/// The clock ends after 213 days; a run of 200 leaves room for timers.
const LONGEST: Time = Time::from_secs(200 * 86_400);
/// More flows than that do not fit into any memory that we know.
const MOST_FLOWS: u64 = 10_000_000;
/// By default flows and queues are sampled this often,
const SHORTEST_TRACE_INTERVAL: Time = Time::from_millis(100);
/// unless more than 1000 flows would give more than 10,000 rows a second: a row takes about 100 bytes.
const TIME_OF_A_ROW: Time = Time::from_micros(100);
/// A run has as many samples in any case. Those of a flow then take about as much memory as the flow itself.
const FEWEST_SAMPLES: u64 = 10;

impl Scenario {
    /// Resolves the scenario, or says what cannot work; `file` is what errors call it.
    pub fn resolve(&self, file: &str) -> Result<Plan, Error> {
        let mut network = Network::default();
        let (flows, crowds, streams) = self.members(&mut network);
        if self.duration > LONGEST {
            network.wrong("duration", "at most 200 days", format_args!("\"{}\"", self.duration));
        }
        positive(&mut network.mistakes, "duration", self.duration);
        if self.engine != Engine::Kernel && self.kernel.version.is_some() {
            network.wrong("kernel.version", "engine = \"kernel\" with it", self.engine);
        }
        positive(&mut network.mistakes, "trace.interval", self.trace_interval());
        network.mistakes.extend(self.check_expectations().err().unwrap_or_default());
        let measure = self.measure(&flows, &crowds, &streams, &mut network);
        let replays = self.replays(&mut network);
        let changes = self.changes(&mut network);
        for name in &self.trace.pcap {
            if !network.links.iter().any(|link| link.name == *name) {
                let expected = format!("one of the links {}", network.names());
                network.wrong("trace.pcap", expected, format_args!("\"{name}\""));
            }
        }
        if !network.mistakes.is_empty() {
            return Err(Error { file: file.to_owned(), mistakes: network.mistakes });
        }
        let TraceFile { events, variables, transfers, ref pcap, .. } = self.trace;
        let (interval, pcap) = (self.trace_interval(), pcap.clone());
        let trace = Trace { interval, events, variables, transfers, pcap };
        let mut plan = Plan {
            seed: Seed::new(self.seed),
            duration: self.duration,
            bottleneck: bottleneck(&network, &flows, &crowds, &streams),
            links: network.links,
            routes: network.routes,
            flows,
            crowds,
            streams,
            changes,
            replays,
            measure,
            trace,
            estimate: Estimate::default(),
        };
        plan.bound_growing_windows();
        plan.estimate = Estimator::new(self, &plan).estimate();
        Ok(plan)
    }

    /// Sampling interval of flows and queues.
    ///
    /// Without `trace.interval` it is 100 ms, or the shortest of 200 ms, 500 ms, 1 s, 2 s, ... with which the flows give at most
    /// 10,000 rows a second, but at most a tenth of the run. The fluid model computes its metrics from its samples and shows few
    /// flows: its interval does not grow.
    pub fn trace_interval(&self) -> Time {
        if let Some(interval) = self.trace.interval {
            return interval;
        }
        let mut interval = SHORTEST_TRACE_INTERVAL;
        if self.engine == Engine::Model {
            return interval;
        }
        let flows = self.flow.iter().map(|flow| flow.count).fold(0, u64::saturating_add);
        for (more, of) in [(2, 1), (5, 2), (2, 1)].into_iter().cycle() {
            let longer = interval * more / of;
            if TIME_OF_A_ROW * flows <= interval || longer > self.duration / FEWEST_SAMPLES {
                break;
            }
            interval = longer;
        }
        interval
    }

    /// Every flow, and every stream of datagrams.
    fn members(&self, network: &mut Network) -> (Vec<Flow>, Vec<Crowd>, Vec<Stream>) {
        let counts = self
            .flow
            .iter()
            .map(|flow| flow.count)
            .chain(self.stream_files().map(|(_, file)| file.common().count));
        let counts = counts.chain(self.crowd_files().map(|(_, file)| file.connections()));
        let total = counts.fold(0, u64::saturating_add);
        if total == 0 || total > MOST_FLOWS {
            let expected = format!("from 1 to {MOST_FLOWS} flows");
            network.wrong("flow", expected, format_args!("{total}"));
            return Default::default();
        }
        let Some(mut topology) = Topology::new(self, network) else { return Default::default() };
        let mut flows: Vec<Flow> = Vec::new();
        for (number, file) in self.flow.iter().enumerate() {
            let key = format!("flow.{number}");
            let first = flows.len();
            let name = |n: u64| format!("flow {}", first as u64 + n);
            let Some((rtt, routes)) = topology.place(&file.common().place, file.count, &key, name, network)
            else {
                continue;
            };
            let host = self.host(file, &key, &topology, network);
            let Some(table) = self.flow(file, &key, (rtt, host), network) else { continue };
            flows.extend(Flow::on(&routes, table));
        }
        let crowds = self.crowds(&mut topology, network);
        let streams = self.streams(&mut topology, network);
        (flows, crowds, streams)
    }

    // ---- Flows ----

    /// What the flows of a table have in common, with their round-trip time and host.
    fn flow(
        &self,
        file: &FlowFile,
        key: &str,
        (rtt, host): (Time, Option<Host>),
        network: &mut Network,
    ) -> Option<FlowTable> {
        let tcp = self.stack(&file.cc, &file.tcp, key, network)?;
        let start = self.start(file.start, file.stop, key, network);
        let demand = demand(file, key, tcp.mss(), network)?;
        network.mistakes.extend(file.slow_start.refused_by(&file.cc).map(|mistake| mistake.below(key)));
        Some(FlowTable {
            label: file.label.clone().unwrap_or_else(|| registered::short(file.cc.0.name)),
            cc: file.cc.0.clone(),
            slow_start: file.slow_start.of(&file.cc, &tcp),
            tcp,
            dscp: file.dscp.get(),
            host,
            rtt,
            start,
            stop: file.stop,
            demand,
        })
    }

    /// Start time, checked against the stop time and the end of the run.
    pub(crate) fn start(
        &self,
        file: StartFile,
        stop: Option<Time>,
        key: &str,
        network: &mut Network,
    ) -> Start {
        let start = match file {
            StartFile::At(time) => Start::At(time),
            StartFile::Uniform(from, to) => Start::Uniform(from, to),
            StartFile::Exponential { mean, from } => Start::Exponential { mean, from },
        };
        if let Start::Uniform(from, to) = start
            && from > to
        {
            let expected = format!("a latest start of \"{from}\" or later");
            network.wrong(format!("{key}.start.uniform"), expected, format_args!("\"{to}\""));
        }
        if start.latest() >= self.duration {
            let expected = format!("a start before the end at \"{}\"", self.duration);
            network.wrong(format!("{key}.start"), expected, format_args!("\"{}\"", start.latest()));
        }
        if let Some(stop) = stop
            && stop <= start.latest()
        {
            network.wrong(format!("{key}.stop"), "a time after the start", format_args!("\"{stop}\""));
        }
        start
    }

    /// What the engine must be, or have, for this algorithm; none if it can run it.
    fn lacks(&self, cc: &Algorithm) -> Option<String> {
        let name = cc.0.name;
        let runs_kernel = matches!(self.engine, Engine::Linux | Engine::Kernel);
        if linux::find(name).is_some() {
            let simulated = format!("{}{name}", if name.contains(':') { "" } else { linux::PREFIX });
            return match self.engine {
                _ if runs_kernel => None,
                Engine::Sim if registered::find(name).is_some() => None,
                Engine::Sim => {
                    Some(format!("engine = \"kernel\" or \"linux\", or \"{simulated}\" of an {IMPORTED}"))
                }
                _ => Some(format!("engine = \"kernel\" or \"linux\" with Linux's own algorithm \"{name}\"")),
            };
        }
        let runs = match self.engine {
            Engine::Sim => true,
            Engine::Linux => name.starts_with(registered::BPF),
            Engine::Kernel | Engine::Model => false,
        };
        (registered::is_foreign(name) && !runs).then(|| {
            let also = if name.starts_with(registered::BPF) { " or \"linux\"" } else { "" };
            format!("engine = \"sim\"{also} with \"{}\"", registered::short(name))
        })
    }

    /// The scenario's `tcp`, with what the flow changes of it. What the name of an algorithm implies holds unless the
    /// file says otherwise. Algorithms that are not Elephan's own need an engine that can run them.
    pub(crate) fn stack(
        &self,
        cc: &Algorithm,
        own: &Map<String, Value>,
        key: &str,
        network: &mut Network,
    ) -> Option<Config> {
        if let Some(expected) = self.lacks(cc) {
            network.wrong(format!("{key}.cc"), expected, self.engine);
        }
        let key = if own.is_empty() { "tcp".to_owned() } else { format!("{key}.tcp") };
        let table = network.note_once(self.stack_table(cc.implies(), own, &key))?;
        match network.note_once(typed::<Config>(Value::Object(table), &key)) {
            Some(config) => {
                for mistake in config.mistakes().into_iter().chain(cc.refuses(&config)) {
                    let mistake = mistake.below(&key);
                    if !network.mistakes.contains(&mistake) {
                        network.mistakes.push(mistake);
                    }
                }
                Some(config)
            }
            None => None,
        }
    }

    /// Every key of the stack that the scenario's `tcp` or a flow's own sets, directly or by its profile, or that the name of
    /// an algorithm `implies`; `key` is what errors call it.
    pub(crate) fn stack_table(
        &self,
        implies: &[(&'static str, &'static str)],
        own: &Map<String, Value>,
        key: &str,
    ) -> Result<Map<String, Value>, Mistake> {
        let mut set = self.tcp.clone();
        set.extend(own.clone());
        let mut table = Map::new();
        if let Some(profile) = set.get("profile") {
            let profile: Profile = typed(profile.clone(), &format!("{key}.profile"))?;
            if let Ok(Value::Object(all)) = serde_json::to_value(profile.config()) {
                table = all;
            }
        }
        for &(key, word) in implies {
            table.insert(key.to_owned(), word.into());
        }
        for (name, value) in set {
            match (table.get_mut(&name), value) {
                // The file may set some keys of a profile's table.
                (Some(Value::Object(whole)), Value::Object(part)) if name == "delayed_ack" => {
                    whole.extend(part);
                }
                (_, value) => {
                    table.insert(name, value);
                }
            }
        }
        Ok(table)
    }

    // ---- Measuring ----

    fn measure(
        &self,
        flows: &[Flow],
        crowds: &[Crowd],
        streams: &[Stream],
        network: &mut Network,
    ) -> Measure {
        let crowds = crowds.iter().map(|crowd| &crowd.flow);
        let starts = flows
            .iter()
            .chain(crowds)
            .map(|flow| flow.start)
            .chain(streams.iter().map(|stream| stream.start));
        let latest = starts.map(|start| start.latest()).max().unwrap_or(Time::ZERO);
        let from = self.measure.from.unwrap_or(latest);
        let to = self.measure.to.unwrap_or(self.duration);
        if to > self.duration {
            let expected = format!("a time up to the end at \"{}\"", self.duration);
            network.wrong("measure.to", expected, format_args!("\"{to}\""));
        } else if from >= to {
            network.wrong("measure.from", format_args!("a time before \"{to}\""), format_args!("\"{from}\""));
        }
        let interval = self.measure.interval.unwrap_or((to.since(from) / 20).min(Time::from_secs(1)));
        if interval == Time::ZERO || interval > to.since(from) && from < to {
            let expected = "a time above zero, within the measuring window";
            network.wrong("measure.interval", expected, format_args!("\"{interval}\""));
        }
        Measure { from, to, interval }
    }
}

/// What a flow sends, of whose stack full segments have `mss` bytes.
fn demand(file: &FlowFile, key: &str, mss: u32, network: &mut Network) -> Option<Demand> {
    let below = |name: &str| format!("{key}.{name}");
    match (file.size, file.transfers, &file.app) {
        (None, None, None) => Some(Demand::Unlimited),
        (None, None, Some(file)) => app::app(file, &below("app"), mss, network).map(Demand::App),
        (Some(_), _, Some(_)) => {
            network.wrong(below("size"), "none with app, which writes until the flow stops", "one");
            None
        }
        (None, Some(_), Some(_)) => {
            network.wrong(below("transfers"), "none with app, which has one connection", "one");
            None
        }
        (None, Some(_), None) => {
            network.wrong(below("size"), "the size of a transfer", "nothing");
            None
        }
        (Some(size), transfers, None) => {
            if size == Bytes::ZERO {
                network.wrong(below("size"), "a size above zero", "\"0 B\"");
            }
            let count = match transfers {
                None => Some(1),
                Some(Transfers::Count(count)) => Some(count),
                Some(Transfers::Repeat) => None,
            };
            if count == Some(0) {
                network.wrong(below("transfers"), "1 or more", "0");
            }
            Some(Demand::Transfers { size, count })
        }
    }
}

/// The slowest of the links that most flows cross with their data.
fn bottleneck(network: &Network, flows: &[Flow], crowds: &[Crowd], streams: &[Stream]) -> u32 {
    let mut crossings = vec![0u64; network.links.len()];
    let crowds = crowds.iter().map(|crowd| &crowd.flow);
    let streams = streams.iter().map(|stream| stream.forward);
    let routes = flows.iter().chain(crowds).map(|flow| flow.forward).chain(streams);
    for route in routes {
        for &link in &network.routes[route as usize] {
            crossings[link as usize] += 1;
        }
    }
    let rate = |link: usize| network.links[link].config.rate.map_or(u64::MAX, Rate::bits_per_sec);
    (0..network.links.len())
        .filter(|&link| rate(link) < u64::MAX)
        .max_by_key(|&link| (crossings[link], std::cmp::Reverse(rate(link)), std::cmp::Reverse(link)))
        .unwrap_or(0) as u32
}
