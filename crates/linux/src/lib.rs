//! The linux engine: runs a plan on a Linux kernel's own TCP, in namespaces connected by the links of
//! `elephan-network`.
//!
//! Two network namespaces are the hosts. Senders and readers are ordinary sockets, and results are read from
//! the kernel (`TCP_INFO`). The outcome has the simulator's form. [`run`] does this in real time on the running
//! kernel, with an emulator that carries the packets. [`run_over`] is given the network ([`Path`]) and its
//! [`Clock`], which may be virtual.
//!
//! Everything exists in this process only: namespaces, devices and sockets are file descriptors. When the
//! process ends, in whatever way, they are removed.

#![cfg(target_os = "linux")]
#![allow(clippy::cast_possible_wrap, reason = "the types of the kernel's interfaces")]

mod clock;
mod commands;
mod crowds;
mod emulator;
mod hold;
mod hosts;
mod listener;
mod observe;
mod path;
mod quality;
mod sender;
mod socket;
mod streams;
mod unsupported;

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use elephan_metrics::trace::{FlowTrace, KernelTrace, QueueTrace};
use elephan_metrics::{Control, Outcome, Reduction, SoFar};
use elephan_scenario::Plan;
use elephan_sys::device::{self, DEVICE, device_drops};
use elephan_sys::{Namespace, Urgency, make_urgent};
use elephan_units::Time;
use serde::{Deserialize, Serialize};

pub use clock::Clock;
pub use hold::hold;
pub use path::{Emulated, Host, Path, RealTime};
pub use quality::Quality;
pub use unsupported::unsupported;

use crate::clock::Processors;
use crate::emulator::Tunnels;
use crate::hosts::{Common, LISTENER, Occurrence, SENDER, Shared, groups, initial_windows, listener_address};
use crate::observe::{Sampled, Sampler};
use crate::path::{gso_max_segs, mtu};
use crate::streams::Progress;

/// Interval at which the caller is asked whether to continue the run.
const REPORT_INTERVAL: Time = Time::from_millis(50);

/// Delay of a sample after it is due. In virtual time the sample so shows the effects of everything that is due
/// at the same time, as in the simulator.
const SETTLING: Time = Time::from_micros(1);

/// The reason why a run did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The kernel refused an operation: which one, and why.
    #[error("linux engine: {0}: {1}")]
    Kernel(&'static str, io::Error),
}

/// The results of a run on the kernel: those of the simulator, and additional ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The results that the simulator also gives.
    pub outcome: Outcome,
    /// Values of connections that only a kernel reports, row by row with the samples of the flows.
    pub kernel: KernelTrace,
    /// How well the run kept to its schedule, and whether its figures are valid.
    pub quality: Quality,
}

/// Options of a run, apart from the plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kernel's name of the congestion control of each flow, and then of each crowd.
    pub algorithms: Vec<String>,
    /// Command lines to run while the plan is carried out, in the namespace of the sending host: words, the
    /// first of which is the program.
    pub sender_commands: Vec<Vec<String>>,
    /// The same, in the namespace of the listening host; these start first.
    pub listener_commands: Vec<Vec<String>>,
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::Kernel(what, error)
}

/// Carries out a plan in real time, between the namespaces of the running kernel.
pub fn run(plan: &Plan, options: &Options, control: &dyn Control) -> Result<Measured, Error> {
    // The emulator has one processor to itself; all others use the rest.
    let processors = Processors::own();
    let (for_emulator, for_others) = processors.split();
    for_others.keep();
    let result = run_over(Tunnels::new(plan, for_emulator), plan, options, control);
    processors.keep();
    result
}

