//! Algorithms and slow starts in a file: a name, or a table with the name and settings.

use std::borrow::Cow;

use elephan_abi::{linux, registered};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Algorithm as _, registry, slow_start};
use elephan_tcp::{AfterIdle, Config, Profile};
use elephan_units::entry::{self, Parameter, Value, choice_schema};
use elephan_units::{Choice, Entry, Mistake, OneOf, read_choice, refuse};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::plan::Cc;
use crate::read::typed;

/// Every algorithm that a file can name: those of `elephan-cc`; the files of `kernel/`; and Linux's own.
fn algorithms() -> Vec<Entry> {
    let own = registry::ALL.iter().map(plain);
    let kernel = elephan_abi::ALL.iter().map(|known| Entry {
        name: known.name,
        parameters: known.parameters,
        ..plain(known.described())
    });
    own.chain(kernel).chain(linux::ALL.iter().copied()).chain(linux::plain()).collect()
}

fn slow_starts() -> Vec<Entry> {
    slow_start::ALL.iter().map(plain).collect()
}

/// An entry without how one is made.
fn plain<M>(entry: &Entry<M>) -> Entry {
    let &Entry { name, title, source, implies, parameters, .. } = entry;
    Entry { name, title, source, implies, parameters, make: () }
}

/// A congestion control algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm(pub Cc);

impl Algorithm {
    /// Reads one from JSON; a mistake has a key below `cc`.
    pub fn from_json(value: Json) -> Result<Self, Mistake> {
        typed(value, "cc")
    }

    /// The keys of this stack that ask for a rule which the algorithm does not have, with why.
    pub(crate) fn refuses(&self, tcp: &Config) -> Vec<Mistake> {
        let built = registry::find(self.0.name).and_then(|entry| entry.build(&self.0.settings()).ok());
        let name = registered::short(self.0.name);
        let mut mistakes = Vec::new();
        if tcp.abe && built.as_ref().is_none_or(|algorithm| algorithm.abe().is_none()) {
            let expected = format!(
                "false, because RFC 8511 has a factor for Standard TCP and CUBIC, and none for {name}"
            );
            mistakes.push(Mistake::new("abe", expected, true));
        }
        let governs = self.governs();
        if tcp.after_idle == AfterIdle::Validate && governs {
            let expected = format!("restart, decay or keep, because {name} sets its window itself");
            mistakes.push(Mistake::new("after_idle", expected, "\"validate\""));
        }
        if tcp.rate_limited_increase && governs {
            let expected = format!("false, because {name} sets its window itself");
            mistakes.push(Mistake::new("rate_limited_increase", expected, true));
        }
        if tcp.misbehave.ignore_losses && governs {
            let expected = format!("false, because {name} sets its window itself");
            mistakes.push(Mistake::new("misbehave.ignore_losses", expected, true));
        }
        mistakes
    }

    /// Whether it sets its window itself.
    fn governs(&self) -> bool {
        let built = registry::find(self.0.name).and_then(|entry| entry.build(&self.0.settings()).ok());
        built.is_none_or(|algorithm| matches!(algorithm, AnyAlgorithm::Governor(_)))
    }

    /// Keys of `tcp` that the name implies, and their words.
    pub(crate) fn implies(&self) -> &'static [(&'static str, &'static str)] {
        registry::find(self.0.name).map_or(&[], |entry| entry.implies)
    }
}

/// A slow start.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStart(pub Cc);

impl SlowStart {
    /// What is expected in place of it for this algorithm, if that would ignore it.
    pub(crate) fn refused_by(&self, cc: &Algorithm) -> Option<Mistake> {
        (self.0.name == "careful-resume" && cc.governs()).then(|| {
            let expected =
                format!("another, because {} sets its window itself", registered::short(cc.0.name));
            Mistake::new("slow_start", expected, format_args!("\"{}\"", self.0.name))
        })
    }

    /// The slow start of an algorithm on a stack: that of the file, or HyStart for CUBIC on Linux 6, if the file has none. There the train of
    /// ACKs of a sender that paces may be as long as a whole round trip (net/ipv4/tcp_cubic.c, `hystart_update`).
    pub(crate) fn of(&self, cc: &Algorithm, tcp: &Config) -> Cc {
        let hystart = tcp.profile == Profile::Linux6 && cc.0.name == "cubic" && *self == Self::default();
        if !hystart {
            return self.0.clone();
        }
        let train = tcp.pacing.then(|| ("train".to_owned(), Value::Number(1.0)));
        Cc { name: "hystart", settings: train.into_iter().collect() }
    }
}

impl Default for SlowStart {
    fn default() -> Self {
        Self(Cc::plain("standard"))
    }
}

