//! Packets that follow each other on a wire as one entry.

use elephan_units::Time;

/// The most packets in a run.
const MOST: u8 = 9;

/// Packets that a transmitter finished one after the other at equal distances, to the picosecond that the serializer carries over,
/// and of which each follows from the first ([`Packet::behind`](crate::Packet::behind)).
#[derive(Clone, Copy, Debug)]
pub struct Run<H> {
    /// When the first packet is finished.
    finish: Time,
    /// How much later than the one before it each other packet is finished, in picoseconds, or one picosecond more.
    gap: u32,
    /// Number of packets behind the first.
    more: u8,
    /// For each of these, from the lowest bit on, whether its gap is the longer one.
    longer: u8,
    /// The first packet.
    head: H,
}

impl<H: Copy> Run<H> {
    /// A run of one packet.
    #[inline(always)]
    pub fn new(finish: Time, head: H) -> Self {
        Self { finish, gap: 0, more: 0, longer: 0, head }
    }

    /// Adds the packet behind the last, which was finished at `last`, if the run can express when it is finished; returns whether
    /// it can.
    #[inline(always)]
    pub fn extend(&mut self, last: Time, finish: Time) -> bool {
        let Ok(gap) = u32::try_from(finish.picos() - last.picos()) else { return false };
        if self.more == 0 {
            self.gap = gap;
        } else if self.more + 1 == MOST {
            return false;
        } else if gap == self.gap.wrapping_add(1) {
            self.longer |= 1 << self.more;
        } else if gap != self.gap {
            return false;
        }
        self.more += 1;
        true
    }

    /// When the first packet is finished.
    #[inline(always)]
    pub fn finish(&self) -> Time {
        self.finish
    }

    /// The first packet.
    #[inline(always)]
    pub fn head(&self) -> &H {
        &self.head
    }

    /// Number of packets.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        u32::from(self.more) + 1
    }

    /// Of the first `count` packets, the place, and when it arrives, so much later than it is finished.
    #[inline(always)]
    pub fn times(&self, delay: Time, count: u32) -> impl Iterator<Item = (u32, Time)> + use<H> {
        let Self { finish, gap, longer, .. } = *self;
        let mut next = finish.saturating_add(delay);
        (0..count).map(move |place| {
            let time = next;
            next =
                time.saturating_add(Time::from_picos(u64::from(gap) + u64::from(longer >> (place & 7) & 1)));
            (place, time)
        })
    }

    /// Removes the first packet; `behind` returns the head of the second. Returns false, with nothing changed, if there is no
    /// other.
    #[inline(always)]
    pub fn advance(&mut self, behind: impl FnOnce(&H) -> H) -> bool {
        let Some(more) = self.more.checked_sub(1) else { return false };
        self.finish = self.finish + Time::from_picos(u64::from(self.gap) + u64::from(self.longer & 1));
        (self.more, self.longer) = (more, self.longer >> 1);
        self.head = behind(&self.head);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the gaps are, runs that are begun where one cannot be extended give them back.
        #[test]
        fn runs_keep_every_time(gaps in prop::collection::vec(prop_oneof![8 => 1000u64..1002, 1 => 0u64..1 << 34], 0..40)) {
            let mut times = vec![Time::from_picos(5)];
            for gap in gaps {
                times.push(times[times.len() - 1] + Time::from_picos(gap));
            }
            let mut runs: Vec<Run<usize>> = Vec::new();
            for (number, &finish) in times.iter().enumerate() {
                let extended = number > 0
                    && runs.last_mut().is_some_and(|run| run.extend(times[number - 1], finish));
                if !extended {
                    runs.push(Run::new(finish, number));
                }
            }
            let mut found = Vec::new();
            for mut run in runs {
                prop_assert!(run.len() <= MOST.into());
                let expected: Vec<Time> = run.times(Time::ZERO, run.len()).map(|(_, time)| time).collect();
                prop_assert_eq!(expected.len() as u32, run.len());
                let mut taken = Vec::new();
                loop {
                    prop_assert_eq!(*run.head(), found.len() + taken.len());
                    taken.push(run.finish());
                    if !run.advance(|number| number + 1) {
                        break;
                    }
                }
                prop_assert_eq!(&taken, &expected);
                found.extend(taken);
            }
            prop_assert_eq!(found, times);
        }
    }
}
