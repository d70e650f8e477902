//! Links, the routes over them, and the changes of links during a run.

use std::sync::Arc;

use elephan_net::{Packet, View};
use elephan_scenario::plan::{Change, Plan};
use elephan_units::Time;

use crate::changes::Changes;
use crate::links::Links;
use crate::part::{End, Outgoing, Part};
use crate::paths::Paths;
use crate::record::{Recorded, Recorder};

/// The network of a plan, in one part or in several, which advance separately.
pub struct Network<P: Packet> {
    /// Its parts. A packet goes from one to another only by a wire.
    pub parts: Vec<Part<P>>,
    paths: Arc<Paths>,
    /// For each part, the links to others.
    between: Vec<Vec<Outgoing>>,
    changes: Changes,
    recorder: Recorder,
}

impl<P: Packet> Network<P> {
    /// The network of a plan at time zero, in one part. If packets are followed ([`crate::Driver::FOLLOWS`]), links keep
    /// the packets that they drop or lose.
    pub fn new(plan: &Plan, follows: bool) -> Self {
        Self::in_parts(plan, &vec![[0; 2]; plan.links.len()], follows)
    }

    /// The same in several parts: those that have each link's near and far end.
    pub fn in_parts(plan: &Plan, ends: &[[u32; 2]], follows: bool) -> Self {
        let paths = Arc::new(Paths::new(plan, ends));
        let count = ends.iter().flatten().max().map_or(1, |&last| last as usize + 1);
        let mut parts: Vec<Part<P>> = (0..count).map(|_| Part::new(paths.hops.clone())).collect();
        for ((number, link), &[near, far]) in (0u32..).zip(&plan.links).zip(ends) {
            if near == far {
                parts[near as usize].add(number, link, plan.seed, [true; 2], follows);
            } else {
                parts[near as usize].add(number, link, plan.seed, [true, false], follows);
                parts[far as usize].add(number, link, plan.seed, [false, true], follows);
            }
        }
        let recorder = Recorder::new(plan, &mut Links { parts: &mut parts, paths: &paths });
        Self {
            between: parts.iter().map(|part| part.outgoing().collect()).collect(),
            parts,
            paths,
            changes: Changes::new(plan),
            recorder,
        }
    }

    /// The position of a packet that begins a route of the plan ([`crate::Routed::position`]).
    #[inline]
    pub fn start(&self, route: u32) -> u32 {
        self.paths.start(route)
    }

    /// The whole network, if it is in one part.
    pub fn whole(&mut self) -> &mut Part<P> {
        debug_assert_eq!(self.parts.len(), 1);
        &mut self.parts[0]
    }

    /// Routes, and the places of links.
    pub fn paths(&self) -> &Arc<Paths> {
        &self.paths
    }

    /// All time up to `now` has passed in a part: what it sent to others is handed over.
    pub fn hand_over(&mut self, part: u32, now: Time) {
        for &outgoing in &self.between[part as usize] {
            let to = self.paths.places[outgoing.link as usize][1];
            let [from, there] =
                self.parts.get_disjoint_mut([part as usize, to.part as usize]).expect("the parts differ");
            from.hand_over(outgoing, there, to.number as usize, now);
        }
    }

    /// When a packet is next given to a wire from one part to another without an event in its part, because it
    /// has waited for the transmitter; `Time::MAX` for never.
    pub fn next_service(&self) -> Time {
        let parts = self.parts.iter().zip(&self.between);
        let each = parts.flat_map(|(part, links)| links.iter().map(|&outgoing| part.next_service(outgoing)));
        each.min().unwrap_or(Time::MAX)
    }

    /// When a link next changes, `Time::MAX` for never.
    pub fn next_change(&self) -> Time {
        self.changes.next_at()
    }

    /// Applies the next change if it is due by `now`; returns the near end of its link, for
    /// [`crate::Driver::tell_gone`].
    pub fn change(&mut self, now: Time) -> Option<End> {
        let change = self.changes.take(now)?;
        apply(&change, &mut Links { parts: &mut self.parts, paths: &self.paths }.view(change.link), now);
        let [near, far] = self.paths.places[change.link as usize];
        self.parts[far.part as usize].reschedule(far.number as usize);
        Some(End::Near(near.number))
    }

    /// When the links are next to be recorded; `Time::MAX` for never.
    pub fn next_record(&self) -> Time {
        self.recorder.next()
    }

    /// Records the state of the links at `now`, for everything that is due by then: samples, and ends of the
    /// measuring window.
    pub fn record(&mut self, now: Time) {
        self.recorder.record(&mut Links { parts: &mut self.parts, paths: &self.paths }, now);
    }

    /// A host has received payload of a flow, or of a crowd, which are numbered after the flows.
    pub fn count(&mut self, number: usize, bytes: u32) {
        self.recorder.count(number, bytes);
    }

    /// The records so far.
    pub fn recorded(&self) -> &Recorded {
        self.recorder.recorded()
    }

    /// The run ends at `now`: returns the records. A measuring window that is still open ends with it.
    pub fn finish(&mut self, now: Time) -> Recorded {
        self.recorder.finish(&mut Links { parts: &mut self.parts, paths: &self.paths }, now)
    }
}

/// Applies a change of the plan to a link.
fn apply<P: Packet>(change: &Change, link: &mut View<'_, P>, now: Time) {
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
