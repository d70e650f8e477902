//! Exact serialisation times.

use elephan_units::{Rate, Time};

/// Converts packet sizes to times at a rate, to the picosecond, and carries the remainder over: after any
/// number of packets the sum is exact, at 622.08 Mbit/s too.
#[derive(Clone, Debug)]
pub struct Serializer {
    bits_per_sec: u64,
    /// The remainder, in units of 1/rate picoseconds.
    carry: u64,
    /// The last two sizes seen (data and ACKs), with quotient and remainder, so that packets of these sizes
    /// need no division.
    known: [(u32, u64, u64); 2],
}

/// Picoseconds in a second, times bits in a byte.
pub const PICOS_BITS: u128 = 8_000_000_000_000;

/// The bytes, to the nearest, that are sent in this number of picoseconds times the rate; half a byte does not count: a time that is
/// rounded down to the picosecond must not make a difference to it.
pub fn bytes_of(work: u128) -> u64 {
    ((work + PICOS_BITS / 2 - 1) / PICOS_BITS) as u64
}

impl Serializer {
    /// A serializer at `rate`, which is not zero.
    pub fn new(rate: Rate) -> Self {
        Self { bits_per_sec: rate.bits_per_sec(), carry: 0, known: [(0, 0, 0); 2] }
    }

    /// The serialisation time of the next packet, of `bytes`.
    #[inline]
    pub fn next(&mut self, bytes: u32) -> Time {
        if self.known[0].0 != bytes {
            self.know(bytes);
        }
        let (_, mut picos, remainder) = self.known[0];
        self.carry += remainder;
        if self.carry >= self.bits_per_sec {
            self.carry -= self.bits_per_sec;
            picos += 1;
        }
        Time::from_picos(picos)
    }

    /// Another size than the last.
    #[inline(never)]
    fn know(&mut self, bytes: u32) {
        self.known.swap(0, 1);
        if self.known[0].0 != bytes {
            let total = u128::from(bytes) * PICOS_BITS;
            let rate = u128::from(self.bits_per_sec);
            self.known[0] = (bytes, (total / rate) as u64, (total % rate) as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sonet_rates_do_not_drift() {
        // 622.08 Mbit/s carries 51 840 packets of 1500 bytes a second, exactly.
        let mut serializer = Serializer::new(Rate::from_bits_per_sec(622_080_000));
        let total = (0..51_840).fold(0, |sum, _| sum + serializer.next(1500).picos());
        assert_eq!(total, 1_000_000_000_000);
    }

    #[test]
    fn half_a_byte_does_not_count_exact_or_rounded() {
        // The last packet of 1154.6 kbit/s leaves at an exact half of a byte, or a part of a picosecond before.
        let half = 1000 * PICOS_BITS + PICOS_BITS / 2;
        assert_eq!([half - 1_154_599, half, half + 1].map(bytes_of), [1000, 1000, 1001]);
    }

    proptest! {
        #[test]
        fn the_sum_is_exact(rate in 1_000u64..400_000_000_000, sizes in prop::collection::vec(40u32..9000, 1..200)) {
            let mut serializer = Serializer::new(Rate::from_bits_per_sec(rate));
            let sum: u128 = sizes.iter().map(|&bytes| u128::from(serializer.next(bytes).picos())).sum();
            let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
            prop_assert_eq!(sum, bits * 1_000_000_000_000 / u128::from(rate));
        }
    }
}
