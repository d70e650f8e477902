//! What changes of a link in mid-run, and what is written down of it, in virtual or in real time.

use elephan_metrics::trace::{QueueRow, QueueTrace};
use elephan_metrics::{ClassSummary, LinkSample, LinkSummary, formula};
use elephan_net::{Class, ClassCounters, Link, LinkCounters, Packet, Queue};
use elephan_scenario::plan::{Change, Measure};
use elephan_units::Time;

/// Changes a link as the plan says.
pub fn apply<P: Packet>(change: &Change, link: &mut Link<P>, now: Time) {
    if let Some(rate) = change.rate {
        link.set_rate(rate, now);
    }
    if let Some(delay) = change.delay {
        link.set_delay(delay, now);
    }
    if let Some(loss) = change.loss {
        link.set_loss(Some(loss));
    }
    if !change.weights.is_empty() {
        link.set_weights(&change.weights, now);
    }
    if let Some(up) = change.up {
        link.set_up(up, now);
    }
}

/// What a link had done at some time.
#[derive(Clone, Debug, Default)]
struct State {
    counters: LinkCounters,
    classes: Vec<ClassCounters>,
    transmitted: u64,
    allowed_bits: f64,
}

/// Samples of a link, and what it does in the measuring window.
#[derive(Clone, Debug, Default)]
pub struct LinkRecord {
    /// Bytes that it had transmitted at its last sample, and bits that its rate had allowed.
    transmitted: u64,
    allowed_bits: f64,
    /// How it stood at the start of the measuring window.
    start: State,
}

impl LinkRecord {
    /// Writes down how link `number` stands `now`, as at `time`; nothing where it has no rate.
    pub fn sample<P: Packet>(
        &mut self,
        number: u32,
        link: &mut Link<P>,
        time: Time,
        now: Time,
        trace: &mut QueueTrace,
    ) {
        let Some(allowed_bits) = link.allowed_bits(now) else { return };
        let (waiting, counters) = (link.waiting(now), *link.counters());
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

    /// The measuring window begins after `now`; where that is the beginning of the run, it has that instant, too.
    pub fn open<P: Packet>(&mut self, link: &mut Link<P>, now: Time) {
        self.start = State::of(link, now);
        link.measure(if now == Time::ZERO { now } else { now.saturating_add(Time::from_picos(1)) });
    }

    /// The measuring window ends `now`.
    pub fn close<P: Packet>(
        &self,
        name: &str,
        link: &mut Link<P>,
        is_bottleneck: bool,
        measure: &Measure,
        now: Time,
    ) -> LinkSample {
        let span = measure.to.since(measure.from);
        let (start, end) = (&self.start, State::of(link, now));
        let (counted, queue) = (end.counters.since(&start.counters, link.earlier()), link.statistics());
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
    fn of<P: Packet>(link: &mut Link<P>, now: Time) -> Self {
        Self {
            classes: link.classes(now),
            transmitted: link.transmitted(now),
            allowed_bits: link.allowed_bits(now).unwrap_or(0.0),
            counters: *link.counters(),
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
