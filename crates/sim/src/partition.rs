//! The sites of a plan: what advances together.

use std::collections::{BTreeMap, BTreeSet};

use elephan_scenario::Plan;
use elephan_scenario::plan::{Flow, Members};
use elephan_traffic::Demand;
use elephan_units::Time;

/// A round in which the bottleneck can carry fewer packets than this is not worth its own cost: places with so
/// little delay between them are one site.
const PACKETS_IN_A_ROUND: u64 = 16;
/// Packets of this size are assumed for it, in bits.
const PACKET_BITS: u64 = 1500 * 8;

/// The sites of a plan. A site consists of ends of links, and of the ends of connections there. What happens at
/// a site acts on another at least the `lookahead` later, so that each can advance by this time alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The sites of each link's near and far end.
    pub ends: Vec<[u32; 2]>,
    /// Number of sites.
    pub sites: u32,
    /// The least delay between two sites; `Time::MAX` if there is one site only.
    pub lookahead: Time,
    /// The sites in groups: those of a group can advance at the same time, after those of the groups before.
    pub groups: Vec<Vec<u32>>,
}

impl Partition {
    /// The whole plan as one site.
    pub fn whole(plan: &Plan) -> Self {
        let ends = vec![[0; 2]; plan.links.len()];
        Self { ends, sites: 1, lookahead: Time::MAX, groups: vec![vec![0]] }
    }

    /// As many sites as are worthwhile.
    ///
    /// Events and captures are recorded in the order of time, so such a plan is one site.
    pub fn of(plan: &Plan) -> Self {
        if plan.trace.events || !plan.trace.pcap.is_empty() || plan.links.is_empty() {
            return Self::whole(plan);
        }
        let delays = least_delays(plan);
        let shortest = shortest_round(plan);
        let mut joined = Joined::new(plan);
        for (link, &delay) in delays.iter().enumerate() {
            if delay < shortest {
                joined.join(2 * link, 2 * link + 1);
            }
        }
        joined.join_neighbours_alike();
        joined.join_mutual(plan);
        joined.partition(plan, &delays)
    }
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
    let mut delays: Vec<Time> = plan.links.iter().map(|link| link.config.delay).collect();
    for change in &plan.changes {
        if let Some(delay) = change.delay {
            let least = &mut delays[change.link as usize];
            *least = delay.min(*least);
        }
    }
    delays
}

/// Whether connections of a flow can close: then the sending end removes the receiving end at once.
fn closes(flow: &Flow) -> bool {
    flow.stop.is_some() || flow.demand != Demand::Unlimited
}

/// The flows of a plan and of its crowds.
fn flows(plan: &Plan) -> impl Iterator<Item = &Flow> {
    plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow))
}

/// Ends of links that are joined: the near end of link `n` is number `2 n`, its far end `2 n + 1`.
struct Joined {
    parents: Vec<usize>,
}

impl Joined {
    /// The ends that are in one place: where routes lead from one link to the next, and where flows begin and
    /// end.
    fn new(plan: &Plan) -> Self {
        let mut joined = Self { parents: (0..2 * plan.links.len()).collect() };
        for route in &plan.routes {
            for pair in route.windows(2) {
                joined.join(2 * pair[0] as usize + 1, 2 * pair[1] as usize);
            }
        }
        for flow in flows(plan) {
            let [forward, reverse] = [flow.forward, flow.reverse].map(|route| ends_of(plan, route));
            joined.join(forward[0], reverse[1]);
            joined.join(forward[1], reverse[0]);
        }
        // Slots for flows that arrive at random are numbered in the order of their first use.
        let arrivals = plan.crowds.iter().filter(|crowd| matches!(crowd.members, Members::Arrivals(_)));
        let starts: Vec<usize> = arrivals.map(|crowd| ends_of(plan, crowd.flow.forward)[0]).collect();
        for pair in starts.windows(2) {
            joined.join(pair[0], pair[1]);
        }
        joined
    }

