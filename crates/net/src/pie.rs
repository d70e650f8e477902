//! PIE: Proportional Integral controller Enhanced (RFC 8033).
//!
//! If a link serves in order at a known rate, the queueing delay is the time until the transmitter is free;
//! otherwise it is the delay of the last packet served (RFC 8033, section 4.2, permits both).

use elephan_units::{Rate, Stream, Time};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{Ecn, Head};
use crate::parameters::Parameters;
use crate::verdict::{Moment, Verdict};
use elephan_units::Mistake;

/// RFC 8033, section 4.2: below these probabilities the adjustment is divided by these factors.
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// Section 5.5: above this probability one adjustment adds no more than [`CAP`].
const CAPPED_FROM: f64 = 0.1;
/// Section 5.5.
const CAP: f64 = 0.02;
/// Section 4.2: the factor of the probability after an update that found an empty queue twice.
const DECAY: f64 = 0.98;
/// Section 4.1: below this probability, and half of the reference delay, nothing is dropped.
const SAFE: f64 = 0.2;
/// Section 5.4: between these sums of probabilities since the last drop, drops are random.
const ACCUMULATED: (f64, f64) = (0.85, 8.5);
/// Maximum number of updates that are caught up at a packet, the last of those that are due. They take a few
/// milliseconds; at the RFC's interval this number is four hours without a packet.
const MOST_UPDATES: u64 = 1_000_000;

elephan_units::with_defaults! {
    /// PIE's parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Pie {
        /// Reference delay, QDELAY_REF (RFC 8033, section 4.2).
        pub qdelay_ref: Time = Time::from_millis(15),
        /// Interval between updates of the probability, T_UPDATE (section 4.2).
        pub t_update: Time = Time::from_millis(15),
        /// Weight of the delay's deviation from the reference (section 4.2: 1/8).
        #[schemars(range(min = 0.0), extend("unit" = "1/s"))]
        pub alpha: f64 = 0.125,
        /// Weight of the delay's change (section 4.2: 1 1/4).
        #[schemars(range(min = 0.0), extend("unit" = "1/s"))]
        pub beta: f64 = 1.25,
        /// Burst that an empty queue admits without drops, MAX_BURST (section 4.4).
        pub max_burst: Time = Time::from_millis(150),
        /// Mean packet size; a queue of at most two of these is never dropped from (section 4.1).
        #[schemars(range(min = 1), extend("unit" = "bytes"))]
        pub mean_pktsize: u32 = 1500,
        /// Whether drops are spaced (section 5.4).
        pub derandomize: bool = true,
        /// Whether ECN-capable packets are marked instead of dropped (section 5.1).
        pub ecn: bool = true,
        /// Probability from which ECN-capable packets are dropped too (section 5.1: 0.1).
        #[schemars(range(min = 0.0, max = 1.0))]
        pub mark_ecnth: f64 = 0.1,
    }
}

impl Parameters for Pie {
    fn rules(&self) -> Vec<Mistake> {
        let times = [("qdelay_ref", self.qdelay_ref), ("t_update", self.t_update)];
        let zero = times.into_iter().filter(|(_, time)| *time == Time::ZERO);
        zero.map(|(key, _)| Mistake::new(key, "a time above zero", "\"0 s\"")).collect()
    }
}

/// PIE's state.
#[derive(Clone, Debug)]
pub(crate) struct PieState {
    pie: Pie,
    drop_prob: f64,
    qdelay_old: Time,
    burst_allowance: Time,
    /// Sum of the probabilities of the packets since the last drop.
    accu_prob: f64,
    next_update: Time,
    stream: Stream,
}

impl PieState {
    /// The state at a transmitter of any rate.
    pub fn new(pie: &Pie, _: Rate, stream: Stream) -> Self {
        Self {
            pie: pie.clone(),
            drop_prob: 0.0,
            qdelay_old: Time::ZERO,
            burst_allowance: pie.max_burst,
            accu_prob: 0.0,
            next_update: pie.t_update,
            stream,
        }
    }

