//! Links that change during a run: `[[event]]`.

use std::collections::BTreeMap;

use elephan_net::Loss;
use elephan_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of a link during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// When it happens.
    pub at: Time,
    /// The link: `bottleneck`, `bottleneck.reverse`, or as the file calls it.
    pub link: String,
    /// The new rate; the packet in service keeps the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The new propagation delay, one way; what is on the wire keeps the old one, and may be overtaken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// The new losses on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// New weights of classes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// False: the link goes down, and drops what waits and what is on the wire. True: it comes up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}
