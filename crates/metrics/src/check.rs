//! Invariants of every summary, whatever was run.

use crate::summary::{LinkSummary, StreamSummary, Summary, TransferSummary};

/// Returns nothing if `holds`, otherwise the error.
fn need(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn is_share(value: Option<f64>) -> bool {
    value.is_none_or(|value| (0.0..=1.0).contains(&value))
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Whether times do not decrease.
fn rise(times: &[Option<f64>]) -> bool {
    let known: Vec<f64> = times.iter().flatten().copied().collect();
    known.iter().all(|&time| is_amount(time)) && known.is_sorted()
}

impl Summary {
    /// The violated invariant of a summary, in one line; every engine checks it in debug builds.
    pub fn check(&self) -> Result<(), String> {
        need(self.from_s < self.to_s, || format!("a window from {} s to {} s", self.from_s, self.to_s))?;
        for (name, share) in [
            ("loss_rate", self.loss_rate),
            ("fairness", self.fairness),
            ("jain", self.jain),
            ("synchronisation", self.synchronisation),
            ("utilisation", self.utilisation),
        ] {
            need(is_share(share), || format!("{name} of {share:?}"))?;
        }
        need(self.jain != Some(0.0), || "jain of 0".to_owned())?;
        let amounts = [
            ("goodput_bit_s", Some(self.goodput_bit_s)),
            ("queue_delay_mean_s", self.queue_delay_mean_s),
            ("stability", self.stability),
            ("convergence_s", self.convergence_s),
            ("fair_share_s", self.fair_share_s),
            ("overhead_s_bit", self.overhead_s_bit),
            ("overhead_whole_s_bit", self.overhead_whole_s_bit),
        ];
        for (name, amount) in amounts {
            need(amount.is_none_or(is_amount), || format!("{name} of {amount:?}"))?;
        }
        for flow in &self.flows {
            let holds = is_amount(flow.goodput_bit_s)
                && flow.retransmitted_bytes <= flow.sent_bytes
                && [flow.stability, flow.cwnd_mean_segments, flow.srtt_mean_s, flow.convergence_s]
                    .into_iter()
                    .flatten()
                    .all(is_amount)
                && flow.host.as_ref().is_none_or(|host| is_amount(host.busy));
            need(holds, || format!("{flow:?}"))?;
        }
        for crowd in &self.crowds {
            let holds = is_amount(crowd.goodput_bit_s)
                && crowd.retransmitted_bytes <= crowd.sent_bytes
                && [&crowd.transfers, &crowd.pages].into_iter().flatten().all(TransferSummary::holds);
            need(holds, || format!("{crowd:?}"))?;
        }
        for stream in &self.streams {
            need(stream.holds(), || format!("{stream:?}"))?;
        }
        for link in &self.links {
            need(link.holds(), || format!("{link:?}"))?;
        }
        need(self.transfers.as_ref().is_none_or(TransferSummary::holds), || format!("{:?}", self.transfers))
    }
}

impl StreamSummary {
    fn holds(&self) -> bool {
        is_amount(self.goodput_bit_s)
            && self.received + self.lost <= self.sent
            && self.reordered <= self.received
            && self.jitter_s.is_none_or(is_amount)
            && self.delay_mean_s.is_some() == (self.received > 0)
            && rise(&[self.delay_p50_s, self.delay_p99_s, self.delay_max_s])
            && rise(&[self.delay_mean_s, self.delay_max_s])
    }
}

impl LinkSummary {
    fn holds(&self) -> bool {
        let quantiles = [self.queue_delay_p50_s, self.queue_delay_p95_s, self.queue_delay_p99_s];
        let reasons = [self.dropped_full, self.dropped_early, self.dropped_policed, self.dropped_down];
        self.dropped + self.lost <= self.offered
            && self.marked <= self.offered
            && self.dropped == reasons.iter().sum::<u64>()
            && is_share(self.utilisation)
            && self.queue_delay_mean_s.is_none_or(is_amount)
            && is_amount(self.queue_mean_packets)
            && rise(&quantiles)
            && self.classes.iter().all(|class| {
                class.dropped <= class.offered
                    && is_amount(class.throughput_bit_s)
                    && [class.guaranteed_bit_s, class.qos_efficiency, class.queue_delay_mean_s]
                        .into_iter()
                        .flatten()
                        .all(is_amount)
            })
    }
}

impl TransferSummary {
    fn holds(&self) -> bool {
        self.count > 0
            && rise(&[self.p50_s, self.p95_s, self.p99_s])
            && rise(&[self.mean_s])
            && self.mean_s.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let possible = Summary { to_s: 1.0, jain: Some(1.0), ..Summary::default() };
        assert_eq!(possible.check(), Ok(()));
        let loss = Summary { loss_rate: Some(1.25), ..possible.clone() };
        assert_eq!(loss.check(), Err("loss_rate of Some(1.25)".to_owned()));
        let infinite = Summary { goodput_bit_s: f64::INFINITY, ..possible.clone() };
        assert!(infinite.check().is_err());
        let stream = |sent, received, lost| {
            let mean = (received > 0).then_some(0.1);
            StreamSummary { sent, received, lost, delay_mean_s: mean, ..StreamSummary::default() }
        };
        let streams = |stream| Summary { streams: vec![stream], ..possible.clone() }.check();
        assert_eq!(streams(stream(84, 80, 4)), Ok(()));
        assert!(streams(stream(83, 84, 0)).unwrap_err().contains("sent: 83, received: 84"));
        let link = |offered| LinkSummary { offered, lost: 10, ..LinkSummary::default() };
        let links = |link| Summary { links: vec![link], ..possible.clone() }.check();
        assert!(links(link(10)).is_ok() && links(link(8)).is_err());
    }
}
