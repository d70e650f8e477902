//! What a packet costs on its way through user space, by the device that it comes through: two TUN devices; two veth pairs with rings of
//! AF_PACKET; two veth pairs with sockets of AF_XDP. One thread hands on what it finds, both ways, with no link between; one flow of TCP,
//! without offloads. Needs root and `ip`.
//!
//!     cargo run --release -p elephan-linux --example devices -- [SECONDS] [RUNS]
#![expect(clippy::print_stdout, reason = "a command line")]

#[path = "../../src/clock.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod clock;
#[path = "../../src/namespace.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod namespace;
#[path = "../../src/socket.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod socket;
#[path = "../../src/tcp_info.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod tcp_info;

mod mapping;
mod redirect;
mod ring;
mod veth;
mod xdp;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use elephan_units::Time;

use crate::clock::{Clock, Processors, Rests, Urgency, cpu_s, make_urgent};
use crate::namespace::{Namespace, tun};
use crate::redirect::Mode;
use crate::ring::Ring;
use crate::xdp::Xdp;

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MTU: usize = 1500;
/// Packets taken from one side before the other is looked at.
const BATCH: usize = 64;
/// Packets that wait to be read; no fewer than a TUN device holds, for slow start ends only at the receiver's window.
const QUEUE: usize = 65_536;

#[derive(Clone, Copy)]
enum Kind {
    Tun,
    PacketRing,
    Xdp(Mode),
}

const KINDS: [(&str, Kind); 4] = [
    ("TUN", Kind::Tun),
    ("packet ring", Kind::PacketRing),
    ("AF_XDP, native", Kind::Xdp(Mode::Native)),
    ("AF_XDP, generic", Kind::Xdp(Mode::Generic)),
];

/// Where packets of one host come from, and go to.
trait Port {
    /// Takes up to a batch of packets and hands each on.
    fn receive(&mut self, to: &mut dyn FnMut(&[u8])) -> usize;
    /// Takes a packet for the host.
    fn send(&mut self, packet: &[u8]);
    /// Nothing more comes in this batch.
    fn flush(&mut self) {}
}

struct Tun(OwnedFd);

impl Port for Tun {
    fn receive(&mut self, to: &mut dyn FnMut(&[u8])) -> usize {
        let mut packet = [0u8; MTU];
        for count in 0..BATCH {
            // SAFETY: as much room as it says.
            let read = unsafe { libc::read(self.0.as_raw_fd(), packet.as_mut_ptr().cast(), MTU) };
            if read <= 0 {
                return count;
            }
            to(&packet[..read as usize]);
        }
        BATCH
    }

    fn send(&mut self, packet: &[u8]) {
        // SAFETY: as long as it says.
        unsafe { libc::write(self.0.as_raw_fd(), packet.as_ptr().cast(), packet.len()) };
    }
}

/// Takes a system call's answer.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets an option of a socket that the kernel takes as a structure.
fn set_structure<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is as long as it says.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, length) }).map(|_| ())
}

/// A device from the calling thread's namespace to a host.
fn port(
    kind: Kind,
    host: &Namespace,
    name: &str,
    own: Ipv4Addr,
    peer: Ipv4Addr,
) -> io::Result<Box<dyn Port>> {
    if let Kind::Tun = kind {
        return Ok(Box::new(Tun(host.within(|| tun(own, peer, MTU as u32, true))?)));
    }
    veth::pair(host, name, own, peer)?;
    if let Kind::Xdp(mode) = kind {
        Ok(Box::new(Xdp::on(name, mode)?))
    } else {
        Ok(Box::new(Ring::on(name)?))
    }
}

/// Counts packets that come after one with later data.
#[derive(Default)]
struct Order {
    latest: Option<u32>,
    late: u64,
}

impl Order {
    fn see(&mut self, packet: &[u8]) {
        const TCP: u8 = libc::IPPROTO_TCP as u8;
        // IPv4 without options, then TCP's ports and sequence number.
        let [0x45, _, _, _, _, _, _, _, _, TCP, header @ ..] = packet else { return };
        let sequence = u32::from_be_bytes([header[14], header[15], header[16], header[17]]);
        match self.latest {
            Some(latest) if (sequence.wrapping_sub(latest) as i32) < 0 => self.late += 1,
            _ => self.latest = Some(sequence),
        }
    }
}

/// What came of a run.
struct Measured {
    /// Mbit/s of IP packets.
    carried: f64,
    /// The forwarder's time at work for each packet, us.
    forwarder_us: f64,
    /// CPU time of the threads that send and listen for each packet, with what the kernel did on the way while they ran, us.
    hosts_us: f64,
    /// Packets that came to the forwarder after one with later data,
    late: f64,
    /// and those that TCP sent again.
    again: f64,
}

