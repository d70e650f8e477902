//! What BBR does about losses: the bounds that they set, and their undo (sections 5.3.1.3, 5.5.10 and 5.5.11).

use super::filters::Sample;
use super::{Bbr, Phase};
use crate::governor::{Limits, Snapshot};

/// What losses change, for an undo (section 2.15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The phase that was left for the losses.
    phase: Option<Phase>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

impl Bbr {
    /// Section 5.5.11.1 (`SaveStateUponLoss`).
    pub(super) fn save_state(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
        self.undo = Undo {
            phase: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Section 5.5.11.2 (`HandleSpuriousLossDetection`).
    pub(super) fn handle_spurious_loss(&mut self, limits: &mut Limits) {
        self.restore_cwnd(limits);
        self.is_loss_in_round = false;
        self.reset_full_bw(0.0);
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_bw_reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if !matches!(self.phase, Phase::Up | Phase::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }

    /// Section 5.5.10.2 (`HandleLostPacket`): a segment is lost, and with it so many segments in all.
    pub(super) fn handle_lost(&mut self, cwnd: f64, lost: u64, segment: &Snapshot) {
        // `NoteLoss`.
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state(cwnd);
        }
        self.is_loss_in_round = true;
        self.lost_ranges += u32::from(self.last_lost.is_none_or(|last| segment.number != last + 1));
        self.last_lost = Some(segment.number);
        if !self.is_bw_probe_sample {
            return;
        }
        let in_flight = f64::from(segment.in_flight);
        let lost = lost.saturating_sub(segment.lost) as f64;
        if self.is_inflight_too_high(lost, in_flight, segment.has_sack) {
            let is_app_limited = segment.is_app_limited || self.is_limited_by_probe_rtt(segment.delivered);
            self.handle_inflight_too_high(self.inflight_at_loss(lost, in_flight), is_app_limited, cwnd);
        }
    }

    /// `InflightAtLoss`: where in a segment that was sent with so much in flight, itself included, the losses exceeded the
    /// threshold.
    fn inflight_at_loss(&self, lost: f64, in_flight: f64) -> f64 {
        let thresh = self.parameters.loss_thresh;
        let (in_flight, lost) = (in_flight - 1.0, lost - 1.0);
        // All may be lost without exceeding a threshold of one.
        if thresh < 1.0 { in_flight + (thresh * in_flight - lost) / (1.0 - thresh) } else { in_flight }
    }

    /// `IsInflightTooHigh`: so much was lost since a segment was sent with this in flight.
    pub(super) fn is_inflight_too_high(&self, lost: f64, in_flight: f64, has_sack: bool) -> bool {
        lost > self.parameters.loss_thresh * in_flight || lost > 0.0 && !has_sack
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, in_flight: f64, is_app_limited: bool, cwnd: f64) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !is_app_limited {
            self.inflight_longterm = in_flight.max(self.parameters.beta * self.target_inflight(cwnd));
        }
        if self.phase == Phase::Up {
            self.undo.phase = Some(Phase::Up);
            self.start_down();
        }
    }

    /// Section 5.3.1.3 (`CheckStartupHighLoss`): after a round trip of recovery with too many losses.
    pub(super) fn check_startup_loss(&mut self, sample: &Sample) {
        if !self.loss_round_start {
            return;
        }
        let ranges = f64::from(std::mem::take(&mut self.lost_ranges));
        self.last_lost = None;
        let has_recovered_for_a_round = self.recovery.is_some_and(|start| sample.prior_delivered > start);
        if !self.full_bw_reached
            && has_recovered_for_a_round
            && (ranges >= self.parameters.startup_full_loss_count || !sample.has_sack && ranges > 0.0)
            && self.is_inflight_too_high(sample.lost, sample.tx_in_flight, sample.has_sack)
        {
            self.undo.phase = Some(Phase::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bw, 1.0).max(self.inflight_latest);
        }
    }

    /// Section 5.5.10.3 (`AdaptLowerBoundsFromCongestion`): the short-term bounds of a round trip with a loss.
    pub(super) fn adapt_lower_bounds(&mut self, cwnd: f64) {
        if self.phase.is_probing() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = cwnd;
        }
        let beta = self.parameters.beta;
        self.bw_shortterm = self.bw_latest.max(beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(beta * self.inflight_shortterm);
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }
}
