//! The linux engine: a plan on the running kernel's own TCP, across namespaces and a link emulator in real time.
//!
//! Two network namespaces are the hosts; the links between them are those of `elephan-net`, driven by the clock. Senders and
//! readers are ordinary sockets, and what came of it is asked of the kernel (`TCP_INFO`). The outcome has the simulator's form.
//!
//! Everything lives in this process: namespaces, devices and sockets are file descriptors and nothing else. When the process
//! ends, however it ends, they are gone.

#![cfg(target_os = "linux")]

mod clock;
mod device;
mod emulator;
mod hosts;
mod namespace;
mod observe;
mod packet;
mod socket;
mod streams;
mod tcp_info;
mod unsupported;

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use elephan_metrics::Outcome;
use elephan_metrics::trace::{KernelTrace, QueueTrace};
use elephan_scenario::Plan;
use elephan_sim::{Control, SoFar};
use elephan_units::Time;

pub use unsupported::unsupported;

use crate::clock::{Clock, Processors, Urgency, make_urgent, stolen_s};
use crate::device::{DEVICE, DeviceDrops, device_drops};
use crate::emulator::{Direction, Emulated, Emulator};
use crate::hosts::{Common, LISTENER, SENDER, Shared};
use crate::namespace::Namespace;
use crate::observe::{Sampled, Sampler};
use crate::streams::Progress;

/// A run is valid while 99 % of its packets were handed over no later than this, or than this share of the shortest
/// round-trip time, where that is more.
const LATENESS_LIMIT: Time = Time::from_millis(1);
const LATENESS_SHARE: u64 = 50;
/// A run is valid while no more than this share of it was taken out of the emulator's time.
const SLIP_SHARE: f64 = 0.01;
/// A run is valid while no more than this share of the senders' busy time was spent on buffers that no scenario asked for.
const LIMITED_SHARE: f64 = 0.05;
/// How often a caller is asked whether the run goes on.
const REPORT_INTERVAL: Time = Time::from_millis(50);

