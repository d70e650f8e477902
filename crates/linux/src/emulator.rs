//! The network between the hosts, in real time: `elephan-network`, the same code that the simulator drives.
//!
//! A packet that a host sends arrives on its TUN device. The emulator reads it, finds its flow by its port
//! and thereby its route, and passes it to the first link. When the packet leaves the last link, the emulator
//! writes it to the other host's device. The real-time clock determines the times. The emulator does slightly
//! late what the simulator does at once; it records its lateness.
//!
//! TUN devices are used because packets are read in the order in which they were sent, and a write passes a
//! packet to the receiving host's TCP in the same call. With veth devices packets pass the kernel's backlog
//! queues, one for each processor, and are reordered, unless native XDP handles them, which costs no less
//! (docs/kernel-internals.md). Besides, TUN devices need no link-layer addresses.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use elephan_net::Limit;
use elephan_network::{Driver, Lateness, Network, Parcel, Part, Routes, set_service};
use elephan_scenario::Plan;
use elephan_sys::{Urgency, cpu_s, device, make_urgent};
use elephan_units::Time;
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};

use crate::clock::{Clock, Processors, Rests, stolen_s};
use crate::path::{Emulated, Host, Path, RealTime, mtu};

/// Packets read from a device before the links are checked again.
const BATCH: usize = 64;
/// Maximum length of a sleep, so that a stop is noticed.
const LONGEST_SLEEP: Time = Time::from_millis(20);
/// If nothing is due for longer than this, the emulator sleeps until a packet comes, or until this time
/// before something is due; otherwise it polls the links and the devices.
const SPIN: Time = Time::from_micros(150);
/// Time that may pass from the packet that ends a sleep to the emulator's next check.
const WAKING: Time = Time::from_micros(60);
/// Generous estimate of the time for reading and forwarding a packet and processing it in the other host's
/// TCP.
const PACKET: Time = Time::from_micros(25);
/// A pause imposed by the machine is caught up if it is no longer than this; a longer one is excluded from
/// the emulator's time.
const LONGEST_PAUSE: Time = Time::from_micros(500);

/// The path in real time: TUN devices, and a thread that carries packets between them.
pub struct Tunnels<'a> {
    plan: &'a Plan,
    /// The processor of the thread.
    processor: Processors,
    /// The emulator's ends of the devices, in the order in which they were made.
    devices: Vec<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Emulated>>>,
    stop: Arc<AtomicBool>,
    /// Processor time that had been stolen when it started, s.
    stolen_before_s: f64,
}

impl<'a> Tunnels<'a> {
    /// For a plan, with a processor for its thread.
    pub fn new(plan: &'a Plan, processor: Processors) -> Self {
        let (devices, thread, stop) = (Vec::new(), None, Arc::default());
        Self { plan, processor, devices, thread, stop, stolen_before_s: 0.0 }
    }

    fn end(&mut self) -> Option<io::Result<Emulated>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
    }
}

impl Path for Tunnels<'_> {
    fn device(&mut self, _: Host) -> io::Result<()> {
        self.devices.push(device::tun()?);
        Ok(())
    }

    fn start(&mut self) -> io::Result<Clock> {
        let devices = std::mem::take(&mut self.devices).try_into().expect("two hosts have a device each");
        self.stolen_before_s = stolen_s();
        let clock = Clock::real();
        let emulator = Emulator::new(self.plan, devices, clock);
        let (processor, stop) = (self.processor, Arc::clone(&self.stop));
        self.thread = Some(thread::spawn(move || {
            processor.keep();
            emulator.run(&stop)
        }));
        Ok(clock)
    }

    fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn finish(mut self) -> io::Result<Emulated> {
        let mut emulated = self.end().expect("it has started")?;
        if let Some(real) = &mut emulated.real_time {
            real.stolen_s = stolen_s() - self.stolen_before_s;
        }
        Ok(emulated)
    }
}

impl Drop for Tunnels<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The network of a plan.
struct Emulator {
    network: Network<Parcel>,
    /// The devices of the sending and the listening host.
    devices: [OwnedFd; 2],
    clock: Clock,
    /// The bytes of all packets, one slot for each.
    bytes: Vec<u8>,
    slot_bytes: usize,
    free: Vec<u32>,
    routes: Routes,
    /// Lateness of packets, in microseconds.
    lateness: Histogram<u64>,
    /// Packets that a device refused.
    refused: u64,
    /// Pauses that were excluded from the emulator's time: their number, total length and longest length.
    slips: u64,
    slipped: Time,
    longest_slip: Time,
    /// Time spent on moving packets, including the processing by the hosts' TCP in the same calls.
    busy: Time,
}

impl Emulator {
    fn new(plan: &Plan, devices: [OwnedFd; 2], clock: Clock) -> Self {
        let network = Network::new(plan, Self::FOLLOWS);
        let routes = Routes::new(plan, &network);
        let mtu = mtu(plan);
        Self {
            network,
            devices,
            clock,
            bytes: Vec::with_capacity(room(plan, u64::from(mtu)) as usize),
            slot_bytes: mtu as usize,
            free: Vec::new(),
            routes,
            lateness: Histogram::new(2).expect("two digits are a valid precision"),
            refused: 0,
            slips: 0,
            slipped: Time::ZERO,
            longest_slip: Time::ZERO,
            busy: Time::ZERO,
        }
    }

