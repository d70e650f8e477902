//! Weighted RED: one average queue, and one curve of drop probability for each class of packets.
//!
//! Clark and Fang, "Explicit Allocation of Best-Effort Packet Delivery Service", IEEE/ACM Transactions on
//! Networking 6(4), 1998. It describes RIO; this is the form with a common average, as in routers. Thesis,
//! section 5.3.2.

use elephan_units::{Rate, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dscp::Codepoints;
use crate::packet::Head;
use crate::parameters::Parameters;
use crate::red::{Average, Curve, Spacing, packets_per_second, threshold_rules, thresholds};
use crate::verdict::{Moment, Verdict};
use elephan_units::Mistake;

elephan_units::with_defaults! {
    /// The drop profile of a set of packets.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Profile {
        /// Codepoints to which the profile applies; none: all packets without another profile.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub dscp: Vec<Codepoints> = Vec::new(),
        /// Average queue up to which no packet is dropped; automatic as in RED.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0), extend("unit" = "packets"))]
        pub min_th: Option<f64> = None,
        /// Average queue at which the drop probability reaches max_p; automatic as in RED.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), extend("unit" = "packets"))]
        pub max_th: Option<f64> = None,
        /// Drop probability at max_th.
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub max_p: f64 = 0.1,
    }
}

elephan_units::with_defaults! {
    /// Weighted RED's parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Wred {
        /// The profiles: tables with dscp, min_th, max_th and max_p. One without dscp applies to all packets that no other
        /// selects; without such a profile, these are dropped only when the buffer is full.
        pub profile: Vec<Profile> = Vec::new(),
        /// Weight of a new packet's queue in the average; automatic: 1 - exp(-1/C), C the rate in packets per second (Floyd,
        /// Gummadi and Shenker 2001, section 5).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub w_q: Option<f64> = None,
        /// Whether the probability rises from max_p to 1 between max_th and twice that, instead of at once (Floyd 2000).
        pub gentle: bool = false,
        /// Mean packet size, the unit of C and of the idle time.
        #[schemars(range(min = 1), extend("unit" = "bytes"))]
        pub mean_pktsize: u32 = 1500,
        /// Whether the gap between drops is 1/p to 2/p packets, instead of 1 to 1/p (ns-2, `wait_`).
        pub wait: bool = true,
        /// Whether ECN-capable packets are marked instead of dropped, up to where all are dropped (RFC 3168, section 7).
        pub ecn: bool = true,
        /// Target queueing delay of automatic thresholds (Floyd, Gummadi and Shenker 2001, section 5).
        pub target_delay: Time = Time::from_millis(5),
    }
}

impl Parameters for Wred {
    fn rules(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.profile.is_empty() {
            mistakes.push(Mistake::new("profile", "at least one profile", "none"));
        }
        for (number, profile) in self.profile.iter().enumerate() {
            let key = format!("profile.{number}");
            mistakes
                .extend(threshold_rules(profile.min_th, profile.max_th).into_iter().map(|m| m.below(&key)));
        }
        let others = self.profile.iter().filter(|profile| profile.dscp.is_empty()).count();
        if others > 1 {
            mistakes.push(Mistake::new("profile", "at most one profile without dscp", others));
        }
        mistakes
    }
}

/// Weighted RED's state.
#[derive(Clone, Debug)]
pub(crate) struct WredState {
    wred: Wred,
    average: Average,
    curves: Vec<(Curve, Spacing)>,
    /// The profile of each codepoint; [`NONE`] for none.
    table: [u8; 64],
}

const NONE: u8 = u8::MAX;

