//! The sites of a plan: what advances together.

use std::collections::BTreeMap;
use std::ops::Range;

use elephan_net::Schedule;
use elephan_scenario::Plan;
use elephan_scenario::plan::{Flow, Members, Trace};
use elephan_traffic::Demand;
use elephan_units::{Rate, Time};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

/// A delay in which the bottleneck can carry fewer packets than this is not worth a round of its own.
const PACKETS_IN_A_ROUND: u64 = 16;
/// Packets of this size are assumed for it, in bits.
const PACKET_BITS: u64 = 1500 * 8;
/// With more sites than this, those that are alike are one: a few large sites then cost less than many small ones.
const MANY_SITES: usize = 128;
/// At this rate the smallest packet, of 320 bits, still takes more than a picosecond.
const FASTEST: u64 = 100_000_000_000_000;

/// The sites of a plan. A site consists of ends of links, and of the ends of connections there.
///
/// What happens at a site acts on another only by a link, or when a connection closes. Most links have a delay of
/// at least the `lookahead`: within this time, sites can advance separately. Other links, and connections, lead
/// only to sites of later groups, which advance after those before have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The sites of each link's near and far end.
    pub ends: Vec<[u32; 2]>,
    /// Number of sites.
    pub sites: u32,
    /// The time by which all can advance together; `Time::MAX` if nothing limits it.
    pub lookahead: Time,
    /// The sites, in groups: those of a group advance after those of the groups before, in any order.
    pub groups: Vec<Range<usize>>,
}

impl Partition {
    /// The whole plan as one site.
    pub fn whole(plan: &Plan) -> Self {
        let all = Range { start: 0, end: 1 };
        Self { ends: vec![[0; 2]; plan.links.len()], sites: 1, lookahead: Time::MAX, groups: vec![all] }
    }

    /// As many sites as are worthwhile.
    ///
    /// Events, captures and variables are recorded in the order of time, so such a plan is one site.
    pub fn of(plan: &Plan) -> Self {
        if is_detailed(plan) || plan.links.is_empty() {
            return Self::whole(plan);
        }
        let delays = least_delays(plan);
        let shortest = shortest_round(plan);
        let is_short = |link: usize| delays[link] < shortest;
        let mut places = Places::new(plan, &delays);
        for link in 0..plan.links.len() {
            if is_short(link) {
                places.follows([2 * link, 2 * link + 1]);
            }
        }
        let (sites, levels) = places.sites();
        let ends: Vec<[u32; 2]> = sites.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        let between = ends.iter().enumerate().filter(|&(link, [near, far])| near != far && !is_short(link));
        let lookahead = between.map(|(link, _)| delays[link]).min().unwrap_or(Time::MAX);
        let mut groups = Vec::new();
        let mut first = 0;
        for group in levels.chunk_by(|a, b| a == b) {
            groups.push(first..first + group.len());
            first += group.len();
        }
        Self { ends, sites: levels.len() as u32, lookahead, groups }
    }
}

/// Whether what happens in a run is recorded in the order of time, packet by packet.
pub fn is_detailed(plan: &Plan) -> bool {
    let Trace { events, variables, pcap, .. } = &plan.trace;
    *events || *variables || !pcap.is_empty()
}

/// The least delay between sites that is worthwhile; above zero.
fn shortest_round(plan: &Plan) -> Time {
    let rate = plan.links[plan.bottleneck as usize].config.rate;
    let picos = rate.map_or(0, |rate| {
        u128::from(PACKETS_IN_A_ROUND * PACKET_BITS) * 1_000_000_000_000
            / u128::from(rate.bits_per_sec().max(1))
    });
    Time::from_picos(u64::try_from(picos).unwrap_or(u64::MAX).max(1))
}

/// The least propagation delay of each link over the run.
fn least_delays(plan: &Plan) -> Vec<Time> {
    let links = (0u32..).zip(&plan.links);
    links.map(|(number, link)| plan.new_delays(number).fold(link.config.delay, Ord::min)).collect()
}

/// Whether connections of a flow can close: then the sending end removes the receiving end at once.
fn closes(flow: &Flow) -> bool {
    flow.stop.is_some() || flow.demand != Demand::Unlimited
}

/// The flows of a plan and of its crowds.
fn flows(plan: &Plan) -> impl Iterator<Item = &Flow> {
    plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow))
}

/// The places of ends of links, and their order within a round. The near end of link `n` is number `2 n`, its far
/// end `2 n + 1`.
struct Places {
    /// An edge leads to what advances after it; ends in one place lead to each other.
    order: DiGraph<(), (), usize>,
}

