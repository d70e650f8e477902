//! Draws scenarios from the JSON Schema of the scenario file.
//!
//! The schema defines the keys and their values, so a new key is drawn as soon as it exists. One seed gives
//! one scenario.

mod mend;

use elephan_scenario::Scenario;
use elephan_units::{Seed, Stream};
use rand::RngExt;
use serde_json::{Map, Value, json};

/// Maximum depth of nested tables.
const DEEPEST: u32 = 5;

/// Draws a scenario.
pub struct Draw {
    schema: Value,
    stream: Stream,
    /// Typical rates and times of a scenario, bit/s and s, and the typical size and duration of a transfer.
    /// Drawn values lie near them.
    rate: f64,
    duration: f64,
}

impl Draw {
    /// The scenario of a seed.
    pub fn new(seed: u64) -> Self {
        let mut draw = Self {
            schema: Scenario::schema(),
            stream: Seed::new(seed).stream("fuzz", 0),
            rate: 0.0,
            duration: 0.0,
        };
        draw.rate = draw.decades(0.0, 12.0);
        // A few thousand packets at that rate, in no more than 10 s.
        let packets = draw.decades(0.0, 3.7);
        draw.duration = (packets * 12_000.0 / draw.rate).clamp(1e-9, 10.0);
        draw
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.stream.random::<f64>() < probability
    }

    fn below(&mut self, most: usize) -> usize {
        self.stream.random_range(0..most.max(1))
    }

    /// A number whose logarithm is uniform from `from` to `to`.
    fn decades(&mut self, from: f64, to: f64) -> f64 {
        10f64.powf(from + (to - from) * self.stream.random::<f64>())
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// The scenario, as a document.
    pub fn scenario(&mut self) -> Value {
        let schema = std::mem::take(&mut self.schema);
        let mut document = Map::new();
        for (key, property) in schema["properties"].as_object().expect("a scenario is a table") {
            // Files of other engines and of sets of runs are not tested here.
            if ["engine", "kernel", "sweep"].contains(&key.as_str()) {
                continue;
            }
            let is_needed = schema["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
            if (is_needed || self.chance(0.5))
                && let Some(value) = self.value(&schema, property, key, 0)
            {
                document.insert(key.clone(), value);
            }
        }
        document.insert("duration".into(), time(self.duration));
        if self.chance(0.7) {
            document.remove("link");
            let path = &schema["properties"]["path"]["anyOf"][0];
            let path = self.value(&schema, path, "path", 0);
            document.insert("path".into(), path.expect("a path is a table"));
        } else {
            document.remove("path");
            let links = &schema["properties"]["link"];
            let mut made = self.value(&schema, links, "link", 0).unwrap_or_default();
            while made.as_array().is_none_or(Vec::is_empty) {
                made = self.value(&schema, links, "link", 0).unwrap_or_default();
            }
            document.insert("link".into(), made);
        }
        self.schema = schema;
        self.mend(&mut document);
        Value::Object(document)
    }

    // ---- Values that a schema allows ----

    /// A value that matches a schema; `None` for an absent value.
    fn value(&mut self, whole: &Value, schema: &Value, key: &str, depth: u32) -> Option<Value> {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return match name {
                "Time" => Some(self.time()),
                "Rate" => Some(self.rate()),
                "Bytes" => Some(self.bytes(key)),
                "Buffer" => Some(self.buffer(key)),
                "Dscp" | "Codepoints" => Some(self.codepoint(name == "Codepoints")),
                _ => self.value(whole, &whole["$defs"][name], key, depth),
            };
        }
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(values) = schema["enum"].as_array() {
            return Some(self.pick(values).clone());
        }
        if let Some(kinds) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            // No file is read, and no algorithm from outside is registered. Beyond the maximum depth, a value that is not a table is drawn.
            let can_be = |kind: &&Value| {
                let requires =
                    |key: &str| kind["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
                let is_from_outside = [*kind, &kind["properties"]["name"]]
                    .iter()
                    .any(|name| name["pattern"].as_str().is_some_and(|pattern| pattern.contains("lib:")));
                !requires("csv")
                    && !is_from_outside
                    && (depth < DEEPEST
                        || kind.get("enum").is_some()
                        || kinds.iter().all(|k| k.get("enum").is_none()))
            };
            let kinds: Vec<&Value> = kinds.iter().filter(can_be).collect();
            let kind = *self.pick(&kinds);
            return self.value(whole, kind, key, depth);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) if self.chance(0.8) => kinds[0].as_str(),
            Value::Array(_) => return None,
            kind => kind.as_str(),
        };
        match kind {
            Some("null") => None,
            Some("boolean") => Some(json!(self.chance(0.5))),
            Some("integer") => Some(self.integer(schema, key)),
            Some("number") => Some(self.number(schema)),
            Some("string") => Some(self.text(schema)),
            Some("array") => Some(self.list(whole, schema, key, depth)),
            Some("object") => Some(self.table(whole, schema, depth)),
            _ => panic!("{key}: no rule for how to draw {schema}"),
        }
    }

