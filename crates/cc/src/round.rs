//! The round-trip time of each round trip, for algorithms that estimate a queue from it.

use elephan_units::Time;

use crate::algorithm::Ack;

/// Number of samples needed to evaluate a round trip: with two, each may be of a delayed ACK (Linux).
pub const LEAST_SAMPLES: u32 = 3;

/// The smallest sample of the round trip that is being measured, so that delayed ACKs do not count as queueing.
#[derive(Clone, Copy, Debug)]
pub struct RoundRtt {
    number: u64,
    samples: u32,
    min: Time,
}

impl Default for RoundRtt {
    fn default() -> Self {
        Self { number: 0, samples: 0, min: Time::MAX }
    }
}

impl RoundRtt {
    /// At the ACK that ends a round trip: the part of its time that was queueing, from 0 to 1, if it can be evaluated. That ACK
    /// is of data that was sent after the round trip began, and so shows what a change of the window at that time did.
    pub fn queueing(&mut self, ack: &Ack) -> Option<f64> {
        if let Some(rtt) = ack.rtt {
            self.samples += 1;
            self.min = self.min.min(rtt);
        }
        if ack.round <= self.number {
            return None;
        }
        let round = std::mem::replace(self, Self { number: ack.round, ..Self::default() });
        let is_measured = round.samples >= LEAST_SAMPLES;
        is_measured.then(|| (1.0 - ack.min_rtt.secs_f64() / round.min.secs_f64()).max(0.0))
    }

    /// Discards what was measured in this round trip.
    pub fn wipe(&mut self) {
        *self = Self { number: self.number, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ack, close};

    /// ACKs with these samples, each in the round trip of this number; what the last one gives.
    fn after(rounds: &mut RoundRtt, samples: &[(u64, u64)]) -> Option<f64> {
        let ack = |&(round, ms): &(u64, u64)| Ack { round, ..ack(Time::from_millis(ms)) };
        samples.iter().map(|sample| rounds.queueing(&ack(sample))).last().flatten()
    }

    #[test]
    fn a_round_trip_is_evaluated_once_by_its_smallest_sample() {
        // 1 - 100/125. The ACK that ends it belongs to it.
        let mut rounds = RoundRtt::default();
        assert_eq!(after(&mut rounds, &[(0, 140), (0, 125)]), None);
        close(after(&mut rounds, &[(1, 140)]).unwrap(), 0.2, 1e-12);
        assert_eq!(after(&mut rounds, &[(1, 140), (1, 140)]), None);
        assert_eq!(after(&mut rounds, &[(2, 100)]), Some(0.0));
    }

    #[test]
    fn two_samples_and_what_was_wiped_are_not_evaluated() {
        let mut rounds = RoundRtt::default();
        assert_eq!(after(&mut rounds, &[(0, 200), (1, 200)]), None);
        after(&mut rounds, &[(1, 100), (1, 100)]);
        rounds.wipe();
        close(after(&mut rounds, &[(1, 125), (1, 125), (2, 125)]).unwrap(), 0.2, 1e-12);
    }
}
