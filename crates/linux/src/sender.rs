//! The sending host: writes the data of a plan's flows from memory.

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use elephan_network::FIRST_PORT;
use elephan_traffic::Demand;
use elephan_units::Time;
use rustix::net::sockopt;

use crate::clock::{Urgency, cpu_s};
use crate::hosts::{Common, LISTENER, Occurrence, Shared, buffer};
use crate::socket::{self, Poll};
use crate::tcp_info::tcp_info;

/// Number of bytes written at once.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes written and not yet sent. A writer that filled a whole large buffer at once would
/// occupy its processor for many milliseconds, and keep the emulator from it; this is a few milliseconds of
/// data at 1 Gbit/s.
const UNSENT: libc::c_int = 512 * 1024;
/// Maximum length of a wait, so that starts and stops are noticed.
const LONGEST_WAIT: Time = Time::from_millis(20);

/// A flow at the sending host.
struct Sending {
    /// When its next connection is to be opened; `Time::MAX` for none, or while one is open.
    opens: Time,
    /// When it stops writing.
    stops: Time,
    opened_at: Time,
    /// Connections opened so far.
    opened: u64,
    /// Payload not yet written; `u64::MAX` for no end.
    left: u64,
    is_open: bool,
    has_finished_writing: bool,
}

/// The sending host: opens, writes and closes as the plan says, until it must stop. Returns its CPU time, s.
pub fn send(common: Common<'_>, tell: &Mutex<Vec<Occurrence>>) -> io::Result<f64> {
    let Common { plan, shared, clock, stop, .. } = common;
    clock.follow(Urgency::Socket);
    let poll = Poll::new()?;
    let data = vec![0u8; CHUNK];
    let mut flows: Vec<Sending> = plan
        .flows
        .iter()
        .enumerate()
        .map(|(number, flow)| Sending {
            opens: flow.start.draw(plan.seed, number as u64),
            stops: flow.stop.unwrap_or(Time::MAX),
            opened_at: Time::ZERO,
            opened: 0,
            left: 0,
            is_open: false,
            has_finished_writing: false,
        })
        .collect();
    let say = |occurrence| tell.lock().expect("nobody panics with it").push(occurrence);
    let mut ready = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let mut next = now.saturating_add(LONGEST_WAIT);
        for (number, sending) in flows.iter_mut().enumerate() {
            if sending.opens <= now {
                open(common, number, sending, &poll)?;
                say(Occurrence::Opened { flow: number as u32, at: sending.opened_at });
            }
            if sending.stops <= now && sending.is_open && plan.flows[number].demand == Demand::Unlimited {
                sending.left = 0;
                sending.stops = Time::MAX;
                write(&shared[number], sending, &data, &poll, number)?;
            }
            next = next.min(sending.opens);
        }
        poll.wait(next.since(clock.now()), &mut ready)?;
        for &key in &ready {
            let number = key as usize;
            let sending = &mut flows[number];
            if sending.has_finished_writing {
                // The listener closes when it has read everything.
                if is_over(&shared[number])? {
                    let ended = clock.now();
                    let (flow, index) = (number as u32, sending.opened - 1);
                    close(&shared[number], sending);
                    if let Demand::Transfers { size, count } = plan.flows[number].demand {
                        let (bytes, start) = (size.get(), sending.opened_at);
                        say(Occurrence::Transfer { flow, index, bytes, start, end: Some(ended) });
                        let stopped = plan.flows[number].stop.is_some_and(|stop| stop <= ended);
                        if !stopped && count.is_none_or(|count| sending.opened < count) {
                            sending.opens = ended;
                        }
                    }
                }
            } else {
                write(&shared[number], sending, &data, &poll, number)?;
            }
        }
    }
    for (number, sending) in flows.iter_mut().enumerate() {
        if sending.is_open
            && let Demand::Transfers { size, .. } = plan.flows[number].demand
        {
            let (flow, index) = (number as u32, sending.opened - 1);
            say(Occurrence::Transfer { flow, index, bytes: size.get(), start: sending.opened_at, end: None });
        }
        if sending.is_open {
            close(&shared[number], sending);
        }
    }
    Ok(cpu_s())
}

fn open(common: Common<'_>, number: usize, sending: &mut Sending, poll: &Poll) -> io::Result<()> {
    let flow = &common.plan.flows[number];
    let made = socket::tcp()?;
    socket::set_congestion_control(&made, &common.algorithms[number])?;
    // The kernel doubles the value, for its own overhead.
    let room = flow.tcp.send_buffer.map(|bytes| bytes.get().min(1 << 30) as usize);
    sockopt::set_socket_send_buffer_size_force(&made, room.unwrap_or_else(|| buffer(common.plan, flow)))?;
    socket::set(&made, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT)?;
    socket::set_dscp(&made, flow.dscp)?;
    socket::connect(&made, LISTENER, FIRST_PORT + number as u16)?;
    poll.watch(&made, false, true, number as u64)?;
    sending.opens = Time::MAX;
    sending.opened_at = common.clock.now();
    sending.opened += 1;
    sending.is_open = true;
    sending.has_finished_writing = false;
    sending.left = flow.demand.size().unwrap_or(u64::MAX);
    common.shared[number].connection.lock().expect("nobody panics with it").socket = Some(made);
    Ok(())
}

/// Writes as much as there is room for; returns whether that was everything.
fn write(shared: &Shared, sending: &mut Sending, data: &[u8], poll: &Poll, number: usize) -> io::Result<()> {
    let connection = shared.connection.lock().expect("nobody panics with it");
    let Some(socket) = &connection.socket else { return Ok(()) };
    while sending.left > 0 {
        let chunk = sending.left.min(data.len() as u64) as usize;
        match socket::send(socket.as_fd(), &data[..chunk])? {
            None => return Ok(()),
            Some(written) if sending.left < u64::MAX => sending.left -= written as u64,
            Some(_) => {}
        }
    }
    sending.has_finished_writing = true;
    socket::finish(socket.as_fd());
    poll.change(socket, true, false, number as u64)
}

fn is_over(shared: &Shared) -> io::Result<bool> {
    let connection = shared.connection.lock().expect("nobody panics with it");
    let Some(socket) = &connection.socket else { return Ok(false) };
    Ok(socket::discard(socket.as_fd(), &mut [0])? == Some(0))
}

fn close(shared: &Shared, sending: &mut Sending) {
    let mut connection = shared.connection.lock().expect("nobody panics with it");
    if let Some(socket) = connection.socket.take()
        && let Ok(info) = tcp_info(socket.as_fd())
    {
        connection.before = connection.before.and(&info);
    }
    sending.is_open = false;
}