    fn root(&mut self, end: usize) -> usize {
        let mut root = end;
        while self.parents[root] != root {
            self.parents[root] = self.parents[self.parents[root]];
            root = self.parents[root];
        }
        root
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// The pairs of different sites that a link connects, by their roots.
    fn neighbours(&mut self) -> Vec<[usize; 2]> {
        let links = self.parents.len() / 2;
        let pairs = (0..links).map(|link| [self.root(2 * link), self.root(2 * link + 1)]);
        let mut pairs: Vec<_> = pairs.filter(|[a, b]| a != b).flat_map(|[a, b]| [[a, b], [b, a]]).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Joins sites that have the same neighbours, such as many hosts around a router: no link connects them,
    /// and a few large sites cost less than many small ones.
    fn join_neighbours_alike(&mut self) {
        let pairs = self.neighbours();
        let mut alike: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for group in pairs.chunk_by(|a, b| a[0] == b[0]) {
            let neighbours = group.iter().map(|pair| pair[1]).collect();
            let first = *alike.entry(neighbours).or_insert(group[0][0]);
            self.join(first, group[0][0]);
        }
    }

    /// Joins sites that would have to wait for each other within a round, because connections close between
    /// them in both directions.
    fn join_mutual(&mut self, plan: &Plan) {
        loop {
            let pairs = self.closing(plan);
            let (_, rest) = in_order(&pairs);
            let Some(&[a, b]) = rest.first() else { return };
            self.join(a, b);
        }
    }

    /// The sites of senders and receivers between which connections can close.
    fn closing(&mut self, plan: &Plan) -> Vec<[usize; 2]> {
        let closing: Vec<[usize; 2]> =
            flows(plan).filter(|flow| closes(flow)).map(|flow| ends_of(plan, flow.forward)).collect();
        let pairs = closing.into_iter().map(|[from, to]| [self.root(from), self.root(to)]);
        let mut pairs: Vec<_> = pairs.filter(|[a, b]| a != b).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    fn partition(mut self, plan: &Plan, delays: &[Time]) -> Partition {
        let roots: Vec<usize> = (0..self.parents.len()).map(|end| self.root(end)).collect();
        let mut sites: Vec<usize> = roots.clone();
        sites.sort_unstable();
        sites.dedup();
        let number = |root: usize| sites.binary_search(&root).expect("each root is a site") as u32;
        let ends: Vec<[u32; 2]> = roots.chunks(2).map(|pair| [number(pair[0]), number(pair[1])]).collect();
        let between = ends.iter().zip(delays).filter(|([near, far], _)| near != far);
        let lookahead = between.map(|(_, &delay)| delay).min().unwrap_or(Time::MAX);
        let closing: Vec<[usize; 2]> =
            self.closing(plan).into_iter().map(|pair| pair.map(|root| number(root) as usize)).collect();
        let (groups, _) = in_order(&closing);
        let mut groups: Vec<Vec<u32>> =
            groups.into_iter().map(|group| group.into_iter().map(|site| site as u32).collect()).collect();
        if groups.is_empty() {
            groups.push(Vec::new());
        }
        // All others can advance with the first group.
        let ordered: BTreeSet<u32> = groups.iter().flatten().copied().collect();
        groups[0].extend((0..sites.len() as u32).filter(|site| !ordered.contains(site)));
        groups[0].sort_unstable();
        Partition { ends, sites: sites.len() as u32, lookahead, groups }
    }
}

/// The first end of a route, and its last.
fn ends_of(plan: &Plan, route: u32) -> [usize; 2] {
    let route = &plan.routes[route as usize];
    let link = |link: Option<&u32>| *link.expect("a route has links") as usize;
    [2 * link(route.first()), 2 * link(route.last()) + 1]
}

/// Sorts what occurs in pairs, in each of which the first comes before the second: groups in order; and the
/// pairs in or behind a circle.
fn in_order(pairs: &[[usize; 2]]) -> (Vec<Vec<usize>>, Vec<[usize; 2]>) {
    let mut left: BTreeSet<usize> = pairs.iter().flatten().copied().collect();
    let mut pairs = pairs.to_vec();
    let mut groups = Vec::new();
    while !left.is_empty() {
        let free: Vec<usize> =
            left.iter().copied().filter(|site| pairs.iter().all(|pair| pair[1] != *site)).collect();
        if free.is_empty() {
            return (groups, pairs);
        }
        left.retain(|site| !free.contains(site));
        pairs.retain(|pair| !free.contains(&pair[0]));
        groups.push(free);
    }
    (groups, Vec::new())
}
