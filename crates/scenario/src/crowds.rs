//! Crowds of short flows in a file: `[[web]]` and `[[arrivals]]`.

use std::fmt;

use elephan_traffic::{Arrivals, Demand, Distribution, Sizes, Web};
use elephan_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::algorithm::{Algorithm, SlowStart};
use crate::distribution::{DistributionFile, Pareto, Table};
use crate::error::Mistake;
use crate::file::Scenario;
use crate::plan::{Cc, Crowd, Flow, Members};
use crate::resolve::Network;
use crate::start::StartFile;
use crate::topology::Topology;
use crate::traffic::{Common, traffic};

traffic! {
    /// Web users, who fetch pages object by object and think between pages. The defaults are those of Kelly 2003, Table 4.
    pub struct WebFile {
        /// How many users.
        pub users: u64,
        /// From the end of a page to the next.
        #[serde(default = "think")]
        pub think: DistributionFile<Time>,
        /// Objects of a page.
        #[serde(default = "objects")]
        pub objects: DistributionFile<f64>,
        /// From the end of an object to the next of its page.
        #[serde(default = "between")]
        pub between: DistributionFile<Time>,
        /// Payload of an object.
        #[serde(default = "object_size")]
        pub size: DistributionFile<Bytes>,
        /// The congestion control algorithm of the servers.
        #[serde(default = "standard")]
        pub cc: Algorithm,
        /// Their slow start.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// What differs from the scenario's `tcp`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// When each user asks for the first page; by default uniformly within the mean time to think.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<StartFile>,
    }
}

traffic! {
    /// Sized flows that arrive by a Poisson process, whatever becomes of them.
    pub struct ArrivalsFile {
        /// How many arrive in a second, on average. Either this or `load`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub per_second: Option<f64>,
        /// Payload that they bring, on average. Either this or `per_second`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub load: Option<Rate>,
        /// Payload of a flow.
        pub size: SizesFile,
        /// The congestion control algorithm.
        pub cc: Algorithm,
        /// The slow start.
        #[serde(default)]
        pub slow_start: SlowStart,
        /// What differs from the scenario's `tcp`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[schemars(with = "elephan_tcp::Config")]
        pub tcp: Map<String, Value>,
        /// When they begin to arrive.
        #[serde(default)]
        pub start: StartFile,
    }
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

/// Sizes of flows: drawn, or from a list in turn, which may stand in a CSV file.
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
    Uniform(Bytes, Bytes),
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
                    SizesTable::Uniform(from, to) => drawn(Table::Uniform(from, to)),
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

impl SizesFile {
    fn sizes(&self, key: &str) -> Result<Sizes, Mistake> {
        match self {
            Self::Drawn(drawn) => drawn.distribution(key, false).map(Sizes::Drawn),
            Self::List(list) if list.is_empty() || list.contains(&Bytes::ZERO) => {
                Err(Mistake::new(format!("{key}.list"), "one or more sizes above zero", "none, or \"0 B\""))
            }
            Self::List(list) => Ok(Sizes::Listed(list.iter().map(|size| size.get()).collect())),
        }
    }
}

/// Either of the two.
#[derive(Clone, Copy)]
pub(crate) enum CrowdFile<'a> {
    Web(&'a WebFile),
    Arrivals(&'a ArrivalsFile),
}

/// What both have.
macro_rules! of_both {
    ($self:ident, $file:ident => $value:expr) => {
        match $self {
            CrowdFile::Web($file) => $value,
            CrowdFile::Arrivals($file) => $value,
        }
    };
}

impl<'a> CrowdFile<'a> {
    /// Connections that there may be at once, as far as the file says.
    pub fn connections(self) -> u64 {
        match self {
            Self::Web(file) => file.users.saturating_mul(file.count),
            Self::Arrivals(file) => file.count,
        }
    }

    /// The users of one crowd; none of what arrives by itself.
    pub fn users(self) -> Option<u64> {
        match self {
            Self::Web(file) => Some(file.users),
            Self::Arrivals(_) => None,
        }
    }

    pub fn common(self) -> Common<'a> {
        of_both!(self, file => file.common())
    }

    /// What it is called where it has no label.
    fn kind(self) -> &'static str {
        match self {
            Self::Web(_) => "web",
            Self::Arrivals(_) => "arrivals",
        }
    }

    fn members(self, key: &str, network: &mut Network) -> Option<Members> {
        let below = |name: &str| format!("{key}.{name}");
        match self {
            Self::Web(file) => {
                let think = network.note(file.think.distribution(&below("think"), true));
                let objects = network.note(file.objects.distribution(&below("objects"), false));
                let between = network.note(file.between.distribution(&below("between"), true));
                let size = network.note(file.size.distribution(&below("size"), false));
                let web = Web { think: think?, objects: objects?, between: between?, size: size? };
                Some(Members::Users(file.users, web))
            }
            Self::Arrivals(file) => {
                let sizes = network.note(file.size.sizes(&below("size")))?;
                let per_second = network.note(file.per_second(&sizes, key))?;
                Some(Members::Arrivals(Arrivals { per_second, sizes }))
            }
        }
    }

    fn start(self, key: &str, network: &mut Network) -> StartFile {
        match self {
            Self::Arrivals(file) => file.start,
            Self::Web(file) => file.start.unwrap_or_else(|| {
                let mean = file.think.distribution(key, true).map_or(0.0, |think| think.mean());
                if mean.is_infinite() {
                    let expected =
                        "a start, because time to think has no mean within which users could start";
                    network.wrong(format!("{key}.start"), expected, "nothing");
                    return StartFile::default();
                }
                StartFile::Uniform(Time::ZERO, Time::from_secs_f64(mean))
            }),
        }
    }
}

