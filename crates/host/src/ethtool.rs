//! What the driver of a network device tells: the requests of ethtool(8) that read (include/uapi/linux/ethtool.h), and switches
//! of offloads for devices of our own.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use serde::{Deserialize, Serialize};

/// Requests, which `libc` does not have.
const GET_DRIVER: u32 = 0x03;
const GET_COALESCE: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;
/// `struct ethtool_drvinfo`, `ethtool_coalesce` and `ethtool_ringparam` in words of 32 bits.
const DRIVER_WORDS: usize = 49;
const COALESCE_WORDS: usize = 23;
const RINGS_WORDS: usize = 9;

/// What the driver of a device reports; `None` where it reports nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// The driver's name.
    pub driver: Option<String>,
    /// The coalescing of interrupts.
    pub coalesce: Option<Coalesce>,
    /// The rings of packets.
    pub rings: Option<Rings>,
    /// Which offloads are on.
    pub offloads: [(Feature, Option<bool>); 5],
}

/// How long, and for how many packets, an interrupt waits.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Coalesce {
    /// Time from the first packet received, us.
    pub receive_us: u32,
    /// Packets received.
    pub receive_packets: u32,
    /// Time from the first packet sent, us.
    pub send_us: u32,
    /// Packets sent.
    pub send_packets: u32,
    /// Whether the driver adapts the receiving side to the load.
    pub adaptive_receive: bool,
    /// The same of the sending side.
    pub adaptive_send: bool,
}

/// Packets that the device holds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rings {
    /// Received ones.
    pub receive: u32,
    /// At most.
    pub receive_most: u32,
    /// To be sent.
    pub send: u32,
    /// At most.
    pub send_most: u32,
}

/// An offload, by its name for ethtool(8): the kernel's work that a device does, or that is done for many packets at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// Checksums of packets sent.
    Tx,
    /// Checksums of packets received.
    Rx,
    /// Cutting TCP's data into packets in the device.
    Tso,
    /// Cutting it just before the device.
    Gso,
    /// Merging packets received.
    Gro,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tx, Self::Rx, Self::Tso, Self::Gso, Self::Gro];

    /// The request that reads it; the next number sets it.
    fn request(self) -> u32 {
        match self {
            Self::Tx => 0x16,
            Self::Rx => 0x14,
            Self::Tso => 0x1e,
            Self::Gso => 0x23,
            Self::Gro => 0x2b,
        }
    }
}

/// What the driver of a device of the calling thread's namespace tells. An error if there is no such device.
pub fn device(name: &str) -> io::Result<Device> {
    rustix::net::netdevice::name_to_index(UdpSocket::bind("127.0.0.1:0")?, name)?;
    let coalesce = ask::<COALESCE_WORDS>(name, GET_COALESCE, 0).ok().map(|words| Coalesce {
        receive_us: words[1],
        receive_packets: words[2],
        send_us: words[5],
        send_packets: words[6],
        adaptive_receive: words[10] != 0,
        adaptive_send: words[11] != 0,
    });
    let rings = ask::<RINGS_WORDS>(name, GET_RINGS, 0).ok().map(|words| Rings {
        receive: words[5],
        receive_most: words[1],
        send: words[8],
        send_most: words[4],
    });
    let driver = ask::<DRIVER_WORDS>(name, GET_DRIVER, 0).ok().map(|words| {
        // The name is the 32 bytes after the request.
        let bytes: Vec<u8> =
            words[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let offloads = Feature::ALL
        .map(|feature| (feature, ask::<2>(name, feature.request(), 0).ok().map(|words| words[1] != 0)));
    Ok(Device { driver, coalesce, rings, offloads })
}

/// Switches an offload of a device of the calling thread's namespace: one of our own.
pub fn switch(name: &str, feature: Feature, on: bool) -> io::Result<()> {
    ask::<2>(name, feature.request() + 1, u32::from(on)).map(drop)
}

/// A request with a value, and its answer in words of 32 bits.
fn ask<const WORDS: usize>(name: &str, request: u32, value: u32) -> io::Result<[u32; WORDS]> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut words = [0_u32; WORDS];
    (words[0], words[1]) = (request, value);
    let mut of_device = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: words.as_mut_ptr().cast() },
    };
    // The last byte stays zero.
    for (to, from) in of_device.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    #[expect(unsafe_code, reason = "rustix has no ioctl with a pointer within its argument")]
    // SAFETY: both structures outlive the call, and the kernel writes no more than that of the request, which `WORDS` has.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut of_device) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::veth::{Cable, SENDER};

    #[test]
    fn the_loopback_device_tells_its_offloads_and_an_unknown_one_is_an_error() {
        let told = device("lo").unwrap();
        assert!(told.offloads.contains(&(Feature::Gso, Some(true))), "{told:?}");
        assert!(device("nosuchdevice").is_err());
    }

    #[test]
    fn a_switched_offload_is_seen() {
        let Ok(cable) = Cable::new(1500) else { return };
        for on in [false, true] {
            cable.switch(Feature::Gso, on).unwrap();
            let told = cable.sender.within(|| device(SENDER.0)).unwrap();
            assert!(told.offloads.contains(&(Feature::Gso, Some(on))), "{told:?}");
            assert_eq!(told.driver.as_deref(), Some("veth"));
        }
    }
}
