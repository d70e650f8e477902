//! One seed for a run, which gives one independent random stream for each random process.

use rand_pcg::Pcg64Mcg;

/// A random stream. PCG's output is specified, so a seed gives the same numbers on every machine.
pub type Stream = Pcg64Mcg;

/// The seed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The stream of the `index`-th process of this `purpose` ("loss on link", "start of flow").
    ///
    /// Streams depend only on these three, so adding a flow does not change the draws of the others: common
    /// random numbers for paired comparisons.
    pub fn stream(self, purpose: &str, index: u64) -> Stream {
        // FNV-1a of the purpose, then two rounds of SplitMix64 (Steele, Lea, Flood 2014, fig. 17).
        let purpose = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let low = mix(mix(self.0 ^ purpose).wrapping_add(index));
        let high = mix(low.wrapping_add(0x9e37_79b9_7f4a_7c15));
        Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
    }
}

fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_process_has_a_stream_of_its_own() {
        let mut first_draws = BTreeSet::new();
        for seed in 0..20 {
            for purpose in ["loss", "jitter", "start"] {
                for index in 0..50 {
                    let mut stream = Seed::new(seed).stream(purpose, index);
                    first_draws.insert(rand_pcg::rand_core::Rng::next_u64(&mut stream));
                }
            }
        }
        assert_eq!(first_draws.len(), 20 * 3 * 50);
    }

    #[test]
    fn a_stream_repeats() {
        let draw = || rand_pcg::rand_core::Rng::next_u64(&mut Seed::new(7).stream("loss", 3));
        assert_eq!(draw(), draw());
    }
}
