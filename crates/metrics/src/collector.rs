//! Collects the data that the summary needs during a run.

use elephan_units::{Rate, Time};
use serde::{Deserialize, Serialize};

use crate::completions::Completions;
use crate::epochs::Epochs;
use crate::formula;
use crate::summary::{CrowdSummary, FlowSummary, HostSummary, LinkSummary, StreamSummary, Summary};

/// Thesis, section 7.1.3: the 80 % convergence time.
const EPSILON: f64 = 0.8;
/// The time constant of the short-term average, as a number of round-trip times. The thesis makes it
/// proportional to the path's delay and leaves the constant open; 25 are two seconds at 82 ms, less than any
/// epoch of the published paths.
const SHORT_TERM_RTTS: f64 = 25.0;
/// A link may exceed its rate by one packet, whose service began before the rate fell.
const LARGEST_PACKET_BITS: f64 = 8.0 * 65_535.0;

/// Information that a collector needs in advance.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The measuring window.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// Sampling interval.
    pub interval: Time,
    /// The round-trip time without queueing of each flow.
    pub rtts: Vec<Time>,
    /// Rate of the bottleneck; `None` if it has none.
    pub bottleneck: Option<Rate>,
}

/// What is sampled of a flow at each interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// Application bytes delivered in order since it began.
    pub delivered_bytes: u64,
    /// Congestion window, segments; zero between connections.
    pub cwnd: f64,
    /// Smoothed round-trip time; `None` before the first RTT sample.
    pub srtt: Option<Time>,
}

/// Counters of a flow since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowCounters {
    /// Application bytes delivered in order.
    pub delivered_bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Reductions of the window.
    pub congestion_events: u64,
    /// Retransmission timeouts; `None` if they are not known.
    pub timeouts: Option<u64>,
    /// The sender's host; `None` if it is infinitely fast.
    pub host: Option<Box<HostCounters>>,
}

/// A reduction of a flow's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduction {
    /// When, ps of the run.
    pub at_ps: u64,
    /// Whose.
    pub flow: u32,
}

/// Counters of a sending host since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostCounters {
    /// Time for which its processor was busy.
    pub busy: Time,
    /// Packets dropped because its backlog was full.
    pub dropped: u64,
    /// Maximum number of packets in its backlog.
    pub backlog_max: u64,
    /// Reductions because its device queue was full.
    pub stalls: u64,
}

/// A link's counters for the measuring window.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinkSample {
    /// The whole summary except the utilisation.
    pub summary: LinkSummary,
    /// Bits that the rate allowed while the link was up.
    pub allowed_bits: f64,
    /// Bytes served, headers included.
    pub bytes: u64,
    /// Whether it is the bottleneck, to which the summary refers.
    pub is_bottleneck: bool,
}

#[derive(Clone, Debug, Default)]
struct FlowRecord {
    started: Option<Time>,
    /// Counters at the two ends of the measuring window.
    first: FlowCounters,
    last: FlowCounters,
    /// Bytes delivered at the last sample.
    sampled_bytes: u64,
    /// Number of samples, from the flow's start on, and of those before the measuring window.
    samples: u32,
    before: u32,
    cwnds: Mean,
    srtts: Mean,
}

/// The mean of what is known.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Collects the data that the summary needs. Samples come at multiples of the interval; the ends of the
/// measuring window are reported separately, so that goodput covers it exactly. A convergence time is
/// accurate to one interval.
pub struct Collector {
    setup: Setup,
    flows: Vec<FlowRecord>,
    /// Bytes delivered in a sampling interval, from the flow's start on: first those of each flow's first, and so on.
    deliveries: Vec<Box<[f32]>>,
    active: usize,
    epochs: Epochs,
    streams: Vec<StreamSummary>,
    links: Vec<LinkSample>,
    crowds: Vec<CrowdSummary>,
    completions: Completions,
}

impl Collector {
    /// A collector at time zero.
    pub fn new(setup: Setup) -> Self {
        let longest = setup.rtts.iter().copied().max().unwrap_or(Time::ZERO);
        Self {
            flows: vec![FlowRecord::default(); setup.rtts.len()],
            deliveries: Vec::new(),
            active: 0,
            epochs: Epochs::new(longest),
            streams: Vec::new(),
            links: Vec::new(),
            crowds: Vec::new(),
            completions: Completions::default(),
            setup,
        }
    }