impl Places {
    /// Ends are in one place where routes lead from one link to the next, where flows begin and end, and where
    /// a packet may cross a link in no time; `delays` are the least of each link.
    fn new(plan: &Plan, delays: &[Time]) -> Self {
        let mut order = DiGraph::default();
        for _ in 0..2 * plan.links.len() {
            order.add_node(());
        }
        let mut places = Self { order };
        for route in &plan.routes {
            for pair in route.windows(2) {
                places.join([2 * pair[0] as usize + 1, 2 * pair[1] as usize]);
            }
        }
        let mut before = None;
        for flow in flows(plan) {
            let routes = [flow.forward, flow.reverse];
            if before.replace((routes, closes(flow))) == Some((routes, closes(flow))) {
                continue;
            }
            let [forward, reverse] = routes.map(|route| ends_of(plan, route));
            places.join([forward[0], reverse[1]]);
            places.join([forward[1], reverse[0]]);
            if closes(flow) {
                places.follows(forward);
            }
        }
        // Slots for flows that arrive at random are numbered in the order of their first use.
        let arrivals = plan.crowds.iter().filter(|crowd| !matches!(crowd.members, Members::Users(..)));
        let starts: Vec<usize> = arrivals.map(|crowd| ends_of(plan, crowd.flow.forward)[0]).collect();
        for pair in starts.windows(2) {
            places.join([pair[0], pair[1]]);
        }
        let changes = plan.changes.iter().filter_map(|change| Some((change.link as usize, change.rate?)));
        let fastest: BTreeMap<usize, Rate> = changes.fold(BTreeMap::new(), |mut fastest, (link, rate)| {
            let known = fastest.entry(link).or_insert(rate);
            *known = rate.max(*known);
            fastest
        });
        for (number, (link, &delay)) in plan.links.iter().zip(delays).enumerate() {
            let rate = link.config.rate.map(|rate| {
                let scheduled = link.config.schedule.as_ref().and_then(Schedule::fastest);
                fastest.get(&number).copied().into_iter().chain(scheduled).fold(rate, Ord::max)
            });
            if delay == Time::ZERO && rate.is_none_or(|rate| rate.bits_per_sec() > FASTEST) {
                places.join([2 * number, 2 * number + 1]);
            }
        }
        places
    }

    /// The second of two ends advances after the first.
    fn follows(&mut self, [before, after]: [usize; 2]) {
        self.order.add_edge(before.into(), after.into(), ());
    }

    /// Two ends are in one place.
    fn join(&mut self, [a, b]: [usize; 2]) {
        self.follows([a, b]);
        self.follows([b, a]);
    }

    /// The site of each end, and the level of each site, in order of levels.
    fn sites(&self) -> (Vec<u32>, Vec<usize>) {
        let ends = self.order.node_count();
        let mut sites = vec![0; ends];
        let mut components = kosaraju_scc(&self.order);
        // The first of them are the last in order.
        components.reverse();
        for (site, component) in (0..).zip(&components) {
            for end in component {
                sites[end.index()] = site;
            }
        }
        let pairs = self.order.raw_edges().iter();
        let pairs = pairs.map(|edge| [edge.source(), edge.target()].map(|end| sites[end.index()] as usize));
        let mut pairs: Vec<_> = pairs.filter(|[before, after]| before != after).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut levels = vec![0; components.len()];
        // Sites are numbered in order, so that all before one have their level.
        for [before, after] in pairs {
            levels[after] = levels[after].max(levels[before] + 1);
        }
        let (sites, levels) =
            if levels.len() > MANY_SITES { join_alike(&sites, &levels) } else { (sites, levels) };
        by_level(&sites, &levels)
    }
}

/// Numbers the sites by level.
fn by_level(sites: &[u32], levels: &[usize]) -> (Vec<u32>, Vec<usize>) {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_key(|&site| levels[site]);
    let mut numbers = vec![0; levels.len()];
    for (number, &site) in (0..).zip(&order) {
        numbers[site] = number;
    }
    let sites = sites.iter().map(|&site| numbers[site as usize]).collect();
    (sites, order.into_iter().map(|site| levels[site]).collect())
}

/// Joins sites of the same level that have links to and from the same sites, such as many hosts around a router.
fn join_alike(sites: &[u32], levels: &[usize]) -> (Vec<u32>, Vec<usize>) {
    let mut neighbours = vec![Vec::new(); levels.len()];
    for pair in sites.chunks(2) {
        neighbours[pair[0] as usize].push((false, pair[1]));
        neighbours[pair[1] as usize].push((true, pair[0]));
    }
    let mut known = BTreeMap::new();
    let mut joined = Vec::new();
    let numbers: Vec<u32> = neighbours
        .into_iter()
        .zip(levels)
        .map(|(mut list, &level)| {
            list.sort_unstable();
            list.dedup();
            *known.entry((level, list)).or_insert_with(|| {
                joined.push(level);
                joined.len() as u32 - 1
            })
        })
        .collect();
    (sites.iter().map(|&site| numbers[site as usize]).collect(), joined)
}

/// The first end of a route, and its last.
fn ends_of(plan: &Plan, route: u32) -> [usize; 2] {
    let route = &plan.routes[route as usize];
    let link = |link: Option<&u32>| *link.expect("a route has links") as usize;
    [2 * link(route.first()), 2 * link(route.last()) + 1]
}
