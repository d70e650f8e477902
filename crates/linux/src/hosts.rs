//! Data shared by the two hosts about the flows and crowds of a plan.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard};

use elephan_scenario::plan::{Flow, Plan};
use elephan_sys::{TcpInfo, tcp_info};
use elephan_traffic::Page;
use elephan_units::Time;

use crate::clock::Clock;

/// The address of the host that sends data.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The first address of the host that listens.
pub const LISTENER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The flows of a plan, and after them what the connections of each crowd have in common. Their numbers are
/// those of the results; the listening host's port is [`elephan_network::FIRST_PORT`] and the number.
pub fn groups(plan: &Plan) -> impl Iterator<Item = &Flow> {
    plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow))
}

/// The initial windows of a plan's flows and crowds, segments, each once. For the kernel an initial window belongs
/// to a route, so the listening host has an address for each ([`listener_address`]).
pub fn initial_windows(plan: &Plan) -> Vec<u32> {
    let mut windows = Vec::new();
    for flow in groups(plan) {
        if !windows.contains(&flow.tcp.initial_window) {
            windows.push(flow.tcp.initial_window);
        }
    }
    windows
}

/// The address of the listening host for connections of `flow`.
pub fn address(windows: &[u32], flow: &Flow) -> Ipv4Addr {
    let index = windows.iter().position(|&window| window == flow.tcp.initial_window);
    listener_address(index.unwrap_or(0))
}

/// The address of the listening host for the initial window number `index` of [`initial_windows`].
pub fn listener_address(index: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(LISTENER.to_bits() + index as u32)
}

/// The state of a flow or crowd while it runs.
#[derive(Default)]
pub struct Shared {
    /// Application bytes that the listener has read in order.
    pub delivered: AtomicU64,
    connections: Mutex<Connections>,
}

/// The connections of a flow or crowd, for samplers.
#[derive(Default)]
pub struct Connections {
    /// The sockets of the current connections; a flow has one at a time. `None` between connections.
    pub sockets: Vec<Option<OwnedFd>>,
    /// Counters of the connections that have ended.
    pub before: Totals,
    /// Number of connections opened, finished, and failed: the kernel gave them up.
    pub opened: u64,
    pub finished: u64,
    pub failed: u64,
}

impl Shared {
    /// Its connections.
    pub fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("nobody panics with it")
    }
}

impl Connections {
    /// Counters of all connections so far. Queries the kernel about each that is open.
    pub fn totals(&self) -> Totals {
        let infos = self.sockets.iter().flatten().filter_map(|socket| tcp_info(socket.as_fd()).ok());
        infos.fold(self.before, |sum, info| sum.and(&info))
    }
}

/// Counters of connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names of struct tcp_info")]
pub struct Totals {
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub total_retrans: u64,
    pub total_rto: u64,
    /// Whether the kernel does not report it.
    pub unreported_rto: bool,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
}

impl Totals {
    /// Adds the counters of the current connection.
    #[must_use]
    pub fn and(self, info: &TcpInfo) -> Self {
        Self {
            bytes_sent: self.bytes_sent + info.bytes_sent,
            bytes_retrans: self.bytes_retrans + info.bytes_retrans,
            total_retrans: self.total_retrans + u64::from(info.total_retrans),
            total_rto: self.total_rto + info.timeouts().unwrap_or(0),
            unreported_rto: self.unreported_rto || info.timeouts().is_none(),
            busy_us: self.busy_us + info.busy_time,
            rwnd_limited_us: self.rwnd_limited_us + info.rwnd_limited,
            sndbuf_limited_us: self.sndbuf_limited_us + info.sndbuf_limited,
        }
    }
}

/// A start or an end of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Occurrence {
    /// A flow opened a connection.
    Opened {
        /// The flow.
        flow: u32,
        /// The time.
        at: Time,
    },
    /// A transfer ended, or was cut short by the end of the run.
    Transfer {
        /// The flow, or the crowd after the flows.
        group: u32,
        /// Its number within the flow or crowd.
        index: u64,
        /// Its payload.
        bytes: u64,
        /// When its connection was opened.
        start: Time,
        /// When the listener's FIN acknowledged its end; `None` if the run ended first.
        end: Option<Time>,
    },
    /// The last object of a page has arrived.
    Page {
        /// The crowd.
        crowd: u32,
        /// The page.
        page: Page,
        /// When it arrived.
        end: Time,
    },
}

/// Data shared by both hosts.
#[derive(Clone, Copy)]
pub struct Common<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The kernel's name of the congestion control of each flow, and then of each crowd.
    pub algorithms: &'a [String],
    /// The state of each flow, and then of each crowd.
    pub shared: &'a [Shared],
    /// The clock.
    pub clock: Clock,
    /// Whether the run is over.
    pub stop: &'a AtomicBool,
}
