//! Two namespaces of our own and the virtual Ethernet cable between them.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use elephan_sys::Namespace;
use elephan_sys::device::{configure_veth, veth};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::ethtool::{Feature, switch};
use crate::{Error, refused};

/// The device and the address of the end that sends.
pub const SENDER: (&str, Ipv4Addr) = ("hostA", Ipv4Addr::new(10, 0, 0, 1));
/// The same of the end that receives.
pub const RECEIVER: (&str, Ipv4Addr) = ("hostB", Ipv4Addr::new(10, 0, 0, 2));

/// Two hosts, each a namespace, connected by a pair of devices.
pub struct Cable {
    /// The host that sends.
    pub sender: Namespace,
    /// The host that receives.
    pub receiver: Namespace,
}

impl Cable {
    /// Makes both hosts. They are gone when this is dropped, or when the process is killed.
    pub fn new(mtu: u32) -> Result<Self, Error> {
        let make = || {
            let made = Self { sender: Namespace::new()?, receiver: Namespace::new()? };
            made.sender.within(|| veth(SENDER.0, RECEIVER.0, made.receiver.descriptor()))?;
            made.sender.within(|| configure_veth(SENDER.0, SENDER.1, RECEIVER.1, mtu))?;
            made.receiver.within(|| configure_veth(RECEIVER.0, RECEIVER.1, SENDER.1, mtu))?;
            Ok(made)
        };
        make().map_err(refused("namespaces, and veth between them"))
    }

    /// The hosts with the names of their devices.
    fn ends(&self) -> [(&Namespace, &'static str); 2] {
        [(&self.sender, SENDER.0), (&self.receiver, RECEIVER.0)]
    }

    /// Switches an offload of both devices.
    pub fn switch(&self, feature: Feature, on: bool) -> Result<(), Error> {
        let mut ends = self.ends().into_iter();
        ends.try_for_each(|(end, name)| end.within(|| switch(name, feature, on)))
            .map_err(refused(format!("offload {feature:?} of veth")))
    }

    /// Lets a thread of the kernel process what arrives at each device, in place of whatever runs there: its processor time is
    /// then known. The devices then cut no segments (TSO): veth gives only single packets to such a thread. Returns the process
    /// ids of these threads at the sender and at the receiver.
    pub fn receive_in_threads(&self) -> Result<[Vec<u32>; 2], Error> {
        self.switch(Feature::Tso, false)?;
        self.switch(Feature::Gro, true)?;
        let mut ends = self.ends().into_iter();
        ends.try_for_each(|(end, name)| end.within(|| thread_of(name)))
            .map_err(refused("threads of the kernel for veth"))?;
        Ok([SENDER, RECEIVER].map(|(name, _)| kernel_threads(name)))
    }
}

/// Gives a device of the calling thread's namespace a thread of the kernel, in a view of `/sys` that only this thread has.
fn thread_of(device: &str) -> io::Result<()> {
    #[expect(unsafe_code, reason = "rustix has no safe form, for the sake of other flags")]
    // SAFETY: file descriptors stay shared with the other threads.
    unsafe {
        unshare_unsafe(UnshareFlags::NEWNS)?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    let path = format!("/sys/class/net/{device}/threaded");
    fs::write(&path, "1").map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// The kernel's threads `napi/DEVICE-NUMBER`, of which only the newest device of this name has some that take time.
fn kernel_threads(device: &str) -> Vec<u32> {
    let prefix = format!("napi/{device}-");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with(&prefix))
    })
    .collect()
}

/// The processor time of threads of the kernel until now, s. What has ended counts nothing.
pub fn kernel_seconds(threads: &[u32]) -> f64 {
    let each = threads.iter().filter_map(|id| {
        let text = fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    each.sum::<f64>() * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cable_has_two_ends_and_its_devices_are_not_seen_here() {
        let Ok(cable) = Cable::new(1500) else { return };
        for (end, name) in cable.ends() {
            end.within(|| {
                let text = fs::read_to_string("/proc/thread-self/net/dev")?;
                assert!(text.contains(name), "{text}");
                Ok(())
            })
            .unwrap();
            assert!(!fs::exists(format!("/sys/class/net/{name}")).unwrap());
        }
    }
}
