//! Links that follow a trace: `trace`.

use elephan_units::{Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a link does over time. A file is read when the scenario is, and the table then has its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LinkTrace")]
pub struct ReplayFile {
    /// A file to be read: CSV with the columns `time`, `rate`, `delay` and `loss`, or a trace of mahimahi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the trace begins again after its last time.
    #[serde(default = "yes", rename = "loop")]
    pub repeats: bool,
    /// Rates, delays and losses over time, as in a CSV file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepFile>,
    /// Times in ms at which 1500 bytes may leave, as in a trace of mahimahi.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opportunities: Vec<u64>,
    /// The file from which the content was read, for people and tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

fn yes() -> bool {
    true
}

/// What holds from a time on; what is missing stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TraceStep")]
pub struct StepFile {
    /// Time from which on it holds; that of the first is zero.
    pub time: Time,
    /// Rate; zero is an outage, during which packets wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// One-way propagation delay; packets on the wire keep the old one and can be overtaken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Probability that the wire loses a packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub loss: Option<f64>,
}

/// The schema of the key: the path of a file, or a table.
pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<ReplayFile>();
    json_schema!({ "anyOf": [{ "type": "string", "description": "A file, relative to the scenario's folder" }, table] })
}
