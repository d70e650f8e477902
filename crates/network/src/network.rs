//! Links, the routes over them, and the changes of links during a run.

use std::collections::VecDeque;

use elephan_net::{Link, Packet};
use elephan_scenario::plan::{Change, Plan};
use elephan_units::Time;

use crate::events::Events;
use crate::record::{Recorded, Recorder};

/// Marks the end of a route.
pub(crate) const END: u32 = u32::MAX;

/// The network of a plan.
pub struct Network<P> {
    /// The links, by number.
    pub(crate) links: Vec<Link<P>>,
    /// The time at which a packet next reaches the far end of each link.
    pub(crate) arrivals: Events,
    /// All routes one after the other, each ending with an [`END`].
    pub(crate) hops: Vec<u32>,
    /// The start of each route in this list.
    starts: Vec<u32>,
    /// Pending changes, in order of time.
    changes: VecDeque<Change>,
    recorder: Recorder,
}

impl<P: Packet> Network<P> {
    /// The network of a plan at time zero. If packets are followed ([`crate::Driver::FOLLOWS`]), links keep
    /// the packets that they drop or lose.
    pub fn new(plan: &Plan, follows: bool) -> Self {
        let mut links: Vec<_> =
            (0u64..).zip(&plan.links).map(|(i, link)| Link::new(link.config.clone(), plan.seed, i)).collect();
        if follows {
            for link in &mut links {
                link.keep_drops();
                link.keep_lost();
            }
        }
        let (mut hops, mut starts) = (Vec::new(), Vec::new());
        for route in &plan.routes {
            starts.push(hops.len() as u32);
            hops.extend(route);
            hops.push(END);
        }
        Self {
            arrivals: Events::new(links.len()),
            recorder: Recorder::new(plan, &mut links),
            changes: plan.changes.iter().cloned().collect(),
            links,
            hops,
            starts,
        }
    }

    /// The position of a packet that begins a route of the plan ([`crate::Routed::position`]).
    #[inline]
    pub fn start(&self, route: u32) -> u32 {
        self.starts[route as usize]
    }

    /// The link to which a packet at this position goes.
    pub fn link_at(&mut self, position: u32) -> &mut Link<P> {
        &mut self.links[self.hops[position as usize] as usize]
    }

    /// The time at which a packet next reaches the far end of a link, and that link; `Time::MAX` for never.
    #[inline]
    pub fn next_arrival(&self) -> (Time, usize) {
        self.arrivals.next()
    }

    /// When a link next changes, `Time::MAX` for never.
    pub fn next_change(&self) -> Time {
        self.changes.front().map_or(Time::MAX, |change| change.at)
    }

    /// Applies the next change if it is due by `now`; returns its link.
    pub(crate) fn change(&mut self, now: Time) -> Option<u32> {
        let change = self.changes.pop_front_if(|change| change.at <= now)?;
        let link = &mut self.links[change.link as usize];
        apply(&change, link, now);
        let next = link.next_event();
        self.arrivals.schedule(change.link as usize, next);
        Some(change.link)
    }

    /// When the links are next to be recorded; `Time::MAX` for never.
    pub fn next_record(&self) -> Time {
        self.recorder.next()
    }

    /// Records the state of the links at `now`, for everything that is due by then: samples, and ends of the
    /// measuring window.
    pub fn record(&mut self, now: Time) {
        self.recorder.record(&mut self.links, now);
    }

    /// The records so far.
    pub fn recorded(&self) -> &Recorded {
        self.recorder.recorded()
    }

    /// The run ends at `now`: returns the records. A measuring window that is still open ends with it.
    pub fn finish(&mut self, now: Time) -> Recorded {
        self.recorder.finish(&mut self.links, now)
    }
}

/// Applies a change of the plan to a link.
fn apply<P: Packet>(change: &Change, link: &mut Link<P>, now: Time) {
    if let Some(rate) = change.rate {
        link.set_rate(rate, now);
    }
    if let Some(delay) = change.delay {
        link.set_delay(delay, now);
    }
    if let Some(loss) = change.loss {
        link.set_loss(Some(loss));
    }
    if !change.weights.is_empty() {
        link.set_weights(&change.weights, now);
    }
    if let Some(up) = change.up {
        link.set_up(up, now);
    }
}
