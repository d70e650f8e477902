//! BBR, version 3 (draft-ietf-ccwg-bbr): models the path by the largest delivery rate and the smallest round-trip time that
//! it measured, paces at the rate, and probes for more of it; losses and queues bound how far.
//!
//! Rates are in segments per second, and amounts of data in segments. The draft's functions have their names here, without
//! its prefix. What differs: a loss is judged at the next ACK that delivers data, and not when it is detected; the data that
//! was in flight when a segment was sent includes what was selectively acknowledged; a sender has no segmentation offload,
//! so there is no budget for it; and samples during ProbeRTT do not count as limited by the application, which could only
//! matter to a bandwidth below the largest.

mod filters;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::VecDeque;
use std::fmt;

use elephan_units::{Seed, Stream};
use rand::RngExt;

use crate::algorithm::{Cause, State};
use crate::governor::{Event, Fault, Governor, Limits, Report};
use crate::parameter::parameters;
use crate::variable::Tell;

use self::filters::{Low, Sample};

/// The purpose of the random numbers.
const PURPOSE: &str = "bbr";
/// Round trips without growth of the delivery rate after which the bandwidth is found (section 5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// Growth of the delivery rate in a round trip that counts as growth (section 5.3.1.2).
const FULL_BW_GROWTH: f64 = 1.25;
/// Smallest window, in segments (section 2.7).
const MIN_PIPE: f64 = 4.0;
/// Largest number of round trips between two probes for bandwidth (section 5.3.3.5.3).
const MAX_ROUNDS: f64 = 63.0;
/// Growth of the bound of data in flight doubles in every round trip, up to this power of two (section 5.3.3.6).
const MAX_UP_ROUNDS: u32 = 30;

parameters! {
    /// BBR's parameters.
    pub struct Parameters {
        /// Pacing gain of Startup: 4 ln 2 (draft-ietf-ccwg-bbr, section 5.3.1.1).
        startup_pacing_gain: f64 = 2.77, 1.0..=100.0, "";
        /// Pacing gain of Drain (section 5.3.2).
        drain_pacing_gain: f64 = 0.5, 0.01..=1.0, "";
        /// Pacing gain of ProbeBW_DOWN (section 5.3.3).
        down_pacing_gain: f64 = 0.9, 0.01..=1.0, "";
        /// Pacing gain of ProbeBW_UP (section 5.3.3).
        up_pacing_gain: f64 = 1.25, 1.0..=100.0, "";
        /// Bandwidth-delay products in the window (section 5.6.4).
        cwnd_gain: f64 = 2.0, 1.0..=100.0, "";
        /// The same in ProbeBW_UP (section 5.3.3).
        up_cwnd_gain: f64 = 2.25, 1.0..=100.0, "";
        /// Part of the bandwidth that is left unused, so that a queue does not last (section 5.6.2).
        pacing_margin: f64 = 0.01, 0.0..=0.99, "";
        /// Fraction of the data sent in a round trip that may be lost while probing (section 5.5.10).
        loss_thresh: f64 = 0.02, 0.0..=1.0, "";
        /// Fraction of a bound that remains after losses (section 5.5.10).
        beta: f64 = 0.7, 0.0..=1.0, "";
        /// Part of the bound of data in flight that is left for others while cruising (section 5.3.3.2).
        headroom: f64 = 0.15, 0.0..=1.0, "";
        /// ACKs that report losses in a round trip of recovery from which Startup ends (section 5.3.1.3).
        startup_full_loss_count: f64 = 6.0, 0.0..=1e9, "";
        /// Time for which the smallest round-trip time counts (section 5.5.7).
        min_rtt_filter: f64 = 10.0, 0.0..=1e9, "s";
        /// Time between two measurements of the smallest round-trip time (section 5.3.4).
        probe_rtt_interval: f64 = 5.0, 1e-3..=1e9, "s";
        /// Length of such a measurement (section 5.3.4).
        probe_rtt_duration: f64 = 0.2, 0.0..=1e9, "s";
        /// Bandwidth-delay products in the window during it (section 5.3.4).
        probe_rtt_cwnd_gain: f64 = 0.5, 0.0..=1.0, "";
        /// Shortest time between two probes for bandwidth; up to a second more is drawn (section 5.3.3.5.3).
        probe_bw_wait: f64 = 2.0, 0.0..=1e9, "s";
    }
}

