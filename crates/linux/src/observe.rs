//! Samples of every connection during a run, and the quality of the run.

use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use elephan_cc::registry;
use elephan_metrics::trace::{
    CrowdTrace, FlowRow, FlowTrace, KernelRow, KernelTrace, StreamTrace, TransferTrace, UNKNOWN, VariableRow,
    VariableTrace,
};
use elephan_metrics::{Collector, FlowCounters, FlowSample, FlowSamples};
use elephan_scenario::plan::Flow;
use elephan_sys::{TcpInfo, tcp_cc_info, tcp_info};
use elephan_units::Time;

use crate::crowds;
use crate::hosts::{Common, Occurrence, Shared, Totals, groups};
use crate::streams::{self, Progress};

/// Number of samples per round trip at which a recovery state of a sender, which lasts a round trip, is not
/// missed.
const LOOKS_PER_RTT: u64 = 8;
/// Minimum interval between samples.
const SHORTEST_INTERVAL: Time = Time::from_millis(1);

/// The results of a sampler.
pub struct Sampled {
    /// The quality of the run, except for its links.
    pub collector: Collector,
    /// Samples of the flows, with the simulator's columns.
    pub flows: FlowTrace,
    /// Samples of the flows, with the kernel's own columns.
    pub kernel: KernelTrace,
    /// Samples of the crowds.
    pub crowds: CrowdTrace,
    /// Samples of the streams.
    pub streams: StreamTrace,
    /// What the kernel's algorithms of the flows tell of themselves.
    pub variables: VariableTrace,
    /// Transfers.
    pub transfers: TransferTrace,
    /// Data segments that were delivered, of all flows and crowds together.
    pub segments_delivered: u64,
}

/// The state of a flow between samples.
#[derive(Clone, Default)]
struct Known {
    ca_state: u8,
    congestion_events: u64,
    /// Timeouts seen by the sender's state, on kernels that do not report their number.
    seen_timeouts: u64,
    started: bool,
    traced_bytes: u64,
    sample: FlowSample,
    counters: FlowCounters,
    totals: Totals,
}

/// Samples every connection.
pub struct Sampler<'a> {
    common: Common<'a>,
    collector: Collector,
    known: Vec<Known>,
    infos: Vec<Option<TcpInfo>>,
    /// Samples, with the simulator's columns.
    pub flows: FlowSamples,
    /// Samples, with the kernel's own columns.
    pub kernel: KernelTrace,
    variables: VariableTrace,
    /// The names of all variables: a trace has their numbers.
    names: Vec<&'static str>,
    /// Transfers.
    pub transfers: TransferTrace,
    crowds: crowds::Samples,
    streams: &'a [Mutex<Progress>],
    stream_samples: streams::Samples,
    look: Time,
    next_look: Time,
    next_trace: Time,
    next_sample: Time,
    next_edge: Time,
    last_trace: Time,
}

impl<'a> Sampler<'a> {
    /// A sampler for a run that begins now.
    pub fn new(common: Common<'a>, streams: &'a [Mutex<Progress>]) -> Self {
        let plan = common.plan;
        let shortest = plan.flows.iter().map(|flow| flow.rtt).min().unwrap_or(Time::MAX);
        Self {
            collector: Collector::new(plan.setup()),
            known: vec![Known::default(); plan.flows.len()],
            infos: vec![None; plan.flows.len()],
            flows: FlowSamples::of(plan.flows.len()),
            kernel: KernelTrace::default(),
            variables: VariableTrace::default(),
            names: if plan.trace.variables { registry::vocabulary()[0].clone() } else { Vec::new() },
            transfers: TransferTrace::default(),
            streams,
            crowds: crowds::Samples::new(plan),
            stream_samples: streams::Samples::new(plan),
            look: (shortest / LOOKS_PER_RTT).max(SHORTEST_INTERVAL),
            next_look: Time::ZERO,
            next_trace: Time::ZERO,
            next_sample: Time::ZERO,
            next_edge: if plan.measure.from == Time::ZERO { plan.measure.to } else { plan.measure.from },
            last_trace: Time::ZERO,
            common,
        }
    }

