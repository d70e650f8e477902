//! The scenario file, as people write it.

mod app;
mod crowds;
mod event;
mod expect;
mod host;
mod kernel;
mod kinds;
mod replay;
mod streams;
mod traffic;

use std::fmt;

use elephan_net::{Delay, EcnRewrite, Loss, Policer, Queue};
use elephan_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::algorithm::{Algorithm, SlowStart};
use crate::buffer::Buffer;
use crate::start::StartFile;

pub use app::{AppFile, KeyFramesFile};
pub(crate) use crowds::CrowdFile;
pub use crowds::{ArrivalsFile, SessionsFile, SizesFile, VectorsFile, WebFile};
pub use event::EventFile;
pub use expect::{At, Bound, ExpectFile, Span, Statistic};
pub use host::Host;
pub use kernel::{KernelFile, Version};
pub use kinds::TRAFFIC;
pub use replay::{ReplayFile, StepFile};
pub(crate) use streams::StreamFile;
pub use streams::{CbrFile, OnOffFile};
pub(crate) use traffic::Place;
use traffic::traffic;

/// A scenario: a network, its traffic, and the duration and measurement of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Elephan scenario")]
pub struct Scenario {
    /// Name.
    #[serde(default = "run")]
    pub name: String,
    /// Engine that runs the scenario.
    #[serde(default)]
    pub engine: Engine,
    /// The kernel that the engine `kernel` runs.
    #[serde(default, skip_serializing_if = "KernelFile::is_default")]
    pub kernel: KernelFile,
    /// Duration of the run.
    pub duration: Time,
    /// Seed of all random processes.
    #[serde(default = "one")]
    pub seed: u64,
    /// A dumbbell: one bottleneck between all senders and all receivers. Alternative to `link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// Links of any other topology. Alternative to `path`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkFile>,
    /// The TCP stack of all flows.
    #[serde(default)]
    #[schemars(with = "elephan_tcp::Config")]
    pub tcp: Map<String, Value>,
    /// Processing costs of all sending hosts; by default hosts are infinitely fast.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Host")]
    pub host: Map<String, Value>,
    /// The flows.
    #[serde(default)]
    pub flow: Vec<FlowFile>,
    /// Web users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebFile>,
    /// Finite flows that arrive at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<ArrivalsFile>,
    /// Sessions of requests and responses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionsFile>,
    /// Streams of datagrams at a constant rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cbr: Vec<CbrFile>,
    /// Streams of datagrams that alternate between on and off periods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_off: Vec<OnOffFile>,
    /// Changes of links during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventFile>,
    /// The measuring window.
    #[serde(default)]
    pub measure: MeasureFile,
    /// What is recorded.
    #[serde(default)]
    pub trace: TraceFile,
    /// Values to sweep, by key, in all combinations; `zip` has lists that advance together, `points` single points. `repeat` is
    /// the number of seeds for each point.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub sweep: Map<String, Value>,
    /// What is expected of its runs; `elephan check` decides it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<ExpectFile>,
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
    /// The fluid model: differential equations for windows and queue; one bottleneck and bulk transfers only.
    Model,
    /// The running Linux kernel's own TCP, in real time.
    Linux,
    /// The TCP of a stock Linux kernel that runs as a process (user-mode Linux), in virtual time.
    Kernel,
}

impl fmt::Display for Engine {
    /// As a file has it: `engine = "sim"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Sim => "sim",
            Self::Model => "model",
            Self::Linux => "linux",
            Self::Kernel => "kernel",
        };
        write!(f, "engine = \"{name}\"")
    }
}

/// A dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Rate of the bottleneck, counting IP packets.
    pub rate: Rate,
    /// Round-trip time without queueing and serialisation.
    pub rtt: Time,
    /// Capacity of the bottleneck's queue, without the packet in service.
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
    /// What the link does to the ECN field of packets, behind its queue: by default nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnRewrite>,
    /// Rate, delay and losses over time, in the direction of the data: a file, or a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replay::schema")]
    pub trace: Option<ReplayFile>,
    /// Rate of a separate access link for each sender and each receiver; none means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Rate>,
    /// Settings of the reverse direction (acknowledgments), if they differ.
    #[serde(default)]
    pub reverse: Reverse,
}

