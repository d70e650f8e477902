//! The scenario file, as people write it.

mod crowds;
mod event;
mod host;
mod kinds;
mod streams;
mod traffic;

use std::fmt;

use elephan_net::{Delay, Loss, Policer, Queue};
use elephan_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::algorithm::{Algorithm, SlowStart};
use crate::buffer::Buffer;
use crate::start::StartFile;

pub(crate) use crowds::CrowdFile;
pub use crowds::{ArrivalsFile, SizesFile, WebFile};
pub use event::EventFile;
pub use host::Host;
pub use kinds::TRAFFIC;
pub(crate) use streams::StreamFile;
pub use streams::{CbrFile, OnOffFile};
pub(crate) use traffic::Place;
use traffic::traffic;

/// A scenario: a network, the flows on it, and how long they are watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Elephan scenario")]
pub struct Scenario {
    /// What it is called.
    #[serde(default = "run")]
    pub name: String,
    /// What runs it.
    #[serde(default)]
    pub engine: Engine,
    /// How long it runs.
    pub duration: Time,
    /// Seed of every random process.
    #[serde(default = "one")]
    pub seed: u64,
    /// A dumbbell: one bottleneck between all senders and all receivers. Either this or `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// Links of any other topology. Either these or `path`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkFile>,
    /// The TCP stack of all flows.
    #[serde(default)]
    #[schemars(with = "elephan_tcp::Config")]
    pub tcp: Map<String, Value>,
    /// What sending costs the hosts of all flows; by default they are infinitely fast.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Host")]
    pub host: Map<String, Value>,
    /// The flows.
    #[serde(default)]
    pub flow: Vec<FlowFile>,
    /// Web users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebFile>,
    /// Sized flows that arrive at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<ArrivalsFile>,
    /// Streams of datagrams at a constant rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cbr: Vec<CbrFile>,
    /// Streams of datagrams that go on and off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_off: Vec<OnOffFile>,
    /// Changes of links during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventFile>,
    /// When metrics count.
    #[serde(default)]
    pub measure: MeasureFile,
    /// What is traced.
    #[serde(default)]
    pub trace: TraceFile,
    /// Values to try, by key: all combinations; `zip` has lists that go together, `points` single points.
    /// `repeat` runs each with so many seeds.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub sweep: Map<String, Value>,
}

fn run() -> String {
    "run".to_owned()
}
pub(crate) fn one() -> u64 {
    1
}

/// What runs a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The packet simulator, in virtual time.
    #[default]
    Sim,
    /// The fluid model: differential equations of windows and queue, of one bottleneck and bulk transfers.
    Model,
    /// The running Linux kernel's own TCP, in real time.
    Linux,
}

/// A dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the bottleneck, counting IP packets.
    pub rate: Rate,
    /// Round-trip time without queueing and serialisation.
    pub rtt: Time,
    /// What the bottleneck's queue holds, the packet in service not counted.
    #[serde(default)]
    pub buffer: Buffer,
    /// The queue discipline: a name, or a table with `name` and its parameters.
    #[serde(default)]
    pub queue: Queue,
    /// Token buckets before the queue, in the direction of the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub police: Vec<Policer>,
    /// Losses on the wire, in the direction of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Variation of the delay, in the direction of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Delay>,
    /// Rate of a link of its own for each sender and each receiver; none means that hosts are infinitely fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// The direction of the acknowledgments, where it differs.
    #[serde(default)]
    pub reverse: Reverse,
}

/// The bottleneck in the direction of the acknowledgments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reverse {
    /// Its rate; by default that of the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What its queue holds; by default as in the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Its queue discipline.
    pub queue: Queue,
    /// Its losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Variation of its delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vary: Option<Delay>,
}

/// A link of a topology that is no dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkFile {
    /// Its name.
    pub name: String,
    /// The node that it leaves.
    pub from: String,
    /// The node that it enters.
    pub to: String,
    /// Its rate; none means infinitely fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Its propagation delay, one way.
    pub delay: Time,
    /// What its queue holds; a share of the product of its rate and twice its delay.
    #[serde(default)]
    pub buffer: Buffer,
    /// The queue discipline.
    #[serde(default)]
    pub queue: Queue,
    /// Token buckets before the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub police: Vec<Policer>,
    /// Losses on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Variation of the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Delay>,
    /// Whether there is the same link in the other direction, called `NAME.reverse`, without loss and variation.
    #[serde(default = "yes")]
    pub both_ways: bool,
}

fn yes() -> bool {
    true
}

traffic! {
    /// A flow, or several alike.
    pub struct FlowFile {
        /// The congestion control algorithm: a name, or a table with `name` and its parameters.
        pub cc: Algorithm,
        /// The slow start: a name, or a table with `name` and its parameters.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// When it starts.
        #[serde(default)]
        pub start: StartFile,
        /// Payload of a transfer; none means data without end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Bytes>,
        /// How many transfers, one after the other, each on a connection of its own: a number or `"repeat"`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub transfers: Option<Transfers>,
        /// What differs from the scenario's `tcp` for this flow.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// What differs from the scenario's `host` for this flow's sender.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "Host")]
        pub host: Map<String, Value>,
    }
}

/// How many transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfers {
    /// So many.
    Count(u64),
    /// Until the run ends.
    Repeat,
}

impl<'de> Deserialize<'de> for Transfers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Transfers;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number of transfers, or \"repeat\"")
            }
            fn visit_u64<E: serde::de::Error>(self, count: u64) -> Result<Transfers, E> {
                Ok(Transfers::Count(count))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Transfers, E> {
                if text == "repeat" {
                    return Ok(Transfers::Repeat);
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Transfers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Repeat => serializer.serialize_str("repeat"),
        }
    }
}

impl JsonSchema for Transfers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Transfers".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number of transfers, or \"repeat\"",
            "oneOf": [{ "type": "integer", "minimum": 1 }, { "const": "repeat" }],
        })
    }
}

/// When metrics count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureFile {
    /// Start of the measuring window; by default the latest start of any flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Its end; by default the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Distance of the samples that stability and convergence are computed from; by default 1 s, and less in
    /// runs shorter than 20 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
}

/// What is traced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceFile {
    /// Distance of the samples of flows and queues.
    pub interval: Time,
    /// Whether every event is kept.
    pub events: bool,
    /// Whether every transfer is kept; metrics count them in any case.
    pub transfers: bool,
    /// Links whose packets are written to a pcap file.
    pub pcap: Vec<String>,
}

impl Default for TraceFile {
    fn default() -> Self {
        Self { interval: Time::from_millis(100), events: false, transfers: true, pcap: Vec::new() }
    }
}

impl Scenario {
    /// Every crowd of the file, with its key.
    pub(crate) fn crowd_files(&self) -> impl Iterator<Item = (String, CrowdFile<'_>)> {
        let web = self.web.iter().enumerate().map(|(n, file)| (format!("web.{n}"), CrowdFile::Web(file)));
        let arrivals = self.arrivals.iter().enumerate();
        web.chain(arrivals.map(|(n, file)| (format!("arrivals.{n}"), CrowdFile::Arrivals(file))))
    }

    /// Every stream of the file, with its key.
    pub(crate) fn stream_files(&self) -> impl Iterator<Item = (String, StreamFile<'_>)> {
        let cbr = self.cbr.iter().enumerate().map(|(n, file)| (format!("cbr.{n}"), StreamFile::Cbr(file)));
        let on_off =
            self.on_off.iter().enumerate().map(|(n, file)| (format!("on_off.{n}"), StreamFile::OnOff(file)));
        cbr.chain(on_off)
    }
}
