//! Where flows go: the dumbbell or the links of the file, and routes over them.

use std::collections::BTreeMap;

use elephan_net::{Delay, Limit, LinkConfig, Loss, Queue};
use elephan_units::{Bytes, Rate, Time};
use serde_json::Value;

use super::network::Network;
use super::routes::{Edge, shortest};
use crate::buffer::Buffer;
use crate::document::positive;
use crate::file::{LinkFile, Path, Place, Scenario};

/// Sequence numbers have 32 bits: they cannot distinguish more segments than that on any path.
const MOST_IN_FLIGHT: u64 = 1 << 32;

/// The links that flows cross.
pub(crate) enum Topology<'a> {
    Dumbbell(Dumbbell<'a>),
    /// The ends of each link.
    Links(Vec<(String, String)>),
}

pub(crate) struct Dumbbell<'a> {
    path: &'a Path,
    /// Propagation that all flows share, there and back.
    shared: Time,
    right: u32,
    left: u32,
    /// Flows of equal delay share their access, which only delays, unless hosts have a rate.
    access: BTreeMap<Time, [u32; 2]>,
}

impl<'a> Topology<'a> {
    /// The links of a scenario; none where it has no path and no links, or both.
    pub fn new(scenario: &'a Scenario, network: &mut Network) -> Option<Self> {
        let packet = scenario.packet_bytes();
        match (&scenario.path, scenario.link.is_empty()) {
            (Some(path), true) => {
                positive(&mut network.mistakes, "path.rtt", path.rtt);
                let shared = scenario.rtts().map(|rtt| rtt.unwrap_or(path.rtt)).min().unwrap_or(path.rtt);
                Some(Self::Dumbbell(Dumbbell::new(path, shared, packet, network)))
            }
            (None, false) => Some(Self::Links(links(&scenario.link, packet, network))),
            (Some(_), false) => {
                network.wrong("path", "either path or link", "both");
                None
            }
            (None, true) => {
                network.wrong("path", "either path or link", "neither");
                None
            }
        }
    }

    /// Whether senders have links of their own, whose rate is that of their device. With the links of a file this is what it says.
    pub fn has_devices(&self) -> bool {
        match self {
            Self::Dumbbell(dumbbell) => dumbbell.path.access_rate.is_some(),
            Self::Links(_) => true,
        }
    }

    /// Finds `count` ways alike: their round-trip time without queueing, and of each the routes of data and of acknowledgments.
    /// `name` is what the n-th of them is called.
    pub fn place(
        &mut self,
        place: &Place<'_>,
        count: u64,
        key: &str,
        name: impl Fn(u64) -> String,
        network: &mut Network,
    ) -> Option<(Time, Vec<[u32; 2]>)> {
        match self {
            Self::Dumbbell(dumbbell) => Some(dumbbell.place(place, count, key, name, network)),
            Self::Links(ends) => find(ends, place, key, network)
                .map(|(rtt, route)| (rtt, std::iter::repeat_n(route, count as usize).collect())),
        }
    }
}

impl Scenario {
    fn packet_bytes(&self) -> u64 {
        self.tcp
            .get("packet")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Bytes>().ok())
            .map_or(1500, |bytes| bytes.get().max(1))
    }

    /// The round-trip times that the file's flows of all kinds have of their own.
    fn rtts(&self) -> impl Iterator<Item = Option<Time>> {
        let streams = self.stream_files().map(|(_, file)| file.common().place.rtt);
        let crowds = self.crowd_files().map(|(_, file)| file.common().place.rtt);
        self.flow.iter().map(|flow| flow.rtt).chain(crowds).chain(streams)
    }
}

// ---- The dumbbell ----

