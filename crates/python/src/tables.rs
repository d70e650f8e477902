//! Tables and figures as Python takes them: columns as NumPy arrays, and the declarations as JSON.

use elephan_metrics::field::Field;
use elephan_metrics::table::{Column, Kind, Slice, Table, Values};
use elephan_metrics::{summary, trace};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

/// A table as a dictionary of NumPy arrays, handed over without a copy.
pub fn columns(py: Python<'_>, table: impl Table) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (column, values) in table.into_columns() {
        match values {
            Values::F64(values) => dict.set_item(column.name, values.into_pyarray(py))?,
            Values::U64(values) => dict.set_item(column.name, values.into_pyarray(py))?,
            Values::U32(values) => dict.set_item(column.name, values.into_pyarray(py))?,
            Values::U8(values) => dict.set_item(column.name, values.into_pyarray(py))?,
        }
    }
    Ok(dict)
}

/// The rows of a table from `first` on, of those columns that are sent to a page.
pub fn live_rows<'py>(py: Python<'py>, table: &impl Table, first: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (column, values) in table.since(first).filter(|(column, _)| column.is_live) {
        match values {
            Slice::F64(values) => dict.set_item(column.name, PyArray1::from_slice(py, values))?,
            Slice::U64(values) => dict.set_item(column.name, PyArray1::from_slice(py, values))?,
            Slice::U32(values) => dict.set_item(column.name, PyArray1::from_slice(py, values))?,
            Slice::U8(values) => dict.set_item(column.name, PyArray1::from_slice(py, values))?,
        }
    }
    Ok(dict)
}

fn column(table: &str, column: &Column) -> Value {
    json!({
        "table": table,
        "name": column.name,
        "title": column.title,
        "unit": column.unit,
        "type": Kind::name(column.kind),
        "meaning": column.meaning.trim(),
        "is_live": column.is_live,
    })
}

fn field(part: &str, field: &Field) -> Value {
    let shown = field.shown.map(|shown| {
        json!({
            "better": shown.better.name(),
            "unit": shown.unit,
            "factor": shown.factor,
            "digits": shown.digits,
        })
    });
    json!({
        "part": part,
        "name": field.name,
        "title": field.title,
        "unit": field.unit,
        "meaning": field.meaning.trim(),
        "source": field.source,
        "most": field.most,
        "shown": shown,
    })
}

/// Every column of every table of samples, as JSON. Each has table, name, title, unit, type, meaning, and whether a page is
/// sent it.
#[pyfunction]
fn declared_columns() -> String {
    let all = trace::TABLES.iter().flat_map(|(name, columns)| columns.iter().map(|one| column(name, one)));
    all.collect::<Value>().to_string()
}

/// Every figure of every part of a summary, as JSON. Each has part, name, title, unit, meaning, source, and how tables show
/// it.
#[pyfunction]
fn declared_fields() -> String {
    let all = summary::PARTS.iter().flat_map(|(part, fields)| fields.iter().map(|one| field(part, one)));
    all.collect::<Value>().to_string()
}

/// The JSON Schema of `summary.json`.
#[pyfunction]
fn summary_schema() -> String {
    schemars::schema_for!(elephan_metrics::Summary).to_value().to_string()
}

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(declared_columns, module)?)?;
    module.add_function(wrap_pyfunction!(declared_fields, module)?)?;
    module.add_function(wrap_pyfunction!(summary_schema, module)?)
}
