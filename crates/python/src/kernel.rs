//! The kernel's algorithms.

use std::collections::BTreeMap;

use elephan_units::OneOf;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::ScenarioError;

fn known(name: &str) -> PyResult<&'static elephan_abi::Entry> {
    elephan_abi::find(name).ok_or_else(|| {
        let names: Vec<&str> = elephan_abi::ALL.iter().map(|entry| entry.cc).collect();
        let expected = OneOf { known: &names, found: name };
        ScenarioError::new_err(format!("kernel: expected {expected}, found \"{name}\""))
    })
}

/// Every algorithm of kernel/, as JSON: name, title, source file, and the name that it registers with the kernel.
#[pyfunction]
fn kernel_algorithms() -> String {
    let entry = |entry: &elephan_abi::Entry| {
        let title = entry.described().title;
        json!({ "name": entry.cc, "title": title, "source": entry.source, "registered": entry.registered })
    };
    json!(elephan_abi::ALL.iter().map(entry).collect::<Vec<_>>()).to_string()
}

/// The sources of the algorithms: name and text of each file.
#[pyfunction]
fn kernel_sources() -> BTreeMap<&'static str, &'static str> {
    elephan_abi::SOURCES.iter().map(|source| (source.name, source.text)).collect()
}

/// The files that are added to the source of a guest kernel: name and text of each. They are the driver and `kernel_sources`.
#[pyfunction]
fn guest_sources() -> BTreeMap<&'static str, &'static str> {
    elephan_abi::GUEST.iter().chain(elephan_abi::SOURCES).map(|source| (source.name, source.text)).collect()
}

/// The values of an algorithm's table of parameters in fixed point, with these settings (JSON). Raises `ScenarioError` for an unknown
/// algorithm or setting.
#[pyfunction]
fn kernel_values(name: &str, settings: &str) -> PyResult<Vec<u64>> {
    let settings: BTreeMap<String, Value> = serde_json::from_str(settings)
        .map_err(|error| ScenarioError::new_err(format!("kernel: settings: {error}")))?;
    let known = known(name)?;
    let described = known.described();
    let refused = |mistake| ScenarioError::new_err(format!("kernel: {name}: {mistake}"));
    let read = |(key, value): (_, _)| Ok((String::as_str(key), described.read(key, value)?));
    let values: Vec<_> = settings.iter().map(read).collect::<Result<_, _>>().map_err(refused)?;
    known.values(&values).map_err(refused)
}

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(kernel_algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_sources, module)?)?;
    module.add_function(wrap_pyfunction!(guest_sources, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_values, module)?)
}
