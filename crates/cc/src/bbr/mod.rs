//! BBR, version 3: models the path by the largest delivery rate and the smallest round-trip time that it measured, paces at the
//! rate, and probes for more of it; losses and queues bound how far. Sections are those of the revision of draft-ietf-ccwg-bbr
//! that the registry names.
//!
//! Rates are in segments per second, and amounts of data in segments. The draft's functions and variables have their names
//! here, without its prefix. Where it leaves a choice, or something is otherwise:
//!
//! - A segment is told as lost after the recovery that answers it has begun: what that saves for an undo is the state before the
//!   loss, whichever the draft's text has first.
//! - A probe has reached `inflight_longterm` if what was in flight before an ACK did, as in the authors' code for Linux and QUIC:
//!   after an ACK a window that is full has room again.
//! - The window of a timeout is set when it is known what the timeout took as lost.
//! - No receiver or sender offload is in use, so there is no budget for it and no send quantum.
//! - Marks are no part of the draft, and change nothing.

mod filters;
mod losses;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::VecDeque;
use std::fmt;

use elephan_units::{Seed, Stream};
use rand::RngExt;

use crate::algorithm::{Cause, State};
use crate::governor::{Event, Fault, Governor, Limits, Report, Snapshot};
use crate::parameter::parameters;
use crate::variable::Tell;

use self::filters::Sample;
use self::losses::Undo;

/// The purpose of the random numbers.
const PURPOSE: &str = "bbr";
/// Round trips without growth of the delivery rate after which the bandwidth is found (section 5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// Growth of the delivery rate in a round trip that counts as growth (section 5.3.1.2).
const FULL_BW_GROWTH: f64 = 1.25;
/// Smallest window, in segments (`MinPipeCwnd`, section 2.8).
const MIN_PIPE: f64 = 4.0;
/// Largest number of round trips between two probes for bandwidth (section 5.3.3.8.3).
const MAX_ROUNDS: f64 = 63.0;
/// Growth of `inflight_longterm` doubles in every round trip, up to this power of two (section 5.3.3.9).
const MAX_UP_ROUNDS: u32 = 30;

parameters! {
    /// BBR's parameters.
    pub struct Parameters {
        /// Pacing gain of Startup: 4 ln 2 (draft-ietf-ccwg-bbr, section 5.3.1.1).
        startup_pacing_gain: f64 = 2.77, 1.0..=100.0, "";
        /// Pacing gain of Drain (section 5.3.2).
        drain_pacing_gain: f64 = 0.5, 0.01..=1.0, "";
        /// Drain ends after more round trips than these in any case (section 5.3.2); before revision 05 of the draft it did not (1e9).
        drain_rounds: f64 = 3.0, 0.0..=1e9, "";
        /// Pacing gain of ProbeBW_DOWN (section 5.3.3.1).
        down_pacing_gain: f64 = 0.9, 0.01..=1.0, "";
        /// Pacing gain of ProbeBW_UP (section 5.3.3.5).
        up_pacing_gain: f64 = 1.25, 1.0..=100.0, "";
        /// Whether the probe after one that lost too much ends where inflight_longterm is reached (section 5.3.3.6); not before revision 06
        /// of the draft.
        precautionary_probing: bool = true;
        /// Bandwidth-delay products in the window (section 5.6.1).
        cwnd_gain: f64 = 2.0, 1.0..=100.0, "";
        /// The same in ProbeBW_UP (section 5.3.3.5).
        up_cwnd_gain: f64 = 2.25, 1.0..=100.0, "";
        /// Part of the bandwidth that is left unused, so that a queue does not last (section 5.6.2).
        pacing_margin: f64 = 0.01, 0.0..=0.99, "";
        /// Fraction of the data sent in a round trip that may be lost while probing (sections 2.8 and 5.5.10.2).
        loss_thresh: f64 = 0.02, 0.0..=1.0, "";
        /// Fraction of a bound that remains after losses (sections 2.8 and 5.5.10).
        beta: f64 = 0.7, 0.0..=1.0, "";
        /// Part of inflight_longterm that is left for others while cruising (section 5.3.3.1).
        headroom: f64 = 0.15, 0.0..=1.0, "";
        /// Discontiguous ranges of lost segments in a round trip of recovery from which Startup ends (section 5.3.1.3).
        startup_full_loss_count: f64 = 6.0, 0.0..=1e9, "";
        /// Time for which the smallest round-trip time counts (section 5.5.7.2).
        min_rtt_filter: f64 = 10.0, 0.0..=1e9, "s";
        /// Time between two measurements of the smallest round-trip time (section 5.3.4.1).
        probe_rtt_interval: f64 = 5.0, 1e-3..=1e9, "s";
        /// Length of such a measurement (section 5.3.4.1).
        probe_rtt_duration: f64 = 0.2, 0.0..=1e9, "s";
        /// Bandwidth-delay products in the window during it (section 5.3.4.1).
        probe_rtt_cwnd_gain: f64 = 0.5, 0.0..=1.0, "";
        /// Shortest time between two probes for bandwidth; up to a second more is drawn (section 5.3.3.8.3).
        probe_bw_wait: f64 = 2.0, 0.0..=1e9, "s";
    }
}

