//! The network between the hosts, in real time: the links of `elephan-net`, the same code that the simulator runs.
//!
//! A packet that a host sends arrives on its TUN device. The emulator reads it, finds its flow by its port and so its route, and
//! gives it to the first link; when it leaves the last, it is written to the other host's device. The clock decides when. What
//! the simulator does at once, the emulator does a little late; it keeps count of how late.
//!
//! TUN devices, because packets are read in the order in which they were sent, and a write hands a packet to the receiving host's TCP
//! in the same call. Behind a veth they pass the kernel's backlog queues, one for each processor, and overtake each other, unless
//! native XDP takes them, which costs no less (docs/kernel.md). And there are no link-layer addresses to look after.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use elephan_metrics::LinkSample;
use elephan_metrics::trace::QueueTrace;
use elephan_net::{Limit, Link};
use elephan_scenario::Plan;
use elephan_sim::links::{self, LinkRecord};
use elephan_units::Time;
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};

use crate::clock::{Clock, Rests, Urgency, cpu_s, make_urgent};
use crate::packet::{Parcel, classify, set_service};

/// Packets read from a device before the links are looked at again.
const BATCH: usize = 64;
/// No sleep is longer, so that a stop is noticed.
const LONGEST_SLEEP: Time = Time::from_millis(20);
/// Where nothing is due for longer than this, the emulator sleeps until a packet comes, or until so long before something is due;
/// else it looks at the links and the devices all the time.
const SPIN: Time = Time::from_micros(150);
/// What it may take from the packet that ends a sleep to the emulator's next look.
const WAKING: Time = Time::from_micros(60);
/// What a packet may take to be read, forwarded and processed by the other host's TCP, generously.
const PACKET: Time = Time::from_micros(25);
/// A pause that the machine imposes is made up for up to this length; a longer one is taken out of the emulator's time.
const LONGEST_PAUSE: Time = Time::from_micros(500);

/// Packets from one host to the other.
#[derive(Clone, Copy)]
pub struct Direction<'a> {
    /// The device that they are read from.
    pub from: BorrowedFd<'a>,
    /// The device that they are written to.
    pub to: BorrowedFd<'a>,
    /// Whether they go from the host that listens, so that the source port tells the flow.
    pub from_listener: bool,
}

/// How well the emulator kept to its schedule, in microseconds.
pub struct Punctuality {
    /// How late packets were handed over.
    pub lateness: Histogram<u64>,
    /// Pauses that were taken out of the emulator's time: how many, how long together, and the longest.
    pub slips: u64,
    pub slipped: Time,
    pub longest_slip: Time,
    /// Packets that a device refused.
    pub refused: u64,
    /// CPU time that the emulator used, most of it to wait, s.
    pub cpu_s: f64,
    /// Time that it took to move packets, with what the hosts' TCP did in the same calls.
    pub busy: Time,
}

/// The network of a plan.
pub struct Emulator<'a> {
    plan: &'a Plan,
    directions: [Direction<'a>; 2],
    clock: Clock,
    slipped: Time,
    /// Changes of the plan so far.
    changed: usize,
    links: Vec<Link<Parcel>>,
    /// When each link wants to be looked at.
    next: Vec<Time>,
    /// The bytes of all packets, a slot each.
    bytes: Vec<u8>,
    slot_bytes: usize,
    free: Vec<u32>,
    /// For each flow, and then for each stream, the route of its data and of what comes back.
    routes: Vec<[u32; 2]>,
    punctuality: Punctuality,
    // What is written down.
    queues: QueueTrace,
    next_trace: Time,
    next_edge: Time,
    records: Vec<LinkRecord>,
    samples: Vec<LinkSample>,
}

/// What an emulator leaves behind.
pub struct Emulated {
    /// Samples of its links.
    pub queues: QueueTrace,
    /// What its links did in the measuring window, in their order.
    pub links: Vec<LinkSample>,
    /// How well it kept time.
    pub punctuality: Punctuality,
}

