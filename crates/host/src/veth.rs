//! Two namespaces of our own and the virtual Ethernet cable between them.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use elephan_sys::Namespace;
use elephan_sys::device::{configure_veth, veth};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::ethtool;

/// The device and the address of the end that sends, and of the end that receives.
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
    pub fn new(mtu: u32) -> io::Result<Self> {
        let (sender, receiver) = (Namespace::new()?, Namespace::new()?);
        let made = Self { sender, receiver };
        made.sender.within(|| veth(SENDER.0, RECEIVER.0, made.receiver.descriptor()))?;
        made.sender.within(|| configure_veth(SENDER.0, SENDER.1, RECEIVER.1, mtu))?;
        made.receiver.within(|| configure_veth(RECEIVER.0, RECEIVER.1, SENDER.1, mtu))?;
        Ok(made)
    }

    /// The hosts with the names of their devices.
    fn ends(&self) -> [(&Namespace, &'static str); 2] {
        [(&self.sender, SENDER.0), (&self.receiver, RECEIVER.0)]
    }

    /// Switches an offload of both devices.
    pub fn switch(&self, feature: ethtool::Feature, on: bool) -> io::Result<()> {
        self.ends().into_iter().try_for_each(|(end, name)| end.within(|| ethtool::switch(name, feature, on)))
    }

    /// Lets a thread of the kernel process what arrives at each device, in place of whatever runs there: its processor time is
    /// then known. The devices then cut no segments (TSO): veth gives only single packets to such a thread. Returns the process
    /// ids of these threads at the sender and at the receiver.
    pub fn receive_in_threads(&self) -> io::Result<[Vec<u32>; 2]> {
        self.switch(ethtool::Feature::DeviceSegmentation, false)?;
        self.switch(ethtool::Feature::ReceiveMerging, true)?;
        self.ends().into_iter().try_for_each(|(end, name)| set(end, name, &[("threaded", 1)]))?;
        Ok([kernel_threads(SENDER.0), kernel_threads(RECEIVER.0)])
    }

    /// Lets the receiver's device wait for this time after each round of its work before it looks for packets again: what the
    /// coalescing of interrupts does on a network card. Zero is no waiting.
    pub fn coalesce(&self, waiting_ns: u64) -> io::Result<()> {
        // As many rounds without a packet until it waits for an interrupt again.
        let rounds = 1_000_000_000_u64.checked_div(waiting_ns).unwrap_or(0);
        let settings = [("napi_defer_hard_irqs", rounds), ("gro_flush_timeout", waiting_ns)];
        set(&self.receiver, RECEIVER.0, &settings)
    }
}

/// Sets attributes of a device in a namespace of ours, in a view of `/sys` that only the thread has that sets them.
fn set(end: &Namespace, device: &str, settings: &[(&str, u64)]) -> io::Result<()> {
    end.within(|| {
        #[expect(unsafe_code, reason = "rustix has no safe form, for the sake of other flags")]
        // SAFETY: file descriptors stay shared with the other threads.
        unsafe {
            unshare_unsafe(UnshareFlags::NEWNS)?;
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
        for (key, value) in settings {
            let path = format!("/sys/class/net/{device}/{key}");
            fs::write(&path, value.to_string())
                .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        }
        Ok(())
    })
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

/// Puts threads of the kernel that belong to our devices above all other programs, as far as this is permitted: on a machine that others
/// use, their wait for a processor would be taken for latency.
pub fn raise<'a>(threads: impl Iterator<Item = &'a u32>) {
    let priority: libc::c_int = 1;
    for &id in threads {
        #[expect(unsafe_code, reason = "rustix does not have this call, and musl refuses it")]
        // SAFETY: struct sched_param is one number, which outlives the call.
        unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, id, libc::SCHED_FIFO, &raw const priority);
        }
    }
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

    /// Whether this machine lets the tests make a cable.
    pub fn cable() -> Option<Cable> {
        Cable::new(1500).ok()
    }

    #[test]
    fn a_cable_has_two_ends_and_its_devices_are_not_seen_here() {
        let Some(cable) = cable() else { return };
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
