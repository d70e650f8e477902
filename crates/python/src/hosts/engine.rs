//! The engines linux and kernel.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use elephan_guest::{Job, Launch, Load};
use elephan_linux::{Error, Measured, Options, Quality};
use elephan_metrics::{Control, SoFar};
use elephan_scenario::Plan;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::tables::columns;
use crate::watch::{Cancel, watch};
use crate::{ScenarioError, convert};

#[derive(Default)]
struct Progress {
    cancel: Cancel,
    /// The share that is done, in millionths.
    done: AtomicU64,
}

impl Progress {
    /// Tells the caller's function, if there is one, how far the run is.
    fn tell<'a>(
        &'a self,
        progress: Option<&'a Py<PyAny>>,
    ) -> impl Fn(Python<'_>) -> PyResult<()> + Sync + 'a {
        move |py| match progress {
            None => Ok(()),
            Some(progress) => {
                progress.call1(py, (self.done.load(Ordering::Relaxed) as f64 * 1e-6,)).map(drop)
            }
        }
    }
}

impl Control for Progress {
    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        self.done.store((so_far.share * 1e6) as u64, Ordering::Relaxed);
        true
    }
    fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

fn unsupported(plan: &Plan, has_events: bool) -> Vec<String> {
    elephan_linux::unsupported(plan, has_events).iter().map(ToString::to_string).collect()
}

/// What a scenario asks for and the running kernel, or a guest kernel (`guest`), cannot do, a line each. Raises
/// `ScenarioError` where it cannot be run at all.
#[pyfunction]
#[pyo3(signature = (scenario, guest=false))]
fn linux_unsupported(py: Python<'_>, scenario: Py<Scenario>, guest: bool) -> PyResult<Vec<String>> {
    Ok(unsupported(scenario.get().plan(py)?, guest))
}

/// Runs a scenario on the running kernel. `algorithms` are the kernel's names of the congestion
/// control of each flow, and then of each crowd.
/// `progress` as in `run_many`. The commands, each a list of words, run meanwhile in the namespaces of the hosts that
/// send and that receive. Raises `ScenarioError` with a line for each thing that the kernel cannot do, `OSError` where
/// the system refuses.
#[pyfunction]
#[pyo3(signature = (scenario, algorithms, large_segments=false, sender_commands=None, listener_commands=None, progress=None))]
fn run_linux(
    py: Python<'_>,
    scenario: Py<Scenario>,
    algorithms: Vec<String>,
    large_segments: bool,
    sender_commands: Option<Vec<Vec<String>>>,
    listener_commands: Option<Vec<Vec<String>>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let plan = scenario.get().plan(py)?;
    let wrong = unsupported(plan, false);
    if !wrong.is_empty() {
        return Err(ScenarioError::new_err(wrong.join("\n")));
    }
    let options = Options {
        algorithms,
        large_segments,
        sender_commands: sender_commands.unwrap_or_default(),
        listener_commands: listener_commands.unwrap_or_default(),
    };
    let control = Progress::default();
    let measured = watch(py, &control.cancel, control.tell(progress.as_ref()), || {
        elephan_linux::run(plan, &options, &control)
    })?;
    result(py, measured.map_err(refused)?, plan)
}

/// Runs a scenario on the kernel `image`, which runs as a process.
///
/// `files` are the guest's first program and its links, of this package; `loads` are algorithms with other parameters:
/// source file, registered name, values. All else as for `run_linux`; a guest that fails raises `OSError`.
#[pyfunction]
#[pyo3(signature = (scenario, algorithms, loads, image, files, progress=None))]
fn run_guest(
    py: Python<'_>,
    scenario: Py<Scenario>,
    algorithms: Vec<String>,
    loads: Vec<(String, String, Vec<u64>)>,
    image: PathBuf,
    files: (PathBuf, PathBuf),
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let plan = scenario.get().plan(py)?;
    let wrong = unsupported(plan, true);
    if !wrong.is_empty() {
        return Err(ScenarioError::new_err(wrong.join("\n")));
    }
    let loads =
        loads.into_iter().map(|(name, registered, values)| Load { name, registered, values }).collect();
    let job = Job { scenario: scenario.get().text(py)?, algorithms, loads };
    let launch = Launch { image, init: files.0, links: files.1 };
    let control = Progress::default();
    let tell = control.tell(progress.as_ref());
    let measured = watch(py, &control.cancel, tell, || elephan_guest::run(&launch, plan, &job, &control))?;
    let measured = measured.map_err(|error| match error {
        elephan_guest::Error::Cancelled => PyKeyboardInterrupt::new_err("the run was cancelled"),
        error => PyOSError::new_err(error.to_string()),
    })?;
    result(py, measured, plan)
}

/// Connects two network namespaces by the links of a scenario, without its traffic, until `cancel` is set. Calls `ready`
/// with the file descriptors of this process for the near and the far host's namespace. Returns the quality of the emulation as
/// JSON, as in a run. Raises `ScenarioError` where the scenario cannot be run, `OSError` where the system refuses.
#[pyfunction]
fn hold_links(
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
        Error::Cancelled => PyKeyboardInterrupt::new_err("the run was cancelled"),
        Error::Kernel(_, ref cause) => PyOSError::new_err((cause.raw_os_error(), error.to_string())),
    }
}

fn judged(quality: &Quality) -> Value {
    let mut judged = serde_json::to_value(quality).expect("numbers and texts");
    judged["valid"] = json!(quality.invalid_because.is_empty());
    judged
}

fn result<'py>(py: Python<'py>, measured: Measured, plan: &Plan) -> PyResult<Bound<'py, PyDict>> {
    let Measured { outcome, kernel, quality } = measured;
    let result = convert(py, outcome, plan)?;
    result.set_item("kernel", columns(py, kernel)?)?;
    result.set_item("quality", judged(&quality).to_string())?;
    Ok(result)
}

/// Adds the functions of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(linux_unsupported, module)?)?;
    module.add_function(wrap_pyfunction!(run_linux, module)?)?;
    module.add_function(wrap_pyfunction!(hold_links, module)?)?;
    module.add_function(wrap_pyfunction!(run_guest, module)?)
}
