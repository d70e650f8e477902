//! The parameters of schedulers, and of the classes among which they choose.
//!
//! A class has a queue of any discipline, so this file and `queue` depend on each other.

use elephan_units::Mistake;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dscp::Codepoints;
use crate::parameters::Parameters;
use crate::queue::Queue;

/// A traffic class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Name, used by events that change its weight.
    pub name: String,
    /// Codepoints of the class; none: all packets that no other class selects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Codepoints>,
    /// Weight: its share of the rate is the weight over the sum of all weights; by default 1. With 0 the class gets the
    /// capacity that others leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub weight: Option<f64>,
    /// Share of the link's buffer; by default all classes have equal shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub buffer_share: Option<f64>,
    /// Queue discipline of the class.
    #[serde(default)]
    pub queue: Queue,
}

/// Mistakes in a list of classes; schedulers that are `weighted` share by weight.
fn rules(classes: &[Class], weighted: bool) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if classes.is_empty() {
        return vec![Mistake::new("class", "at least one class", "none")];
    }
    let others = classes.iter().filter(|class| class.dscp.is_empty()).count();
    if others != 1 {
        mistakes.push(Mistake::new("class", "one class without dscp, for all other packets", others));
    }
    let sum: f64 = classes.iter().map(|class| class.weight.unwrap_or(1.0)).sum();
    if weighted && sum <= 0.0 {
        mistakes.push(Mistake::new("class", "weights with a sum above 0", sum));
    }
    let shares: f64 = classes.iter().map(|class| share(class, classes)).sum();
    if shares > 1.0 + 1e-9 {
        mistakes.push(Mistake::new("class", "buffer shares with a sum of at most 1", shares));
    }
    for (number, class) in classes.iter().enumerate() {
        let key = format!("class.{number}");
        if classes[..number].iter().any(|other| other.name == class.name) {
            mistakes.push(Mistake::new(
                format!("{key}.name"),
                "a name of its own",
                format_args!("\"{}\" again", class.name),
            ));
        }
        if !weighted && class.weight.is_some() {
            mistakes.push(Mistake::new(format!("{key}.weight"), "no weight: their order decides", "one"));
        }
        mistakes.extend(class.queue.mistakes().into_iter().map(|m| m.below(&format!("{key}.queue"))));
    }
    mistakes
}

/// A class's share of the buffer; classes that specify none share the rest equally.
pub(crate) fn share(class: &Class, classes: &[Class]) -> f64 {
    class.buffer_share.unwrap_or_else(|| {
        let named: f64 = classes.iter().filter_map(|class| class.buffer_share).sum();
        let unnamed = classes.iter().filter(|class| class.buffer_share.is_none()).count();
        (1.0 - named).max(0.0) / unnamed as f64
    })
}

elephan_units::with_defaults! {
    /// Deficit round robin's parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Drr {
        /// Bytes that a queue, or the class with the smallest weight, may send in a round; at least the largest packet, so that
        /// each round sends one (section 3).
        #[schemars(range(min = 1), extend("unit" = "bytes"))]
        pub quantum: u32 = 1500,
        /// Number of queues to which flows are hashed, if there are no classes.
        #[schemars(range(min = 1, max = 65536))]
        pub flows: u32 = 1024,
        /// The classes: tables with name, dscp, weight, `buffer_share` and queue. None: each flow has a queue of its own.
        pub class: Vec<Class> = Vec::new(),
    }
}

impl Parameters for Drr {
    fn rules(&self) -> Vec<Mistake> {
        if self.class.is_empty() { Vec::new() } else { rules(&self.class, true) }
    }
}

/// Weighted round robin's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wrr {
    /// The classes: tables with name, dscp, weight, `buffer_share` and queue; one without dscp for all other packets.
    pub class: Vec<Class>,
}

impl Parameters for Wrr {
    fn rules(&self) -> Vec<Mistake> {
        rules(&self.class, true)
    }
}

/// Strict priority's parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Priority {
    /// The classes, highest first: tables with name, dscp, `buffer_share` and queue; one without dscp for all other packets.
    pub class: Vec<Class>,
}

impl Parameters for Priority {
    fn rules(&self) -> Vec<Mistake> {
        rules(&self.class, false)
    }
}
