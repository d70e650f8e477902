//! Scripts of packetdrill. Their code is Python, and runs in the caller's function.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use elephan_packetdrill::script::Script;
use elephan_packetdrill::{Done, Judge, Judgement, Stop};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::watch::{Cancel, interruptible};
use crate::{bad, cancelled, os_error, to_json};

/// What a guest needs: the image, its first program, and its links.
type Files = (PathBuf, PathBuf, PathBuf);

/// The report (JSON) of a script of packetdrill on the simulator's TCP, or on that of a guest kernel: its image, and the guest's first
/// program and its links (`guest`).
///
/// `keys` set the simulated stack, after the script's own settings. `judge` gets each piece of the script's code and its variables,
/// and returns what is wrong: an empty text for nothing, and whether only a name is missing. Raises `ScenarioError` where the script
/// or a key cannot be read, `OSError` where the guest fails.
#[pyfunction]
pub fn run_packetdrill(
    py: Python<'_>,
    text: &str,
    file: &str,
    keys: Vec<(String, String)>,
    guest: Option<Files>,
    judge: Py<PyAny>,
) -> PyResult<String> {
    let script = elephan_packetdrill::parse(text, file).map_err(bad)?;
    let raised = Mutex::new(None);
    let run = |cancel: &Cancel| {
        let mut judge = |code: &str, values: &BTreeMap<String, i64>| {
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
        match &guest {
            None => elephan_packetdrill::simulate(&script, &keys, &mut judge).map_err(refused),
            Some(files) => in_guest(&script, files, &mut judge, cancel),
        }
    };
    let result = interruptible(py, run)?;
    if let Some(error) = raised.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    Ok(to_json(&result?))
}

#[cfg(target_os = "linux")]
fn in_guest(
    script: &Script,
    (image, init, links): &Files,
    judge: Judge<'_>,
    cancel: &Cancel,
) -> PyResult<Done> {
    let launch = elephan_guest::Launch { image: image.clone(), init: init.clone(), links: links.clone() };
    elephan_guest::run_script(&launch, script, judge, &|| cancel.is_set()).map_err(|error| match error {
        elephan_guest::Error::Cancelled => cancelled(),
        error => PyOSError::new_err(format!("{}: {error}", script.file)),
    })
}

#[cfg(not(target_os = "linux"))]
fn in_guest(_: &Script, _: &Files, _: Judge<'_>, _: &Cancel) -> PyResult<Done> {
    Err(PyOSError::new_err("guest kernels: expected Linux, found another system"))
}

fn refused(stop: Stop) -> PyErr {
    match stop {
        Stop::Wrong(error) => bad(error),
        Stop::Kernel(what, error) => os_error(&error, format!("{what}: {error}")),
        Stop::Cancelled => cancelled(),
        // A run makes a report of these.
        Stop::Skip(reason) | Stop::Fail(reason, _) => bad(reason),
    }
}
