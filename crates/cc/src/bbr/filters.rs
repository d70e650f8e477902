//! What BBR measures: round trips, the largest delivery rate, what was delivered and lost in the last round trip, the
//! aggregation of ACKs and the smallest round-trip time (sections 5.5.1 to 5.5.10).

use super::Bbr;
use crate::algorithm::State;
use crate::governor::Report;

/// The largest aggregation of ACKs is remembered for one to two times as many round trips, and before the bandwidth is found for
/// one or two: the window of ten of section 5.5.9 in two parts, as in Linux.
const AGGREGATION_ROUNDS: u32 = 5;

/// The short-term bounds (section 5.5.10.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Low {
    pub(super) bw: f64,
    pub(super) inflight: f64,
}

impl Low {
    pub(super) const NONE: Self = Self { bw: f64::INFINITY, inflight: f64::INFINITY };
}

/// What an ACK says, in BBR's units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: f64,
    /// None without a delivery rate.
    pub(super) rate: Option<f64>,
    pub(super) rtt: Option<f64>,
    pub(super) delivered: u64,
    pub(super) prior_delivered: u64,
    /// Segments that this ACK delivered, and those in flight now, and when the newest of them was sent.
    pub(super) acked: f64,
    pub(super) in_flight: f64,
    pub(super) sent_in_flight: f64,
    /// Segments lost since the ACK before, and since the newest one was sent.
    pub(super) newly_lost: u32,
    pub(super) lost: f64,
    pub(super) is_app_limited: bool,
    pub(super) is_cwnd_limited: bool,
    pub(super) is_recovering: bool,
}

impl Bbr {
    /// The report in BBR's units.
    pub(super) fn sample(&mut self, report: &Report, cwnd: f64) -> Sample {
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

    /// `StartRound`.
    pub(super) fn start_round(&mut self, delivered: u64) {
        self.next_round = delivered;
    }

    pub(super) fn update_round(&mut self, sample: &Sample) {
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
    pub(super) fn update_latest(&mut self, sample: &Sample) {
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
    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_start
            && let Some(rate) = sample.rate
        {
            self.bw_latest = rate;
            self.inflight_latest = (sample.delivered - sample.prior_delivered) as f64;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// Sections 5.5.5 and 5.5.10.3: the largest delivery rate, and the short-term bounds (`UpdateCongestionSignals`).
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample, cwnd: f64) {
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

    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_aggregation(&mut self, sample: &Sample, cwnd: f64) {
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

    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
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
}
