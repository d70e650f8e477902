//! The network device of a host, whose other end is the emulator's.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::ioctl::{Updater, ioctl};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// The name of the device of both hosts; each is the only one in its namespace.
pub const DEVICE: &str = "path";
/// Packets that the device holds until the emulator reads them; a burst of the sender is not larger. It is
/// also the maximum that the kernel accepts since Linux 6.12.117.
const DEVICE_QUEUE: u32 = 32_767;
/// Maximum number of segments that TCP passes to the device at once. Not in `libc`
/// (include/uapi/linux/if_link.h).
const IFLA_GSO_MAX_SEGS: u16 = 40;
/// Initial window of the connections on a route. Not in `libc` (include/uapi/linux/rtnetlink.h).
const RTAX_INITCWND: u16 = 11;
/// The other end of a pair of virtual Ethernet devices. Not in `libc` (include/uapi/linux/veth.h).
const VETH_INFO_PEER: u16 = 1;

/// Kernel counters of a device for losses that the emulator cannot see.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceDrops {
    /// Packets that the host could not pass to the emulator.
    pub transmit: u64,
    /// Packets that the emulator could not pass to the host.
    pub receive: u64,
}

/// Reads `/proc/net/dev` of the calling thread's namespace.
pub fn device_drops(name: &str) -> io::Result<DeviceDrops> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    let counts: Vec<u64> =
        line.unwrap_or("").split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let at = |index: usize| counts.get(index).copied().unwrap_or(0);
    // Columns of that file: eight for receiving, then eight for sending; drops are the fourth of each, errors
    // the third.
    Ok(DeviceDrops { receive: at(2) + at(3), transmit: at(10) + at(11) })
}

/// A network device of the calling thread's namespace, configured by messages of rtnetlink(7).
struct Device {
    netlink: OwnedFd,
    index: u32,
}

impl Device {
    fn by_name(name: &str) -> io::Result<Self> {
        // A protocol of none is NETLINK_ROUTE, which is 0.
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let index = name_to_index(&netlink, name)?;
        Ok(Self { netlink, index })
    }

    fn up(&self) -> io::Result<()> {
        // All other flags off.
        self.link((libc::IFF_UP | libc::IFF_RUNNING) as u32, u32::MAX, &[])
    }

    fn set(&self, attributes: &[(u16, u32)]) -> io::Result<()> {
        let attributes: Vec<_> =
            attributes.iter().map(|&(kind, value)| (kind, value.to_ne_bytes().to_vec())).collect();
        self.link(0, 0, &attributes)
    }

    /// The address of this end, and that of the other end.
    fn address(&self, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
        // struct ifaddrmsg: family, length of the prefix, flags, scope, device.
        let mut message = [libc::AF_INET as u8, 32, 0, 0, 0, 0, 0, 0];
        message[4..].copy_from_slice(&self.index.to_ne_bytes());
        let attributes =
            [(libc::IFA_LOCAL, own.octets().to_vec()), (libc::IFA_ADDRESS, peer.octets().to_vec())];
        self.ask(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &message, &attributes)
    }

    /// Sets the `flags` selected by `change`, and `attributes`.
    fn link(&self, flags: u32, change: u32, attributes: &[(u16, Vec<u8>)]) -> io::Result<()> {
        // struct ifinfomsg: family, type, device, flags, change.
        let message = [0, self.index, flags, change].map(u32::to_ne_bytes).concat();
        self.ask(libc::RTM_NEWLINK, 0, &message, attributes)
    }

    fn route(&self, own: Ipv4Addr, peer: Ipv4Addr, initial_window: u32) -> io::Result<()> {
        // struct rtmsg: family, length of the prefix, that of the source, TOS, table, protocol, scope, type,
        // flags.
        let mut message =
            [libc::AF_INET as u8, 32, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_KERNEL, 0, 0, 0, 0, 0, 0];
        (message[6], message[7]) = (libc::RT_SCOPE_LINK, libc::RTN_UNICAST);
        let attributes = [
            (libc::RTA_DST, peer.octets().to_vec()),
            (libc::RTA_PREFSRC, own.octets().to_vec()),
            (libc::RTA_OIF, self.index.to_ne_bytes().to_vec()),
            (libc::RTA_METRICS, attribute(RTAX_INITCWND, &initial_window.to_ne_bytes())),
        ];
        self.ask(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &message, &attributes)
    }

