//! Long transfers, round trip by round trip: the rules of `elephan-cc` over one queue that they share.
//!
//! A packet simulation of a transfer of hours over a long fat path takes hours too, and a stretch of it that
//! is shorter than a congestion epoch says little about the rest. Here the rule itself runs in steps of a
//! quarter of the path's round-trip time, as in [`crate::independent`], for as long as the transfer takes.
//!
//! - The queue is what is in flight beyond the path's content, without delay (the static link model of Wang,
//!   Wei and Low 2005). A fair queue serves flows max-min fairly.
//! - What the windows grow beyond a full buffer is dropped: from a FIFO what arrives, so in proportion to
//!   the rates and not to the growth; from a fair queue, of the longest.
//! - A round trip after a drop or a loss of the path the sender responds, to all of them together, and for one
//!   more round trip it repairs, without growth.
//!
//! There are no bursts, timeouts or delayed acknowledgments. Valid for windows of tens of segments and more.

use elephan_cc::algorithm::{Ack, Cause, Congestion, State};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::slow_start::SlowStart;
use elephan_cc::{Controller, Quantisation};
use elephan_units::{Seed, Stream, Time};
use rand::RngExt;

use crate::Error;
use crate::independent::{MSS, STEPS_BETWEEN_LOOKS};

/// Steps in a round trip without queueing.
const STEPS: f64 = 4.0;
/// The window at the start (RFC 6928), in segments.
const INITIAL_WINDOW: f64 = 10.0;
/// So many samples are kept at most; then every second is dropped.
const SAMPLES: usize = 512;

/// The link that the flows share, and the path around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Packets per second.
    pub rate: f64,
    /// Round-trip time without queueing, s.
    pub rtt: f64,
    /// Packets that the queue holds.
    pub buffer: f64,
    /// Probability that the path loses a packet.
    pub loss: f64,
    /// Whether each flow has a queue of its own, and the longest is dropped from.
    pub is_fair: bool,
}

/// The state at a time: of the senders whose data is waited for, together, and of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time since the start, s.
    pub time: f64,
    /// Packets of the senders that were delivered.
    pub delivered: f64,
    /// Packets of the others that were delivered.
    pub others: f64,
    /// The senders' windows together, in segments.
    pub window: f64,
    /// The largest window of a sender, in segments.
    pub largest: f64,
    /// Round-trip time of the first sender, s.
    pub rtt: f64,
}

/// The outcome of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// When all was delivered, s; `None` if it took longer than was allowed.
    pub finish: Option<f64>,
    /// Packets that the senders lost, for each that was delivered.
    pub lost: f64,
    /// Evenly spaced states, from the start to the end.
    pub samples: Vec<Sample>,
}

/// A sender with an endless supply of data.
struct Flow {
    controller: Controller,
    /// Packets in its part of the queue, its packets per second, and its round-trip time in s.
    queue: f64,
    rate: f64,
    rtt: f64,
    delivered: f64,
    /// How much more hazard it survives: a packet that is lost with probability `p` is a hazard of `p`.
    luck: f64,
    /// When it detects a loss, until when it repairs, and when its next round trip begins, s.
    known: f64,
    repaired: f64,
    next_round: f64,
    round: u64,
}

impl Flow {
    fn new(rule: &AnyAlgorithm, slow_start: &SlowStart, rtt: f64, stream: &mut Stream) -> Self {
        let controller =
            Controller::new(rule.clone(), slow_start.clone(), Quantisation::None, INITIAL_WINDOW);
        let luck = luck(stream);
        let (queue, rate, delivered, repaired, next_round) = (0.0, 0.0, 0.0, 0.0, rtt);
        let known = f64::INFINITY;
        Self { controller, queue, rate, rtt, delivered, luck, known, repaired, next_round, round: 0 }
    }
}

/// The hazard that a packet survives: exponential, with mean one.
fn luck(stream: &mut Stream) -> f64 {
    -libm::log(1.0 - stream.random::<f64>())
}