    /// When [`Sampler::tick`] is to be called next.
    pub fn next(&self) -> Time {
        self.next_look.min(self.next_trace).min(self.next_sample).min(self.next_edge)
    }

    /// Samples the connections, and records what is due.
    pub fn tick(&mut self, occurrences: &Mutex<Vec<Occurrence>>) {
        let now = self.common.clock.now();
        let plan = self.common.plan;
        for occurrence in std::mem::take(&mut *occurrences.lock().expect("nobody panics with it")) {
            self.occurred(occurrence);
        }
        for number in 0..plan.flows.len() {
            self.look(number, now);
        }
        self.next_look = now.saturating_add(self.look);
        if self.next_sample <= now {
            for (flow, known) in self.known.iter().enumerate() {
                self.collector.sample(flow as u32, &known.sample, self.next_sample);
            }
            self.next_sample = self.next_sample.saturating_add(plan.measure.interval);
        }
        if self.next_edge <= now {
            let opens = self.next_edge == plan.measure.from;
            for (flow, known) in self.known.iter().enumerate() {
                if opens {
                    self.collector.open_window(flow as u32, known.counters.clone());
                } else {
                    self.collector.close_window(flow as u32, known.counters.clone());
                }
            }
            if opens {
                self.crowds.open_window(plan, self.common.shared);
                streams::Samples::open_window(self.streams);
            } else {
                self.crowds.close_window(plan, self.common.shared);
                self.stream_samples.close_window(plan, self.streams);
            }
            self.next_edge = if opens { plan.measure.to } else { Time::MAX };
        }
        if self.next_trace <= now {
            self.trace(self.next_trace);
            self.next_trace = self.next_trace.saturating_add(plan.trace.interval);
        }
    }

    fn occurred(&mut self, occurrence: Occurrence) {
        let until = self.common.plan.duration;
        match occurrence {
            // The hosts notice the end of the run some time after it.
            Occurrence::Opened { at: start, .. } | Occurrence::Transfer { start, .. } if start > until => {}
            Occurrence::Opened { flow, at } => {
                self.known[flow as usize].started = true;
                self.collector.flow_started(flow, at);
            }
            Occurrence::Transfer { group, index, bytes, start, end } => {
                let end = end.filter(|&end| end <= until);
                let crowd = (group as usize).checked_sub(self.common.plan.flows.len());
                match (end, crowd) {
                    (Some(end), None) => self.collector.transfer(bytes, start, end),
                    (Some(end), Some(crowd)) if self.collector.measures(end) => {
                        self.crowds.completed[crowd][0].record(end.since(start), bytes);
                    }
                    _ => {}
                }
                if self.common.plan.trace.transfers {
                    self.transfers.add(group, index, bytes, start, end);
                }
            }
            Occurrence::Page { crowd, page, end } => {
                if self.collector.measures(end) {
                    self.crowds.completed[crowd as usize][1].record(end.since(page.began), page.bytes);
                }
            }
        }
    }

    /// Queries the kernel about a flow.
    fn look(&mut self, number: usize, now: Time) {
        let shared = &self.common.shared[number];
        let (info, before) = {
            let connections = shared.connections();
            let socket = connections.sockets.first().and_then(Option::as_ref);
            (socket.and_then(|socket| tcp_info(socket.as_fd()).ok()), connections.before)
        };
        let known = &mut self.known[number];
        known.totals = info.map_or(before, |info| before.and(&info));
        let ca_state = std::mem::replace(&mut known.ca_state, info.map_or(0, |info| info.ca_state));
        if let Some(info) = info {
            if info.expired_since(ca_state) && info.timeouts().is_none() {
                known.seen_timeouts += 1;
            }
            if info.reduced_since(ca_state) {
                known.congestion_events += 1;
                self.collector.congestion(number as u32, now);
            }
        }
        let delivered_bytes = shared.delivered.load(Ordering::Relaxed);
        known.sample = FlowSample {
            delivered_bytes,
            cwnd: info.map_or(0.0, |info| f64::from(info.snd_cwnd)),
            srtt: info.and_then(|info| info.srtt()),
        };
        known.counters = FlowCounters {
            delivered_bytes,
            sent_bytes: known.totals.bytes_sent,
            retransmitted_bytes: known.totals.bytes_retrans,
            congestion_events: known.congestion_events,
            timeouts: Some(known.totals.total_rto + known.seen_timeouts),
            host: None,
        };
        self.infos[number] = info;
    }

