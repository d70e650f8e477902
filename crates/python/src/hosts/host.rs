//! What a host can do.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

use crate::ScenarioError;
use crate::watch::{Cancel, watch};

/// Carries out one measurement of this host (JSON), and returns what was measured (JSON).
///
/// Signal handlers run meanwhile; what they raise ends it. Raises `ScenarioError` for another request, `OSError` where the system
/// refuses something. For Linux only.
#[pyfunction]
fn measure_host(py: Python<'_>, request: &str) -> PyResult<String> {
    use elephan_host::{Error, measure};

    let request = serde_json::from_str(request)
        .map_err(|error| ScenarioError::new_err(format!("host: expected a measurement, found: {error}")))?;
    let cancel = Cancel::default();
    let answer = watch(py, &cancel, |_| Ok(()), || measure(&request, &|| cancel.is_set()))?;
    match answer {
        Ok(answer) => Ok(serde_json::to_string(&answer).expect("an answer is always JSON")),
        Err(Error::Cancelled) => Err(PyKeyboardInterrupt::new_err("the measurement was cancelled")),
        Err(Error::System(what, error)) => {
            // The text of an error has its number, which is apart.
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            Err(PyOSError::new_err((error.raw_os_error(), format!("{what}: {text}"))))
        }
    }
}

/// Adds this module's function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(measure_host, module)?)
}
