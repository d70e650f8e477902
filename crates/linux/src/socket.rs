//! Sockets of the two hosts.

use std::io;
use std::mem::{MaybeUninit, size_of_val, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use elephan_sys::socket::set;
use elephan_sys::wall_ns;
use elephan_units::Time;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections that may wait to be accepted: as many as a crowd opens at once.
pub const BACKLOG: i32 = 65_535;

/// IPv4 and TCP, without options.
const TCP_HEADERS: u64 = 40;
/// Number of file descriptors that a process may have at most, as the kernel is configured (`fs.nr_open`).
const MOST_FILES: u64 = 1 << 20;

/// Lets this process open as many sockets as a crowd may need, or as many as the system permits.
pub fn allow_many() {
    let limit = getrlimit(Resource::Nofile);
    let more = Rlimit { current: Some(MOST_FILES), maximum: Some(MOST_FILES) };
    if limit.maximum.is_some_and(|most| most < MOST_FILES) && setrlimit(Resource::Nofile, more).is_ok() {
        return;
    }
    // If it is not permitted, the limit stays, and a run that exceeds it ends with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// A non-blocking IPv4 socket.
fn ipv4(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(AddressFamily::INET, kind, flags, None)?)
}

/// A non-blocking TCP socket.
pub fn tcp() -> io::Result<OwnedFd> {
    ipv4(SocketType::STREAM)
}

/// A non-blocking UDP socket.
pub fn udp() -> io::Result<OwnedFd> {
    ipv4(SocketType::DGRAM)
}

/// Limits the packets of a connection to `bytes`, where the device has a larger `mtu`.
pub fn set_packet(socket: &OwnedFd, bytes: u64, mtu: u32) -> io::Result<()> {
    if bytes == u64::from(mtu) {
        return Ok(());
    }
    let mss = bytes.saturating_sub(TCP_HEADERS) as libc::c_int;
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &[mss])
}

/// Paces a connection, by the kernel's own rate for its window.
pub fn pace(socket: &OwnedFd) -> io::Result<()> {
    // A maximum rate switches pacing on. As an unsigned number this is 34 Gbit/s; one more would be no limit.
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &[-2])
}

/// Sets the codepoint of outgoing packets.
pub fn set_dscp(socket: &OwnedFd, dscp: u8) -> io::Result<()> {
    Ok(sockopt::set_ip_tos(socket, dscp << 2)?)
}

/// Starts to connect.
pub fn connect(socket: &OwnedFd, to: Ipv4Addr, port: u16) -> io::Result<()> {
    match net::connect(socket, &SocketAddrV4::new(to, port)) {
        Err(Errno::INPROGRESS) => Ok(()),
        other => Ok(other?),
    }
}

/// Binds a socket to a port of an address.
pub fn bind(socket: &OwnedFd, at: Ipv4Addr, port: u16) -> io::Result<()> {
    Ok(net::bind(socket, &SocketAddrV4::new(at, port))?)
}

/// Listens on a port of an address.
pub fn listen(socket: &OwnedFd, at: Ipv4Addr, port: u16) -> io::Result<()> {
    bind(socket, at, port)?;
    Ok(net::listen(socket, BACKLOG)?)
}

/// Accepts a connection; `None` if none is waiting.
pub fn accept(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    would_block(net::accept_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC))
}

fn would_block<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Err(Errno::WOULDBLOCK) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Writes; returns `None` if there is no room.
pub fn send(socket: BorrowedFd<'_>, data: &[u8]) -> io::Result<Option<usize>> {
    would_block(net::send(socket, data, SendFlags::NOSIGNAL))
}

/// Takes up to the length of `room` in bytes out of the kernel, in order and without a copy: with MSG_TRUNC,
/// TCP writes nothing into `room`. Returns their number; zero is the end, `None` means that there is nothing
/// now.
pub fn discard(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<Option<usize>> {
    would_block(net::recv(socket, room, RecvFlags::TRUNC).map(|(_, taken)| taken))
}

/// Closes the sending direction.
pub fn finish(socket: BorrowedFd<'_>) {
    // If the other side has closed already, there is no peer to notify.
    let _ = net::shutdown(socket, Shutdown::Write);
}

/// Takes the first bytes of a datagram from a socket with SO_TIMESTAMPNS, enough to fill `data`; returns its
/// time of arrival, on the clock of [`wall_ns`]. Returns `None` if no datagram is waiting, or a shorter one.
pub fn receive_stamped(socket: &OwnedFd, data: &mut [u8]) -> Option<u64> {
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    let mut control = [0u64; 8];
    #[expect(unsafe_code, reason = "rustix does not have this control message")]
    // SAFETY: a zeroed header is valid; all data that it points to outlives the call, and its lengths are
    // correct; the only control message that was requested is a time.
    let arrived = unsafe {
        let mut header: libc::msghdr = zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) =
            (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        if libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) < data.len() as isize {
            return None;
        }
        let said = libc::CMSG_FIRSTHDR(&raw const header);
        (!said.is_null()).then(|| libc::CMSG_DATA(said).cast::<libc::timespec>().read_unaligned())
    };
    Some(arrived.map_or_else(wall_ns, |time| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64))
}

/// Waits for events on many sockets.
pub struct Poll(OwnedFd);

impl Poll {
    /// For no sockets yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a socket until it is closed; `key` identifies it.
    pub fn watch(&self, socket: &OwnedFd, readable: bool, writable: bool, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.0, socket, epoll::EventData::new_u64(key), flags(readable, writable))?)
    }

    /// Changes the events for which a socket is watched.
    pub fn change(&self, socket: &OwnedFd, readable: bool, writable: bool, key: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.0, socket, epoll::EventData::new_u64(key), flags(readable, writable))?)
    }

    /// The keys of sockets that are ready, after `longest` at most.
    pub fn wait(&self, longest: Time, ready: &mut Vec<u64>) -> io::Result<()> {
        let nanos = longest.picos().div_ceil(1000);
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ };
        let mut events = [const { MaybeUninit::uninit() }; 64];
        ready.clear();
        match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            Err(Errno::INTR) => {}
            found => ready.extend(found?.0.iter().map(|event| event.data.u64())),
        }
        Ok(())
    }
}

fn flags(readable: bool, writable: bool) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, readable);
    flags.set(epoll::EventFlags::OUT, writable);
    flags
}