    /// Forwards packets until `stop`.
    fn run(mut self, stop: &AtomicBool) -> io::Result<Emulated> {
        make_urgent(Urgency::Realtime);
        let mut rests = Rests::new(self.clock);
        let mut last = self.now();
        let mut expected = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let began = self.clock.now();
            self.slip(began.since(expected));
            let now = self.now();
            // There was no work at the last check.
            while let Some(end) = self.network.change(last) {
                self.tell_gone(end);
            }
            // Packets present now came since the last check: on average, half that interval ago. They would
            // have ended a longer sleep at once.
            let read = self.read(now.since(now.since(last).min(WAKING) / 2))?;
            last = now;
            let forwarded = self.forward(now);
            self.network.record(now);
            expected = began + PACKET * (read + forwarded + 1) as u64;
            let (arrival, _) = self.part().next_arrival();
            let wake = arrival.min(self.network.next_record()).min(self.network.next_change());
            let idle = read + forwarded == 0;
            if !idle {
                self.busy += self.clock.now().since(began);
            }
            if idle && wake > now.saturating_add(SPIN) {
                expected += self.sleep(wake.since(now).since(SPIN));
                rests.slept();
            } else {
                expected += rests.rest(wake.saturating_add(self.slipped));
            }
        }
        let recorded = self.network.finish(self.now());
        let real_time = RealTime {
            slips: self.slips,
            slipped_s: self.slipped.secs_f64(),
            longest_slip_s: self.longest_slip.secs_f64(),
            emulator_cpu_s: cpu_s(),
            emulator_busy_s: self.busy.secs_f64(),
            ..RealTime::default()
        };
        let lateness = Lateness::of(&self.lateness, 1e-6);
        Ok(Emulated {
            recorded,
            lateness,
            reductions: None,
            refused: self.refused,
            real_time: Some(real_time),
        })
    }

    /// The emulator's time: real time, less the pauses.
    fn now(&self) -> Time {
        self.clock.now().since(self.slipped)
    }

    /// The machine made the emulator wait for `pause` longer than requested. A long pause is excluded from
    /// its time, as if the links had stood still, so packets keep their spacing. If they were all sent at
    /// once, they would cause a burst of acknowledgments, and these a burst of packets, which a short buffer
    /// drops.
    fn slip(&mut self, pause: Time) {
        if pause > LONGEST_PAUSE {
            self.slipped += pause;
            self.slips += 1;
            self.longest_slip = self.longest_slip.max(pause);
        }
    }

    /// Forwards everything that is due by `now`; returns the number of packets.
    fn forward(&mut self, now: Time) -> usize {
        let mut moved = 0;
        loop {
            let (due, end) = self.part().next_arrival();
            if due > now {
                return moved;
            }
            // Uses the due time, so that lateness does not accumulate from link to link.
            moved += self.arrive(end, due);
        }
    }

    /// Reads a batch from each device, of packets that arrived at `now`; returns their number.
    fn read(&mut self, now: Time) -> io::Result<usize> {
        let mut count = 0;
        for number in 0..self.devices.len() {
            for _ in 0..BATCH {
                let slot = self.slot();
                let at = slot as usize * self.slot_bytes;
                let buffer = &mut self.bytes[at..at + self.slot_bytes];
                let bytes = match read(&self.devices[number], &mut *buffer) {
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
                let parcel = self.routes.parcel(&buffer[..bytes], bytes as u32, number as u8, slot as usize);
                let Some(parcel) = parcel else {
                    self.free.push(slot);
                    continue;
                };
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

    /// Sleeps for `pause`, or until a packet comes from a host; returns the maximum length of the sleep.
    fn sleep(&mut self, pause: Time) -> Time {
        let pause = pause.min(LONGEST_SLEEP);
        let mut devices =
            self.devices.each_ref().map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: (pause.picos() / 1000) as _ };
        // The return value does not matter: everything is checked afterwards.
        let _ = poll(&mut devices, Some(&timeout));
        pause
    }
}

impl Driver for Emulator {
    type Packet = Parcel;
    /// Frees the memory of a packet that has left.
    const FOLLOWS: bool = true;

    fn part(&mut self) -> &mut Part<Parcel> {
        self.network.whole()
    }

    /// Passes a packet to the host at the end of its route.
    fn deliver(&mut self, parcel: &Parcel, now: Time) {
        let at = parcel.place * self.slot_bytes;
        let late = self.now().since(now).picos() / 1_000_000;
        let packet = &mut self.bytes[at..at + parcel.bytes as usize];
        if parcel.changed {
            set_service(packet, parcel.service);
        }
        let _ = self.lateness.record(late);
        let to = &self.devices[1 - usize::from(parcel.direction)];
        if write(to, packet).is_err() {
            self.refused += 1;
        } else if parcel.direction == 0 {
            self.network.count(usize::from(parcel.flow), parcel.payload());
        }
        self.free.push(parcel.place as u32);
    }

    fn dropped(&mut self, _: u32, parcel: &Parcel, _: Time) {
        self.free.push(parcel.place as u32);
    }

    fn lost(&mut self, _: u32, parcel: &Parcel) {
        self.free.push(parcel.place as u32);
    }
}

/// Memory for all packets that the links of a plan can hold at once, in bytes, so that it need not grow.
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
