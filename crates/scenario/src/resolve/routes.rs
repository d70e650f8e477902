//! Shortest paths through a topology of named links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use elephan_units::Time;

/// A directed link between two nodes.
pub(crate) struct Edge<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub delay: Time,
}

/// The links from one node to another: the smallest delay; among equals the fewest hops, then the first links of the
/// file. None where there is no way.
pub(crate) fn shortest(edges: &[Edge<'_>], from: &str, to: &str) -> Option<Vec<u32>> {
    let mut best: BTreeMap<&str, (Time, usize, Vec<u32>)> = BTreeMap::new();
    let mut open = BinaryHeap::from([Reverse((Time::ZERO, 0, Vec::new(), from))]);
    while let Some(Reverse((delay, hops, route, node))) = open.pop() {
        if node == to {
            return Some(route);
        }
        if best.get(node).is_some_and(|known| *known <= (delay, hops, route.clone())) {
            continue;
        }
        for (number, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from == node) {
            let mut route = route.clone();
            route.push(number as u32);
            open.push(Reverse((delay.saturating_add(edge.delay), hops + 1, route, edge.to)));
        }
        best.insert(node, (delay, hops, route));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge<'a>(from: &'a str, to: &'a str, ms: u64) -> Edge<'a> {
        Edge { from, to, delay: Time::from_millis(ms) }
    }

    #[test]
    fn delay_decides_then_hops() {
        let edges = [
            edge("a", "b", 10),
            edge("b", "c", 10),
            edge("a", "c", 30),
            edge("a", "d", 20),
            edge("c", "d", 0),
        ];
        assert_eq!(shortest(&edges, "a", "c"), Some(vec![0, 1]));
        assert_eq!(shortest(&edges, "a", "d"), Some(vec![3]));
        assert_eq!(shortest(&edges, "d", "a"), None);
        assert_eq!(shortest(&edges, "a", "nowhere"), None);
    }
}