impl WredState {
    pub fn new(wred: &Wred, rate: Rate, mut stream: Stream) -> Self {
        let curves = wred.profile.iter().map(|profile| {
            let curve = Curve { min_th: 0.0, max_th: 0.0, max_p: profile.max_p, gentle: wred.gentle };
            // Each profile draws from its own stream, so that the draws of one class do not depend on
            // another.
            let own = Stream::new(u128::from(rand::RngExt::random::<u64>(&mut stream)) << 64 | 1);
            (curve, Spacing::new(wred.wait, wred.ecn, own))
        });
        let mut table = [NONE; 64];
        for (dscp, entry) in (0u8..).zip(&mut table) {
            let named =
                wred.profile.iter().position(|profile| profile.dscp.iter().any(|set| set.contains(dscp)));
            let other = || wred.profile.iter().position(|profile| profile.dscp.is_empty());
            *entry = named.or_else(other).map_or(NONE, |number| number as u8);
        }
        let average = Average::new(wred.w_q, 1.0);
        let mut state = Self { wred: wred.clone(), average, curves: curves.collect(), table };
        state.tune(rate);
        state
    }

    pub fn tune(&mut self, rate: Rate) {
        let packets = packets_per_second(rate, self.wred.mean_pktsize);
        self.average.tune(packets);
        for (profile, (curve, _)) in self.wred.profile.iter().zip(&mut self.curves) {
            (curve.min_th, curve.max_th) =
                thresholds(profile.min_th, profile.max_th, self.wred.target_delay, packets);
        }
    }

    #[inline]
    pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
        self.average.update(moment.waiting.packets as f64, moment);
        let Some((curve, spacing)) =
            self.curves.get_mut(self.table[usize::from(packet.dscp() & 63)] as usize)
        else {
            return Verdict::Accept;
        };
        spacing.judge(curve.at(self.average.value), packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::testing::{Parcel, parcel};
    use crate::waiting::Waiting;
    use elephan_units::Seed;

    #[test]
    fn each_class_has_its_own_curve_on_the_common_average() {
        let profile = |dscp: &str, min: f64, max: f64, max_p: f64| Profile {
            dscp: if dscp.is_empty() { Vec::new() } else { vec![dscp.parse().unwrap()] },
            min_th: Some(min),
            max_th: Some(max),
            max_p,
        };
        let profiles = vec![
            profile("af11", 20.0, 40.0, 0.1),
            profile("af12", 5.0, 15.0, 0.2),
            profile("", 0.0, 5.0, 1.0),
        ];
        let wred = Wred { profile: profiles, w_q: Some(1.0), wait: false, ..Wred::default() };
        assert_eq!(wred.rules(), []);
        let dropped = |name: &str, packets: u64| {
            let mut state =
                WredState::new(&wred, Rate::from_bits_per_sec(12_000_000), Seed::new(1).stream("test", 0));
            let dscp = name.parse::<crate::Dscp>().unwrap().get();
            let packet = Parcel { ecn: Ecn::NotCapable, dscp, ..parcel(0) };
            let waiting = Waiting { packets, bytes: packets * 1500 };
            let moment = Moment { now: Time::ZERO, waiting, busy_until: Time::from_millis(1) };
            (0..10_000).filter(|_| state.judge(&packet, &moment) == Verdict::Drop).count()
        };
        // Drops at an average of 10: none of af11; every fifth of af12 on average, at p_b = 0.1; all others.
        assert_eq!(dropped("af11", 10), 0);
        assert!((1900..2100).contains(&dropped("af12", 10)), "{}", dropped("af12", 10));
        assert_eq!(dropped("be", 10), 10_000);
        // At 30 half of af11's 0.1: every tenth.
        assert!((900..1100).contains(&dropped("af11", 30)), "{}", dropped("af11", 30));
        assert_eq!(dropped("af12", 30), 10_000);
    }

    #[test]
    fn profiles_that_contradict_each_other_are_refused() {
        let keys = |wred: Wred| wred.rules().into_iter().map(|mistake| mistake.key).collect::<Vec<_>>();
        assert_eq!(keys(Wred::default()), ["profile"]);
        assert_eq!(keys(Wred { profile: vec![Profile::default(); 2], ..Wred::default() }), ["profile"]);
        let wrong = Profile { min_th: Some(9.0), max_th: Some(9.0), ..Profile::default() };
        assert_eq!(keys(Wred { profile: vec![wrong], ..Wred::default() }), ["profile.0.max_th"]);
    }
}
