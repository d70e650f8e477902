//! A connection of a flow in its two halves, each with the engine's state for it.

use std::sync::Arc;

use elephan_abi::registered;
use elephan_cc::{Controller, registry, slow_start};
use elephan_scenario::plan::Flow;
use elephan_tcp::{Endpoint, Segment, Stack};
use elephan_traffic::Demand;
use elephan_units::{Seed, Stream, Time};
use rand::RngExt;

use crate::packet::Address;

/// The end that has data to send.
pub const SENDER: usize = 0;
/// The end that receives them.
pub const RECEIVER: usize = 1;

/// An end of a connection.
#[repr(C)]
pub struct Half {
    /// Number of connections that the flow had before it.
    pub number: u64,
    /// When the engine next wakes it: never later than it requested.
    pub wake: Time,
    /// Where the route of its packets starts.
    pub start: u32,
    /// The codepoint of its packets.
    pub dscp: u8,
    /// Whether its application closes when the other has: that of a receiver which writes nothing.
    pub only_receives: bool,
    /// Its TCP.
    pub endpoint: Endpoint,
}

/// The sending half of a connection.
#[repr(C)]
pub struct Sending {
    /// When the sender's application next does something: it stops writing, or writes where it does so over time. `Time::MAX` for never.
    pub turn: Time,
    /// Reductions of the window that were already reported.
    pub reductions: u32,
    /// Whether all data that the sender wrote, and its FIN, was acknowledged.
    pub is_finished: bool,
    /// Whether its application writes over time ([`crate::state::app::App`], [`crate::state::talker::Talker`]): any acknowledgment may be that of a chunk.
    pub has_app: bool,
    /// The end of the connection.
    pub half: Half,
    /// The transfer that it was opened for; `None` if it has no end.
    pub transfer: Option<Box<Transfer>>,
}

/// A transfer, or a chunk of an application.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Its number, of the flow or the crowd.
    pub number: u64,
    /// Its payload.
    pub size: u64,
    /// When its connection was opened, or the chunk written.
    pub opened_at: Time,
}

impl Sending {
    /// The sending half of a connection of `flow`, whose SYN is ready to be sent: number `number` of slot
    /// `slot`. Its packets start at `start`. An application writes nothing before its first turn.
    pub fn new(
        flow: &Flow,
        stack: &Arc<Stack>,
        slot: (u32, u64),
        transfer: Option<Transfer>,
        start: u32,
        seed: Seed,
    ) -> Self {
        let iss = initial_numbers(slot, seed).random();
        let mut endpoint = Endpoint::connect(stack, iss);
        // Of what a crowd draws, only sessions are no transfers.
        let has_app = matches!(flow.demand, Demand::App(_) | Demand::Drawn) && transfer.is_none();
        match &transfer {
            None if has_app => {}
            None => endpoint.write(u64::MAX),
            Some(transfer) => {
                endpoint.write(transfer.size);
                endpoint.close();
            }
        }
        Self {
            half: Half {
                endpoint,
                wake: Time::MAX,
                number: slot.1,
                start,
                dscp: flow.dscp,
                only_receives: false,
            },
            // All data of a transfer is written when it begins.
            turn: flow.stop.filter(|_| transfer.is_none()).unwrap_or(Time::MAX),
            reductions: 0,
            transfer: transfer.map(Box::new),
            is_finished: false,
            has_app,
        }
    }

    /// When it wants to be woken: for its own timers, or because it is the application's turn.
    #[inline]
    pub fn due(&self) -> Time {
        self.half.endpoint.poll_timeout().min(self.turn)
    }
}

impl Half {
    /// The receiving half of the same connection, which waits for the SYN.
    pub fn receiving(flow: &Flow, stack: &Arc<Stack>, slot: (u32, u64), start: u32, seed: Seed) -> Self {
        let mut numbers = initial_numbers(slot, seed);
        let _: u32 = numbers.random();
        let endpoint = Endpoint::listen(stack, numbers.random());
        Self { endpoint, wake: Time::MAX, number: slot.1, start, dscp: flow.dscp, only_receives: true }
    }

    /// Where its packets go, as end `end` of slot `slot`.
    #[inline(always)]
    pub fn address(&self, slot: u32, end: usize) -> Address {
        let Self { number, start, dscp, .. } = *self;
        Address { flow: slot, connection: number as u16, start, backward: end == RECEIVER, dscp }
    }

    /// A segment reaches the receiving half. If its application writes nothing, it closes when the sender's has closed.
    #[inline]
    pub fn receive(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        let endpoint = &mut self.endpoint;
        endpoint.on_segment(segment, congestion_experienced, now);
        if endpoint.peer_is_finished() && self.only_receives && !endpoint.is_closed() {
            endpoint.close();
        }
    }
}

/// The random stream of the initial sequence numbers of a connection: the sender's, then the receiver's.
fn initial_numbers((slot, number): (u32, u64), seed: Seed) -> Stream {
    seed.stream("initial sequence number", u64::from(slot) << 32 | number)
}

/// The stacks of `flows`, in their order. Neighbours with the same settings, as those of one table of the scenario,
/// share one.
pub fn stacks<'a>(flows: impl Iterator<Item = &'a Flow>) -> Arc<[Arc<Stack>]> {
    let mut stacks: Vec<Arc<Stack>> = Vec::with_capacity(flows.size_hint().0);
    let mut before: Option<&Flow> = None;
    for flow in flows {
        let same = |before: &Flow| {
            (&before.cc, &before.slow_start, &before.tcp) == (&flow.cc, &flow.slow_start, &flow.tcp)
        };
        let stack = match stacks.last() {
            Some(stack) if before.is_some_and(same) => Arc::clone(stack),
            _ => Stack::new(&flow.tcp, controller(flow)),
        };
        stacks.push(stack);
        before = Some(flow);
    }
    stacks.into()
}

fn controller(flow: &Flow) -> Controller {
    let (name, settings) = (flow.cc.name, flow.cc.settings());
    let algorithm = match name.strip_prefix(elephan_abi::PREFIX) {
        _ if registered::is_foreign(name) => registered::find(name).map(|known| known.build(&settings)),
        Some(name) => elephan_abi::find(name).and_then(|entry| entry.build(&settings).ok()),
        None => registry::find(name).and_then(|entry| entry.build(&settings).ok()),
    };
    let algorithm = algorithm.expect("a plan names known algorithms with settings in range");
    let start = slow_start::find(flow.slow_start.name)
        .and_then(|entry| entry.build(&flow.slow_start.settings()).ok())
        .expect("a plan names known slow starts with settings in range");
    Controller::new(algorithm, start, flow.tcp.quantisation, f64::from(flow.tcp.initial_window))
}
