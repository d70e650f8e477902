//! The records of a run's links: samples, and the counters of each in the measuring window.

use elephan_metrics::trace::{QueueRow, QueueTrace};
use elephan_metrics::{ClassSummary, LinkSample, LinkSummary, formula};
use elephan_net::{Class, ClassCounters, LinkCounters, Packet, Queue, View};
use elephan_scenario::plan::{Measure, Plan};
use elephan_units::Time;
use serde::{Deserialize, Serialize};

use crate::links::Links;

/// The records of a run's links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Samples of the links that have a rate.
    pub queues: QueueTrace,
    /// Summaries of these links for the measuring window, in their order; empty until it ends.
    pub links: Vec<LinkSample>,
    /// At each sample, the payload that each flow, and then each crowd, had received since the run began, bytes: as counted by
    /// [`crate::Network::count`]. Those at the end of a row that had received nothing are not in it.
    pub arrived: Vec<Vec<u64>>,
}

impl Recorded {
    /// The mean rate at which a flow, or a crowd after the flows, received payload in the interval before a sample, bit/s; zero at
    /// the beginning of the run, NaN where there is no sample.
    pub fn receive_rate_bit_s(&self, number: u32, time_s: f64, interval: Time) -> f64 {
        let bytes = |row: &Vec<u64>| row.get(number as usize).copied().unwrap_or(0);
        let row = (time_s / interval.secs_f64()).round() as usize;
        match (row.checked_sub(1), self.arrived.get(row)) {
            (None, _) => 0.0,
            (Some(before), Some(now)) => {
                (bytes(now) - bytes(&self.arrived[before])) as f64 * 8.0 / interval.secs_f64()
            }
            (_, None) => f64::NAN,
        }
    }
}

/// Records the links of a run. In real time it may be called late, and then records what was due.
pub(crate) struct Recorder {
    measure: Measure,
    /// Time between samples.
    interval: Time,
    duration: Time,
    names: Vec<String>,
    bottleneck: usize,
    links: Vec<LinkRecord>,
    /// When the next sample is due, and when the next end of the measuring window is.
    next_sample: Time,
    next_edge: Time,
    /// Number of flows and crowds, and the payload that those have received that have received any.
    groups: usize,
    arrived: Vec<u64>,
    recorded: Recorded,
}

impl Recorder {
    /// The records for the links of a plan, at time zero.
    pub fn new<P: Packet>(plan: &Plan, links: &mut Links<'_, P>) -> Self {
        let mut recorder = Self {
            measure: plan.measure,
            interval: plan.trace.interval,
            duration: plan.duration,
            names: plan.links.iter().map(|link| link.name.clone()).collect(),
            bottleneck: plan.bottleneck as usize,
            links: vec![LinkRecord::default(); plan.links.len()],
            next_sample: Time::ZERO,
            next_edge: plan.measure.from,
            groups: plan.flows.len() + plan.crowds.len(),
            arrived: Vec::new(),
            recorded: Recorded::default(),
        };
        // A window that starts with the run includes its first instant.
        if recorder.next_edge == Time::ZERO {
            recorder.open_window(links, Time::ZERO);
        }
        recorder
    }

