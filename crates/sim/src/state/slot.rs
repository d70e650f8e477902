//! Slots for one connection at a time, of a flow or of a crowd: one where its senders are, one where its
//! receivers are.

use elephan_cc::governor::Fault;
use elephan_tcp::{Counters, Endpoint};

use crate::state::connection::{Half, Sending, Transfer};

/// The owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A flow of the plan, whose number equals the slot's.
    Flow,
    /// A user of a crowd.
    User { crowd: u32, user: u32 },
    /// A crowd whose flows arrive at random.
    Arrival { crowd: u32 },
}

impl Owner {
    /// Its crowd, if it is not a flow.
    pub fn crowd(self) -> Option<u32> {
        match self {
            Self::Flow => None,
            Self::User { crowd, .. } | Self::Arrival { crowd } => Some(crowd),
        }
    }
}

/// A slot for the sending half of one connection at a time: of a flow, of a user, or of flows that arrive at
/// random, in sequence.
pub struct Slot {
    /// Its owner.
    pub owner: Owner,
    /// The current connection.
    pub connection: Option<Box<Sending>>,
    /// Counters of the senders of its connections before the current one, if there were any.
    before: Option<Box<Counters>>,
    /// Connections opened so far.
    pub opened: u64,
    /// What failed in a connection before the current one.
    fault: Option<Fault>,
}

impl Slot {
    /// A slot without any connection so far.
    pub fn new(owner: Owner) -> Self {
        Self { owner, connection: None, before: None, opened: 0, fault: None }
    }

    /// Removes the current connection, which is closed.
    pub fn clear(&mut self) {
        self.before = Some(Box::new(self.counters()));
        self.fault = self.fault().cloned();
        self.connection = None;
    }

    /// What failed first in the congestion control of its connections.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref().or_else(|| self.sender()?.controller().fault())
    }

    /// Sum of the counters of the senders of all its connections.
    pub fn counters(&self) -> Counters {
        let mut sum = self.before.as_deref().copied().unwrap_or_default();
        if let Some(connection) = &self.connection {
            add(&mut sum, &connection.half.endpoint.counters());
        }
        sum
    }

    /// The transfer that is not finished.
    pub fn unfinished(&self) -> Option<Transfer> {
        let connection = self.connection.as_deref().filter(|connection| !connection.is_finished)?;
        connection.transfer.as_deref().copied()
    }

    /// The sender of the current connection.
    pub fn sender(&self) -> Option<&Endpoint> {
        self.connection.as_ref().map(|connection| &connection.half.endpoint)
    }
}

/// A slot for the receiving half of one connection at a time.
pub struct Sink {
    /// The crowd of the slot, if it is not a flow.
    pub crowd: Option<u32>,
    /// The current connection, if a packet of it has arrived.
    pub connection: Option<Box<Half>>,
    /// Connections closed so far.
    pub closed: u64,
    /// Bytes delivered by these.
    before: u64,
    /// Payload that has arrived for these, also after they were closed.
    arrived_before: u64,
}

impl Sink {
    /// A slot without any connection so far.
    pub fn new(crowd: Option<u32>) -> Self {
        Self { crowd, connection: None, closed: 0, before: 0, arrived_before: 0 }
    }

    /// The current connection is closed, even if no packet of it has arrived.
    pub fn close(&mut self) {
        (self.before, self.arrived_before) = (self.delivered(), self.arrived());
        self.connection = None;
        self.closed += 1;
    }

    /// Bytes that all its connections have delivered.
    pub fn delivered(&self) -> u64 {
        let current = self.connection.as_ref();
        self.before + current.map_or(0, |half| half.endpoint.bytes_delivered())
    }

    /// Payload that has arrived for all its connections, duplicates included.
    pub fn arrived(&self) -> u64 {
        let current = self.connection.as_ref();
        self.arrived_before + current.map_or(0, |half| half.endpoint.bytes_arrived())
    }

    /// Payload has arrived for a connection that is closed.
    pub fn arrived_late(&mut self, bytes: u32) {
        self.arrived_before += u64::from(bytes);
    }
}

/// Adds counters.
pub fn add(sum: &mut Counters, more: &Counters) {
    sum.segments_sent += more.segments_sent;
    sum.bytes_sent += more.bytes_sent;
    sum.segments_retransmitted += more.segments_retransmitted;
    sum.bytes_retransmitted += more.bytes_retransmitted;
    sum.bytes_acked += more.bytes_acked;
    sum.bytes_delivered += more.bytes_delivered;
    sum.loss_events += more.loss_events;
    sum.ecn_events += more.ecn_events;
    sum.stalls += more.stalls;
    sum.timeouts += more.timeouts;
    sum.reductions += more.reductions;
    sum.undos += more.undos;
}
