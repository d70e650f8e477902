//! Algorithms from outside that this process has registered: `linux:illinois`, `lib:./mine.so`, `python:mine:Controller`.
//!
//! Python's `elephan.foreign` builds or opens what a scenario names, and registers it before the scenario is read.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use elephan_cc::registry::AnyAlgorithm;
use elephan_units::entry::{self, Parameter, Value};
use elephan_units::{Entry, Mistake};
use serde_json::{Map, Value as Json};

use crate::linux;

/// What the names of such algorithms begin with.
pub const KINDS: [&str; 4] = [linux::PREFIX, BPF, "lib:", "python:"];
/// Of these, an algorithm as an eBPF program, which a running kernel can load, too.
pub const BPF: &str = "bpf:";

/// What is known of an algorithm from outside.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name in a list of algorithms.
    pub title: String,
    /// Its publication or file; empty if it names none.
    pub source: String,
    /// Its parameters, which are numbers.
    pub parameters: Vec<Parameter>,
}

/// Makes an instance.
type Build = Box<dyn Fn(&[f64]) -> AnyAlgorithm + Send + Sync>;

/// A registered algorithm.
pub struct Registered {
    /// Its name in a scenario, title and source; the parameters are in `parameters`.
    pub entry: Entry,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    build: Build,
}

type Table = BTreeMap<&'static str, &'static Registered>;

static TABLE: RwLock<Table> = RwLock::new(BTreeMap::new());

/// Registers an algorithm under the name that scenarios use. One that has the name already is replaced; runs in progress keep it.
///
/// `build` makes an instance with values of the parameters, in their order. Nothing that was registered is ever freed, because plans refer
/// to it without counting.
pub fn register(
    name: &str,
    description: Description,
    build: impl Fn(&[f64]) -> AnyAlgorithm + Send + Sync + 'static,
) {
    let Description { title, source, parameters } = description;
    let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let name = table.get(name).map_or_else(|| leaked(name), |known| known.entry.name);
    let entry = Entry {
        name,
        title: leaked(&title),
        source: leaked(&source),
        implies: &[],
        parameters: Vec::new,
        make: (),
    };
    table.insert(name, Box::leak(Box::new(Registered { entry, parameters, build: Box::new(build) })));
}

/// The registered algorithm of that name.
pub fn find(name: &str) -> Option<&'static Registered> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Whether a name is one of an algorithm from outside.
pub fn is_foreign(name: &str) -> bool {
    KINDS.iter().any(|kind| name.starts_with(kind))
}

/// The name as tables show it: of a path only the file's name.
pub fn short(name: &str) -> String {
    match KINDS.iter().find_map(|kind| Some((*kind, name.strip_prefix(kind)?))) {
        Some((kind, path)) => format!("{kind}{}", path.rsplit('/').next().unwrap_or(path)),
        None => name.to_owned(),
    }
}

impl Registered {
    /// Reads the value of the parameter `name` from a document.
    pub fn read(&self, name: &str, value: &Json) -> Result<Value, Mistake> {
        entry::read(&self.parameters, name, value)
    }

    /// Its description as JSON, as that of an [`Entry`].
    pub fn describe(&self) -> Map<String, Json> {
        self.entry.describe_with(self.parameters.clone())
    }

    /// An instance with the defaults of its parameters, except for those in `settings`, which are in range.
    pub fn build(&self, settings: &[(&str, Value)]) -> AnyAlgorithm {
        let value = |parameter: &Parameter| {
            let set = settings.iter().rev().find(|(name, _)| parameter.name == *name);
            match set {
                Some((_, Value::Number(number))) => *number,
                _ => parameter.default.as_f64().unwrap_or(0.0),
            }
        };
        (self.build)(&self.parameters.iter().map(value).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_to_the_file() {
        assert_eq!(short("lib:/home/a/mine.so"), "lib:mine.so");
        assert_eq!(short("python:/home/a/mine.py:Controller"), "python:mine.py:Controller");
        assert_eq!(short("python:mine:Controller"), "python:mine:Controller");
        assert_eq!(short("linux:bbr"), "linux:bbr");
        assert_eq!(short("htcp"), "htcp");
    }
}
