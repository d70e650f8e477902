//! A connection of a flow: its two ends, and the engine's state for it.

use elephan_cc::{Controller, registry, slow_start};
use elephan_scenario::plan::Flow;
use elephan_tcp::{Endpoint, Segment};
use elephan_units::{Seed, Time};
use rand::RngExt;

/// The end that has data to send.
pub const SENDER: usize = 0;
/// The end that receives them.
pub const RECEIVER: usize = 1;

/// A connection.
pub struct Connection {
    /// Number of connections that the flow had before it.
    pub number: u64,
    /// The codepoint of its packets.
    pub dscp: u8,
    /// Where the route of each end's packets starts.
    pub starts: [u32; 2],
    /// When the engine next wakes each end: never later than the end requested.
    pub wakes: [Time; 2],
    /// When the sender's application stops writing; `Time::MAX` once it has.
    pub stop: Time,
    /// Reductions of the window that were already reported.
    pub reductions: u64,
    /// When it was opened, for which transfer, and of which payload; `None` if it writes without end.
    pub opened_at: Time,
    pub transfer: u64,
    pub size: Option<u64>,
    /// Whether all data that the sender wrote, and its FIN, was acknowledged.
    pub is_finished: bool,
    /// Sender and receiver.
    pub ends: [Endpoint; 2],
}

impl Connection {
    /// A connection of `flow` whose SYN is ready to be sent: number `number` of slot `slot`, for transfer
    /// `transfer`.
    pub fn new(
        flow: &Flow,
        (slot, number): (u32, u64),
        (transfer, size): (u64, Option<u64>),
        starts: [u32; 2],
        seed: Seed,
        now: Time,
    ) -> Self {
        let mut stream = seed.stream("initial sequence number", u64::from(slot) << 32 | number);
        let mut sender = Endpoint::connect(&flow.tcp, controller(flow), stream.random());
        let receiver = Endpoint::listen(&flow.tcp, controller(flow), stream.random());
        match size {
            None => sender.write(u64::MAX),
            Some(bytes) => {
                sender.write(bytes);
                sender.close();
            }
        }
        Self {
            number,
            dscp: flow.dscp,
            starts,
            wakes: [Time::MAX; 2],
            // All data of a transfer is written when it begins.
            stop: flow.stop.filter(|_| size.is_none()).unwrap_or(Time::MAX),
            reductions: 0,
            opened_at: now,
            transfer,
            size,
            is_finished: false,
            ends: [sender, receiver],
        }
    }

    /// A segment reaches one of the ends. The receiver's application closes when the sender's has closed.
    #[inline]
    pub fn receive(&mut self, end: usize, segment: &Segment, congestion_experienced: bool, now: Time) {
        let endpoint = &mut self.ends[end];
        endpoint.on_segment(segment, congestion_experienced, now);
        if end == RECEIVER && endpoint.peer_is_finished() && !endpoint.is_closed() {
            endpoint.close();
        }
    }

    /// When an end wants to be woken: for its own timers, or because the flow stops.
    #[inline]
    pub fn due(&self, end: usize) -> Time {
        let timeout = self.ends[end].poll_timeout();
        if end == SENDER { timeout.min(self.stop) } else { timeout }
    }
}

fn controller(flow: &Flow) -> Controller {
    let algorithm = match flow.cc.name.strip_prefix(elephan_kernel::PREFIX) {
        Some(name) => elephan_kernel::find(name).and_then(|entry| entry.build(&flow.cc.settings()).ok()),
        None => registry::find(flow.cc.name).and_then(|entry| entry.build(&flow.cc.settings()).ok()),
    };
    let algorithm = algorithm.expect("a plan names known algorithms with settings in range");
    let start = slow_start::find(flow.slow_start.name)
        .and_then(|entry| entry.build(&flow.slow_start.settings()).ok())
        .expect("a plan names known slow starts with settings in range");
    Controller::new(algorithm, start, flow.tcp.quantisation, f64::from(flow.tcp.initial_window))
}
