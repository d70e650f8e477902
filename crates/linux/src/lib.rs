//! The linux engine: runs a plan on the running kernel's own TCP, in namespaces connected by a link emulator
//! in real time.
//!
//! Two network namespaces are the hosts; the links between them are those of `elephan-net`, driven by the
//! real-time clock. Senders and readers are ordinary sockets, and results are read from the kernel
//! (`TCP_INFO`). The outcome has the simulator's form.
//!
//! Everything exists in this process only: namespaces, devices and sockets are file descriptors. When the
//! process ends, in whatever way, they are removed.

#![cfg(target_os = "linux")]
#![allow(clippy::cast_possible_wrap, reason = "the types of the kernel's interfaces")]

mod clock;
mod commands;
mod device;
mod emulator;
mod hosts;
mod listener;
mod namespace;
mod observe;
mod quality;
mod sender;
mod socket;
mod streams;
mod tcp_info;
mod unsupported;

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use elephan_metrics::trace::{KernelTrace, QueueTrace};
use elephan_metrics::{Control, Outcome, SoFar};
use elephan_scenario::Plan;
use elephan_units::Time;

pub use quality::Quality;
pub use unsupported::unsupported;

use crate::clock::{Clock, Processors, Urgency, make_urgent, stolen_s};
use crate::device::{DEVICE, device_drops};
use crate::emulator::{Direction, Emulated, Emulator};
use crate::hosts::{Common, LISTENER, Occurrence, SENDER, Shared};
use crate::namespace::Namespace;
use crate::observe::{Sampled, Sampler};
use crate::streams::Progress;

/// Interval at which the caller is asked whether to continue the run.
const REPORT_INTERVAL: Time = Time::from_millis(50);

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
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
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
    /// The kernel's name of each flow's congestion control.
    pub algorithms: Vec<String>,
    /// Lets TCP pass up to 64 kB at once to the device; the kernel cuts this into packets before the emulator
    /// sees them. This makes bursts, and saves CPU time.
    pub large_segments: bool,
    /// Command lines to run while the plan is carried out, in the namespace of the sending host: words, the
    /// first of which is the program.
    pub sender_commands: Vec<Vec<String>>,
    /// The same, in the namespace of the listening host; these start first.
    pub listener_commands: Vec<Vec<String>>,
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::Kernel(what, error)
}

