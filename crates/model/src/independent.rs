//! The steady state of an algorithm under independent losses, found by running its rule.
//!
//! H-TCP's increase depends on the time of the last loss, and that of BIC-TCP and CUBIC on the window at the
//! last loss. One loss in `1/p` packets, always at the same window, does not represent such an algorithm
//! among others whose packets are lost at random: at `p = 10^-3` and 50 ms BIC-TCP's mean window is then 43
//! segments, and under independent losses 71 (in the simulator too).
//!
//! The rule itself, of `elephan-cc`, runs in steps of a quarter of a round trip. A packet is lost with
//! probability `p`. A round trip later the sender detects the loss; its response covers all other losses in
//! the meantime. For one more round trip it repairs the loss, without growth. Means over `LOSSES` losses are
//! accurate to three per cent.

use elephan_cc::algorithm::{Ack, Cause, Congestion, State};
use elephan_cc::registry::{self, AnyAlgorithm};
use elephan_cc::slow_start::SlowStart;
use elephan_cc::{Controller, Quantisation};
use elephan_units::entry::Value;
use elephan_units::{Seed, Time};
use rand::RngExt;

use crate::Error;

/// Number of losses over which means are taken, and number of losses before them, until the initial state has
/// no effect.
const LOSSES: u32 = 5_000;
const FORGOTTEN: u32 = 100;
/// Steps in a round trip; the rules grow between them.
const STEPS: u32 = 4;
/// Loss probabilities start here and decrease by this factor each, until the window is as large as requested.
const MOST_LOSS: f64 = 0.1;
const LESS_LOSS: f64 = 0.5;
const LEAST_LOSS: f64 = 1e-9;
/// Payload of a segment in bytes, which rules that count segments ignore.
pub(crate) const MSS: u32 = 1448;

/// This number of steps takes less than a millisecond.
pub(crate) const STEPS_BETWEEN_LOOKS: u64 = 1024;

/// The steady state at one loss probability and one round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Mean window in segments.
    pub window: f64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Growth of the window in segments, for each segment acknowledged.
    pub gain: f64,
}

/// The rule of the algorithm `name`, for which [`crate::Algorithm::new`] has a model with these settings.
pub fn rule(name: &str, settings: &[(&str, Value)]) -> AnyAlgorithm {
    let entry = registry::find(name).expect("a name that has a model");
    entry.build(settings).expect("settings that the model has taken")
}

/// Runs `rule` at loss probability `loss` with round-trip times of `rtt` s, on a path that had `min_rtt` s.
/// This takes longer the fewer losses there are. It fails if `is_cancelled`, which is checked about every
/// millisecond, returns true.
pub fn steady(
    rule: &AnyAlgorithm,
    loss: f64,
    min_rtt: f64,
    rtt: f64,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Steady, Error> {
    let (rule, slow_start) = (rule.clone(), SlowStart::Standard);
    let mut controller = Controller::new(rule, slow_start, Quantisation::None, 10.0).with_ssthresh(2.0);
    let (min_rtt, rtt) = (Time::from_secs_f64(min_rtt), Time::from_secs_f64(rtt));
    let (mut now, mut delivered, mut step) = (Time::ZERO, 0.0, 0u64);
    // The same random draws for every probability, so that curves are smooth.
    let mut stream = Seed::new(0).stream("independent losses", 0);
    let mut draw = || -libm::log(1.0 - stream.random::<f64>()) / loss;
    // Packets until the next loss, steps until the sender detects a loss, and steps until it has repaired it.
    let (mut until_loss, mut until_known, mut until_repaired) = (draw(), None, 0);
    let (mut acknowledged, mut grown, mut rounds, mut losses) = (0.0, 0.0, 0.0, 0);
    while losses < FORGOTTEN + LOSSES {
        let window = controller.cwnd();
        let segments = window / f64::from(STEPS);
        now += rtt.mul_f64(1.0 / f64::from(STEPS));
        delivered += segments;
        step += 1;
        if step % STEPS_BETWEEN_LOOKS == 0 && is_cancelled() {
            return Err(Error::Cancelled);
        }
        controller.on_ack(&Ack {
            now,
            segments: if until_repaired > 0 { 0.0 } else { segments },
            delivered,
            una: (delivered * f64::from(MSS)) as u64,
            next: ((delivered + window) * f64::from(MSS)) as u64,
            rtt: Some(rtt),
            min_rtt,
            srtt: rtt,
            round: step / u64::from(STEPS),
            state: if until_repaired > 0 { State::Recovery } else { State::Open },
            mss: MSS,
        });
        if losses >= FORGOTTEN {
            acknowledged += segments;
            grown += controller.cwnd() - window;
            rounds += 1.0 / f64::from(STEPS);
        }
        until_repaired = until_repaired.max(1) - 1;
        match until_known {
            None => {
                until_loss -= segments;
                until_known = (until_loss < 0.0).then_some(STEPS);
            }
            Some(1) => {
                let flight_size = controller.cwnd();
                let cause = Cause::Loss;
                controller.on_congestion(&Congestion { now, cause, flight_size, delivered, min_rtt });
                losses += 1;
                (until_loss, until_known, until_repaired) = (draw(), None, STEPS);
            }
            Some(more) => until_known = Some(more - 1),
        }
    }
    Ok(Steady { window: acknowledged / rounds, loss, gain: grown / acknowledged })
}

/// Steady states of a rule by window and round-trip time.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The shortest and the longest round-trip time in s, and the steady states there by rising window.
    shortest: (f64, Vec<Steady>),
    longest: (f64, Vec<Steady>),
}

