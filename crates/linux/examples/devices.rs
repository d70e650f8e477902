//! What a packet costs on its way through user space, by the device that it comes through: two TUN devices, AF_PACKET rings over two
//! veth pairs. One thread hands on what it finds, both ways, with no link between; one flow of TCP, without offloads. Needs root and `ip`.
//!
//!     cargo run --release -p elephan-linux --example devices -- [SECONDS] [RUNS]
#![expect(clippy::print_stdout, reason = "a command line")]

#[path = "../src/clock.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod clock;
#[path = "../src/namespace.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod namespace;
#[path = "../src/socket.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod socket;
#[path = "../src/tcp_info.rs"]
#[allow(dead_code, reason = "the engine needs more of it")]
mod tcp_info;

use std::io;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use elephan_units::Time;

use crate::clock::{Clock, Processors, Rests, Urgency, make_urgent};
use crate::namespace::{Namespace, tun};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MTU: usize = 1500;
/// Packets taken from one side before the other is looked at.
const BATCH: usize = 64;

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

/// A packet socket on one end of a veth pair: a ring from which packets are read where they are (TPACKET_V2; V3 shows packets a block
/// at a time, after a millisecond or more), and a system call for each batch that is sent. Not the ring for sending: veth tells the
/// ring that a packet has left while the receiving host still reads it there.
struct Ring {
    socket: OwnedFd,
    frames: *mut u8,
    next: usize,
    batch: Vec<Vec<u8>>,
    count: usize,
}

const FRAME: usize = 2048;
/// Of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const FRAMES: usize = 16_384;

impl Ring {
    fn on(device: &str) -> io::Result<Self> {
        let check =
            |result: libc::c_int| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) };
        // SAFETY: structures as the kernel wants them, each as long as it says; descriptor and memory are owned at once.
        unsafe {
            let protocol = (libc::ETH_P_ALL as u16).to_be();
            let made = check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(protocol)))?;
            let socket = OwnedFd::from_raw_fd(made);
            let set = |name, value| socket::set(&socket, libc::SOL_PACKET, name, value);
            set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)?;
            set(libc::PACKET_QDISC_BYPASS, 1)?;
            set(PACKET_IGNORE_OUTGOING, 1)?;
            let block = FRAME * 512;
            let request = libc::tpacket_req {
                tp_block_size: block as u32,
                tp_block_nr: (FRAME * FRAMES / block) as u32,
                tp_frame_size: FRAME as u32,
                tp_frame_nr: FRAMES as u32,
            };
            let length = size_of::<libc::tpacket_req>() as libc::socklen_t;
            let given = (&raw const request).cast();
            check(libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_RX_RING,
                given,
                length,
            ))?;
            let (use_, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let mapped = libc::mmap(std::ptr::null_mut(), FRAME * FRAMES, use_, how, socket.as_raw_fd(), 0);
            if mapped == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol;
            let name = std::ffi::CString::new(device)?;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length))?;
            let batch = (0..BATCH).map(|_| Vec::with_capacity(FRAME)).collect();
            Ok(Self { socket, frames: mapped.cast(), next: 0, batch, count: 0 })
        }
    }
}

#[expect(clippy::cast_ptr_alignment, reason = "frames begin at multiples of their size")]
impl Port for Ring {
    fn receive(&mut self, to: &mut dyn FnMut(&[u8])) -> usize {
        for count in 0..BATCH {
            // SAFETY: frames are within the mapping, and the kernel leaves one alone while its status says that it is ours.
            unsafe {
                let frame = self.frames.add(self.next * FRAME);
                let header = frame.cast::<libc::tpacket2_hdr>();
                let status = AtomicU32Ptr(&raw mut (*header).tp_status);
                if status.load() & libc::TP_STATUS_USER == 0 {
                    return count;
                }
                let at = frame.add(usize::from((*header).tp_mac));
                to(std::slice::from_raw_parts(at, (*header).tp_snaplen as usize));
                status.store(libc::TP_STATUS_KERNEL);
            }
            self.next = (self.next + 1) % FRAMES;
        }
        BATCH
    }

    fn send(&mut self, packet: &[u8]) {
        let slot = &mut self.batch[self.count];
        slot.clear();
        slot.extend_from_slice(packet);
        self.count += 1;
        if self.count == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        // SAFETY: the packets outlive the call, and there are as many as it says.
        unsafe {
            let mut parts: Vec<libc::iovec> = Vec::with_capacity(BATCH);
            parts.extend(
                self.batch[..self.count].iter_mut().map(|packet| libc::iovec {
                    iov_base: packet.as_mut_ptr().cast(),
                    iov_len: packet.len(),
                }),
            );
            let mut messages: [libc::mmsghdr; BATCH] = zeroed();
            for (message, part) in messages.iter_mut().zip(&mut parts) {
                (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
            }
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), self.count as u32, 0);
        }
        self.count = 0;
    }
}

/// A word that the kernel shares.
struct AtomicU32Ptr(*mut u32);

