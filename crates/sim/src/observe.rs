//! What is written down while an engine runs.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use elephan_metrics::trace::{
    CrowdRow, CrowdTrace, EventRow, EventTrace, FlowRow, FlowTrace, NO_LINK, QueueTrace, StreamRow,
    StreamTrace, TransferTrace,
};
use elephan_metrics::{Collector, Completions, CrowdSummary, FlowSample, HostSample, Setup};
use elephan_scenario::Plan;
use elephan_tcp::{Counters, Endpoint};
use elephan_units::Time;

use crate::connection::Connection;
use crate::crowd::{Crowd, Page};
use crate::engine::{Engine, Event, Observer, Running, add};
use crate::host::HostCounters;
use crate::links::LinkRecord;
use crate::packet::Packet;
use crate::pcap::Capture;
use crate::{Control, Error, Outcome, SoFar};

/// Room for so many samples of flows is taken beforehand, 1.5 GB of addresses; what is more is added as it comes.
const MOST_ROWS_AT_FIRST: u64 = 1 << 24;

/// Traces, metrics and captures of a run. Whether it is `DETAILED`, down to packets, is known when it is compiled, so that a run
/// that keeps no events and captures nothing does not even ask.
pub struct Record<'a, const DETAILED: bool> {
    plan: &'a Plan,
    control: &'a dyn Control,
    collector: Collector,
    flows: FlowTrace,
    crowds: CrowdTrace,
    streams: StreamTrace,
    queues: QueueTrace,
    transfers: TransferTrace,
    events: EventTrace,
    captures: Vec<Option<(PathBuf, Capture<BufWriter<File>>)>>,
    failed: Option<Error>,
    /// The next time of each: a trace sample, a sample for the metrics, an end of the measuring window, a report.
    next_trace: Time,
    next_sample: Time,
    next_edge: Time,
    next_report: Time,
    links: Vec<LinkRecord>,
    /// Bytes delivered of each flow at its last sample.
    sampled_bytes: Vec<u64>,
    /// Packets received of each stream at its last sample.
    sampled_streams: Vec<u64>,
    /// Of each crowd, what is counted in the measuring window, and bytes delivered at its last sample.
    measured_crowds: Vec<CrowdRecord>,
    last_trace: Time,
}

impl<'a, const DETAILED: bool> Record<'a, DETAILED> {
    pub fn new(plan: &'a Plan, control: &'a dyn Control, engine: &mut Engine<'_>) -> Result<Self, Error> {
        let bottleneck = &plan.links[plan.bottleneck as usize];
        let collector = Collector::new(Setup {
            from: plan.measure.from,
            to: plan.measure.to,
            interval: plan.measure.interval,
            flows: plan.flows.iter().map(|flow| (flow.label.clone(), flow.rtt)).collect(),
            bottleneck: bottleneck.config.rate,
        });
        let samples = plan.duration.picos() / plan.trace.interval.picos() + 1;
        let rows = samples.saturating_mul(plan.flows.len() as u64).min(MOST_ROWS_AT_FIRST);
        let mut captures: Vec<_> = plan.links.iter().map(|_| None).collect();
        for (number, link) in plan.links.iter().enumerate() {
            if plan.trace.pcap.contains(&link.name)
                && let Some(path) = control.pcap_file(&link.name)
            {
                let made = File::create(&path).and_then(|file| Capture::new(BufWriter::new(file)));
                let capture = made.map_err(|error| Error::Pcap(path.clone(), error))?;
                captures[number] = Some((path, capture));
            }
        }
        let mut record = Self {
            plan,
            control,
            collector,
            flows: FlowTrace::with_capacity(rows as usize),
            crowds: CrowdTrace::default(),
            streams: StreamTrace::default(),
            queues: QueueTrace::default(),
            transfers: TransferTrace::default(),
            events: EventTrace::default(),
            captures,
            failed: None,
            next_trace: Time::ZERO,
            next_sample: Time::ZERO,
            next_edge: plan.measure.from,
            next_report: Time::ZERO,
            links: vec![LinkRecord::default(); plan.links.len()],
            sampled_bytes: vec![0; plan.flows.len()],
            sampled_streams: vec![0; plan.streams.len()],
            measured_crowds: plan.crowds.iter().map(|_| CrowdRecord::default()).collect(),
            last_trace: Time::ZERO,
        };
        if plan.measure.from == Time::ZERO {
            record.open_window(engine, Time::ZERO);
            record.next_edge = plan.measure.to;
        }
        Ok(record)
    }