    /// RFC 8033, section 4.2, with the cap of section 5.5, at a queueing delay of `qdelay`.
    fn update(&mut self, qdelay: Time) {
        let pie = &self.pie;
        let (delay, old, reference) =
            (qdelay.secs_f64(), self.qdelay_old.secs_f64(), pie.qdelay_ref.secs_f64());
        let mut p = pie.alpha * (delay - reference) + pie.beta * (delay - old);
        if let Some((_, scale)) = SCALES.iter().find(|(below, _)| self.drop_prob < *below) {
            p /= scale;
        } else if p > CAP && self.drop_prob >= CAPPED_FROM {
            p = CAP;
        }
        self.drop_prob += p;
        if qdelay == Time::ZERO && self.qdelay_old == Time::ZERO {
            self.drop_prob *= DECAY;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.since(pie.t_update);
        self.restore_burst(qdelay);
        self.qdelay_old = qdelay;
    }

    /// Section 4.4: when congestion has ended, a burst is allowed again.
    fn restore_burst(&mut self, qdelay: Time) {
        let half = self.pie.qdelay_ref / 2;
        if self.drop_prob == 0.0 && qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.pie.max_burst;
        }
    }

    /// The updates that are due: each uses the delay at its own time, because nothing has changed since.
    fn catch_up(&mut self, moment: &Moment) {
        let missed = moment.now.since(self.next_update).picos() / self.pie.t_update.picos();
        self.next_update += self.pie.t_update * missed.saturating_sub(MOST_UPDATES);
        while self.next_update <= moment.now {
            let at = self.next_update;
            if self.drop_prob == 0.0 && self.qdelay_old == Time::ZERO && moment.busy_until <= at {
                // No further change until now.
                self.burst_allowance = self.pie.max_burst;
                let missed = moment.now.since(at).picos() / self.pie.t_update.picos();
                self.next_update = at.saturating_add(self.pie.t_update * (missed + 1));
                return;
            }
            self.update(moment.busy_until.since(at));
            self.next_update = at.saturating_add(self.pie.t_update);
        }
    }

