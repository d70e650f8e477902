//! BBR, version 3 (draft-ietf-ccwg-bbr): models the path by the largest delivery rate and the smallest round-trip time that
//! it measured, paces at the rate, and probes for more of it; losses and queues bound how far.
//!
//! Rates are in segments per second, and amounts of data in segments. The draft's functions have their names here, without
//! its prefix. What differs: a loss is judged at the next ACK that delivers data, and not when it is detected; the data that
//! was in flight when a segment was sent includes what was selectively acknowledged; a sender has no segmentation offload,
//! so there is no budget for it; and samples during ProbeRTT do not count as limited by the application, which could only
//! matter to a bandwidth below the largest.

use std::collections::VecDeque;
use std::fmt;

use elephan_units::{Seed, Stream};
use rand::RngExt;

use crate::algorithm::{Cause, State};
use crate::governor::{Event, Fault, Governor, Limits, Report};
use crate::parameter::parameters;

/// The purpose of the random numbers.
const PURPOSE: &str = "bbr";
/// Round trips without growth of the delivery rate after which the bandwidth is found (section 5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// Growth of the delivery rate in a round trip that counts as growth (section 5.3.1.2).
const FULL_BW_GROWTH: f64 = 1.25;
/// Smallest window, in segments (section 2.7).
const MIN_PIPE: f64 = 4.0;
/// The largest aggregation of ACKs is remembered for one to two times as many round trips, and before the bandwidth is found for
/// one or two: the window of ten of section 5.5.9 in two parts, as in Linux.
const AGGREGATION_ROUNDS: u32 = 5;
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

/// The short-term bounds (section 5.5.10.3).
#[derive(Clone, Copy, Debug)]
struct Low {
    bw: f64,
    inflight: f64,
}

impl Low {
    const NONE: Self = Self { bw: f64::INFINITY, inflight: f64::INFINITY };
}

/// What losses change, for an undo.
#[derive(Clone, Copy, Debug)]
struct Undo {
    phase: Phase,
    low: Low,
    inflight_hi: f64,
}

/// What an ACK says, in this file's units.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now: f64,
    /// None without a delivery rate.
    rate: Option<f64>,
    rtt: Option<f64>,
    delivered: u64,
    prior_delivered: u64,
    /// Segments that this ACK delivered, and those in flight now, and when the newest of them was sent.
    acked: f64,
    in_flight: f64,
    sent_in_flight: f64,
    /// Segments lost since the ACK before, and since the newest one was sent.
    newly_lost: u32,
    lost: f64,
    is_app_limited: bool,
    is_cwnd_limited: bool,
    is_recovering: bool,
}

/// BBR.
#[derive(Clone)]
pub struct Bbr {
    parameters: Parameters,
    random: Stream,
    phase: Phase,
    initial_window: f64,
    pacing_rate: f64,
    // Round trips (section 5.5.1).
    next_round: u64,
    rounds: u64,
    round_start: bool,
    // The model of the path.
    max_bw: [f64; 2],
    bw: f64,
    low: Low,
    inflight_hi: f64,
    min_rtt: f64,
    min_rtt_stamp: f64,
    // The smallest round-trip time of late, which ProbeRTT measures.
    probe_rtt_min: f64,
    probe_rtt_stamp: f64,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<f64>,
    probe_rtt_round_done: bool,
    // Growth of the delivery rate.
    full_bw: FullBw,
    full_bw_reached: bool,
    // What was delivered and lost in the last round trip (section 5.5.10).
    bw_latest: f64,
    inflight_latest: f64,
    loss_round: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    /// Segments delivered and lost in all, at the ACKs of the last round trip.
    losses: VecDeque<(u64, u64)>,
    // Aggregation of ACKs (section 5.5.9): when it began, what was delivered since, the largest excess in this part of the
    // window and the one before, and the round trips of this part.
    aggregation_begin: f64,
    aggregation: f64,
    extra_acked: [f64; 2],
    extra_acked_rounds: u32,
    // Probing for bandwidth.
    acks: Acks,
    is_probe_sample: bool,
    cycle_stamp: f64,
    probe_wait: f64,
    rounds_since_probe: f64,
    up_rounds: u32,
    up_acks: f64,
    up_count: f64,
    // Recovery.
    is_recovering: bool,
    conserve_until: Option<u64>,
    prior_cwnd: f64,
    idle_restart: bool,
    undo: Option<Undo>,
}