    /// Samples of every flow that has started, and of every link with a rate.
    fn trace(&mut self, engine: &mut Engine<'_>, now: Time) {
        let span = now.since(self.last_trace).secs_f64();
        for (number, flow) in engine.flows().iter().enumerate() {
            let Some(sender) = flow.sender() else { continue };
            let (snapshot, counters) = (sender.snapshot(), flow.counters());
            let delivered = counters.bytes_delivered;
            let since = delivered - std::mem::replace(&mut self.sampled_bytes[number], delivered);
            self.flows.push(FlowRow {
                time_s: now.secs_f64(),
                flow: number as u32,
                cwnd_segments: snapshot.cwnd,
                ssthresh_segments: snapshot.ssthresh,
                srtt_s: snapshot.srtt.secs_f64(),
                rto_s: snapshot.rto.secs_f64(),
                pipe_bytes: snapshot.pipe,
                goodput_bit_s: if span > 0.0 { since as f64 * 8.0 / span } else { 0.0 },
                delivered_bytes: delivered,
                sent_bytes: counters.bytes_sent,
                retransmits: counters.segments_retransmitted,
                timeouts: counters.timeouts as u32,
                congestion_events: counters.reductions as u32,
            });
        }
        self.trace_crowds(engine, now, span);
        for (number, stream) in engine.streams.iter().enumerate() {
            if stream.started.is_none() {
                continue;
            }
            let received = stream.reception.received();
            let since =
                received.packets - std::mem::replace(&mut self.sampled_streams[number], received.packets);
            let bits = since as f64 * self.plan.streams[number].datagrams.payload_bytes() as f64 * 8.0;
            self.streams.push(StreamRow {
                time_s: now.secs_f64(),
                flow: (self.plan.flows.len() + self.plan.crowds.len() + number) as u32,
                sent: stream.sent,
                received: received.packets,
                missing: received.lost(),
                goodput_bit_s: if span > 0.0 { bits / span } else { 0.0 },
            });
        }
        for ((number, link), record) in (0u32..).zip(&mut engine.links).zip(&mut self.links) {
            record.sample(number, link, now, now, &mut self.queues);
        }
        self.last_trace = now;
    }

    /// Samples for stability and convergence.
    fn sample(&mut self, engine: &Engine<'_>, now: Time) {
        for (number, flow) in engine.flows().iter().enumerate() {
            self.collector.sample(number as u32, &sample(engine, number, flow), now);
        }
    }

    fn open_window(&mut self, engine: &mut Engine<'_>, now: Time) {
        for (number, flow) in engine.flows().iter().enumerate() {
            self.collector.open_window(number as u32, &sample(engine, number, flow));
        }
        for (record, crowd) in self.measured_crowds.iter_mut().zip(&engine.crowds) {
            (record.first, record.opened, record.failed) =
                (counters_of(engine, crowd), crowd.opened, crowd.failed);
        }
        for stream in &mut engine.streams {
            stream.reception.measure(stream.sent);
        }
        for (record, link) in self.links.iter_mut().zip(&mut engine.links) {
            record.open(link, now);
        }
    }

    fn close_window(&mut self, engine: &mut Engine<'_>, now: Time) {
        for (number, flow) in engine.flows().iter().enumerate() {
            self.collector.close_window(number as u32, &sample(engine, number, flow));
        }
        for (number, crowd) in engine.crowds.iter().enumerate() {
            let summary = self.measure_crowd(number, crowd, &counters_of(engine, crowd));
            self.collector.crowd(summary);
        }
        let span = self.plan.measure.to.since(self.plan.measure.from);
        for (stream, plan) in engine.streams.iter().zip(&self.plan.streams) {
            let (payload, label) = (plan.datagrams.payload_bytes(), plan.label.clone());
            let summary = stream.reception.summary(label, stream.started, stream.sent, payload, span);
            self.collector.stream(summary);
        }
        self.measure_links(engine, now);
    }