/// Sends `packets` packets by the first `senders` of `flows`, beside the others, for at most `most` s. Fails if `is_cancelled`,
/// which is checked about every millisecond, returns true.
pub fn transfer(
    path: &Path,
    flows: &[(AnyAlgorithm, SlowStart)],
    senders: usize,
    packets: f64,
    most: f64,
    seed: u64,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Course, Error> {
    let mut stream = Seed::new(seed).stream("rounds", 0);
    let mut all: Vec<Flow> =
        flows.iter().map(|(rule, start)| Flow::new(rule, start, path.rtt, &mut stream)).collect();
    let (step, min_rtt) = (path.rtt / STEPS, Time::from_secs_f64(path.rtt));
    let (mut now, mut steps, mut excess, mut lost) = (0.0, 0u64, 0.0, 0.0);
    let (mut samples, mut spacing, mut before) = (Vec::new(), 1u64, 0.0);
    loop {
        let offered = share(path, &mut all);
        if steps % spacing == 0 {
            samples.push(sample(now, &all, senders));
            if samples.len() == SAMPLES {
                let mut number = 0;
                samples.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                spacing *= 2;
            }
        }
        let delivered: f64 = all[..senders].iter().map(|flow| flow.delivered).sum();
        if delivered >= packets || now >= most {
            let is_finished = delivered >= packets;
            let part = (packets - before) / (delivered - before).max(f64::MIN_POSITIVE);
            let finish = is_finished.then_some(now - step * (1.0 - part));
            samples.push(sample(now, &all, senders));
            return Ok(Course { finish, lost: lost / delivered.max(1.0), samples });
        }
        (before, steps) = (delivered, steps + 1);
        if steps % STEPS_BETWEEN_LOOKS == 0 && is_cancelled() {
            return Err(Error::Cancelled);
        }
        let dropped = (offered - path.buffer).max(0.0) - excess;
        excess += dropped;
        let parts = blame(path, &all, dropped.max(0.0));
        now += step;
        for (number, (flow, drops)) in all.iter_mut().zip(parts).enumerate() {
            let acknowledged = flow.rate * step;
            let losses = drops + acknowledged * path.loss;
            flow.delivered += acknowledged;
            if number < senders {
                lost += losses;
            }
            advance(flow, now, acknowledged, min_rtt);
            if flow.known.is_infinite() {
                flow.luck -= losses;
                if flow.luck < 0.0 {
                    flow.known = now + flow.rtt;
                }
            } else if now >= flow.known {
                let flight_size = flow.rate * flow.rtt;
                let (now_, cause) = (Time::from_secs_f64(now), Cause::Loss);
                let event = Congestion { now: now_, cause, flight_size, delivered: flow.delivered, min_rtt };
                flow.controller.on_congestion(&event);
                (flow.known, flow.repaired, flow.luck) = (f64::INFINITY, now + flow.rtt, luck(&mut stream));
            }
        }
    }
}

fn sample(time: f64, all: &[Flow], senders: usize) -> Sample {
    let (own, others) = all.split_at(senders);
    let windows = own.iter().map(|flow| flow.controller.cwnd());
    Sample {
        time,
        delivered: own.iter().map(|flow| flow.delivered).sum(),
        others: others.iter().map(|flow| flow.delivered).sum(),
        window: windows.clone().sum(),
        largest: windows.fold(0.0, f64::max),
        rtt: own[0].rtt,
    }
}

/// Gives every flow its rate, its queue and its round-trip time; returns how many packets would wait in an endless buffer.
fn share(path: &Path, all: &mut [Flow]) -> f64 {
    let total: f64 = all.iter().map(|flow| flow.controller.cwnd()).sum();
    let pipe = path.rate * path.rtt;
    if !path.is_fair {
        let queue = (total - pipe).clamp(0.0, path.buffer);
        let rtt = path.rtt + queue / path.rate;
        for flow in all {
            let part = flow.controller.cwnd() / total;
            flow.rate = part * (pipe + queue).min(total) / rtt;
            (flow.queue, flow.rtt) = (part * queue, rtt);
        }
        return total - pipe;
    }
    // Max-min: those that ask for less than an equal part of what is left get it; the rest share.
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[a].controller.cwnd().total_cmp(&all[b].controller.cwnd()));
    let mut left = path.rate;
    let waiting: f64 = order
        .iter()
        .enumerate()
        .map(|(place, &number)| {
            let asked = all[number].controller.cwnd() / path.rtt;
            let rate = asked.min(left / (all.len() - place) as f64);
            left -= rate;
            all[number].rate = rate;
            all[number].queue = (asked - rate) * path.rtt;
            all[number].queue
        })
        .sum();
    let kept = (path.buffer / waiting.max(f64::MIN_POSITIVE)).min(1.0);
    for flow in all {
        flow.queue *= kept;
        flow.rtt = path.rtt + flow.queue / flow.rate;
    }
    waiting
}

/// Whose packets the queue drops.
fn blame(path: &Path, all: &[Flow], dropped: f64) -> Vec<f64> {
    if path.is_fair {
        let longest = (0..all.len()).max_by(|&a, &b| all[a].queue.total_cmp(&all[b].queue));
        return (0..all.len()).map(|number| if Some(number) == longest { dropped } else { 0.0 }).collect();
    }
    let rate: f64 = all.iter().map(|flow| flow.rate).sum();
    all.iter().map(|flow| dropped * flow.rate / rate).collect()
}

