//! The network between the two hosts of a run, as the engine sees it, and what it reports at the end.

use std::io;

use elephan_metrics::Reduction;
use elephan_network::{Lateness, Recorded};
use elephan_scenario::Plan;
use elephan_tcp::Config;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::hosts::groups;

/// A host of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The host that sends data.
    Sender,
    /// The host that listens.
    Listener,
}

/// The network between the two hosts of a run. It finds the route of a packet by its port on the listening host.
pub trait Path: Send {
    /// Makes the device of a host, with the name [`elephan_sys::device::DEVICE`], in the calling thread's namespace. Called
    /// once for each host. The engine sets the device's MTU and address, and brings it up.
    fn device(&mut self, host: Host) -> io::Result<()>;
    /// Starts the network. Time zero of the run, and of the clock that it returns, is now.
    fn start(&mut self) -> io::Result<Clock>;
    /// Whether the network has failed, so that the run cannot go on; [`Path::finish`] then returns the error.
    fn has_stopped(&self) -> bool {
        false
    }
    /// Stops the network.
    fn finish(self) -> io::Result<Emulated>;
}

/// The results of a path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Emulated {
    /// The records of its links.
    pub recorded: Recorded,
    /// Lateness of the packets that it handed over.
    pub lateness: Lateness,
    /// The reductions of the flows' windows, in order of time, if the path sees them; otherwise those between two samples of a
    /// sender's state are missed.
    pub reductions: Option<Vec<Reduction>>,
    /// Packets that a device refused.
    pub refused: u64,
    /// What disturbs a run in real time; none in virtual time.
    pub real_time: Option<RealTime>,
}

/// What disturbs a run in real time, and the CPU time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RealTime {
    /// Number of pauses that the machine imposed on the emulator and that were taken out of its time.
    pub slips: u64,
    /// Total length of these pauses, s.
    pub slipped_s: f64,
    /// Length of the longest of them, s.
    pub longest_slip_s: f64,
    /// Total length of the pauses that were taken out of the time of the sender of datagrams, s.
    pub streams_slipped_s: f64,
    /// Processor time that the host of a virtual machine gave to others meanwhile, of all processors together, s.
    pub stolen_s: f64,
    /// CPU time of the sending application with its system calls, s.
    pub sender_cpu_s: f64,
    /// CPU time of the reading application with its system calls, s.
    pub receiver_cpu_s: f64,
    /// CPU time of the emulator, s. The kernel's TCP processes what arrives within its calls, and it waits by looking at the clock.
    pub emulator_cpu_s: f64,
    /// Time in which the emulator moved packets, s.
    pub emulator_busy_s: f64,
}

/// The most segments that TCP of a plan sends at once; `None` leaves it to the kernel. It belongs to a device, and so to all
/// connections. Without connections it is the default.
pub fn gso_max_segs(plan: &Plan) -> Option<u32> {
    groups(plan).next().map_or_else(|| Config::default().burst, |flow| flow.tcp.burst).gso_max_segs()
}

/// The size of the largest IP packet of a plan, bytes.
pub fn mtu(plan: &Plan) -> u32 {
    let sizes = groups(plan).map(|flow| flow.tcp.packet.get() as u32);
    sizes.chain(plan.streams.iter().map(|stream| stream.datagrams.packet)).max().unwrap_or(1500)
}
