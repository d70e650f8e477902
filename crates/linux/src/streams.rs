//! Streams of datagrams: sent at scheduled times on one host, counted and timed on the other.
//!
//! A datagram carries its number and its send time, on the clock of the machine that both hosts share; the
//! kernel provides its time of arrival. So the only error in the one-way delay is the emulator's lateness,
//! and the delay also measures that.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use elephan_metrics::trace::{StreamRow, StreamTrace};
use elephan_metrics::{Reception, StreamSummary};
use elephan_network::FIRST_PORT;
use elephan_scenario::Plan;
use elephan_sys::socket::set;
use elephan_sys::{Urgency, make_urgent, wall_ns};
use elephan_traffic::Source;
use elephan_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::clock::{Clock, Waits};
use crate::hosts::LISTENER;
use crate::socket;

/// Packets delayed by a pause that the machine imposed are sent at once if it is no longer than this. A
/// longer pause is excluded from the streams' time, because no scenario asked for the burst.
const LONGEST_PAUSE: Time = Time::from_micros(500);
/// Maximum length of a sleep, so that a stop is noticed.
const LONGEST_SLEEP: Time = Time::from_millis(20);
/// Maximum length of a wait of the receiver, so that a stop is noticed.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Interval between reads of arrived datagrams.
const BETWEEN_READS: Time = Time::from_millis(1);
/// Number and time at the beginning of a payload.
const STAMP: usize = 16;
/// A socket buffers arriving datagrams while its reader waits for a processor.
const RECEIVE_BUFFER: usize = 1 << 26;

/// The state of a stream while it runs.
pub struct Progress {
    /// When it started; `None` before the start.
    pub started: Option<Time>,
    /// Packets sent.
    pub sent: u64,
    /// Statistics of the datagrams that arrived.
    pub reception: Reception,
}

impl Progress {
    /// The state of a stream that has not begun.
    pub fn new() -> Mutex<Self> {
        Mutex::new(Self { started: None, sent: 0, reception: Reception::new() })
    }
}

/// The number of stream `number` in the results, after the flows and the crowds.
fn numbered(plan: &Plan, number: usize) -> usize {
    plan.flows.len() + plan.crowds.len() + number
}

/// The port of stream `number`.
fn port(plan: &Plan, number: usize) -> u16 {
    FIRST_PORT + numbered(plan, number) as u16
}

/// Sends the streams of a plan until it must stop; returns the time that was excluded from the streams' time.
pub fn send(plan: &Plan, clock: Clock, streams: &[Mutex<Progress>], stop: &AtomicBool) -> io::Result<Time> {
    make_urgent(Urgency::Socket);
    let mut sources = Vec::new();
    for (number, stream) in plan.streams.iter().enumerate() {
        let socket = socket::udp()?;
        socket::set_dscp(&socket, stream.dscp)?;
        socket::connect(&socket, LISTENER, port(plan, number))?;
        let start = stream.start.draw_for("start of stream", plan.seed, number as u64);
        let source = Source::new(&stream.datagrams, plan.seed, number as u64, start);
        let payload = vec![0u8; (stream.datagrams.payload_bytes() as usize).max(STAMP)];
        sources.push((socket, source, stream.stop.unwrap_or(Time::MAX), payload));
    }
    let mut waits = Waits::new(clock);
    let mut slipped = Time::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let next = sources
            .iter()
            .enumerate()
            .map(|(number, (_, source, stop, _))| {
                (if source.next() < *stop { source.next() } else { Time::MAX }, number)
            })
            .min();
        let (due, number) = next.unwrap_or((Time::MAX, 0));
        let at = due.saturating_add(slipped);
        let longest = clock.now() + LONGEST_SLEEP;
        if at > longest {
            clock.sleep(longest);
            continue;
        }
        waits.wait(at);
        let late = clock.now().since(at);
        if late > LONGEST_PAUSE {
            slipped += late;
        }
        let (socket, source, _, payload) = &mut sources[number];
        if !source.leaves() {
            continue;
        }
        let mut progress = streams[number].lock().expect("nobody panics with it");
        progress.started.get_or_insert(due);
        payload[..8].copy_from_slice(&progress.sent.to_ne_bytes());
        payload[8..STAMP].copy_from_slice(&wall_ns().to_ne_bytes());
        progress.sent += 1;
        drop(progress);
        // A datagram that the host cannot send is missing at the receiver.
        let _ = socket::send(socket.as_fd(), payload);
        source.sent();
    }
    Ok(slipped)
}

