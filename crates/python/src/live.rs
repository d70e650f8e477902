//! A run that is watched while it goes on.

use std::sync::Mutex;

use elephan_metrics::{Control, SoFar};
use elephan_units::{Rate, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::tables::live_rows;
use crate::watch::{Cancel, watch};

/// Hands the samples over as they come.
struct Watched<'a> {
    interval: Time,
    callback: Py<PyAny>,
    cancel: &'a Cancel,
    /// Rows of flows and of queues that were handed over, and what the callback raised.
    state: Mutex<(usize, usize, Option<PyErr>)>,
}

impl Control for Watched<'_> {
    fn interval(&self, _: Time) -> Time {
        self.interval
    }

    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        let mut state = self.state.lock().expect("a single thread");
        let told = Python::attach(|py| {
            let flows = live_rows(py, so_far.flows, state.0)?;
            let queues = live_rows(py, so_far.queues, state.1)?;
            self.callback.call1(py, (so_far.now.secs_f64(), flows, queues))?.extract::<bool>(py)
        });
        (state.0, state.1) = (so_far.flows.time_s.len(), so_far.queues.time_s.len());
        told.unwrap_or_else(|error| {
            state.2 = Some(error);
            false
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

/// The names of the flows and links of a scenario (JSON), as JSON. It also has the links' rates, the measuring window, and the
/// longest round-trip time of a flow without queueing. Raises `ScenarioError` where it cannot be run.
#[pyfunction]
pub fn describe_plan(scenario: &str) -> PyResult<String> {
    let plan = crate::plan(scenario)?;
    let links: Vec<_> = plan
        .links
        .iter()
        .map(|link| json!({ "name": link.name, "rate_bit_s": link.config.rate.map(Rate::bits_per_sec) }))
        .collect();
    let labels: Vec<_> = plan.flows.iter().map(|flow| &flow.label).collect();
    let base_rtt = plan.flows.iter().map(|flow| flow.rtt).max().unwrap_or(Time::ZERO);
    Ok(json!({
        "labels": labels,
        "links": links,
        "bottleneck": plan.bottleneck,
        "from_s": plan.measure.from.secs_f64(),
        "to_s": plan.measure.to.secs_f64(),
        "base_rtt_s": base_rtt.secs_f64(),
    })
    .to_string())
}

/// Runs a scenario (JSON) and hands over its samples as they come. It calls `callback(time_s, flows, queues)` every
/// `interval_s` of simulated time with those that are new; the run pauses until it returns, and ends where it returns
/// false. Nothing is captured.
///
/// The calling thread calls `listen()` every 50 ms of real time; what that raises ends the run at once, and is raised.
/// `cancel` lets another thread stop it. Raises `ScenarioError` where the scenario cannot be run.
#[pyfunction]
#[pyo3(signature = (scenario, interval_s, callback, cancel=None, listen=None))]
pub fn run_live<'py>(
    py: Python<'py>,
    scenario: &str,
    interval_s: f64,
    callback: Py<PyAny>,
    cancel: Option<Py<Cancel>>,
    listen: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = crate::plan(scenario)?;
    let interval = Time::from_secs_f64(interval_s);
    let own = Cancel::default();
    let cancel = cancel.as_ref().map_or(&own, Py::get);
    let watched = Watched { interval, callback, cancel, state: Mutex::new((0, 0, None)) };
    let tell = |py: Python<'_>| listen.as_ref().map_or(Ok(()), |listen| listen.call0(py).map(drop));
    let outcome = watch(py, cancel, tell, || elephan_sim::run(&plan, &watched))?;
    if let Some(error) = watched.state.into_inner().expect("a single thread").2 {
        return Err(error);
    }
    crate::convert(py, outcome.map_err(crate::run_error)?, &plan)
}
