//! The two hosts: one that writes what the flows of a plan send, and one that reads it, from memory to memory.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use elephan_scenario::plan::{Flow, Plan};
use elephan_traffic::Demand;
use elephan_units::Time;
use rustix::net::sockopt;

use crate::clock::{Clock, Urgency, cpu_s, make_urgent};
use crate::packet::FIRST_PORT;
use crate::socket::{self, Poll};
use crate::tcp_info::{TcpInfo, tcp_info};

/// The address of the host that sends data.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The address of the host that listens.
pub const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// What is written at once.
const CHUNK: usize = 64 * 1024;
/// What is read at once.
const READ: usize = 1 << 20;
/// What is written and not yet sent, at most. A writer that filled the whole of a large buffer at once would hold its processor for
/// many milliseconds, and keep the emulator from it; this is a few milliseconds of data at 1 Gbit/s.
const UNSENT: libc::c_int = 512 * 1024;
/// A reader of endless flows lets so much time pass between looks. Woken for each packet, it would take the processor from the emulator
/// as often, for longer than the packet takes.
const BETWEEN_READS: std::time::Duration = std::time::Duration::from_millis(1);
/// No wait is longer, so that starts and stops are noticed.
const LONGEST_WAIT: Time = Time::from_millis(20);

/// What the hosts tell of a flow while it runs.
#[derive(Default)]
pub struct Shared {
    /// Application bytes that the listener has read in order.
    pub delivered: AtomicU64,
    /// The present connection, and what all before it counted.
    pub connection: Mutex<Connection>,
}

/// The present connection of a flow, for those who sample it.
#[derive(Default)]
pub struct Connection {
    /// Its socket; none between connections.
    pub socket: Option<OwnedFd>,
    /// What the connections before it counted.
    pub before: Totals,
}

/// Counters of connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names of struct tcp_info")]
pub struct Totals {
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub total_retrans: u64,
    pub total_rto: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
}

impl Totals {
    /// With what the present connection has counted.
    #[must_use]
    pub fn and(self, info: &TcpInfo) -> Self {
        Self {
            bytes_sent: self.bytes_sent + info.bytes_sent,
            bytes_retrans: self.bytes_retrans + info.bytes_retrans,
            total_retrans: self.total_retrans + u64::from(info.total_retrans),
            total_rto: self.total_rto + u64::from(info.total_rto),
            busy_us: self.busy_us + info.busy_time,
            rwnd_limited_us: self.rwnd_limited_us + info.rwnd_limited,
            sndbuf_limited_us: self.sndbuf_limited_us + info.sndbuf_limited,
        }
    }
}

/// A transfer that ended, or a start.
#[derive(Clone, Copy, Debug)]
pub enum Occurrence {
    /// A flow opened a connection.
    Opened {
        /// The flow.
        flow: u32,
        /// When.
        at: Time,
    },
    /// A transfer ended, or was cut short.
    Transfer {
        /// The flow.
        flow: u32,
        /// Its number within the flow.
        index: u64,
        /// Its payload.
        bytes: u64,
        /// When its connection was opened.
        start: Time,
        /// When its end was acknowledged by the listener's own; none where the run ended first.
        end: Option<Time>,
    },
}

/// What both hosts know.
#[derive(Clone, Copy)]
pub struct Common<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Of each flow, the name that its congestion control has in the kernel.
    pub algorithms: &'a [String],
    /// Of each flow, what it tells.
    pub shared: &'a [Shared],
    /// The time.
    pub clock: Clock,
    /// Whether the run is over.
    pub stop: &'a AtomicBool,
}