    /// Sends a message with attributes, and waits for the kernel's answer.
    fn ask(&self, kind: u16, flags: i32, message: &[u8], attributes: &[(u16, Vec<u8>)]) -> io::Result<()> {
        // struct nlmsghdr: length, type, flags, number, sender.
        const HEADER: usize = 16;
        let attributes = attributes.iter().map(|(kind, value)| attribute(*kind, value)).collect::<Vec<_>>();
        let length = HEADER + message.len() + attributes.iter().map(Vec::len).sum::<usize>();
        let mut request = Vec::with_capacity(length);
        request.extend((length as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16).to_ne_bytes());
        request.extend([0; 8]);
        request.extend(message);
        request.extend(attributes.concat());
        send(&self.netlink, &request, SendFlags::empty())?;
        // A header, and an error number: zero for success.
        let mut answer = [0; 256];
        recv(&self.netlink, &mut answer, RecvFlags::empty())?;
        let code = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
    }
}

/// An attribute of a message, filled up to a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let filling = vec![0; value.len().next_multiple_of(4) - value.len()];
    [&(4 + value.len() as u16).to_ne_bytes(), &kind.to_ne_bytes(), value, &filling].concat()
}

/// Makes a pair of virtual Ethernet devices: `own` in the calling thread's namespace, and `peer` in the
/// namespace of a descriptor.
pub fn veth(own: &str, peer: &str, namespace: RawFd) -> io::Result<()> {
    let name = |name: &str| attribute(libc::IFLA_IFNAME, format!("{name}\0").as_bytes());
    let into = attribute(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes());
    // struct ifinfomsg: nothing is known of devices that do not exist.
    let new = [0; 16];
    let other = attribute(VETH_INFO_PEER, &[new.as_slice(), &name(peer), &into].concat());
    let kind = [attribute(libc::IFLA_INFO_KIND, b"veth"), attribute(libc::IFLA_INFO_DATA, &other)].concat();
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let attributes = [(libc::IFLA_IFNAME, format!("{own}\0").into_bytes()), (libc::IFLA_LINKINFO, kind)];
    let device = Device { netlink, index: 0 };
    device.ask(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &new, &attributes)
}

/// Gives a device of the calling thread's namespace its address, that of the other end and its MTU, and brings it up.
pub fn configure_veth(name: &str, own: Ipv4Addr, peer: Ipv4Addr, mtu: u32) -> io::Result<()> {
    let device = Device::by_name(name)?;
    device.set(&[(libc::IFLA_MTU, mtu)])?;
    device.address(own, peer)?;
    device.up()
}

/// Brings up the loopback device of the calling thread's namespace.
pub fn loopback() -> io::Result<()> {
    Device::by_name("lo")?.up()
}

/// Configures the device of the calling thread's namespace, from its `own` addresses to the `peer`, and brings it
/// up. TCP sends at most `gso_max_segs` segments at once, or as many as it likes; the kernel cuts them into packets before the
/// device gets them.
pub fn configure(own: &[Ipv4Addr], peer: Ipv4Addr, mtu: u32, gso_max_segs: Option<u32>) -> io::Result<()> {
    let device = Device::by_name(DEVICE)?;
    device.set(&[(libc::IFLA_MTU, mtu)])?;
    if let Some(most) = gso_max_segs {
        device.set(&[(IFLA_GSO_MAX_SEGS, most)])?;
    }
    for &own in own {
        device.address(own, peer)?;
    }
    device.up()
}

/// Routes packets to `peer` over the device of the calling thread's namespace, from its `own` address, and sets the
/// initial window of connections, segments. Replaces the route that the kernel has made with the addresses.
pub fn route(own: Ipv4Addr, peer: Ipv4Addr, initial_window: u32) -> io::Result<()> {
    Device::by_name(DEVICE)?.route(own, peer, initial_window)
}

/// Makes a TUN device in the calling thread's namespace, and returns the emulator's end of it.
pub fn tun() -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as _ },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(DEVICE.bytes()) {
        *to = from as libc::c_char;
    }
    #[expect(unsafe_code, reason = "rustix has no ioctl of TUN devices")]
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    unsafe {
        ioctl(&file, Updater::<{ libc::TUNSETIFF as _ }, libc::ifreq>::new(&mut request))?;
    }
    Device::by_name(DEVICE)?.set(&[(libc::IFLA_TXQLEN, DEVICE_QUEUE)])?;
    Ok(file.into())
}
