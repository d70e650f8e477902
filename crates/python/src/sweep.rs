//! The points of a sweep, one at a time.

use elephan_scenario::Scenario;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::scenario_error;

/// The points of the sweep of a scenario (JSON); none is made before it is asked for. Raises `ScenarioError` where the scenario cannot
/// be run.
#[pyclass(frozen)]
pub struct Expansion(elephan_scenario::Expansion);

impl Expansion {
    fn at(&self, number: usize, repeat: u64) -> PyResult<elephan_scenario::Point> {
        if number >= self.0.points() {
            return Err(PyIndexError::new_err(format!(
                "expected a point below {}, found {number}",
                self.0.points()
            )));
        }
        Ok(self.0.point(number).map_err(scenario_error)?.repeat(repeat))
    }
}

fn value(scenario: &Scenario) -> Value {
    serde_json::to_value(scenario).expect("a scenario is always JSON")
}

#[pymethods]
impl Expansion {
    /// Reads the sweep of a scenario (JSON).
    #[new]
    fn new(scenario: &str) -> PyResult<Self> {
        let scenario = Scenario::from_json(scenario, "scenario", &[]).map_err(scenario_error)?;
        scenario.expansion("scenario").map(Self).map_err(scenario_error)
    }

    /// How many points there are, repeats not counted.
    #[getter]
    fn points(&self) -> usize {
        self.0.points()
    }

    /// With how many seeds each point is to be run.
    #[getter]
    fn repeats(&self) -> u64 {
        self.0.repeats()
    }

    /// JSON of the scenario of repeat `repeat` of point `number`, and JSON of the settings that it stands for. Raises `ScenarioError`
    /// where there is no such point.
    fn point(&self, number: usize, repeat: u64) -> PyResult<(String, String)> {
        let point = self.at(number, repeat)?;
        Ok((value(&point.scenario).to_string(), Value::Object(point.settings).to_string()))
    }

    /// The scenario of repeat `repeat` of point `number` as JSON with its keys in alphabetical order. One scenario has one
    /// such text. Raises `ScenarioError` where there is no such point.
    fn canonical(&self, number: usize, repeat: u64) -> PyResult<String> {
        let mut document = value(&self.at(number, repeat)?.scenario);
        document.sort_all_objects();
        Ok(document.to_string())
    }
}
