//! A run that is watched while it goes on.

use std::sync::Mutex;

use elephan_metrics::{Control, SoFar};
use elephan_units::Time;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::scenario::Scenario;
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
            let flows = live_rows(py, &so_far.flows.since(state.0), 0)?;
            let queues = live_rows(py, so_far.queues, state.1)?;
            self.callback.call1(py, (so_far.now.secs_f64(), flows, queues))?.extract::<bool>(py)
        });
        (state.0, state.1) = (so_far.flows.rows(), so_far.queues.time_s.len());
        told.unwrap_or_else(|error| {
            state.2 = Some(error);
            false
        })
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }
}

/// Runs a scenario and hands over its samples as they come. It calls `callback(time_s, flows, queues)` every
/// `interval_s` of simulated time with those that are new; the run pauses until it returns, and ends where it returns
/// false. Nothing is captured.
///
/// The calling thread calls `listen()` every 50 ms of real time; what that raises ends the run at once, and is raised.
/// `cancel` lets another thread stop it. Raises `ScenarioError` where the scenario cannot be run.
#[pyfunction]
#[pyo3(signature = (scenario, interval_s, callback, cancel=None, listen=None))]
pub fn run_live(
    py: Python<'_>,
    scenario: Py<Scenario>,
    interval_s: f64,
    callback: Py<PyAny>,
    cancel: Option<Py<Cancel>>,
    listen: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let plan = scenario.get().plan(py)?;
    let interval = Time::from_secs_f64(interval_s);
    let own = Cancel::default();
    let cancel = cancel.as_ref().map_or(&own, Py::get);
    let watched = Watched { interval, callback, cancel, state: Mutex::new((0, 0, None)) };
    let tell = |py: Python<'_>| listen.as_ref().map_or(Ok(()), |listen| listen.call0(py).map(drop));
    let outcome = watch(py, cancel, tell, || elephan_sim::run(plan, &watched))?;
    if let Some(error) = watched.state.into_inner().expect("a single thread").2 {
        return Err(error);
    }
    crate::convert(py, outcome.map_err(crate::run_error)?, plan)
}
