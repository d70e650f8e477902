//! The Python extension module `elephan._core`: converts and forwards. Its callers are in `python/elephan`.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod foreign;
#[cfg(feature = "hosts")]
mod hosts;
mod kernel;
mod live;
mod model;
mod scenario;
mod tables;
mod vocabulary;
mod watch;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use elephan_metrics::table::Table;
use elephan_metrics::trace::{
    CrowdTrace, EventKind, EventTrace, FlowTrace, QueueTrace, StreamTrace, TransferTrace,
};
use elephan_metrics::{Control, Outcome, SoFar};
use elephan_scenario::{Buffer, Plan};
use elephan_sim::Error;
use elephan_units::{Rate, Time};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::scenario::Scenario;
use crate::tables::columns;
use crate::watch::{Cancel, watch};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pyo3::create_exception!(
    elephan._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; the message has a line for each mistake."
);
pyo3::create_exception!(
    elephan._core,
    AlgorithmError,
    ScenarioError,
    "An algorithm from outside failed during a run; the message has the flow, its algorithm and the simulated time. Its cause is \
     the exception of an algorithm in Python."
);

fn scenario_error(error: elephan_scenario::Error) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn run_error(error: Error) -> PyErr {
    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err("the run was cancelled"),
        Error::Pcap(path, error) => PyOSError::new_err((error.raw_os_error(), error.to_string(), path)),
        Error::Standstill { .. } | Error::Beyond { .. } => ScenarioError::new_err(error.to_string()),
        Error::Fault { ref text, .. } => foreign::failed(error.to_string(), text),
    }
}

/// What one or more runs share.
struct Progress<'a> {
    cancel: &'a Cancel,
    captures: BTreeMap<String, PathBuf>,
    /// Progress of all runs together, in millionths of a run.
    done: AtomicU64,
}

/// The progress of one run among several.
struct OneOf<'a> {
    all: &'a Progress<'a>,
    before: AtomicU64,
}

impl Control for OneOf<'_> {
    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        let now = (so_far.share * 1e6) as u64;
        let before = self.before.swap(now, Ordering::Relaxed);
        self.all.done.fetch_add(now - before, Ordering::Relaxed);
        true
    }

    fn is_cancelled(&self) -> bool {
        self.all.cancel.is_set()
    }

    fn pcap_file(&self, name: &str) -> Option<PathBuf> {
        self.all.captures.get(name).cloned()
    }
}

/// Runs scenarios on `threads` threads (0: all cores); results in the same order.
///
/// Several runs go on side by side; a single one is divided among the threads. There are no more threads than cores. The
/// calling thread calls `progress` every 50 ms with the share that is done, and runs signal handlers. What they raise ends the
/// runs at once, and is raised. `captures` gives, for the links that a scenario captures, the files to write; it is for a
/// single scenario. `cancel` lets another thread stop the runs, in place of `progress`; a single run then goes on in the
/// calling thread. Raises `ScenarioError` where one cannot be run, `OSError` where a capture cannot be written.
#[pyfunction]
#[pyo3(signature = (scenarios, threads=0, progress=None, captures=None, cancel=None))]
fn run_many(
    py: Python<'_>,
    scenarios: Vec<Py<Scenario>>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    captures: Option<BTreeMap<String, PathBuf>>,
    cancel: Option<Py<Cancel>>,
) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let plans = scenarios.iter().map(|one| one.get().plan(py)).collect::<PyResult<Vec<&Plan>>>()?;
    let own = Cancel::default();
    let all = Progress {
        cancel: cancel.as_ref().map_or(&own, Py::get),
        captures: captures.unwrap_or_default(),
        done: AtomicU64::new(0),
    };
    let one_of = |_| OneOf { all: &all, before: AtomicU64::new(0) };
    let threads = threads.min(thread::available_parallelism().map_or(1, NonZero::get));
    let run = || match plans.as_slice() {
        [plan] => vec![elephan_sim::run_on(plan, &one_of(0), threads)],
        plans => elephan_sim::run_many(plans, threads, one_of),
    };
    let tell = |py: Python<'_>| match &progress {
        None => Ok(()),
        Some(progress) => {
            let share = all.done.load(Ordering::Relaxed) as f64 * 1e-6 / plans.len() as f64;
            progress.call1(py, (share,)).map(drop)
        }
    };
    let outcomes = if cancel.is_some() { py.detach(run) } else { watch(py, all.cancel, tell, run)? };
    outcomes
        .into_iter()
        .zip(&plans)
        .map(|(outcome, plan)| convert(py, outcome.map_err(run_error)?, plan))
        .collect()
}

