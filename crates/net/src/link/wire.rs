//! The packets between the two ends of a link.

use std::collections::VecDeque;

use elephan_units::Time;

use super::run::Run;
use crate::packet::{Head, Packet};

/// Number of runs in a chunk: a few kilobytes, which stay in the cache when the chunk is used again.
const CHUNK: usize = 64;

/// Packets that were accepted, and whose service has begun or is known, in order of service, from one end of a link to the other.
///
/// They are stored in chunks of runs, which move as a whole when a wire hands its packets over to another
/// ([`Wire::hand_over`]): if the ends of a link advance separately, each has a wire.
pub struct Wire<P: Packet> {
    /// The chunk that is read: its first `taken` runs have been taken. All have been only if no chunk is left.
    front: Vec<Run<P::Head>>,
    taken: usize,
    /// Full chunks.
    middle: VecDeque<Vec<Run<P::Head>>>,
    /// The chunk that is written.
    back: Vec<Run<P::Head>>,
    /// Chunks to be used again.
    spare: Vec<Vec<Run<P::Head>>>,
    /// The rests of the packets that have one, in order.
    rests: VecDeque<P::Rest>,
    /// Numbers of packets that were offered before the measuring window, and waited when it began; in order.
    pub(super) earlier: Vec<u64>,
}

impl<P: Packet> Default for Wire<P> {
    fn default() -> Self {
        Self {
            front: Vec::new(),
            taken: 0,
            middle: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            rests: VecDeque::new(),
            earlier: Vec::new(),
        }
    }
}

