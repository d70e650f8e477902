//! The data from which the metrics of a run are computed: rates at equal intervals, and counters at both ends
//! of the measuring window.

use elephan_metrics::{
    Collector, Completions, CrowdSummary, FlowCounters, FlowSample, HostCounters, Summary,
};
use elephan_scenario::Plan;
use elephan_tcp::Counters;
use elephan_traffic::Page;
use elephan_units::Time;

use crate::state::connection::Transfer;
use crate::state::crowd::Crowd;
use crate::state::{FlowState, State};

/// The data from which the metrics of a run are computed.
pub struct Measured {
    /// Computes the metrics.
    pub collector: Collector,
    crowds: Vec<CrowdRecord>,
}

/// Counters of a crowd in the measuring window.
#[derive(Default)]
struct CrowdRecord {
    /// Counters at the beginning of the window.
    first: Counters,
    opened: u64,
    failed: u64,
    transfers: Completions,
    pages: Completions,
}

impl Measured {
    /// The data of a run that has not begun.
    pub fn new(plan: &Plan) -> Self {
        Self {
            collector: Collector::new(plan.setup()),
            crowds: plan.crowds.iter().map(|_| CrowdRecord::default()).collect(),
        }
    }

    /// Samples for stability and convergence.
    pub fn sample(&mut self, state: &State<'_>, now: Time) {
        for (number, flow) in state.flows().enumerate() {
            let (cwnd, srtt) = flow.slot.sender().map_or((0.0, None), |end| (end.cwnd(), end.srtt()));
            let sample = FlowSample { delivered_bytes: flow.delivered, cwnd, srtt };
            self.collector.sample(number as u32, &sample, now);
        }
    }

    /// The measuring window begins.
    pub fn open_window(&mut self, state: &mut State<'_>) {
        for (number, flow) in state.flows().enumerate() {
            self.collector.open_window(number as u32, counters(&flow));
        }
        for (record, (crowd, counters)) in self.crowds.iter_mut().zip(state.crowds()) {
            (record.first, record.opened, record.failed) = (counters, crowd.opened, crowd.failed);
        }
        state.measure_streams();
    }

    /// The measuring window ends.
    pub fn close_window(&mut self, state: &State<'_>) {
        for (number, flow) in state.flows().enumerate() {
            self.collector.close_window(number as u32, counters(&flow));
        }
        let span = state.plan.measure.to.since(state.plan.measure.from);
        for (number, (crowd, counters)) in state.crowds().enumerate() {
            let label = state.plan.crowds[number].flow.label.clone();
            let record = &self.crowds[number];
            let summary = record.summary(label, crowd, &counters, span.secs_f64());
            self.collector.crowd(summary);
        }
        for ((stream, reception), plan) in state.streams().zip(&state.plan.streams) {
            let (payload, label) = (plan.datagrams.payload_bytes(), plan.label.clone());
            let summary = reception.summary(label, stream.started, stream.sent, payload, span);
            self.collector.stream(summary);
        }
    }

    /// A transfer of a crowd ended, and possibly a page with it.
    pub fn crowd_finished(&mut self, crowd: u32, transfer: Transfer, page: Option<Page>, now: Time) {
        if !self.collector.measures(now) {
            return;
        }
        let record = &mut self.crowds[crowd as usize];
        record.transfers.record(now - transfer.opened_at, transfer.size);
        if let Some(page) = page {
            record.pages.record(now - page.began, page.bytes);
        }
    }

    /// The metrics of the run.
    pub fn finish(self, plan: &Plan) -> Summary {
        self.collector.finish(plan.labels())
    }
}

impl CrowdRecord {
    /// Metrics of the crowd in the measuring window of `span` seconds; `after` are its counters at the end.
    fn summary(&self, label: String, crowd: &Crowd, after: &Counters, span: f64) -> CrowdSummary {
        let delivered_bytes = after.bytes_delivered - self.first.bytes_delivered;
        CrowdSummary {
            label,
            goodput_bit_s: delivered_bytes as f64 * 8.0 / span,
            delivered_bytes,
            opened: crowd.opened - self.opened,
            failed: crowd.failed - self.failed,
            sent_bytes: after.bytes_sent - self.first.bytes_sent,
            retransmitted_bytes: after.bytes_retransmitted - self.first.bytes_retransmitted,
            timeouts: Some(after.timeouts - self.first.timeouts),
            transfers: self.transfers.summary(),
            pages: self.pages.summary(),
        }
    }
}

fn counters(flow: &FlowState<'_>) -> FlowCounters {
    let counters = flow.counters();
    FlowCounters {
        delivered_bytes: counters.bytes_delivered,
        sent_bytes: counters.bytes_sent,
        retransmitted_bytes: counters.bytes_retransmitted,
        congestion_events: counters.reductions,
        timeouts: Some(counters.timeouts),
        host: flow.host.map(|host| {
            let host = host.counters();
            let (busy, dropped, backlog_max) = (host.busy, host.dropped, host.most);
            Box::new(HostCounters { busy, dropped, backlog_max, stalls: counters.stalls })
        }),
    }
}
