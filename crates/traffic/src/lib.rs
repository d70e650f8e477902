//! What wants to send: when a flow starts, how much it sends, and what comes next.

use elephan_units::{Bytes, Time};

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// At a time drawn uniformly from the first to the second.
    Uniform(Time, Time),
    /// At a time drawn from an exponential distribution with this mean, after `from`.
    Exponential {
        /// Mean of the distribution.
        mean: Time,
        /// Earliest start.
        from: Time,
    },
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Data without end.
    Unlimited,
    /// Transfers of one size, each on a connection of its own.
    Transfers {
        /// Payload of a transfer.
        size: Bytes,
        /// How many, one after the other; none means until the run ends.
        count: Option<u64>,
    },
}