fn measure(kind: Kind, seconds: f64) -> io::Result<Measured> {
    let (sending, listening, router) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    let (for_forwarder, for_others) = Processors::own().split();
    let (stop, ready, bytes) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (sending, listening, stop, ready, bytes) = (&sending, &listening, &stop, &ready, &bytes);
        let router = &router;
        let forwarder = scope.spawn(move || -> io::Result<(u64, Time, u64)> {
            router.enter()?;
            let mut ports = [
                port(kind, sending, "sender", SENDER, LISTENER)?,
                port(kind, listening, "listener", LISTENER, SENDER)?,
            ];
            ready.store(true, Ordering::Release);
            for_forwarder.keep();
            make_urgent(Urgency::Realtime);
            let clock = Clock::start();
            let mut rests = Rests::new(clock);
            let (link_header, mut order) = (if let Kind::Tun = kind { 0 } else { 14 }, Order::default());
            let (mut packets, mut busy) = (0, Time::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let began = clock.now();
                let mut moved = 0;
                let [sender, listener] = &mut ports;
                moved += sender.receive(&mut |packet| {
                    order.see(&packet[link_header..]);
                    listener.send(packet);
                });
                listener.flush();
                moved += listener.receive(&mut |packet| sender.send(packet));
                sender.flush();
                if moved > 0 {
                    packets += moved as u64;
                    busy += clock.now().since(began);
                }
                rests.rest(if moved > 0 { Time::ZERO } else { Time::MAX });
            }
            Ok((packets, busy, order.late))
        });
        while !ready.load(Ordering::Acquire) && !forwarder.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        let listener = scope.spawn(move || -> io::Result<(Option<OwnedFd>, f64)> {
            for_others.keep();
            make_urgent(Urgency::Socket);
            listening.enter()?;
            let listener = socket::tcp()?;
            socket::set(&listener, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 1 << 26)?;
            socket::listen(&listener, LISTENER, 5000)?;
            let mut connection = None;
            while !stop.load(Ordering::Relaxed) {
                if let Some(connection) = &connection {
                    while let Some(read @ 1..) = socket::discard(OwnedFd::as_fd(connection))? {
                        bytes.fetch_add(read as u64, Ordering::Relaxed);
                    }
                } else {
                    connection = socket::accept(&listener)?;
                }
                thread::sleep(Duration::from_millis(1));
            }
            // Not closed yet: the sender goes on until it notices.
            Ok((connection, cpu_s()))
        });
        let sender = scope.spawn(move || -> io::Result<(u32, f64)> {
            for_others.keep();
            make_urgent(Urgency::Socket);
            sending.enter()?;
            thread::sleep(Duration::from_millis(50));
            let socket = socket::tcp()?;
            socket::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 1 << 26)?;
            socket::set(&socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, 512 * 1024)?;
            // Slow start goes on: it is the processor that is to be the limit.
            socket::set_congestion_control(&socket, "reno")?;
            socket::connect(&socket, LISTENER, 5000)?;
            let poll = socket::Poll::new()?;
            poll.watch(&socket, false, true, 0)?;
            let (data, mut woken) = (vec![0u8; 65_536], Vec::new());
            while !stop.load(Ordering::Relaxed) {
                poll.wait(20, &mut woken)?;
                while socket::send(socket.as_fd(), &data)?.is_some() {}
            }
            Ok((tcp_info::tcp_info(socket.as_fd())?.total_retrans, cpu_s()))
        });
        // The start does not count for what is carried.
        thread::sleep(Duration::from_secs(1));
        let (before, clock) = (bytes.load(Ordering::Relaxed), Clock::start());
        thread::sleep(Duration::from_secs_f64(seconds));
        let carried = (bytes.load(Ordering::Relaxed) - before) as f64 / clock.now().secs_f64();
        stop.store(true, Ordering::Relaxed);
        let (packets, busy, late) = forwarder.join().expect("it does not panic")?;
        let (again, sender_s) = sender.join().expect("it does not panic")?;
        let (_, listener_s) = listener.join().expect("it does not panic")?;
        let for_each = |seconds: f64| seconds / packets as f64 * 1e6;
        Ok(Measured {
            carried: carried * 8e-6 * 1500.0 / 1448.0,
            forwarder_us: for_each(busy.secs_f64()),
            hosts_us: for_each(sender_s + listener_s),
            late: late as f64,
            again: f64::from(again),
        })
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    let word =
        |at: usize, default: f64| std::env::args().nth(at).and_then(|w| w.parse().ok()).unwrap_or(default);
    let (seconds, runs) = (word(1, 4.0), word(2, 5.0) as usize);
    let mut all = [const { Vec::new() }; KINDS.len()];
    // In turn, so that whatever else the machine does falls on all.
    for _ in 0..runs {
        for ((_, kind), measured) in KINDS.into_iter().zip(&mut all) {
            measured.push(measure(kind, seconds)?);
        }
    }
    println!("through user space and back, one thread, no link; medians of {runs} runs of {seconds} s");
    for ((name, _), measured) in KINDS.iter().zip(&all) {
        let of = |value: fn(&Measured) -> f64| median(measured.iter().map(value));
        let (carried, late, again) = (of(|m| m.carried), of(|m| m.late), of(|m| m.again));
        let (forwarder, hosts) = (of(|m| m.forwarder_us), of(|m| m.hosts_us));
        println!(
            "  {name:<15} {carried:>5.0} Mbit/s of IP packets, {forwarder:.2} us a packet and {hosts:.2} us in the hosts, \
             {late:>4.0} out of order, {again:>3.0} sent again"
        );
    }
    Ok(())
}