/// The state machine (section 5.3).
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

    /// Whether it sends more than it knows the path to carry.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Which part of a probe the ACKs that arrive now are of (section 5.3.3.5.1).
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

/// What losses change, for an undo.
#[derive(Clone, Copy, Debug)]
struct Undo {
    phase: Phase,
    low: Low,
    inflight_hi: f64,
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
        // Round trips (section 5.5.1).
        next_round: u64 = 0,
        rounds: u64 = 0,
        round_start: bool = false,
        // The model of the path.
        max_bw: [f64; 2] = [0.0; 2],
        bw: f64 = 0.0,
        low: Low = Low::NONE,
        inflight_hi: f64 = f64::INFINITY,
        min_rtt: f64 = f64::INFINITY,
        min_rtt_stamp: f64 = 0.0,
        // The smallest round-trip time of late, which ProbeRTT measures.
        probe_rtt_min: f64 = f64::INFINITY,
        probe_rtt_stamp: f64 = 0.0,
        probe_rtt_expired: bool = false,
        probe_rtt_done: Option<f64> = None,
        probe_rtt_round_done: bool = false,
        // Growth of the delivery rate.
        full_bw: FullBw = FullBw::default(),
        full_bw_reached: bool = false,
        // What was delivered and lost in the last round trip (section 5.5.10).
        bw_latest: f64 = 0.0,
        inflight_latest: f64 = 0.0,
        loss_round: u64 = 0,
        loss_round_start: bool = false,
        loss_in_round: bool = false,
        loss_events: u32 = 0,
        /// Segments delivered and lost in all, at the ACKs of the last round trip.
        losses: VecDeque<(u64, u64)> = VecDeque::new(),
        // Aggregation of ACKs (section 5.5.9): when it began, what was delivered since, the largest excess in this part of the
        // window and the one before, and the round trips of this part.
        aggregation_begin: f64 = 0.0,
        aggregation: f64 = 0.0,
        extra_acked: [f64; 2] = [0.0; 2],
        extra_acked_rounds: u32 = 0,
        // Probing for bandwidth.
        acks: Acks = Acks::Init,
        is_probe_sample: bool = false,
        cycle_stamp: f64 = 0.0,
        probe_wait: f64 = 0.0,
        rounds_since_probe: f64 = 0.0,
        up_rounds: u32 = 0,
        up_acks: f64 = 0.0,
        up_count: f64 = f64::INFINITY,
        // Recovery.
        is_recovering: bool = false,
        conserve_until: Option<u64> = None,
        prior_cwnd: f64 = 0.0,
        idle_restart: bool = false,
        is_app_limited: bool = false,
        undo: Option<Undo> = None,
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

    /// Bandwidth-delay products (`BDPMultiple`).
    fn bdp(&self, gain: f64) -> f64 {
        if self.min_rtt.is_infinite() { self.initial_window } else { gain * self.bw * self.min_rtt }
    }

    /// Data in flight with this gain (`Inflight`, `QuantizationBudget`).
    fn inflight(&self, gain: f64) -> f64 {
        self.quantised(self.bdp(gain))
    }

    fn quantised(&self, inflight: f64) -> f64 {
        inflight.max(MIN_PIPE) + if self.phase == Phase::Up { 2.0 } else { 0.0 }
    }