impl<P: Packet> Wire<P> {
    /// Whether there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.front.len()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        let runs = self.front[self.taken..].iter().chain(self.middle.iter().flatten()).chain(&self.back);
        runs.map(|run| run.times.count() as usize).sum()
    }

    /// Adds a packet; the last one on the wire was finished at `last`, if there is any.
    #[inline]
    pub(super) fn push(&mut self, last: Time, finish: Time, head: &P::Head, rest: Option<P::Rest>) {
        let run = Run::new(finish, *head);
        match rest {
            None => self.push_run(last, run),
            Some(rest) => {
                self.rests.push_back(rest);
                self.add(run);
            }
        }
    }

    /// Adds packets without rests; the last packet on the wire was finished at `last`, if there is any.
    #[inline(always)]
    pub(super) fn push_run(&mut self, last: Time, run: Run<P::Head>) {
        if run.times.count() > 1 || !self.take_in(last, &run) {
            self.add(run);
        }
    }

    /// Adds a packet to the last run, if it is behind it; returns whether it is.
    #[inline(always)]
    fn take_in(&mut self, last: Time, packet: &Run<P::Head>) -> bool {
        if self.is_empty() {
            return false;
        }
        let Some(run) = self.last_run() else { return false };
        run.head.has_behind(run.times.count(), &packet.head) && run.times.extend(last, packet.times.first())
    }

    /// Adds the packet behind the last, which was finished at `last`, if the run of that can express when it is finished; returns
    /// whether it can. There is a packet.
    #[inline(always)]
    pub(super) fn extend(&mut self, last: Time, finish: Time) -> bool {
        self.last_run().is_some_and(|run| run.times.extend(last, finish))
    }

    /// The last run, if there is a packet, unless it is in a full chunk.
    #[inline(always)]
    fn last_run(&mut self) -> Option<&mut Run<P::Head>> {
        let chunk =
            if self.back.is_empty() && self.middle.is_empty() { &mut self.front } else { &mut self.back };
        chunk.last_mut()
    }

    /// Adds a run.
    #[inline(always)]
    fn add(&mut self, run: Run<P::Head>) {
        if self.is_empty() {
            self.begin(run);
            return;
        }
        self.back.push(run);
        if self.back.len() == CHUNK {
            self.end_back();
        }
    }

    /// The first packets of an empty wire.
    #[inline(never)]
    fn begin(&mut self, run: Run<P::Head>) {
        self.taken = 0;
        self.front.clear();
        self.front.push(run);
    }

    /// The chunk that is written is full.
    #[inline(never)]
    fn end_back(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        self.middle.push_back(std::mem::replace(&mut self.back, next));
    }

    /// The first packets.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&Run<P::Head>> {
        self.front.get(self.taken)
    }

    /// Takes the first packet.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<P> {
        let head = self.front()?.head;
        if !self.front[self.taken].advance(|head| head.behind(1)) {
            self.taken += 1;
            self.refill();
        }
        Some(self.join(&head))
    }

    /// The packet with this head, which is the first of those that were not joined.
    #[inline]
    pub fn join(&mut self, head: &P::Head) -> P {
        let rest = if head.has_rest() { self.rests.pop_front() } else { None };
        P::join(head, rest)
    }

    /// Goes on with the next chunk, if the one that is read has been read and there is another.
    #[inline(always)]
    fn refill(&mut self) {
        if self.is_empty() && !(self.back.is_empty() && self.middle.is_empty()) {
            self.end_front();
        }
    }

    /// The chunk that is read has been read.
    #[inline(never)]
    fn end_front(&mut self) {
        self.taken = 0;
        self.front.clear();
        match self.middle.pop_front() {
            Some(next) => self.spare.push(std::mem::replace(&mut self.front, next)),
            None => std::mem::swap(&mut self.front, &mut self.back),
        }
    }

    /// Lends the chunk with the first packets, and the place of the first run, until [`Wire::give_back`]: meanwhile the wire is
    /// empty, and nothing may be sent on it.
    #[inline]
    pub(super) fn lend(&mut self) -> (Vec<Run<P::Head>>, usize) {
        (std::mem::take(&mut self.front), std::mem::take(&mut self.taken))
    }

    /// Takes back the chunk that was lent, of which `taken` runs have been taken.
    #[inline]
    pub(super) fn give_back(&mut self, chunk: Vec<Run<P::Head>>, taken: usize) {
        (self.front, self.taken) = (chunk, taken);
        self.refill();
    }

    /// Removes all packets.
    pub(super) fn drain(&mut self) -> Vec<P> {
        let packets = std::iter::from_fn(|| self.pop()).collect();
        self.earlier.clear();
        packets
    }

    /// Moves all packets to the end of another wire, and gets its empty chunks for them.
    pub fn hand_over(&mut self, to: &mut Self) {
        debug_assert_eq!(self.taken, 0, "packets are taken at the other wire");
        self.spare.append(&mut to.spare);
        for chunk in [&mut to.back, &mut self.front] {
            if !chunk.is_empty() {
                to.middle.push_back(std::mem::replace(chunk, self.spare.pop().unwrap_or_default()));
            }
        }
        to.middle.append(&mut self.middle);
        if !self.back.is_empty() {
            to.middle.push_back(std::mem::replace(&mut self.back, self.spare.pop().unwrap_or_default()));
        }
        to.rests.append(&mut self.rests);
        to.earlier.append(&mut self.earlier);
        to.refill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Parcel, parcel};
    use proptest::prelude::*;

    /// When the packet before this one is finished.
    fn before(id: u64) -> Time {
        Time::from_picos(id.saturating_sub(1))
    }

    proptest! {
        #[test]
        fn packets_arrive_in_order_whenever_they_are_handed_over(
            steps in prop::collection::vec((0usize..4, 1usize..200), 1..60),
        ) {
            let (mut near, mut far): (Wire<Parcel>, Wire<Parcel>) = (Wire::default(), Wire::default());
            let (mut sent, mut handed, mut received) = (0u64, 0, 0);
            for (kind, count) in steps {
                match kind {
                    0 => for _ in 0..count {
                        let packet = parcel(sent);
                        near.push(before(sent), Time::from_picos(sent), &packet, packet.rest());
                        sent += 1;
                        while sent % 4 > 1 && near.extend(before(sent), Time::from_picos(sent)) {
                            sent += 1;
                        }
                    },
                    1 => for _ in 0..count {
                        let packet = parcel(sent);
                        near.push(before(sent), Time::from_picos(sent), &packet, packet.rest());
                        sent += 1;
                    },
                    2 => {
                        near.hand_over(&mut far);
                        prop_assert!(near.is_empty());
                        handed = sent;
                    }
                    _ => for _ in 0..count {
                        let finish = far.front().map(|run| run.times.first().picos());
                        let packet = far.pop().map(|packet| packet.id);
                        prop_assert_eq!((finish, packet), if received < handed { (Some(received), Some(received)) } else { (None, None) });
                        if packet.is_none() {
                            break;
                        }
                        received += 1;
                    },
                }
                prop_assert_eq!((near.len() as u64, far.len() as u64), (sent - handed, handed - received));
            }
        }
    }
}
