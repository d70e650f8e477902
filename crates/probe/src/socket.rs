//! UDP sockets with the kernel's time stamps. No call needs root.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use elephan_sys::wall_ns;
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, TimestampingFlag, Timestamps, recvmmsg,
    sendmmsg, setsockopt, sockopt as options,
};
use nix::sys::time::TimeSpec;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, Timeout};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, sendto, socket_with};

/// Datagrams that are read or written at once.
pub const BATCH: usize = 64;
/// The largest datagram that is read.
pub const MOST_BYTES: usize = 65_535;
/// What a receiver's socket should hold: 50 ms at 1 Gbit/s, twice over for the kernel's own overhead. Without root it gets
/// `net.core.rmem_max`; what it then drops is counted.
const BUFFER: usize = 16 << 20;
/// `SO_EE_ORIGIN_TIMESTAMPING` of include/uapi/linux/errqueue.h.
const FROM_TIMESTAMPING: u8 = 4;

/// Headers of IP and UDP.
pub fn header_bytes(v6: bool) -> u64 {
    if v6 { 48 } else { 28 }
}

/// Whether packets to an address have the headers of IPv6.
pub fn is_v6(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    }
}

/// A UDP socket. Its packets are never fragmented, whatever the kernel believes of the path's MTU.
pub struct Socket(OwnedFd);

/// A datagram that was received.
pub struct Received<'a> {
    pub bytes: &'a [u8],
    pub from: Option<SocketAddr>,
    pub at_ns: u64,
    /// Datagrams that the socket has dropped so far for want of space.
    pub overflowed: u32,
}

impl Socket {
    fn new(family: AddressFamily, transmit_stamps: bool) -> io::Result<Self> {
        let fd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if family == AddressFamily::INET6 {
            sockopt::set_ipv6_mtu_discover(&fd, Ipv6PathMtuDiscovery::PROBE)?;
        }
        // On a socket for both, this is for packets of IPv4; one for IPv6 alone may refuse it.
        let v4 = sockopt::set_ip_mtu_discover(&fd, Ipv4PathMtuDiscovery::PROBE);
        if family == AddressFamily::INET {
            v4?;
        }
        if sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, BUFFER)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&fd, BUFFER).is_err() {
            sockopt::set_socket_send_buffer_size(&fd, BUFFER)?;
        }
        let mut flags =
            TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE;
        if transmit_stamps {
            flags |= TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
        }
        setsockopt(&fd, options::Timestamping, &flags)?;
        setsockopt(&fd, options::RxqOvfl, &1)?;
        Ok(Self(fd))
    }

    /// A server's socket: for one address, or for all of both families where the system has IPv6.
    pub fn server(at: SocketAddr) -> io::Result<Self> {
        let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = Self::new(family, false)?;
        if at.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
            sockopt::set_ipv6_v6only(&socket.0, false)?;
        }
        bind(&socket.0, &at)?;
        sockopt::set_socket_timeout(&socket.0, Timeout::Recv, Some(Duration::from_millis(50)))?;
        Ok(socket)
    }

    /// A client's socket, which speaks with one address.
    pub fn client(to: SocketAddr) -> io::Result<Self> {
        let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = Self::new(family, true)?;
        connect(&socket.0, &to)?;
        Ok(socket)
    }

    /// Waits for datagrams, if `wait` as long as the socket's time-out, and hands over those that are there.
    pub fn receive(
        &self,
        buffers: &mut [Vec<u8>],
        wait: bool,
        mut each: impl FnMut(&Received<'_>),
    ) -> io::Result<usize> {
        let flags = if wait { MsgFlags::MSG_WAITFORONE } else { MsgFlags::MSG_DONTWAIT };
        // The kernel writes into the headers how much of them it used, so they serve once.
        let mut headers =
            MultiHeaders::<SockaddrStorage>::preallocate(buffers.len(), Some(cmsg_space!(Timestamps, u32)));
        let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let received = recvmmsg(self.0.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None);
        let mut count = 0;
        for message in nothing_is_empty(received.map_err(io::Error::from))?.into_iter().flatten() {
            let (mut at_ns, mut overflowed) = (wall_ns(), 0);
            for control in message.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampsns(stamps) => at_ns = nanos(&stamps.system),
                    ControlMessageOwned::RxqOvfl(count) => overflowed = count,
                    _ => {}
                }
            }
            let from = message.address.as_ref().and_then(address);
            each(&Received { bytes: message.iovs().next().unwrap_or(&[]), from, at_ns, overflowed });
            count += 1;
        }
        Ok(count)
    }

    /// The time stamps of packets that were sent: number of the packet, counted by the socket, and when it was handed to the device.
    pub fn transmitted(&self, mut each: impl FnMut(u32, u64)) -> io::Result<usize> {
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(
            BATCH,
            Some(cmsg_space!(Timestamps, libc::sock_extended_err, libc::sockaddr_in6)),
        );
        let mut nothing = [[0_u8; 1]; BATCH];
        let mut slices: Vec<_> = nothing.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let received = recvmmsg(self.0.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None);
        let mut count = 0;
        for message in nothing_is_empty(received.map_err(io::Error::from))?.into_iter().flatten() {
            let (mut at, mut number) = (None, None);
            for control in message.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::ScmTimestampsns(stamps) => at = Some(nanos(&stamps.system)),
                    ControlMessageOwned::Ipv4RecvErr(error, _)
                    | ControlMessageOwned::Ipv6RecvErr(error, _)
                        if error.ee_origin == FROM_TIMESTAMPING =>
                    {
                        number = Some(error.ee_data);
                    }
                    _ => {}
                }
            }
            if let (Some(at), Some(number)) = (at, number) {
                each(number, at);
            }
            count += 1;
        }
        Ok(count)
    }

    /// Sends datagrams at once; returns how many the kernel took. An error is that of the first.
    pub fn send(&self, datagrams: &[&[u8]]) -> io::Result<usize> {
        let mut headers = MultiHeaders::<()>::preallocate(datagrams.len(), None);
        let slices: Vec<_> = datagrams.iter().map(|bytes| [IoSlice::new(bytes)]).collect();
        let to = vec![None; datagrams.len()];
        let sent = sendmmsg(self.0.as_raw_fd(), &mut headers, slices.iter(), &to, [], MsgFlags::empty())?;
        Ok(sent.count())
    }

    /// Sends one datagram to an address.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        sendto(&self.0, bytes, SendFlags::DONTWAIT, &to)?;
        Ok(())
    }

    /// The port that it has.
    pub fn port(&self) -> io::Result<u16> {
        let name = rustix::net::getsockname(self.0.as_fd())?;
        Ok(SocketAddr::try_from(name)?.port())
    }
}

/// Nothing has come, or an earlier datagram found nobody: neither is an error of receiving.
fn nothing_is_empty<T>(received: io::Result<T>) -> io::Result<Option<T>> {
    match received {
        Ok(received) => Ok(Some(received)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn nanos(time: &TimeSpec) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from.as_sockaddr_in().map(|from| SocketAddr::new(from.ip().into(), from.port()));
    v4.or_else(|| from.as_sockaddr_in6().map(|&from| SocketAddrV6::from(from).into()))
}

/// Where a server listens: at an address, or everywhere.
pub fn everywhere(at: Option<IpAddr>, port: u16) -> Vec<SocketAddr> {
    match at {
        Some(at) => vec![SocketAddr::new(at, port)],
        None => vec![
            SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
            SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        ],
    }
}
