//! Crowds of short flows in a file: `[[web]]`, `[[arrivals]]` and `[[sessions]]`.

use std::fmt;

use elephan_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::traffic::{Common, traffic};
use crate::algorithm::{Algorithm, SlowStart};
use crate::distribution::{DistributionFile, Pareto, Table};
use crate::plan::Cc;
use crate::start::StartFile;

traffic! {
    /// Web users, who fetch pages object by object and pause between pages (think time). The defaults are those of Kelly 2003,
    /// Table 4.
    pub struct WebFile {
        /// Number of users.
        pub users: u64,
        /// Think time: from the end of a page to the next request.
        #[serde(default = "think")]
        pub think: DistributionFile<Time>,
        /// Number of objects in a page.
        #[serde(default = "objects")]
        pub objects: DistributionFile<f64>,
        /// Time from the end of an object to the request for the next object of the page.
        #[serde(default = "between")]
        pub between: DistributionFile<Time>,
        /// Payload of an object.
        #[serde(default = "object_size")]
        pub size: DistributionFile<Bytes>,
        /// The congestion control algorithm of the servers.
        #[serde(default = "standard")]
        pub cc: Algorithm,
        /// The slow start of the servers.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// Overrides of the scenario's `tcp`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// Time of each user's first request; by default uniformly distributed over the mean think time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<StartFile>,
    }
}

traffic! {
    /// Finite flows that arrive in a Poisson process, independently of the network's state.
    pub struct ArrivalsFile {
        /// Mean number of arrivals in a second. Alternative to `load`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub per_second: Option<f64>,
        /// Mean payload offered, as a rate. Alternative to `per_second`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub load: Option<Rate>,
        /// Payload of a flow.
        pub size: SizesFile,
        /// The congestion control algorithm.
        pub cc: Algorithm,
        /// The slow start.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// Overrides of the scenario's `tcp`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// Start of the arrivals.
        #[serde(default)]
        pub start: StartFile,
    }
}

traffic! {
    /// Sessions: connections on which both ends write, requests and responses with times to think between them (Tmix, Weigle et al. 2006).
    /// The sender opens the connection and sends the requests.
    pub struct SessionsFile {
        /// Connection vectors in a format of Tmix: `{ cvec = "FILE" }`, or `{ lines = [...] }`. Alternative to `epochs`, `request`, `response`, `think` and `serve`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "vectors_schema")]
        pub vectors: Option<VectorsFile>,
        /// Mean number of sessions that begin in a second, in a Poisson process. Alternative to `vectors` and `load`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub per_second: Option<f64>,
        /// Mean payload offered in the direction that has more, as a rate. Starts of `vectors` are scaled to it; without it they are as in the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub load: Option<Rate>,
        /// Starts of `vectors` are divided into bins of this length, after scaling, and the bins are shuffled. None means that they are not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub shuffle: Option<Time>,
        /// Number of requests of a session, at most 100,000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub epochs: Option<DistributionFile<f64>>,
        /// Payload of a request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub request: Option<DistributionFile<Bytes>>,
        /// Payload of a response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub response: Option<DistributionFile<Bytes>>,
        /// Think time: from the arrival of a response to the next request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub think: Option<DistributionFile<Time>>,
        /// Time from the arrival of a request to its response; none means no time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub serve: Option<DistributionFile<Time>>,
        /// The congestion control algorithm of both ends.
        pub cc: Algorithm,
        /// The slow start of both ends.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// Overrides of the scenario's `tcp`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// Time zero of the sessions.
        #[serde(default)]
        pub start: StartFile,
    }
}

/// Connection vectors, in a format of Tmix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorsFile {
    /// The lines of a file.
    pub lines: Vec<String>,
}

fn vectors_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let only = |name: &str, value: Value| json!({ "type": "object", "properties": { name: value }, "required": [name], "additionalProperties": false });
    let lines =
        json!({ "type": "array", "items": { "type": "string" }, "description": "The lines of a file" });
    let cvec = json!({ "type": "string", "description": "A file, from the scenario's folder" });
    schemars::json_schema!({
        "description": "Connection vectors in a format of Tmix",
        "oneOf": [only("lines", lines), only("cvec", cvec)],
    })
}

