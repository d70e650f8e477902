//! What a session may cost, and what it has cost.

use serde::{Deserialize, Serialize};

/// What a session may cost at most. Both sides have limits; the smaller ones hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of IP packets, in both directions together.
    pub bytes: u64,
    /// Time from the start of the session to its end, ms.
    pub millis: u64,
    /// Rate of a sender, bit/s; the largest number stands for no limit.
    pub rate: u64,
}

impl Limits {
    /// The smaller of both, for each limit.
    #[must_use]
    pub fn agree(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            millis: self.millis.min(other.millis),
            rate: self.rate.min(other.rate),
        }
    }
}

/// Counts bytes against a limit. What does not fit is refused before it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    most: u64,
    spent: u64,
}

impl Meter {
    pub fn new(most: u64) -> Self {
        Self { most, spent: 0 }
    }

    pub fn spent(&self) -> u64 {
        self.spent
    }

    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.spent)
    }

    /// Spends the bytes if they fit; otherwise spends nothing.
    pub fn take(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.left();
        if fits {
            self.spent += bytes;
        }
        fits
    }

    /// Spends what was sent already, also beyond the limit: then nothing fits any more.
    pub fn add(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// Returns bytes that were taken and not sent.
    pub fn give_back(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Limits, Meter};

    proptest! {
        #[test]
        fn what_is_agreed_on_is_within_both(a: (u64, u64, u64), b: (u64, u64, u64)) {
            let of = |(bytes, millis, rate)| Limits { bytes, millis, rate };
            let (a, b) = (of(a), of(b));
            let both = a.agree(b);
            prop_assert_eq!(both, b.agree(a));
            for one in [a, b] {
                prop_assert!(both.bytes <= one.bytes && both.millis <= one.millis && both.rate <= one.rate);
            }
            prop_assert_eq!(both.agree(a), both);
        }

        #[test]
        fn a_meter_never_gives_more_than_it_has(most: u64, takes in prop::collection::vec(any::<u64>(), 0..40)) {
            let mut meter = Meter::new(most);
            let mut given = 0_u128;
            for bytes in takes {
                let left = meter.left();
                let took = meter.take(bytes);
                prop_assert_eq!(took, bytes <= left);
                given += if took { u128::from(bytes) } else { 0 };
                prop_assert_eq!(u128::from(meter.spent()), given);
                prop_assert!(given <= u128::from(most));
            }
        }
    }

    #[test]
    fn after_too_much_nothing_fits() {
        let mut meter = Meter::new(10);
        meter.add(12);
        assert_eq!((meter.left(), meter.take(1), meter.take(0)), (0, false, true));
        meter.give_back(4);
        assert_eq!(meter.left(), 2);
    }
}