impl fmt::Debug for Bbr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bbr({:?}, {} segments/s, {} s)", self.phase, self.bw, self.min_rtt)
    }
}

impl Bbr {
    /// BBR with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            random: Seed::default().stream(PURPOSE, 0),
            phase: Phase::Startup,
            initial_window: 0.0,
            pacing_rate: 0.0,
            next_round: 0,
            rounds: 0,
            round_start: false,
            max_bw: [0.0; 2],
            bw: 0.0,
            low: Low::NONE,
            inflight_hi: f64::INFINITY,
            min_rtt: f64::INFINITY,
            min_rtt_stamp: 0.0,
            probe_rtt_min: f64::INFINITY,
            probe_rtt_stamp: 0.0,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            full_bw: FullBw::default(),
            full_bw_reached: false,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_events: 0,
            losses: VecDeque::new(),
            aggregation_begin: 0.0,
            aggregation: 0.0,
            extra_acked: [0.0; 2],
            extra_acked_rounds: 0,
            acks: Acks::Init,
            is_probe_sample: false,
            cycle_stamp: 0.0,
            probe_wait: 0.0,
            rounds_since_probe: 0.0,
            up_rounds: 0,
            up_acks: 0.0,
            up_count: f64::INFINITY,
            is_recovering: false,
            conserve_until: None,
            prior_cwnd: 0.0,
            idle_restart: false,
            undo: None,
        }
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

    /// `StartRound`.
    fn start_round(&mut self, delivered: u64) {
        self.next_round = delivered;
    }

    fn update_round(&mut self, sample: &Sample) {
        self.round_start = sample.rate.is_some() && sample.prior_delivered >= self.next_round;
        if self.round_start {
            self.start_round(sample.delivered);
            self.rounds += 1;
            self.rounds_since_probe += 1.0;
        }
        if self.conserve_until.is_some_and(|until| sample.prior_delivered >= until) {
            self.conserve_until = None;
        }
    }

    /// Section 5.5.10.2: what was delivered in the last round trip (`UpdateLatestDeliverySignals`).
    fn update_latest(&mut self, sample: &Sample) {
        self.loss_round_start = false;
        let Some(rate) = sample.rate else { return };
        self.bw_latest = self.bw_latest.max(rate);
        let delivered = (sample.delivered - sample.prior_delivered) as f64;
        self.inflight_latest = self.inflight_latest.max(delivered);
        if sample.prior_delivered >= self.loss_round {
            self.loss_round = sample.delivered;
            self.loss_round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_start
            && let Some(rate) = sample.rate
        {
            self.bw_latest = rate;
            self.inflight_latest = (sample.delivered - sample.prior_delivered) as f64;
        }
    }

    /// `ResetCongestionSignals`.
    fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// Sections 5.5.5 and 5.5.10.3: the largest delivery rate, and the short-term bounds (`UpdateCongestionSignals`).
    fn update_congestion_signals(&mut self, sample: &Sample, cwnd: f64) {
        if let Some(rate) = sample.rate
            && (rate >= self.max_bw() || !sample.is_app_limited)
        {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
        self.loss_in_round |= sample.newly_lost > 0;
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.phase.is_probing() {
            let Low { bw, inflight } = self.low;
            let beta = self.parameters.beta;
            let bw = if bw.is_infinite() { self.max_bw() } else { bw };
            let inflight = if inflight.is_infinite() { cwnd } else { inflight };
            self.low = Low {
                bw: self.bw_latest.max(beta * bw),
                inflight: self.inflight_latest.max(beta * inflight),
            };
        }
        self.loss_in_round = false;
    }

    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `UpdateACKAggregation`.
    fn update_aggregation(&mut self, sample: &Sample, cwnd: f64) {
        if self.round_start {
            self.extra_acked_rounds += 1;
            let length = if self.full_bw_reached { AGGREGATION_ROUNDS } else { 1 };
            if self.extra_acked_rounds >= length {
                self.extra_acked = [self.extra_acked[1], 0.0];
                self.extra_acked_rounds = 0;
            }
        }
        let mut expected = self.bw * (sample.now - self.aggregation_begin);
        if self.aggregation <= expected {
            (self.aggregation, self.aggregation_begin, expected) = (0.0, sample.now, 0.0);
        }
        self.aggregation += sample.acked;
        let extra = (self.aggregation - expected).min(cwnd);
        self.extra_acked[1] = self.extra_acked[1].max(extra);
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

    /// `UpdateMinRTT`.
    fn update_min_rtt(&mut self, sample: &Sample) {
        self.probe_rtt_expired = sample.now > self.probe_rtt_stamp + self.parameters.probe_rtt_interval;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min || self.probe_rtt_expired)
        {
            (self.probe_rtt_min, self.probe_rtt_stamp) = (rtt, sample.now);
        }
        let expired = sample.now > self.min_rtt_stamp + self.parameters.min_rtt_filter;
        if self.probe_rtt_min < self.min_rtt || expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min, self.probe_rtt_stamp);
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

    /// The report in this file's units.
    fn sample(&mut self, report: &Report, cwnd: f64) -> Sample {
        let rate = &report.rate;
        let has_rate = rate.interval_ns > 0;
        if has_rate {
            // What was lost when the newest segment was sent is what was lost when as much was delivered.
            while self.losses.get(1).is_some_and(|&(delivered, _)| delivered <= rate.prior_delivered) {
                self.losses.pop_front();
            }
        }
        let before = self.losses.front().map_or(0, |&(_, lost)| lost);
        self.losses.push_back((report.delivered, report.lost));
        let seconds = |ns: i64| ns as f64 / 1e9;
        Sample {
            now: report.now_ns as f64 / 1e9,
            rate: has_rate.then(|| f64::from(rate.delivered) / seconds(rate.interval_ns)),
            rtt: (report.rtt_ns >= 0).then(|| seconds(report.rtt_ns)),
            delivered: report.delivered,
            prior_delivered: if has_rate { rate.prior_delivered } else { report.delivered },
            acked: f64::from(report.acked),
            in_flight: f64::from(report.in_flight),
            sent_in_flight: f64::from(rate.sent_in_flight) / f64::from(report.mss),
            newly_lost: rate.lost,
            lost: if has_rate { report.lost.saturating_sub(before) as f64 } else { 0.0 },
            is_app_limited: rate.is_app_limited != 0,
            // Pacing limits it most of the time.
            is_cwnd_limited: report.is_window_limited != 0 && f64::from(report.outstanding_max) + 1.0 > cwnd,
            is_recovering: report.state == u32::from(State::Recovery),
        }
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
        // Section 5.4.1: the application has sent nothing for a while.
        if matches!(event, Event::Start | Event::Restart) {
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

    fn fresh(&self, seed: u64) -> Box<dyn Governor> {
        Box::new(Self { random: Seed::new(seed).stream(PURPOSE, 0), ..Self::new(self.parameters) })
    }

    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::Rate;
    use crate::history::close;

    /// A path that carries 1000 segments of 1000 bytes in a second, with a round-trip time of 100 ms without a queue, and ACKs
    /// of single segments in round trips of a window each.
    struct Path {
        bbr: Bbr,
        limits: Limits,
        report: Report,
        /// Segments that are lost in the next round trip.
        losing: u64,
    }

    const RATE: f64 = 1000.0;
    const RTT: f64 = 0.1;

    impl Path {
        fn new() -> Self {
            let mut bbr = Bbr::new(Parameters::default());
            let mut limits = Limits { cwnd: 10.0, ssthresh: f64::INFINITY, pacing_rate: 0.0, requests: 0 };
            let report = Report {
                now_ns: 1_000_000_000,
                srtt_ns: 100_000_000,
                mss: 1000,
                rtt_ns: -1,
                ..Report::default()
            };
            bbr.start(&mut limits, &report).unwrap();
            Self { bbr, limits, report, losing: 0 }
        }

        /// A round trip in which a window arrives, at the path's rate or the pacing rate.
        fn round_trip(&mut self) {
            let (window, pacing) = (self.limits.cwnd, self.limits.pacing_rate / 1000.0);
            let sent = f64::min(window, pacing * RTT).max(1.0);
            let segments = sent as u64;
            let queued = (sent - RATE * RTT).max(0.0);
            let interval = RTT.max(sent / RATE);
            let before = self.report.delivered;
            let lost = std::mem::take(&mut self.losing);
            for acked in 1..=segments {
                self.report.now_ns += (interval / sent * 1e9) as u64;
                self.report.delivered += 1;
                let newly_lost = if acked == 1 { lost } else { 0 };
                self.report.lost += newly_lost;
                self.report = Report {
                    rtt_ns: ((RTT + queued / RATE) * 1e9) as i64,
                    acked: 1,
                    in_flight: segments as u32,
                    is_window_limited: 1,
                    outstanding_max: segments as u32,
                    rate: Rate {
                        interval_ns: (interval * 1e9) as i64,
                        prior_delivered: before,
                        delivered: segments as u32,
                        sent_in_flight: segments as u32 * 1000,
                        lost: newly_lost as u32,
                        ..Rate::default()
                    },
                    ..self.report
                };
                self.bbr.ack(&mut self.limits, &self.report).unwrap();
            }
        }

        fn round_trips(&mut self, most: u32, until: impl Fn(&Bbr) -> bool) -> u32 {
            let count = (0..most).take_while(|_| {
                let goes_on = !until(&self.bbr);
                if goes_on {
                    self.round_trip();
                }
                goes_on
            });
            count.count() as u32
        }
    }

    #[test]
    fn it_begins_at_the_initial_window_in_a_round_trip() {
        // 2.77 * 10 segments of 1000 bytes in 100 ms.
        close(Path::new().limits.pacing_rate, 277_000.0, 1e-6);
    }

    #[test]
    fn startup_finds_the_bandwidth_and_drain_the_round_trip_time() {
        let mut path = Path::new();
        let rounds = path.round_trips(50, |bbr| bbr.phase != Phase::Startup);
        // From 10 segments to 100 by doubling, and three round trips without growth.
        assert!((6..=10).contains(&rounds), "{rounds}");
        close(path.bbr.bw, RATE, 0.05 * RATE);
        path.round_trips(50, |bbr| bbr.phase.is_probe_bw());
        assert!(path.bbr.phase.is_probe_bw());
        close(path.bbr.min_rtt, RTT, 1e-9);
    }

    /// A path at the start of a cruise.
    fn cruising() -> Path {
        let mut path = Path::new();
        path.round_trips(50, |bbr| bbr.phase == Phase::Cruise);
        path
    }

    #[test]
    fn it_probes_every_2_to_3_seconds_for_two_round_trips_and_more() {
        let mut path = cruising();
        let begin = path.report.now_ns;
        path.round_trips(50, |bbr| bbr.phase == Phase::Refill);
        let waited = (path.report.now_ns - begin) as f64 / 1e9;
        assert!((1.8..=3.1).contains(&waited), "{waited}");
        path.round_trips(3, |bbr| bbr.phase == Phase::Up);
        // 1.25 of the bandwidth, of which a hundredth is left unused.
        close(path.limits.pacing_rate, 1.25 * 0.99 * 1000.0 * path.bbr.bw, 1e-6);
        // The delivery rate does not grow in three round trips.
        assert!((2..=5).contains(&path.round_trips(20, |bbr| bbr.phase != Phase::Up)));
        close(path.bbr.bw, RATE, 0.05 * RATE);
    }

    #[test]
    fn losses_while_probing_bound_what_is_in_flight() {
        let mut path = cruising();
        path.round_trips(50, |bbr| bbr.phase == Phase::Up);
        path.round_trip();
        // 2 of 100 are not too many, 10 are.
        path.losing = 2;
        path.round_trip();
        assert_eq!((path.bbr.phase, path.bbr.inflight_hi), (Phase::Up, f64::INFINITY));
        path.losing = 10;
        path.round_trip();
        assert_ne!(path.bbr.phase, Phase::Up);
        let bound = path.bbr.inflight_hi;
        assert!((90.0..=140.0).contains(&bound), "{bound}");
        // 15 % of it are left to others.
        path.round_trips(10, |bbr| bbr.phase == Phase::Cruise);
        path.round_trip();
        assert!(path.limits.cwnd <= 0.85 * bound + 1e-9, "{} of {bound}", path.limits.cwnd);
    }

    #[test]
    fn losses_while_cruising_lower_short_term_bounds_until_the_next_probe() {
        let mut path = cruising();
        path.round_trip();
        path.losing = 1;
        path.round_trips(2, |_| false);
        let low = path.bbr.low;
        // Not below what was delivered, nearly the bandwidth.
        assert!((0.7..=1.01).contains(&(low.bw / RATE)) && low.inflight.is_finite(), "{low:?}");
        path.round_trips(50, |bbr| bbr.phase == Phase::Refill);
        assert!(path.bbr.low.bw.is_infinite() && path.bbr.low.inflight.is_infinite());
    }

    #[test]
    fn every_five_seconds_it_measures_the_smallest_round_trip_time() {
        let mut path = cruising();
        let rounds = path.round_trips(100, |bbr| bbr.phase == Phase::ProbeRtt);
        assert!(rounds < 60, "{rounds}");
        path.round_trip();
        // Half of 100 segments.
        close(path.limits.cwnd, 50.0, 2.5);
        let begin = path.report.now_ns;
        path.round_trips(20, |bbr| bbr.phase != Phase::ProbeRtt);
        let lasted = (path.report.now_ns - begin) as f64 / 1e9;
        assert!((0.1..=0.5).contains(&lasted), "{lasted}");
        assert!(path.limits.cwnd > 100.0);
    }

    #[test]
    fn recovery_begins_with_what_is_delivered_and_ends_with_the_window_of_before() {
        let mut path = cruising();
        let before = path.limits.cwnd;
        path.report.in_flight = 80;
        path.bbr.congestion(&mut path.limits, &path.report, Cause::Loss).unwrap();
        assert_eq!(path.limits.cwnd, 81.0);
        path.report.state = State::Recovery.into();
        path.bbr.state(&mut path.limits, &path.report).unwrap();
        assert_eq!(path.limits.cwnd, 81.0);
        path.report.state = State::Open.into();
        path.bbr.state(&mut path.limits, &path.report).unwrap();
        assert_eq!(path.limits.cwnd, before);
        // A timeout leaves one segment beyond what is in flight; a mark changes nothing.
        path.report.in_flight = 0;
        path.bbr.congestion(&mut path.limits, &path.report, Cause::Timeout).unwrap();
        assert_eq!(path.limits.cwnd, 1.0);
        path.bbr.congestion(&mut path.limits, &path.report, Cause::Ecn).unwrap();
        assert_eq!(path.limits.cwnd, 1.0);
    }

    #[test]
    fn an_undo_restores_the_bounds() {
        let mut path = cruising();
        let limits = path.limits;
        path.bbr.congestion(&mut path.limits, &path.report, Cause::Loss).unwrap();
        (path.bbr.inflight_hi, path.bbr.low) = (70.0, Low { bw: 500.0, inflight: 50.0 });
        assert!(path.bbr.undo(&mut path.limits, &limits).unwrap());
        assert_eq!(path.limits.cwnd, limits.cwnd);
        assert!(path.bbr.inflight_hi.is_infinite() && path.bbr.low.bw.is_infinite());
        assert!(!path.bbr.undo(&mut path.limits, &limits).unwrap());
    }

    #[test]
    fn copies_of_other_connections_draw_other_times() {
        let wait = |seed| {
            let mut bbr = Bbr::new(Parameters::default());
            bbr.random = Seed::new(seed).stream(PURPOSE, 0);
            bbr.draw()
        };
        assert_ne!(wait(1), wait(2));
        assert_eq!(wait(1), wait(1));
    }
}
