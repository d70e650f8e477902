//! What is wrong with a scenario: which file, which key, what was found, what was expected.

use std::fmt;

use elephan_net::Misread;

/// Everything that is wrong with a scenario; one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, or `scenario` where it came from a program.
    pub file: String,
    /// One or more mistakes.
    pub mistakes: Vec<Mistake>,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The key, such as `path.rtt` or `flow.1.cc`; empty where the file as a whole is meant.
    pub key: String,
    /// What was expected and what was found.
    pub problem: String,
}

impl Mistake {
    /// `expected EXPECTED, found FOUND` at `key`.
    pub fn new(key: impl Into<String>, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self { key: key.into(), problem: format!("expected {expected}, found {found}") }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: ", self.file)?;
            if !mistake.key.is_empty() {
                write!(f, "{}: ", mistake.key)?;
            }
            f.write_str(&mistake.problem)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Puts serde's sentences into our form, which says what was expected first.
pub(crate) fn rephrase(path: &str, message: &str) -> Mistake {
    let key = if path == "." { String::new() } else { path.replace('[', ".").replace(']', "") };
    if let Some((inner, message)) = message.split_once(Misread::SEPARATOR) {
        let path = if inner.is_empty() { key } else { format!("{key}.{inner}") };
        return rephrase(&path, message);
    }
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    let list = |text: &str| {
        let text = text.strip_prefix("expected ").unwrap_or(text);
        text.strip_prefix("one of ").unwrap_or(text).replace('`', "").replace(" or ", ", ")
    };
    if let Some((name, known)) = quoted(message, "unknown field ") {
        let key = if key.ends_with(name) { key.clone() } else { below(name) };
        let known = if known.contains("no fields") { String::new() } else { list(known) };
        return Mistake { key, problem: format!("expected one of the keys {known}, found \"{name}\"") };
    }
    if let Some((name, known)) = quoted(message, "unknown variant ") {
        return Mistake::new(key, format_args!("one of {}", list(known)), format_args!("\"{name}\""));
    }
    if let Some((name, _)) = quoted(message, "missing field ") {
        return Mistake::new(below(name), "a value", "nothing");
    }
    for start in ["invalid type: ", "invalid value: ", "invalid length: "] {
        if let Some((found, expected)) =
            message.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "))
        {
            let found = found.replace('`', "").replace("string ", "").replace("floating point ", "number ");
            return Mistake::new(key, expected, found.replace("integer ", "number "));
        }
    }
    Mistake { key, problem: message.to_owned() }
}

/// Splits "START `NAME`, REST" into NAME and REST.
fn quoted<'a>(message: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    let rest = message.strip_prefix(start)?.strip_prefix('`')?;
    let (name, rest) = rest.split_once('`')?;
    Some((name, rest.strip_prefix(", ").unwrap_or(rest)))
}