    fn table(&mut self, whole: &Value, schema: &Value, depth: u32) -> Value {
        let mut table = Map::new();
        let often = *self.pick(&[0.1, 0.3, 0.8]);
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_needed = schema["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
            if (is_needed || self.chance(often))
                && let Some(value) = self.value(whole, property, key, depth + 1)
            {
                table.insert(key.clone(), value);
            }
        }
        if let Some(property) = schema.get("additionalProperties").filter(|property| property.is_object()) {
            for _ in 0..self.below(3) {
                let name = format!("class {}", self.below(3));
                let value = self.value(whole, property, &name, depth + 1);
                table.insert(name, value.unwrap_or_default());
            }
        }
        Value::Object(table)
    }

    fn list(&mut self, whole: &Value, schema: &Value, key: &str, depth: u32) -> Value {
        if let Some(items) = schema["prefixItems"].as_array() {
            return items.iter().filter_map(|item| self.value(whole, item, key, depth + 1)).collect();
        }
        let count = *self.pick(&[0, 1, 1, 2, 3]);
        (0..count).filter_map(|_| self.value(whole, &schema["items"], key, depth + 1)).collect()
    }

    fn number(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema[key].as_f64();
        let least = bound("minimum").or(bound("exclusiveMinimum"));
        let most = bound("maximum").or(bound("exclusiveMaximum"));
        let (from, to) = (least.unwrap_or(0.0), most.unwrap_or(least.map_or(1.0, |least| least + 1000.0)));
        json!(match self.below(60) {
            // An exclusive bound is refused.
            0 if least.is_none() || schema.get("exclusiveMinimum").is_none() || self.chance(0.1) => from,
            1 => to,
            // Without an upper bound: any magnitude.
            2 if most.is_none() => self.decades(-6.0, 6.0),
            3..25 if from >= 0.0 && to > 0.0 => {
                let low = from.max(to * 1e-6);
                low * (to / low).powf(self.stream.random::<f64>())
            }
            _ => from + (to - from) * self.stream.random::<f64>(),
        })
    }

    fn integer(&mut self, schema: &Value, key: &str) -> Value {
        let least = schema["minimum"].as_u64().unwrap_or(0);
        let most = schema["maximum"].as_u64();
        if key == "seed" {
            return json!(self.stream.random::<u32>());
        }
        // Many similar elements test nothing more.
        let usual = if ["count", "users"].contains(&key) { 1.0 } else { 2.5 };
        json!(match self.below(200) {
            0 => least,
            1 => most.unwrap_or(10_000_000),
            2 => most.unwrap_or(u64::MAX).min(u64::from(u32::MAX)),
            _ => (least.max(1) as f64 * self.decades(0.0, usual)).min(most.unwrap_or(u64::MAX) as f64) as u64,
        })
    }

    fn text(&mut self, schema: &Value) -> Value {
        assert!(schema.get("pattern").is_none(), "no rule for how to draw {schema}");
        if self.chance(0.02) {
            return json!("\u{1b}[31m\n");
        }
        json!(*self.pick(&["a", "b", "ü [b]", "../x", "$\\frac$", "\"'|"]))
    }

    // ---- Quantities ----

    fn time(&mut self) -> Value {
        let seconds = match self.below(200) {
            0 => 0.0,
            1 => 1e-12,
            2 | 3 => 10.0,
            // Instants that many quantities share.
            4..40 => self.duration * (1 + self.below(8)) as f64 / 8.0,
            _ => self.duration * self.decades(-3.0, 0.3),
        };
        time(seconds)
    }

    fn rate(&mut self) -> Value {
        let rate = match self.below(200) {
            0 => 0.0,
            1 => 1.0,
            2 | 3 => 1e12,
            4..80 => self.rate,
            _ => self.rate * self.decades(-1.0, 0.5),
        };
        json!(format!("{} bit/s", rate.round() as u64))
    }

    fn bytes(&mut self, key: &str) -> Value {
        let bytes = match (key, self.below(100)) {
            ("packet", 0..5) => 100.0,
            ("packet", 5..10) => 65_535.0,
            ("packet", _) => self.decades(2.0, 4.0),
            // Room for at least one packet.
            ("buffer" | "send_buffer" | "receive_buffer", 1..) => self.decades(4.0, 7.0),
            (_, 0..5) => 1.0,
            (_, 5..8) => 1e12,
            _ => self.decades(0.0, 7.0),
        };
        json!(format!("{} B", bytes.round() as u64))
    }

    fn buffer(&mut self, key: &str) -> Value {
        match self.below(10) {
            0 => json!("1 packet"),
            1 => json!("10000000 packets"),
            2..8 => json!(format!("{} packets", self.decades(0.0, 3.0) as u64)),
            8 => json!(format!("{:.3}% bdp", self.decades(-1.0, 3.0))),
            _ => self.bytes(key),
        }
    }

    fn codepoint(&mut self, is_set: bool) -> Value {
        let names = ["be", "ef", "cs1", "le", "af11", "af23", "af41", "0", "63", "af", "af1"];
        json!(self.pick(&names[..if is_set { 11 } else { 9 }]))
    }
}

/// A time in the notation of a file.
fn time(seconds: f64) -> Value {
    json!(format!("{} ps", (seconds * 1e12).round() as u64))
}