    fn trace_crowds(&mut self, engine: &Engine<'_>, now: Time, span: f64) {
        for (number, crowd) in engine.crowds.iter().enumerate() {
            let delivered = counters_of(engine, crowd).bytes_delivered;
            let since = delivered - std::mem::replace(&mut self.measured_crowds[number].sampled, delivered);
            self.crowds.push(CrowdRow {
                time_s: now.secs_f64(),
                flow: (self.plan.flows.len() + number) as u32,
                open: engine.slots_of(crowd).filter(|slot| slot.connection.is_some()).count() as u32,
                opened: crowd.opened,
                finished: crowd.finished,
                delivered_bytes: delivered,
                goodput_bit_s: if span > 0.0 { since as f64 * 8.0 / span } else { 0.0 },
            });
        }
    }

    fn measure_crowd(&self, number: usize, crowd: &Crowd, after: &Counters) -> CrowdSummary {
        let record = &self.measured_crowds[number];
        let span = self.plan.measure.to.since(self.plan.measure.from).secs_f64();
        let delivered_bytes = after.bytes_delivered - record.first.bytes_delivered;
        CrowdSummary {
            label: self.plan.crowds[number].flow.label.clone(),
            goodput_bit_s: delivered_bytes as f64 * 8.0 / span,
            delivered_bytes,
            opened: crowd.opened - record.opened,
            failed: crowd.failed - record.failed,
            sent_bytes: after.bytes_sent - record.first.bytes_sent,
            retransmitted_bytes: after.bytes_retransmitted - record.first.bytes_retransmitted,
            timeouts: after.timeouts - record.first.timeouts,
            transfers: record.transfers.summary(),
            pages: record.pages.summary(),
        }
    }

    fn measure_links(&mut self, engine: &mut Engine<'_>, now: Time) {
        for (number, link) in engine.links.iter_mut().enumerate() {
            if link.config().rate.is_none() {
                continue;
            }
            let (name, is_bottleneck) =
                (&self.plan.links[number].name, number == self.plan.bottleneck as usize);
            let sample = self.links[number].close(name, link, is_bottleneck, &self.plan.measure, now);
            self.collector.link(sample);
        }
    }

    fn note_transfer(&mut self, number: usize, connection: &Connection, end: Option<Time>) {
        if self.plan.trace.transfers {
            let bytes = connection.size.unwrap_or(0);
            self.transfers.add(number as u32, connection.transfer, bytes, connection.opened_at, end);
        }
    }

    /// Everything that was written down.
    pub fn finish(mut self, engine: &mut Engine<'_>) -> Result<Outcome, Error> {
        for (path, capture) in self.captures.drain(..).flatten() {
            if let Err(error) = capture.finish() {
                self.failed.get_or_insert(Error::Pcap(path, error));
            }
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        for (number, flow) in engine.flows().iter().enumerate() {
            if let Some(connection) = flow.unfinished() {
                self.note_transfer(number, connection, None);
            }
        }
        for (number, crowd) in engine.crowds.iter().enumerate() {
            for connection in engine.slots_of(crowd).filter_map(Running::unfinished) {
                self.note_transfer(self.plan.flows.len() + number, connection, None);
            }
        }
        self.events.sort();
        let segments = |bytes: u64, mss: u32| bytes.div_ceil(u64::from(mss));
        let flows = engine.flows().iter().zip(&self.plan.flows);
        let crowds = engine.crowds.iter().zip(&self.plan.crowds);
        let segments_delivered =
            flows
                .map(|(flow, plan)| segments(flow.counters().bytes_acked, plan.tcp.mss()))
                .chain(crowds.map(|(crowd, plan)| {
                    segments(counters_of(engine, crowd).bytes_acked, plan.flow.tcp.mss())
                }))
                .sum();
        Ok(Outcome {
            summary: self.collector.finish(),
            flows: self.flows,
            crowds: self.crowds,
            streams: self.streams,
            queues: self.queues,
            transfers: self.transfers,
            events: self.events,
            segments_delivered,
            events_handled: engine.handled,
        })
    }
}

/// What is counted of a crowd in the measuring window.
#[derive(Default)]
struct CrowdRecord {
    /// Counters at its beginning.
    first: Counters,
    opened: u64,
    failed: u64,
    transfers: Completions,
    pages: Completions,
    /// Bytes delivered at the last sample.
    sampled: u64,
}

/// What all connections of a crowd counted.
fn counters_of(engine: &Engine<'_>, crowd: &Crowd) -> Counters {
    engine.slots_of(crowd).fold(Counters::default(), |mut sum, slot| {
        add(&mut sum, &slot.counters());
        sum
    })
}

fn sample(engine: &Engine<'_>, number: usize, flow: &Running) -> FlowSample {
    let host = engine.hosts.get(number).and_then(Option::as_ref);
    let counters = flow.counters();
    let snapshot = flow.sender().map(Endpoint::snapshot);
    FlowSample {
        delivered_bytes: counters.bytes_delivered,
        sent_bytes: counters.bytes_sent,
        retransmitted_bytes: counters.bytes_retransmitted,
        congestion_events: counters.reductions,
        timeouts: counters.timeouts,
        cwnd: snapshot.map_or(0.0, |snapshot| snapshot.cwnd),
        srtt: snapshot.map_or(Time::ZERO, |snapshot| snapshot.srtt),
        host: host.map(|host| {
            let HostCounters { busy, dropped, most: backlog_max } = host.counters();
            HostSample { busy, dropped, backlog_max, stalls: counters.stalls }
        }),
    }
}

impl<const DETAILED: bool> Observer for Record<'_, DETAILED> {
    const DETAILED: bool = DETAILED;