impl ArrivalsFile {
    fn per_second(&self, sizes: &Sizes, key: &str) -> Result<f64, Mistake> {
        let below = |name: &str| format!("{key}.{name}");
        match (self.per_second, self.load) {
            (Some(rate), None) if rate > 0.0 && rate <= 1e9 => Ok(rate),
            (Some(rate), None) => Err(Mistake::new(below("per_second"), "a number above 0, up to 1e9", rate)),
            (None, Some(load)) if load.bits_per_sec() == 0 => {
                Err(Mistake::new(below("load"), "a rate above zero", "\"0 bit/s\""))
            }
            (None, Some(_)) if sizes.mean().is_infinite() => {
                let expected = "sizes that have a mean, because load asks for it: a Pareto shape above 1";
                let shape = match sizes {
                    Sizes::Drawn(Distribution::Pareto { shape, .. }) => *shape,
                    _ => f64::NAN,
                };
                Err(Mistake::new(below("size.pareto.shape"), expected, shape))
            }
            (None, Some(load)) => Ok(load.bits_per_sec() as f64 / 8.0 / sizes.mean()),
            (Some(_), Some(_)) => Err(Mistake::new(key, "either per_second or load", "both")),
            (None, None) => Err(Mistake::new(key, "either per_second or load", "neither")),
        }
    }
}

impl Scenario {
    /// Every crowd of the file, with its key.
    pub(crate) fn crowd_files(&self) -> impl Iterator<Item = (String, CrowdFile<'_>)> {
        let web = self.web.iter().enumerate().map(|(n, file)| (format!("web.{n}"), CrowdFile::Web(file)));
        let arrivals = self.arrivals.iter().enumerate();
        web.chain(arrivals.map(|(n, file)| (format!("arrivals.{n}"), CrowdFile::Arrivals(file))))
    }

    /// Every crowd of the plan.
    pub(crate) fn crowds(&self, topology: &mut Topology<'_>, network: &mut Network) -> Vec<Crowd> {
        let mut crowds: Vec<Crowd> = Vec::new();
        for (key, file) in self.crowd_files() {
            let first = crowds.len() as u64;
            let name = |n: u64| format!("crowd {}", first + n);
            let common = file.common();
            let placed = topology.place(&common.place, common.count, &key, name, network);
            let (cc, slow_start) = of_both!(file, file => (&file.cc, &file.slow_start));
            let tcp = of_both!(file, file => &file.tcp);
            let tcp = self.stack(cc, tcp, &key, network);
            let start = file.start(&key, network);
            let start = self.start(start, common.stop, &key, network);
            let members = file.members(&key, network);
            let (Some((rtt, routes)), Some(tcp), Some(members)) = (placed, tcp, members) else { continue };
            let flow = Flow {
                label: common.label.unwrap_or(file.kind()).to_owned(),
                cc: cc.0.clone(),
                slow_start: slow_start.0.clone(),
                tcp,
                forward: 0,
                reverse: 0,
                rtt,
                start,
                stop: common.stop,
                demand: Demand::Drawn,
                host: None,
                dscp: common.dscp,
            };
            crowds.extend(routes.into_iter().map(|[forward, reverse]| Crowd {
                flow: Flow { forward, reverse, ..flow.clone() },
                members: members.clone(),
            }));
        }
        crowds
    }
}
