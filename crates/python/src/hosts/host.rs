//! What a host can do.

use elephan_host::{Error, measure};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::watch::interruptible;
use crate::{bad, os_error, to_json};

/// Carries out one measurement of this host (JSON), and returns what was measured (JSON).
///
/// Signal handlers run meanwhile; what they raise ends it. Raises `ScenarioError` for another request, `OSError` where the system
/// refuses something. For Linux only.
#[pyfunction]
pub fn measure_host(py: Python<'_>, request: &str) -> PyResult<String> {
    let request = serde_json::from_str(request)
        .map_err(|error| bad(format!("host: expected a measurement, found: {error}")))?;
    match interruptible(py, |cancel| measure(&request, &|| cancel.is_set()))? {
        Ok(answer) => Ok(to_json(&answer)),
        Err(Error::Cancelled) => Err(PyKeyboardInterrupt::new_err("the measurement was cancelled")),
        Err(Error::System(what, error)) => {
            // The text of an error has its number, which is apart.
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            Err(os_error(&error, format!("{what}: {text}")))
        }
    }
}
