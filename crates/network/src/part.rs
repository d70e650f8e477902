//! The ends of links that advance together.

use std::sync::Arc;

use elephan_net::{FarEnd, Head, NearEnd, Packet, Run, Times, View, Wire};
use elephan_scenario::plan;
use elephan_units::{Seed, Time};

use crate::events::Events;
use crate::paths::END;

/// Marks what is not here.
const ELSEWHERE: u32 = u32::MAX;

/// The near end of a link.
pub(crate) struct Near<P: Packet> {
    pub end: NearEnd<P>,
    /// The number of the link.
    pub link: u32,
    /// The wire that it gives packets to.
    wire: u32,
    /// The far end, if it is here.
    far: u32,
}

/// The far end of a link.
pub(crate) struct Far<P> {
    pub end: FarEnd<P>,
    /// The number of the link.
    pub link: u32,
    /// The wire that it takes packets from.
    wire: u32,
    /// The near end, if it is here.
    near: u32,
    /// Whether the near end is here, and keeps packets until their service begins.
    is_kept_for: bool,
    /// Whether the near end is here, and may keep packets while none is in service, because its schedule serves none.
    is_scheduled: bool,
}

/// The ends of links that advance together, and their wires. A link of which one end is elsewhere has a wire at
/// each end: what the near end sends is handed over from time to time.
pub struct Part<P: Packet> {
    pub(crate) nears: Vec<Near<P>>,
    pub(crate) fars: Vec<Far<P>>,
    wires: Vec<Wire<P>>,
    /// The time at which a packet next reaches each far end.
    pub(crate) arrivals: Events,
    /// For each position on a route, the near end to which a packet there goes, by its place in the part that has it.
    pub(crate) hops: Arc<[u32]>,
}

/// The packets that a part keeps for another: those of a link of which only the near end is here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// The number of the link.
    pub link: u32,
    near: u32,
}

impl<P: Packet> Part<P> {
    /// A part without any link; `hops` as in [`crate::Paths`].
    pub(crate) fn new(hops: Arc<[u32]>) -> Self {
        Self { nears: Vec::new(), fars: Vec::new(), wires: Vec::new(), arrivals: Events::new(0), hops }
    }

    /// Adds ends of link number `link`, which must be greater than those added before. If packets are followed,
    /// the ends keep those that they drop or lose.
    pub(crate) fn add(&mut self, number: u32, link: &plan::Link, seed: Seed, has: [bool; 2], follows: bool) {
        let index = u64::from(number);
        let [near, far] = [self.nears.len() as u32, self.fars.len() as u32];
        let both = has == [true; 2];
        let wire = self.wires.len() as u32;
        self.wires.push(Wire::default());
        if has[0] {
            let mut end = NearEnd::new(link.config.clone(), seed, index);
            if follows {
                end.keep_drops();
            }
            self.nears.push(Near { end, link: number, wire, far: if both { far } else { ELSEWHERE } });
        }
        if has[1] {
            let mut end = FarEnd::new(&link.config, seed, index);
            if follows {
                end.keep_lost();
            }
            let is_scheduled = both && link.config.schedule.is_some();
            let is_kept_for = both && self.nears[near as usize].end.keeps_packets();
            let near = if both { near } else { ELSEWHERE };
            self.fars.push(Far { end, link: number, wire, near, is_kept_for, is_scheduled });
            self.arrivals.add();
        }
    }

    /// The links of which only the near end is here.
    pub(crate) fn outgoing(&self) -> impl Iterator<Item = Outgoing> {
        let away = (0..).zip(&self.nears).filter(|(_, end)| end.far == ELSEWHERE);
        away.map(|(near, end)| Outgoing { link: end.link, near })
    }

    /// The time at which a packet next reaches a far end, and that end; `Time::MAX` for never.
    #[inline]
    pub fn next_arrival(&self) -> (Time, usize) {
        self.arrivals.next()
    }

    /// The number of the link of a far end; any number if there is no far end here.
    #[inline]
    pub fn link_of(&self, far: usize) -> u32 {
        self.fars.get(far).map_or(0, |end| end.link)
    }

    /// The near end to which a packet at this position goes; `None` if its route ends there.
    #[inline(always)]
    pub fn near_at(&self, position: u32) -> Option<usize> {
        let near = self.hops[position as usize];
        (near != END).then_some(near as usize)
    }