fn convert<'py>(py: Python<'py>, outcome: Outcome, plan: &Plan) -> PyResult<Bound<'py, PyDict>> {
    let links = plan.links.iter().map(|link| link.name.clone()).collect();
    let streams = plan.streams.iter().map(|stream| stream.label.clone());
    let flows = plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow));
    let labels: Vec<String> = flows.map(|flow| flow.label.clone()).chain(streams).collect();
    tables_of(py, outcome, links, labels)
}

/// The summary and the tables of a run, with the names of its links and the labels of its flows and streams.
pub(crate) fn tables_of(
    py: Python<'_>,
    outcome: Outcome,
    links: Vec<String>,
    labels: Vec<String>,
) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    let summary = serde_json::to_string(&outcome.summary).expect("a summary is always JSON");
    result.set_item("summary", summary)?;
    result.set_item("links", links)?;
    result.set_item("labels", labels)?;
    result.set_item(FlowTrace::NAME, columns(py, outcome.flows)?)?;
    result.set_item(QueueTrace::NAME, columns(py, outcome.queues)?)?;
    result.set_item(StreamTrace::NAME, columns(py, outcome.streams)?)?;
    result.set_item(CrowdTrace::NAME, columns(py, outcome.crowds)?)?;
    result.set_item(TransferTrace::NAME, columns(py, outcome.transfers)?)?;
    result.set_item(EventTrace::NAME, columns(py, outcome.events)?)?;
    result.set_item("segments_delivered", outcome.segments_delivered)?;
    result.set_item("events_handled", outcome.events_handled)?;
    Ok(result)
}

/// Impact on Standard TCP (Li 2006, equation 9.1), from goodputs in one unit. It is the goodput of the remaining flows
/// without the others over that with them: above 1 they are harmed.
#[pyfunction]
fn impact(without: f64, with_others: f64) -> f64 {
    elephan_metrics::formula::impact(without, with_others)
}

/// The JSON Schema of the scenario file, as JSON.
#[pyfunction]
fn schema() -> String {
    elephan_scenario::Scenario::schema().to_string()
}

/// The number that a quantity of a scenario file stands for, and its unit. Units are `bit_s`, `s`, `bytes`, `packets`, or
/// `bdp`, a share of the bandwidth-delay product. None where the text is no quantity.
#[pyfunction]
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.bits_per_sec() as f64, "bit_s"));
    }
    if let Ok(time) = text.parse::<Time>() {
        return Some((time.secs_f64(), "s"));
    }
    match text.parse::<Buffer>().ok()? {
        Buffer::BdpShare(share) => Some((share, "bdp")),
        Buffer::Packets(packets) => Some((packets as f64, "packets")),
        Buffer::Bytes(bytes) => Some((bytes.get() as f64, "bytes")),
    }
}

/// What a build without the feature `hosts` says of the names that it lacks (PEP 562). Raises `ImportError`; `AttributeError` for the names of
/// Python itself, which the import system asks for.
#[cfg(not(feature = "hosts"))]
#[pyfunction]
fn __getattr__(name: &str) -> PyResult<()> {
    if name.starts_with("__") {
        return Err(pyo3::exceptions::PyAttributeError::new_err(name.to_owned()));
    }
    let text =
        format!("this checkout has built the simulator alone, without {name}; `make all` builds the rest");
    Err(pyo3::exceptions::PyImportError::new_err(text))
}

/// The module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add("AlgorithmError", module.py().get_type::<AlgorithmError>())?;
    module.add_class::<Cancel>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("EVENT_KINDS", EventKind::NAMES.to_vec())?;
    for function in [
        wrap_pyfunction!(run_many, module)?,
        wrap_pyfunction!(schema, module)?,
        wrap_pyfunction!(impact, module)?,
        wrap_pyfunction!(quantity, module)?,
        wrap_pyfunction!(live::run_live, module)?,
        wrap_pyfunction!(vocabulary::vocabulary, module)?,
        wrap_pyfunction!(vocabulary::one_of, module)?,
    ] {
        module.add_function(function)?;
    }
    scenario::register(module)?;
    foreign::register(module)?;
    kernel::register(module)?;
    tables::register(module)?;
    model::register(module)?;
    #[cfg(feature = "hosts")]
    hosts::register(module)?;
    #[cfg(not(feature = "hosts"))]
    module.add_function(wrap_pyfunction!(__getattr__, module)?)?;
    Ok(())
}
