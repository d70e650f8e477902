//! From the file to a plan; and everything that cannot work is refused here.

use std::collections::BTreeMap;

use elephan_net::{Delay, Limit, LinkConfig, Loss, Queue};
use elephan_tcp::{Config, Recovery};
use elephan_traffic::{Demand, Start};
use elephan_units::{Bytes, Rate, Seed, Time};
use serde_json::Value;

use crate::document::{self, positive};
use crate::error::{Error, Mistake};
use crate::file::{Buffer, FlowFile, LinkFile, Path, Scenario, StartFile, Transfers};
use crate::plan::{Flow, Link, Measure, Plan, Trace};
use crate::routes::{Edge, shortest};

/// The clock ends after 213 days; a run of 200 leaves room for timers.
const LONGEST: Time = Time::from_secs(200 * 86_400);
/// Sequence numbers have 32 bits: more segments than that cannot be told apart on any path.
const MOST_IN_FLIGHT: u64 = 1 << 32;
/// More flows than that do not fit into any memory that we know.
const MOST_FLOWS: u64 = 10_000_000;

/// The links and routes of a plan while it grows.
#[derive(Default)]
struct Network {
    links: Vec<Link>,
    routes: Vec<Vec<u32>>,
    known_routes: BTreeMap<Vec<u32>, u32>,
    mistakes: Vec<Mistake>,
}

impl Network {
    fn wrong(
        &mut self,
        key: impl Into<String>,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) {
        self.mistakes.push(Mistake::new(key, expected, found));
    }

    fn link(&mut self, name: impl Into<String>, config: LinkConfig) -> u32 {
        self.links.push(Link { name: name.into(), config });
        self.links.len() as u32 - 1
    }

    fn route(&mut self, links: Vec<u32>) -> u32 {
        let next = self.routes.len() as u32;
        let number = *self.known_routes.entry(links.clone()).or_insert(next);
        if number == next {
            self.routes.push(links);
        }
        number
    }
}

