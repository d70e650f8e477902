//! Samples of all crowds, and their summaries.

use std::sync::atomic::Ordering;

use elephan_metrics::trace::{CrowdRow, CrowdTrace};
use elephan_metrics::{Completions, CrowdSummary};
use elephan_scenario::Plan;
use elephan_units::Time;

use crate::hosts::{Shared, Totals};

/// Samples of all crowds, and their summaries.
pub struct Samples {
    /// Samples, with the simulator's columns.
    pub trace: CrowdTrace,
    /// Completions of each crowd in the measuring window: of transfers, and of pages.
    pub completed: Vec<[Completions; 2]>,
    /// Bytes delivered of each at the last sample.
    sampled: Vec<u64>,
    /// Counters of each at the beginning of the measuring window.
    first: Vec<Counters>,
    /// The counters of each in the measuring window, without completions.
    summaries: Vec<CrowdSummary>,
}

/// Counters of a crowd.
#[derive(Clone, Copy, Default)]
struct Counters {
    totals: Totals,
    delivered: u64,
    opened: u64,
    failed: u64,
}

impl Counters {
    fn of(crowd: &Shared) -> Self {
        let delivered = crowd.delivered.load(Ordering::Relaxed);
        let connections = crowd.connections();
        Self {
            totals: connections.totals(),
            delivered,
            opened: connections.opened,
            failed: connections.failed,
        }
    }
}

/// The crowds of a plan among its flows and crowds.
fn of<'a>(plan: &Plan, shared: &'a [Shared]) -> &'a [Shared] {
    &shared[plan.flows.len()..]
}

impl Samples {
    /// For the crowds of `plan`, before they begin.
    pub fn new(plan: &Plan) -> Self {
        let count = plan.crowds.len();
        Self {
            trace: CrowdTrace::default(),
            completed: (0..count).map(|_| Default::default()).collect(),
            sampled: vec![0; count],
            first: vec![Counters::default(); count],
            summaries: Vec::new(),
        }
    }

    /// The measuring window begins.
    pub fn open_window(&mut self, plan: &Plan, shared: &[Shared]) {
        self.first = of(plan, shared).iter().map(Counters::of).collect();
    }

    /// The measuring window ends.
    pub fn close_window(&mut self, plan: &Plan, shared: &[Shared]) {
        let span = plan.measure.to.since(plan.measure.from).secs_f64();
        for ((crowd, shared), first) in plan.crowds.iter().zip(of(plan, shared)).zip(&self.first) {
            let last = Counters::of(shared);
            let delivered_bytes = last.delivered - first.delivered;
            self.summaries.push(CrowdSummary {
                label: crowd.flow.label.clone(),
                goodput_bit_s: delivered_bytes as f64 * 8.0 / span,
                delivered_bytes,
                opened: last.opened - first.opened,
                failed: last.failed - first.failed,
                sent_bytes: last.totals.bytes_sent - first.totals.bytes_sent,
                retransmitted_bytes: last.totals.bytes_retrans - first.totals.bytes_retrans,
                timeouts: (!last.totals.unreported_rto)
                    .then(|| last.totals.total_rto - first.totals.total_rto),
                transfers: None,
                pages: None,
            });
        }
    }

    /// Adds a row for each crowd.
    pub fn trace(&mut self, plan: &Plan, shared: &[Shared], time: Time, span: f64) {
        for (number, crowd) in of(plan, shared).iter().enumerate() {
            let delivered = crowd.delivered.load(Ordering::Relaxed);
            let since = delivered - std::mem::replace(&mut self.sampled[number], delivered);
            let connections = crowd.connections();
            self.trace.push(CrowdRow {
                time_s: time.secs_f64(),
                flow: (plan.flows.len() + number) as u32,
                open: connections.sockets.iter().flatten().count() as u32,
                opened: connections.opened,
                finished: connections.finished,
                delivered_bytes: delivered,
                goodput_bit_s: if span > 0.0 { since as f64 * 8.0 / span } else { 0.0 },
                receive_rate_bit_s: f64::NAN,
            });
        }
    }

    /// The summaries of all crowds.
    pub fn summaries(&self) -> impl Iterator<Item = CrowdSummary> {
        self.summaries.iter().zip(&self.completed).map(|(summary, [transfers, pages])| CrowdSummary {
            transfers: transfers.summary(),
            pages: pages.summary(),
            ..summary.clone()
        })
    }
}
