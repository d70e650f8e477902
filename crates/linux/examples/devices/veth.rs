//! Veth pairs from the calling thread's namespace to the hosts.

use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::Command;

use crate::namespace::Namespace;
use crate::socket;

/// Makes a pair to a host, whose addresses below IP are all the same: there is but one listener.
pub fn pair(host: &Namespace, device: &str, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
    // SAFETY: a plain call.
    let here = unsafe { libc::gettid() };
    host.within(|| {
        ip(&format!("link add host type veth peer name {device} netns {here}"))?;
        ip("link set host address 02:00:00:00:00:01 arp off mtu 1500 gso_max_segs 1 txqueuelen 50000 up")?;
        ip(&format!("addr add {own} peer {peer} dev host"))?;
        without_offloads("host")
    })?;
    ip(&format!("link set {device} up"))
}

/// The number of a device of the calling thread's namespace.
pub fn index(device: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(device)?;
    // SAFETY: a string that ends in zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

fn ip(line: &str) -> io::Result<()> {
    let done = Command::new("ip").args(line.split_whitespace()).status()?;
    if done.success() { Ok(()) } else { Err(io::Error::other(format!("ip {line}"))) }
}

/// Has the sending host compute checksums itself: nobody in user space would.
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
