//! The TCP sockets of this network namespace, by sock_diag(7): whom they connect, and their `TCP_INFO`.
//!
//! Linux answers any user. Messages: include/uapi/linux/inet_diag.h and sock_diag.h.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use crate::tcp_info::{TcpInfo, from_bytes};

const SOCK_DIAG_BY_FAMILY: i32 = 20;
/// Attributes of a socket (`INET_DIAG_INFO`, `INET_DIAG_CONG`), and a request for them: a bit for each, from 1 on.
const INFO: u16 = 2;
const CONG: u16 = 4;
const ATTRIBUTES: u8 = 1 << (INFO - 1) | 1 << (CONG - 1);
/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, as bits from 1 on.
const DESTROYED: u32 = 1 << 0 | 1 << 2;
/// States of include/net/tcp_states.h.
pub const SYN_SENT: u8 = 2;
const SYN_RECV: u8 = 3;
const FIN_WAIT1: u8 = 4;
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const LAST_ACK: u8 = 9;
pub const LISTEN: u8 = 10;
const CLOSING: u8 = 11;
/// All states but those of sockets that a program does not have.
const WITH_A_PROGRAM: u32 = 0xfff & !(1 << SYN_RECV | 1 << TIME_WAIT | 1 << CLOSE);
/// `struct nlmsghdr`, `struct inet_diag_msg`, and where that has the identity of the socket and its inode.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
const ID: usize = 4;
const ID_BYTES: usize = 48;
const INODE: usize = 68;
/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
const REQUEST: usize = HEADER + 8 + ID_BYTES;
/// The kernel writes no more at once (`netlink_dump`).
const MOST_BYTES: usize = 1 << 15;

/// A TCP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    family: u8,
    /// Its state, as the kernel numbers them.
    pub state: u8,
    /// `struct inet_diag_sockid`.
    id: [u8; ID_BYTES],
    /// The inode by which processes have it; zero if none has.
    pub inode: u32,
    /// If it was asked for, and the kernel permits it.
    pub info: Option<TcpInfo>,
    /// The kernel's name of the congestion control.
    pub cc: String,
}

impl Socket {
    /// What no other socket has, as long as the kernel runs.
    pub fn cookie(&self) -> u64 {
        number(&self.id, 40).map_or(0, u64::from_ne_bytes)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        number(&self.id, 0).map_or(0, u16::from_be_bytes)
    }

    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        let port = number(&self.id, 2).map_or(0, u16::from_be_bytes);
        let address = if i32::from(self.family) == libc::AF_INET {
            IpAddr::V4(Ipv4Addr::from(number(&self.id, 20).unwrap_or_default()))
        } else {
            IpAddr::V6(Ipv6Addr::from(number(&self.id, 20).unwrap_or_default()))
        };
        SocketAddr::new(address.to_canonical(), port)
    }

    /// Whether it is what the kernel keeps of a connection after its end (`struct inet_timewait_sock`).
    fn is_remnant(&self) -> bool {
        self.info.is_none() && [FIN_WAIT2, TIME_WAIT].contains(&self.state)
    }

    /// Whether data may be on their way although the program has closed it.
    pub fn drains(&self) -> bool {
        [FIN_WAIT1, LAST_ACK, CLOSING].contains(&self.state)
    }
}

/// A message of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    Socket(Box<Socket>),
    /// The end of a list, or the outcome of a request: zero, or an error.
    End(i32),
    Other,
}

/// The bytes of a number at a place.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Takes what has the given length off the front of messages or attributes, which begin at multiples of four bytes, and
/// returns what follows its header.
fn take<'a>(bytes: &mut &'a [u8], length: usize, header: usize) -> Option<&'a [u8]> {
    let body = bytes.get(header..length)?;
    *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some(body)
}

/// Reads a message, with the number of its request, and takes it off the front; none if its lengths are wrong.
fn read(bytes: &mut &[u8]) -> Option<(u32, Message)> {
    let length = u32::from_ne_bytes(number(bytes, 0)?) as usize;
    let kind = u16::from_ne_bytes(number(bytes, 4)?);
    let asked = u32::from_ne_bytes(number(bytes, 8)?);
    let body = take(bytes, length, HEADER)?;
    let message = match i32::from(kind) {
        SOCK_DIAG_BY_FAMILY => Message::Socket(Box::new(socket(body)?)),
        libc::NLMSG_DONE | libc::NLMSG_ERROR => Message::End(i32::from_ne_bytes(number(body, 0)?)),
        _ => Message::Other,
    };
    Some((asked, message))
}