impl AtomicU32Ptr {
    unsafe fn load(&self) -> u32 {
        // SAFETY: the caller's word is within the ring.
        unsafe { std::sync::atomic::AtomicU32::from_ptr(self.0).load(Ordering::Acquire) }
    }
    unsafe fn store(&self, value: u32) {
        // SAFETY: as above.
        unsafe { std::sync::atomic::AtomicU32::from_ptr(self.0).store(value, Ordering::Release) }
    }
}

fn ip(line: &str) -> io::Result<()> {
    let done = Command::new("ip").args(line.split_whitespace()).status()?;
    if done.success() { Ok(()) } else { Err(io::Error::other(format!("ip {line}"))) }
}

/// Has the sending host compute checksums itself: nobody behind a packet socket would.
fn without_offloads(device: &str) -> io::Result<()> {
    // ETHTOOL_STXCSUM of linux/ethtool.h
    let mut off: [u32; 2] = [0x17, 0];
    // SAFETY: structures as the kernel wants them, which outlive the call.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = off.as_mut_ptr().cast();
        let socket = socket::tcp()?;
        let code = libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request);
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A veth pair from the calling thread's namespace to a host, whose addresses below IP are all the same: there is but one listener.
fn veth(host: &Namespace, device: &str, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<Ring> {
    // SAFETY: a plain call.
    let here = unsafe { libc::gettid() };
    host.within(|| {
        ip(&format!("link add host type veth peer name {device} netns {here}"))?;
        ip("link set host address 02:00:00:00:00:01 arp off mtu 1500 gso_max_segs 1 txqueuelen 50000 up")?;
        ip(&format!("addr add {own} peer {peer} dev host"))?;
        without_offloads("host")
    })?;
    ip(&format!("link set {device} up"))?;
    Ring::on(device)
}

/// What came of a run: Mbit/s of IP packets, time at work for each packet (us), and packets that TCP had to send again.
fn measure(kind: &str, seconds: f64) -> io::Result<[f64; 3]> {
    let (sending, listening, router) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    let (for_forwarder, for_others) = Processors::own().split();
    let (stop, ready, bytes) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (sending, listening, stop, ready, bytes) = (&sending, &listening, &stop, &ready, &bytes);
        let router = &router;
        let forwarder = scope.spawn(move || -> io::Result<(u64, Time)> {
            router.enter()?;
            let mut ports: [Box<dyn Port>; 2] = if kind == "tun" {
                let sender = sending.within(|| tun(SENDER, LISTENER, MTU as u32, true))?;
                [
                    Box::new(Tun(sender)),
                    Box::new(Tun(listening.within(|| tun(LISTENER, SENDER, MTU as u32, true))?)),
                ]
            } else {
                [
                    Box::new(veth(sending, "sender", SENDER, LISTENER)?),
                    Box::new(veth(listening, "listener", LISTENER, SENDER)?),
                ]
            };
            ready.store(true, Ordering::Release);
            for_forwarder.keep();
            make_urgent(Urgency::Realtime);
            let clock = Clock::start();
            let mut rests = Rests::new(clock);
            let (mut packets, mut busy) = (0, Time::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let began = clock.now();
                let mut moved = 0;
                for from in [0, 1] {
                    let [first, second] = &mut ports;
                    let (from, to) = if from == 0 { (first, second) } else { (second, first) };
                    moved += from.receive(&mut |packet| to.send(packet));
                    to.flush();
                }
                if moved > 0 {
                    packets += moved as u64;
                    busy += clock.now().since(began);
                }
                rests.rest(if moved > 0 { Time::ZERO } else { Time::MAX });
            }
            Ok((packets, busy))
        });
        while !ready.load(Ordering::Acquire) && !forwarder.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        scope.spawn(move || -> io::Result<()> {
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
            Ok(())
        });
        let sender = scope.spawn(move || -> io::Result<u32> {
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
            Ok(tcp_info::tcp_info(socket.as_fd())?.total_retrans)
        });
        // The start does not count for what is carried.
        thread::sleep(Duration::from_secs(1));
        let (before, clock) = (bytes.load(Ordering::Relaxed), Clock::start());
        thread::sleep(Duration::from_secs_f64(seconds));
        let carried = (bytes.load(Ordering::Relaxed) - before) as f64 / clock.now().secs_f64();
        stop.store(true, Ordering::Relaxed);
        let (packets, busy) = forwarder.join().expect("it does not panic")?;
        let lost = sender.join().expect("it does not panic")?;
        Ok([carried * 8e-6 * 1500.0 / 1448.0, busy.secs_f64() / packets as f64 * 1e6, f64::from(lost)])
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
    let kinds = ["tun", "packet ring"];
    let mut all = [const { Vec::new() }; 2];
    // In turn, so that whatever else the machine does falls on both.
    for _ in 0..runs {
        for (kind, measured) in kinds.iter().zip(&mut all) {
            measured.push(measure(kind, seconds)?);
        }
    }
    println!("through user space and back, one thread, no link; medians of {runs} runs of {seconds} s");
    for (kind, measured) in kinds.iter().zip(&all) {
        let [carried, at_work, lost] = [0, 1, 2].map(|at| median(measured.iter().map(|m| m[at])));
        println!(
            "  {kind:<12} {carried:>6.0} Mbit/s of IP packets, {at_work:>5.2} us a packet, {lost:>6.0} packets lost"
        );
    }
    Ok(())
}