    /// When the next record is due; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        self.next_sample.min(self.next_edge)
    }

    /// Records what is due by `now`.
    pub fn record<P: Packet>(&mut self, links: &mut Links<'_, P>, now: Time) {
        while self.next_sample <= now && self.next_sample < Time::MAX {
            for (number, record) in (0u32..).zip(&mut self.links) {
                record.sample(
                    number,
                    &mut links.view(number),
                    self.next_sample,
                    now,
                    &mut self.recorded.queues,
                );
            }
            self.recorded.arrived.push(self.arrived.clone());
            let next = self.next_sample.saturating_add(self.interval);
            self.next_sample = if next <= self.duration { next } else { Time::MAX };
        }
        if self.next_edge > now {
            return;
        }
        if self.next_edge == self.measure.from {
            self.open_window(links, now);
        } else {
            self.close_window(links, now);
        }
    }

    /// A flow or crowd has received this payload.
    pub fn count(&mut self, number: usize, bytes: u32) {
        if number < self.groups {
            self.arrived.resize(self.arrived.len().max(number + 1), 0);
            self.arrived[number] += u64::from(bytes);
        }
    }

    /// The records so far.
    pub fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// The run ends at `now`: returns the records.
    pub fn finish<P: Packet>(&mut self, links: &mut Links<'_, P>, now: Time) -> Recorded {
        if self.next_edge < Time::MAX {
            self.close_window(links, self.measure.to.min(now));
        }
        std::mem::take(&mut self.recorded)
    }

    fn open_window<P: Packet>(&mut self, links: &mut Links<'_, P>, now: Time) {
        for (number, record) in (0u32..).zip(&mut self.links) {
            record.open(&mut links.view(number), now);
        }
        self.next_edge = self.measure.to;
    }

    fn close_window<P: Packet>(&mut self, links: &mut Links<'_, P>, now: Time) {
        for number in 0..self.links.len() {
            let mut link = links.view(number as u32);
            if link.config().rate.is_some() {
                let (name, is_bottleneck) = (&self.names[number], number == self.bottleneck);
                let sample = self.links[number].close(name, &mut link, is_bottleneck, &self.measure, now);
                self.recorded.links.push(sample);
            }
        }
        self.next_edge = Time::MAX;
    }
}

/// The counters of a link at some time.
#[derive(Clone, Debug, Default)]
struct State {
    counters: LinkCounters,
    classes: Vec<ClassCounters>,
    transmitted: u64,
    allowed_bits: f64,
}

/// The counters of a link at its last sample, and at the start of the measuring window.
#[derive(Clone, Debug, Default)]
struct LinkRecord {
    /// Bytes transmitted up to its last sample, and bits that its rate had allowed.
    transmitted: u64,
    allowed_bits: f64,
    /// Its counters at the start of the measuring window.
    start: State,
}

impl LinkRecord {
    /// Records the state of link `number` at `now`, with the timestamp `time`; nothing if it has no rate.
    fn sample<P: Packet>(
        &mut self,
        number: u32,
        link: &mut View<'_, P>,
        time: Time,
        now: Time,
        trace: &mut QueueTrace,
    ) {
        let Some(allowed_bits) = link.allowed_bits(now) else { return };
        let (waiting, counters) = (link.waiting(now), link.counters());
        let transmitted = link.transmitted(now);
        let bits = transmitted.saturating_sub(self.transmitted) as f64 * 8.0;
        let allowed = allowed_bits - self.allowed_bits;
        (self.transmitted, self.allowed_bits) = (transmitted, allowed_bits);
        trace.push(QueueRow {
            time_s: time.secs_f64(),
            link: number,
            packets: waiting.packets,
            bytes: waiting.bytes,
            offered: counters.offered,
            dropped: counters.dropped,
            lost: counters.lost,
            marked: counters.marked,
            utilisation: if allowed > 0.0 { bits / allowed } else { 0.0 },
            dropped_full: counters.dropped_full,
            dropped_early: counters.dropped_early,
            dropped_policed: counters.dropped_policed,
            dropped_down: counters.dropped_down,
        });
    }

    /// The measuring window begins after `now`; at the beginning of the run it includes that instant.
    fn open<P: Packet>(&mut self, link: &mut View<'_, P>, now: Time) {
        self.start = State::of(link, now);
        link.measure(if now == Time::ZERO { now } else { now.saturating_add(Time::from_picos(1)) });
    }