/// Carries out a plan over `path`, by the clock of that path.
pub fn run_over(
    mut path: impl Path,
    plan: &Plan,
    options: &Options,
    control: &dyn Control,
) -> Result<Measured, Error> {
    let [sending, listening] = equip(&mut path, plan)?;
    socket::allow_many();
    let shared: Vec<Shared> = groups(plan).map(|_| Shared::default()).collect();
    let streams: Vec<Mutex<Progress>> = plan.streams.iter().map(|_| Progress::new()).collect();
    let arrivals = listening.within(|| streams::listen(plan)).map_err(refused("a socket for datagrams"))?;
    let listeners = listening
        .within(|| listener::open(plan, &options.algorithms))
        .map_err(refused("a listening socket"))?;
    let (stop, occurrences) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let clock = path.start().map_err(refused("the network"))?;
    let common = Common { plan, algorithms: &options.algorithms, shared: &shared, clock, stop: &stop };
    thread::scope(|scope| {
        let (sending, listening) = (&sending, &listening);
        let (occurrences, streams, stop, arrivals, listeners) =
            (&occurrences, &streams, &stop, &arrivals, &listeners);
        let listener = scope.spawn(move || listener::listen(common, listeners));
        let sender = scope.spawn(move || sending.enter().and_then(|()| sender::send(common, occurrences)));
        let streaming = (!plan.streams.is_empty()).then(|| {
            scope.spawn(move || streams::receive(arrivals, clock, streams, stop));
            scope.spawn(move || sending.enter().and_then(|()| streams::send(plan, clock, streams, stop)))
        });
        let lines: [(&Namespace, &[Vec<String>]); 2] =
            [(listening, &options.listener_commands), (sending, &options.sender_commands)];
        let commands = lines
            .iter()
            .any(|(_, lines)| !lines.is_empty())
            .then(|| scope.spawn(move || commands::run(&lines, stop)));
        let mut sampler = Sampler::new(common, streams);
        make_urgent(Urgency::Socket);
        let went_on = watch(plan, clock, control, &mut sampler, occurrences, || {
            listener.is_finished()
                || sender.is_finished()
                || path.has_stopped()
                || commands.as_ref().is_some_and(thread::ScopedJoinHandle::is_finished)
        });
        make_urgent(Urgency::Ordinary);
        let limited = sampler.limited();
        stop.store(true, Ordering::Relaxed);
        let receiver_cpu_s = join(listener).map_err(refused("the listening host"))?;
        let sender_cpu_s = join(sender).map_err(refused("the sending host"))?;
        let late = streaming.map_or(Ok(Time::ZERO), join).map_err(refused("the streams' sender"))?;
        let mut emulated = path.finish().map_err(refused("the emulator"))?;
        commands.map_or(Ok(()), join).map_err(refused("a command"))?;
        if !went_on {
            return Err(Error::Cancelled);
        }
        if let Some(real_time) = &mut emulated.real_time {
            real_time.streams_slipped_s = late.secs_f64();
            (real_time.receiver_cpu_s, real_time.sender_cpu_s) = (receiver_cpu_s, sender_cpu_s);
        }
        let drops = [sending, listening].map(|host| host.within(|| device_drops(DEVICE)).unwrap_or_default());
        let told = std::mem::take(&mut *occurrences.lock().expect("nobody panics with it"));
        let quality = quality::quality(plan, &emulated, drops, limited);
        Ok(measured(plan, emulated, sampler, told, quality))
    })
}

/// Makes the namespaces of the sending and of the listening host, each with its device.
fn equip(path: &mut impl Path, plan: &Plan) -> Result<[Namespace; 2], Error> {
    let [sending, listening] = [(); 2].map(|()| Namespace::new().map_err(refused("a network namespace")));
    let hosts = [sending?, listening?];
    for (namespace, host) in hosts.iter().zip([Host::Sender, Host::Listener]) {
        namespace.set(&stack(plan)).map_err(refused("settings of a namespace"))?;
        namespace.within(|| connect(path, host, plan)).map_err(refused("a network device"))?;
    }
    Ok(hosts)
}

