//! A sending host whose processing takes time: a processor, and packets that wait for it.

use std::collections::VecDeque;

use elephan_scenario::plan::Host as Costs;
use elephan_tcp::Segment;
use elephan_units::Time;

use crate::packet::Packet;

/// The processor of a sending host, and its backlog.
pub struct Host {
    /// The processing costs.
    costs: Costs,
    /// Packets that were not processed yet.
    backlog: VecDeque<Packet>,
    /// Whether no packet is accepted until the backlog is empty.
    throttled: bool,
    /// The packet being processed.
    in_hand: Option<Packet>,
    free_at: Time,
    counters: HostCounters,
}

/// A host's counters; they never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Processor time of all work assigned so far; some of it may lie in the future.
    pub busy: Time,
    /// Packets dropped because the backlog was full.
    pub dropped: u64,
    /// Maximum number of packets in the backlog.
    pub most: u64,
}

impl Host {
    /// An idle host.
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

    /// A packet arrives from the link; returns false if the backlog is full.
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

    /// Whether the processor has finished its work.
    pub fn is_free(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// When the processor finishes its current work; `Time::MAX` if it is idle.
    pub fn next(&self, now: Time) -> Time {
        if self.is_free(now) { Time::MAX } else { self.free_at }
    }

    /// The packet whose processing has finished; returned once.
    pub fn processed(&mut self) -> Option<Packet> {
        self.in_hand.take()
    }

    /// Starts processing the next packet of the backlog; returns false if there is none. `walk` returns the
    /// number of segments, in flight and lost, that its SACK blocks make the stack walk.
    pub fn take(&mut self, walk: impl FnOnce(&Segment) -> (u64, u64), now: Time) -> bool {
        let Some(packet) = self.backlog.pop_front() else { return false };
        let (in_flight, lost) = walk(&packet.segment());
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

    /// Maximum number of packets in the device's queue.
    pub fn device_limit(&self) -> Option<u64> {
        self.costs.txqueuelen
    }

    /// The counters.
    pub fn counters(&self) -> HostCounters {
        self.counters
    }
}