    #[inline]
    pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
        if self.next_update <= moment.now {
            self.catch_up(moment);
        }
        if self.burst_allowance > Time::ZERO
            || self.drop_prob < SAFE && self.qdelay_old < self.pie.qdelay_ref / 2
            || moment.waiting.bytes <= 2 * u64::from(self.pie.mean_pktsize)
            || !self.drops()
        {
            return Verdict::Accept;
        }
        let marks = self.pie.ecn && self.drop_prob <= self.pie.mark_ecnth && packet.ecn() != Ecn::NotCapable;
        if marks { Verdict::Mark } else { Verdict::Drop }
    }

    /// The transmitter's rate changed: no setting of PIE depends on it.
    pub fn tune(_: &mut Self, _: Rate) {}

    fn drops(&mut self) -> bool {
        if self.pie.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < ACCUMULATED.0 {
                return false;
            }
            if self.accu_prob < ACCUMULATED.1 && self.stream.random::<f64>() >= self.drop_prob {
                return false;
            }
            self.accu_prob = 0.0;
            return true;
        }
        self.stream.random::<f64>() < self.drop_prob
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parcel;
    use crate::waiting::Waiting;
    use elephan_units::Seed;

    fn state(pie: &Pie) -> PieState {
        PieState::new(pie, Rate::from_bits_per_sec(1_000_000), Seed::new(1).stream("test", 0))
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn the_probability_follows_delay_and_trend() {
        let mut pie = state(&Pie::default());
        // alpha (20 - 15 ms) + beta (20 - 0 ms) = 0.025625, divided by 2048.
        pie.update(ms(20));
        assert!((pie.drop_prob - 0.025_625 / 2048.0).abs() < 1e-15, "{}", pie.drop_prob);
        // 1.25e-5 is in the decade with divisor 128: (0.000625 + 0.0) / 128.
        pie.update(ms(20));
        let expected = 0.025_625 / 2048.0 + 0.000_625 / 128.0;
        assert!((pie.drop_prob - expected).abs() < 1e-15, "{}", pie.drop_prob);
        // Above 0.1 the step of alpha 485 ms + beta 480 ms = 0.66 is capped.
        pie.drop_prob = 0.3;
        pie.update(ms(500));
        assert!((pie.drop_prob - 0.32).abs() < 1e-12);
        // The queue is empty again: 0.32 - 0.125 * 0.015 - 1.25 * 0.5 < 0.
        pie.update(Time::ZERO);
        assert_eq!(pie.drop_prob, 0.0);
        // Twice empty: (0.5 - 0.001875) * 0.98.
        pie.drop_prob = 0.5;
        pie.update(Time::ZERO);
        assert!((pie.drop_prob - 0.498_125 * 0.98).abs() < 1e-12);
    }

    fn busy(now: Time, delay: Time) -> Moment {
        Moment { now, waiting: Waiting { packets: 100, bytes: 150_000 }, busy_until: now + delay }
    }

    #[test]
    fn a_burst_is_let_through_for_150_ms() {
        let mut pie =
            state(&Pie { alpha: 1000.0, beta: 1000.0, ecn: false, derandomize: false, ..Pie::default() });
        let passes =
            (0..300).take_while(|&t| pie.judge(&parcel(0), &busy(ms(t), ms(100))) == Verdict::Accept).count();
        // Ten updates of 15 ms; the probability reaches 1 long before.
        assert_eq!(passes, 150);
    }

    #[test]
    fn a_long_rest_forgets_everything_in_no_time() {
        let mut pie = state(&Pie::default());
        pie.drop_prob = 0.9;
        pie.burst_allowance = Time::ZERO;
        let idle =
            Moment { now: Time::from_secs(1_000_000), waiting: Waiting::default(), busy_until: Time::ZERO };
        assert_eq!(pie.judge(&parcel(0), &idle), Verdict::Accept);
        assert_eq!((pie.drop_prob, pie.burst_allowance), (0.0, ms(150)));
        assert!(pie.next_update > idle.now && pie.next_update <= idle.now + ms(15));
    }

    #[test]
    fn a_packet_makes_up_for_a_bounded_number_of_updates() {
        // A queue that is busy for a second has a million million updates at an interval of a picosecond.
        let mut pie = state(&Pie { t_update: Time::from_picos(1), ..Pie::default() });
        let moment = busy(Time::from_secs(1), ms(100));
        assert_ne!(pie.judge(&parcel(0), &moment), Verdict::Drop);
        assert_eq!(pie.next_update, moment.now + Time::from_picos(1));
    }

    #[test]
    fn drops_have_their_probability_and_their_distance() {
        for derandomize in [false, true] {
            let mut pie = state(&Pie { ecn: false, derandomize, ..Pie::default() });
            (pie.drop_prob, pie.burst_allowance, pie.qdelay_old) = (0.01, Time::ZERO, ms(20));
            let mut gaps = Vec::new();
            let mut gap = 0u32;
            for _ in 0..1_000_000 {
                gap += 1;
                if pie.judge(&parcel(0), &busy(Time::ZERO, ms(20))) == Verdict::Drop {
                    gaps.push(std::mem::take(&mut gap));
                }
            }
            let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
            // Without: geometric, mean 100. With: none for the first 84, then geometric, none beyond 850.
            let expected = if derandomize { 184.0 } else { 100.0 };
            assert!((mean - expected).abs() < 6.0, "{mean}");
            assert_eq!(gaps.iter().all(|gap| (84..=851).contains(gap)), derandomize);
        }
    }

    #[test]
    fn marks_turn_into_drops_above_a_tenth() {
        let mut pie = state(&Pie { derandomize: false, ..Pie::default() });
        (pie.burst_allowance, pie.qdelay_old) = (Time::ZERO, ms(20));
        for (drop_prob, verdict) in [(0.1, Verdict::Mark), (0.11, Verdict::Drop)] {
            pie.drop_prob = drop_prob;
            let found = (0..1000)
                .map(|_| pie.judge(&parcel(0), &busy(Time::ZERO, ms(20))))
                .find(|v| *v != Verdict::Accept);
            assert_eq!(found, Some(verdict));
        }
    }
}