/// Why a run did not end.
#[derive(Debug)]
pub enum Error {
    /// It was cancelled.
    Cancelled,
    /// The kernel refused something: what, and why.
    Kernel(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the run was cancelled"),
            Self::Kernel(what, error) => write!(f, "linux engine: {what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// What a run on the kernel leaves behind, beside what the simulator leaves.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What the simulator leaves too.
    pub outcome: Outcome,
    /// What only a kernel tells of its connections, row by row with the samples of the flows.
    pub kernel: KernelTrace,
    /// How well the run kept to its schedule, and whether its figures count.
    pub quality: Quality,
}

/// How far a run in real time can be trusted.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// Why its figures do not count; nothing where they do.
    pub invalid_because: Vec<String>,
    /// Packets that the emulator handed over.
    pub packets: u64,
    /// How late they were: on average,
    pub lateness_mean_s: f64,
    /// in the middle,
    pub lateness_p50_s: f64,
    /// for 99 % of them at most,
    pub lateness_p99_s: f64,
    /// and at worst, s.
    pub lateness_max_s: f64,
    /// Pauses of the emulator that the machine imposed and that were taken out of its time: how many,
    pub slips: u64,
    /// how long together,
    pub slipped_s: f64,
    /// and the longest, s.
    pub longest_slip_s: f64,
    /// The same of the sender of datagrams, s: taken out of its time.
    pub streams_slipped_s: f64,
    /// Processor time that the host of a virtual machine gave to others meanwhile, of all processors together, s.
    pub stolen_s: f64,
    /// Packets that devices between hosts and emulator lost.
    pub device_drops: u64,
    /// CPU time of the sending application with its system calls, s,
    pub sender_cpu_s: f64,
    /// of the reading application,
    pub receiver_cpu_s: f64,
    /// and of the emulator, on whose calls the kernel's TCP processes what arrives, and which waits by looking at the clock.
    pub emulator_cpu_s: f64,
    /// Time in which the emulator moved packets, s.
    pub emulator_busy_s: f64,
    /// Share of the senders' busy time in which the receiver's window was the limit,
    pub rwnd_limited: f64,
    /// and in which the sender's buffer was.
    pub sndbuf_limited: f64,
}

/// How a run is carried out, apart from the plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Of each flow, the name that its congestion control has in the kernel.
    pub algorithms: Vec<String>,
    /// Lets TCP hand over up to 64 kB at once, which the kernel cuts into packets before the emulator sees them: bursts, for less
    /// CPU time.
    pub large_segments: bool,
    /// Command lines to run while the plan is carried out, in the namespace of the host that sends: words, the first the program.
    pub sender_commands: Vec<Vec<String>>,
    /// The same, in the namespace of the host that listens; started first.
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
    let there = Direction { from: sender_device.as_fd(), to: listener_device.as_fd(), from_listener: false };
    let back = Direction { from: listener_device.as_fd(), to: sender_device.as_fd(), from_listener: true };
    let shared: Vec<Shared> = plan.flows.iter().map(|_| Shared::default()).collect();
    let streams: Vec<Mutex<Progress>> = plan.streams.iter().map(|_| Progress::new(plan)).collect();
    let arrivals = listening.within(|| streams::listen(plan)).map_err(refused("a socket for datagrams"))?;
    let (stop, is_ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let occurrences = Mutex::new(Vec::new());
    let common =
        |clock| Common { plan, algorithms: &options.algorithms, shared: &shared, clock, stop: &stop };
    // The emulator has a processor to itself; all others keep to the rest.
    let processors = Processors::own();
    let (for_emulator, for_others) = processors.split();
    for_others.keep();
    let result = thread::scope(|scope| {
        let listening = &listening;
        let early = common(Clock::start());
        let listener = scope.spawn({
            let is_ready = &is_ready;
            move || listening.enter().and_then(|()| hosts::listen(early, is_ready))
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
            move || sending.enter().and_then(|()| hosts::send(common, occurrences))
        });
        let streaming = (!plan.streams.is_empty()).then(|| {
            let (streams, stop, arrivals, sending) = (&streams, &stop, &arrivals, &sending);
            scope.spawn(move || streams::receive(arrivals, clock, streams, stop));
            scope.spawn(move || sending.enter().and_then(|()| streams::send(plan, clock, streams, stop)))
        });
        let mut commands = Vec::new();
        for (host, lines) in [(listening, &options.listener_commands), (&sending, &options.sender_commands)] {
            for line in lines {
                commands.push(host.within(|| start(line)));
            }
        }
        let mut sampler = Sampler::new(common(clock), &streams);
        make_urgent(Urgency::Socket);
        let went_on = watch(plan, clock, control, &mut sampler, &occurrences, || {
            listener.is_finished() || sender.is_finished() || emulator.is_finished()
        });
        make_urgent(Urgency::Ordinary);
        let limited = sampler.limited();
        stop.store(true, Ordering::Relaxed);
        for child in commands.iter_mut().flatten() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        let receiver_cpu_s = join(listener).map_err(refused("the listening host"))?;
        let sender_cpu_s = join(sender).map_err(refused("the sending host"))?;
        let late = streaming.map_or(Ok(Time::ZERO), join).map_err(refused("the streams' sender"))?;
        let emulated = join(emulator).map_err(refused("the emulator"))?;
        commands.into_iter().collect::<io::Result<Vec<_>>>().map_err(refused("a command"))?;
        if !went_on {
            return Err(Error::Cancelled);
        }
        let drops =
            [&sending, listening].map(|host| host.within(|| device_drops(DEVICE)).unwrap_or_default());
        let told = std::mem::take(&mut *occurrences.lock().expect("nobody panics with it"));
        let mut quality = quality(plan, &emulated, drops, limited, late, stolen_s() - stolen_before_s);
        (quality.receiver_cpu_s, quality.sender_cpu_s) = (receiver_cpu_s, sender_cpu_s);
        Ok(measured(plan, emulated, sampler, told, quality))
    });
    processors.keep();
    result
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

fn start(line: &[String]) -> io::Result<std::process::Child> {
    let program = line.first().map_or("", String::as_str);
    Command::new(program).args(&line[1..]).stdin(Stdio::null()).spawn()
}

/// Samples until the plan is over; returns whether it went on to its end.
fn watch(
    plan: &Plan,
    clock: Clock,
    control: &dyn Control,
    sampler: &mut Sampler<'_>,
    occurrences: &Mutex<Vec<hosts::Occurrence>>,
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
            // The emulator's own samples come at the end.
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

/// What of the scenario's stack the kernel lets a namespace choose.
fn stack(plan: &Plan) -> Vec<(&'static str, String)> {
    let Some(tcp) = plan.flows.first().map(|flow| flow.tcp) else { return Vec::new() };
    let flag = |on: bool| u8::from(on).to_string();
    vec![
        ("tcp_timestamps", flag(tcp.timestamps)),
        ("tcp_dsack", flag(tcp.dsack)),
        ("tcp_ecn", flag(tcp.ecn)),
        ("tcp_rto_min_us", (tcp.rto_min.picos() / 1_000_000).to_string()),
        // A connection is not to learn from one before it.
        ("tcp_no_metrics_save", flag(true)),
        ("tcp_rmem", format!("4096 131072 {}", 1 << 30)),
        ("tcp_wmem", format!("4096 131072 {}", 1 << 30)),
    ]
}

fn quality(
    plan: &Plan,
    emulated: &Emulated,
    drops: [DeviceDrops; 2],
    limited: (f64, f64),
    streams_slipped: Time,
    stolen_s: f64,
) -> Quality {
    let punctuality = &emulated.punctuality;
    let lateness = &punctuality.lateness;
    let seconds = |micros: u64| micros as f64 * 1e-6;
    let mut quality = Quality {
        packets: lateness.len(),
        lateness_mean_s: lateness.mean() * 1e-6,
        lateness_p50_s: seconds(lateness.value_at_quantile(0.5)),
        lateness_p99_s: seconds(lateness.value_at_quantile(0.99)),
        lateness_max_s: seconds(lateness.max()),
        device_drops: punctuality.refused
            + drops.iter().map(|drops| drops.transmit + drops.receive).sum::<u64>(),
        slips: punctuality.slips,
        slipped_s: punctuality.slipped.secs_f64(),
        longest_slip_s: punctuality.longest_slip.secs_f64(),
        streams_slipped_s: streams_slipped.secs_f64(),
        stolen_s,
        emulator_cpu_s: punctuality.cpu_s,
        emulator_busy_s: punctuality.busy.secs_f64(),
        rwnd_limited: limited.0,
        sndbuf_limited: limited.1,
        ..Quality::default()
    };
    let shortest = plan.flows.iter().map(|flow| flow.rtt).min().unwrap_or(Time::ZERO);
    let limit = (shortest / LATENESS_SHARE).max(LATENESS_LIMIT).secs_f64();
    let mut because = Vec::new();
    if quality.lateness_p99_s > limit {
        because.push(format!(
            "the emulator fell behind: 1 % of the packets were more than {:.2} ms late, expected at most {:.2} ms",
            quality.lateness_p99_s * 1e3,
            limit * 1e3
        ));
    }
    let allowed = SLIP_SHARE * plan.duration.secs_f64();
    for (who, waited_s) in
        [("emulator", quality.slipped_s), ("sender of datagrams", quality.streams_slipped_s)]
    {
        if waited_s > allowed {
            because.push(format!(
                "the machine kept the {who} waiting for {:.0} ms in all, expected at most {:.0} ms; its host took {:.0} ms \
                 of processor time meanwhile",
                waited_s * 1e3,
                allowed * 1e3,
                stolen_s * 1e3
            ));
        }
    }
    if quality.device_drops > 0 {
        because.push(format!(
            "devices lost {} packets that no link dropped, expected none",
            quality.device_drops
        ));
    }
    let tcp = |chosen: fn(&elephan_tcp::Config) -> bool| plan.flows.iter().any(|flow| chosen(&flow.tcp));
    if limited.0 > LIMITED_SHARE && !tcp(|tcp| tcp.receive_buffer.is_some() || tcp.auto_tuning) {
        because.push(format!(
            "the receiver's buffer was the limit for {:.0} % of the time, expected at most {:.0} %",
            limited.0 * 100.0,
            LIMITED_SHARE * 100.0
        ));
    }
    if limited.1 > LIMITED_SHARE && !tcp(|tcp| tcp.send_buffer.is_some()) {
        because.push(format!(
            "the sender's buffer was the limit for {:.0} % of the time, expected at most {:.0} %",
            limited.1 * 100.0,
            LIMITED_SHARE * 100.0
        ));
    }
    quality.invalid_because = because;
    quality
}

fn measured(
    plan: &Plan,
    emulated: Emulated,
    sampler: Sampler<'_>,
    told: Vec<hosts::Occurrence>,
    quality: Quality,
) -> Measured {
    let Sampled { mut collector, flows, kernel, streams, transfers } = sampler.finish(told);
    for link in emulated.links {
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
        queues: emulated.queues,
        transfers,
        segments_delivered,
        events_handled: quality.packets,
        ..Outcome::default()
    };
    Measured { outcome, kernel, quality }
}
