//! The packets between the two ends of a link.

use std::collections::VecDeque;

use elephan_units::Time;

/// Number of packets in a chunk: a few kilobytes, which stay in the cache when the chunk is used again.
const CHUNK: usize = 64;

/// A packet that was accepted, and whose service has begun or is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying<P> {
    /// When the transmitter finishes it.
    pub finish: Time,
    pub packet: P,
}

/// The packets between the two ends of a link, in order of service.
///
/// They are stored in chunks, which move as a whole when a wire hands its packets over to another
/// ([`Wire::hand_over`]): if the ends of a link advance separately, each has a wire.
pub struct Wire<P> {
    /// No chunk is empty; of the first, `taken` packets have been taken.
    chunks: VecDeque<Vec<Flying<P>>>,
    taken: usize,
    /// Chunks to be used again.
    spare: Vec<Vec<Flying<P>>>,
    /// Numbers of packets that were offered before the measuring window, and waited when it began; in order.
    pub(super) earlier: Vec<u64>,
}

impl<P> Default for Wire<P> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), taken: 0, spare: Vec::new(), earlier: Vec::new() }
    }
}

impl<P: Copy> Wire<P> {
    /// Whether there is no packet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.taken
    }

    #[inline]
    pub(super) fn push(&mut self, finish: Time, packet: P) {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(Flying { finish, packet }),
            _ => self.begin_chunk(finish, packet),
        }
    }

    #[inline(never)]
    fn begin_chunk(&mut self, finish: Time, packet: P) {
        let mut chunk = self.spare.pop().unwrap_or_default();
        chunk.push(Flying { finish, packet });
        self.chunks.push_back(chunk);
    }

    /// The first packet.
    #[inline]
    pub(super) fn front(&self) -> Option<&Flying<P>> {
        self.chunks.front().map(|chunk| &chunk[self.taken])
    }

    /// Removes the first packet.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.taken += 1;
        if self.chunks.front().is_some_and(|chunk| chunk.len() == self.taken) {
            self.end_chunk();
        }
    }

    #[inline(never)]
    fn end_chunk(&mut self) {
        self.taken = 0;
        if let Some(mut chunk) = self.chunks.pop_front() {
            chunk.clear();
            self.spare.push(chunk);
        }
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
        to.chunks.append(&mut self.chunks);
        to.earlier.append(&mut self.earlier);
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
