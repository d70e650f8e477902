//! Scripts of packetdrill. Their code is Python, and runs in the caller's function.

use std::collections::BTreeMap;
use std::sync::Mutex;

use elephan_packetdrill::{Engine, Judgement, Stop};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::watch::{Cancel, interruptible};
use crate::{bad, os_error, to_json};

/// The report (JSON) of a script of packetdrill on the simulator's TCP, or the running kernel's (`kernel`).
///
/// `keys` set the simulated stack, after the script's own settings. `judge` gets each piece of the script's code and its variables,
/// and returns what is wrong: an empty text for nothing, and whether only a name is missing. Raises `ScenarioError` where the script
/// or a key cannot be read, `OSError` where the kernel refuses something.
#[pyfunction]
pub fn run_packetdrill(
    py: Python<'_>,
    text: &str,
    file: &str,
    keys: Vec<(String, String)>,
    kernel: bool,
    judge: Py<PyAny>,
) -> PyResult<String> {
    let script = elephan_packetdrill::parse(text, file).map_err(bad)?;
    let engine = if kernel { Engine::Kernel } else { Engine::Simulator };
    let raised = Mutex::new(None);
    let run = |cancel: &Cancel| {
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
    let result = interruptible(py, run)?;
    if let Some(error) = raised.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    match result {
        Ok(report) => Ok(to_json(&report)),
        Err(Stop::Wrong(error)) => Err(bad(error)),
        Err(Stop::Kernel(what, error)) => Err(os_error(&error, format!("{what}: {error}"))),
        Err(Stop::Cancelled) => Err(PyKeyboardInterrupt::new_err("the script was cancelled")),
        // A run makes a report of these.
        Err(Stop::Skip(reason) | Stop::Fail(reason, _)) => Err(bad(reason)),
    }
}