    /// The last time at which an arrival at this far end comes before any at another; `Time::MAX` if there is none at another.
    #[inline(always)]
    pub fn bound(&self, far: usize) -> Time {
        if self.fars.len() == 1 {
            return Time::MAX;
        }
        match self.arrivals.next_but(far) {
            (other, place) if place < far => other.since(Time::from_picos(1)),
            (other, _) => other,
        }
    }

    /// The near end to which a packet at this position goes, and its wire.
    pub fn near_end_at(&mut self, position: u32) -> (&mut NearEnd<P>, &mut Wire<P>) {
        let near = &mut self.nears[self.hops[position as usize] as usize];
        (&mut near.end, &mut self.wires[near.wire as usize])
    }

    /// A packet arrives at a near end; returns whether it is accepted.
    #[inline(always)]
    pub fn send(&mut self, number: usize, packet: &P, now: Time) -> bool {
        let near = &mut self.nears[number];
        let wire = &mut self.wires[near.wire as usize];
        let was_idle = wire.is_empty();
        let accepted = near.end.send(packet, wire, now);
        let far = near.far;
        if was_idle && accepted && far != ELSEWHERE {
            self.reschedule(far as usize);
        }
        accepted
    }

    /// Packets of `bytes` arrive at a near end at these times; see [`NearEnd::send_run`].
    #[inline(always)]
    pub fn send_run(&mut self, number: usize, bytes: u32, times: &Times, head: &P::Head) {
        let near = &mut self.nears[number];
        let wire = &mut self.wires[near.wire as usize];
        let was_idle = near.far != ELSEWHERE && wire.is_empty();
        near.end.send_run(bytes, times, Time::ZERO, head, wire);
        if was_idle {
            let far = near.far;
            self.reschedule(far as usize);
        }
    }

    /// A near end whose link leads to another part, its wire, and the near end of each position ([`Part::near_at`]), for packets that
    /// follow each other there.
    #[inline(always)]
    pub fn exit(&mut self, number: usize) -> (&mut NearEnd<P>, &mut Wire<P>, &[u32]) {
        let near = &mut self.nears[number];
        debug_assert_eq!(near.far, ELSEWHERE);
        (&mut near.end, &mut self.wires[near.wire as usize], &self.hops)
    }

    /// Whether a near end's link leads to another part.
    #[inline(always)]
    pub fn leads_out(&self, number: usize) -> bool {
        self.nears[number].far == ELSEWHERE
    }

    /// When a packet next reaches a far end, or, if none is on the way there, is next taken out of the queue before it.
    #[inline]
    pub fn next_at(&self, number: usize) -> Time {
        let far = &self.fars[number];
        let wire = &self.wires[far.wire as usize];
        let next = far.end.next_event(wire);
        if far.is_scheduled && wire.is_empty() {
            return next.min(self.nears[far.near as usize].end.next_service());
        }
        next
    }

    /// How many packets have come off the wire to a far end, and how many have reached it since; `None` unless its near end is here
    /// and has a schedule. If it stays the same in an event, the event only took packets out of a queue.
    #[inline]
    pub fn progress(&self, number: usize) -> Option<u64> {
        let far = &self.fars[number];
        far.is_scheduled.then(|| far.end.progress())
    }

    /// Lends the first packets on the wire to a far end whose near end is elsewhere; see [`FarEnd::lend`].
    #[inline]
    pub fn lend(&mut self, number: usize) -> Option<Lent<P>> {
        let far = &mut self.fars[number];
        if far.near != ELSEWHERE {
            return None;
        }
        let (runs, taken) = far.end.lend(&mut self.wires[far.wire as usize])?;
        Some(Lent { runs, taken, arrived: 0, delay: far.end.delay() })
    }

    /// Takes back the packets that were lent.
    #[inline]
    pub fn give_back(&mut self, number: usize, lent: Lent<P>) {
        let far = &mut self.fars[number];
        far.end.give_back(&mut self.wires[far.wire as usize], lent.runs, lent.taken, lent.arrived);
    }

    /// The lent packet with this head, which is the next.
    #[inline]
    pub fn join(&mut self, number: usize, head: &P::Head) -> P {
        self.wires[self.fars[number].wire as usize].join(head)
    }