    /// Whether an event at `now` is in the measuring window: after its beginning, and until and including its
    /// end. A window that starts with the run includes that instant, too.
    pub fn measures(&self, now: Time) -> bool {
        (self.setup.from < now || self.setup.from == Time::ZERO) && now <= self.setup.to
    }

    /// A flow opened its first connection.
    pub fn flow_started(&mut self, flow: u32, now: Time) {
        let record = &mut self.flows[flow as usize];
        if record.started.is_none() {
            record.started = Some(now);
            self.active += 1;
        }
    }

    /// A flow's window was reduced.
    pub fn congestion(&mut self, flow: u32, now: Time) {
        if self.measures(now) {
            self.epochs.reduction(flow, self.active, now);
        }
    }

    /// All reductions of a run, in order of time, where they are known only at its end. They take the place of those in the
    /// counters of the flows.
    pub fn reductions(&mut self, every: &[Reduction]) {
        for record in &mut self.flows {
            (record.first.congestion_events, record.last.congestion_events) = (0, 0);
        }
        for &Reduction { at_ps, flow } in every {
            let at = Time::from_picos(at_ps);
            let within = self.measures(at);
            let record = &mut self.flows[flow as usize];
            record.first.congestion_events += u64::from(!within && at <= self.setup.from);
            record.last.congestion_events += u64::from(at <= self.setup.to);
            if within {
                let active = self.flows.iter().filter(|flow| flow.started.is_some_and(|start| start <= at));
                self.epochs.reduction(flow, active.count(), at);
            }
        }
    }

    /// A transfer of a flow ended.
    pub fn transfer(&mut self, bytes: u64, started: Time, finished: Time) {
        if self.measures(finished) {
            self.completions.record(finished - started, bytes);
        }
    }

    /// A flow's counters at the start of the measuring window.
    pub fn open_window(&mut self, flow: u32, counters: FlowCounters) {
        let record = &mut self.flows[flow as usize];
        record.first = counters;
        record.before = record.samples;
    }

    /// A flow's counters at the end of the measuring window.
    pub fn close_window(&mut self, flow: u32, counters: FlowCounters) {
        self.flows[flow as usize].last = counters;
    }

    /// A flow's sample, from its start to the end of the measuring window.
    pub fn sample(&mut self, flow: u32, sample: &FlowSample, now: Time) {
        // A sample is a state, not an event: the samples at both ends belong to the window.
        let within = self.setup.from <= now && now <= self.setup.to;
        let flows = self.flows.len();
        let record = &mut self.flows[flow as usize];
        // A flow that starts at this sample has had no time to deliver anything.
        if record.started.is_none_or(|started| started >= now) {
            return;
        }
        let number = record.samples as usize;
        if number == self.deliveries.len() {
            self.deliveries.push(vec![0.0; flows].into());
        }
        self.deliveries[number][flow as usize] = (sample.delivered_bytes - record.sampled_bytes) as f32;
        record.samples += 1;
        record.sampled_bytes = sample.delivered_bytes;
        if within && sample.cwnd > 0.0 {
            record.cwnds.add(sample.cwnd);
            if let Some(srtt) = sample.srtt {
                record.srtts.add(srtt.secs_f64());
            }
        }
    }

    /// The metrics of a crowd in the measuring window.
    pub fn crowd(&mut self, crowd: CrowdSummary) {
        self.crowds.push(crowd);
    }

    /// The metrics of a stream of datagrams in the measuring window.
    pub fn stream(&mut self, stream: StreamSummary) {
        self.streams.push(stream);
    }

    /// The metrics of a link in the measuring window.
    pub fn link(&mut self, link: LinkSample) {
        self.links.push(link);
    }