/// Carries out a plan in real time.
pub fn run(plan: &Plan, options: &Options, control: &dyn Control) -> Result<Measured, Error> {
    let sizes = plan.flows.iter().map(|flow| flow.tcp.packet.get() as u32);
    let mtu = sizes.chain(plan.streams.iter().map(|stream| stream.datagrams.packet)).max().unwrap_or(1500);
    let [sending, listening] = [(); 2].map(|()| Namespace::new().map_err(refused("a network namespace")));
    let (sending, listening) = (sending?, listening?);
    for host in [&sending, &listening] {
        host.set_ipv4(&stack(plan)).map_err(refused("settings of a namespace"))?;
    }
    let segments = !options.large_segments;
    let sender_device = sending.within(|| device::tun(SENDER, LISTENER, mtu, segments));
    let listener_device = listening.within(|| device::tun(LISTENER, SENDER, mtu, segments));
    let sender_device = sender_device.map_err(refused("a TUN device"))?;
    let listener_device = listener_device.map_err(refused("a TUN device"))?;
    let there = Direction { from: sender_device.as_fd(), to: listener_device.as_fd() };
    let back = Direction { from: listener_device.as_fd(), to: sender_device.as_fd() };
    let shared: Vec<Shared> = plan.flows.iter().map(|_| Shared::default()).collect();
    let streams: Vec<Mutex<Progress>> = plan.streams.iter().map(|_| Progress::new()).collect();
    let arrivals = listening.within(|| streams::listen(plan)).map_err(refused("a socket for datagrams"))?;
    let (stop, is_ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let occurrences = Mutex::new(Vec::new());
    let common =
        |clock| Common { plan, algorithms: &options.algorithms, shared: &shared, clock, stop: &stop };
    // The emulator has one processor to itself; all others use the rest.
    let processors = Processors::own();
    let (for_emulator, for_others) = processors.split();
    for_others.keep();
    let result = thread::scope(|scope| {
        let listening = &listening;
        let early = common(Clock::start());
        let listener = scope.spawn({
            let is_ready = &is_ready;
            move || listening.enter().and_then(|()| listener::listen(early, is_ready))
        });
        while !is_ready.load(Ordering::Acquire) && !listener.is_finished() {
            thread::yield_now();
        }
        let stolen_before_s = stolen_s();
        let clock = Clock::start();
        let emulator = scope.spawn({
            let emulator = Emulator::new(plan, [there, back], clock, mtu);
            let stop = &stop;
            move || {
                for_emulator.keep();
                emulator.run(stop)
            }
        });
        let sender = scope.spawn({
            let (sending, occurrences, common) = (&sending, &occurrences, common(clock));
            move || sending.enter().and_then(|()| sender::send(common, occurrences))
        });
        let streaming = (!plan.streams.is_empty()).then(|| {
            let (streams, stop, arrivals, sending) = (&streams, &stop, &arrivals, &sending);
            scope.spawn(move || streams::receive(arrivals, streams, stop));
            scope.spawn(move || sending.enter().and_then(|()| streams::send(plan, clock, streams, stop)))
        });
        let lines: [(&Namespace, &[Vec<String>]); 2] =
            [(listening, &options.listener_commands), (&sending, &options.sender_commands)];
        let commands = lines.iter().any(|(_, lines)| !lines.is_empty()).then(|| {
            let stop = &stop;
            scope.spawn(move || commands::run(&lines, stop))
        });
        let mut sampler = Sampler::new(common(clock), &streams);
        make_urgent(Urgency::Socket);
        let went_on = watch(plan, clock, control, &mut sampler, &occurrences, || {
            listener.is_finished()
                || sender.is_finished()
                || emulator.is_finished()
                || commands.as_ref().is_some_and(thread::ScopedJoinHandle::is_finished)
        });
        make_urgent(Urgency::Ordinary);
        let limited = sampler.limited();
        stop.store(true, Ordering::Relaxed);
        let receiver_cpu_s = join(listener).map_err(refused("the listening host"))?;
        let sender_cpu_s = join(sender).map_err(refused("the sending host"))?;
        let late = streaming.map_or(Ok(Time::ZERO), join).map_err(refused("the streams' sender"))?;
        let emulated = join(emulator).map_err(refused("the emulator"))?;
        commands.map_or(Ok(()), join).map_err(refused("a command"))?;
        if !went_on {
            return Err(Error::Cancelled);
        }
        let drops =
            [&sending, listening].map(|host| host.within(|| device_drops(DEVICE)).unwrap_or_default());
        let told = std::mem::take(&mut *occurrences.lock().expect("nobody panics with it"));
        let mut quality =
            quality::quality(plan, &emulated, drops, limited, late, stolen_s() - stolen_before_s);
        (quality.receiver_cpu_s, quality.sender_cpu_s) = (receiver_cpu_s, sender_cpu_s);
        Ok(measured(plan, emulated, sampler, told, quality))
    });
    processors.keep();
    result
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
    loop {
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
        let wake = sampler.next().min(next_report).min(plan.duration);
        thread::sleep(std::time::Duration::from_nanos(wake.since(clock.now()).picos() / 1000));
    }
}

/// The settings of the scenario's stack that the kernel allows for each namespace.
fn stack(plan: &Plan) -> Vec<(&'static str, String)> {
    let Some(tcp) = plan.flows.first().map(|flow| flow.tcp) else { return Vec::new() };
    let flag = |on: bool| u8::from(on).to_string();
    vec![
        ("tcp_timestamps", flag(tcp.timestamps)),
        ("tcp_dsack", flag(tcp.dsack)),
        ("tcp_ecn", flag(tcp.ecn)),
        ("tcp_rto_min_us", (tcp.rto_min.picos() / 1_000_000).to_string()),
        // A connection must not use metrics cached from an earlier one.
        ("tcp_no_metrics_save", flag(true)),
        ("tcp_rmem", format!("4096 131072 {}", 1 << 30)),
        ("tcp_wmem", format!("4096 131072 {}", 1 << 30)),
    ]
}

fn measured(
    plan: &Plan,
    emulated: Emulated,
    sampler: Sampler<'_>,
    told: Vec<Occurrence>,
    quality: Quality,
) -> Measured {
    let Sampled { mut collector, flows, kernel, streams, transfers } = sampler.finish(told);
    for link in emulated.recorded.links {
        collector.link(link);
    }
    let segments_delivered = plan
        .flows
        .iter()
        .enumerate()
        .map(|(number, flow)| {
            let last = flows.flow.iter().rposition(|&of| of as usize == number);
            last.map_or(0, |row| flows.delivered_bytes[row].div_ceil(u64::from(flow.tcp.mss())))
        })
        .sum();
    let outcome = Outcome {
        summary: collector.finish(),
        flows,
        streams,
        queues: emulated.recorded.queues,
        transfers,
        segments_delivered,
        events_handled: quality.packets,
        ..Outcome::default()
    };
    Measured { outcome, kernel, quality }
}
