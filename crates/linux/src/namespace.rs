//! Network namespaces that live as long as this process, and the hosts in them.
//!
//! A namespace is made by a thread that leaves the process's own, and is held by a file descriptor alone. It has no name, no
//! mount, nothing on disk: when the descriptor closes, in an orderly end or because the process was killed, the kernel takes the
//! namespace away with its devices and sockets. So there is nothing to clean up. Its `/proc/sys/net` is its own; the host's
//! settings are never touched.

use std::fs::{self, File};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;

/// A network namespace.
pub struct Namespace(File);

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Namespace {
    /// A new one, with nothing in it but a loopback device that is up.
    pub fn new() -> io::Result<Self> {
        let made = thread::spawn(|| {
            // SAFETY: only this thread leaves its namespace, and it ends here.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            Device::by_name("lo").up()?;
            File::open("/proc/thread-self/ns/net")
        });
        Ok(Self(made.join().expect("it does not panic")?))
    }

    /// Moves the calling thread into it, for good. To be called at the start of a thread of its own.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: an open descriptor of a namespace.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
    }

    /// Carries out `work` in the namespace, on a thread of its own.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                self.enter()?;
                work()
            });
            working.join().expect("it does not panic")
        })
    }

    /// Sets keys below `/proc/sys/net/ipv4` of the namespace; those that this kernel does not have are left out.
    pub fn set_ipv4(&self, settings: &[(&str, String)]) -> io::Result<()> {
        self.within(|| {
            for (key, value) in settings {
                let path = format!("/proc/sys/net/ipv4/{key}");
                match fs::write(&path, value) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
                    Ok(()) => {}
                }
            }
            Ok(())
        })
    }
}

/// What the kernel counts of a device that the emulator cannot see.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceDrops {
    /// Packets that the host could not hand to the emulator.
    pub transmit: u64,
    /// Packets that the emulator could not hand to the host.
    pub receive: u64,
}

/// Reads `/proc/net/dev` of the calling thread's namespace.
pub fn device_drops(name: &str) -> io::Result<DeviceDrops> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    let counts: Vec<u64> =
        line.unwrap_or("").split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    // Columns of that file: eight of receiving, then eight of sending; drops are the fourth of each, errors the third.
    Ok(DeviceDrops { receive: at(2) + at(3), transmit: at(10) + at(11) })
}

/// A network device of the calling thread's namespace.
struct Device {
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Device {
    fn by_name(text: &str) -> Self {
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(text.bytes()) {
            *to = from as libc::c_char;
        }
        Self { name }
    }

    fn set(&self, request: libc::Ioctl, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
        // SAFETY: a zeroed ifreq is valid, and the descriptor is owned at once.
        unsafe {
            let socket = OwnedFd::from_raw_fd(check(libc::socket(
                libc::AF_INET,
                libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
                0,
            ))?);
            let mut arguments: libc::ifreq = zeroed();
            arguments.ifr_name = self.name;
            fill(&mut arguments);
            check(libc::ioctl(socket.as_raw_fd(), request, &raw mut arguments)).map(|_| ())
        }
    }

    fn up(&self) -> io::Result<()> {
        self.set(libc::SIOCSIFFLAGS, |r| r.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as _)
    }

    fn address(&self, request: libc::Ioctl, address: Ipv4Addr) -> io::Result<()> {
        self.set(request, |r| {
            // SAFETY: both kinds of socket address are plain bytes of the same length.
            r.ifr_ifru.ifru_addr = unsafe {
                std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(socket_address(address, 0))
            };
        })
    }

    /// Makes TCP hand over one segment at a time, by the netlink attribute that no ioctl has.
    fn segment_by_segment(&self) -> io::Result<()> {
        #[repr(C)]
        struct Message {
            header: libc::nlmsghdr,
            link: [u8; 16],
            attribute: [u16; 2],
            value: u32,
        }
        const IFLA_GSO_MAX_SEGS: u16 = 40;
        // SAFETY: the message is as netlink wants it: a header, an ifinfomsg with the device's number, one attribute.
        unsafe {
            let index = libc::if_nametoindex(self.name.as_ptr());
            let mut message =
                Message { header: zeroed(), link: [0; 16], attribute: [8, IFLA_GSO_MAX_SEGS], value: 1 };
            message.header.nlmsg_len = size_of::<Message>() as u32;
            message.header.nlmsg_type = libc::RTM_NEWLINK;
            message.header.nlmsg_flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
            message.link[4..8].copy_from_slice(&index.to_ne_bytes());
            let socket = OwnedFd::from_raw_fd(check(libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_ROUTE,
            ))?);
            let sent = libc::send(socket.as_raw_fd(), (&raw const message).cast(), size_of::<Message>(), 0);
            check(sent as libc::c_int)?;
            let mut answer = [0u8; 256];
            let got = libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0);
            check(got as libc::c_int)?;
            let code = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
            if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
        }
    }
}

/// An IPv4 address and a port as the kernel takes them.
pub fn socket_address(address: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    // SAFETY: a zeroed socket address is valid.
    let mut result: libc::sockaddr_in = unsafe { zeroed() };
    result.sin_family = libc::AF_INET as _;
    result.sin_port = port.to_be();
    result.sin_addr.s_addr = u32::from_ne_bytes(address.octets());
    result
}

/// The name of the device of both hosts; each is alone in its namespace.
pub const DEVICE: &str = "path";
/// Packets that the device holds until the emulator reads them; no more than a burst of the sender.
const DEVICE_QUEUE: libc::c_int = 50_000;

/// Makes a TUN device in the calling thread's namespace, from `own` address to `peer`, and returns the emulator's end of it.
pub fn tun(own: Ipv4Addr, peer: Ipv4Addr, mtu: u32, segment_by_segment: bool) -> io::Result<OwnedFd> {
    let device = Device::by_name(DEVICE);
    // SAFETY: a path that ends in zero; the descriptor is owned at once.
    let file = unsafe {
        OwnedFd::from_raw_fd(check(libc::open(
            c"/dev/net/tun".as_ptr(),
            libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC,
        ))?)
    };
    // SAFETY: a zeroed ifreq is valid.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        request.ifr_name = device.name;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as _;
        check(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request))?;
    }
    device.set(libc::SIOCSIFMTU, |r| r.ifr_ifru.ifru_mtu = mtu as _)?;
    device.set(libc::SIOCSIFTXQLEN, |r| r.ifr_ifru.ifru_metric = DEVICE_QUEUE)?;
    device.address(libc::SIOCSIFADDR, own)?;
    device.address(libc::SIOCSIFDSTADDR, peer)?;
    if segment_by_segment {
        device.segment_by_segment()?;
    }
    device.up()?;
    Ok(file)
}
