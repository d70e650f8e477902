//! Adaptive RED: RED whose drop probability follows the average queue.
//!
//! Floyd, Gummadi and Shenker, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's Active Queue Management",
//! 2001, section 4.

use elephan_units::{Rate, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::Head;
use crate::parameters::Parameters;
use crate::red::{Average, Curve, Spacing, packets_per_second, threshold_rules, thresholds};
use crate::verdict::{Moment, Verdict};
use elephan_units::Mistake;

/// The average is kept between these fractions of the distance from `min_th` to `max_th`.
const TARGET: (f64, f64) = (0.4, 0.6);
/// Automatic alpha: the smaller of this and a quarter of `max_p`.
const ALPHA: f64 = 0.01;

elephan_units::with_defaults! {
    /// Adaptive RED's parameters. It is always gentle.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct AdaptiveRed {
        /// Target queueing delay of automatic thresholds (Floyd, Gummadi and Shenker 2001, section 5).
        pub target_delay: Time = Time::from_millis(5),
        /// Average queue up to which no packet is dropped; automatic: half of the packets that the link sends in target_delay,
        /// at least 5.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0), extend("unit" = "packets"))]
        pub min_th: Option<f64> = None,
        /// Average queue at which the drop probability reaches max_p; automatic: 3 min_th.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), extend("unit" = "packets"))]
        pub max_th: Option<f64> = None,
        /// Weight of a new packet's queue in the average; automatic: 1 - exp(-1/C), C the rate in packets per second.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub w_q: Option<f64> = None,
        /// Initial drop probability at max_th; it then varies between bottom and top.
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub max_p: f64 = 0.1,
        /// Interval between changes of max_p (section 4: 0.5 s).
        pub interval: Time = Time::from_millis(500),
        /// Increment of max_p while the average is above its target; automatic: 0.01, at most a quarter of max_p.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub alpha: Option<f64> = None,
        /// Factor of max_p while the average is below its target (section 4: 0.9).
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub beta: f64 = 0.9,
        /// Maximum of max_p: no increase above this value (section 4: 0.5).
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub top: f64 = 0.5,
        /// Minimum of max_p: no decrease below this value (section 4: 0.01).
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub bottom: f64 = 0.01,
        /// Mean packet size, the unit of C and of the idle time.
        #[schemars(range(min = 1), extend("unit" = "bytes"))]
        pub mean_pktsize: u32 = 1500,
        /// Whether the gap between drops is 1/p to 2/p packets, instead of 1 to 1/p (ns-2, `wait_`).
        pub wait: bool = true,
        /// Whether ECN-capable packets are marked instead of dropped, up to where all are dropped (RFC 3168, section 7).
        pub ecn: bool = true,
    }
}

impl Parameters for AdaptiveRed {
    fn rules(&self) -> Vec<Mistake> {
        let mut mistakes = threshold_rules(self.min_th, self.max_th);
        if self.bottom > self.top {
            mistakes.push(Mistake::new(
                "bottom",
                format_args!("a number up to top = {}", self.top),
                self.bottom,
            ));
        }
        if self.interval == Time::ZERO {
            mistakes.push(Mistake::new("interval", "a time above zero", "\"0 s\""));
        }
        mistakes
    }
}

/// Adaptive RED's state.
#[derive(Clone, Debug)]
pub(crate) struct AdaptiveRedState {
    red: AdaptiveRed,
    average: Average,
    curve: Curve,
    spacing: Spacing,
    adapted: Time,
}

impl AdaptiveRedState {
    pub fn new(red: &AdaptiveRed, rate: Rate, stream: Stream) -> Self {
        let curve = Curve { min_th: 0.0, max_th: 0.0, max_p: red.max_p, gentle: true };
        let spacing = Spacing::new(red.wait, red.ecn, stream);
        let average = Average::new(red.w_q, 1.0);
        let mut state = Self { red: red.clone(), average, curve, spacing, adapted: Time::ZERO };
        state.tune(rate);
        state
    }

