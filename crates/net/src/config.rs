//! What a scenario can choose of a link.

use elephan_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policer::Policer;
use crate::queue::Queue;

/// How much a queue may hold. The packet in service is not counted, as in ns-2 and ns-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many packets of any size.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
}

/// How a link loses packets apart from its queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// Each packet with the same probability, independently.
    Random {
        /// Probability, 0 to 1.
        probability: f64,
    },
    /// Every n-th packet.
    Periodic {
        /// Distance between losses, in packets; 1 or more.
        every: u64,
    },
    /// Two states with a loss probability each (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability, for each packet, of going from the good to the bad state.
        p: f64,
        /// Probability, for each packet, of going from the bad to the good state.
        r: f64,
        /// Loss probability in the bad state.
        #[serde(default = "certain")]
        loss_bad: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        loss_good: f64,
    },
}

fn certain() -> f64 {
    1.0
}

/// How a link's delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Delay {
    /// Each packet waits for up to `max` more, uniformly, without overtaking the one before.
    Jitter {
        /// Largest additional delay.
        max: Time,
    },
    /// Some packets wait for `extra` more, and others overtake them.
    Reorder {
        /// Probability of being held back.
        probability: f64,
        /// How long they are held back.
        extra: Time,
    },
}

/// A link in one direction, resolved to exact numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate at which IP packets are serialised; none means at once.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Time,
    /// What the queue may hold.
    pub limit: Limit,
    /// The queue discipline.
    pub queue: Queue,
    /// Token buckets before the queue.
    pub police: Vec<Policer>,
    /// Losses apart from the queue's; they happen behind it, on the wire.
    pub loss: Option<Loss>,
    /// Variation of the delay.
    pub vary: Option<Delay>,
    /// Whether the rate or the state (up, down) change during the run: packets then wait until they are served, whatever the discipline.
    pub changes: bool,
}

/// Bytes as a file gives them, for `Limit`.
impl From<Bytes> for Limit {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes.get())
    }
}