/// The state machine (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Phase {
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether it sends more than it knows the path to carry (`IsProbingBW`).
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Which part of a probe the ACKs that arrive now are of (`ack_phase`, section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acks {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The delivery rate's growth, which ends Startup and ProbeBW_UP (section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
struct FullBw {
    bw: f64,
    rounds: u32,
    now: bool,
}

elephan_units::with_defaults! {
    /// BBR.
    #[derive(Clone)]
    pub struct Bbr {
        parameters: Parameters = Parameters::default(),
        random: Stream = Seed::default().stream(PURPOSE, 0),
        phase: Phase = Phase::Startup,
        initial_window: f64 = 0.0,
        pacing_rate: f64 = 0.0,
        // The time, and segments delivered so far, at the last call.
        now: f64 = 0.0,
        delivered: u64 = 0,
        // The newest segment that the ACK which is processed delivered.
        newest: Option<Snapshot> = None,
        // Round trips (section 5.5.1).
        next_round: u64 = 0,
        rounds: u64 = 0,
        round_start: bool = false,
        drain_start_round: u64 = 0,
        // The model of the path: the largest delivery rates of the cycle before this one and of this one, and bounds.
        max_bw: [f64; 2] = [0.0; 2],
        bw: f64 = 0.0,
        bw_shortterm: f64 = f64::INFINITY,
        inflight_shortterm: f64 = f64::INFINITY,
        inflight_longterm: f64 = f64::INFINITY,
        min_rtt: f64 = f64::INFINITY,
        min_rtt_stamp: f64 = 0.0,
        // The smallest round-trip time of late, which ProbeRTT measures.
        probe_rtt_min: f64 = f64::INFINITY,
        probe_rtt_stamp: f64 = 0.0,
        probe_rtt_expired: bool = false,
        probe_rtt_done: Option<f64> = None,
        probe_rtt_round_done: bool = false,
        // What ProbeRTT limits: segments that were sent when so many were delivered, from the first to the last number.
        probe_rtt_limits: (u64, u64) = (u64::MAX, 0),
        // Growth of the delivery rate.
        full_bw: FullBw = FullBw::default(),
        full_bw_reached: bool = false,
        // What was delivered in the last round trip, and whether something was lost (section 5.5.10.3).
        bw_latest: f64 = 0.0,
        inflight_latest: f64 = 0.0,
        loss_round_delivered: u64 = 0,
        loss_round_start: bool = false,
        is_loss_in_round: bool = false,
        // Ranges of segments lost in this round trip, and the last segment of them.
        lost_ranges: u32 = 0,
        last_lost: Option<u64> = None,
        // Aggregation of ACKs (section 5.5.9): when it began, what was delivered since, and the largest excesses by round trip, falling.
        extra_acked_interval_start: f64 = 0.0,
        extra_acked_delivered: f64 = 0.0,
        extra_acked: VecDeque<(u64, f64)> = VecDeque::new(),
        // Probing for bandwidth.
        acks: Acks = Acks::Init,
        is_bw_probe_sample: bool = false,
        prev_probe_too_high: bool = false,
        prev_probe_precautionary: bool = false,
        cycle_stamp: f64 = 0.0,
        probe_wait: f64 = 0.0,
        rounds_since_probe: f64 = 0.0,
        up_rounds: u32 = 0,
        up_acked: f64 = 0.0,
        up_acked_per_inc: f64 = f64::INFINITY,
        // Recovery: segments delivered when it began.
        recovery: Option<u64> = None,
        prior_cwnd: f64 = 0.0,
        idle_restart: bool = false,
        is_app_limited: bool = false,
        undo: Undo = Undo::default(),
    }
}

impl fmt::Debug for Bbr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bbr({:?}, {} segments/s, {} s)", self.phase, self.bw, self.min_rtt)
    }
}

impl Bbr {
    /// BBR with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// A number from 0 to 1.
    fn draw(&mut self) -> f64 {
        self.random.random::<f64>()
    }

    fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => self.parameters.startup_pacing_gain,
            Phase::Drain => self.parameters.drain_pacing_gain,
            Phase::Down => self.parameters.down_pacing_gain,
            Phase::Up => self.parameters.up_pacing_gain,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.phase {
            Phase::Up => self.parameters.up_cwnd_gain,
            Phase::ProbeRtt => self.parameters.probe_rtt_cwnd_gain,
            _ => self.parameters.cwnd_gain,
        }
    }

    /// So many bandwidth-delay products of this bandwidth (`BDPMultiple`).
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.is_infinite() { self.initial_window } else { gain * bw * self.min_rtt }
    }

    /// The same as data in flight (`Inflight`).
    fn inflight(&self, bw: f64) -> f64 {
        self.quantised(self.bdp(bw, 1.0))
    }

    /// `QuantizationBudget`.
    fn quantised(&self, inflight: f64) -> f64 {
        inflight.max(MIN_PIPE) + if self.phase == Phase::Up { 2.0 } else { 0.0 }
    }

    /// The bandwidth-delay product, unless congestion cut cwnd (`TargetInflight`).
    fn target_inflight(&self, cwnd: f64) -> f64 {
        self.bdp(self.bw, 1.0).min(cwnd)
    }

    fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (self.parameters.headroom * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(MIN_PIPE)
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw, self.parameters.probe_rtt_cwnd_gain).max(MIN_PIPE)
    }

    /// `CheckFullBWReached`.
    fn check_full_bw(&mut self, sample: &Sample) {
        if self.full_bw.now || !self.round_start || sample.is_app_limited {
            return;
        }
        if sample.rate >= FULL_BW_GROWTH * self.full_bw.bw {
            self.reset_full_bw(sample.rate);
            return;
        }
        self.full_bw.rounds += 1;
        self.full_bw.now = self.full_bw.rounds >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw.now;
    }

    /// `ResetFullBW`, with a baseline.
    fn reset_full_bw(&mut self, bw: f64) {
        self.full_bw = FullBw { bw, ..FullBw::default() };
    }

    /// `CheckStartupDone`.
    fn check_startup_done(&mut self, sample: &Sample) {
        self.check_startup_loss(sample);
        if self.phase == Phase::Startup && self.full_bw_reached {
            self.phase = Phase::Drain;
            self.drain_start_round = self.rounds;
        }
    }

    /// `CheckDrainDone`.
    fn check_drain_done(&mut self, sample: &Sample) {
        let is_late = self.rounds as f64 > self.drain_start_round as f64 + self.parameters.drain_rounds;
        if self.phase == Phase::Drain && (sample.in_flight <= self.inflight(self.bw) || is_late) {
            self.start_down();
        }
    }

    /// `StartProbeBW_DOWN`.
    fn start_down(&mut self) {
        self.reset_congestion_signals();
        self.up_acked_per_inc = f64::INFINITY;
        // `PickProbeWait`.
        self.rounds_since_probe = libm::floor(2.0 * self.draw());
        self.probe_wait = self.parameters.probe_bw_wait + self.draw();
        self.cycle_stamp = self.now;
        self.acks = Acks::ProbeStopping;
        self.start_round();
        self.phase = Phase::Down;
    }

    /// `StartProbeBW_REFILL`.
    fn start_refill(&mut self) {
        self.reset_short_term();
        (self.up_rounds, self.up_acked) = (0, 0.0);
        self.prev_probe_precautionary = false;
        self.acks = Acks::Refilling;
        self.start_round();
        self.phase = Phase::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, sample: &Sample, cwnd: f64) {
        self.acks = Acks::ProbeStarting;
        self.start_round();
        self.reset_full_bw(sample.rate);
        self.phase = Phase::Up;
        self.raise_slope(cwnd);
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, cwnd: f64) {
        let growth = f64::from(1_u32 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.up_acked_per_inc = (cwnd / growth).max(1.0);
    }

    /// Section 5.3.3.9 (`UpdateProbeBWCyclePhase`).
    fn update_cycle(&mut self, sample: &Sample, cwnd: f64) {
        if !self.full_bw_reached || self.adapt_long_term(sample, cwnd) {
            return;
        }
        match self.phase {
            Phase::Down => {
                if !self.check_time_to_probe(cwnd) && self.is_time_to_cruise(sample) {
                    self.phase = Phase::Cruise;
                }
            }
            Phase::Cruise => {
                self.check_time_to_probe(cwnd);
            }
            Phase::Refill => {
                // After one round trip of refilling.
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_up(sample, cwnd);
                }
            }
            Phase::Up => {
                if self.is_time_to_go_down(sample, cwnd) {
                    self.prev_probe_too_high = false;
                    self.start_down();
                }
            }
            Phase::Startup | Phase::Drain | Phase::ProbeRtt => {}
        }
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.inflight_with_headroom() && sample.in_flight <= self.inflight(self.max_bw())
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, sample: &Sample, cwnd: f64) -> bool {
        let is_risky = self.parameters.precautionary_probing && self.prev_probe_too_high;
        if is_risky && sample.prior_in_flight >= libm::floor(self.inflight_longterm) {
            self.prev_probe_precautionary = true;
            return true;
        }
        if sample.is_cwnd_limited && cwnd >= self.inflight_longterm {
            // The bound limits it, not the path.
            self.reset_full_bw(sample.rate);
            return false;
        }
        self.full_bw.now
    }

    /// `IsTimeToProbeBW`; often enough for a Standard TCP to get its share (`IsRenoCoexistenceProbeTime`).
    fn check_time_to_probe(&mut self, cwnd: f64) -> bool {
        let rounds = self.target_inflight(cwnd).min(MAX_ROUNDS);
        let is_time = self.now > self.cycle_stamp + self.probe_wait || self.rounds_since_probe >= rounds;
        if is_time {
            self.start_refill();
        }
        is_time
    }

    /// `AdaptLongTermModel`: whether it has decided on a transition.
    fn adapt_long_term(&mut self, sample: &Sample, cwnd: f64) -> bool {
        if self.acks == Acks::ProbeStarting && self.round_start {
            self.acks = Acks::ProbeFeedback;
        }
        if self.acks == Acks::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.acks = Acks::Init;
            if self.phase.is_probe_bw() && !sample.is_app_limited {
                // A cycle ends: the filter covers this one and the one before.
                self.max_bw = [self.max_bw[1], 0.0];
            }
            if self.phase.is_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                // The precaution was needless.
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(sample.lost, sample.tx_in_flight, sample.has_sack)
            && self.inflight_longterm.is_finite()
        {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            if self.phase == Phase::Up {
                self.probe_upward(sample, cwnd);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, sample: &Sample, cwnd: f64) {
        if !sample.is_cwnd_limited || cwnd < self.inflight_longterm {
            return;
        }
        self.up_acked += sample.acked;
        if self.up_acked >= self.up_acked_per_inc {
            let delta = libm::floor(self.up_acked / self.up_acked_per_inc);
            self.up_acked -= delta * self.up_acked_per_inc;
            self.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_slope(cwnd);
        }
    }

    /// Section 5.3.4.3 (`CheckProbeRTT`).
    fn check_probe_rtt(&mut self, sample: &Sample, limits: &mut Limits) {
        if self.phase != Phase::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.phase = Phase::ProbeRtt;
            self.save_cwnd(limits.cwnd);
            self.probe_rtt_done = None;
            self.acks = Acks::ProbeStopping;
            self.start_round();
        }
        if self.phase == Phase::ProbeRtt {
            self.limit_by_probe_rtt(sample);
            if self.probe_rtt_done.is_none() && sample.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(self.now + self.parameters.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.start_round();
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(limits);
                }
            }
        }
        if sample.has_data {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, limits: &mut Limits) {
        if self.probe_rtt_done.is_some_and(|done| self.now > done) {
            self.probe_rtt_stamp = self.now;
            self.restore_cwnd(limits);
            // `ExitProbeRTT`.
            self.reset_short_term();
            if self.full_bw_reached {
                self.start_down();
                self.phase = Phase::Cruise;
            } else {
                self.phase = Phase::Startup;
            }
        }
    }

    /// `SaveCwnd`.
    fn save_cwnd(&mut self, cwnd: f64) {
        let is_usual = self.recovery.is_none() && self.phase != Phase::ProbeRtt;
        self.prior_cwnd = if is_usual { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// `RestoreCwnd`.
    fn restore_cwnd(&self, limits: &mut Limits) {
        limits.cwnd = limits.cwnd.max(self.prior_cwnd);
    }

    /// Section 5.6.2 (`SetPacingRateWithGain`).
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - self.parameters.pacing_margin);
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Section 5.6.4.6 (`SetCwnd`).
    fn set_cwnd(&self, sample: &Sample, mut cwnd: f64) -> f64 {
        // `UpdateMaxInflight`.
        let max_inflight = self.quantised(self.bdp(self.bw, self.cwnd_gain()) + self.extra_acked());
        if self.full_bw_reached {
            cwnd = (cwnd + sample.acked).min(max_inflight);
        } else if cwnd < max_inflight || (self.delivered as f64) < self.initial_window {
            cwnd += sample.acked;
        }
        cwnd = cwnd.max(MIN_PIPE);
        if self.phase == Phase::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // Section 5.6.4.7 (`BoundCwndForModel`).
        let cap = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.inflight_longterm,
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
            Phase::Startup | Phase::Drain => f64::INFINITY,
        };
        cwnd.min(cap.min(self.inflight_shortterm).max(MIN_PIPE))
    }

    fn limit(&self, limits: &mut Limits, mss: u32) {
        limits.pacing_rate = self.pacing_rate * f64::from(mss);
    }

    /// What every call says.
    fn note(&mut self, report: &Report) {
        self.now = report.now_ns as f64 / 1e9;
        self.delivered = report.delivered;
    }
}

