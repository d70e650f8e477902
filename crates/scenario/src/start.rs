//! When something starts, as a file says it.

use std::fmt;

use elephan_units::{Time, refuse};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// When a flow starts: a time, or a table that says how it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartFile {
    /// At this time.
    At(Time),
    /// Uniformly from the first to the second.
    Uniform(Time, Time),
    /// After `from`, by an exponential distribution of this mean.
    Exponential {
        /// Mean of the distribution.
        mean: Time,
        /// Earliest start.
        from: Time,
    },
}

impl Default for StartFile {
    fn default() -> Self {
        Self::At(Time::ZERO)
    }
}

/// The table form of a start.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartTable {
    /// Earliest and latest start, drawn uniformly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uniform: Option<(Time, Time)>,
    /// Mean of an exponential distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exponential: Option<Time>,
    /// With `exponential`: the earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Time>,
}

impl<'de> Deserialize<'de> for StartFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = StartFile;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a time such as \"17 s\", or a table that says how it is drawn")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<StartFile, E> {
                Time::deserialize(text.into_deserializer()).map(StartFile::At)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<StartFile, A::Error> {
                match StartTable::deserialize(MapAccessDeserializer::new(table))? {
                    StartTable { uniform: Some((from, to)), exponential: None, from: None } => {
                        Ok(StartFile::Uniform(from, to))
                    }
                    StartTable { uniform: None, exponential: Some(mean), from } => {
                        Ok(StartFile::Exponential { mean, from: from.unwrap_or(Time::ZERO) })
                    }
                    _ => Err(refuse("either uniform or exponential (with from)", "both or neither")),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for StartFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = match *self {
            Self::At(time) => return time.serialize(serializer),
            Self::Uniform(from, to) => {
                StartTable { uniform: Some((from, to)), exponential: None, from: None }
            }
            Self::Exponential { mean, from } => {
                StartTable { uniform: None, exponential: Some(mean), from: Some(from) }
            }
        };
        table.serialize(serializer)
    }
}

impl JsonSchema for StartFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Start".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (time, table) = (generator.subschema_for::<Time>(), generator.subschema_for::<StartTable>());
        schemars::json_schema!({
            "description": "A time, or a table that says how it is drawn",
            "oneOf": [time, table],
        })
    }
}
