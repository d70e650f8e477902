//! Packets that follow each other on a wire as one entry.

use elephan_units::Time;

/// The most packets in a run.
const MOST: u16 = 17;

/// When packets that follow each other are finished: at equal distances, to the picosecond that a serializer carries over.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// When the first packet is finished.
    first: Time,
    /// How much later than the one before it each other packet is finished, in picoseconds, or one picosecond more.
    gap: u32,
    /// Number of packets.
    count: u16,
    /// For each packet but the first, from the lowest bit on, whether its gap is the longer one.
    longer: u16,
}

/// Packets that a transmitter finished one after the other, and of which each follows from the first
/// ([`Head::behind`](crate::Head::behind)).
#[derive(Clone, Copy, Debug)]
pub struct Run<H> {
    /// When they are finished.
    pub times: Times,
    /// The first packet.
    pub head: H,
}

impl Times {
    /// Of so many packets at one time: any number. More than a run may have can only be taken from.
    #[inline(always)]
    pub fn at_once(count: u16, at: Time) -> Self {
        Self { first: at, gap: 0, count, longer: 0 }
    }

    /// Adds a packet behind the last, which was finished at `last`, if it can be expressed when it is finished; returns whether
    /// it can.
    #[inline(always)]
    pub fn extend(&mut self, last: Time, finish: Time) -> bool {
        let Ok(gap) = u32::try_from(finish.picos() - last.picos()) else { return false };
        if self.count == 1 {
            self.gap = gap;
        } else if self.count >= MOST {
            return false;
        } else if gap == self.gap.wrapping_add(1) {
            self.longer |= 1 << (self.count - 1);
        } else if gap != self.gap {
            return false;
        }
        self.count += 1;
        true
    }

    /// When the first packet is finished.
    #[inline(always)]
    pub fn first(&self) -> Time {
        self.first
    }

    /// Number of packets.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count.into()
    }

    /// When the last packet is finished.
    #[inline(always)]
    pub fn last(&self) -> Time {
        let others = self.count - 1;
        let longer = if self.longer == 0 { 0 } else { self.longer.count_ones() };
        self.first
            .saturating_add(Time::from_picos(u64::from(others) * u64::from(self.gap) + u64::from(longer)))
    }

    /// A time that no gap is shorter than; the longest of all for one packet, which has none.
    #[inline(always)]
    pub fn least_gap(&self) -> Time {
        if self.count == 1 { Time::MAX } else { Time::from_picos(self.gap.into()) }
    }

    /// The same, so much later.
    #[must_use]
    #[inline(always)]
    pub fn later(self, by: Time) -> Self {
        Self { first: self.first.saturating_add(by), ..self }
    }

    /// Those of the first `count` packets.
    #[must_use]
    #[inline(always)]
    pub fn up_to(self, count: u32) -> Self {
        let gaps = 1u16.checked_shl(count - 1).unwrap_or(0).wrapping_sub(1);
        Self { count: count as u16, longer: self.longer & gaps, ..self }
    }

    /// The place of each packet, and when it arrives, so much later than it is finished.
    #[inline(always)]
    pub fn iter(&self, delay: Time) -> impl Iterator<Item = (u32, Time)> + use<> {
        let Self { first, gap, count, longer } = *self;
        let mut next = first.saturating_add(delay);
        (0..u32::from(count)).map(move |place| {
            let time = next;
            next =
                time.saturating_add(Time::from_picos(u64::from(gap) + u64::from(longer >> (place & 15) & 1)));
            (place, time)
        })
    }

    /// Removes the first packet; returns false, with nothing changed, if there is no other.
    #[inline(always)]
    fn advance(&mut self) -> bool {
        if self.count == 1 {
            return false;
        }
        self.first += Time::from_picos(u64::from(self.gap) + u64::from(self.longer & 1));
        (self.count, self.longer) = (self.count - 1, self.longer >> 1);
        true
    }
}

impl<H> Run<H> {
    /// A run of one packet.
    #[inline(always)]
    pub fn new(finish: Time, head: H) -> Self {
        Self { times: Times::at_once(1, finish), head }
    }

    /// Removes the first packet; `behind` returns the head of the second. Returns false, with nothing changed, if there is no
    /// other.
    #[inline(always)]
    pub fn advance(&mut self, behind: impl FnOnce(&H) -> H) -> bool {
        let goes_on = self.times.advance();
        if goes_on {
            self.head = behind(&self.head);
        }
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_that_is_full_or_more_is_not_extended() {
        for count in [MOST, MOST + 3] {
            for later in 0..2 {
                let mut times = Times::at_once(count, Time::ZERO);
                assert!(!times.extend(Time::ZERO, Time::from_picos(later)));
            }
        }
        assert!(Times::at_once(MOST - 1, Time::ZERO).extend(Time::ZERO, Time::from_picos(1)));
    }

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
                    && runs.last_mut().is_some_and(|run| run.times.extend(times[number - 1], finish));
                if !extended {
                    runs.push(Run::new(finish, number));
                }
            }
            let mut found = Vec::new();
            for mut run in runs {
                prop_assert!(run.times.count() <= MOST.into());
                let expected: Vec<Time> = run.times.iter(Time::ZERO).map(|(_, time)| time).collect();
                let gaps = expected.windows(2).map(|times| times[1] - times[0]);
                prop_assert!(gaps.min().is_none_or(|least| least.since(Time::from_picos(1)) <= run.times.least_gap()));
                for count in 1..=run.times.count() {
                    let times = run.times.up_to(count).later(Time::from_picos(3));
                    prop_assert_eq!(times.last(), expected[count as usize - 1] + Time::from_picos(3));
                }
                prop_assert_eq!(expected.len() as u32, run.times.count());
                let mut taken = Vec::new();
                loop {
                    prop_assert_eq!(run.head, found.len() + taken.len());
                    taken.push(run.times.first());
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
