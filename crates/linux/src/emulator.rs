//! The network between the hosts, in real time: that of `elephan-network`, the same code that the simulator drives.
//!
//! A packet that a host sends arrives on its TUN device. The emulator reads it, finds its flow by its port and so its route, and
//! gives it to the first link; when it leaves the last, it is written to the other host's device. The clock decides when. What
//! the simulator does at once, the emulator does slightly late; it records its lateness.
//!
//! TUN devices, because packets are read in the order in which they were sent, and a write hands a packet to the receiving host's TCP
//! in the same call. Behind a veth they pass the kernel's backlog queues, one for each processor, and overtake each other, unless
//! native XDP takes them, which costs no less (docs/kernel.md). And there are no link-layer addresses to look after.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use elephan_net::Limit;
use elephan_network::{Driver, Network, Recorded};
use elephan_scenario::Plan;
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
    /// Lateness of packets.
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
    network: Network<Parcel>,
    directions: [Direction<'a>; 2],
    clock: Clock,
    slipped: Time,
    /// The bytes of all packets, a slot each.
    bytes: Vec<u8>,
    slot_bytes: usize,
    free: Vec<u32>,
    /// For each flow, and then for each stream, where the routes of its data and of what comes back start.
    routes: Vec<[u32; 2]>,
    punctuality: Punctuality,
}

/// What an emulator leaves behind.
pub struct Emulated {
    /// What was recorded of its links.
    pub recorded: Recorded,
    /// How well it kept time.
    pub punctuality: Punctuality,
}

impl<'a> Emulator<'a> {
    /// The network of `plan` for packets of both `directions`, at `clock`.
    pub fn new(plan: &Plan, directions: [Direction<'a>; 2], clock: Clock, mtu: u32) -> Self {
        let network = Network::new(plan, Self::FOLLOWS);
        let streams = plan.streams.iter().map(|stream| [stream.forward; 2]);
        let routes = plan.flows.iter().map(|flow| [flow.forward, flow.reverse]).chain(streams);
        let routes = routes.map(|routes| routes.map(|route| network.start(route))).collect();
        Self {
            network,
            directions,
            clock,
            slipped: Time::ZERO,
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
            // Nothing has been done since the last look.
            self.change(last);
            // What is there now came since the last look: on average, half way. It would have ended a longer sleep at once.
            let read = self.read(now.since(now.since(last).min(WAKING) / 2))?;
            last = now;
            let forwarded = self.forward(now);
            self.network.record(now);
            expected = began + PACKET * (read + forwarded + 1) as u64;
            let (arrival, _) = self.network.next_arrival();
            let wake = arrival.min(self.network.next_record()).min(self.network.next_change());
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
        let recorded = self.network.finish(self.now());
        self.punctuality.cpu_s = cpu_s();
        Ok(Emulated { recorded, punctuality: self.punctuality })
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

    /// Moves everything that is due by `now`; returns how many packets that were.
    fn forward(&mut self, now: Time) -> usize {
        let mut moved = 0;
        loop {
            let (due, link) = self.network.next_arrival();
            if due > now {
                return moved;
            }
            // At the time when it was due, so that lateness does not add up from link to link.
            moved += self.arrive(link, due);
        }
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
                let position = routes[usize::from(from_listener)];
                let bytes = bytes as u32;
                let direction = number as u8;
                let (service, flow) = (buffer[1], flow as u16);
                let parcel = Parcel { slot, bytes, position, service, changed: false, direction, flow };
                self.enter(&parcel, now);
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
}

impl Driver for Emulator<'_> {
    type Packet = Parcel;
    /// The memory of a packet is taken back when it is gone.
    const FOLLOWS: bool = true;

    fn network(&mut self) -> &mut Network<Parcel> {
        &mut self.network
    }

    /// Gives a packet to the host at the end of its route.
    fn deliver(&mut self, parcel: &Parcel, now: Time) {
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

    fn dropped(&mut self, _: u32, parcel: &Parcel, _: Time) {
        self.free.push(parcel.slot);
    }

    fn lost(&mut self, _: u32, parcel: &Parcel) {
        self.free.push(parcel.slot);
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
