//! The variables of BBR that a trace records, with the draft's names.

use super::{Bbr, Phase};
use crate::variable::{FLAG, Tell, variables};

/// The states, as the draft calls them (section 5.3).
const STATES: &[&str] =
    &["Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP", "ProbeRTT"];

/// The place of a phase in [`STATES`].
fn state(phase: Phase) -> u8 {
    match phase {
        Phase::Startup => 0,
        Phase::Drain => 1,
        Phase::Down => 2,
        Phase::Cruise => 3,
        Phase::Refill => 4,
        Phase::Up => 5,
        Phase::ProbeRtt => 6,
    }
}

/// A value that is zero or infinite as long as it is unknown.
fn known(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { value } else { f64::NAN }
}

pub(super) fn tell(bbr: &Bbr, tell: &mut Tell<'_>) {
    variables! { tell;
        /// State of the machine (section 5.3).
        state: STATES = f64::from(state(bbr.phase));
        /// Number of round trips, counted by deliveries (section 5.5.1).
        round_count: "" = bbr.rounds as f64;
        /// Factor of the bandwidth at which it paces (section 5.6.2).
        pacing_gain: "" = bbr.pacing_gain();
        /// Bandwidth-delay products that the window may have (section 5.6.4).
        cwnd_gain: "" = bbr.cwnd_gain();
        /// Largest delivery rate of the last two cycles of probing (section 5.5.5); unknown before the first.
        max_bw: "segments/s" = known(bbr.max_bw());
        /// Bound of the bandwidth after losses of this cycle (section 5.5.10); infinite without one.
        bw_shortterm: "segments/s" = bbr.bw_shortterm;
        /// The bandwidth that it uses: the smaller of the two; unknown before the first.
        bw: "segments/s" = known(bbr.bw);
        /// Largest amount in flight that the path is thought to hold without too many losses (section 5.5.10); infinite before the first.
        inflight_longterm: "segments" = bbr.inflight_longterm;
        /// The same after losses of this cycle (section 5.5.10); infinite without one.
        inflight_shortterm: "segments" = bbr.inflight_shortterm;
        /// What ACKs delivered at most beyond the bandwidth, because they were aggregated (section 5.5.9).
        extra_acked: "segments" = bbr.extra_acked();
        /// Smallest round-trip time of the last seconds (section 5.5.7); unknown before the first.
        min_rtt: "s" = known(bbr.min_rtt);
        /// Whether the bandwidth was found, so that Startup is over (section 5.3.1.2).
        full_bw_reached: FLAG = f64::from(bbr.full_bw_reached);
        /// Successive round trips without much growth of the delivery rate (section 5.3.1.2).
        full_bw_count: "" = f64::from(bbr.full_bw.rounds);
        /// Whether it sends again after an idle time, and no ACK has come since (section 5.4.1).
        idle_restart: FLAG = f64::from(bbr.idle_restart);
        /// Whether the application limited the last sample of the delivery rate (RS.is_app_limited).
        is_app_limited: FLAG = f64::from(bbr.is_app_limited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_of_the_draft() {
        let names = [
            (Phase::Startup, "Startup"),
            (Phase::Drain, "Drain"),
            (Phase::Down, "ProbeBW_DOWN"),
            (Phase::Cruise, "ProbeBW_CRUISE"),
            (Phase::Refill, "ProbeBW_REFILL"),
            (Phase::Up, "ProbeBW_UP"),
            (Phase::ProbeRtt, "ProbeRTT"),
        ];
        assert_eq!(names.map(|(phase, _)| STATES[usize::from(state(phase))]), names.map(|(_, name)| name));
    }

    #[test]
    fn what_is_not_known_is_nan_and_a_bound_that_is_not_set_infinite() {
        let mut found = std::collections::BTreeMap::new();
        tell(&Bbr::default(), &mut |variable, value| {
            found.insert(variable.name, value);
        });
        assert!(["max_bw", "bw", "min_rtt"].iter().all(|model| found[model].is_nan()), "{found:?}");
        let bounds = ["bw_shortterm", "inflight_longterm", "inflight_shortterm"];
        assert!(bounds.iter().all(|bound| found[bound].is_infinite()), "{found:?}");
        assert_eq!((found["pacing_gain"], found["round_count"], found["full_bw_reached"]), (2.77, 0.0, 0.0));
    }
}
