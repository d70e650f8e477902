//! Opportunities to deliver, as in the traces of mahimahi's `mm-link`.
//!
//! The rule is that of `LinkQueue::rationalize` in mahimahi's `src/frontend/link_queue.cc` (Netravali et al., USENIX ATC 2015): at
//! each opportunity a packet's worth of bytes leaves, which several packets may share, and a packet may need several
//! opportunities. A packet leaves with its last byte. What finds no packet is lost. An opportunity is over before a
//! packet that arrives at the same time can use it. After the last all begin again, at its time.
//!
//! There an opportunity is of 1504 bytes, as a packet of 1500 has a header of 4 bytes on a TUN device. Here packets have no such
//! header, and an opportunity is of 1500 bytes.

use elephan_units::Time;

/// Bytes that may leave at an opportunity.
pub const OPPORTUNITY_BYTES: u32 = 1500;

const PICOS_OF_A_MILLISECOND: u64 = 1_000_000_000;

/// When bytes may leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Opportunities {
    /// Times in ms, which do not decrease.
    millis: Vec<u64>,
    repeats: bool,
}

impl Opportunities {
    /// Opportunities at times in ms, which do not decrease, and of which the last is above zero. If they repeat, they begin
    /// again at the time of the last.
    ///
    /// # Panics
    /// Without any time above zero.
    pub fn new(millis: Vec<u64>, repeats: bool) -> Self {
        assert!(millis.last().is_some_and(|&last| last > 0), "a trace lasts some time");
        Self { millis, repeats }
    }

    fn last(&self) -> u64 {
        self.millis[self.millis.len() - 1]
    }

    /// When they begin again.
    fn period(&self) -> Option<u64> {
        self.repeats.then(|| self.last())
    }

    /// When opportunity `number` is, which counts from 0; `Time::MAX` if there is none.
    pub fn time(&self, number: u64) -> Time {
        let count = self.millis.len() as u64;
        let (periods, place) = (number / count, (number % count) as usize);
        let since = match self.period() {
            Some(period) => period.saturating_mul(periods),
            None if periods > 0 => u64::MAX,
            None => 0,
        };
        let millis = since.saturating_add(self.millis[place]);
        Time::from_picos(millis.saturating_mul(PICOS_OF_A_MILLISECOND))
    }

    /// How many there are until `at`, those at this time included.
    pub fn count(&self, at: Time) -> u64 {
        let millis = at.picos() / PICOS_OF_A_MILLISECOND;
        let (periods, within) = match self.period() {
            Some(period) => (millis / period, millis % period),
            None => (0, millis),
        };
        periods * self.millis.len() as u64 + self.millis.partition_point(|&time| time <= within) as u64
    }

    /// What is allowed until `at`, in bits times the picoseconds in a second.
    pub fn work(&self, at: Time) -> u128 {
        u128::from(self.count(at)) * super::rates::work_of(OPPORTUNITY_BYTES)
    }
}
