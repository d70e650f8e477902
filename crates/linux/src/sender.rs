//! The sending host: opens the connections of a plan's flows and crowds, and writes their data from memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use elephan_network::{Events, FIRST_PORT};
use elephan_scenario::plan::Flow;
use elephan_sys::socket::{set, set_congestion_control};
use elephan_sys::{Urgency, cpu_s, make_urgent, tcp_info};
use elephan_traffic::{Crowd, Demand};
use elephan_units::Time;
use rustix::net::sockopt;

use crate::hosts::{Common, Occurrence, address, initial_windows};
use crate::path::mtu;
use crate::socket::{self, Poll};

/// Number of bytes written at once.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes written and not yet sent, where `tcp.unsent` says none. A writer that filled a whole large
/// buffer at once would occupy its processor for many milliseconds, and keep the emulator from it; this is a few
/// milliseconds of data at 1 Gbit/s.
const UNSENT: u64 = 512 << 10;
/// The largest buffer that a socket can have, bytes; what a socket holds without one of the scenario's is bounded by its window
/// and by what it may have unsent.
const LARGEST_BUFFER: u64 = 1 << 30;
/// Maximum length of a wait, so that a stop is noticed.
const LONGEST_WAIT: Time = Time::from_millis(20);

/// The sending host: opens, writes and closes as the plan says, until it must stop. Returns its CPU time, s.
pub fn send(common: Common<'_>, tell: &Mutex<Vec<Occurrence>>) -> io::Result<f64> {
    make_urgent(Urgency::Socket);
    let mut host = Sender::new(common, tell)?;
    let mut ready = Vec::new();
    while !common.stop.load(Ordering::Relaxed) {
        let now = common.clock.now();
        let next = loop {
            let (due, source) = host.events.next();
            if due > now {
                break due.min(now.saturating_add(LONGEST_WAIT));
            }
            host.fire(source, now)?;
        };
        host.poll.wait(next.since(common.clock.now()), &mut ready)?;
        for &slot in &ready {
            host.proceed(slot as usize)?;
        }
    }
    host.end();
    Ok(cpu_s())
}

/// The owner of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A flow.
    Flow,
    /// A user of a crowd.
    User(u32),
    /// A crowd whose flows arrive at random.
    Arrival,
}

/// A slot for one connection at a time.
struct Slot {
    owner: Owner,
    /// Number of the flow, or of the crowd after the flows.
    group: usize,
    /// Its place among the sockets of this group.
    place: usize,
    /// The number and size of the current transfer; `None` for data without end.
    transfer: u64,
    size: Option<u64>,
    opened_at: Time,
    /// Payload not yet written; `u64::MAX` for no end.
    left: u64,
    is_open: bool,
    has_finished_writing: bool,
}

/// The sending host.
struct Sender<'a> {
    common: Common<'a>,
    tell: &'a Mutex<Vec<Occurrence>>,
    poll: Poll,
    /// What is due next: of each flow its start, and later its stop; then the next arrival of each crowd; then
    /// the next request of each user.
    events: Events,
    /// The slots of the flows, by number; then those of all users; then those that arriving flows need.
    slots: Vec<Slot>,
    crowds: Vec<Crowd>,
    /// Slots that are not in use, of the arriving flows of each crowd.
    idle: Vec<Vec<usize>>,
    data: Vec<u8>,
    windows: Vec<u32>,
    mtu: u32,
}

impl<'a> Sender<'a> {
    fn new(common: Common<'a>, tell: &'a Mutex<Vec<Occurrence>>) -> io::Result<Self> {
        let plan = common.plan;
        let mut host = Self {
            common,
            tell,
            poll: Poll::new()?,
            events: Events::new(plan.flows.len() + plan.crowds.len()),
            slots: Vec::new(),
            crowds: Vec::new(),
            idle: vec![Vec::new(); plan.crowds.len()],
            data: vec![0; CHUNK],
            windows: initial_windows(plan),
            mtu: mtu(plan),
        };
        for (number, flow) in plan.flows.iter().enumerate() {
            host.add_slot(Owner::Flow, number, 0);
            host.events.schedule(number, flow.start.draw(plan.seed, number as u64));
        }
        let mut users = 0;
        for (number, crowd) in plan.crowds.iter().enumerate() {
            let when = (&crowd.flow.start, crowd.flow.stop);
            let made = Crowd::new(&crowd.members, when, plan.seed, number as u64, users);
            let group = plan.flows.len() + number;
            host.events.schedule(group, made.next());
            for (user, start) in made.starts().enumerate() {
                host.add_slot(Owner::User(user as u32), group, user);
                let source = host.events.add();
                host.events.schedule(source, start);
            }
            users += made.starts().len() as u64;
            host.crowds.push(made);
        }
        Ok(host)
    }

