//! Queue disciplines that decide when a packet arrives.

use crate::config::{Limit, Queue};
use crate::packet::{Ecn, Packet};

/// What waits for service in front of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets, the one in service not counted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with a congestion mark.
    Mark,
    /// It is dropped.
    Drop,
}

/// Decides on `packet`, with `waiting` before it in a queue of `limit`.
#[inline]
pub fn judge<P: Packet>(queue: &Queue, limit: Limit, waiting: Waiting, packet: &P) -> Verdict {
    let full = match limit {
        Limit::Packets(packets) => waiting.packets >= packets,
        Limit::Bytes(bytes) => waiting.bytes + u64::from(packet.bytes()) > bytes,
    };
    if full {
        return Verdict::Drop;
    }
    match queue {
        Queue::Threshold { packets } if waiting.packets >= *packets && packet.ecn() != Ecn::NotCapable => {
            Verdict::Mark
        }
        Queue::DropTail | Queue::Threshold { .. } => Verdict::Accept,
    }
}
