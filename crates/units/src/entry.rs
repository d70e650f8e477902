//! Descriptions of everything that a scenario refers to by name: algorithms, slow starts, recoveries, queue
//! disciplines, kinds of traffic.

use std::borrow::Cow;
use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value as Json, json};

use crate::mistake::Mistake;

/// The description of something that a scenario refers to by name, available without constructing it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<M = ()> {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// Its name in the literature.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Keys of `tcp` and their values, which apply to a flow of this name unless the scenario sets them.
    pub implies: &'static [(&'static str, &'static str)],
    /// Its parameters, in the order of their declaration.
    pub parameters: fn() -> Vec<Parameter>,
    /// Its constructor.
    pub make: M,
}

/// Constructs a value from its parameters: published values, except for those in the settings.
pub type Make<T> = fn(&[(&str, Value)]) -> Result<T, Mistake>;

/// A parameter of something that a scenario refers to by name.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its published name.
    pub name: Cow<'static, str>,
    /// Its meaning, with its source.
    pub meaning: Cow<'static, str>,
    /// The unit of a number; empty for a ratio or a count, and for a value that is not a number.
    pub unit: Cow<'static, str>,
    /// Its published value; [`REQUIRED`] or another word if it has none.
    pub default: Json,
    /// Its allowed values.
    pub range: Range,
}

/// The default of a parameter that has to be set.
const REQUIRED: &str = "required";

