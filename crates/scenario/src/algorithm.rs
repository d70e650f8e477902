//! Algorithms and slow starts in a file: a name, or a table with the name and settings.

use elephan_cc::{registry, slow_start};
use elephan_kernel::linux;
use elephan_tcp::Profile;
use elephan_units::entry::{Value, choice_schema};
use elephan_units::{Choice, Entry, Mistake, read_choice, refuse};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::plan::Cc;
use crate::read::typed;

/// Every algorithm that a file can name: those of `elephan-cc`; the files of `kernel/`; and Linux's own.
fn algorithms() -> Vec<Entry> {
    let own = registry::ALL.iter().map(plain);
    let kernel = elephan_kernel::ALL.iter().map(|known| Entry {
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

    /// Keys of `tcp` that the name implies, and their words.
    pub(crate) fn implies(&self) -> &'static [(&'static str, &'static str)] {
        registry::find(self.0.name).map_or(&[], |entry| entry.implies)
    }
}

/// A slow start.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStart(pub Cc);

impl SlowStart {
    /// The slow start of an algorithm on a stack: that of the file, or HyStart for CUBIC on Linux 6, if the file has none.
    pub(crate) fn of(&self, cc: &Algorithm, profile: Profile) -> Cc {
        let hystart = profile == Profile::Linux6 && cc.0.name == "cubic" && *self == Self::default();
        if hystart { Cc { name: "hystart", settings: Vec::new() } } else { self.0.clone() }
    }
}

impl Default for SlowStart {
    fn default() -> Self {
        Self(Cc::plain("standard"))
    }
}

/// Reads the parameters of `name`, each with the range of its declaration.
fn read<'de, A: MapAccess<'de>>(name: &str, mut parameters: A, known: &[Entry]) -> Result<Cc, A::Error> {
    let Some(entry) = known.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        return Err(refuse(format_args!("one of {}", names.join(", ")), format_args!("\"{name}\"")));
    };
    let mut settings = Vec::new();
    while let Some(key) = parameters.next_key::<String>()? {
        let setting = parameters.next_value_seed(Asked { entry, parameter: &key })?;
        settings.push((key, setting));
    }
    Ok(Cc { name: entry.name, settings })
}

/// A parameter that a file sets.
struct Asked<'a> {
    entry: &'a Entry,
    parameter: &'a str,
}

impl<'de> DeserializeSeed<'de> for Asked<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let value = Json::deserialize(deserializer)?;
        // The reader of the file knows the key.
        self.entry.read(self.parameter, &value).map_err(|mistake| refuse(mistake.expected, mistake.found))
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

fn schema(kind: &str, known: &[Entry]) -> Schema {
    let table = |entry: &Entry| {
        let parameters = (entry.parameters)().into_iter();
        entry.table(parameters.map(|parameter| (parameter.name.to_string(), parameter.schema())).collect())
    };
    choice_schema(kind, &known.iter().map(table).collect::<Vec<_>>())
}

/// Serde and schema of a type that wraps a name and settings.
macro_rules! named {
    ($type:ident, $kind:literal, $known:ident) => {
        impl<'de> Choice<'de> for $type {
            const KIND: &'static str = $kind;
            fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
                read(name, parameters, &$known()).map(Self)
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
                schema(Self::KIND, &$known())
            }
        }
    };
}

named!(Algorithm, "a congestion control algorithm", algorithms);
named!(SlowStart, "a slow start", slow_starts);
