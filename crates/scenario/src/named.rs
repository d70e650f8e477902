//! Algorithms and slow starts in a file: a name, or a table with the name and settings.

use elephan_cc::parameter::{Parameter, Range, Value as Setting};
use elephan_cc::{registry, slow_start};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
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

/// Reads a name or a table, and holds it against what is known.
fn read(value: Value, kind: &str, known: &[Known]) -> Result<Cc, String> {
    let table = match value {
        Value::String(name) => Map::from_iter([("name".to_owned(), Value::String(name))]),
        Value::Object(table) => table,
        other => return Err(format!("expected the name of {kind}, or a table with it, found {other}")),
    };
    let Some(Value::String(name)) = table.get("name") else {
        return Err(format!("expected the key name with the name of {kind}, found a table without it"));
    };
    let Some(entry) = known.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        return Err(format!("expected one of {}, found \"{name}\"", names.join(", ")));
    };
    let mut settings = Vec::new();
    for (key, value) in &table {
        if key == "name" {
            continue;
        }
        let Some(parameter) = entry.parameters.iter().find(|parameter| parameter.name == key) else {
            let names: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            return Err(if names.is_empty() {
                format!("expected no parameters of {name}, found \"{key}\"")
            } else {
                format!("expected one of the parameters {} of {name}, found \"{key}\"", names.join(", "))
            });
        };
        settings.push((key.clone(), setting(parameter, value)?));
    }
    Ok(Cc { name: name.clone(), settings })
}

fn setting(parameter: &Parameter, value: &Value) -> Result<PlanSetting, String> {
    let error = || format!("expected {} as {}, found {value}", parameter.range, parameter.name);
    match (parameter.range, value) {
        (Range::Number(low, high), Value::Number(number)) => {
            let number = number.as_f64().ok_or_else(error)?;
            if low <= number && number <= high { Ok(PlanSetting::Number(number)) } else { Err(error()) }
        }
        (Range::Flag, Value::Bool(flag)) => Ok(PlanSetting::Flag(*flag)),
        (Range::Word(words), Value::String(word)) if words.contains(&word.as_str()) => {
            Ok(PlanSetting::Word(word.clone()))
        }
        _ => Err(error()),
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
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(Value::deserialize(deserializer)?, $kind, &$known()).map(Self).map_err(D::Error::custom)
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