impl Scenario {
    /// Resolves the scenario, or says what cannot work; `file` is what errors call it.
    pub fn resolve(&self, file: &str) -> Result<Plan, Error> {
        let mut network = Network::default();
        let flows = self.flows(&mut network);
        if self.duration > LONGEST {
            network.wrong("duration", "at most 200 days", format_args!("\"{}\"", self.duration));
        }
        positive(&mut network.mistakes, "duration", self.duration);
        positive(&mut network.mistakes, "trace.interval", self.trace.interval);
        let measure = self.measure(&flows, &mut network);
        for name in &self.trace.pcap {
            if !network.links.iter().any(|link| link.name == *name) {
                let names: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).take(20).collect();
                let expected = format!("one of the links {}", names.join(", "));
                network.wrong("trace.pcap", expected, format_args!("\"{name}\""));
            }
        }
        if !network.mistakes.is_empty() {
            return Err(Error { file: file.to_owned(), mistakes: network.mistakes });
        }
        let trace =
            Trace { interval: self.trace.interval, events: self.trace.events, pcap: self.trace.pcap.clone() };
        Ok(Plan {
            seed: Seed::new(self.seed),
            duration: self.duration,
            bottleneck: bottleneck(&network, &flows),
            links: network.links,
            routes: network.routes,
            flows,
            measure,
            trace,
        })
    }

    fn flows(&self, network: &mut Network) -> Vec<Flow> {
        let total: u64 = self.flow.iter().map(|flow| flow.count).fold(0, u64::saturating_add);
        if total == 0 || total > MOST_FLOWS {
            let expected = format!("from 1 to {MOST_FLOWS} flows");
            network.wrong("flow", expected, format_args!("{total}"));
            return Vec::new();
        }
        match (&self.path, self.link.is_empty()) {
            (Some(path), true) => self.dumbbell(path, network),
            (None, false) => self.topology(network),
            (Some(_), false) => {
                network.wrong("path", "either path or link", "both");
                Vec::new()
            }
            (None, true) => {
                network.wrong("path", "either path or link", "neither");
                Vec::new()
            }
        }
    }

    // ---- The dumbbell ----

    fn dumbbell(&self, path: &Path, network: &mut Network) -> Vec<Flow> {
        positive(&mut network.mistakes, "path.rtt", path.rtt);
        let rtts: Vec<Time> = self.flow.iter().map(|flow| flow.rtt.unwrap_or(path.rtt)).collect();
        // The bottleneck has the propagation that all flows share; what a flow has more is its own.
        let shared = rtts.iter().copied().min().unwrap_or(path.rtt);
        let packet = self.packet_bytes();
        let side = |buffer: Buffer, rate: Rate, queue, loss, vary| LinkConfig {
            rate: Some(rate),
            delay: shared / 2,
            limit: limit(buffer, rate, path.rtt, packet),
            queue,
            loss,
            vary,
        };
        let data = side(path.buffer, path.rate, path.queue, path.loss, path.vary);
        let reverse = &path.reverse;
        let acks = side(
            reverse.buffer.unwrap_or(path.buffer),
            reverse.rate.unwrap_or(path.rate),
            reverse.queue,
            reverse.loss,
            reverse.vary,
        );
        check_link(network, "path", &data, path.buffer, path.rtt, packet);
        check_link(network, "path.reverse", &acks, reverse.buffer.unwrap_or(path.buffer), path.rtt, packet);
        if path.access_rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
            network.wrong("path.access_rate", "a rate above zero", "\"0 bit/s\"");
        }
        let right = network.link("bottleneck", data);
        let left = network.link("bottleneck.reverse", acks);
        let mut flows = Vec::new();
        // Flows of equal delay share their access, which is nothing but delay, unless hosts have a rate.
        let mut shared_access: BTreeMap<Time, [u32; 2]> = BTreeMap::new();
        for (number, (file, rtt)) in self.flow.iter().zip(rtts).enumerate() {
            let key = format!("flow.{number}");
            positive(&mut network.mistakes, &format!("{key}.rtt"), rtt);
            for (name, value) in [("from", &file.from), ("to", &file.to)] {
                if let Some(node) = value {
                    network.wrong(format!("{key}.{name}"), "no node on a path", format_args!("\"{node}\""));
                }
            }
            let Some(made) = self.flow(file, &key, rtt, network) else { continue };
            let (there, back) = if file.reverse { (left, right) } else { (right, left) };
            let extra = rtt.since(shared) / 2;
            for _ in 0..file.count {
                let [forward, reverse] = match path.access_rate {
                    Some(rate) => hosts(network, flows.len(), rate, extra, there, back),
                    None if extra == Time::ZERO => [network.route(vec![there]), network.route(vec![back])],
                    None => {
                        let [out, home] = *shared_access.entry(extra).or_insert_with(|| {
                            ["out", "home"]
                                .map(|way| network.link(format!("access {rtt} {way}"), delay_only(extra)))
                        });
                        [network.route(vec![out, there]), network.route(vec![back, home])]
                    }
                };
                flows.push(Flow { forward, reverse, ..made.clone() });
            }
        }
        flows
    }

    fn packet_bytes(&self) -> u64 {
        self.tcp
            .get("packet")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Bytes>().ok())
            .map_or(1500, |bytes| bytes.get().max(1))
    }

    // ---- Any topology ----

    fn topology(&self, network: &mut Network) -> Vec<Flow> {
        let packet = self.packet_bytes();
        let mut ends: Vec<(String, String)> = Vec::new();
        for (number, link) in self.link.iter().enumerate() {
            let key = format!("link.{number}");
            if self.link[..number].iter().any(|other| other.name == link.name) {
                network.wrong(
                    format!("{key}.name"),
                    "a name of its own",
                    format_args!("\"{}\" again", link.name),
                );
            }
            if link.from == link.to {
                network.wrong(format!("{key}.to"), "another node", format_args!("\"{}\" again", link.to));
            }
            let config = link_config(link, packet);
            check_link(network, &key, &config, link.buffer, link.delay * 2, packet);
            network.link(link.name.clone(), config);
            ends.push((link.from.clone(), link.to.clone()));
            if link.both_ways {
                let config = LinkConfig { queue: Queue::DropTail, loss: None, vary: None, ..config };
                network.link(format!("{}.reverse", link.name), config);
                ends.push((link.to.clone(), link.from.clone()));
            }
        }
        let mut flows = Vec::new();
        for (number, file) in self.flow.iter().enumerate() {
            let key = format!("flow.{number}");
            let (Some(from), Some(to)) = (&file.from, &file.to) else {
                network.wrong(format!("{key}.from"), "the nodes from and to", "a flow without them");
                continue;
            };
            if file.rtt.is_some() || file.reverse {
                network.wrong(
                    key.clone(),
                    "no rtt and no reverse: links have the delays",
                    "a flow with them",
                );
            }
            let edges: Vec<Edge<'_>> = ends
                .iter()
                .zip(&network.links)
                .map(|((from, to), link)| Edge { from, to, delay: link.config.delay })
                .collect();
            let ways = [shortest(&edges, from, to), shortest(&edges, to, from)];
            let [Some(there), Some(back)] = ways else {
                let expected = "a way there and back over the links";
                network.wrong(key, expected, format_args!("none between \"{from}\" and \"{to}\""));
                continue;
            };
            if there.is_empty() || there.len() > 250 {
                network.wrong(key, "a way of 1 to 250 links", format_args!("{}", there.len()));
                continue;
            }
            let delay = |route: &[u32]| {
                route.iter().fold(Time::ZERO, |sum, &link| {
                    sum.saturating_add(network.links[link as usize].config.delay)
                })
            };
            let rtt = delay(&there).saturating_add(delay(&back));
            let (forward, reverse) = (network.route(there), network.route(back));
            let Some(made) = self.flow(file, &key, rtt, network) else { continue };
            flows.extend(std::iter::repeat_n(Flow { forward, reverse, ..made }, file.count as usize));
        }
        flows
    }

    // ---- Flows ----

    /// A flow without its routes.
    fn flow(&self, file: &FlowFile, key: &str, rtt: Time, network: &mut Network) -> Option<Flow> {
        let tcp = self.stack(file, key, network)?;
        let start = match file.start {
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
        if let Some(stop) = file.stop
            && stop <= start.latest()
        {
            network.wrong(format!("{key}.stop"), "a time after the start", format_args!("\"{stop}\""));
        }
        let demand = match (file.size, file.transfers) {
            (None, None) => Demand::Unlimited,
            (None, Some(_)) => {
                network.wrong(format!("{key}.size"), "the size of a transfer", "nothing");
                return None;
            }
            (Some(size), transfers) => {
                if size == Bytes::ZERO {
                    network.wrong(format!("{key}.size"), "a size above zero", "\"0 B\"");
                }
                let count = match transfers {
                    None => Some(1),
                    Some(Transfers::Count(count)) => Some(count),
                    Some(Transfers::Repeat) => None,
                };
                if count == Some(0) {
                    network.wrong(format!("{key}.transfers"), "1 or more", "0");
                }
                Demand::Transfers { size, count }
            }
        };
        Some(Flow {
            label: file.label.clone().unwrap_or_else(|| file.cc.0.name.clone()),
            cc: file.cc.0.clone(),
            slow_start: file.slow_start.0.clone(),
            tcp,
            forward: 0,
            reverse: 0,
            rtt,
            start,
            stop: file.stop,
            demand,
        })
    }

    /// The scenario's `tcp`, with what the flow changes of it. The names of Standard TCP that speak of a recovery choose it,
    /// unless the file does.
    fn stack(&self, file: &FlowFile, key: &str, network: &mut Network) -> Option<Config> {
        let mut table = self.tcp.clone();
        table.extend(file.tcp.clone());
        let implied = match file.cc.0.name.as_str() {
            "tahoe" => Some(Recovery::Tahoe),
            "newreno" => Some(Recovery::NewReno),
            "sack" => Some(Recovery::Sack),
            _ => None,
        };
        let says_so = table.contains_key("recovery");
        let key = if file.tcp.is_empty() { "tcp".to_owned() } else { format!("{key}.tcp") };
        match document::typed::<Config>(Value::Object(table), &key) {
            Ok(mut config) => {
                if let Some(recovery) = implied.filter(|_| !says_so) {
                    config.recovery = recovery;
                }
                for (name, expected, found) in config.mistakes() {
                    let mistake = Mistake::new(format!("{key}.{name}"), expected, found);
                    if !network.mistakes.contains(&mistake) {
                        network.mistakes.push(mistake);
                    }
                }
                Some(config)
            }
            Err(mistake) => {
                if !network.mistakes.contains(&mistake) {
                    network.mistakes.push(mistake);
                }
                None
            }
        }
    }

    // ---- Measuring ----

    fn measure(&self, flows: &[Flow], network: &mut Network) -> Measure {
        let latest = flows.iter().map(|flow| flow.start.latest()).max().unwrap_or(Time::ZERO);
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

/// A way of nothing but delay.
fn delay_only(delay: Time) -> LinkConfig {
    let limit = Limit::Packets(u64::MAX);
    LinkConfig { rate: None, delay, limit, queue: Queue::DropTail, loss: None, vary: None }
}

/// Links of a sender and a receiver of its own, in both directions, around the bottleneck; their queues are unlimited, as a
/// host does not drop what its own TCP sends.
fn hosts(network: &mut Network, number: usize, rate: Rate, extra: Time, there: u32, back: u32) -> [u32; 2] {
    let config = LinkConfig { rate: Some(rate), ..delay_only(Time::ZERO) };
    let far = LinkConfig { delay: extra, ..config };
    let [a, b, c, d] =
        [("sender out", far), ("receiver in", config), ("receiver out", config), ("sender in", far)]
            .map(|(name, config)| network.link(format!("flow {number} {name}"), config));
    [network.route(vec![a, there, b]), network.route(vec![c, back, d])]
}

fn link_config(link: &LinkFile, packet: u64) -> LinkConfig {
    let limit = match link.rate {
        Some(rate) => limit(link.buffer, rate, link.delay * 2, packet),
        None => Limit::Packets(u64::MAX),
    };
    LinkConfig {
        rate: link.rate,
        delay: link.delay,
        limit,
        queue: link.queue,
        loss: link.loss,
        vary: link.vary,
    }
}

/// What a buffer is on a path: a share of the bandwidth-delay product is cut to whole packets, as the thesis does (20 % of
/// 13.3 packets are 2).
fn limit(buffer: Buffer, rate: Rate, rtt: Time, packet: u64) -> Limit {
    match buffer {
        Buffer::BdpShare(share) => {
            let packets = share * rate.bytes_in(rtt).get() as f64 / packet as f64;
            // Half a millionth of a packet makes up for the rounding of "20%".
            Limit::Packets((packets + 5e-7) as u64)
        }
        Buffer::Packets(packets) => Limit::Packets(packets),
        Buffer::Bytes(bytes) => Limit::from(bytes),
    }
}

fn check_link(network: &mut Network, key: &str, link: &LinkConfig, buffer: Buffer, rtt: Time, packet: u64) {
    let below = |name: &str| format!("{key}.{name}");
    if let Some(rate) = link.rate {
        if rate.bits_per_sec() == 0 {
            network.wrong(below("rate"), "a rate above zero", "\"0 bit/s\"");
        }
        let queued = match link.limit {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => bytes / packet,
        };
        if queued == 0 {
            let expected = "room for at least one packet";
            network.wrong(below("buffer"), expected, format_args!("\"{buffer}\", which holds none"));
        }
        let flying = rate.bytes_in(rtt).get() / packet;
        if flying.saturating_add(queued) > MOST_IN_FLIGHT {
            let found = format!("{flying} on the path and {queued} in the buffer");
            network.wrong(below("rate"), "at most 2^32 packets in flight", found);
        }
    }
    let probability = |network: &mut Network, name: &str, value: f64| {
        if !(0.0..=1.0).contains(&value) {
            network.wrong(below(name), "a probability from 0 to 1", value);
        }
    };
    match link.loss {
        Some(Loss::Random { probability: p }) => probability(network, "loss.probability", p),
        Some(Loss::Periodic { every: 0 }) => network.wrong(below("loss.every"), "1 or more", "0"),
        Some(Loss::GilbertElliott { p, r, loss_bad, loss_good }) => {
            let all =
                [("loss.p", p), ("loss.r", r), ("loss.loss_bad", loss_bad), ("loss.loss_good", loss_good)];
            for (name, value) in all {
                probability(network, name, value);
            }
        }
        Some(Loss::Periodic { .. }) | None => {}
    }
    if let Some(Delay::Reorder { probability: p, .. }) = link.vary {
        probability(network, "vary.probability", p);
    }
}

/// The slowest of the links that most flows cross with their data.
fn bottleneck(network: &Network, flows: &[Flow]) -> u32 {
    let mut crossings = vec![0u64; network.links.len()];
    for flow in flows {
        for &link in &network.routes[flow.forward as usize] {
            crossings[link as usize] += 1;
        }
    }
    let rate = |link: usize| network.links[link].config.rate.map_or(u64::MAX, Rate::bits_per_sec);
    (0..network.links.len())
        .filter(|&link| rate(link) < u64::MAX)
        .max_by_key(|&link| (crossings[link], std::cmp::Reverse(rate(link)), std::cmp::Reverse(link)))
        .unwrap_or(0) as u32
}