/// The default of a parameter with this published value.
pub fn default_of(published: Option<Value>) -> Json {
    published.map_or_else(|| json!(REQUIRED), Json::from)
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// On or off.
    Flag(bool),
    /// One of a few words.
    Word(&'static str),
}

/// The allowed values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// A number.
    Number {
        /// The smallest; minus infinity if there is no lower bound.
        low: f64,
        /// The largest allowed value.
        high: f64,
        /// Whether `low` itself is excluded.
        above: bool,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Another kind of value, which the text describes.
    Other(String),
}

impl<M> Entry<M> {
    /// Reads the value of the parameter `name` from a document.
    pub fn read(&self, name: &str, value: &Json) -> Result<Value, Mistake> {
        read(&(self.parameters)(), name, value)
    }

    /// The whole description as JSON: name, title, source, what it implies, and the parameters, each with
    /// name, meaning, unit, default and range.
    pub fn describe(&self) -> Map<String, Json> {
        self.describe_with((self.parameters)())
    }

    /// The description with these parameters in place of its own: those of an algorithm that is only known at run time.
    pub fn describe_with(&self, parameters: Vec<Parameter>) -> Map<String, Json> {
        let parameter = |p: Parameter| {
            json!({
                "name": p.name, "meaning": p.meaning.trim(), "unit": p.unit, "default": p.default, "range": p.range.to_string(),
            })
        };
        let implies: Map<_, _> =
            self.implies.iter().map(|(key, word)| ((*key).to_owned(), json!(word))).collect();
        let parameters: Vec<Json> = parameters.into_iter().map(parameter).collect();
        let all = [
            ("name", json!(self.name)),
            ("title", json!(self.title)),
            ("source", json!(self.source)),
            ("implies", Json::Object(implies)),
            ("parameters", Json::Array(parameters)),
        ];
        all.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
    }

    /// The JSON Schema of its table, whose keys besides `name` are `properties`.
    pub fn table(&self, properties: Map<String, Json>) -> Json {
        let mut all = Map::from_iter([("name".to_owned(), json!({ "const": self.name }))]);
        all.extend(properties);
        json!({
            "title": self.title,
            "type": "object",
            "properties": all,
            "required": ["name"],
            "additionalProperties": false,
        })
    }
}

impl<T> Entry<Make<T>> {
    /// A value in range for each parameter that must be set.
    pub fn examples(&self) -> Vec<(&'static str, Value)> {
        let required = (self.parameters)().into_iter().filter(Parameter::is_required);
        let example = |parameter: Parameter| match (parameter.name, parameter.range) {
            (Cow::Borrowed(name), Range::Number { low, .. }) => Some((name, Value::Number(low))),
            _ => None,
        };
        required.filter_map(example).collect()
    }

    /// Constructs it with its published parameters, except for those in `settings`. A mistake has the
    /// parameter's name as its key.
    pub fn build(&self, settings: &[(&str, Value)]) -> Result<T, Mistake> {
        (self.make)(settings)
    }
}

/// The JSON Schema of a choice among tables that [`Entry::table`] made: a name, or one of them. `kind` says
/// what is chosen, with its article.
pub fn choice_schema(kind: &str, tables: &[Json]) -> Schema {
    // A name alone gives no value to a parameter that must have one.
    let alone = tables.iter().filter(|table| table["required"] == json!(["name"]));
    let names: Vec<&Json> = alone.map(|table| &table["properties"]["name"]["const"]).collect();
    json_schema!({
        "description": format!("The name of {kind}, or a table with it and parameters"),
        "anyOf": [{ "enum": names }, { "oneOf": tables }],
    })
}

/// Reads the value of the parameter `name`, one of `all`, from a document.
pub fn read(all: &[Parameter], name: &str, value: &Json) -> Result<Value, Mistake> {
    let Some(parameter) = all.iter().find(|parameter| parameter.name == name) else {
        return Err(unknown(all, name));
    };
    parameter.range.read(value).ok_or_else(|| Mistake::new(name, &parameter.range, value))
}

/// The mistake of a `name` that none of these parameters has.
pub fn unknown(all: &[Parameter], name: &str) -> Mistake {
    let names: Vec<&str> = all.iter().map(|parameter| parameter.name.as_ref()).collect();
    let found = format_args!("\"{name}\"");
    match names.as_slice() {
        [] => Mistake::new(name, "no parameters", found),
        _ => Mistake::new(name, format_args!("one of the parameters {}", names.join(", ")), found),
    }
}

impl Parameter {
    /// The parameters that a struct declares by its JSON Schema: descriptions, defaults, bounds, and `unit`.
    /// `unset` is given as the default of a parameter that has no value unless a scenario sets one.
    pub fn of<T: JsonSchema>(unset: &str) -> Vec<Self> {
        let root = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
        let required =
            |name: &str| root["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
        let parameter = |(name, schema): (&String, &Json)| {
            let default = match &schema["default"] {
                Json::Null if required(name) => json!(REQUIRED),
                Json::Null => json!(unset),
                default => default.clone(),
            };
            let text = |key: &str| schema[key].as_str().unwrap_or_default().replace('\n', " ").into();
            let range = Range::of(schema, &root);
            Self {
                name: name.clone().into(),
                meaning: text("description"),
                unit: text("unit"),
                default,
                range,
            }
        };
        root["properties"].as_object().into_iter().flatten().map(parameter).collect()
    }

    /// Whether it has no published value, and a scenario must give one.
    pub fn is_required(&self) -> bool {
        self.default == REQUIRED
    }

    /// The JSON Schema of its values.
    pub fn schema(&self) -> Json {
        let mut schema = match &self.range {
            Range::Number { low, high, above } => {
                let least = if *above { "exclusiveMinimum" } else { "minimum" };
                let bounds =
                    [(least, low), ("maximum", high)].into_iter().filter(|(_, bound)| bound.is_finite());
                let bounds = bounds.map(|(name, bound)| (name.to_owned(), json!(bound)));
                Json::Object(std::iter::once(("type".to_owned(), json!("number"))).chain(bounds).collect())
            }
            Range::Flag => json!({ "type": "boolean" }),
            Range::Word(words) => json!({ "enum": words }),
            Range::Other(_) => json!({}),
        };
        schema["description"] = json!(self.meaning.trim());
        if !self.is_required() {
            schema["default"] = self.default.clone();
        }
        if !self.unit.is_empty() {
            schema["unit"] = json!(self.unit);
        }
        schema
    }
}

impl Range {
    /// The range of the value that a JSON Schema describes; `root` contains the definitions that it refers
    /// to.
    fn of(schema: &Json, root: &Json) -> Self {
        let target = match schema["anyOf"].as_array().and_then(|any| any.first()) {
            Some(first) if schema["anyOf"][1]["type"] == "null" => first,
            _ => schema,
        };
        let place = target["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let target = place.and_then(|place| root.pointer(place)).unwrap_or(target);
        let is = |kind: &str| target["type"] == kind || target["type"][0] == kind;
        if is("boolean") {
            return Self::Flag;
        }
        if is("number") || is("integer") {
            return Self::of_number(target);
        }
        if target["properties"].is_object() {
            return Self::Other("a table".to_owned());
        }
        let described = target["description"].as_str().filter(|_| place.is_some());
        Self::Other(match described {
            // "A time, such as "82 ms"", within a sentence.
            Some(text) => {
                let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
                format!("{}{}", first.to_lowercase(), rest.replace(", such as", " such as"))
            }
            None if is("array") => "a list of tables".to_owned(),
            None if is("string") => "text".to_owned(),
            None => "a value or a table".to_owned(),
        })
    }

    /// The range of a number in a JSON Schema.
    pub fn of_number(schema: &Json) -> Self {
        let limit = |name: &str| schema[name].as_f64();
        let high = limit("maximum").unwrap_or(f64::INFINITY);
        match limit("exclusiveMinimum") {
            Some(low) => Self::Number { low, high, above: true },
            None => Self::Number { low: limit("minimum").unwrap_or(f64::NEG_INFINITY), high, above: false },
        }
    }

    /// Whether a value is in the range.
    pub fn holds(&self, value: Value) -> bool {
        match (self, value) {
            (&Self::Number { low, high, above }, Value::Number(number)) => {
                (if above { low < number } else { low <= number }) && number <= high
            }
            (Self::Flag, Value::Flag(_)) => true,
            (Self::Word(words), Value::Word(word)) => words.contains(&word),
            _ => false,
        }
    }

    /// The value that a document gives, if it is in the range.
    fn read(&self, value: &Json) -> Option<Value> {
        let read = match (self, value) {
            (Self::Word(words), Json::String(word)) => {
                Value::Word(words.iter().copied().find(|known| known == word)?)
            }
            (_, Json::Number(number)) => Value::Number(number.as_f64()?),
            (_, Json::Bool(flag)) => Value::Flag(*flag),
            _ => return None,
        };
        self.holds(read).then_some(read)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { low, high, above } => match (low.is_finite(), high.is_finite()) {
                (true, true) if *above => write!(f, "a number above {low}, up to {high}"),
                (true, false) if *above => write!(f, "a number above {low}"),
                (true, true) => write!(f, "a number from {low} to {high}"),
                (true, false) => write!(f, "a number of {low} or more"),
                (false, true) => write!(f, "a number up to {high}"),
                (false, false) => f.write_str("a number"),
            },
            Self::Flag => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Word(word) => write!(f, "\"{word}\""),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&'static str> for Value {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Number(number) => json!(number),
            Value::Flag(flag) => json!(flag),
            Value::Word(word) => json!(word),
        }
    }
}
