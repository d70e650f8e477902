//! What BBR measures: round trips, the largest delivery rate, what was delivered in the last round trip, the aggregation of ACKs
//! and the smallest round-trip time (sections 5.5.1 to 5.5.10).

use super::Bbr;
use crate::governor::Report;

/// Round trips for which the largest aggregation of ACKs is remembered, this one included (`ExtraAckedFilterLen`, section 2.12).
const EXTRA_ACKED_ROUNDS: u64 = 10;

/// What an ACK says, in BBR's units (section 2.3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Whether it is known which segment is the newest that the ACK delivered: the next three and `lost` are of it.
    pub(super) has_data: bool,
    /// Segments delivered when it was sent, and since.
    pub(super) prior_delivered: u64,
    pub(super) delivered: f64,
    /// Segments in flight when it was sent.
    pub(super) tx_in_flight: f64,
    /// Segments lost since.
    pub(super) lost: f64,
    pub(super) is_app_limited: bool,
    /// The delivery rate; zero: no reliable one.
    pub(super) rate: f64,
    pub(super) rtt: Option<f64>,
    /// Segments that this ACK delivered, and those in flight after and before it.
    pub(super) acked: f64,
    pub(super) in_flight: f64,
    pub(super) prior_in_flight: f64,
    pub(super) is_cwnd_limited: bool,
    pub(super) has_sack: bool,
}

impl Bbr {
    /// The report in BBR's units.
    pub(super) fn sample(&mut self, report: &Report) -> Sample {
        let rate = &report.rate;
        let newest = self.newest.take();
        let has_data = newest.is_some();
        let newest = newest.unwrap_or_default();
        let seconds = |ns: i64| ns as f64 / 1e9;
        Sample {
            has_data,
            prior_delivered: newest.delivered,
            delivered: if has_data { (report.delivered - newest.delivered) as f64 } else { 0.0 },
            tx_in_flight: f64::from(newest.in_flight),
            lost: if has_data { report.lost.saturating_sub(newest.lost) as f64 } else { 0.0 },
            is_app_limited: newest.is_app_limited || self.is_limited_by_probe_rtt(newest.delivered),
            rate: if rate.interval_ns > 0 {
                f64::from(rate.delivered) / seconds(rate.interval_ns)
            } else {
                0.0
            },
            rtt: (report.rtt_ns >= 0).then(|| seconds(report.rtt_ns)),
            acked: f64::from(report.acked),
            in_flight: f64::from(report.in_flight),
            prior_in_flight: f64::from(report.prior_in_flight),
            is_cwnd_limited: report.is_window_limited != 0,
            has_sack: newest.has_sack,
        }
    }

    /// `StartRound`.
    pub(super) fn start_round(&mut self) {
        self.next_round = self.delivered;
    }

    /// `UpdateRound`.
    fn update_round(&mut self, sample: &Sample) {
        self.round_start = sample.has_data && sample.prior_delivered >= self.next_round;
        if self.round_start {
            self.start_round();
            self.rounds += 1;
            self.rounds_since_probe += 1.0;
        }
    }

    /// ProbeRTT, and not the path, limits what is in flight now (`MarkConnectionAppLimited`).
    pub(super) fn limit_by_probe_rtt(&mut self, sample: &Sample) {
        let (first, last) = self.probe_rtt_limits;
        let first = if self.delivered > last { self.delivered } else { first };
        self.probe_rtt_limits = (first, self.delivered + sample.in_flight as u64);
    }

    /// Whether it limited a segment that was sent when so many were delivered.
    pub(super) fn is_limited_by_probe_rtt(&self, delivered: u64) -> bool {
        let (first, last) = self.probe_rtt_limits;
        (first..=last).contains(&delivered)
    }

    /// Section 5.5.10.3: what was delivered in the last round trip (`UpdateLatestDeliverySignals`).
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.has_data && sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = self.delivered;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (sample.rate, sample.delivered);
        }
    }

    /// Sections 5.5.5 and 5.5.10.3: the largest delivery rate, and once in a round trip the bounds that losses set
    /// (`UpdateCongestionSignals`).
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample, cwnd: f64) {
        self.update_round(sample);
        if sample.rate >= self.max_bw() || !sample.is_app_limited {
            self.max_bw[1] = self.max_bw[1].max(sample.rate);
        }
        if self.loss_round_start {
            self.adapt_lower_bounds(cwnd);
            self.is_loss_in_round = false;
        }
    }

    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// Section 5.5.9 (`UpdateACKAggregation`).
    pub(super) fn update_aggregation(&mut self, sample: &Sample, cwnd: f64) {
        let mut expected = self.bw * (self.now - self.extra_acked_interval_start);
        if self.extra_acked_delivered <= expected {
            (self.extra_acked_delivered, self.extra_acked_interval_start, expected) = (0.0, self.now, 0.0);
        }
        self.extra_acked_delivered += sample.acked;
        let extra = (self.extra_acked_delivered - expected).min(cwnd);
        // A windowed maximum: what is neither the largest nor will be is not kept.
        let length = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        while self.extra_acked.front().is_some_and(|&(round, _)| round + length <= self.rounds) {
            self.extra_acked.pop_front();
        }
        while self.extra_acked.back().is_some_and(|&(_, other)| other <= extra) {
            self.extra_acked.pop_back();
        }
        if self.extra_acked.back().is_none_or(|&(round, _)| round < self.rounds) {
            self.extra_acked.push_back((self.rounds, extra));
        }
    }

    /// The largest aggregation of ACKs of late.
    pub(super) fn extra_acked(&self) -> f64 {
        self.extra_acked.front().map_or(0.0, |&(_, extra)| extra)
    }

    /// Section 5.3.4.3 (`UpdateMinRTT`).
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        self.probe_rtt_expired = self.now > self.probe_rtt_stamp + self.parameters.probe_rtt_interval;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min || self.probe_rtt_expired)
        {
            (self.probe_rtt_min, self.probe_rtt_stamp) = (rtt, self.now);
        }
        let expired = self.now > self.min_rtt_stamp + self.parameters.min_rtt_filter;
        if self.probe_rtt_min < self.min_rtt || expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min, self.probe_rtt_stamp);
        }
    }
}