/// The name and the parameters of one that a file names, or what was expected.
type Found = Result<(&'static str, Vec<Parameter>), String>;

/// Where the simulator has Linux's own algorithms from.
pub(crate) const IMPORTED: &str =
    "imported source of Linux (apt-get install linux-source-6.1; elephan cc import PATH)";

fn one_of(known: &[Entry], name: &str) -> Found {
    let found = known.iter().find(|entry| entry.name == name);
    found.map(|entry| (entry.name, (entry.parameters)())).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        OneOf { known: &names, found: name }.to_string()
    })
}

fn algorithm(name: &str) -> Found {
    if let Some(known) = registered::find(name) {
        return Ok((known.entry.name, known.parameters.clone()));
    }
    if name.starts_with(linux::PREFIX) {
        if let Some(entry) = linux::find(name) {
            return Ok((entry.name, (entry.parameters)()));
        }
        let names: Vec<&str> = linux::ALL.iter().map(|entry| entry.name).collect();
        return Err(format!("one of {}, or another of an {IMPORTED}", names.join(", ")));
    }
    if registered::is_foreign(name) {
        return Err("an algorithm that is registered, as are those that a scenario file names".to_owned());
    }
    one_of(&algorithms(), name)
}

fn slow_start(name: &str) -> Found {
    one_of(&slow_starts(), name)
}

/// Reads the parameters of what was found, each with the range of its declaration.
fn read<'de, A: MapAccess<'de>>(name: &str, found: Found, mut parameters: A) -> Result<Cc, A::Error> {
    let (name, declared) = found.map_err(|expected| refuse(expected, format_args!("\"{name}\"")))?;
    let mut settings = Vec::new();
    while let Some(key) = parameters.next_key::<String>()? {
        let setting = parameters.next_value_seed(Asked { declared: &declared, parameter: &key })?;
        settings.push((key, setting));
    }
    for parameter in &declared {
        if let Cow::Borrowed(required) = parameter.name
            && parameter.is_required()
            && settings.iter().all(|(key, _)| key != required)
        {
            return Err(A::Error::missing_field(required));
        }
    }
    Ok(Cc { name, settings })
}

/// A parameter that a file sets.
struct Asked<'a> {
    declared: &'a [Parameter],
    parameter: &'a str,
}

impl<'de> DeserializeSeed<'de> for Asked<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Json::deserialize(deserializer)?;
        // The reader of the file knows the key.
        entry::read(self.declared, self.parameter, &value)
            .map_err(|mistake| refuse(mistake.expected, mistake.found))
    }
}

fn write<S: Serializer>(cc: &Cc, serializer: S) -> Result<S::Ok, S::Error> {
    if cc.settings.is_empty() {
        return serializer.serialize_str(cc.name);
    }
    cc.table().serialize(serializer)
}

impl Cc {
    /// As a table, with the key `name` first.
    pub fn table(&self) -> Map<String, Json> {
        let settings = self.settings.iter().map(|(name, value)| (name.clone(), Json::from(*value)));
        std::iter::once(("name".to_owned(), json!(self.name))).chain(settings).collect()
    }
}

/// The schema of algorithms includes those from outside, whose parameters it does not know.
fn algorithm_schema(kind: &str) -> Schema {
    let mut schema = schema(kind, &algorithms());
    let name = json!({ "type": "string", "pattern": format!("^({})", registered::KINDS.join("|")) });
    let table = json!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
    if let Some(Json::Array(kinds)) = schema.get_mut("anyOf") {
        kinds.extend([name, table]);
    }
    schema
}

fn schema(kind: &str, known: &[Entry]) -> Schema {
    let table = |entry: &Entry| {
        let declared = (entry.parameters)();
        let required = declared.iter().filter(|parameter| parameter.is_required());
        let required: Vec<Json> = required.map(|parameter| json!(parameter.name)).collect();
        let properties = declared.iter().map(|parameter| (parameter.name.to_string(), parameter.schema()));
        let mut table = entry.table(properties.collect());
        if let Some(Json::Array(all)) = table.get_mut("required") {
            all.extend(required);
        }
        table
    };
    choice_schema(kind, &known.iter().map(table).collect::<Vec<_>>())
}

/// Serde and schema of a type that wraps a name and settings.
macro_rules! named {
    ($type:ident, $kind:literal, $found:ident, $schema:expr) => {
        impl<'de> Choice<'de> for $type {
            const KIND: &'static str = $kind;
            fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
                read(name, $found(name), parameters).map(Self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_choice(deserializer)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                write(&self.0, serializer)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema(Self::KIND)
            }
        }
    };
}

named!(Algorithm, "a congestion control algorithm", algorithm, algorithm_schema);
named!(SlowStart, "a slow start", slow_start, |kind| schema(kind, &slow_starts()));