/// Opens the sockets at which the streams of a plan arrive.
pub fn listen(plan: &Plan) -> io::Result<Vec<OwnedFd>> {
    let mut sockets = Vec::new();
    for number in 0..plan.streams.len() {
        let socket = socket::udp()?;
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &[1])?;
        sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)?;
        socket::bind(&socket, LISTENER, port(plan, number))?;
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Reads arriving datagrams until it must stop. It is not urgent, and leaves the processor to more urgent
/// threads.
pub fn receive(sockets: &[OwnedFd], clock: Clock, streams: &[Mutex<Progress>], stop: &AtomicBool) {
    let mut waiting: Vec<_> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    while !stop.load(Ordering::Relaxed) {
        // The return value does not matter: every socket is checked afterwards.
        let _ = poll(&mut waiting, Some(&LONGEST_WAIT));
        for (socket, progress) in sockets.iter().zip(streams) {
            while let Some((number, sent_ns, arrived_ns)) = take(socket) {
                let delay = Time::from_picos(arrived_ns.saturating_sub(sent_ns) * 1000);
                let mut progress = progress.lock().expect("nobody panics with it");
                progress.reception.receive(number, delay);
            }
        }
        // The kernel has recorded the arrival times. If this thread woke for each datagram, it would delay
        // the emulator as often.
        clock.sleep(clock.now() + BETWEEN_READS);
    }
}

/// The number of a datagram, its send time and its time of arrival; `None` if none is waiting.
fn take(socket: &OwnedFd) -> Option<(u64, u64, u64)> {
    let mut stamp = [0; STAMP];
    let arrived = socket::receive_stamped(socket, &mut stamp)?;
    let word = |at: usize| u64::from_ne_bytes(stamp[at..at + 8].try_into().expect("eight bytes"));
    Some((word(0), word(8), arrived))
}

/// Samples of all streams, and their summaries.
pub struct Samples {
    /// Samples, with the simulator's columns.
    pub trace: StreamTrace,
    sampled: Vec<u64>,
    /// The counters of each stream in the measuring window.
    pub summaries: Vec<StreamSummary>,
}

impl Samples {
    /// For the streams of `plan`, before they begin.
    pub fn new(plan: &Plan) -> Self {
        let count = plan.streams.len();
        Self { trace: StreamTrace::default(), sampled: vec![0; count], summaries: Vec::new() }
    }

    /// The measuring window begins.
    pub fn open_window(streams: &[Mutex<Progress>]) {
        for progress in streams {
            let mut progress = progress.lock().expect("nobody panics with it");
            let sent = progress.sent;
            progress.reception.measure(sent);
        }
    }

    /// The measuring window ends.
    pub fn close_window(&mut self, plan: &Plan, streams: &[Mutex<Progress>]) {
        let span = plan.measure.to.since(plan.measure.from);
        for (stream, progress) in plan.streams.iter().zip(streams) {
            let progress = progress.lock().expect("nobody panics with it");
            let (payload, label) = (stream.datagrams.payload_bytes(), stream.label.clone());
            let (started, sent) = (progress.started, progress.sent);
            self.summaries.push(progress.reception.summary(label, started, sent, payload, span));
        }
    }

    /// Adds a row for each stream that has started.
    pub fn trace(&mut self, plan: &Plan, streams: &[Mutex<Progress>], time: Time, span: f64) {
        for (number, progress) in streams.iter().enumerate() {
            let progress = progress.lock().expect("nobody panics with it");
            if progress.started.is_none() {
                continue;
            }
            let received = progress.reception.received();
            let since = received.packets - std::mem::replace(&mut self.sampled[number], received.packets);
            let bits = since as f64 * plan.streams[number].datagrams.payload_bytes() as f64 * 8.0;
            self.trace.push(StreamRow {
                time_s: time.secs_f64(),
                flow: numbered(plan, number) as u32,
                sent: progress.sent,
                received: received.packets,
                missing: received.lost(),
                goodput_bit_s: if span > 0.0 { bits / span } else { 0.0 },
            });
        }
    }
}
