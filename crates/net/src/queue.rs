//! Every queue discipline by name: to add one, write its file and add its line here.

use std::collections::BTreeMap;

use elephan_units::{Choice, Mistake, read_choice};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::adaptive_red::AdaptiveRed;
use crate::classes::Class;
use crate::codel::Codel;
use crate::drr::Drr;
use crate::fq_codel::FqCodel;
use crate::pie::Pie;
use crate::priority::Priority;
use crate::red::Red;
use crate::threshold::{DropTail, Threshold};
use crate::wred::Wred;
use crate::wrr::Wrr;

/// The parameters of a discipline, as a file gives them: a struct whose schema has the ranges.
pub(crate) trait Parameters: Serialize + JsonSchema {
    /// What cannot work although each parameter is in its range.
    fn rules(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

/// What is known of a discipline without making one.
#[derive(Clone, Copy, Debug)]
pub struct Discipline {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// Its name in the literature.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Declares the enum of all disciplines and [`DISCIPLINES`].
macro_rules! disciplines {
    ($( $variant:ident { $name:literal, $title:literal, $source:literal } )+) => {
        /// A queue discipline and its parameters. In a file: a name, or a table with `name` and parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Queue {
            $( #[doc = concat!($title, " (", $source, ").")] $variant($variant), )+
        }

        /// Every discipline.
        pub const DISCIPLINES: &[Discipline] = &[ $( Discipline {
            name: $name,
            title: $title,
            source: $source,
            schema: <$variant as JsonSchema>::json_schema,
        }, )+ ];

        impl Queue {
            /// The name that a scenario uses.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name, )+ }
            }

            fn settings(&self) -> Value {
                let value = match self { $( Self::$variant(parameters) => serde_json::to_value(parameters), )+ };
                value.expect("parameters are always JSON")
            }

            /// What cannot work: a parameter out of its range, or two that contradict each other.
            pub fn mistakes(&self) -> Vec<Mistake> {
                match self { $( Self::$variant(parameters) => mistakes(parameters), )+ }
            }
        }

        impl<'de> Choice<'de> for Queue {
            const KIND: &'static str = "a queue discipline";

            fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
                let parameters = MapAccessDeserializer::new(parameters);
                match name {
                    $( $name => $variant::deserialize(parameters).map(Self::$variant), )+
                    _ => Err(A::Error::unknown_variant(name, &[$( $name ),+])),
                }
            }
        }
    };
}

disciplines! {
    DropTail { "droptail", "First in, first out; what does not fit is dropped", "RFC 2309" }
    Threshold { "threshold", "DropTail that marks packets that find a given number waiting", "Alizadeh et al. 2010" }
    Red { "red", "Random Early Detection", "Floyd and Jacobson 1993" }
    AdaptiveRed { "adaptive-red", "Adaptive RED", "Floyd, Gummadi and Shenker 2001" }
    Wred { "wred", "Weighted RED: one profile of drops for each class", "Clark and Fang 1998; thesis, section 5.3.2" }
    Codel { "codel", "Controlled Delay", "RFC 8289" }
    FqCodel { "fq-codel", "Flow queueing with CoDel", "RFC 8290" }
    Pie { "pie", "Proportional Integral controller Enhanced", "RFC 8033" }
    Drr { "drr", "Deficit round robin, of classes or of flows", "Shreedhar and Varghese 1996" }
    Wrr { "wrr", "Weighted round robin of classes", "Katevenis, Sidiropoulos and Courcoubetis 1991" }
    Priority { "priority", "Strict priority of classes", "RFC 2475" }
}

impl Queue {
    fn classes(&self) -> &[Class] {
        match self {
            Self::Drr(drr) => &drr.class,
            Self::Wrr(wrr) => &wrr.class,
            Self::Priority(priority) => &priority.class,
            _ => &[],
        }
    }

    /// Whether packets may leave in another order than they came.
    #[cfg(test)]
    pub fn reorders(&self) -> bool {
        matches!(self, Self::FqCodel(_) | Self::Drr(_) | Self::Wrr(_) | Self::Priority(_))
    }

    /// The names of its classes, and of classes within them.
    pub fn class_names(&self) -> Vec<&str> {
        let inner = self.classes().iter().flat_map(|class| class.queue.class_names());
        self.classes().iter().map(|class| class.name.as_str()).chain(inner).collect()
    }

    /// New weights for classes, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>) {
        let classes = match self {
            Self::Drr(drr) => &mut drr.class,
            Self::Wrr(wrr) => &mut wrr.class,
            Self::Priority(priority) => &mut priority.class,
            _ => return,
        };
        for class in classes {
            if let Some(&weight) = weights.get(&class.name) {
                class.weight = Some(weight);
            }
            class.queue.set_weights(weights);
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail {})
    }
}

fn mistakes<T: Parameters>(parameters: &T) -> Vec<Mistake> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let value = serde_json::to_value(parameters).expect("parameters are always JSON");
    let mut mistakes = Vec::new();
    hold(&value, &schema, &schema, "", &mut mistakes);
    mistakes.extend(parameters.rules());
    mistakes
}

