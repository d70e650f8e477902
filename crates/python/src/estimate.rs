//! What it takes to run a scenario, and whether that is within the limits.

use std::collections::BTreeMap;

use elephan_scenario::{Estimate, Expansion, Scenario};
use pyo3::prelude::*;

use crate::scenario_error;

/// Checks every point of a sweep; the larger bounds of all. A signal ends it between two points, with what its handler raises.
pub fn check(py: Python<'_>, expansion: &Expansion, large: bool) -> PyResult<Option<Estimate>> {
    let mut largest: Option<Estimate> = None;
    for estimate in expansion.check(large) {
        py.check_signals()?;
        let estimate = estimate.map_err(scenario_error)?;
        largest = Some(match largest {
            Some(before) => before.max(estimate),
            None => estimate,
        });
    }
    Ok(largest)
}

/// Upper bounds of what it takes to run a scenario (JSON). They are `events` of the simulator, `rows` of all tables and
/// `bytes` of memory, each with the key that contributes most; of a sweep those of the point that takes most. Raises
/// `ScenarioError` where it cannot be run.
#[pyfunction]
pub fn estimate(py: Python<'_>, scenario: &str) -> PyResult<BTreeMap<&'static str, (f64, String)>> {
    let scenario = Scenario::from_json(scenario, "scenario", &[]).map_err(scenario_error)?;
    let expansion = scenario.expansion("scenario").map_err(scenario_error)?;
    let Some(Estimate { events, rows, bytes }) = check(py, &expansion, true)? else {
        return Ok(BTreeMap::new());
    };
    let bounds = [("events", events), ("rows", rows), ("bytes", bytes)];
    Ok(bounds.into_iter().map(|(name, bound)| (name, (bound.amount, bound.key))).collect())
}