    fn event(&mut self, engine: &Engine<'_>, now: Time, event: Event<'_>) {
        if !self.plan.trace.events {
            return;
        }
        let sender = engine.flows().get(event.flow as usize).and_then(Running::sender);
        self.events.push(EventRow {
            time_s: now.secs_f64(),
            kind: event.kind as u8,
            flow: event.flow,
            link: event.link.unwrap_or(NO_LINK),
            seq: event.segment.map_or(0, |s| if s.len > 0 { s.seq } else { s.ack }),
            bytes: event.segment.map_or(0, |s| u32::from(s.len)),
            cwnd_segments: sender.map_or(0.0, |sender| sender.controller().cwnd()),
        });
    }

    fn congestion(&mut self, flow: u32, now: Time) {
        self.collector.congestion(flow, now);
    }

    fn started(&mut self, flow: u32, now: Time) {
        self.collector.flow_started(flow, now);
    }

    fn finished(&mut self, flow: u32, connection: &Connection, now: Time) {
        self.collector.transfer(connection.size.unwrap_or(0), connection.opened_at, now);
        self.note_transfer(flow as usize, connection, Some(now));
    }

    fn crowd_finished(&mut self, crowd: u32, connection: &Connection, page: Option<Page>, now: Time) {
        let record = &mut self.measured_crowds[crowd as usize];
        if self.collector.measures(now) {
            record.transfers.record(now - connection.opened_at, connection.size.unwrap_or(0));
            if let Some(page) = page {
                record.pages.record(now - page.began, page.bytes);
            }
        }
        self.note_transfer(self.plan.flows.len() + crowd as usize, connection, Some(now));
    }

    fn crosses(&mut self, link: u32, packet: &Packet, now: Time) {
        if let Some((path, capture)) = &mut self.captures[link as usize]
            && let Err(error) = capture.write(packet, now)
        {
            self.failed.get_or_insert(Error::Pcap(path.clone(), error));
        }
    }

    fn tick(&mut self, engine: &mut Engine<'_>, now: Time) -> Result<(), Error> {
        // A sample of a million flows takes long.
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if now == self.next_trace {
            self.trace(engine, now);
            self.next_trace = now.saturating_add(self.plan.trace.interval);
        }
        let window = self.plan.measure;
        if now == self.next_sample {
            self.sample(engine, now);
            self.next_sample = if now < window.to { now.saturating_add(window.interval) } else { Time::MAX };
        }
        if now == self.next_edge {
            if now == window.from {
                self.open_window(engine, now);
                self.next_edge = window.to;
            } else {
                self.close_window(engine, now);
                (self.next_edge, self.next_sample) = (Time::MAX, Time::MAX);
            }
        }
        if now == self.next_report {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let share = now.secs_f64() / self.plan.duration.secs_f64();
            if !self.control.goes_on(&SoFar { now, share, flows: &self.flows, queues: &self.queues }) {
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
