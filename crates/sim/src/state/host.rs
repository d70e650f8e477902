//! A host that sends, where that costs something: a processor, and packets that wait for it.

use std::collections::VecDeque;

use elephan_scenario::plan::Host as Costs;
use elephan_tcp::Segment;
use elephan_units::Time;

use crate::packet::Packet;

/// The processor of a sending host, and its backlog.
pub struct Host {
    /// What things cost.
    costs: Costs,
    /// Packets that were not looked at yet.
    backlog: VecDeque<Packet>,
    /// Whether nothing is taken in until it is empty.
    throttled: bool,
    /// The packet that is looked at.
    in_hand: Option<Packet>,
    free_at: Time,
    counters: HostCounters,
}

/// What a host has counted; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Time that the processor was given to do; some of it may lie ahead.
    pub busy: Time,
    /// Packets that found the backlog full.
    pub dropped: u64,
    /// Most packets in the backlog.
    pub most: u64,
}

impl Host {
    /// A host with nothing to do.
    pub fn new(costs: Costs) -> Self {
        Self {
            costs,
            backlog: VecDeque::new(),
            throttled: false,
            in_hand: None,
            free_at: Time::ZERO,
            counters: HostCounters::default(),
        }
    }

    /// A packet comes off the wire; false where the backlog is full.
    pub fn admit(&mut self, packet: Packet) -> bool {
        self.throttled &= !self.backlog.is_empty();
        if self.throttled || self.backlog.len() as u64 >= self.costs.max_backlog {
            self.throttled = self.costs.throttle;
            self.counters.dropped += 1;
            return false;
        }
        self.backlog.push_back(packet);
        self.counters.most = self.counters.most.max(self.backlog.len() as u64);
        true
    }

    /// Whether the processor has ended what it did.
    pub fn is_free(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// When it ends what it does, where it does something; else `Time::MAX`.
    pub fn next(&self, now: Time) -> Time {
        if self.is_free(now) { Time::MAX } else { self.free_at }
    }

    /// The packet that it has ended with, once.
    pub fn processed(&mut self) -> Option<Packet> {
        self.in_hand.take()
    }

    /// Turns to the next packet of the backlog; `walk` says what its SACK blocks make the stack pass by, in flight and lost. False where
    /// there is none.
    pub fn take(&mut self, walk: impl FnOnce(&Segment) -> (u64, u64), now: Time) -> bool {
        let Some(packet) = self.backlog.pop_front() else { return false };
        let (in_flight, lost) = walk(&packet.segment);
        self.in_hand = Some(packet);
        let walk = (self.costs.sack_in_flight * in_flight).saturating_add(self.costs.sack_lost * lost);
        self.spend(self.costs.ack.saturating_add(walk), now);
        true
    }

    /// A packet was sent.
    pub fn sent(&mut self, now: Time) {
        self.spend(self.costs.data, now);
    }

    fn spend(&mut self, cost: Time, now: Time) {
        self.free_at = now.saturating_add(cost);
        self.counters.busy = self.counters.busy.saturating_add(cost);
    }

    /// How many packets the device's queue may hold.
    pub fn device_limit(&self) -> Option<u64> {
        self.costs.txqueuelen
    }

    /// What was counted.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }
}
