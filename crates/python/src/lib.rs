//! The Python extension module `elephan._core`: converts and forwards. Its callers are in `python/elephan`.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

/// A `dict` with these items.
macro_rules! dict {
    ($py:expr; $($name:expr => $value:expr),* $(,)?) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item($name, $value)?;)*
        dict
    }};
}

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
use std::thread;

use elephan_metrics::Outcome;
use elephan_metrics::table::Table;
use elephan_metrics::trace::{
    CrowdTrace, EventTrace, FlowTrace, QueueTrace, StreamTrace, TransferTrace, VariableTrace,
};
use elephan_scenario::{Buffer, Plan};
use elephan_sim::Error;
use elephan_units::{Rate, Time};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::scenario::Scenario;
use crate::tables::columns;
use crate::watch::{Cancel, Runs};

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

/// A `ScenarioError` with this message.
fn bad(message: impl ToString) -> PyErr {
    ScenarioError::new_err(message.to_string())
}

/// An `OSError` with the number of a system's error.
#[cfg(feature = "hosts")]
fn os_error(error: &std::io::Error, text: impl ToString) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), text.to_string()))
}

fn cancelled() -> PyErr {
    PyKeyboardInterrupt::new_err("the run was cancelled")
}

/// As JSON, which a value of ours always is.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is always JSON")
}

fn run_error(error: Error) -> PyErr {
    match error {
        Error::Cancelled => cancelled(),
        Error::Pcap(path, error) => PyOSError::new_err((error.raw_os_error(), error.to_string(), path)),
        Error::Standstill { .. } | Error::Beyond { .. } => bad(error),
        Error::Fault { ref text, .. } => foreign::failed(error.to_string(), text),
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
    let all = Runs::new(cancel.as_ref().map_or(&own, Py::get), captures.unwrap_or_default());
    let threads = threads.min(thread::available_parallelism().map_or(1, NonZero::get));
    let run = || match plans.as_slice() {
        [plan] => vec![elephan_sim::run_on(plan, &all.one(), threads)],
        plans => elephan_sim::run_many(plans, threads, |_| all.one()),
    };
    let outcomes =
        if cancel.is_some() { py.detach(run) } else { all.watch(py, progress.as_ref(), plans.len(), run)? };
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
    Ok(dict! { py;
        "summary" => to_json(&outcome.summary),
        "links" => links,
        "labels" => labels,
        FlowTrace::NAME => columns(py, outcome.flows)?,
        QueueTrace::NAME => columns(py, outcome.queues)?,
        StreamTrace::NAME => columns(py, outcome.streams)?,
        CrowdTrace::NAME => columns(py, outcome.crowds)?,
        TransferTrace::NAME => columns(py, outcome.transfers)?,
        EventTrace::NAME => columns(py, outcome.events)?,
        VariableTrace::NAME => columns(py, outcome.variables)?,
        "segments_delivered" => outcome.segments_delivered,
        "events_handled" => outcome.events_handled,
    })
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
mod _core {
    #[cfg(not(feature = "hosts"))]
    #[pymodule_export]
    use super::__getattr__;
    #[pymodule_export]
    use super::{AlgorithmError, ScenarioError, quantity, run_many, schema};
    #[pymodule_export]
    use crate::foreign::{
        Decision, PyLoss, PyReport, add_linux_name, described, register_class, register_object,
        register_table,
    };
    #[cfg(feature = "hosts")]
    #[pymodule_export]
    use crate::hosts::{capture::read_captures, packetdrill::run_packetdrill};
    #[cfg(all(feature = "hosts", target_os = "linux"))]
    #[pymodule_export]
    use crate::hosts::{
        engine::{hold_links, linux_unsupported, run_guest, run_linux},
        host::measure_host,
        probe::{ProbeClient, ProbeServer, VirtualProbe},
        transfer::{transfer_receive, transfer_send},
        watch::watch_programs,
    };
    #[pymodule_export]
    use crate::kernel::{kernel_algorithms, kernel_sources, kernel_values};
    #[pymodule_export]
    use crate::live::run_live;
    #[pymodule_export]
    use crate::model::{
        Model, bits_per_second, empty_summary, fluid, independent_window, pftk_bit_s, rounds,
        scalable_stability, seconds, tekala_random_rate, tekala_window, utilisation_of,
    };
    #[pymodule_export]
    use crate::scenario::{Scenario, load_scenario, parse_document};
    #[pymodule_export]
    use crate::tables::{declared_columns, declared_fields, summary_schema};
    #[pymodule_export]
    use crate::vocabulary::{one_of, vocabulary};
    #[pymodule_export]
    use crate::watch::Cancel;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("EVENT_KINDS", elephan_metrics::trace::EventKind::NAMES.to_vec())?;
        let [variables, values] = elephan_cc::registry::vocabulary();
        module.add("VARIABLES", variables)?;
        module.add("VARIABLE_VALUES", values)?;
        module.add("FOREIGN_KINDS", elephan_abi::registered::KINDS.to_vec())?;
        #[cfg(all(feature = "hosts", target_os = "linux"))]
        {
            module.add("PROBE_PORT", elephan_probe::PORT)?;
            module.add("PROBE_HEADER", elephan_probe::HEADER_BYTES)?;
            module.add("TRANSFER_PORT", elephan_transfer::PORT)?;
        }
        Ok(())
    }
}
