//! The parameters of a discipline, and the checks on them.

use elephan_units::Mistake;
use elephan_units::entry::{self, Range};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

/// The parameters of a discipline, as a file gives them: a struct whose schema has the ranges.
pub(crate) trait Parameters: Serialize + JsonSchema {
    /// Mistakes that remain although each parameter is in its range.
    fn rules(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

/// Mistakes: a parameter out of its range, or two that contradict each other.
pub(crate) fn mistakes<T: Parameters>(parameters: &T) -> Vec<Mistake> {
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
            let (number, range) = (number.as_f64().unwrap_or(f64::NAN), Range::of_number(schema));
            if !range.holds(entry::Value::Number(number)) {
                mistakes.push(Mistake::new(key, range, number));
            }
        }
        _ => {}
    }
}
