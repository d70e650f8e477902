//! Losses not caused by the queue: on the wire, behind it.

use elephan_units::{Seed, Stream};
use rand::RngExt;

use crate::config::Loss;

/// Decides for each packet in turn whether the wire loses it.
#[derive(Clone, Debug)]
pub enum Losses {
    /// Nothing is lost.
    None,
    /// Independent losses, stored as the number of packets until the next loss: one random draw for each
    /// loss.
    Random {
        /// Packets until the next loss.
        spared: u64,
        /// Probability of a loss.
        probability: f64,
        /// The random stream.
        stream: Stream,
    },
    /// Loss of every n-th packet.
    Periodic {
        /// Packets until the next loss.
        spared: u64,
        /// Distance between losses.
        every: u64,
    },
    /// Gilbert and Elliott's two states.
    GilbertElliott {
        /// Whether the state is bad.
        bad: bool,
        /// Good to bad, bad to good, and the loss probabilities in the good and the bad state.
        p_r_good_bad: [f64; 4],
        /// The random stream.
        stream: Stream,
    },
}

impl Losses {
    /// The loss model of link number `index`.
    pub fn new(config: Option<Loss>, seed: Seed, index: u64) -> Self {
        let mut stream = seed.stream("loss on link", index);
        match config {
            None => Self::None,
            Some(Loss::Random { probability }) if probability <= 0.0 => Self::None,
            Some(Loss::Random { probability }) => {
                let spared = gap(probability, &mut stream);
                Self::Random { spared, probability, stream }
            }
            Some(Loss::Periodic { every }) => Self::Periodic { spared: every - 1, every },
            Some(Loss::GilbertElliott { p, r, loss_bad, loss_good }) => {
                Self::GilbertElliott { bad: false, p_r_good_bad: [p, r, loss_good, loss_bad], stream }
            }
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Random { spared: spared @ 1.., .. } | Self::Periodic { spared: spared @ 1.., .. } => {
                *spared -= 1;
                false
            }
            Self::Random { spared, probability, stream } => {
                *spared = gap(*probability, stream);
                true
            }
            Self::Periodic { spared, every } => {
                *spared = *every - 1;
                true
            }
            Self::GilbertElliott { bad, p_r_good_bad: [p, r, loss_good, loss_bad], stream } => {
                let lost = stream.random::<f64>() < if *bad { *loss_bad } else { *loss_good };
                let turns = stream.random::<f64>() < if *bad { *r } else { *p };
                *bad ^= turns;
                lost
            }
        }
    }
}

/// Packets spared before the next loss: geometric, by inversion.
fn gap(probability: f64, stream: &mut Stream) -> u64 {
    if probability >= 1.0 {
        return 0;
    }
    // 1 - u is in (0, 1], so that the logarithm is finite.
    let u = 1.0 - stream.random::<f64>();
    libm::floor(libm::log(u) / libm::log1p(-probability)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(config: Loss, packets: u64) -> Vec<u64> {
        let mut losses = Losses::new(Some(config), Seed::new(1), 0);
        (0..packets).filter(|_| losses.loses()).collect()
    }

    #[test]
    fn random_losses_have_their_probability_and_no_memory() {
        let lost = lost(Loss::Random { probability: 0.01 }, 1_000_000);
        // 10 000 expected, standard deviation 99.5: four standard deviations either way.
        assert!((9_600..10_400).contains(&lost.len()), "{} lost", lost.len());
        let pairs = lost.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        // A loss follows another directly with probability 0.01: 100 expected, standard deviation 10.
        assert!((60..140).contains(&pairs), "{pairs} pairs");
    }

    #[test]
    fn periodic_losses_hit_every_nth() {
        assert_eq!(lost(Loss::Periodic { every: 4 }, 12), [3, 7, 11]);
        assert_eq!(lost(Loss::Periodic { every: 1 }, 3), [0, 1, 2]);
    }

    #[test]
    fn each_is_found_by_its_name() {
        for loss in [
            Loss::Random { probability: 0.25 },
            Loss::Periodic { every: 7 },
            Loss::GilbertElliott { p: 0.1, r: 0.2, loss_bad: 0.9, loss_good: 0.1 },
        ] {
            let written = serde_json::to_value(loss).expect("it is written");
            assert_eq!(serde_json::from_value::<Loss>(written.clone()).ok(), Some(loss), "{written}");
        }
    }

    #[test]
    fn certain_and_impossible_losses() {
        assert_eq!(lost(Loss::Random { probability: 1.0 }, 3), [0, 1, 2]);
        assert!(lost(Loss::Random { probability: 0.0 }, 1000).is_empty());
    }

    #[test]
    fn gilbert_elliott_loses_in_bursts() {
        // Stationary share of the bad state p / (p + r) = 1/11; bursts of 1/r = 10 packets on average.
        let config = Loss::GilbertElliott { p: 0.01, r: 0.1, loss_bad: 1.0, loss_good: 0.0 };
        let lost = lost(config, 1_000_000);
        let share = lost.len() as f64 / 1e6;
        assert!((share - 1.0 / 11.0).abs() < 0.004, "share {share}");
        let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        let length = lost.len() as f64 / bursts as f64;
        assert!((length - 10.0).abs() < 0.4, "burst length {length}");
    }
}