/// Room for everything that a path of this flow can hold, several times over, as the kernel counts its own overhead too.
fn buffer(plan: &Plan, flow: &Flow) -> usize {
    let routes = [flow.forward, flow.reverse];
    let links = routes.iter().flat_map(|&route| &plan.routes[route as usize]);
    let bytes = links.map(|&link| {
        let config = &plan.links[link as usize].config;
        let queued = match config.limit {
            elephan_net::Limit::Packets(packets) => packets.saturating_mul(flow.tcp.packet.get()),
            elephan_net::Limit::Bytes(bytes) => bytes,
        };
        config.rate.map_or(0, |rate| queued.saturating_add(rate.bytes_in(flow.rtt).get()))
    });
    let held = bytes.fold(1 << 20, u64::saturating_add);
    held.saturating_mul(4).min(1 << 30) as usize
}

/// A flow at the host that sends.
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

/// The host that sends: opens, writes and closes as the plan says, until it is told to stop. Returns its CPU time, s.
pub fn send(common: Common<'_>, tell: &Mutex<Vec<Occurrence>>) -> io::Result<f64> {
    make_urgent(Urgency::Socket);
    let Common { plan, shared, clock, stop, .. } = common;
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
        let pause = next.since(clock.now()).picos().div_ceil(1_000_000_000);
        poll.wait(pause as u32, &mut ready)?;
        for &key in &ready {
            let number = key as usize;
            let sending = &mut flows[number];
            if sending.has_finished_writing {
                // The listener hangs up when it has read everything.
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
    // The kernel doubles it, to make room for its own overhead.
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

/// Writes what there is room for, and says when that was all.
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

/// The host that listens: reads everything, and hangs up when the other side has. Returns its CPU time, s.
pub fn listen(common: Common<'_>, is_ready: &AtomicBool) -> io::Result<f64> {
    make_urgent(Urgency::Socket);
    let Common { plan, shared, stop, .. } = common;
    let poll = Poll::new()?;
    let mut listeners = Vec::new();
    for (number, flow) in plan.flows.iter().enumerate() {
        let made = socket::tcp()?;
        if let Some(bytes) = flow.tcp.receive_buffer {
            // What the listener says that it has room for, whatever the kernel needs for it.
            let clamp = bytes.get().min(1 << 30) as libc::c_int;
            socket::set(&made, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)?;
        }
        if !flow.tcp.auto_tuning {
            sockopt::set_socket_recv_buffer_size_force(&made, buffer(plan, flow))?;
        }
        // Connections take it over.
        socket::set_dscp(&made, flow.dscp)?;
        socket::listen(&made, LISTENER, FIRST_PORT + number as u16)?;
        poll.watch(&made, true, false, number as u64)?;
        listeners.push(made);
    }
    is_ready.store(true, Ordering::Release);
    // Where nobody waits for the end of a transfer, and what waits to be read does not close the window.
    let may_wait = plan.flows.iter().all(|flow| {
        flow.demand == Demand::Unlimited && flow.tcp.receive_buffer.is_none() && !flow.tcp.auto_tuning
    });
    // Connections have the keys after the listeners'.
    let mut connections: BTreeMap<u64, (usize, OwnedFd)> = BTreeMap::new();
    let mut next_key = listeners.len() as u64;
    let mut ready = Vec::new();
    // Addresses only: nothing is written there, so it takes no memory.
    let mut room = vec![0; READ];
    while !stop.load(Ordering::Relaxed) {
        poll.wait(20, &mut ready)?;
        for &key in &ready {
            if let Some(listener) = listeners.get(key as usize) {
                while let Some(made) = socket::accept(listener)? {
                    poll.watch(&made, true, false, next_key)?;
                    connections.insert(next_key, (key as usize, made));
                    next_key += 1;
                }
                continue;
            }
            let Some((flow, connection)) = connections.get(&key) else { continue };
            let over = loop {
                match socket::discard(connection.as_fd(), &mut room) {
                    Ok(None) => break false,
                    Ok(Some(0)) | Err(_) => break true,
                    Ok(Some(bytes)) => {
                        shared[*flow].delivered.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                }
            };
            if over {
                connections.remove(&key);
            }
        }
        if may_wait {
            std::thread::sleep(BETWEEN_READS);
        }
    }
    Ok(cpu_s())
}