fn socket(body: &[u8]) -> Option<Socket> {
    let (fixed, mut attributes) = body.split_at_checked(MESSAGE)?;
    let mut socket = Socket {
        family: fixed[0],
        state: fixed[1],
        id: number(fixed, ID)?,
        inode: u32::from_ne_bytes(number(fixed, INODE)?),
        info: None,
        cc: String::new(),
    };
    while !attributes.is_empty() {
        let length = u16::from_ne_bytes(number(attributes, 0)?);
        let kind = u16::from_ne_bytes(number(attributes, 2)?);
        let value = take(&mut attributes, length.into(), 4)?;
        match kind {
            INFO => socket.info = Some(from_bytes(value)),
            CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                socket.cc = String::from_utf8_lossy(name).into_owned();
            }
            _ => {}
        }
    }
    Some(socket)
}

/// A request: the list of all sockets of a family, or one of them with its attributes.
fn request(asked: u32, family: u8, id: Option<&[u8; ID_BYTES]>) -> Vec<u8> {
    let (more, attributes) = if id.is_none() { (libc::NLM_F_DUMP, 0) } else { (0, ATTRIBUTES) };
    let mut bytes = Vec::with_capacity(REQUEST);
    bytes.extend((REQUEST as u32).to_ne_bytes());
    bytes.extend((SOCK_DIAG_BY_FAMILY as u16).to_ne_bytes());
    bytes.extend(((libc::NLM_F_REQUEST | more) as u16).to_ne_bytes());
    bytes.extend(asked.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([family, libc::IPPROTO_TCP as u8, attributes, 0]);
    bytes.extend(WITH_A_PROGRAM.to_ne_bytes());
    bytes.extend(id.unwrap_or(&[0; ID_BYTES]));
    bytes
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "expected a message of sock_diag, found another")
}

/// Asks the kernel for sockets.
pub struct Diag {
    requests: OwnedFd,
    /// Where the kernel reports sockets that it removes.
    removed: OwnedFd,
    buffer: Vec<u8>,
    /// The number of the last request.
    asked: u32,
}

impl Diag {
    /// Fails where the kernel does not have it.
    pub fn open() -> io::Result<Self> {
        let open = |flags| {
            let protocol = Some(netlink::SOCK_DIAG);
            socket_with(AddressFamily::NETLINK, SocketType::RAW, flags | SocketFlags::CLOEXEC, protocol)
        };
        let (requests, removed) = (open(SocketFlags::empty())?, open(SocketFlags::NONBLOCK)?);
        bind(&removed, &SocketAddrNetlink::new(0, DESTROYED))?;
        let mut diag = Self { requests, removed, buffer: vec![0; MOST_BYTES], asked: 0 };
        diag.list()?;
        Ok(diag)
    }

