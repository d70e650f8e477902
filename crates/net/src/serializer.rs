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

    /// The serialisation time of each of the next `count` packets, of `bytes`, if it is the same for all and not longer than `most`;
    /// otherwise nothing has changed.
    #[inline]
    pub fn next_alike(&mut self, bytes: u32, count: u32, most: Time) -> Option<Time> {
        if self.known[0].0 != bytes {
            self.know(bytes);
        }
        let (_, picos, remainder) = self.known[0];
        let carry = self.carry.checked_add(remainder.checked_mul(count.into())?)?;
        let service = Time::from_picos(picos);
        if carry >= self.bits_per_sec || service > most {
            return None;
        }
        self.carry = carry;
        Some(service)
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
        fn packets_of_one_size_take_what_each_of_them_takes(
            rate in prop_oneof![Just(1_000_000_000u64), 1_000u64..400_000_000_000],
            runs in prop::collection::vec((40u32..9000, 1u32..20), 1..50),
        ) {
            let mut serializer = Serializer::new(Rate::from_bits_per_sec(rate));
            let mut single = serializer.clone();
            for (bytes, count) in runs {
                let most = Time::from_picos((PICOS_BITS * 1500 / u128::from(rate)) as u64);
                let alike = serializer.next_alike(bytes, count, most);
                let times: Vec<Time> = (0..count).map(|_| single.next(bytes)).collect();
                if let Some(time) = alike {
                    prop_assert!(time <= most);
                    prop_assert_eq!(times, vec![time; count as usize]);
                } else {
                    prop_assert!(times[0] > most || times.iter().any(|&time| time != times[0]) || times[0].picos() > (u128::from(bytes) * PICOS_BITS / u128::from(rate)) as u64);
                    serializer.carry = single.carry;
                }
            }
        }

        #[test]
        fn the_sum_is_exact(rate in 1_000u64..400_000_000_000, sizes in prop::collection::vec(40u32..9000, 1..200)) {
            let mut serializer = Serializer::new(Rate::from_bits_per_sec(rate));
            let sum: u128 = sizes.iter().map(|&bytes| u128::from(serializer.next(bytes).picos())).sum();
            let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
            prop_assert_eq!(sum, bits * 1_000_000_000_000 / u128::from(rate));
        }
    }
}
