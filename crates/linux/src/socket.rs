//! Sockets of the two hosts.

use std::ffi::CString;
use std::io;
use std::mem::{size_of, size_of_val};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::namespace::socket_address;

/// Takes a system call's answer.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A TCP socket that does not block.
pub fn tcp() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the descriptor is owned at once.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?)) }
}

/// Sets an option that is a number.
pub fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value is as long as it says.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    })
    .map(|_| ())
}

/// Chooses the congestion control by the name that it registered with the kernel.
pub fn set_congestion_control(socket: &OwnedFd, name: &str) -> io::Result<()> {
    let text = CString::new(name).expect("names have no zero in them");
    // SAFETY: the text is as long as it says.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            text.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    check(result).map(|_| ()).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("congestion control \"{name}\": expected the kernel to have it: {error}"),
        )
    })
}

/// Begins to connect.
pub fn connect(socket: &OwnedFd, to: Ipv4Addr, port: u16) -> io::Result<()> {
    let address = socket_address(to, port);
    // SAFETY: the address is as long as it says.
    let result = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    match check(result) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Listens at a port of an address.
pub fn listen(socket: &OwnedFd, at: Ipv4Addr, port: u16) -> io::Result<()> {
    let address = socket_address(at, port);
    // SAFETY: the address is as long as it says.
    unsafe {
        check(libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        ))?;
        check(libc::listen(socket.as_raw_fd(), 64)).map(|_| ())
    }
}

/// Takes a connection; none where none waits.
pub fn accept(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    // SAFETY: no address is asked for, and the descriptor is owned at once.
    unsafe {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let got = libc::accept4(socket.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags);
        would_block(check(got)).map(|got| got.map(|fd| OwnedFd::from_raw_fd(fd)))
    }
}

fn would_block<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}

/// Writes; none where there is no room.
pub fn send(socket: BorrowedFd<'_>, data: &[u8]) -> io::Result<Option<usize>> {
    // SAFETY: the data are as long as it says.
    let sent =
        unsafe { libc::send(socket.as_raw_fd(), data.as_ptr().cast(), data.len(), libc::MSG_NOSIGNAL) };
    let result = if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) };
    would_block(result)
}

/// Takes data in order out of the kernel without a copy of them; zero is the end, none that there is nothing now.
pub fn discard(socket: BorrowedFd<'_>) -> io::Result<Option<usize>> {
    const MOST: usize = 1 << 20;
    // SAFETY: with MSG_TRUNC, TCP writes nothing.
    let got = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), MOST, libc::MSG_TRUNC) };
    let result = if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as usize) };
    would_block(result)
}

/// Says that no more will be written.
pub fn finish(socket: BorrowedFd<'_>) {
    // SAFETY: a plain call. Where the other side has gone already there is nobody to tell.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_WR) };
}

/// Waits for many sockets.
pub struct Poll(OwnedFd);

impl Poll {
    /// For none yet.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the descriptor is owned at once.
        unsafe { Ok(Self(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    /// Watches a socket, until it is closed; `key` names it.
    pub fn watch(&self, socket: &OwnedFd, readable: bool, writable: bool, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, readable, writable, key)
    }

    /// Watches a known socket for something else.
    pub fn change(&self, socket: &OwnedFd, readable: bool, writable: bool, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, readable, writable, key)
    }

    fn control(
        &self,
        how: libc::c_int,
        socket: &OwnedFd,
        readable: bool,
        writable: bool,
        key: u64,
    ) -> io::Result<()> {
        let read = if readable { libc::EPOLLIN } else { 0 };
        let write = if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: (read | write) as u32, u64: key };
        // SAFETY: both descriptors are open.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), how, socket.as_raw_fd(), &raw mut event) })
            .map(|_| ())
    }

    /// The keys of sockets that are ready, after at most `milliseconds`.
    pub fn wait(&self, milliseconds: i32, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: room for as many events as it says.
        let count = check(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as _, milliseconds)
        });
        ready.clear();
        match count {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            count => {
                ready.extend(events[..count? as usize].iter().map(|event| event.u64));
                Ok(())
            }
        }
    }
}
