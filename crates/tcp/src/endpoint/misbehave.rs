//! An end that acknowledges otherwise than what arrives tells it (Savage, Cardwell, Wetherall and Anderson 1999; RFC 9743, section 7.6).
//! The fast paths are not for such an end.

use elephan_units::Time;

use super::{Endpoint, Rare};
use crate::runs::Runs;
use crate::segment::{Header, Segment};
use crate::sequence;

/// What was sent and is not acknowledged lies within the largest window: nothing that arrives is older (RFC 7323, section 2.3).
const OLDEST: u64 = 1 << 30;

/// What an end that acknowledges early knows of what has arrived.
#[derive(Clone, Debug, Default)]
pub struct Optimism {
    /// What has arrived, as offsets, as far as the rest may still arrive.
    arrived: Runs,
    /// Payload bytes that have arrived, each once.
    pub bytes: u64,
    /// Segments that it acknowledges beyond the last that has arrived.
    lead: u32,
}

impl Optimism {
    /// `[left, right)` arrived, which is not empty: the end of what is acknowledged, in segments of `mss` bytes, at most `most` of them
    /// ahead. Each segment lets it go one further, so that it does not overtake the sender in the slow start, which doubles its rate; one
    /// below the last that has arrived was retransmitted, because it had overtaken the sender, which takes no such ACK.
    fn claim(&mut self, left: u64, right: u64, most: u32, mss: u32) -> u64 {
        let before = self.arrived.last().map_or(0, |run| run.1);
        self.lead = if right <= before { 0 } else { (self.lead + 1).min(most) };
        let highest = before.max(right);
        let oldest = highest.saturating_sub(OLDEST);
        if left >= oldest {
            self.arrived.insert(left, right, |left, right| self.bytes += right - left);
        }
        while self.arrived.first().is_some_and(|run| run.1 <= oldest) {
            self.arrived.pop_first();
        }
        highest + u64::from(self.lead) * u64::from(mss)
    }
}

impl Endpoint {
    /// What few connections need, from now on.
    #[cold]
    pub(super) fn rare(&mut self, now: Time) -> &mut Rare {
        self.rare.get_or_insert_with(|| Box::new(Rare { challenges: (0, now), optimism: None }))
    }

    /// Payload `[left, right)` arrived, with the FIN at `right` if `fin` is set, at an end that acknowledges early. `echo` is the age of the
    /// echoed timestamp, if there was one.
    #[cold]
    pub(super) fn receive_early(&mut self, left: u64, right: u64, fin: bool, echo: Option<Time>, now: Time) {
        let (most, mss) = (self.stack.config.misbehave.optimistic_acks, self.receiver.mss());
        let mut claim = right;
        if left < right {
            claim = self.rare(now).optimism.get_or_insert_default().claim(left, right, most, mss);
        }
        self.receiver.claim(if fin { right } else { claim }, fin, echo, now);
    }

    /// The next of the ACKs of a divided one, unless only the last is left: each segment in so many pieces.
    #[cold]
    pub(super) fn poll_piece(&mut self, now: Time) -> Option<Segment> {
        let pieces = u64::from(self.stack.config.misbehave.ack_division);
        let (mss, next) = (u64::from(self.receiver.mss()), self.receiver.next());
        let within = self.last_ack % mss;
        let number = within * pieces / mss + 1;
        let end = self.last_ack - within + (number * mss).div_ceil(pieces);
        if end >= next {
            return None;
        }
        let window = self.receiver.advertise() + (next - end);
        let offset = self.sender().map_or(0, |sender| sender.space().next);
        self.last_ack = end;
        let ack = sequence::wire(end, self.irs.wrapping_add(1));
        Some(Header { ack, ..self.header(offset, window, now) }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_ack_goes_further_with_each_segment_and_begins_again_at_one_that_was_sent_again() {
        let mut optimism = Optimism::default();
        let mut claim =
            |from: u64, to: u64| (optimism.claim(from * 100, to * 100, 3, 100) / 100, optimism.bytes / 100);
        // Where it ends, and what has arrived. Segment 3 is lost; 1 is retransmitted, and then 3.
        assert_eq!([claim(0, 1), claim(1, 2), claim(2, 3), claim(4, 5)], [(2, 1), (4, 2), (6, 3), (8, 4)]);
        assert_eq!([claim(1, 2), claim(5, 6), claim(3, 4)], [(5, 4), (7, 5), (6, 6)]);
    }

    #[test]
    fn what_is_older_than_a_window_is_forgotten() {
        let mut optimism = Optimism::default();
        for left in [0, 200, OLDEST + 150] {
            optimism.claim(left, left + 100, 1, 100);
        }
        assert_eq!(optimism.arrived.iter().collect::<Vec<_>>(), [(200, 300), (OLDEST + 150, OLDEST + 250)]);
        optimism.claim(100, 200, 1, 100);
        assert_eq!(optimism.bytes, 300);
    }
}
