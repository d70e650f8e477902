//! The document behind a scenario: read as TOML or JSON, changed key by key, then given its types.

use elephan_units::Time;
use serde_json::{Map, Value};

use crate::error::{Error, Mistake};

/// How a scenario is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// TOML 1.1.
    Toml,
    /// JSON of the same form.
    Json,
}

/// Reads a text as a plain document: tables, lists, numbers and text, of which nothing is checked yet.
///
/// `file` is what errors call it.
pub fn parse(text: &str, file: &str, syntax: Syntax) -> Result<Value, Error> {
    match syntax {
        Syntax::Toml => from_toml(text, file),
        Syntax::Json => from_json(text, file),
    }
}

fn from_toml(text: &str, file: &str) -> Result<Value, Error> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let message = error.message().replace('`', "\"");
        Error { file: file.to_owned(), mistakes: vec![Mistake::new(format!("line {line}"), "TOML", message)] }
    })
}

fn from_json(text: &str, file: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error {
        file: file.to_owned(),
        mistakes: vec![Mistake::new(format!("line {}", error.line()), "JSON", error)],
    })
}

/// The value that `text` means for `key` on a command line: TOML where it is TOML, else text.
pub(crate) fn value_of(key: &str, text: &str) -> Value {
    #[derive(serde::Deserialize)]
    struct One {
        value: Value,
    }
    // A version is not a number: 6.10 differs from 6.1.
    if key == "kernel.version" && !text.starts_with(['"', '\'']) {
        return Value::String(text.to_owned());
    }
    toml::from_str::<One>(&format!("value = {text}"))
        .map_or_else(|_| Value::String(text.to_owned()), |one| one.value)
}

/// Refuses text with control characters: names and labels reach terminals, pictures, tables and files.
pub(crate) fn printable(document: &Value, key: &str) -> Result<(), Mistake> {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    let check = |text: &str, key: &str| {
        if text.contains(char::is_control) {
            return Err(Mistake::new(key, "text without control characters", format_args!("{text:?}")));
        }
        Ok(())
    };
    match document {
        Value::String(text) => check(text, key),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| printable(item, &below(&index.to_string())))
        }
        Value::Object(table) => table.iter().try_for_each(|(name, value)| {
            check(name, key)?;
            printable(value, &below(name))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Sets `key`, such as `path.rtt`, `flow.1.cc`, or `flow.cc` for every flow. Tables on the way are made.
pub(crate) fn set(document: &mut Value, key: &str, value: &Value) -> Result<(), Mistake> {
    set_below(document, key, key, value)
}

fn set_below(place: &mut Value, rest: &str, key: &str, value: &Value) -> Result<(), Mistake> {
    let (name, below) = rest.split_once('.').map_or((rest, None), |(name, below)| (name, Some(below)));
    if name.is_empty() {
        return Err(Mistake::new(key, "a key such as path.rtt or flow.0.cc", format_args!("\"{key}\"")));
    }
    match place {
        Value::Object(table) => match below {
            None => {
                table.insert(name.to_owned(), value.clone());
                Ok(())
            }
            Some(below) => {
                // A name that stands for a table, as in cc = "scalable", becomes that table.
                let next = table.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::String(text) = next {
                    *next = serde_json::json!({ "name": text });
                }
                set_below(next, below, key, value)
            }
        },
        Value::Array(items) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => match below {
                None => {
                    items[index] = value.clone();
                    Ok(())
                }
                Some(below) => set_below(&mut items[index], below, key, value),
            },
            Ok(index) => Err(Mistake::new(
                key,
                format_args!("an index below {}", items.len()),
                format_args!("{index}"),
            )),
            Err(_) => items.iter_mut().try_for_each(|item| set_below(item, rest, key, value)),
        },
        _ => Err(Mistake::new(key, "a key that exists", format_args!("\"{key}\" below a plain value"))),
    }
}

/// Ranges that several keys share.
pub(crate) fn positive(mistakes: &mut Vec<Mistake>, key: &str, time: Time) {
    if time == Time::ZERO {
        mistakes.push(Mistake::new(key, "a time above zero", format_args!("\"{time}\"")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn command_line_values_are_toml_or_text() {
        assert_eq!(value_of("name", "5"), json!(5));
        assert_eq!(value_of("name", "1e-5"), json!(1e-5));
        assert_eq!(value_of("name", "true"), json!(true));
        assert_eq!(value_of("name", "162ms"), json!("162ms"));
        assert_eq!(value_of("name", "\"20% bdp\""), json!("20% bdp"));
        assert_eq!(
            value_of("name", "{ name = \"scalable\", a = 0.02 }"),
            json!({ "name": "scalable", "a": 0.02 })
        );
        assert_eq!(value_of("kernel.version", "6.10"), json!("6.10"));
        assert_eq!(value_of("kernel.version", "\"6.10\""), json!("6.10"));
    }

    #[test]
    fn control_characters_are_refused_wherever_they_are() {
        let problem = |document: Value| printable(&document, "").map_err(|mistake| mistake.to_string());
        assert_eq!(
            problem(json!({ "name": "[/x] $ \u{202e} \u{1f418}", "flow": [{ "count": 2 }, null, true] })),
            Ok(())
        );
        let at =
            |key| Err(format!("{key}: expected text without control characters, found \"a\\u{{1b}}[1m\\n\""));
        let text = "a\u{1b}[1m\n";
        assert_eq!(problem(json!({ "name": text })), at("name"));
        assert_eq!(problem(json!({ "flow": [{}, { "label": text }] })), at("flow.1.label"));
        assert_eq!(problem(json!({ "sweep": { text: 1 } })), at("sweep"));
    }

    #[test]
    fn keys_reach_into_tables_and_lists() {
        let mut document = json!({ "flow": [{ "cc": "reno" }, { "cc": "reno" }] });
        set(&mut document, "flow.1.cc", &json!("htcp")).unwrap();
        set(&mut document, "flow.start", &json!("1 s")).unwrap();
        set(&mut document, "path.rtt", &json!("82 ms")).unwrap();
        set(&mut document, "flow.0.cc.a", &json!(2)).unwrap();
        assert_eq!(
            document,
            json!({
                "flow": [{ "cc": { "name": "reno", "a": 2 }, "start": "1 s" }, { "cc": "htcp", "start": "1 s" }],
                "path": { "rtt": "82 ms" },
            })
        );
        assert!(set(&mut document, "flow.2.cc", &json!("x")).is_err());
        assert!(set(&mut document, "path.rtt.x", &json!("x")).is_ok());
        assert!(set(&mut document, "", &json!("x")).is_err());
    }
}