impl<'a> Dumbbell<'a> {
    /// The bottleneck has the propagation that all flows share; what a flow has more is its own.
    fn new(path: &'a Path, shared: Time, packet: u64, network: &mut Network) -> Self {
        let side = |buffer: Buffer, rate: Rate, queue: &Queue, (loss, vary, ecn)| LinkConfig {
            rate: Some(rate),
            delay: shared / 2,
            limit: limit(buffer, rate, path.rtt, packet),
            queue: queue.clone(),
            police: Vec::new(),
            loss,
            vary,
            ecn,
            schedule: None,
            changes: false,
        };
        let mut data = side(path.buffer, path.rate, &path.queue, (path.loss, path.vary, path.ecn));
        data.police.clone_from(&path.police);
        let reverse = &path.reverse;
        let acks = side(
            reverse.buffer.unwrap_or(path.buffer),
            reverse.rate.unwrap_or(path.rate),
            &reverse.queue,
            (reverse.loss, reverse.vary, reverse.ecn),
        );
        check_link(network, "path", &data, path.buffer, path.rtt, packet);
        check_link(network, "path.reverse", &acks, reverse.buffer.unwrap_or(path.buffer), path.rtt, packet);
        if path.access_rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
            network.wrong("path.access_rate", "a rate above zero", "\"0 bit/s\"");
        }
        let right = network.link("bottleneck", data);
        let left = network.link("bottleneck.reverse", acks);
        Self { path, shared, right, left, access: BTreeMap::new() }
    }

    fn place(
        &mut self,
        place: &Place<'_>,
        count: u64,
        key: &str,
        name: impl Fn(u64) -> String,
        network: &mut Network,
    ) -> (Time, Vec<[u32; 2]>) {
        let rtt = place.rtt.unwrap_or(self.path.rtt);
        positive(&mut network.mistakes, &format!("{key}.rtt"), rtt);
        for (end, value) in [("from", place.from), ("to", place.to)] {
            if let Some(node) = value {
                network.wrong(format!("{key}.{end}"), "no node on a path", format_args!("\"{node}\""));
            }
        }
        let (there, back) = if place.reverse { (self.left, self.right) } else { (self.right, self.left) };
        let extra = rtt.since(self.shared) / 2;
        let routes = (0..count).map(|number| match self.path.access_rate {
            Some(rate) => hosts(network, &name(number), rate, extra, there, back),
            None if extra == Time::ZERO => [network.route(vec![there]), network.route(vec![back])],
            None => {
                let [out, home] = *self.access.entry(extra).or_insert_with(|| {
                    ["out", "home"]
                        .map(|way| network.link(format!("access {rtt} {way}"), LinkConfig::delay_only(extra)))
                });
                [network.route(vec![out, there]), network.route(vec![back, home])]
            }
        });
        (rtt, routes.collect())
    }
}

// ---- The links of a file ----

