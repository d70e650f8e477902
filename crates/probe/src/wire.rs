//! What the client's datagrams leave and come by, and the clock that times them.
//!
//! [`Wire`] is all that a measurement needs of its host. [`Udp`] is the wire of real paths: sockets, the kernel's time stamps, and a
//! thread that gathers what comes while another one keeps the schedule. Virtual time has a body of its own, `Virtual`, over the
//! links of a scenario. The schedule, the MACs, the limits and the budget are above this seam, and the same over both.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use elephan_sys::{Urgency, make_urgent, wall_ns};

use crate::socket::{Received, Socket};

/// The client's end of a path, and the clock of its host.
///
/// Two tasks share a wire while a stream lasts: one sends on schedule, the other gathers what comes. [`Wire::both`] decides how
/// they share it. In real time each has a thread, because a departure must not wait until a batch of echoes has been checked. In
/// virtual time they run one after the other, because what comes carries its time, and is kept until it is gathered.
pub trait Wire: Sync {
    /// Time since some instant, which never changes: all that is due is compared with this.
    fn now(&self) -> Duration;

    /// Time of this host's clock, ns since 1970.
    fn wall_ns(&self) -> u64;

    /// Lets time pass. The host may take longer.
    fn sleep(&self, lasting: Duration);

    /// Waits until a time that is near, as exactly as the host can.
    fn spin_until(&self, until: Duration);

    /// Whether packets have the headers of IPv6.
    fn is_v6(&self) -> bool;

    /// A stream begins. Its packets are numbered from zero on.
    fn open(&mut self) -> io::Result<()>;

    /// A stream has ended: what comes later is lost.
    fn close(&mut self);

    /// Sends datagrams at once; returns how many left. An error is that of the first.
    fn send(&self, datagrams: &[&[u8]]) -> io::Result<usize>;

    /// Hands over some of the datagrams that have come, and returns their number: zero when there are no more. Does not wait.
    fn receive(&self, buffers: &mut [Vec<u8>], each: &mut dyn FnMut(&Received<'_>)) -> io::Result<usize>;

    /// Likewise the times at which packets were handed to the device: number of the packet, ns since 1970.
    fn transmitted(&self, each: &mut dyn FnMut(u32, u64)) -> io::Result<usize>;

    /// Sends and gathers: at the same time where time passes by itself.
    fn both<A, B: Send>(&self, send: impl FnOnce() -> A, gather: impl FnOnce() -> B + Send) -> (A, B);
}

/// Sockets of UDP, one for each stream.
pub struct Udp {
    to: SocketAddr,
    origin: Instant,
    socket: Option<Socket>,
}

impl Udp {
    /// To an address, timed from now on.
    pub fn new(to: SocketAddr) -> Self {
        Self { to, origin: Instant::now(), socket: None }
    }

    /// Where its datagrams go.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    fn socket(&self) -> &Socket {
        self.socket.as_ref().expect("a stream has begun")
    }
}

impl Wire for Udp {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall_ns(&self) -> u64 {
        wall_ns()
    }

    fn sleep(&self, lasting: Duration) {
        thread::sleep(lasting);
    }

    fn spin_until(&self, until: Duration) {
        while self.now() < until {
            std::hint::spin_loop();
        }
    }

    fn is_v6(&self) -> bool {
        crate::socket::is_v6(&self.to)
    }

    fn open(&mut self) -> io::Result<()> {
        self.socket = Some(Socket::client(self.to)?);
        Ok(())
    }

    fn close(&mut self) {
        self.socket = None;
    }

    fn send(&self, datagrams: &[&[u8]]) -> io::Result<usize> {
        self.socket().send(datagrams)
    }

    fn receive(&self, buffers: &mut [Vec<u8>], each: &mut dyn FnMut(&Received<'_>)) -> io::Result<usize> {
        self.socket().receive(buffers, false, each)
    }

    fn transmitted(&self, each: &mut dyn FnMut(u32, u64)) -> io::Result<usize> {
        self.socket().transmitted(each)
    }

    fn both<A, B: Send>(&self, send: impl FnOnce() -> A, gather: impl FnOnce() -> B + Send) -> (A, B) {
        thread::scope(|scope| {
            let gatherer = scope.spawn(gather);
            // Exact sleeps, for this thread.
            make_urgent(Urgency::Ordinary);
            let sent = send();
            (sent, gatherer.join().expect("it does not panic"))
        })
    }
}