/// Tells the rule of a step's acknowledgments.
fn advance(flow: &mut Flow, now: f64, acknowledged: f64, min_rtt: Time) {
    if now >= flow.next_round {
        flow.round += 1;
        flow.next_round = now + flow.rtt;
    }
    let (window, rtt) = (flow.controller.cwnd(), Time::from_secs_f64(flow.rtt));
    let is_open = now >= flow.repaired;
    flow.controller.on_ack(&Ack {
        now: Time::from_secs_f64(now),
        segments: if is_open { acknowledged } else { 0.0 },
        delivered: flow.delivered,
        una: (flow.delivered * f64::from(MSS)) as u64,
        next: ((flow.delivered + window) * f64::from(MSS)) as u64,
        rtt: Some(rtt),
        min_rtt,
        srtt: rtt,
        round: flow.round,
        state: if is_open { State::Open } else { State::Recovery },
        mss: MSS,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::independent::rule;
    use crate::{Algorithm, independent, utilisation};

    /// 1 Gbit/s in packets of 1500 bytes, 100 ms.
    const PATH: Path = Path { rate: 83_333.0, rtt: 0.1, buffer: 0.2 * 8_333.0, loss: 0.0, is_fair: false };

    fn run(path: &Path, names: &[&str], senders: usize, seconds: f64) -> Course {
        let flows: Vec<_> = names.iter().map(|name| (rule(name, &[]), SlowStart::Standard)).collect();
        transfer(path, &flows, senders, path.rate * seconds, 1e9, 1, &|| false).unwrap()
    }

    /// The share of the link that the senders used.
    fn used(seconds: f64, course: &Course) -> f64 {
        seconds / course.finish.unwrap()
    }

    #[test]
    fn one_flow_uses_what_the_sawtooth_says() {
        for gamma in [0.05, 0.2, 0.6, 1.2] {
            let path = Path { buffer: gamma * PATH.rate * PATH.rtt, ..PATH };
            // Half of 8333 windows of one more segment each are an epoch of 417 s.
            let found = used(30_000.0, &run(&path, &["reno"], 1, 30_000.0));
            let expected = utilisation::of(0.5, gamma);
            assert!((found / expected - 1.0).abs() < 0.01, "{gamma}: {found} for {expected}");
        }
    }

    #[test]
    fn losses_of_the_path_give_the_window_of_independent_losses() {
        for name in ["reno", "htcp", "scalable", "cubic"] {
            let p = 2e-5;
            let expected = independent::steady(&rule(name, &[]), p, 0.1, 0.1, &|| false).unwrap().window;
            let path = Path { loss: p, rate: 1e6, buffer: 1e5, ..PATH };
            let packets = expected * 200_000.0;
            let flows = [(rule(name, &[]), SlowStart::Standard)];
            let course = transfer(&path, &flows, 1, packets, 1e9, 1, &|| false).unwrap();
            let found = packets / course.finish.unwrap() * 0.1;
            assert!((found / expected - 1.0).abs() < 0.05, "{name}: {found} for {expected}");
        }
    }

    #[test]
    fn losses_recur_after_an_epoch() {
        for name in ["reno", "hstcp", "htcp", "bic", "cubic"] {
            let model = Algorithm::new(name, &[]).unwrap();
            let full = (1.2 * 8_333.0, 0.12);
            let epoch = model.recovery(full.0, full.1) * full.1;
            let course = run(&PATH, &[name], 1, 40.0 * epoch);
            // One or two packets for each epoch: those of its last round trip.
            let each = course.lost * 40.0 * PATH.rate * epoch;
            assert!(course.finish.is_some() && each > 20.0, "{name}: {each}");
            let windows: Vec<f64> = course.samples.iter().skip(20).map(|it| it.window).collect();
            let (low, high) = windows.iter().fold((f64::MAX, 0.0f64), |(l, h), &w| (l.min(w), h.max(w)));
            assert!((high / full.0 - 1.0).abs() < 0.05, "{name}: {high}");
            assert!((low / (full.0 * model.beta(full.0)) - 1.0).abs() < 0.1, "{name}: {low}");
        }
    }

    #[test]
    fn a_fair_queue_gives_each_flow_its_part_and_a_fifo_does_not() {
        let part = |path: &Path| {
            let course = run(path, &["scalable", "reno"], 1, 3_000.0);
            let end = course.samples.last().unwrap();
            end.others / (end.others + end.delivered)
        };
        let fair = part(&Path { is_fair: true, ..PATH });
        let fifo = part(&PATH);
        // Standard TCP does not fill its half of the time after a loss.
        assert!((0.3..0.55).contains(&fair), "{fair}");
        assert!(fifo < 0.15, "{fifo}");
    }

    #[test]
    fn streams_do_not_lose_all_together() {
        let one = used(20_000.0, &run(&PATH, &["reno"], 1, 20_000.0));
        let eight = used(20_000.0, &run(&PATH, &["reno"; 8], 8, 20_000.0));
        assert!(eight > one + 0.02 && eight < 1.0, "{one} {eight}");
    }

    #[test]
    fn a_transfer_ends_in_the_step_in_which_all_is_delivered_or_not_at_all() {
        let short = run(&Path { buffer: 1e6, ..PATH }, &["reno"], 1, 10.0);
        let end = short.samples.last().unwrap();
        let finish = short.finish.unwrap();
        assert!(finish <= end.time && finish > end.time - 0.026, "{finish} {end:?}");
        let flows = [(rule("reno", &[]), SlowStart::Standard)];
        let late = transfer(&PATH, &flows, 1, 1e9, 5.0, 1, &|| false).unwrap();
        assert_eq!(late.finish, None);
        assert!(transfer(&PATH, &flows, 1, 1e15, 1e15, 1, &|| true).is_err());
    }
}