    fn trace(&mut self, now: Time) {
        let span = now.since(self.last_trace).secs_f64();
        for (number, known) in self.known.iter_mut().enumerate() {
            let (true, Some(info)) = (known.started, self.infos[number]) else { continue };
            let delivered = known.sample.delivered_bytes;
            let since = delivered - std::mem::replace(&mut known.traced_bytes, delivered);
            self.flows.push(FlowRow {
                goodput_bit_s: if span > 0.0 { since as f64 * 8.0 / span } else { 0.0 },
                delivered_bytes: delivered,
                sent_bytes: known.totals.bytes_sent,
                retransmits: known.totals.total_retrans,
                timeouts: (known.totals.total_rto + known.seen_timeouts) as u32,
                congestion_events: known.congestion_events as u32,
                ..info.flow_row(now, number as u32)
            });
            self.kernel.push(KernelRow {
                busy_s: known.totals.busy_us as f64 * 1e-6,
                rwnd_limited_s: known.totals.rwnd_limited_us as f64 * 1e-6,
                sndbuf_limited_s: known.totals.sndbuf_limited_us as f64 * 1e-6,
                ..info.kernel_row()
            });
        }
        if self.common.plan.trace.variables {
            self.trace_variables(now);
        }
        self.crowds.trace(self.common.plan, self.common.shared, now, span);
        self.stream_samples.trace(self.common.plan, self.streams, now, span);
        self.last_trace = now;
    }

    /// Asks the algorithms of the flows what they tell of themselves.
    fn trace_variables(&mut self, now: Time) {
        for (flow, (told, shared)) in self.common.plan.flows.iter().zip(self.common.shared).enumerate() {
            let connections = shared.connections();
            let (Some(Some(socket)), Some(info)) = (connections.sockets.first(), self.infos[flow]) else {
                continue;
            };
            let told = tcp_cc_info(socket.as_fd(), told.cc.name, info.snd_mss).unwrap_or_default();
            for (name, value) in told {
                let variable = self.names.iter().position(|known| *known == name);
                self.variables.push(VariableRow {
                    time_s: now.secs_f64(),
                    flow: flow as u32,
                    variable: variable.expect("each is a variable of an algorithm") as u32,
                    value,
                    value_name: UNKNOWN,
                });
            }
        }
    }

    /// The share of the busy time of all flows together in which a buffer of the hosts was the limit:
    /// receiver, sender.
    pub fn limited(&self) -> (f64, f64) {
        let sum =
            |of: fn(&Totals) -> u64| self.known.iter().map(|known| of(&known.totals)).sum::<u64>() as f64;
        let busy = sum(|totals| totals.busy_us).max(1.0);
        (sum(|totals| totals.rwnd_limited_us) / busy, sum(|totals| totals.sndbuf_limited_us) / busy)
    }

    /// The end of a run: the results to report, and the collector of its metrics.
    pub fn finish(mut self, occurrences: Vec<Occurrence>) -> Sampled {
        for occurrence in occurrences {
            self.occurred(occurrence);
        }
        for summary in self.crowds.summaries() {
            self.collector.crowd(summary);
        }
        for summary in self.stream_samples.summaries {
            self.collector.stream(summary);
        }
        let segments = |(flow, shared): (&Flow, &Shared)| {
            shared.delivered.load(Ordering::Relaxed).div_ceil(u64::from(flow.tcp.mss()))
        };
        let segments_delivered = groups(self.common.plan).zip(self.common.shared).map(segments).sum();
        Sampled {
            collector: self.collector,
            flows: self.flows.since(0),
            kernel: self.kernel,
            variables: self.variables,
            crowds: self.crowds.trace,
            streams: self.stream_samples.trace,
            transfers: self.transfers,
            segments_delivered,
        }
    }
}
