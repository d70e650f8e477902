//! The settings of a link that a scenario can choose.

use elephan_units::{Choice, Rate, Time, read_choice};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::policer::Policer;
use crate::queue::Queue;
use crate::schedule::Schedule;
use crate::waiting::Limit;

/// How a link loses packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// Independent losses with equal probability.
    Random {
        /// Probability, 0 to 1.
        probability: f64,
    },
    /// Loss of every n-th packet.
    Periodic {
        /// Number of packets from one loss to the next; 1 or more.
        every: u64,
    },
    /// Two states, each with its own loss probability (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability, for each packet, of going from the good to the bad state.
        p: f64,
        /// Probability, for each packet, of going from the bad to the good state.
        r: f64,
        /// Loss probability in the bad state.
        #[schemars(default = "certain")]
        loss_bad: f64,
        /// Loss probability in the good state.
        #[schemars(default)]
        loss_good: f64,
    },
}

fn certain() -> f64 {
    1.0
}

impl<'de> Choice<'de> for Loss {
    const KIND: &'static str = "a loss model";

    fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Random {
            probability: f64,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Periodic {
            every: u64,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct GilbertElliott {
            p: f64,
            r: f64,
            #[serde(default = "certain")]
            loss_bad: f64,
            #[serde(default)]
            loss_good: f64,
        }
        let parameters = MapAccessDeserializer::new(parameters);
        match name {
            "random" => {
                Random::deserialize(parameters).map(|Random { probability }| Self::Random { probability })
            }
            "periodic" => {
                Periodic::deserialize(parameters).map(|Periodic { every }| Self::Periodic { every })
            }
            "gilbert-elliott" => {
                GilbertElliott::deserialize(parameters).map(|GilbertElliott { p, r, loss_bad, loss_good }| {
                    Self::GilbertElliott { p, r, loss_bad, loss_good }
                })
            }
            _ => Err(A::Error::unknown_variant(name, &["random", "periodic", "gilbert-elliott"])),
        }
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_choice(deserializer)
    }
}

/// How a link's delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Delay {
    /// Uniformly distributed additional delay of up to `max` for each packet, without reordering.
    Jitter {
        /// Maximum additional delay.
        max: Time,
    },
    /// An additional delay of `extra` for some packets, so that others overtake them.
    Reorder {
        /// Probability that a packet is delayed.
        probability: f64,
        /// Additional delay.
        extra: Time,
    },
    /// Packets that reach the end of the wire within a slot arrive together at the slot's end, in their order: a link that
    /// aggregates, as Wi-Fi, DOCSIS and mobile networks do (`slot` of tc-netem(8)). Slots end at the multiples of `slot` from the
    /// beginning of the run.
    Aggregate {
        /// Length of a slot; above zero.
        slot: Time,
    },
    /// A random additional delay for each packet, without reordering, whose distribution has a heavy tail: Pareto's, which measured
    /// delays follow better than normal and log-normal ones (Zhang and He 2007, "Statistical Modeling and Correlation Analysis of
    /// End-to-End Delay in Wide Area Networks"). It is of type II, which begins at zero: the delay of the link is the shortest.
    HeavyTail {
        /// Median of the additional delay; above zero.
        median: Time,
        /// Shape: the tail decays as this power of the delay. Above 1, so that the mean is finite; up to 2 the variance is not.
        shape: f64,
    },
}

impl<'de> Choice<'de> for Delay {
    const KIND: &'static str = "a delay model";

    fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Jitter {
            max: Time,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Reorder {
            probability: f64,
            extra: Time,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Aggregate {
            slot: Time,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct HeavyTail {
            median: Time,
            shape: f64,
        }
        let parameters = MapAccessDeserializer::new(parameters);
        match name {
            "jitter" => Jitter::deserialize(parameters).map(|Jitter { max }| Self::Jitter { max }),
            "reorder" => Reorder::deserialize(parameters)
                .map(|Reorder { probability, extra }| Self::Reorder { probability, extra }),
            "aggregate" => {
                Aggregate::deserialize(parameters).map(|Aggregate { slot }| Self::Aggregate { slot })
            }
            "heavy-tail" => HeavyTail::deserialize(parameters)
                .map(|HeavyTail { median, shape }| Self::HeavyTail { median, shape }),
            _ => Err(A::Error::unknown_variant(name, &["jitter", "reorder", "aggregate", "heavy-tail"])),
        }
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_choice(deserializer)
    }
}

/// How a link rewrites the ECN field of packets behind its queue, so that marks do not reach the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnRewrite {
    /// Every packet becomes Not-ECT, so that queues further on drop it instead of marking it: bleaching (RFC 3168, section 18.1.3:
    /// disabling ECN-capability).
    Bleach,
    /// Marked packets become ECT(0) again, which senders set (RFC 3168, section 18.1.1: erasing the congestion indication). A tunnel
    /// does so to marks of the links that it crosses if its egress does not comply with RFC 6040, section 4.2; marks from before
    /// this link are cleared too, which such a tunnel leaves.
    Clear,
}

/// A link in one direction, resolved to exact numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate at which IP packets are serialised; `None` means that serialisation takes no time.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Time,
    /// Limit of the queue.
    pub limit: Limit,
    /// The queue discipline.
    pub queue: Queue,
    /// Token buckets before the queue.
    pub police: Vec<Policer>,
    /// Losses not caused by the queue; they occur behind it, on the wire.
    pub loss: Option<Loss>,
    /// Variation of the delay.
    pub vary: Option<Delay>,
    /// What it does to the ECN field.
    pub ecn: Option<EcnRewrite>,
    /// When it serves, if that is known beforehand: in place of the rate, which then is a nominal one. Packets then wait in the
    /// queue as they do with `changes`.
    pub schedule: Option<Schedule>,
    /// Whether the rate or the state (up, down) changes during the run. Packets then wait in the queue until
    /// they are served, whatever the discipline.
    pub changes: bool,
}

impl LinkConfig {
    /// A way of nothing but delay: its queue has no limit.
    pub fn delay_only(delay: Time) -> Self {
        Self {
            rate: None,
            delay,
            limit: Limit::Packets(u64::MAX),
            queue: Queue::default(),
            police: Vec::new(),
            loss: None,
            vary: None,
            ecn: None,
            schedule: None,
            changes: false,
        }
    }
}
