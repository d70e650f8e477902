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
    /// Time of the change.
    pub at: Time,
    /// The change is made again each time this has passed, until the run ends: with another event, a route that flaps. None means once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
    /// The link: `bottleneck`, `bottleneck.reverse`, or the name of a `link`.
    pub link: String,
    /// New rate; the packet in service keeps the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// New one-way propagation delay; packets on the wire keep the old one and can be overtaken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// New losses on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// New weights of classes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// False: the link goes down and drops all packets in its queue and on the wire. True: it comes up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
}
