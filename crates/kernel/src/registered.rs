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

/// An algorithm from outside: an object with the C interface, or a Python class.
pub trait Foreign: Send + Sync {
    /// Its name in a list of algorithms.
    fn title(&self) -> &str;

    /// Its publication or file; empty if it names none.
    fn source(&self) -> &str;

    /// Its parameters, which are numbers.
    fn parameters(&self) -> Vec<Parameter>;

    /// An instance with these values of the parameters, in their order.
    fn build(&self, values: &[f64]) -> AnyAlgorithm;
}

/// A registered algorithm.
pub struct Registered {
    /// Its name in a scenario, title and source; the parameters are in `parameters`.
    pub entry: Entry,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    algorithm: Box<dyn Foreign>,
}

type Table = BTreeMap<&'static str, &'static Registered>;

static TABLE: RwLock<Table> = RwLock::new(BTreeMap::new());

/// Registers an algorithm under the name that scenarios use. One that has the name already is replaced; runs in progress keep it.
///
/// Nothing that was registered is ever freed: plans refer to it without counting.
pub fn register(name: &str, algorithm: Box<dyn Foreign>) {
    let leaked = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let name = table.get(name).map_or_else(|| leaked(name), |known| known.entry.name);
    let entry = Entry {
        name,
        title: leaked(algorithm.title()),
        source: leaked(algorithm.source()),
        implies: &[],
        parameters: Vec::new,
        make: (),
    };
    let parameters = algorithm.parameters();
    table.insert(name, Box::leak(Box::new(Registered { entry, parameters, algorithm })));
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
        self.algorithm.build(&self.parameters.iter().map(value).collect::<Vec<_>>())
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