const fn pareto<T>(minimum: T, shape: f64) -> DistributionFile<T> {
    DistributionFile::From(Table::Pareto(Pareto { minimum: Some(minimum), mean: None, shape }))
}
fn think() -> DistributionFile<Time> {
    pareto(Time::from_secs(10), 2.0)
}
fn objects() -> DistributionFile<f64> {
    pareto(3.0, 1.5)
}
fn between() -> DistributionFile<Time> {
    pareto(Time::from_millis(500), 1.5)
}
fn object_size() -> DistributionFile<Bytes> {
    pareto(Bytes::new(12_000), 1.2)
}
fn standard() -> Algorithm {
    Algorithm(Cc::plain("reno"))
}

/// Sizes of flows or chunks: drawn, or from a list in turn, which may stand in a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub enum SizesFile {
    /// Drawn.
    Drawn(DistributionFile<Bytes>),
    /// In turn.
    List(Vec<Bytes>),
}

/// The table form of sizes.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SizesTable {
    List(Vec<Bytes>),
    Exponential(Bytes),
    Uniform((Bytes, Bytes)),
    Pareto(Pareto<Bytes>),
}

impl<'de> Deserialize<'de> for SizesFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = SizesFile;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a size such as \"1 MB\", or a table that says how it is drawn")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<SizesFile, E> {
                Bytes::deserialize(text.into_deserializer())
                    .map(|size| SizesFile::Drawn(DistributionFile::Always(size)))
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<SizesFile, A::Error> {
                let drawn = |table| Ok(SizesFile::Drawn(DistributionFile::From(table)));
                match SizesTable::deserialize(MapAccessDeserializer::new(table))? {
                    SizesTable::List(list) => Ok(SizesFile::List(list)),
                    SizesTable::Exponential(mean) => drawn(Table::Exponential(mean)),
                    SizesTable::Uniform(pair) => drawn(Table::Uniform(pair)),
                    SizesTable::Pareto(pareto) => drawn(Table::Pareto(pareto)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for SizesFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Drawn(drawn) => drawn.serialize(serializer),
            Self::List(list) => json!({ "list": list }).serialize(serializer),
        }
    }
}

impl JsonSchema for SizesFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sizes".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (drawn, list) =
            (generator.subschema_for::<DistributionFile<Bytes>>(), generator.subschema_for::<Vec<Bytes>>());
        let only = |name: &str, schema: Value| json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false });
        let csv = json!({ "type": "string", "description": "A CSV file with a column \"bytes\", from the scenario's folder" });
        schemars::json_schema!({ "description": "A size, or a table that says how it is drawn or listed", "oneOf": [drawn, only("list", list.to_value()), only("csv", csv)] })
    }
}

/// Any of them.
#[derive(Clone, Copy)]
pub(crate) enum CrowdFile<'a> {
    Web(&'a WebFile),
    Arrivals(&'a ArrivalsFile),
    Sessions(&'a SessionsFile),
}

/// What all have.
macro_rules! of_each {
    ($self:ident, $file:ident => $value:expr) => {
        match $self {
            CrowdFile::Web($file) => $value,
            CrowdFile::Arrivals($file) => $value,
            CrowdFile::Sessions($file) => $value,
        }
    };
}

impl<'a> CrowdFile<'a> {
    /// Connections that there may be at once, as far as the file says.
    pub fn connections(self) -> u64 {
        match self {
            Self::Web(file) => file.users.saturating_mul(file.count),
            Self::Arrivals(_) | Self::Sessions(_) => self.common().count,
        }
    }

    /// The users of one crowd; none of what arrives by itself.
    pub fn users(self) -> Option<u64> {
        match self {
            Self::Web(file) => Some(file.users),
            Self::Arrivals(_) | Self::Sessions(_) => None,
        }
    }

    pub fn common(self) -> Common<'a> {
        of_each!(self, file => file.common())
    }

    /// What it is called where it has no label.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Web(_) => "web",
            Self::Arrivals(_) => "arrivals",
            Self::Sessions(_) => "sessions",
        }
    }

    /// The algorithm, the slow start, and what the table changes of the TCP stack.
    pub fn sender(self) -> (&'a Algorithm, &'a SlowStart, &'a Map<String, Value>) {
        of_each!(self, file => (&file.cc, &file.slow_start, &file.tcp))
    }
}
