//! The engines linux and kernel.

use std::collections::BTreeMap;
use std::path::PathBuf;

use elephan_guest::{Launch, Load, Run};
use elephan_linux::{Error, Measured, Options, Quality};
use elephan_metrics::Control;
use elephan_scenario::Plan;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::tables::columns;
use crate::watch::{Cancel, Runs};
use crate::{cancelled, convert, os_error};

/// What a scenario asks for and the running kernel, or a guest kernel (`guest`), cannot do, a line each. Raises
/// `ScenarioError` where it cannot be run at all.
#[pyfunction]
#[pyo3(signature = (scenario, guest=false))]
pub fn linux_unsupported(py: Python<'_>, scenario: Py<Scenario>, guest: bool) -> PyResult<Vec<String>> {
    Ok(elephan_linux::unsupported(scenario.get().plan(py)?, guest).iter().map(ToString::to_string).collect())
}

/// Runs a scenario, of which `linux_unsupported` names nothing, on the running kernel. `algorithms` are the kernel's names of the
/// congestion control of each flow, and then of each crowd. `progress` as in `run_many`. The commands, each a list of words, run
/// meanwhile in the namespaces of the hosts that send and that receive. Raises `OSError` where the system refuses.
#[pyfunction]
#[pyo3(signature = (scenario, algorithms, sender_commands=None, listener_commands=None, progress=None))]
pub fn run_linux(
    py: Python<'_>,
    scenario: Py<Scenario>,
    algorithms: Vec<String>,
    sender_commands: Option<Vec<Vec<String>>>,
    listener_commands: Option<Vec<Vec<String>>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let plan = scenario.get().plan(py)?;
    let options = Options {
        algorithms,
        sender_commands: sender_commands.unwrap_or_default(),
        listener_commands: listener_commands.unwrap_or_default(),
    };
    carry_out(py, plan, progress, |control| elephan_linux::run(plan, &options, control).map_err(refused))
}

/// Runs a scenario on the kernel `image`, which runs as a process.
///
/// `files` are the guest's first program and its links, of this package; `loads` are algorithms with other parameters:
/// source file, registered name, values. All else as for `run_linux`; a guest that fails raises `OSError`.
#[pyfunction]
#[pyo3(signature = (scenario, algorithms, loads, image, files, progress=None))]
pub fn run_guest(
    py: Python<'_>,
    scenario: Py<Scenario>,
    algorithms: Vec<String>,
    loads: Vec<(String, String, Vec<u64>)>,
    image: PathBuf,
    files: (PathBuf, PathBuf),
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let plan = scenario.get().plan(py)?;
    let loads =
        loads.into_iter().map(|(name, registered, values)| Load { name, registered, values }).collect();
    let run = Run { scenario: scenario.get().text(py)?, algorithms, loads };
    let launch = Launch { image, init: files.0, links: files.1 };
    let refused = |error| match error {
        elephan_guest::Error::Cancelled => cancelled(),
        error => PyOSError::new_err(error.to_string()),
    };
    carry_out(py, plan, progress, |control| elephan_guest::run(&launch, plan, &run, control).map_err(refused))
}

/// Connects two network namespaces by the links of a scenario, without its traffic, until `cancel` is set. Calls `ready`
/// with the file descriptors of this process for the near and the far host's namespace. Returns the quality of the emulation as
/// JSON, as in a run. Raises `ScenarioError` where the scenario cannot be run, `OSError` where the system refuses.
#[pyfunction]
pub fn hold_links(
    py: Python<'_>,
    scenario: Py<Scenario>,
    cancel: Py<Cancel>,
    ready: Py<PyAny>,
) -> PyResult<String> {
    let plan = scenario.get().plan(py)?;
    let cancel = cancel.get();
    let mut failed = None;
    let held = py.detach(|| {
        let tell = |[near, far]: [i32; 2]| {
            failed = Python::attach(|py| ready.call1(py, (near, far))).err();
            if failed.is_some() {
                cancel.set();
            }
        };
        elephan_linux::hold(plan, tell, || cancel.is_set())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    Ok(judged(&held.map_err(refused)?).to_string())
}

fn refused(error: Error) -> PyErr {
    match error {
        Error::Cancelled => cancelled(),
        Error::Kernel(_, ref cause) => os_error(cause, &error),
    }
}

fn judged(quality: &Quality) -> Value {
    let mut judged = serde_json::to_value(quality).expect("numbers and texts");
    judged["valid"] = json!(quality.invalid_because.is_empty());
    judged
}

/// The outcome of a run, with what is of the kernel alone.
fn carry_out<'py>(
    py: Python<'py>,
    plan: &Plan,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(&dyn Control) -> PyResult<Measured> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let cancel = Cancel::default();
    let all = Runs::new(&cancel, BTreeMap::new());
    let measured = all.watch(py, progress.as_ref(), 1, || run(&all.one()))??;
    let result = convert(py, measured.outcome, plan)?;
    result.set_item("kernel", columns(py, measured.kernel)?)?;
    result.set_item("quality", judged(&measured.quality).to_string())?;
    Ok(result)
}
