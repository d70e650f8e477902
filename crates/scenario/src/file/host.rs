//! What sending costs a host.

use elephan_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host that sends: one processor, which does one thing at a time, between a backlog of packets that it did not look at
/// yet and the queue of its network device. Each flow has a host of its own. After Li 2006, sections 5.2.2 and 9.1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Processor time for a packet that is sent.
    pub data: Time,
    /// Processor time for an ACK that arrives.
    pub ack: Time,
    /// Processor time on top, for each SACK block of an ACK and each packet in flight up to the block's end: the walk that Linux 2.4
    /// made (`tcp_sacktag_write_queue`).
    pub sack_in_flight: Time,
    /// Processor time on top, for each SACK block of an ACK and each packet that is lost and was not sent again: a walk over
    /// the holes alone.
    pub sack_lost: Time,
    /// Packets that may wait for the processor (Linux: `netdev_max_backlog`, 300); others are dropped.
    pub max_backlog: u64,
    /// Whether a backlog that was full takes nothing more until it is empty, as in Linux 2.4 (`netif_rx`, `throttle`).
    pub throttle: bool,
    /// Packets that the device's queue may hold (Linux: `txqueuelen`, 100, later 1000). Where it is full, the window is reduced as
    /// for a mark, and nothing is sent until the next ACK. None means no limit.
    pub txqueuelen: Option<u64>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            data: Time::ZERO,
            ack: Time::ZERO,
            sack_in_flight: Time::ZERO,
            sack_lost: Time::ZERO,
            max_backlog: 300,
            throttle: false,
            txqueuelen: None,
        }
    }
}
