//! Where each link's ends are, and the routes over the links.

use std::sync::Arc;

use elephan_scenario::Plan;

/// Marks the end of a route.
pub(crate) const END: u32 = u32::MAX;

/// The place of an end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The part that has it.
    pub part: u32,
    /// Its number there.
    pub number: u32,
}

/// Where each link's ends are, and the routes over the links.
pub struct Paths {
    /// The places of each link's near and far end.
    pub(crate) places: Vec<[Place; 2]>,
    /// All routes one after the other, each ending with an [`END`]; a link by the number of its near end in its part.
    pub(crate) hops: Arc<[u32]>,
    /// The start of each route in this list.
    starts: Vec<u32>,
    /// The parts in which each route starts and ends.
    ends: Vec<[u32; 2]>,
}

impl Paths {
    /// The paths of a plan; `parts` has the parts with each link's near and far end.
    pub(crate) fn new(plan: &Plan, parts: &[[u32; 2]]) -> Self {
        let count = parts.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        let mut counts = vec![[0; 2]; count];
        let mut place = |part: u32, end: usize| {
            let next = &mut counts[part as usize][end];
            *next += 1;
            Place { part, number: *next - 1 }
        };
        let places: Vec<_> = parts.iter().map(|&[near, far]| [place(near, 0), place(far, 1)]).collect();
        let (mut hops, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for route in &plan.routes {
            let part = |link: Option<&u32>, end: usize| link.map_or(0, |&link| parts[link as usize][end]);
            ends.push([part(route.first(), 0), part(route.last(), 1)]);
            starts.push(hops.len() as u32);
            hops.extend(route.iter().map(|&link| places[link as usize][0].number));
            hops.push(END);
        }
        Self { places, hops: hops.into(), starts, ends }
    }

    /// The parts in which a route of the plan starts and ends.
    #[inline]
    pub fn ends(&self, route: u32) -> [u32; 2] {
        self.ends[route as usize]
    }

    /// The position of a packet that begins a route of the plan ([`crate::Routed::position`]).
    #[inline]
    pub fn start(&self, route: u32) -> u32 {
        self.starts[route as usize]
    }
}
