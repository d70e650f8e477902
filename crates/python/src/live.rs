//! A run that is watched while it goes on.

use std::path::PathBuf;
use std::sync::Mutex;

use elephan_sim::{Control, SoFar};
use elephan_units::{Rate, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::tables::live_rows;

/// Hands the samples over as they come.
struct Watched {
    interval: Time,
    callback: Py<PyAny>,
    /// Rows of flows and of queues that were handed over, and what the callback raised.
    state: Mutex<(usize, usize, Option<PyErr>)>,
}

impl Control for Watched {
    fn interval(&self, _: Time) -> Time {
        self.interval
    }

    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        let mut state = self.state.lock().expect("a single thread");
        let told = Python::attach(|py| {
            py.check_signals()?;
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

    fn pcap_file(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

/// The names of a scenario's flows and links, as JSON: of flows their labels, of links whether they have a rate.
#[pyfunction]
pub fn describe_plan(scenario: &str) -> PyResult<String> {
    let plan = crate::plan(scenario)?;
    let links: Vec<_> = plan
        .links
        .iter()
        .map(|link| json!({ "name": link.name, "rate_bit_s": link.config.rate.map(Rate::bits_per_sec) }))
        .collect();
    let labels: Vec<_> = plan.flows.iter().map(|flow| &flow.label).collect();
    Ok(json!({ "labels": labels, "links": links, "bottleneck": plan.bottleneck }).to_string())
}

/// Runs a scenario (JSON) and calls `callback(time_s, flows, queues)` every `interval_s` of simulated time with the samples that
/// are new; the run pauses until it returns, and ends where it returns false. Nothing is captured.
#[pyfunction]
pub fn run_live<'py>(
    py: Python<'py>,
    scenario: &str,
    interval_s: f64,
    callback: Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = crate::plan(scenario)?;
    let interval = Time::from_secs_f64(interval_s);
    let watched = Watched { interval, callback, state: Mutex::new((0, 0, None)) };
    let outcome = py.detach(|| elephan_sim::run(&plan, &watched));
    if let Some(error) = watched.state.into_inner().expect("a single thread").2 {
        return Err(error);
    }
    crate::convert(py, outcome.map_err(crate::run_error)?, &plan)
}
