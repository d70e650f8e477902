//! The data recorded while an engine runs.

mod measured;
mod samples;

use elephan_metrics::trace::{EventTrace, TransferTrace, VariableTrace};
use elephan_metrics::{Control, Outcome, SoFar};
use elephan_scenario::Plan;
use elephan_units::Time;

use crate::error::Error;
use crate::record::measured::Measured;
use crate::record::samples::Samples;
use crate::report::Report;
use crate::state::State;
use crate::state::connection::Transfer;

/// Traces and metrics of a run.
pub struct Record<'a> {
    plan: &'a Plan,
    control: &'a dyn Control,
    measured: Measured,
    samples: Samples,
    transfers: TransferTrace,
    /// The next time of each: a trace sample, a sample for the metrics, an end of the measuring window, a
    /// progress report.
    next_trace: Time,
    next_sample: Time,
    next_edge: Time,
    next_report: Time,
}

impl<'a> Record<'a> {
    /// The record of a run that has not begun.
    pub fn new(control: &'a dyn Control, state: &mut State<'a>) -> Self {
        let plan = state.plan;
        let mut record = Self {
            plan,
            control,
            measured: Measured::new(plan),
            samples: Samples::new(state),
            transfers: TransferTrace::default(),
            next_trace: Time::ZERO,
            next_sample: Time::ZERO,
            next_edge: plan.measure.from,
            next_report: Time::ZERO,
        };
        if plan.measure.from == Time::ZERO {
            record.measured.open_window(state);
            record.next_edge = plan.measure.to;
        }
        record
    }

    fn note_transfer(&mut self, number: usize, transfer: Transfer, end: Option<Time>) {
        if self.plan.trace.transfers {
            self.transfers.add(number as u32, transfer.number, transfer.size, transfer.opened_at, end);
        }
    }

    /// A site reports what happened at `now`.
    pub fn note(&mut self, report: Report, now: Time) {
        let collector = &mut self.measured.collector;
        match report {
            Report::Congestion(flow) => collector.congestion(flow, now),
            Report::Started(flow) => collector.flow_started(flow, now),
            Report::Finished(flow, transfer) => {
                collector.transfer(transfer.size, transfer.opened_at, now);
                self.note_transfer(flow as usize, transfer, Some(now));
            }
            Report::CrowdFinished(crowd, transfer, page) => {
                self.measured.crowd_finished(crowd, transfer, page, now);
                self.note_transfer(self.plan.flows.len() + crowd as usize, transfer, Some(now));
            }
        }
    }

    /// Everything that was recorded.
    pub fn finish(mut self, mut state: State<'_>) -> Result<Outcome, Error> {
        for (number, flow) in state.flows().enumerate() {
            for transfer in flow.unfinished() {
                self.note_transfer(number, transfer, None);
            }
        }
        for (number, (crowd, _)) in state.crowds().enumerate() {
            for transfer in state.unfinished_of(number, crowd) {
                self.note_transfer(self.plan.flows.len() + number, transfer, None);
            }
        }
        let (mut events, mut variables) = (EventTrace::default(), VariableTrace::default());
        for detail in state.sites.iter_mut().filter_map(|site| site.detail.take()) {
            (events, variables) = detail.finish()?;
        }
        let segments = |bytes: u64, mss: u32| bytes.div_ceil(u64::from(mss));
        let flows = state.flows().zip(&self.plan.flows);
        let flows = flows.map(|(flow, plan)| segments(flow.slot.counters().bytes_acked, plan.tcp.mss()));
        let crowds = state.crowds().zip(&self.plan.crowds);
        let crowds = crowds.map(|((_, counters), plan)| segments(counters.bytes_acked, plan.flow.tcp.mss()));
        let segments_delivered = flows.chain(crowds).sum();
        let handled = state.handled + state.sites.iter().map(|site| site.handled).sum::<u64>();
        let links = state.network.finish(self.plan.duration);
        for link in links.links {
            self.measured.collector.link(link);
        }
        // The summary and the samples need its memory.
        drop(state.sites);
        Ok(Outcome {
            summary: self.measured.finish(self.plan),
            flows: self.samples.flows.since(0),
            crowds: self.samples.crowds,
            streams: self.samples.streams,
            queues: links.queues,
            transfers: self.transfers,
            events,
            variables,
            segments_delivered,
            events_handled: handled,
        })
    }

    /// The time returned by [`Record::next_tick`] has come.
    pub fn tick(&mut self, state: &mut State<'_>, now: Time) -> Result<(), Error> {
        // A sample of a million flows takes long.
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if now == self.next_trace {
            self.samples.take(state, now);
            for site in &mut state.sites {
                site.sample_variables(now);
            }
            self.next_trace = now.saturating_add(self.plan.trace.interval);
        }
        let window = self.plan.measure;
        if now == self.next_sample {
            self.measured.sample(state, now);
            self.next_sample = if now < window.to { now.saturating_add(window.interval) } else { Time::MAX };
        }
        if now == self.next_edge {
            if now == window.from {
                self.measured.open_window(state);
                self.next_edge = window.to;
            } else {
                self.measured.close_window(state);
                (self.next_edge, self.next_sample) = (Time::MAX, Time::MAX);
            }
        }
        if now == self.next_report {
            for detail in state.sites.iter_mut().filter_map(|site| site.detail.as_mut()) {
                detail.captures.check()?;
            }
            let share = now.secs_f64() / self.plan.duration.secs_f64();
            let queues = &state.network.recorded().queues;
            if !self.control.goes_on(&SoFar { now, share, flows: &self.samples.flows, queues }) {
                return Err(Error::Cancelled);
            }
            self.next_report =
                now.saturating_add(self.control.interval(self.plan.duration).max(Time::from_picos(1)));
        }
        Ok(())
    }

    /// When something is to be recorded next; `Time::MAX` for never.
    pub fn next_tick(&self) -> Time {
        self.next_trace.min(self.next_sample).min(self.next_edge).min(self.next_report)
    }
}
