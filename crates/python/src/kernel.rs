//! The kernel's algorithms.

use std::collections::BTreeMap;

use elephan_units::OneOf;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::bad;

/// Every algorithm of kernel/, as JSON: name, title, source file, and the name that it registers with the kernel.
#[pyfunction]
pub fn kernel_algorithms() -> String {
    let entry = |entry: &elephan_abi::Entry| {
        let title = entry.described().title;
        json!({ "name": entry.cc, "title": title, "source": entry.source, "registered": entry.registered })
    };
    json!(elephan_abi::ALL.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// The sources of the algorithms, and with `guest` of what is added with them to a guest kernel: name and text of each file.
#[pyfunction]
#[pyo3(signature = (guest=false))]
pub fn kernel_sources(guest: bool) -> BTreeMap<&'static str, &'static str> {
    let more = if guest { elephan_abi::GUEST } else { &[] };
    more.iter().chain(elephan_abi::SOURCES).map(|source| (source.name, source.text)).collect()
}

/// The values of an algorithm's table of parameters in fixed point, with these settings (JSON). Raises `ScenarioError` for an unknown
/// algorithm or setting.
#[pyfunction]
pub fn kernel_values(name: &str, settings: &str) -> PyResult<Vec<u64>> {
    let settings: BTreeMap<String, Value> =
        serde_json::from_str(settings).map_err(|error| bad(format!("kernel: settings: {error}")))?;
    let known = elephan_abi::find(name).ok_or_else(|| {
        let names: Vec<&str> = elephan_abi::ALL.iter().map(|entry| entry.cc).collect();
        bad(format!("kernel: expected {}, found \"{name}\"", OneOf { known: &names, found: name }))
    })?;
    let described = known.described();
    let refused = |mistake| bad(format!("kernel: {name}: {mistake}"));
    let read = |(key, value): (_, _)| Ok((String::as_str(key), described.read(key, value)?));
    let values: Vec<_> = settings.iter().map(read).collect::<Result<_, _>>().map_err(refused)?;
    known.values(&values).map_err(refused)
}
