//! What sending costs a host.

use elephan_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

elephan_units::with_defaults! {
    /// A sending host: one processor, which handles one packet at a time, a backlog of received packets that wait for it, and a
    /// network device with a queue. Each flow has its own host. After Li 2006, sections 5.2.2 and 9.1.7.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Host {
        /// Processor time for each packet sent.
        pub data: Time = Time::ZERO,
        /// Processor time for each ACK received.
        pub ack: Time = Time::ZERO,
        /// Additional processor time for each SACK block of an ACK and each packet in flight up to the block's end: the list
        /// traversal of Linux 2.4 (`tcp_sacktag_write_queue`).
        pub sack_in_flight: Time = Time::ZERO,
        /// Additional processor time for each SACK block of an ACK and each lost packet not yet retransmitted: a traversal of
        /// the holes only.
        pub sack_lost: Time = Time::ZERO,
        /// Maximum number of packets that wait for the processor (Linux: `netdev_max_backlog`, 300); others are dropped.
        pub max_backlog: u64 = 300,
        /// Whether a backlog that was full accepts no packets until it is empty, as in Linux 2.4 (`netif_rx`, `throttle`).
        pub throttle: bool = false,
        /// Capacity of the device's queue in packets (Linux: `txqueuelen`, 100, later 1000). If it is full, the window is
        /// reduced as for an ECN mark, and nothing is sent until the next ACK. None means no limit.
        pub txqueuelen: Option<u64> = None,
    }
}
