//! Algorithms and slow starts in a file: a name, or a table with the name and settings.

use elephan_cc::parameter::{Parameter, Range, Value as Setting};
use elephan_cc::{registry, slow_start};
use elephan_units::{Choice, read_choice, refuse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::plan::{Cc, Setting as PlanSetting};

/// What a registry knows of a name.
pub(crate) struct Known {
    name: &'static str,
    title: &'static str,
    parameters: &'static [Parameter],
}

fn algorithms() -> Vec<Known> {
    registry::ALL
        .iter()
        .map(|entry| Known { name: entry.name, title: entry.title, parameters: entry.parameters })
        .chain(elephan_kernel::ALL.iter().map(|entry| {
            let described = entry.described();
            Known { name: entry.name, title: described.title, parameters: described.parameters }
        }))
        .collect()
}

fn slow_starts() -> Vec<Known> {
    slow_start::ALL
        .iter()
        .map(|entry| Known { name: entry.name, title: entry.title, parameters: entry.parameters })
        .collect()
}

/// A congestion control algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm(pub Cc);

/// A slow start.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStart(pub Cc);

impl Default for SlowStart {
    fn default() -> Self {
        Self(Cc { name: "standard".to_owned(), settings: Vec::new() })
    }
}

/// Reads the parameters of `name`, each with the range of its declaration.
fn read<'de, A: MapAccess<'de>>(name: &str, mut parameters: A, known: &[Known]) -> Result<Cc, A::Error> {
    let Some(entry) = known.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        return Err(refuse(format_args!("one of {}", names.join(", ")), format_args!("\"{name}\"")));
    };
    let mut settings = Vec::new();
    while let Some(key) = parameters.next_key::<String>()? {
        let setting = parameters.next_value_seed(Asked { entry, parameter: &key })?;
        settings.push((key, setting));
    }
    Ok(Cc { name: name.to_owned(), settings })
}

/// A parameter that a file sets.
struct Asked<'a> {
    entry: &'a Known,
    parameter: &'a str,
}

impl<'de> DeserializeSeed<'de> for Asked<'_> {
    type Value = PlanSetting;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PlanSetting, D::Error> {
        let Known { name, parameters, .. } = self.entry;
        let found = || format!("\"{}\"", self.parameter);
        let Some(parameter) = parameters.iter().find(|one| one.name == self.parameter) else {
            let names: Vec<&str> = parameters.iter().map(|one| one.name).collect();
            return Err(if names.is_empty() {
                refuse(format_args!("no parameters of {name}"), found())
            } else {
                refuse(format_args!("one of the parameters {} of {name}", names.join(", ")), found())
            });
        };
        let value = Value::deserialize(deserializer)?;
        setting(parameter, &value).ok_or_else(|| refuse(parameter.range, value))
    }
}

fn setting(parameter: &Parameter, value: &Value) -> Option<PlanSetting> {
    match (parameter.range, value) {
        (Range::Number(low, high), Value::Number(number)) => {
            let number = number.as_f64().filter(|&number| low <= number && number <= high)?;
            Some(PlanSetting::Number(number))
        }
        (Range::Flag, Value::Bool(flag)) => Some(PlanSetting::Flag(*flag)),
        (Range::Word(words), Value::String(word)) if words.contains(&word.as_str()) => {
            Some(PlanSetting::Word(word.clone()))
        }
        _ => None,
    }
}

fn write<S: Serializer>(cc: &Cc, serializer: S) -> Result<S::Ok, S::Error> {
    if cc.settings.is_empty() {
        return serializer.serialize_str(&cc.name);
    }
    let mut table = Map::from_iter([("name".to_owned(), json!(cc.name))]);
    for (name, setting) in &cc.settings {
        let value = match setting {
            PlanSetting::Number(number) => json!(number),
            PlanSetting::Flag(flag) => json!(flag),
            PlanSetting::Word(word) => json!(word),
        };
        table.insert(name.clone(), value);
    }
    table.serialize(serializer)
}

fn describe(known: &[Known]) -> Schema {
    let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
    let tables: Vec<Value> = known
        .iter()
        .map(|entry| {
            let mut properties = Map::from_iter([("name".to_owned(), json!({ "const": entry.name }))]);
            for parameter in entry.parameters {
                properties.insert(parameter.name.to_owned(), describe_parameter(parameter));
            }
            json!({
                "title": entry.title,
                "type": "object",
                "properties": properties,
                "required": ["name"],
                "additionalProperties": false,
            })
        })
        .collect();
    json_schema!({ "anyOf": [{ "enum": names }, { "oneOf": tables }] })
}

fn describe_parameter(parameter: &Parameter) -> Value {
    let default = match parameter.default {
        Setting::Number(number) => json!(number),
        Setting::Flag(flag) => json!(flag),
        Setting::Word(word) => json!(word),
    };
    let mut schema = match parameter.range {
        Range::Number(low, high) if high.is_finite() => {
            json!({ "type": "number", "minimum": low, "maximum": high })
        }
        Range::Number(low, _) => json!({ "type": "number", "minimum": low }),
        Range::Flag => json!({ "type": "boolean" }),
        Range::Word(words) => json!({ "enum": words }),
    };
    schema["description"] = json!(parameter.meaning.trim());
    schema["default"] = default;
    schema
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
                describe(&$known())
            }
        }
    };
}

named!(Algorithm, "a congestion control algorithm", algorithms);
named!(SlowStart, "a slow start", slow_starts);