    pub fn tune(&mut self, rate: Rate) {
        let packets = packets_per_second(rate, self.red.mean_pktsize);
        self.average.tune(packets);
        (self.curve.min_th, self.curve.max_th) =
            thresholds(self.red.min_th, self.red.max_th, self.red.target_delay, packets);
    }

    /// Figure 1 of the paper, evaluated at the first packet after each interval.
    fn adapt(&mut self) {
        let (average, max_p) = (self.average.value, self.curve.max_p);
        let at = |share: f64| self.curve.min_th + share * (self.curve.max_th - self.curve.min_th);
        if average > at(TARGET.1) && max_p <= self.red.top {
            self.curve.max_p += self.red.alpha.unwrap_or_else(|| ALPHA.min(max_p / 4.0));
        } else if average < at(TARGET.0) && max_p >= self.red.bottom {
            self.curve.max_p *= self.red.beta;
        }
        self.curve.max_p = self.curve.max_p.min(1.0);
    }

    #[inline]
    pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
        self.average.update(moment.waiting.packets as f64, moment);
        if moment.now.since(self.adapted) >= self.red.interval {
            self.adapted = moment.now;
            self.adapt();
        }
        self.spacing.judge(self.curve.at(self.average.value), packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parcel;
    use crate::waiting::Waiting;
    use elephan_units::Seed;

    #[test]
    fn what_cannot_work_is_named() {
        let keys = |red: AdaptiveRed| red.rules().into_iter().map(|mistake| mistake.key).collect::<Vec<_>>();
        let default = AdaptiveRed::default;
        let top = default().top;
        assert!(keys(default()).is_empty());
        assert!(keys(AdaptiveRed { bottom: top, ..default() }).is_empty());
        assert_eq!(keys(AdaptiveRed { bottom: top + 0.01, ..default() }), ["bottom"]);
        assert_eq!(keys(AdaptiveRed { interval: Time::ZERO, ..default() }), ["interval"]);
    }

    #[test]
    fn the_probability_rises_by_alpha_and_falls_by_beta() {
        // min_th 10 and max_th 30: the target is 18 to 22.
        let red = AdaptiveRed { min_th: Some(10.0), w_q: Some(1.0), ..AdaptiveRed::default() };
        let mut state =
            AdaptiveRedState::new(&red, Rate::from_bits_per_sec(12_000_000), Seed::new(1).stream("test", 0));
        let mut now = Time::ZERO;
        let mut after = |state: &mut AdaptiveRedState, packets: u64, ms: u64| {
            now += Time::from_millis(ms);
            let waiting = Waiting { packets, bytes: 1500 * packets };
            state.judge(&parcel(0), &Moment { now, waiting, busy_until: now + Time::from_millis(1) });
            state.curve.max_p
        };
        assert_eq!(after(&mut state, 25, 499), 0.1);
        // min(0.01, 0.1/4) = 0.01.
        assert!((after(&mut state, 25, 1) - 0.11).abs() < 1e-12);
        assert!((after(&mut state, 25, 499) - 0.11).abs() < 1e-12);
        assert!((after(&mut state, 20, 1) - 0.11).abs() < 1e-12, "within its target");
        assert!((after(&mut state, 12, 500) - 0.099).abs() < 1e-12);
        // Below bottom max_p is not decreased; a small max_p increases by a quarter of itself.
        (0..100).for_each(|_| _ = after(&mut state, 12, 500));
        let bottom = after(&mut state, 12, 500);
        assert!((0.009..0.01).contains(&bottom), "{bottom}");
        assert!((after(&mut state, 25, 500) - 1.25 * bottom).abs() < 1e-12);
        (0..100).for_each(|_| _ = after(&mut state, 25, 500));
        let top = after(&mut state, 25, 500);
        assert!((0.5..=0.51).contains(&top), "{top}");
    }
}