    fn inflight_with_headroom(&self) -> f64 {
        let headroom = (self.parameters.headroom * self.inflight_hi).max(1.0);
        if self.inflight_hi.is_infinite() {
            f64::INFINITY
        } else {
            (self.inflight_hi - headroom).max(MIN_PIPE)
        }
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.parameters.probe_rtt_cwnd_gain).max(MIN_PIPE)
    }

    /// `CheckFullBWReached`.
    fn check_full_bw(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate.filter(|_| !self.full_bw.now && !sample.is_app_limited) else { return };
        if rate >= FULL_BW_GROWTH * self.full_bw.bw {
            self.full_bw = FullBw { bw: rate, ..FullBw::default() };
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_bw.rounds += 1;
        self.full_bw.now = self.full_bw.rounds >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw.now;
    }

    /// `CheckStartupDone`, with `CheckStartupHighLoss`.
    fn check_startup_done(&mut self, sample: &Sample) {
        self.loss_events += u32::from(sample.newly_lost > 0);
        if !self.full_bw_reached
            && self.loss_round_start
            && sample.is_recovering
            && f64::from(self.loss_events) >= self.parameters.startup_full_loss_count
            && self.is_inflight_too_high(sample)
        {
            self.full_bw_reached = true;
            self.inflight_hi = self.bdp(1.0).max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.loss_events = 0;
        }
        if self.phase == Phase::Startup && self.full_bw_reached {
            self.phase = Phase::Drain;
        }
    }

    /// `CheckDrainDone`.
    fn check_drain_done(&mut self, sample: &Sample) {
        if self.phase == Phase::Drain && sample.in_flight <= self.inflight(1.0) {
            self.start_down(sample);
        }
    }

    /// `StartProbeBW_DOWN`.
    fn start_down(&mut self, sample: &Sample) {
        self.reset_congestion_signals();
        self.up_count = f64::INFINITY;
        // `PickProbeWait`.
        self.rounds_since_probe = libm::floor(2.0 * self.draw());
        self.probe_wait = self.parameters.probe_bw_wait + self.draw();
        self.cycle_stamp = sample.now;
        self.acks = Acks::ProbeStopping;
        self.start_round(sample.delivered);
        self.phase = Phase::Down;
    }

    /// `StartProbeBW_REFILL`.
    fn start_refill(&mut self, sample: &Sample) {
        self.low = Low::NONE;
        (self.up_rounds, self.up_acks) = (0, 0.0);
        self.acks = Acks::Refilling;
        self.start_round(sample.delivered);
        self.phase = Phase::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, sample: &Sample, cwnd: f64) {
        self.acks = Acks::ProbeStarting;
        self.start_round(sample.delivered);
        self.reset_full_bw(sample);
        self.cycle_stamp = sample.now;
        self.phase = Phase::Up;
        self.raise_slope(cwnd);
    }

    fn reset_full_bw(&mut self, sample: &Sample) {
        self.full_bw = FullBw { bw: sample.rate.unwrap_or_default(), ..FullBw::default() };
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, cwnd: f64) {
        let growth = f64::from(1_u32 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.up_count = (cwnd / growth).max(1.0);
    }

    /// Section 5.3.3 (`UpdateProbeBWCyclePhase`).
    fn update_cycle(&mut self, sample: &Sample, cwnd: f64) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_upper_bounds(sample, cwnd);
        match self.phase {
            Phase::Down => {
                if !self.check_time_to_probe(sample, cwnd) && self.is_time_to_cruise(sample) {
                    self.phase = Phase::Cruise;
                }
            }
            Phase::Cruise => {
                self.check_time_to_probe(sample, cwnd);
            }
            Phase::Refill => {
                // After one round trip of refilling.
                if self.round_start {
                    self.is_probe_sample = true;
                    self.start_up(sample, cwnd);
                }
            }
            Phase::Up => {
                if self.is_time_to_go_down(sample, cwnd) {
                    self.start_down(sample);
                }
            }
            Phase::Startup | Phase::Drain | Phase::ProbeRtt => {}
        }
    }

    /// `CheckTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.inflight_with_headroom() && sample.in_flight <= self.inflight(1.0)
    }

    /// `CheckTimeToGoDown`.
    fn is_time_to_go_down(&mut self, sample: &Sample, cwnd: f64) -> bool {
        if sample.is_cwnd_limited && cwnd >= self.inflight_hi {
            // The bound limits it, not the path.
            self.reset_full_bw(sample);
            return false;
        }
        self.full_bw.now
    }

    /// `CheckTimeToProbeBW`; often enough for a Standard TCP to get its share (`IsRenoCoexistenceProbeTime`).
    fn check_time_to_probe(&mut self, sample: &Sample, cwnd: f64) -> bool {
        let rounds = self.inflight(1.0).min(cwnd).min(MAX_ROUNDS);
        let is_time = sample.now > self.cycle_stamp + self.probe_wait || self.rounds_since_probe >= rounds;
        if is_time {
            self.start_refill(sample);
        }
        is_time
    }

    /// Section 5.5.10.1 (`AdaptLongTermModel`).
    fn adapt_upper_bounds(&mut self, sample: &Sample, cwnd: f64) {
        if self.acks == Acks::ProbeStarting && self.round_start {
            self.acks = Acks::ProbeFeedback;
        }
        if self.acks == Acks::ProbeStopping && self.round_start {
            self.is_probe_sample = false;
            self.acks = Acks::Init;
            if self.phase.is_probe_bw() && !sample.is_app_limited {
                // A cycle ends: the filter covers this one and the one before.
                self.max_bw = [self.max_bw[1], 0.0];
            }
        }
        if self.is_inflight_too_high(sample) {
            if self.is_probe_sample {
                self.handle_inflight_too_high(sample, cwnd);
            }
            return;
        }
        if self.inflight_hi.is_infinite() {
            return;
        }
        self.inflight_hi = self.inflight_hi.max(sample.sent_in_flight);
        if self.phase == Phase::Up {
            self.probe_upward(sample, cwnd);
        }
    }

    fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        sample.lost > self.parameters.loss_thresh * sample.sent_in_flight
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, sample: &Sample, cwnd: f64) {
        self.is_probe_sample = false;
        if !sample.is_app_limited {
            let target = self.bdp(1.0).min(cwnd);
            self.inflight_hi = sample.sent_in_flight.max(self.parameters.beta * target);
        }
        if self.phase == Phase::Up {
            self.start_down(sample);
        }
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, sample: &Sample, cwnd: f64) {
        if !sample.is_cwnd_limited || cwnd < self.inflight_hi {
            return;
        }
        self.up_acks += sample.acked;
        if self.up_acks >= self.up_count {
            let delta = libm::floor(self.up_acks / self.up_count);
            self.up_acks -= delta * self.up_count;
            self.inflight_hi += delta;
        }
        if self.round_start {
            self.raise_slope(cwnd);
        }
    }

    /// Section 5.3.4 (`CheckProbeRTT`).
    fn check_probe_rtt(&mut self, sample: &Sample, limits: &mut Limits) {
        if self.phase != Phase::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.phase = Phase::ProbeRtt;
            self.save_cwnd(limits.cwnd);
            self.probe_rtt_done = None;
            self.acks = Acks::ProbeStopping;
            self.start_round(sample.delivered);
        }
        if self.phase == Phase::ProbeRtt {
            if self.probe_rtt_done.is_none() && sample.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(sample.now + self.parameters.probe_rtt_duration);
                self.probe_rtt_round_done = false;
                self.start_round(sample.delivered);
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(sample, limits);
                }
            }
        }
        if sample.rate.is_some() {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, sample: &Sample, limits: &mut Limits) {
        if self.probe_rtt_done.is_some_and(|done| sample.now > done) {
            self.probe_rtt_stamp = sample.now;
            limits.cwnd = limits.cwnd.max(self.prior_cwnd);
            self.low = Low::NONE;
            if self.full_bw_reached {
                self.start_down(sample);
                self.phase = Phase::Cruise;
            } else {
                self.phase = Phase::Startup;
            }
        }
    }

    /// `SaveCwnd`.
    fn save_cwnd(&mut self, cwnd: f64) {
        let is_usual = !self.is_recovering && self.phase != Phase::ProbeRtt;
        self.prior_cwnd = if is_usual { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// Section 5.6.2 (`SetPacingRateWithGain`).
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - self.parameters.pacing_margin);
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Section 5.6.4 (`SetCwnd`).
    fn set_cwnd(&self, sample: &Sample, mut cwnd: f64) -> f64 {
        let extra = self.extra_acked[0].max(self.extra_acked[1]);
        let most = self.quantised(self.bdp(self.cwnd_gain()) + extra);
        // `ModulateCwndForRecovery`.
        if sample.newly_lost > 0 {
            cwnd = (cwnd - f64::from(sample.newly_lost)).max(1.0);
        }
        if self.conserve_until.is_some() {
            cwnd = cwnd.max(sample.in_flight + sample.acked);
        } else if self.full_bw_reached {
            cwnd = (cwnd + sample.acked).min(most);
        } else if cwnd < most || (sample.delivered as f64) < self.initial_window {
            cwnd += sample.acked;
        }
        cwnd = cwnd.max(MIN_PIPE);
        if self.phase == Phase::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // `BoundCwndForModel`.
        let cap = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.inflight_hi,
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
            Phase::Startup | Phase::Drain => f64::INFINITY,
        };
        cwnd.min(cap.min(self.low.inflight).max(MIN_PIPE))
    }

    fn limit(&self, limits: &mut Limits, mss: u32) {
        limits.pacing_rate = self.pacing_rate * f64::from(mss);
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
        let now = report.now_ns as f64 / 1e9;
        self.initial_window = limits.cwnd;
        (self.min_rtt_stamp, self.probe_rtt_stamp, self.aggregation_begin) = (now, now, now);
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
        let sample = self.sample(report, limits.cwnd);
        self.is_app_limited = sample.is_app_limited;
        self.update_latest(&sample);
        self.update_round(&sample);
        self.update_congestion_signals(&sample, limits.cwnd);
        self.update_aggregation(&sample, limits.cwnd);
        self.check_full_bw(&sample);
        self.check_startup_done(&sample);
        self.check_drain_done(&sample);
        self.update_cycle(&sample, limits.cwnd);
        self.update_min_rtt(&sample);
        self.check_probe_rtt(&sample, limits);
        self.advance_latest(&sample);
        self.bw = self.max_bw().min(self.low.bw);
        self.set_pacing_rate(self.pacing_gain());
        limits.cwnd = self.set_cwnd(&sample, limits.cwnd);
        self.limit(limits, report.mss);
        Ok(())
    }

    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        if cause == Cause::Ecn {
            // Marks are no part of the draft.
            return Ok(());
        }
        self.save_cwnd(limits.cwnd);
        self.undo = Some(Undo { phase: self.phase, low: self.low, inflight_hi: self.inflight_hi });
        if cause == Cause::Timeout {
            limits.cwnd = f64::from(report.in_flight) + 1.0;
            self.conserve_until = None;
        } else {
            // Section 5.6.4.4: in the first round trip of recovery, what is sent is what was delivered.
            limits.cwnd = f64::from(report.in_flight) + 1.0;
            self.conserve_until = Some(report.delivered);
        }
        self.is_recovering = true;
        Ok(())
    }

    fn state(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        let recovers = [State::Recovery, State::Loss].map(u32::from).contains(&report.state);
        if self.is_recovering && !recovers {
            self.is_recovering = false;
            self.conserve_until = None;
            limits.cwnd = limits.cwnd.max(self.prior_cwnd);
        }
        Ok(())
    }

    fn event(&mut self, limits: &mut Limits, report: &Report, event: Event) -> Result<(), Fault> {
        // Section 5.4.1: the application has sent nothing for a while, and all is acknowledged.
        if matches!(event, Event::Start | Event::Restart) && report.snd_una == report.snd_nxt {
            self.idle_restart = true;
            self.aggregation_begin = report.now_ns as f64 / 1e9;
            if self.phase.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.phase == Phase::ProbeRtt {
                let sample = self.sample(report, limits.cwnd);
                self.check_probe_rtt_done(&sample, limits);
            }
            self.limit(limits, report.mss);
        }
        Ok(())
    }

    fn undo(&mut self, limits: &mut Limits, before: &Limits) -> Result<bool, Fault> {
        // Section 5.5.10.4.
        let Some(undo) = self.undo.take() else { return Ok(false) };
        self.loss_in_round = false;
        limits.cwnd = limits.cwnd.max(before.cwnd);
        if self.phase != Phase::ProbeRtt && undo.phase == Phase::Startup && self.phase != Phase::Startup {
            self.phase = Phase::Startup;
            (self.full_bw, self.full_bw_reached) = (FullBw::default(), false);
        }
        self.low.bw = self.low.bw.max(undo.low.bw);
        self.low.inflight = self.low.inflight.max(undo.low.inflight);
        self.inflight_hi = self.inflight_hi.max(undo.inflight_hi);
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
