//! Tables and figures as Python takes them: columns as NumPy arrays, and the declarations as JSON.

use std::sync::Once;
use std::thread;

use elephan_metrics::table::{OfKind, Table};
use elephan_metrics::{summary, trace};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde_json::{Value, json};

/// An array of the values of any kind.
macro_rules! array {
    ($values:expr, $of:ident => $array:expr) => {
        match $values {
            OfKind::F64($of) => $array.into_any(),
            OfKind::U64($of) => $array.into_any(),
            OfKind::U32($of) => $array.into_any(),
            OfKind::U8($of) => $array.into_any(),
        }
    };
}

/// Loads what makes arrays, once, in a thread of its own: Python calls signal handlers in the main thread only, and the crate `numpy` panics if
/// one raises during the load.
pub fn load_numpy(py: Python<'_>) {
    static LOADED: Once = Once::new();
    let load = || Python::attach(|py| drop(numpy::dtype::<f64>(py)));
    py.detach(|| LOADED.call_once(|| thread::spawn(load).join().expect("NumPy is installed")));
}

/// A table as a dictionary of NumPy arrays, handed over without a copy.
pub fn columns(py: Python<'_>, table: impl Table) -> PyResult<Bound<'_, PyDict>> {
    load_numpy(py);
    let dict = PyDict::new(py);
    for (column, values) in table.into_columns() {
        dict.set_item(column.name, array!(values, whole => whole.into_pyarray(py)))?;
    }
    Ok(dict)
}

/// The rows of a table from `first` on, of those columns that are sent to a page.
pub fn live_rows<'py>(py: Python<'py>, table: &impl Table, first: usize) -> PyResult<Bound<'py, PyDict>> {
    load_numpy(py);
    let dict = PyDict::new(py);
    for (column, values) in table.since(first).filter(|(column, _)| column.is_live) {
        dict.set_item(column.name, array!(values, part => PyArray1::from_slice(py, part)))?;
    }
    Ok(dict)
}

/// Declarations as JSON, each with the name of what it is `of`.
fn declared<T: Serialize>(of: &str, all: &[(&str, &[T])]) -> String {
    let named = |name: &str, one: &T| {
        let mut value = json!(one);
        value[of] = json!(name);
        value
    };
    all.iter().flat_map(|(name, of)| of.iter().map(|one| named(name, one))).collect::<Value>().to_string()
}

/// Every column of every table of samples, as JSON. Each has table, name, title, unit, type, meaning, and whether a page is
/// sent it.
#[pyfunction]
pub fn declared_columns() -> String {
    declared("table", &trace::TABLES)
}

/// Every figure of every part of a summary, as JSON. Each has part, name, title, unit, meaning, source, and how tables show
/// it.
#[pyfunction]
pub fn declared_fields() -> String {
    declared("part", &summary::PARTS)
}

/// The JSON Schema of `summary.json`.
#[pyfunction]
pub fn summary_schema() -> String {
    schemars::schema_for!(elephan_metrics::Summary).to_value().to_string()
}
