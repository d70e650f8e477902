//! The data recorded while an engine runs.

mod captures;
mod measured;
mod pcap;
mod samples;

use elephan_metrics::trace::{EventRow, EventTrace, NO_LINK, TransferTrace};
use elephan_metrics::{Control, Outcome, SoFar};
use elephan_scenario::Plan;
use elephan_traffic::Page;
use elephan_units::Time;

use crate::error::Error;
use crate::observer::{Event, Observer};
use crate::packet::Packet;
use crate::record::captures::Captures;
use crate::record::measured::Measured;
use crate::record::samples::Samples;
use crate::state::State;
use crate::state::connection::Connection;
use crate::state::slot::Slot;

/// Memory for this number of flow samples is reserved in advance, 1.5 GB of address space; further samples
/// make it grow.
const MOST_ROWS_AT_FIRST: u64 = 1 << 24;

/// Traces, metrics and captures of a run. `DETAILED` says whether single packets are recorded. It is a
/// compile-time constant, so a run that keeps no events and captures nothing does not even check.
pub struct Record<'a, const DETAILED: bool> {
    plan: &'a Plan,
    control: &'a dyn Control,
    measured: Measured,
    samples: Samples,
    transfers: TransferTrace,
    events: EventTrace,
    captures: Captures,
    /// The next time of each: a trace sample, a sample for the metrics, an end of the measuring window, a
    /// progress report.
    next_trace: Time,
    next_sample: Time,
    next_edge: Time,
    next_report: Time,
}

impl<'a, const DETAILED: bool> Record<'a, DETAILED> {
    /// The record of a run that has not begun.
    pub fn new(control: &'a dyn Control, state: &mut State<'a>) -> Result<Self, Error> {
        let plan = state.plan;
        let samples = plan.duration.picos() / plan.trace.interval.picos() + 1;
        let rows = samples.saturating_mul(plan.flows.len() as u64).min(MOST_ROWS_AT_FIRST);
        let mut record = Self {
            plan,
            control,
            measured: Measured::new(plan),
            samples: Samples::new(state, rows as usize),
            transfers: TransferTrace::default(),
            events: EventTrace::default(),
            captures: Captures::new(plan, control)?,
            next_trace: Time::ZERO,
            next_sample: Time::ZERO,
            next_edge: plan.measure.from,
            next_report: Time::ZERO,
        };
        if plan.measure.from == Time::ZERO {
            record.measured.open_window(state);
            record.next_edge = plan.measure.to;
        }
        Ok(record)
    }

    fn note_transfer(&mut self, number: usize, connection: &Connection, end: Option<Time>) {
        if self.plan.trace.transfers {
            let bytes = connection.size.unwrap_or(0);
            self.transfers.add(number as u32, connection.transfer, bytes, connection.opened_at, end);
        }
    }

    /// Everything that was recorded.
    pub fn finish(mut self, mut state: State<'_>) -> Result<Outcome, Error> {
        for (number, flow) in state.flows().iter().enumerate() {
            if let Some(connection) = flow.unfinished() {
                self.note_transfer(number, connection, None);
            }
        }
        for (number, crowd) in state.crowds.iter().enumerate() {
            for connection in state.slots_of(crowd).filter_map(Slot::unfinished) {
                self.note_transfer(self.plan.flows.len() + number, connection, None);
            }
        }
        self.captures.finish()?;
        self.events.sort();
        let segments = |bytes: u64, mss: u32| bytes.div_ceil(u64::from(mss));
        let flows = state.flows().iter().zip(&self.plan.flows);
        let flows = flows.map(|(flow, plan)| segments(flow.counters().bytes_acked, plan.tcp.mss()));
        let crowds = state.crowds.iter().zip(&self.plan.crowds);
        let crowds =
            crowds.map(|(crowd, plan)| segments(state.counters_of(crowd).bytes_acked, plan.flow.tcp.mss()));
        let segments_delivered = flows.chain(crowds).sum();
        let links = state.network.finish(self.plan.duration);
        for link in links.links {
            self.measured.collector.link(link);
        }
        Ok(Outcome {
            summary: self.measured.finish(),
            flows: self.samples.flows,
            crowds: self.samples.crowds,
            streams: self.samples.streams,
            queues: links.queues,
            transfers: self.transfers,
            events: self.events,
            segments_delivered,
            events_handled: state.handled,
        })
    }
}

impl<const DETAILED: bool> Observer for Record<'_, DETAILED> {
    const DETAILED: bool = DETAILED;

    fn event(&mut self, state: &State<'_>, now: Time, event: Event<'_>) {
        if !self.plan.trace.events {
            return;
        }
        let sender = state.flows().get(event.flow as usize).and_then(Slot::sender);
        self.events.push(EventRow {
            time_s: now.secs_f64(),
            kind: event.kind as u8,
            flow: event.flow,
            link: event.link.unwrap_or(NO_LINK),
            seq: event.segment.map_or(0, |s| if s.len > 0 { s.seq } else { s.ack }),
            bytes: event.segment.map_or(0, |s| u32::from(s.len)),
            cwnd_segments: sender.map_or(0.0, |sender| sender.controller().cwnd()),
            ssthresh_segments: sender.map_or(0.0, |sender| sender.controller().ssthresh()),
        });
    }

    fn congestion(&mut self, flow: u32, now: Time) {
        self.measured.collector.congestion(flow, now);
    }

    fn started(&mut self, flow: u32, now: Time) {
        self.measured.collector.flow_started(flow, now);
    }

    fn finished(&mut self, flow: u32, connection: &Connection, now: Time) {
        self.measured.collector.transfer(connection.size.unwrap_or(0), connection.opened_at, now);
        self.note_transfer(flow as usize, connection, Some(now));
    }

    fn crowd_finished(&mut self, crowd: u32, connection: &Connection, page: Option<Page>, now: Time) {
        self.measured.crowd_finished(crowd, connection, page, now);
        self.note_transfer(self.plan.flows.len() + crowd as usize, connection, Some(now));
    }

    fn crosses(&mut self, link: u32, packet: &Packet, now: Time) {
        self.captures.write(link, packet, now);
    }

    fn tick(&mut self, state: &mut State<'_>, now: Time) -> Result<(), Error> {
        // A sample of a million flows takes long.
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if now == self.next_trace {
            self.samples.take(state, now);
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
            self.captures.check()?;
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

    fn next_tick(&self) -> Time {
        self.next_trace.min(self.next_sample).min(self.next_edge).min(self.next_report)
    }

    fn is_cancelled(&self) -> bool {
        self.control.is_cancelled()
    }
}