/// Makes and configures the device of a host, in whose namespace the calling thread is.
fn connect(path: &mut impl Path, host: Host, plan: &Plan) -> io::Result<()> {
    path.device(host)?;
    let (mtu, gso_max_segs) = (mtu(plan), gso_max_segs(plan));
    let windows = initial_windows(plan);
    match host {
        Host::Sender => {
            device::configure(&[SENDER], LISTENER, mtu, gso_max_segs)?;
            let mut routes = windows.iter().enumerate();
            routes.try_for_each(|(index, &window)| device::route(SENDER, listener_address(index), window))
        }
        Host::Listener => {
            let own: Vec<_> = (0..windows.len().max(1)).map(listener_address).collect();
            device::configure(&own, SENDER, mtu, gso_max_segs)
        }
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

/// Takes samples until the plan is over; returns whether it ran to its end.
fn watch(
    plan: &Plan,
    clock: Clock,
    control: &dyn Control,
    sampler: &mut Sampler<'_>,
    occurrences: &Mutex<Vec<Occurrence>>,
    has_failed: impl Fn() -> bool,
) -> bool {
    let mut next_report = Time::ZERO;
    let mut wake = Time::ZERO;
    loop {
        clock.sleep(wake + SETTLING);
        let now = clock.now();
        if sampler.next() <= now {
            sampler.tick(occurrences);
        }
        // The last sample is due at the end.
        if now >= plan.duration {
            return true;
        }
        if next_report <= now {
            if has_failed() {
                return true;
            }
            let share = now.secs_f64() / plan.duration.secs_f64();
            // The emulator's own samples are added at the end.
            let queues = &QueueTrace::default();
            if control.is_cancelled()
                || !control.goes_on(&SoFar { now, share, flows: &sampler.flows, queues })
            {
                return false;
            }
            next_report = now.saturating_add(REPORT_INTERVAL);
        }
        wake = sampler.next().min(next_report).min(plan.duration);
    }
}

/// The settings of the scenario's stack that the kernel allows for each namespace.
fn stack(plan: &Plan) -> Vec<(&'static str, String)> {
    let Some(tcp) = groups(plan).next().map(|flow| &flow.tcp) else { return Vec::new() };
    let flag = |on: bool| u8::from(on).to_string();
    // The kernel's minimum is of the variance term; a scenario that has only the other minimum means this one, too.
    let variance_min = if tcp.rto_variance_min == Time::ZERO { tcp.rto_min } else { tcp.rto_variance_min };
    vec![
        ("ipv4/tcp_timestamps", flag(tcp.timestamps)),
        ("ipv4/tcp_dsack", flag(tcp.dsack)),
        ("ipv4/tcp_ecn", flag(tcp.ecn)),
        ("ipv4/tcp_rto_min_us", (variance_min.picos() / 1_000_000).to_string()),
        // A connection must not use metrics cached from an earlier one.
        ("ipv4/tcp_no_metrics_save", flag(true)),
        ("ipv4/tcp_rmem", format!("4096 131072 {}", 1 << 30)),
        ("ipv4/tcp_wmem", format!("4096 131072 {}", 1 << 30)),
        // A crowd opens many connections at once, and many more one after the other: none is refused, and
        // none has to wait for the port of an earlier one.
        ("core/somaxconn", socket::BACKLOG.to_string()),
        ("ipv4/tcp_max_syn_backlog", socket::BACKLOG.to_string()),
        ("ipv4/ip_local_port_range", "1024 65535".to_owned()),
        ("ipv4/tcp_max_tw_buckets", "0".to_owned()),
    ]
}

fn measured(
    plan: &Plan,
    emulated: Emulated,
    sampler: Sampler<'_>,
    told: Vec<Occurrence>,
    quality: Quality,
) -> Measured {
    let sampled = sampler.finish(told);
    let Sampled {
        mut collector,
        mut flows,
        kernel,
        variables,
        mut crowds,
        streams,
        transfers,
        segments_delivered,
    } = sampled;
    // A socket tells what it received in order; the links know what they handed to its host.
    let received =
        |flow: u32, time_s: f64| emulated.recorded.receive_rate_bit_s(flow, time_s, plan.trace.interval);
    flows.receive_rate_bit_s =
        flows.flow.iter().zip(&flows.time_s).map(|(&flow, &time_s)| received(flow, time_s)).collect();
    crowds.receive_rate_bit_s =
        crowds.flow.iter().zip(&crowds.time_s).map(|(&crowd, &time_s)| received(crowd, time_s)).collect();
    for link in emulated.recorded.links {
        collector.link(link);
    }
    if let Some(reductions) = emulated.reductions {
        collector.reductions(&reductions);
        recount(&mut flows, &reductions);
    }
    let outcome = Outcome {
        summary: collector.finish(plan.labels()),
        flows,
        variables,
        crowds,
        streams,
        queues: emulated.recorded.queues,
        transfers,
        segments_delivered,
        events_handled: quality.lateness.packets,
        ..Outcome::default()
    };
    Measured { outcome, kernel, quality }
}

/// Sets the number of reductions of each sample to that of these, which are in order of time.
fn recount(flows: &mut FlowTrace, every: &[Reduction]) {
    let mut counts = HashMap::new();
    let mut coming = every.iter().peekable();
    for row in 0..flows.time_s.len() {
        while let Some(one) =
            coming.next_if(|one| Time::from_picos(one.at_ps).secs_f64() <= flows.time_s[row])
        {
            *counts.entry(one.flow).or_default() += 1;
        }
        flows.congestion_events[row] = counts.get(&flows.flow[row]).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use elephan_metrics::trace::FlowRow;
    use elephan_sys::TcpInfo;

    use super::*;

    #[test]
    fn a_sample_has_the_reductions_until_its_time() {
        let mut flows = FlowTrace::default();
        for (ms, flow) in [(100, 0), (100, 1), (200, 0), (200, 1)] {
            // A sampler that looked at the states of the senders saw one of three.
            let row = TcpInfo::default().flow_row(Time::from_millis(ms), flow);
            flows.push(FlowRow { congestion_events: 1, ..row });
        }
        let reductions = [(50, 0), (60, 0), (150, 1), (200, 0), (201, 0)];
        recount(
            &mut flows,
            &reductions.map(|(ms, flow)| Reduction { at_ps: Time::from_millis(ms).picos(), flow }),
        );
        assert_eq!(flows.congestion_events, [2, 0, 3, 1]);
    }
}