/// Checks numbers against the ranges of a schema. A queue within a queue is checked separately.
fn hold(value: &Value, schema: &Value, root: &Value, key: &str, mistakes: &mut Vec<Mistake>) {
    let schema = match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(place) => root.pointer(place).unwrap_or(schema),
        None => schema,
    };
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                hold(value, &schema["properties"][name], root, &below(name), mistakes);
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                hold(value, &schema["items"], root, &below(&number.to_string()), mistakes);
            }
        }
        Value::Number(number) => {
            let (number, limit) = (number.as_f64().unwrap_or(f64::NAN), |name: &str| schema[name].as_f64());
            let fits = limit("minimum").is_none_or(|low| number >= low)
                && limit("exclusiveMinimum").is_none_or(|low| number > low)
                && limit("maximum").is_none_or(|high| number <= high);
            if !fits {
                mistakes.push(Mistake::new(key, range(schema), number));
            }
        }
        _ => {}
    }
}

/// The range of a number, in words.
fn range(schema: &Value) -> String {
    let limit = |name: &str| schema[name].as_f64();
    match (limit("exclusiveMinimum"), limit("minimum"), limit("maximum")) {
        (Some(low), _, Some(high)) => format!("a number above {low}, up to {high}"),
        (Some(low), _, None) => format!("a number above {low}"),
        (None, Some(low), Some(high)) => format!("a number from {low} to {high}"),
        (None, Some(low), None) => format!("a number of {low} or more"),
        (None, None, Some(high)) => format!("a number up to {high}"),
        (None, None, None) => "a number".to_owned(),
    }
}

impl Discipline {
    /// Name, title, source and parameters, each with meaning, default and range.
    pub fn describe(&self) -> Value {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let schema = (self.schema)(&mut generator).to_value();
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let parameters: Vec<Value> = properties
            .iter()
            .map(|(name, schema)| {
                let is = |kind: &str| schema["type"] == kind || schema["type"][0] == kind;
                let range = if is("boolean") {
                    "true or false".to_owned()
                } else if is("array") {
                    "a list of tables".to_owned()
                } else if is("number") || is("integer") {
                    range(schema)
                } else {
                    "a time such as \"5 ms\"".to_owned()
                };
                let default =
                    if schema["default"].is_null() { json!("automatic") } else { schema["default"].clone() };
                let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
                json!({ "name": name, "meaning": meaning, "default": default, "range": range })
            })
            .collect();
        json!({ "name": self.name, "title": self.title, "source": self.source, "parameters": parameters })
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_choice(deserializer)
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = Map::from_iter([("name".to_owned(), json!(self.name()))]);
        if let Value::Object(settings) = self.settings() {
            table.extend(settings);
        }
        table.serialize(serializer)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = DISCIPLINES.iter().map(|known| known.name).collect();
        let tables: Vec<Value> = DISCIPLINES
            .iter()
            .map(|known| {
                let inner = (known.schema)(generator).to_value();
                let mut properties = Map::from_iter([("name".to_owned(), json!({ "const": known.name }))]);
                if let Some(more) = inner["properties"].as_object() {
                    properties.extend(more.clone());
                }
                json!({
                    "title": known.title,
                    "type": "object",
                    "properties": properties,
                    "required": ["name"],
                    "additionalProperties": false,
                })
            })
            .collect();
        json_schema!({
            "description": "A queue discipline: its name, or a table with name and parameters",
            "anyOf": [{ "enum": names }, { "oneOf": tables }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Queue, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn every_discipline_is_found_by_its_name_and_described() {
        for known in DISCIPLINES {
            let found = read(json!(known.name)).unwrap();
            assert_eq!(found.name(), known.name);
            assert_eq!(read(serde_json::to_value(&found).unwrap()), Ok(found));
            for parameter in known.describe()["parameters"].as_array().unwrap() {
                let meaning = parameter["meaning"].as_str().unwrap();
                assert!(meaning.len() > 20, "{}: {parameter}", known.name);
            }
        }
    }

    #[test]
    fn defaults_of_those_without_classes_can_work() {
        for known in DISCIPLINES.iter().filter(|known| !["wred", "wrr", "priority"].contains(&known.name)) {
            assert_eq!(read(json!(known.name)).unwrap().mistakes(), [], "{}", known.name);
        }
    }

    #[test]
    fn ranges_and_contradictions_are_refused() {
        let mistakes = |value| {
            let mistakes = read(value).unwrap().mistakes();
            mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            mistakes(json!({ "name": "red", "max_p": 2.0 })),
            ["max_p: expected a number above 0, up to 1, found 2"]
        );
        assert_eq!(
            mistakes(json!({ "name": "red", "min_th": 20, "max_th": 10 })),
            ["max_th: expected a number above min_th = 20, found 10"]
        );
        let classes = |weights: [f64; 2]| {
            json!({ "name": "wrr", "class": [
            { "name": "af", "dscp": ["af"], "weight": weights[0] },
            { "name": "be", "weight": weights[1] },
        ] })
        };
        assert_eq!(mistakes(classes([1.0, 0.0])), [] as [String; 0]);
        assert_eq!(mistakes(classes([0.0, 0.0])), ["class: expected weights with a sum above 0, found 0"]);
        assert_eq!(
            mistakes(classes([1.0, -1.0]))[0],
            "class.1.weight: expected a number of 0 or more, found -1"
        );
    }
}