/// The bottleneck in the direction of the acknowledgments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reverse {
    /// Rate; by default that of the forward direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Capacity of the queue; by default that of the forward direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Queue discipline.
    pub queue: Queue,
    /// Losses on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Variation of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vary: Option<Delay>,
    /// What it does to the ECN field of packets, behind its queue: by default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnRewrite>,
    /// Rate, delay and losses over time: a file, or a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replay::schema")]
    pub trace: Option<ReplayFile>,
}

/// A link of a topology other than a dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkFile {
    /// Its name.
    pub name: String,
    /// Node at which the link begins.
    pub from: String,
    /// Node at which the link ends.
    pub to: String,
    /// Rate; none means infinitely fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    pub delay: Time,
    /// Capacity of the queue; a share refers to the rate times twice the delay.
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
    /// What it does to the ECN field of packets, behind its queue: by default nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnRewrite>,
    /// Rate, delay and losses over time: a file, or a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "replay::schema")]
    pub trace: Option<ReplayFile>,
    /// Whether to add the same link in the reverse direction, named `NAME.reverse`, without loss, delay variation, `ecn` and trace.
    #[serde(default = "yes")]
    pub both_ways: bool,
}

fn yes() -> bool {
    true
}

traffic! {
    /// One flow, or several identical ones.
    pub struct FlowFile {
        /// The congestion control algorithm: a name, or a table with `name` and its parameters.
        pub cc: Algorithm,
        /// The slow start: a name, or a table with `name` and its parameters.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// Start time.
        #[serde(default)]
        pub start: StartFile,
        /// Payload of a transfer; none means unlimited data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Bytes>,
        /// Number of successive transfers, each on its own connection: a number or `"repeat"`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub transfers: Option<Transfers>,
        /// An application that writes over time, on one connection; none means that there is always data to send. Alternative to `size`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub app: Option<AppFile>,
        /// Overrides of the scenario's `tcp` for this flow.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// Overrides of the scenario's `host` for this flow's sender.
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

/// The measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureFile {
    /// Start of the measuring window; by default the latest start of a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// End of the measuring window; by default the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Sampling interval for stability and convergence; by default 1 s, and less for runs shorter than 20 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
}

elephan_units::with_defaults! {
    /// What is recorded.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct TraceFile {
        /// Sampling interval of flows and queues; by default 100 ms, and more above 1000 flows.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub interval: Option<Time> = None,
        /// Whether to record every event.
        pub events: bool = false,
        /// Whether to record the variables of the flows' congestion control: its state, its estimates and its bounds, at every sample and
        /// whenever the state changes.
        pub variables: bool = false,
        /// Whether to record every transfer; metrics always include them.
        pub transfers: bool = true,
        /// Links whose packets are captured in a pcap file.
        pub pcap: Vec<String> = Vec::new(),
    }
}

impl Scenario {
    /// Every crowd of the file, with its key.
    pub(crate) fn crowd_files(&self) -> impl Iterator<Item = (String, CrowdFile<'_>)> {
        let web = self.web.iter().enumerate().map(|(n, file)| (format!("web.{n}"), CrowdFile::Web(file)));
        let arrivals = self.arrivals.iter().enumerate();
        let sessions = self.sessions.iter().enumerate();
        web.chain(arrivals.map(|(n, file)| (format!("arrivals.{n}"), CrowdFile::Arrivals(file))))
            .chain(sessions.map(|(n, file)| (format!("sessions.{n}"), CrowdFile::Sessions(file))))
    }

    /// Every stream of the file, with its key.
    pub(crate) fn stream_files(&self) -> impl Iterator<Item = (String, StreamFile<'_>)> {
        let cbr = self.cbr.iter().enumerate().map(|(n, file)| (format!("cbr.{n}"), StreamFile::Cbr(file)));
        let on_off =
            self.on_off.iter().enumerate().map(|(n, file)| (format!("on_off.{n}"), StreamFile::OnOff(file)));
        cbr.chain(on_off)
    }
}