impl Curves {
    /// For round-trip times from `min_rtt` to `max_rtt`, in s, and windows up to `most` segments. Fails as [`steady`] does.
    pub fn new(
        rule: &AnyAlgorithm,
        min_rtt: f64,
        max_rtt: f64,
        most: f64,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let curve = |rtt: f64| {
            let mut states: Vec<Steady> = Vec::new();
            let mut loss = MOST_LOSS;
            while states.len() < 2 || loss > LEAST_LOSS && states[states.len() - 1].window < most {
                let state = steady(rule, loss, min_rtt, rtt, is_cancelled)?;
                // Random draws can make a curve flat; it must increase.
                if states.last().is_none_or(|last| last.window < state.window) {
                    states.push(state);
                }
                loss *= LESS_LOSS;
            }
            Ok(states)
        };
        Ok(Self { shortest: (min_rtt, curve(min_rtt)?), longest: (max_rtt, curve(max_rtt)?) })
    }

    /// The steady state with mean window `w` at `rtt` s: loss and gain are interpolated as powers of the
    /// window between the points that were run, and extrapolated beyond them; they are linear in the
    /// round-trip time.
    pub fn at(&self, w: f64, rtt: f64) -> Steady {
        let of = |states: &[Steady]| {
            let after = states.partition_point(|s| s.window < w).clamp(1, states.len() - 1);
            let (low, high) = (states[after - 1], states[after]);
            let part = libm::log(w / low.window) / libm::log(high.window / low.window);
            let between = |low: f64, high: f64| low * libm::pow(high / low, part);
            (between(low.loss, high.loss), between(low.gain, high.gain))
        };
        let ((near, from), (far, to)) = (&self.shortest, &self.longest);
        let part = if far > near { ((rtt - near) / (far - near)).clamp(0.0, 1.0) } else { 0.0 };
        let ((p, gain), (q, more)) = (of(from), of(to));
        Steady { window: w, loss: p + part * (q - p), gain: gain + part * (more - gain) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn standard_tcp_has_the_window_of_independent_losses() {
        // A periodic sawtooth has sqrt(1.5/p). Independent losses of a fluid AIMD give sqrt(1.31^2/p) (Ott,
        // Kemperman and Mathis 1996, where the constant of sqrt(2/p) is 0.93 to 1.31, depending on what is
        // counted). This is reduced by the constant window of one round trip in each epoch of 0.6 sqrt(2/p)
        // or so.
        for p in [1e-3, 1e-4] {
            let found = steady(&rule("reno", &[]), p, 0.1, 0.1, &|| false).unwrap();
            let expected = 1.31 / p.sqrt();
            assert!((found.window / expected - 1.0).abs() < 0.05, "{p}: {} for {expected}", found.window);
        }
    }

    #[test]
    fn growth_makes_up_for_losses() {
        // Scalable TCP grows by 0.01 for each segment outside repairs, and is reduced by an eighth at a loss.
        let found = steady(&rule("scalable", &[]), 1e-3, 0.1, 0.1, &|| false).unwrap();
        assert!(found.gain < 0.01 && found.gain > 0.008, "{found:?}");
    }

    #[test]
    fn windows_are_those_of_the_simulator() {
        // One flow, 50 ms, random losses, for 550 s in the packet simulator: 45.8, 85.1 and 60.5, 125.8, segments.
        for (name, p, simulated) in
            [("htcp", 1.2e-3, 45.8), ("htcp", 5e-4, 85.1), ("bic", 1.2e-3, 60.5), ("bic", 5e-4, 125.8)]
        {
            let found = steady(&rule(name, &[]), p, 0.05, 0.05, &|| false).unwrap();
            assert!((found.window / simulated - 1.0).abs() < 0.05, "{name} {p}: {found:?}");
        }
    }

    #[test]
    fn a_curve_goes_through_what_was_run() {
        let rule = rule("bic", &[]);
        let curves = Curves::new(&rule, 0.05, 0.1, 100.0, &|| false).unwrap();
        let run = steady(&rule, MOST_LOSS * LESS_LOSS * LESS_LOSS, 0.05, 0.1, &|| false).unwrap();
        let read = curves.at(run.window, 0.1);
        assert!((read.loss / run.loss - 1.0).abs() < 1e-6, "{read:?} {run:?}");
        assert!((read.gain / run.gain - 1.0).abs() < 1e-6, "{read:?} {run:?}");
        // Between round-trip times, and beyond the largest window that was run.
        let (near, far) = (curves.at(50.0, 0.05).loss, curves.at(50.0, 0.1).loss);
        let middle = curves.at(50.0, 0.075).loss;
        assert!(middle >= near.min(far) && middle <= near.max(far));
        assert!(curves.at(1e4, 0.05).loss < curves.at(1e3, 0.05).loss);
    }

    #[test]
    fn a_long_run_can_be_cancelled() {
        assert_eq!(steady(&rule("reno", &[]), 1e-15, 0.1, 0.1, &|| true), Err(Error::Cancelled));
        assert!(Curves::new(&rule("htcp", &[]), 0.1, 0.1, 1e6, &|| true).is_err());
    }
}
