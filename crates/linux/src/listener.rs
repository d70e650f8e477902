//! The listening host: reads and discards the data of a plan's flows and crowds.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use elephan_network::FIRST_PORT;
use elephan_scenario::Plan;
use elephan_sys::socket::{set, set_congestion_control};
use elephan_sys::{Urgency, cpu_s, make_urgent};
use elephan_traffic::Demand;
use elephan_units::Time;
use rustix::net::sockopt;

use crate::hosts::{Common, address, groups, initial_windows};
use crate::path::mtu;
use crate::socket::{self, Poll};

/// Number of bytes read at once.
const READ: usize = 1 << 20;
/// Interval between reads of endless flows. If the reader woke for each packet, it would take the processor
/// from the emulator as often, for longer than the packet takes.
const BETWEEN_READS: Time = Time::from_millis(1);
/// A reader that waits asks to be woken for this many bytes, of which the kernel grants half of the receive
/// buffer. Otherwise TCP acknowledges fewer segments while data wait to be read: in 1 ms at 1 Gbit/s, one in
/// ten (`__tcp_ack_snd_check` in net/ipv4/tcp_input.c).
const LOW_WATER: libc::c_int = 1 << 30;
/// Maximum length of a wait, so that a stop is noticed.
const LONGEST_WAIT: Time = Time::from_millis(20);

/// Opens the sockets at which the connections of a plan arrive, one for each flow, and then for each crowd. They have the congestion
/// control of their senders, because DCTCP has rules for receivers, too.
pub fn open(plan: &Plan, algorithms: &[String]) -> io::Result<Vec<OwnedFd>> {
    let mut listeners = Vec::new();
    let windows = initial_windows(plan);
    for (number, flow) in groups(plan).enumerate() {
        let made = socket::tcp()?;
        set_congestion_control(&made, &algorithms[number])?;
        if let Some(bytes) = flow.tcp.receive_buffer {
            // The window that the listener advertises, whatever memory the kernel needs for it.
            let clamp = bytes.get().min(1 << 30) as libc::c_int;
            set(&made, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &[clamp])?;
        }
        if !flow.tcp.auto_tuning {
            sockopt::set_socket_recv_buffer_size_force(&made, plan.buffer(flow) as usize)?;
        }
        if may_wait(plan) {
            set(&made, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &[LOW_WATER])?;
        }
        // Connections inherit these.
        socket::set_dscp(&made, flow.dscp)?;
        socket::set_packet(&made, flow.tcp.packet.get(), mtu(plan))?;
        socket::listen(&made, address(&windows, flow), FIRST_PORT + number as u16)?;
        listeners.push(made);
    }
    Ok(listeners)
}

/// The listening host: reads everything, and closes when the other side has closed. Returns its CPU time, s.
pub fn listen(common: Common<'_>, listeners: &[OwnedFd]) -> io::Result<f64> {
    let Common { plan, shared, stop, .. } = common;
    make_urgent(Urgency::Socket);
    let poll = Poll::new()?;
    for (number, listener) in listeners.iter().enumerate() {
        poll.watch(listener, true, false, number as u64)?;
    }
    let may_wait = may_wait(plan);
    // Connections use the keys after those of the listeners.
    let mut connections: BTreeMap<u64, (usize, OwnedFd)> = BTreeMap::new();
    let mut next_key = listeners.len() as u64;
    let mut ready = Vec::new();
    // Address space only: nothing is written there, so it takes no memory.
    let mut room = vec![0; READ];
    while !stop.load(Ordering::Relaxed) {
        poll.wait(if may_wait { BETWEEN_READS } else { LONGEST_WAIT }, &mut ready)?;
        if may_wait {
            // None of them is ready before its end.
            ready.extend(connections.keys());
        }
        for &key in &ready {
            if let Some(listener) = listeners.get(key as usize) {
                while let Some(made) = socket::accept(listener)? {
                    poll.watch(&made, true, false, next_key)?;
                    connections.insert(next_key, (key as usize, made));
                    next_key += 1;
                }
                continue;
            }
            let Some((group, connection)) = connections.get(&key) else { continue };
            let over = loop {
                match socket::discard(connection.as_fd(), &mut room) {
                    Ok(None) => break false,
                    Ok(Some(0)) | Err(_) => break true,
                    Ok(Some(bytes)) => {
                        shared[*group].delivered.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                }
            };
            if over {
                connections.remove(&key);
            }
        }
    }
    Ok(cpu_s())
}

/// Reads may be delayed if the end of no transfer is awaited, and unread data does not close the window.
fn may_wait(plan: &Plan) -> bool {
    groups(plan).all(|flow| {
        flow.demand == Demand::Unlimited && flow.tcp.receive_buffer.is_none() && !flow.tcp.auto_tuning
    })
}
