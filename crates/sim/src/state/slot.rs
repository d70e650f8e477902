//! A slot for one connection at a time, of a flow or of a crowd.

use elephan_tcp::{Counters, Endpoint};

use crate::state::connection::{Connection, RECEIVER, SENDER};

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

/// A slot for one connection at a time: of a flow, of a user, or of flows that arrive at random, in sequence.
pub struct Slot {
    /// Its owner.
    pub owner: Owner,
    /// The current connection.
    pub connection: Option<Box<Connection>>,
    /// Counters of its connections before the current one: those of the senders, and the bytes delivered at
    /// the receivers.
    before: Counters,
    /// Connections opened so far.
    pub opened: u64,
}

impl Slot {
    /// A slot without any connection so far.
    pub fn new(owner: Owner) -> Self {
        Self { owner, connection: None, before: Counters::default(), opened: 0 }
    }

    /// Removes the current connection, which is closed.
    pub fn clear(&mut self) {
        self.before = self.counters();
        self.connection = None;
    }

    /// Sum of the counters of all its connections; `bytes_delivered` is counted at the receivers.
    pub fn counters(&self) -> Counters {
        let mut sum = self.before;
        if let Some(connection) = &self.connection {
            add(&mut sum, connection.ends[SENDER].counters());
            sum.bytes_delivered += connection.ends[RECEIVER].counters().bytes_delivered;
        }
        sum
    }

    /// The connection of a transfer that is not finished.
    pub fn unfinished(&self) -> Option<&Connection> {
        self.connection.as_deref().filter(|connection| connection.size.is_some() && !connection.is_finished)
    }

    /// The sender of the current connection.
    pub fn sender(&self) -> Option<&Endpoint> {
        self.connection.as_ref().map(|connection| &connection.ends[SENDER])
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