    /// The measuring window ends at `now`.
    fn close<P: Packet>(
        &self,
        name: &str,
        link: &mut View<'_, P>,
        is_bottleneck: bool,
        measure: &Measure,
        now: Time,
    ) -> LinkSample {
        let span = measure.to.since(measure.from);
        let (start, end) = (&self.start, State::of(link, now));
        let (counted, queue) = (end.counters.since(&start.counters, &link.earlier()), link.statistics());
        let classes = end.classes.iter().enumerate().map(|(number, after)| {
            let none = ClassCounters::default();
            let before = start.classes.get(number).unwrap_or(&none);
            // Only the weights of the link's own scheduler are shares of its rate.
            let weighted: &[Class] = match &link.config().queue {
                Queue::Drr(drr) => &drr.class,
                Queue::Wrr(wrr) => &wrr.class,
                _ => &[],
            };
            let weighted = weighted.iter().any(|class| class.name == after.name);
            let bits = (end.allowed_bits - start.allowed_bits) / span.secs_f64();
            let guaranteed =
                (weighted && before.rate_share == after.rate_share).then_some(bits * after.rate_share);
            class_summary(before, after, span.secs_f64(), guaranteed)
        });
        LinkSample {
            summary: LinkSummary {
                name: name.to_owned(),
                utilisation: None,
                offered: counted.offered,
                dropped: counted.dropped,
                lost: counted.lost,
                marked: counted.marked,
                queue_delay_mean_s: queue.mean_delay_s(),
                queue_delay_p50_s: queue.delay_quantile_s(0.5),
                queue_delay_p95_s: queue.delay_quantile_s(0.95),
                queue_delay_p99_s: queue.delay_quantile_s(0.99),
                queue_mean_packets: queue.mean_packets(span),
                queue_max_packets: queue.most_packets(),
                dropped_full: counted.dropped_full,
                dropped_early: counted.dropped_early,
                dropped_policed: counted.dropped_policed,
                dropped_down: counted.dropped_down,
                classes: classes.collect(),
            },
            allowed_bits: end.allowed_bits - start.allowed_bits,
            bytes: end.transmitted.saturating_sub(start.transmitted),
            is_bottleneck,
        }
    }
}

impl State {
    fn of<P: Packet>(link: &mut View<'_, P>, now: Time) -> Self {
        Self {
            classes: link.classes(now),
            transmitted: link.transmitted(now),
            allowed_bits: link.allowed_bits(now).unwrap_or(0.0),
            counters: link.counters(),
        }
    }
}

fn class_summary(
    before: &ClassCounters,
    after: &ClassCounters,
    seconds: f64,
    guaranteed_bit_s: Option<f64>,
) -> ClassSummary {
    let served = after.served - before.served;
    let delay = after.delay_sum_s - before.delay_sum_s;
    let throughput_bit_s = (after.bytes_served - before.bytes_served) as f64 * 8.0 / seconds;
    ClassSummary {
        name: after.name.clone(),
        offered: after.offered - before.offered,
        dropped: after.dropped - before.dropped - after.dropped_earlier,
        throughput_bit_s,
        guaranteed_bit_s,
        qos_efficiency: guaranteed_bit_s
            .map(|guaranteed| formula::qos_efficiency(throughput_bit_s, guaranteed))
            .filter(|factor| factor.is_finite()),
        queue_delay_mean_s: (served > 0).then(|| delay / served as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receive_rate_is_between_two_samples() {
        let arrived = vec![vec![], vec![], vec![1000, 500], vec![4000, 500]];
        let recorded = Recorded { arrived, ..Recorded::default() };
        let rate = |number, time_s| recorded.receive_rate_bit_s(number, time_s, Time::from_millis(125));
        let rates: Vec<f64> = [0.0, 0.125, 0.25, 0.375].map(|time_s| rate(0, time_s)).to_vec();
        assert_eq!(rates, [0.0, 0.0, 64_000.0, 192_000.0]);
        assert_eq!((rate(1, 0.25), rate(1, 0.375), rate(2, 0.375)), (32_000.0, 0.0, 0.0));
        // A run that ended before its time has no sample there.
        assert!(rate(0, 0.5).is_nan());
    }
}