impl<'a> Emulator<'a> {
    /// The network of `plan` for packets of both `directions`, at `clock`.
    pub fn new(plan: &'a Plan, directions: [Direction<'a>; 2], clock: Clock, mtu: u32) -> Self {
        let mut links: Vec<_> = plan
            .links
            .iter()
            .enumerate()
            .map(|(i, l)| Link::new(l.config.clone(), plan.seed, i as u64))
            .collect();
        for link in &mut links {
            link.keep_drops();
            link.keep_lost();
        }
        // A window from the beginning has the first instant, too.
        let mut records = vec![LinkRecord::default(); links.len()];
        let is_open = plan.measure.from == Time::ZERO;
        if is_open {
            records.iter_mut().zip(&mut links).for_each(|(record, link)| record.open(link, Time::ZERO));
        }
        let streams = plan.streams.iter().map(|stream| [stream.forward; 2]);
        let routes = plan.flows.iter().map(|flow| [flow.forward, flow.reverse]).chain(streams).collect();
        Self {
            plan,
            directions,
            clock,
            slipped: Time::ZERO,
            changed: 0,
            next: vec![Time::MAX; links.len()],
            bytes: Vec::with_capacity(room(plan, u64::from(mtu)) as usize),
            slot_bytes: mtu as usize,
            free: Vec::new(),
            routes,
            punctuality: Punctuality {
                lateness: Histogram::new(2).expect("two digits are a valid precision"),
                slips: 0,
                slipped: Time::ZERO,
                longest_slip: Time::ZERO,
                refused: 0,
                cpu_s: 0.0,
                busy: Time::ZERO,
            },
            queues: QueueTrace::default(),
            next_trace: Time::ZERO,
            next_edge: if is_open { plan.measure.to } else { plan.measure.from },
            records,
            samples: Vec::new(),
            links,
        }
    }

    /// Carries packets until `stop`.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<Emulated> {
        make_urgent(Urgency::Realtime);
        let mut rests = Rests::new(self.clock);
        let mut last = self.now();
        let mut expected = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let began = self.clock.now();
            self.slip(began.since(expected));
            let now = self.now();
            self.change(last);
            // What is there now came since the last look: on average, half way. It would have ended a longer sleep at once.
            let read = self.read(now.since(now.since(last).min(WAKING) / 2))?;
            last = now;
            let (forwarded, due) = self.forward(now);
            self.observe(now);
            expected = began + PACKET * (read + forwarded + 1) as u64;
            let wake = due.min(self.next_trace).min(self.next_edge).min(self.next_change());
            let idle = read + forwarded == 0;
            if !idle {
                self.punctuality.busy += self.clock.now().since(began);
            }
            if idle && wake > now.saturating_add(SPIN) {
                expected += self.sleep(wake.since(now).since(SPIN));
                rests.slept();
            } else {
                expected += rests.rest(wake.saturating_add(self.slipped));
            }
        }
        if self.next_edge < Time::MAX {
            self.close_window(self.plan.measure.to.min(self.now()));
        }
        self.punctuality.cpu_s = cpu_s();
        Ok(Emulated { queues: self.queues, links: self.samples, punctuality: self.punctuality })
    }

    /// The emulator's time: real time, less the pauses.
    fn now(&self) -> Time {
        self.clock.now().since(self.slipped)
    }

    /// The machine kept the emulator waiting for `pause` longer than it had asked for. A long pause is taken out of its time, as if
    /// the links had stood still: packets go on as far apart as before. Sent all at once they would make a burst of
    /// acknowledgments, and that a burst of packets which a short buffer drops.
    fn slip(&mut self, pause: Time) {
        if pause > LONGEST_PAUSE {
            self.slipped += pause;
            self.punctuality.slips += 1;
            self.punctuality.slipped = self.slipped;
            self.punctuality.longest_slip = self.punctuality.longest_slip.max(pause);
        }
    }

    /// When the next change of a link is due; `Time::MAX` for never.
    fn next_change(&self) -> Time {
        self.plan.changes.get(self.changed).map_or(Time::MAX, |change| change.at)
    }

    /// Changes links, where it is time; nothing has been done since `now`.
    fn change(&mut self, now: Time) {
        while self.next_change() <= now {
            let change = &self.plan.changes[self.changed];
            let link = change.link as usize;
            self.changed += 1;
            links::apply(change, &mut self.links[link], now);
            self.reclaim(link);
            self.next[link] = self.links[link].next_event();
        }
    }

    /// Moves everything that is due by `now`; returns how many packets that were, and when something is due next.
    fn forward(&mut self, now: Time) -> (usize, Time) {
        let mut moved = 0;
        loop {
            let (link, due) =
                self.next.iter().copied().enumerate().min_by_key(|&(_, due)| due).unwrap_or((0, Time::MAX));
            if due > now {
                return (moved, due);
            }
            // At the time when it was due, so that lateness does not add up from link to link.
            while let Some(parcel) = self.links[link].receive(due) {
                self.onwards(parcel, due);
                moved += 1;
            }
            self.reclaim(link);
            self.next[link] = self.links[link].next_event();
        }
    }

    /// Gives a packet to the next link of its route, or to the host at its end.
    fn onwards(&mut self, mut parcel: Parcel, now: Time) {
        if let Some(&link) = self.plan.routes[parcel.route as usize].get(usize::from(parcel.hop)) {
            parcel.hop += 1;
            let link = link as usize;
            if self.links[link].send(parcel, now) {
                self.next[link] = self.links[link].next_event();
            } else {
                self.free.push(parcel.slot);
            }
            self.reclaim(link);
            return;
        }
        let at = parcel.slot as usize * self.slot_bytes;
        let late = self.now().since(now).picos() / 1_000_000;
        let packet = &mut self.bytes[at..at + parcel.bytes as usize];
        if parcel.changed {
            set_service(packet, parcel.service);
        }
        let _ = self.punctuality.lateness.record(late);
        let to = self.directions[usize::from(parcel.direction)].to;
        if write(to, packet).is_err() {
            self.punctuality.refused += 1;
        }
        self.free.push(parcel.slot);
    }

    /// Takes back the memory of packets that a link dropped after it had accepted them, or lost.
    fn reclaim(&mut self, link: usize) {
        let link = &mut self.links[link];
        self.free.extend(link.drops().iter().map(|(_, parcel)| parcel.slot));
        self.free.extend(link.lost().iter().map(|parcel| parcel.slot));
    }

    /// Reads a batch from each device, of packets that came at `now`; returns how many there were.
    fn read(&mut self, now: Time) -> io::Result<usize> {
        let mut count = 0;
        for number in 0..self.directions.len() {
            let Direction { from, from_listener, .. } = self.directions[number];
            for _ in 0..BATCH {
                let slot = self.slot();
                let at = slot as usize * self.slot_bytes;
                let buffer = &mut self.bytes[at..at + self.slot_bytes];
                let bytes = match read(from, &mut *buffer) {
                    Ok(bytes) if bytes > 0 => bytes,
                    nothing => {
                        self.free.push(slot);
                        match nothing {
                            Ok(_) | Err(Errno::WOULDBLOCK) => break,
                            Err(error) => return Err(error.into()),
                        }
                    }
                };
                count += 1;
                let Some(flow) = classify(&buffer[..bytes], from_listener) else {
                    self.free.push(slot);
                    continue;
                };
                // What is not a flow of the plan goes the way of its first: a ping, iperf3.
                let routes = self.routes.get(flow).or(self.routes.first()).copied().unwrap_or_default();
                let route = routes[usize::from(from_listener)];
                let bytes = bytes as u32;
                let direction = number as u8;
                let (service, flow) = (buffer[1], flow as u16);
                let parcel = Parcel { slot, bytes, route, hop: 0, service, changed: false, direction, flow };
                self.onwards(parcel, now);
            }
        }
        Ok(count)
    }

    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.bytes.len() / self.slot_bytes;
            self.bytes.resize(self.bytes.len() + self.slot_bytes, 0);
            slot as u32
        })
    }

    /// Sleeps for `pause`, or until a packet comes from a host; returns for how long at most.
    fn sleep(&mut self, pause: Time) -> Time {
        let pause = pause.min(LONGEST_SLEEP);
        let mut devices =
            self.directions.map(|direction| PollFd::from_borrowed_fd(direction.from, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: (pause.picos() / 1000) as _ };
        // What it returns does not matter: everything is looked at afterwards.
        let _ = poll(&mut devices, Some(&timeout));
        pause
    }

    // ---- What is written down ----

    fn observe(&mut self, now: Time) {
        while self.next_trace <= now && self.next_trace <= self.plan.duration {
            self.trace(self.next_trace, now);
            self.next_trace = self.next_trace.saturating_add(self.plan.trace.interval);
        }
        if self.next_trace > self.plan.duration {
            self.next_trace = Time::MAX;
        }
        if self.next_edge > now {
            return;
        }
        if self.next_edge == self.plan.measure.from {
            for (before, link) in self.records.iter_mut().zip(&mut self.links) {
                before.open(link, now);
            }
            self.next_edge = self.plan.measure.to;
        } else {
            self.close_window(now);
            self.next_edge = Time::MAX;
        }
    }

    /// Writes down how the links stand `now`, as at `time`, which has just passed.
    fn trace(&mut self, time: Time, now: Time) {
        for (number, link) in self.links.iter_mut().enumerate() {
            self.records[number].sample(number as u32, link, time, now, &mut self.queues);
        }
    }

    fn close_window(&mut self, now: Time) {
        for (number, link) in self.links.iter_mut().enumerate() {
            if link.config().rate.is_none() {
                continue;
            }
            let (name, is_bottleneck) =
                (&self.plan.links[number].name, number == self.plan.bottleneck as usize);
            self.samples.push(self.records[number].close(name, link, is_bottleneck, &self.plan.measure, now));
        }
    }
}

/// Memory for what the links of a plan can hold at once, so that it need not grow, in bytes.
fn room(plan: &Plan, mtu: u64) -> u64 {
    const MOST: u64 = 1 << 30;
    let held = plan.links.iter().map(|link| {
        let queued = match link.config.limit {
            Limit::Packets(packets) => packets.saturating_mul(mtu),
            Limit::Bytes(bytes) => bytes,
        };
        link.config.rate.map_or(0, |rate| queued.saturating_add(rate.bytes_in(link.config.delay).get()))
    });
    held.fold(1 << 24, u64::saturating_add).min(MOST)
}