    /// The summary, where flows have these labels.
    pub fn finish<'a>(self, labels: impl Iterator<Item = &'a str>) -> Summary {
        let span = self.setup.to.since(self.setup.from).secs_f64();
        let flows: Vec<FlowSummary> =
            (0..self.flows.len()).zip(labels).map(|(flow, label)| self.flow(flow, label, span)).collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bit_s).collect();
        let aggregate = goodputs.iter().fold(0.0, |sum, goodput| sum + goodput);
        let shares: Vec<(u64, u64)> =
            flows.iter().map(|flow| (flow.retransmitted_bytes, flow.sent_bytes)).collect();
        let stabilities: Vec<f64> = flows.iter().filter_map(|flow| flow.stability).collect();
        let newest = (0..flows.len()).max_by_key(|&flow| (self.flows[flow].started, flow));
        let fair_share_s = newest.and_then(|flow| {
            let target = aggregate / flows.len() as f64;
            self.converges(flow, target)
        });
        let mut links: Vec<LinkSummary> = Vec::new();
        let (mut utilisation, mut loss_rate, mut queue_delay_mean_s) = (None, None, None);
        for link in &self.links {
            let mut summary = link.summary.clone();
            debug_assert!(
                link.bytes as f64 * 8.0 <= link.allowed_bits + LARGEST_PACKET_BITS,
                "{} transmitted {} bytes, where its rate allowed {} bits",
                summary.name,
                link.bytes,
                link.allowed_bits
            );
            // More than 1 by a packet whose service began before the rate fell.
            summary.utilisation =
                finite(link.bytes as f64 * 8.0 / link.allowed_bits).map(|share| share.min(1.0));
            if link.is_bottleneck {
                utilisation = summary.utilisation;
                loss_rate = finite((summary.dropped + summary.lost) as f64 / summary.offered as f64);
                queue_delay_mean_s = summary.queue_delay_mean_s;
            }
            links.push(summary);
        }
        let overhead_whole_s_bit = self.overhead_whole();
        let (congestion_epochs, synchronisation) = self.epochs.finish();
        let transfers = self.completions.summary();
        let summary = Summary {
            from_s: self.setup.from.secs_f64(),
            to_s: self.setup.to.secs_f64(),
            goodput_bit_s: aggregate,
            utilisation,
            fairness: finite(formula::fairness(&goodputs)),
            jain: finite(formula::jain(&goodputs)),
            stability: finite(stabilities.iter().sum::<f64>() / stabilities.len() as f64),
            convergence_s: newest.and_then(|flow| flows[flow].convergence_s),
            fair_share_s,
            overhead_s_bit: finite(formula::overhead(&shares, aggregate)),
            overhead_whole_s_bit,
            loss_rate,
            queue_delay_mean_s,
            congestion_epochs,
            synchronisation: finite(synchronisation),
            flows,
            crowds: self.crowds,
            streams: self.streams,
            links,
            transfers,
        };
        debug_assert_eq!(summary.check(), Ok(()));
        summary
    }

    /// Overhead from the start of the first flow to the end of the measuring window.
    fn overhead_whole(&self) -> Option<f64> {
        let began = self.flows.iter().filter_map(|flow| flow.started).min()?;
        let last = || self.flows.iter().map(|flow| &flow.last);
        let shares: Vec<(u64, u64)> =
            last().map(|flow| (flow.retransmitted_bytes, flow.sent_bytes)).collect();
        let delivered: u64 = last().map(|flow| flow.delivered_bytes).sum();
        finite(formula::overhead(&shares, delivered as f64 * 8.0 / self.setup.to.since(began).secs_f64()))
    }

    /// The rates of a flow in its sampling intervals, without the first `before` of them.
    fn rates(&self, flow: usize, before: u32) -> Vec<f64> {
        let interval = self.setup.interval.secs_f64();
        let samples = &self.deliveries[before as usize..self.flows[flow].samples as usize];
        samples.iter().map(|of_flows| f64::from(of_flows[flow]) * 8.0 / interval).collect()
    }

    fn converges(&self, flow: usize, target: f64) -> Option<f64> {
        let step = self.setup.interval.secs_f64();
        let tau = (SHORT_TERM_RTTS * self.setup.rtts[flow].secs_f64()).max(step);
        formula::convergence(&self.rates(flow, 0), target, EPSILON, step, tau)
    }

    fn flow(&self, number: usize, label: &str, span: f64) -> FlowSummary {
        let record = &self.flows[number];
        let (first, last) = (&record.first, &record.last);
        let goodput_bit_s = (last.delivered_bytes - first.delivered_bytes) as f64 * 8.0 / span;
        let measured = self.rates(number, record.before);
        FlowSummary {
            label: label.to_owned(),
            start_s: record.started.map(Time::secs_f64),
            goodput_bit_s,
            stability: finite(formula::stability(&measured)),
            convergence_s: self.converges(number, goodput_bit_s),
            sent_bytes: last.sent_bytes - first.sent_bytes,
            retransmitted_bytes: last.retransmitted_bytes - first.retransmitted_bytes,
            cwnd_mean_segments: record.cwnds.value(),
            srtt_mean_s: record.srtts.value(),
            congestion_events: last.congestion_events - first.congestion_events,
            timeouts: last.timeouts.map(|last| last - first.timeouts.unwrap_or(0)),
            host: last.host.as_deref().map(|host| {
                let before = first.host.as_deref().copied().unwrap_or_default();
                HostSummary {
                    busy: host.busy.since(before.busy).secs_f64() / span,
                    dropped: host.dropped - before.dropped,
                    backlog_max_packets: host.backlog_max,
                    stalls: host.stalls - before.stalls,
                }
            }),
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector() -> Collector {
        let rtt = Time::from_millis(10);
        Collector::new(Setup {
            from: Time::from_secs(2),
            to: Time::from_secs(10),
            interval: Time::from_secs(1),
            rtts: vec![rtt; 2],
            bottleneck: None,
        })
    }

    #[test]
    fn reductions_that_are_known_at_the_end_are_those_of_their_times() {
        let mut collector = collector();
        collector.flow_started(0, Time::ZERO);
        collector.flow_started(1, Time::from_secs(5));
        for flow in 0..2 {
            // What samples saw does not count.
            collector.close_window(flow, FlowCounters { congestion_events: 7, ..FlowCounters::default() });
        }
        // At both ends of the window: the first is before it, the last within it. One more comes after it.
        let times = [(2000, 0), (3000, 0), (6000, 0), (6005, 1), (10_000, 0), (10_001, 0)];
        let every = times.map(|(ms, flow)| Reduction { at_ps: Time::from_millis(ms).picos(), flow });
        collector.reductions(&every);
        let summary = collector.finish(["a", "b"].into_iter());
        assert_eq!([0, 1].map(|flow: usize| summary.flows[flow].congestion_events), [3, 1]);
        // Three epochs: of the only active flow, of both, and of one of both.
        assert_eq!((summary.congestion_epochs, summary.synchronisation), (3, Some(2.5 / 3.0)));
    }

    /// Flow 0 delivers 1000 bytes a second from the start; flow 1 starts at 2 s and reaches 500 at once.
    fn run() -> Summary {
        let mut collector = collector();
        collector.flow_started(0, Time::ZERO);
        for second in 1..=10u64 {
            if second == 2 {
                collector.flow_started(1, Time::from_secs(2));
            }
            for flow in 0..2u64 {
                let since = if flow == 0 { second } else { second.saturating_sub(2) };
                let delivered_bytes = since * if flow == 0 { 1000 } else { 500 };
                let sample = FlowSample { delivered_bytes, cwnd: 10.0, srtt: None };
                collector.sample(flow as u32, &sample, Time::from_secs(second));
                let counters = FlowCounters {
                    delivered_bytes,
                    sent_bytes: since * 1000,
                    retransmitted_bytes: since * 10,
                    ..FlowCounters::default()
                };
                if second == 2 {
                    collector.open_window(flow as u32, counters.clone());
                }
                collector.close_window(flow as u32, counters);
            }
        }
        collector.finish(["a", "b"].into_iter())
    }

    #[test]
    fn goodput_covers_the_measuring_window_only() {
        let summary = run();
        assert_eq!(summary.flows[0].goodput_bit_s, 8000.0);
        assert_eq!(summary.flows[1].goodput_bit_s, 4000.0);
        assert_eq!(summary.goodput_bit_s, 12_000.0);
        assert_eq!(summary.fairness, Some(0.5));
        assert_eq!(summary.stability, Some(0.0));
        // 1 % retransmitted by each of two flows, at 12 kbit/s.
        assert!((summary.overhead_s_bit.unwrap() - 0.02 / 12_000.0).abs() < 1e-12);
        // 10,000 and 4000 bytes in the ten seconds of the run.
        assert!((summary.overhead_whole_s_bit.unwrap() - 0.02 / 11_200.0).abs() < 1e-12);
    }

    #[test]
    fn the_newest_flow_converges_to_itself_but_not_to_a_fair_share() {
        let summary = run();
        // Two seconds of a constant rate: 1 - exp(-2) = 0.86 of it, after 0.63.
        assert_eq!(summary.convergence_s, Some(2.0));
        assert_eq!(summary.fair_share_s, None);
    }

    #[test]
    fn a_run_without_flows_or_traffic_has_no_ratios() {
        let summary = collector().finish(["a", "b"].into_iter());
        assert_eq!(summary.goodput_bit_s, 0.0);
        assert_eq!((summary.fairness, summary.jain, summary.overhead_s_bit), (None, None, None));
        assert_eq!(summary.overhead_whole_s_bit, None);
    }
}
