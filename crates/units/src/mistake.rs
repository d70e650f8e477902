//! Errors in user input: where, what was expected, and what was found.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::OneOf;

/// One mistake in a file, a setting or an argument. As text: `KEY: expected EXPECTED, found FOUND`.
///
/// It is also a serde error, so that a reader of files gives each mistake its key, and a text that can be
/// understood without knowing Rust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistake {
    /// The key, such as `path.rtt` or `flow.1.cc`; empty for the value as a whole.
    pub key: String,
    /// The expected value.
    pub expected: String,
    /// The value found.
    pub found: String,
    /// Additional context, such as the point of a sweep; mostly empty.
    pub note: String,
}

impl Mistake {
    /// A mistake at `key`.
    pub fn new(key: impl Into<String>, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Self { key: key.into(), expected, found, note: String::new() }
    }

    /// The same mistake, with its key below `key`.
    #[must_use]
    pub fn below(mut self, key: &str) -> Self {
        self.key = match (key.is_empty(), self.key.is_empty()) {
            (true, _) => self.key,
            (_, true) => key.to_owned(),
            _ => format!("{key}.{}", self.key),
        };
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)?;
        if !self.note.is_empty() {
            write!(f, " ({})", self.note)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new("", "a value that can be read", message)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new("", Words(expected), Found(found))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new("", Words(expected), Found(found))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new("", Words(expected), format_args!("a list of {length}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new("", OneOf { known, found: name }, format_args!("\"{name}\""))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let near = OneOf { known, found: name }.to_string();
        let expected = match near.strip_prefix("one of ") {
            Some(all) => format!("one of the keys {all}"),
            None => format!("the key {near}"),
        };
        Self::new(name, expected, format_args!("\"{name}\""))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(name, "a value", "nothing")
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new(name, "a key once", "it twice")
    }
}

/// The expectations of serde's own types, in words that do not require knowledge of Rust.
struct Words<'a>(&'a dyn Expected);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let words = match text.as_str() {
            "u8" => "a whole number from 0 to 255",
            "u16" => "a whole number from 0 to 65535",
            "u32" => "a whole number from 0 to 4294967295",
            "u64" | "usize" => "a whole number of 0 or more",
            "i8" | "i16" | "i32" | "i64" => "a whole number",
            "f32" | "f64" => "a number",
            "a boolean" => "true or false",
            "a string" => "text",
            "a sequence" => "a list",
            "a tuple of size 2" => "a list of 2",
            "a map" => "a table",
            // Serde's message for a table without the key that would select its variant.
            "enum" => "a table with a key",
            _ if text.starts_with("struct ") => "a table",
            _ if text.starts_with("enum ") => "a name, or a table",
            other => other,
        };
        f.write_str(words)
    }
}

/// The value found, in the notation of a file.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(flag) => write!(f, "{flag}"),
            Unexpected::Unsigned(number) => write!(f, "{number}"),
            Unexpected::Signed(number) => write!(f, "{number}"),
            Unexpected::Float(number) => write!(f, "{number}"),
            Unexpected::Str(text) => write!(f, "\"{text}\""),
            Unexpected::Unit | Unexpected::Option => f.write_str("nothing"),
            Unexpected::Seq => f.write_str("a list"),
            Unexpected::Map => f.write_str("a table"),
            Unexpected::Other(text) => f.write_str(text),
            other => write!(f, "{other}"),
        }
    }
}

/// A serde error from a reader that knows what it expected.
pub fn refuse<E: de::Error>(expected: impl fmt::Display, found: impl fmt::Display) -> E {
    E::invalid_value(Unexpected::Other(&found.to_string()), &expected.to_string().as_str())
}
