//! Scripts of packetdrill. Their code is Python, and runs in the caller's function.

use std::collections::BTreeMap;
use std::sync::Mutex;

use elephan_packetdrill::{Engine, Judgement, Stop};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

use crate::watch::{Cancel, watch};
use crate::{ScenarioError, scenario_error};

/// The report (JSON) of a script of packetdrill on the simulator's TCP, or the running kernel's (`kernel`).
///
/// `keys` set the simulated stack, after the script's own settings. `judge` gets each piece of the script's code and its variables,
/// and returns what is wrong: an empty text for nothing, and whether only a name is missing. Raises `ScenarioError` where the script
/// or a key cannot be read, `OSError` where the kernel refuses something.
#[pyfunction]
fn run_packetdrill(
    py: Python<'_>,
    text: &str,
    file: &str,
    keys: Vec<(String, String)>,
    kernel: bool,
    judge: Py<PyAny>,
) -> PyResult<String> {
    let script = elephan_packetdrill::parse(text, file).map_err(scenario_error)?;
    let engine = if kernel { Engine::Kernel } else { Engine::Simulator };
    let raised = Mutex::new(None);
    let cancel = Cancel::default();
    let run = || {
        let mut judge = |code: &str, values: &BTreeMap<&'static str, i64>| {
            let judged =
                Python::attach(|py| judge.call1(py, (code, values.clone()))?.extract::<(String, bool)>(py));
            match judged {
                Ok((problem, _)) if problem.is_empty() => Judgement::Holds,
                Ok((name, true)) => Judgement::Lacks(name),
                Ok((problem, false)) => Judgement::Fails(problem),
                Err(error) => {
                    *raised.lock().expect("nobody panics with it") = Some(error);
                    Judgement::Cancelled
                }
            }
        };
        elephan_packetdrill::run(&script, engine, &keys, &mut judge, &|| cancel.is_set())
    };
    let result = watch(py, &cancel, |_| Ok(()), run)?;
    if let Some(error) = raised.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    match result {
        Ok(report) => Ok(serde_json::to_string(&report).expect("a report is always JSON")),
        Err(Stop::Wrong(error)) => Err(scenario_error(error)),
        Err(Stop::Kernel(what, error)) => {
            Err(PyOSError::new_err((error.raw_os_error(), format!("{what}: {error}"))))
        }
        Err(Stop::Cancelled) => Err(PyKeyboardInterrupt::new_err("the script was cancelled")),
        // A run makes a report of these.
        Err(Stop::Skip(reason) | Stop::Fail(reason, _)) => Err(ScenarioError::new_err(reason)),
    }
}

/// Adds this module's function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_packetdrill, module)?)
}
