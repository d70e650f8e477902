//! The packets between the two ends of a link.

use std::collections::VecDeque;

use elephan_units::Time;

/// Number of packets in a chunk: a few kilobytes, which stay in the cache when the chunk is used again.
const CHUNK: usize = 64;

/// A packet that was accepted, and whose service has begun or is known.
#[derive(Clone, Copy, Debug)]
pub struct Flying<P> {
    /// When the transmitter finishes it.
    pub finish: Time,
    /// The packet.
    pub packet: P,
}

/// The packets between the two ends of a link, in order of service.
///
/// They are stored in chunks, which move as a whole when a wire hands its packets over to another
/// ([`Wire::hand_over`]): if the ends of a link advance separately, each has a wire.
pub struct Wire<P> {
    /// The chunk that is read: its first `taken` packets have been taken. All have been only if no chunk is left.
    front: Vec<Flying<P>>,
    taken: usize,
    /// Full chunks.
    middle: VecDeque<Vec<Flying<P>>>,
    /// The chunk that is written.
    back: Vec<Flying<P>>,
    /// Chunks to be used again.
    spare: Vec<Vec<Flying<P>>>,
    /// Numbers of packets that were offered before the measuring window, and waited when it began; in order.
    pub(super) earlier: Vec<u64>,
}

impl<P> Default for Wire<P> {
    fn default() -> Self {
        Self {
            front: Vec::new(),
            taken: 0,
            middle: VecDeque::new(),
            back: Vec::new(),
            spare: Vec::new(),
            earlier: Vec::new(),
        }
    }
}

impl<P: Copy> Wire<P> {
    /// Whether there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.front.len()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        let middle = self.middle.iter().map(Vec::len).sum::<usize>();
        self.front.len() - self.taken + middle + self.back.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, finish: Time, packet: P) {
        if self.is_empty() {
            self.begin(finish, packet);
            return;
        }
        self.back.push(Flying { finish, packet });
        if self.back.len() == CHUNK {
            self.end_back();
        }
    }

    /// The first packet of an empty wire.
    fn begin(&mut self, finish: Time, packet: P) {
        self.taken = 0;
        self.front.clear();
        self.front.push(Flying { finish, packet });
    }

    /// The chunk that is written is full.
    #[inline(never)]
    fn end_back(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        self.middle.push_back(std::mem::replace(&mut self.back, next));
    }

    /// The first packet.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&Flying<P>> {
        self.front.get(self.taken)
    }

    /// Removes the first packet.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.taken += 1;
        self.refill();
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

    /// Lends the chunk with the first packets, and the place of the first, until [`Wire::give_back`]: meanwhile the wire is
    /// empty, and nothing may be sent on it.
    #[inline]
    pub(super) fn lend(&mut self) -> (Vec<Flying<P>>, usize) {
        (std::mem::take(&mut self.front), std::mem::take(&mut self.taken))
    }

    /// Takes back the chunk that was lent, of which `taken` packets have been taken.
    #[inline]
    pub(super) fn give_back(&mut self, chunk: Vec<Flying<P>>, taken: usize) {
        (self.front, self.taken) = (chunk, taken);
        self.refill();
    }

    /// Removes all packets.
    pub(super) fn drain(&mut self) -> Vec<P> {
        let mut packets = Vec::with_capacity(self.len());
        while let Some(flying) = self.front() {
            packets.push(flying.packet);
            self.pop();
        }
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
        to.earlier.append(&mut self.earlier);
        to.refill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_arrive_in_order_whenever_they_are_handed_over(
            steps in prop::collection::vec((0usize..3, 1usize..200), 1..60),
        ) {
            let (mut near, mut far) = (Wire::default(), Wire::default());
            let (mut sent, mut handed, mut received) = (0u64, 0, 0);
            for (kind, count) in steps {
                match kind {
                    0 => for _ in 0..count {
                        near.push(Time::from_picos(sent), sent);
                        sent += 1;
                    },
                    1 => {
                        near.hand_over(&mut far);
                        prop_assert!(near.is_empty());
                        handed = sent;
                    }
                    _ => for _ in 0..count {
                        let front = far.front().map(|flying| (flying.finish.picos(), flying.packet));
                        prop_assert_eq!(front, (received < handed).then_some((received, received)));
                        if front.is_none() {
                            break;
                        }
                        far.pop();
                        received += 1;
                    },
                }
                prop_assert_eq!((near.len() as u64, far.len() as u64), (sent - handed, handed - received));
            }
        }
    }
}