    /// The next packet that has reached a far end.
    #[inline]
    pub fn receive(&mut self, number: usize, now: Time) -> Option<P> {
        let Self { nears, fars, wires, .. } = self;
        let far = &mut fars[number];
        let wire = &mut wires[far.wire as usize];
        if far.is_kept_for {
            nears[far.near as usize].end.serve(wire, now);
        }
        far.end.receive(wire, now)
    }

    /// The packets that a near end dropped after it had accepted them, and that a far end's wire lost, of one
    /// link, since the last call.
    pub(crate) fn gone(&mut self, end: End) -> (u32, Vec<(Time, P)>, Vec<P>) {
        let (near, far) = match end {
            End::Near(near) => (near, self.nears[near as usize].far),
            End::Far(far) => (self.fars[far as usize].near, far),
        };
        let drops = self.nears.get_mut(near as usize);
        let lost = self.fars.get_mut(far as usize);
        let link =
            drops.as_ref().map(|end| end.link).or(lost.as_ref().map(|end| end.link)).unwrap_or_default();
        let drops = drops.map(|end| end.end.drops()).unwrap_or_default();
        (link, drops, lost.map(|end| end.end.lost()).unwrap_or_default())
    }

    /// When a near end, whose far end is elsewhere, next gives its wire a packet that it keeps.
    pub(crate) fn next_service(&self, outgoing: Outgoing) -> Time {
        self.nears[outgoing.near as usize].end.next_service()
    }

    /// All time up to `now` has passed here: hands over what was sent on a link to the part with its far end,
    /// number `far` there. Packets that reach it by `now` must have been handed over before.
    pub(crate) fn hand_over(&mut self, outgoing: Outgoing, to: &mut Self, far: usize, now: Time) {
        let near = &mut self.nears[outgoing.near as usize];
        let wire = &mut self.wires[near.wire as usize];
        if near.end.keeps_packets() {
            near.end.serve(wire, now);
        }
        if wire.is_empty() {
            return;
        }
        let there = &mut to.wires[to.fars[far].wire as usize];
        let was_idle = there.is_empty();
        wire.hand_over(there);
        if was_idle {
            to.reschedule(far);
        }
    }

    /// Sets the time of a far end's next arrival.
    pub fn reschedule(&mut self, far: usize) {
        let next = self.next_at(far);
        self.arrivals.schedule(far, next);
    }

    /// Both ends of a link that are here: places of its ends.
    pub(crate) fn view(&mut self, near: usize, far: usize) -> View<'_, P> {
        let far = &mut self.fars[far];
        View { near: &mut self.nears[near].end, wire: &mut self.wires[far.wire as usize], far: &mut far.end }
    }

    /// Both ends of a link, of which the far end is in another part.
    pub(crate) fn view_across<'a>(&'a mut self, near: usize, to: &'a mut Self, far: usize) -> View<'a, P> {
        let far = &mut to.fars[far];
        View { near: &mut self.nears[near].end, wire: &mut to.wires[far.wire as usize], far: &mut far.end }
    }
}

/// Packets that are about to arrive, in order.
pub struct Lent<P: Packet> {
    runs: Vec<Run<P::Head>>,
    /// Number of runs that have arrived, and of packets since they were lent.
    taken: usize,
    arrived: u64,
    delay: Time,
}

impl<P: Packet> Lent<P> {
    /// The next packets, as their transmitter finished them, and how much later each arrives.
    #[inline(always)]
    pub fn front(&mut self) -> Option<(&mut Run<P::Head>, Time)> {
        Some((self.runs.get_mut(self.taken)?, self.delay))
    }

    /// The next packet has arrived.
    #[inline(always)]
    pub fn take(&mut self) {
        self.arrived += 1;
        self.taken += usize::from(!self.runs[self.taken].advance(|head| head.behind(1)));
    }

    /// The next packets of a run have arrived, so many of them.
    #[inline(always)]
    pub fn take_many(&mut self, count: u32) {
        if count == self.runs[self.taken].times.count() {
            self.arrived += u64::from(count);
            self.taken += 1;
        } else {
            (0..count).for_each(|_| self.take());
        }
    }
}

/// An end of a link, by its place in a part.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// The near end.
    Near(u32),
    /// The far end.
    Far(u32),
}