    /// All sockets that a program has, without their `TCP_INFO`.
    pub fn list(&mut self) -> io::Result<Vec<Socket>> {
        let mut sockets = self.ask(libc::AF_INET as u8, None)?;
        match self.ask(libc::AF_INET6 as u8, None) {
            Ok(more) => sockets.extend(more),
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(sockets)
    }

    /// A socket as it is now, with `TCP_INFO`; none if it is no more.
    pub fn look(&mut self, socket: &Socket) -> io::Result<Option<Socket>> {
        match self.ask(socket.family, Some(&socket.id)) {
            Ok(sockets) => Ok(sockets.into_iter().find(|now| now.id == socket.id && !now.is_remnant())),
            Err(error) if [Some(libc::ENOENT), Some(libc::ESTALE)].contains(&error.raw_os_error()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The sockets that the kernel has removed since the last call, as they were then.
    pub fn removed(&mut self) -> io::Result<Vec<Socket>> {
        let mut sockets = Vec::new();
        loop {
            match recv(&self.removed, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => {
                    let mut bytes = &self.buffer[..length];
                    while !bytes.is_empty() {
                        if let (_, Message::Socket(socket)) = read(&mut bytes).ok_or_else(damaged)? {
                            sockets.push(*socket);
                        }
                    }
                }
                Err(Errno::AGAIN) => return Ok(sockets),
                // There were more than the kernel keeps; the last look at them counts.
                Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ask(&mut self, family: u8, id: Option<&[u8; ID_BYTES]>) -> io::Result<Vec<Socket>> {
        self.asked = self.asked.wrapping_add(1);
        send(&self.requests, &request(self.asked, family, id), SendFlags::empty())?;
        let mut sockets = Vec::new();
        loop {
            let length = match recv(&self.requests, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut bytes = &self.buffer[..length];
            while !bytes.is_empty() {
                match read(&mut bytes).ok_or_else(damaged)? {
                    // Of a request that failed before.
                    (asked, _) if asked != self.asked => {}
                    (_, Message::End(0)) => return Ok(sockets),
                    (_, Message::End(error)) => {
                        return Err(io::Error::from_raw_os_error(error.saturating_neg()));
                    }
                    (_, Message::Socket(socket)) if id.is_some() => return Ok(vec![*socket]),
                    (_, Message::Socket(socket)) => sockets.push(*socket),
                    (_, Message::Other) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: i32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend((kind as u16).to_ne_bytes());
        bytes.extend([0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// 10.0.0.1:40000 to 10.0.0.2:873, established, of inode 77.
    fn body() -> Vec<u8> {
        let mut bytes = vec![libc::AF_INET as u8, 1, 0, 0];
        bytes.extend(40_000_u16.to_be_bytes());
        bytes.extend(873_u16.to_be_bytes());
        for address in [[10, 0, 0, 1], [10, 0, 0, 2]] {
            bytes.extend(address);
            bytes.extend([0; 12]);
        }
        bytes.extend([0; 4]);
        bytes.extend(0x1234_5678_9abc_u64.to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(77_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_socket_is_read() {
        // An old kernel knows less of it: up to the window (`tcpi_snd_cwnd`).
        let mut info = vec![0; 84];
        info[80..].copy_from_slice(&10_u32.to_ne_bytes());
        let bytes = [body(), attribute(9, &[7]), attribute(INFO, &info), attribute(CONG, b"htcp\0")].concat();
        let bytes = [message(SOCK_DIAG_BY_FAMILY, &bytes), message(libc::NLMSG_DONE, &[0; 4])].concat();
        let mut rest = &bytes[..];
        let Some((7, Message::Socket(socket))) = read(&mut rest) else { panic!("a socket") };
        assert_eq!(socket.peer(), "10.0.0.2:873".parse().unwrap());
        assert_eq!((socket.port(), socket.inode, socket.cookie()), (40_000, 77, 0x1234_5678_9abc));
        assert_eq!((socket.cc.as_str(), socket.state), ("htcp", 1));
        let info = socket.info.unwrap();
        assert_eq!((info.snd_cwnd, info.bytes_acked, info.timeouts()), (10, 0, None));
        assert_eq!(read(&mut rest), Some((7, Message::End(0))));
        assert!(rest.is_empty());
    }

    #[test]
    fn the_end_of_a_list_has_its_error() {
        let bytes = message(libc::NLMSG_DONE, &(-libc::ENOENT).to_ne_bytes());
        assert_eq!(read(&mut &bytes[..]), Some((7, Message::End(-libc::ENOENT))));
    }

    #[test]
    fn addresses_of_ipv6_are_read_and_those_of_ipv4_in_it_are_shown_as_such() {
        for (address, shown) in [("::ffff:10.0.0.9", "10.0.0.9:873"), ("2001:db8::1", "[2001:db8::1]:873")] {
            let mut bytes = body();
            bytes[0] = libc::AF_INET6 as u8;
            bytes[24..40].copy_from_slice(&address.parse::<Ipv6Addr>().unwrap().octets());
            assert_eq!(socket(&bytes).unwrap().peer().to_string(), shown);
        }
    }

    #[test]
    fn wrong_lengths_are_no_message() {
        let whole = [body(), attribute(INFO, &[1; 8])].concat();
        let bytes = message(SOCK_DIAG_BY_FAMILY, &whole);
        for length in 0..bytes.len() {
            assert_eq!(read(&mut &bytes[..length]), None, "{length} bytes");
        }
        for length in [0, 15, bytes.len() as u32 + 1, u32::MAX] {
            let mut bytes = bytes.clone();
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(read(&mut &bytes[..]), None, "a length of {length}");
        }
        for length in [0_u16, 3, 13, u16::MAX] {
            let mut bytes = whole.clone();
            bytes[MESSAGE..MESSAGE + 2].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(socket(&bytes), None, "an attribute of {length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..24) {
            for bytes in [bytes.clone(), message(kind, &bytes), message(20, &[body(), bytes].concat())] {
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let before = rest.len();
                    if read(&mut rest).is_none() {
                        break;
                    }
                    prop_assert!(rest.len() < before);
                }
            }
        }
    }
}