    fn add_slot(&mut self, owner: Owner, group: usize, place: usize) -> usize {
        self.slots.push(Slot {
            owner,
            group,
            place,
            transfer: 0,
            size: None,
            opened_at: Time::ZERO,
            left: 0,
            is_open: false,
            has_finished_writing: false,
        });
        self.slots.len() - 1
    }

    /// The settings of a flow, or of a crowd after the flows.
    fn flow_of(&self, group: usize) -> &'a Flow {
        let plan = self.common.plan;
        plan.flows.get(group).unwrap_or_else(|| &plan.crowds[group - plan.flows.len()].flow)
    }

    fn say(&self, occurrence: Occurrence) {
        self.tell.lock().expect("nobody panics with it").push(occurrence);
    }

    /// The number of the crowd of a slot.
    fn crowd_of(&self, slot: usize) -> usize {
        self.slots[slot].group - self.common.plan.flows.len()
    }

    /// The time of an event has come.
    fn fire(&mut self, source: usize, now: Time) -> io::Result<()> {
        self.events.schedule(source, Time::MAX);
        let plan = self.common.plan;
        let Some(slot) = source.checked_sub(plan.crowds.len()).filter(|&slot| slot >= plan.flows.len())
        else {
            return match plan.flows.get(source) {
                Some(flow) => self.start_or_stop(source, flow),
                None => self.arrival(source - plan.flows.len()),
            };
        };
        let Owner::User(user) = self.slots[slot].owner else { return Ok(()) };
        let crowd = self.crowd_of(slot);
        match self.crowds[crowd].ask(user, now) {
            Some(size) => self.open(slot, Some(size)),
            None => Ok(()),
        }
    }

    fn start_or_stop(&mut self, number: usize, flow: &Flow) -> io::Result<()> {
        if self.common.shared[number].connections().opened == 0 {
            if flow.demand == Demand::Unlimited {
                self.events.schedule(number, flow.stop.unwrap_or(Time::MAX));
            }
            self.open(number, flow.demand.size())
        } else {
            self.slots[number].left = 0;
            self.proceed(number)
        }
    }

    /// A flow arrives at random.
    fn arrival(&mut self, crowd: usize) -> io::Result<()> {
        let size = self.crowds[crowd].arrive();
        let group = self.common.plan.flows.len() + crowd;
        self.events.schedule(group, self.crowds[crowd].next());
        let slot = self.idle[crowd].pop().unwrap_or_else(|| {
            let place = self.common.shared[group].connections().sockets.len();
            self.add_slot(Owner::Arrival, group, place)
        });
        self.open(slot, Some(size))
    }

    /// Opens a slot's next connection, for a transfer of `size`, or for one without end.
    fn open(&mut self, slot: usize, size: Option<u64>) -> io::Result<()> {
        let Slot { owner, group, place, .. } = self.slots[slot];
        let flow = self.flow_of(group);
        let made = socket::tcp()?;
        set_congestion_control(&made, &self.common.algorithms[group])?;
        // The kernel doubles the value, for its own overhead.
        let room = flow.tcp.send_buffer.map_or(LARGEST_BUFFER, |bytes| bytes.get().min(LARGEST_BUFFER));
        sockopt::set_socket_send_buffer_size_force(&made, room as usize)?;
        let unsent = flow.tcp.unsent.map_or(UNSENT, |bytes| bytes.get().min(1 << 30));
        set(&made, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &[unsent as libc::c_int])?;
        socket::set_dscp(&made, flow.dscp)?;
        socket::set_packet(&made, flow.tcp.packet.get(), self.mtu)?;
        if flow.tcp.pacing {
            socket::pace(&made)?;
        }
        socket::connect(&made, address(&self.windows, flow), FIRST_PORT + group as u16)?;
        self.poll.watch(&made, false, true, slot as u64)?;
        let mut connections = self.common.shared[group].connections();
        if connections.sockets.len() <= place {
            connections.sockets.resize_with(place + 1, || None);
        }
        connections.sockets[place] = Some(made);
        let transfer = connections.opened;
        connections.opened += 1;
        drop(connections);
        let opened_at = self.common.clock.now();
        let left = size.unwrap_or(u64::MAX);
        let (is_open, has_finished_writing) = (true, false);
        self.slots[slot] =
            Slot { owner, group, place, transfer, size, opened_at, left, is_open, has_finished_writing };
        if owner == Owner::Flow {
            self.say(Occurrence::Opened { flow: group as u32, at: opened_at });
        }
        Ok(())
    }

    /// Writes as much of a slot's data as there is room for; when everything is written, waits until the
    /// listener has read it.
    fn proceed(&mut self, slot: usize) -> io::Result<()> {
        let Slot { group, place, is_open, .. } = self.slots[slot];
        if !is_open {
            return Ok(());
        }
        let moved = {
            let connections = self.common.shared[group].connections();
            let Some(socket) = &connections.sockets[place] else { return Ok(()) };
            let sending = &mut self.slots[slot];
            match write(socket.as_fd(), sending, &self.data) {
                Ok(true) => {
                    self.poll.change(socket, true, false, slot as u64)?;
                    Ok(None)
                }
                // The listener closes when it has read everything.
                Ok(false) if sending.has_finished_writing => socket::discard(socket.as_fd(), &mut [0]),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            }
        };
        match moved {
            Ok(Some(0)) => self.finish(slot),
            Ok(_) => Ok(()),
            // The kernel has given the connection up, or the other side has reset it.
            Err(_) => self.fail(slot),
        }
    }

    /// The listener has read all data of a slot, and has closed.
    fn finish(&mut self, slot: usize) -> io::Result<()> {
        let now = self.common.clock.now();
        let Slot { owner, group, .. } = self.slots[slot];
        self.report(slot, Some(now));
        self.common.shared[group].connections().finished += 1;
        if let Owner::User(user) = owner {
            let crowd = self.crowd_of(slot);
            if let Some(page) = self.crowds[crowd].receive(user) {
                self.say(Occurrence::Page { crowd: crowd as u32, page, end: now });
            }
        }
        self.follow(slot, now)
    }

    /// A slot's connection has failed. A flow makes no other one.
    fn fail(&mut self, slot: usize) -> io::Result<()> {
        let Slot { owner, group, .. } = self.slots[slot];
        self.common.shared[group].connections().failed += 1;
        if owner != Owner::Flow {
            return self.follow(slot, self.common.clock.now());
        }
        self.report(slot, None);
        self.close(slot);
        Ok(())
    }

    /// Closes a slot's connection, and starts what follows it.
    fn follow(&mut self, slot: usize, now: Time) -> io::Result<()> {
        self.close(slot);
        let Slot { owner, group, transfer, size, .. } = self.slots[slot];
        match owner {
            Owner::Flow => {
                let flow = &self.common.plan.flows[group];
                if let Demand::Transfers { count, .. } = flow.demand
                    && count.is_none_or(|count| transfer + 1 < count)
                    && flow.stop.is_none_or(|stop| now < stop)
                {
                    return self.open(slot, size);
                }
            }
            Owner::User(user) => {
                let crowd = self.crowd_of(slot);
                let next = self.crowds[crowd].turn(user, now);
                self.events.schedule(slot + self.crowds.len(), next);
            }
            Owner::Arrival => {
                let crowd = self.crowd_of(slot);
                self.idle[crowd].push(slot);
            }
        }
        Ok(())
    }

    fn close(&mut self, slot: usize) {
        let Slot { group, place, .. } = self.slots[slot];
        let mut connections = self.common.shared[group].connections();
        if let Some(socket) = connections.sockets[place].take()
            && let Ok(info) = tcp_info(socket.as_fd())
        {
            connections.before = connections.before.and(&info);
        }
        self.slots[slot].is_open = false;
    }

    /// The run ends: reports the transfers that have not finished, and closes everything.
    fn end(&mut self) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_open {
                self.report(slot, None);
                self.close(slot);
            }
        }
    }

    /// Reports a transfer, which ended at `end`; `None` if it did not.
    fn report(&self, slot: usize, end: Option<Time>) {
        let Slot { group, transfer, opened_at, size, .. } = self.slots[slot];
        if let Some(bytes) = size {
            self.say(Occurrence::Transfer {
                group: group as u32,
                index: transfer,
                bytes,
                start: opened_at,
                end,
            });
        }
    }
}

/// Writes as much as there is room for; returns whether the end was written now.
fn write(socket: BorrowedFd<'_>, slot: &mut Slot, data: &[u8]) -> io::Result<bool> {
    if slot.has_finished_writing {
        return Ok(false);
    }
    while slot.left > 0 {
        let chunk = slot.left.min(data.len() as u64) as usize;
        match socket::send(socket, &data[..chunk])? {
            None => return Ok(false),
            Some(written) if slot.left < u64::MAX => slot.left -= written as u64,
            Some(_) => {}
        }
    }
    slot.has_finished_writing = true;
    socket::finish(socket);
    Ok(true)
}