impl Governor for Bbr {
    fn governs_recovery(&self) -> bool {
        true
    }

    fn needs_rate(&self) -> bool {
        true
    }

    fn start(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.note(report);
        self.initial_window = limits.cwnd;
        (self.min_rtt_stamp, self.probe_rtt_stamp, self.extra_acked_interval_start) =
            (self.now, self.now, self.now);
        if report.srtt_ns > 0 {
            let rtt = report.srtt_ns as f64 / 1e9;
            (self.min_rtt, self.probe_rtt_min) = (rtt, rtt);
        }
        // Section 5.6.2: the initial window in a round trip, or in a millisecond if its time is unknown.
        let rtt = if report.srtt_ns > 0 { report.srtt_ns as f64 / 1e9 } else { 1e-3 };
        self.pacing_rate = self.parameters.startup_pacing_gain * limits.cwnd / rtt;
        self.limit(limits, report.mss);
        Ok(())
    }

    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.note(report);
        let sample = self.sample(report);
        self.is_app_limited = sample.is_app_limited;
        self.update_latest(&sample);
        self.update_congestion_signals(&sample, limits.cwnd);
        self.update_aggregation(&sample, limits.cwnd);
        self.check_full_bw(&sample);
        self.check_startup_done(&sample);
        self.check_drain_done(&sample);
        self.update_cycle(&sample, limits.cwnd);
        self.update_min_rtt(&sample);
        self.check_probe_rtt(&sample, limits);
        self.advance_latest(&sample);
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pacing_rate(self.pacing_gain());
        limits.cwnd = self.set_cwnd(&sample, limits.cwnd);
        self.limit(limits, report.mss);
        Ok(())
    }

    fn newest(&mut self, segment: &Snapshot) {
        self.newest = Some(*segment);
    }

    fn lost(&mut self, limits: &mut Limits, report: &Report, segment: &Snapshot) -> Result<(), Fault> {
        self.note(report);
        self.handle_lost(limits.cwnd, report.lost, segment);
        Ok(())
    }

    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        if cause == Cause::Loss {
            // Section 5.6.4.4 (`OnEnterFastRecovery`). That of a timeout follows with the state.
            self.save_state(limits.cwnd);
            self.recovery = Some(report.delivered);
        }
        Ok(())
    }

    fn state(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        let is = |state: State| report.state == u32::from(state);
        if is(State::Loss) {
            // Section 5.6.4.4 (`OnEnterRTO`).
            self.save_state(limits.cwnd);
            self.recovery.get_or_insert(report.delivered);
            limits.cwnd = f64::from(report.in_flight) + 1.0;
        } else if self.recovery.is_some() && !is(State::Recovery) {
            self.recovery = None;
            self.restore_cwnd(limits);
        }
        Ok(())
    }

    fn event(&mut self, limits: &mut Limits, report: &Report, event: Event) -> Result<(), Fault> {
        // Section 5.4.1: the application has sent nothing for a while, and all is acknowledged.
        if matches!(event, Event::Start | Event::Restart) && report.snd_una == report.snd_nxt {
            self.note(report);
            self.idle_restart = true;
            self.extra_acked_interval_start = self.now;
            if self.phase.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.phase == Phase::ProbeRtt {
                self.check_probe_rtt_done(limits);
            }
            self.limit(limits, report.mss);
        }
        Ok(())
    }

    fn undo(&mut self, limits: &mut Limits, _before: &Limits) -> Result<bool, Fault> {
        self.handle_spurious_loss(limits);
        Ok(true)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables::tell(self, tell);
    }

    fn fresh(&self, seed: u64) -> Box<dyn Governor> {
        Box::new(Self { random: Seed::new(seed).stream(PURPOSE, 0), ..Self::new(self.parameters) })
    }

    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}