/// Makes the links of a file; gives the ends of each.
fn links(files: &[LinkFile], packet: u64, network: &mut Network) -> Vec<(String, String)> {
    let mut ends: Vec<(String, String)> = Vec::new();
    for (number, link) in files.iter().enumerate() {
        let key = format!("link.{number}");
        if files[..number].iter().any(|other| other.name == link.name) {
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
        network.link(link.name.clone(), config.clone());
        ends.push((link.from.clone(), link.to.clone()));
        if link.both_ways {
            let police = Vec::new();
            let config =
                LinkConfig { queue: Queue::default(), police, loss: None, vary: None, ecn: None, ..config };
            network.link(format!("{}.reverse", link.name), config);
            ends.push((link.to.clone(), link.from.clone()));
        }
    }
    ends
}

/// The shortest way from one node to another and back: its round-trip time, and both routes.
fn find(
    ends: &[(String, String)],
    place: &Place<'_>,
    key: &str,
    network: &mut Network,
) -> Option<(Time, [u32; 2])> {
    let (Some(from), Some(to)) = (place.from, place.to) else {
        network.wrong(format!("{key}.from"), "the nodes from and to", "a flow without them");
        return None;
    };
    if place.rtt.is_some() || place.reverse {
        network.wrong(key, "no rtt and no reverse: links have the delays", "a flow with them");
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
        return None;
    };
    if there.is_empty() || there.len() > 250 {
        network.wrong(key, "a way of 1 to 250 links", format_args!("{}", there.len()));
        return None;
    }
    let delay = |route: &[u32]| {
        route
            .iter()
            .fold(Time::ZERO, |sum, &link| sum.saturating_add(network.links[link as usize].config.delay))
    };
    let rtt = delay(&there).saturating_add(delay(&back));
    Some((rtt, [network.route(there), network.route(back)]))
}

// ---- The numbers of a link ----

/// Links of a sender and a receiver of its own, in both directions, around the bottleneck; their queues are unlimited, as a
/// host does not drop what its own TCP sends.
fn hosts(network: &mut Network, name: &str, rate: Rate, extra: Time, there: u32, back: u32) -> [u32; 2] {
    let config = LinkConfig { rate: Some(rate), ..LinkConfig::delay_only(Time::ZERO) };
    let far = LinkConfig { delay: extra, ..config.clone() };
    let ends =
        [("sender out", &far), ("receiver in", &config), ("receiver out", &config), ("sender in", &far)];
    let [a, b, c, d] = ends.map(|(end, config)| network.link(format!("{name} {end}"), config.clone()));
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
        queue: link.queue.clone(),
        police: link.police.clone(),
        loss: link.loss,
        vary: link.vary,
        ecn: link.ecn,
        schedule: None,
        changes: false,
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
        let classes = link.queue.class_names().len() as u64;
        if queued > 0 && queued < classes {
            let expected = format!("room for at least one packet of each of {classes} classes");
            network.wrong(below("buffer"), expected, format_args!("\"{buffer}\", which holds {queued}"));
        }
        let flying = rate.bytes_in(rtt).get() / packet;
        if flying.saturating_add(queued) > MOST_IN_FLIGHT {
            let found = format!("{flying} on the path and {queued} in the buffer");
            network.wrong(below("rate"), "at most 2^32 packets in flight", found);
        }
    }
    for mistake in link.queue.mistakes() {
        network.wrong(below(&format!("queue.{}", mistake.key)), mistake.expected, mistake.found);
    }
    if link.rate.is_none() && link.queue != Queue::default() {
        network.wrong(below("queue"), "a rate, before which packets could wait", "a link without one");
    }
    for (number, policer) in link.police.iter().enumerate() {
        for mistake in policer.mistakes() {
            network.wrong(
                below(&format!("police.{number}.{}", mistake.key)),
                mistake.expected,
                mistake.found,
            );
        }
    }
    if let Some(loss) = link.loss {
        check_loss(network, key, loss);
    }
    match link.vary {
        Some(Delay::Reorder { probability, .. }) => {
            check_probability(network, below("vary.probability"), probability);
        }
        Some(Delay::Aggregate { slot }) => positive(&mut network.mistakes, &below("vary.slot"), slot),
        Some(Delay::HeavyTail { median, shape }) => {
            positive(&mut network.mistakes, &below("vary.median"), median);
            if !(shape > 1.0 && shape.is_finite()) {
                network.wrong(below("vary.shape"), "a number above 1, with which the mean is finite", shape);
            }
        }
        Some(Delay::Jitter { .. }) | None => {}
    }
}

/// Refuses losses that cannot be.
pub(crate) fn check_loss(network: &mut Network, key: &str, loss: Loss) {
    let below = |name: &str| format!("{key}.loss.{name}");
    match loss {
        Loss::Random { probability } => check_probability(network, below("probability"), probability),
        Loss::Periodic { every: 0 } => network.wrong(below("every"), "1 or more", "0"),
        Loss::Periodic { .. } => {}
        Loss::GilbertElliott { p, r, loss_bad, loss_good } => {
            for (name, value) in [("p", p), ("r", r), ("loss_bad", loss_bad), ("loss_good", loss_good)] {
                check_probability(network, below(name), value);
            }
        }
    }
}

fn check_probability(network: &mut Network, key: String, value: f64) {
    if !(0.0..=1.0).contains(&value) {
        network.wrong(key, "a probability from 0 to 1", value);
    }
}
