//! The scenario that Python holds: read and resolved once, whatever is asked of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use elephan_scenario::plan::Cc;
use elephan_scenario::{Estimate, Files, Plan, Point, Syntax, parse};
use elephan_units::{Rate, Time};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::{Value, json};

use crate::model::{bad, fluid_plan};
use crate::scenario_error;

/// A scenario: a document of the form of its file, its JSON, or another scenario.
///
/// What needs more than the document raises `ScenarioError` where it cannot be read or run. So a stored result can be shown where its
/// scenario cannot be run.
#[pyclass(frozen, subclass)]
#[derive(Clone)]
pub struct Scenario(Arc<Forms>);

/// The document or the typed scenario is there from the beginning; all else is made when it is first needed.
struct Forms {
    document: PyOnceLock<Py<PyAny>>,
    typed: PyOnceLock<elephan_scenario::Scenario>,
    resolved: PyOnceLock<Plan>,
    facts: PyOnceLock<Py<PyAny>>,
    estimate: PyOnceLock<Estimate>,
}

fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

fn read(text: &str) -> PyResult<elephan_scenario::Scenario> {
    elephan_scenario::Scenario::from_json(text, "scenario", &[]).map_err(scenario_error)
}

fn known<T>(py: Python<'_>, value: Option<T>) -> PyOnceLock<T> {
    let cell = PyOnceLock::new();
    value.map(|value| cell.set(py, value));
    cell
}

impl Scenario {
    fn of(py: Python<'_>, typed: Option<elephan_scenario::Scenario>, document: Option<Py<PyAny>>) -> Self {
        Self(Arc::new(Forms {
            document: known(py, document),
            typed: known(py, typed),
            resolved: PyOnceLock::new(),
            facts: PyOnceLock::new(),
            estimate: PyOnceLock::new(),
        }))
    }

    /// As JSON.
    pub fn text(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(document) = self.0.document.get(py) {
            return py.import("json")?.call_method1("dumps", (document,))?.extract();
        }
        Ok(serde_json::to_string(self.typed(py)?).expect("a scenario is always JSON"))
    }

    fn typed(&self, py: Python<'_>) -> PyResult<&elephan_scenario::Scenario> {
        self.0.typed.get_or_try_init(py, || read(&self.text(py)?))
    }

    /// Resolved, without its sweep.
    pub fn plan(&self, py: Python<'_>) -> PyResult<&Plan> {
        self.0.resolved.get_or_try_init(py, || self.typed(py)?.resolve("scenario").map_err(scenario_error))
    }

    /// Checks every point of its sweep. A signal ends that between two points, with what its handler raises.
    fn check(&self, py: Python<'_>, file: &str, large: bool) -> PyResult<Estimate> {
        let typed = self.typed(py)?;
        if typed.sweep.is_empty() {
            let plan = typed.check(file, large).map_err(scenario_error)?;
            let estimate = plan.estimate.clone();
            // Another thread may have resolved it meanwhile, to the same.
            let _ = self.0.resolved.set(py, plan);
            return Ok(estimate);
        }
        let mut largest: Option<Estimate> = None;
        for estimate in typed.expansion(file).map_err(scenario_error)?.check(large) {
            py.check_signals()?;
            let estimate = estimate.map_err(scenario_error)?;
            largest = Some(match largest {
                Some(before) => before.max(estimate),
                None => estimate,
            });
        }
        Ok(largest.expect("a sweep has a point"))
    }
}

fn facts(plan: &Plan) -> Value {
    let links = plan.links.iter();
    let links = links
        .map(|link| json!({ "name": link.name, "rate_bit_s": link.config.rate.map(Rate::bits_per_sec) }));
    let base_rtt = plan.flows.iter().map(|flow| flow.rtt).max().unwrap_or(Time::ZERO);
    json!({
        "labels": plan.flows.iter().map(|flow| &flow.label).collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "bottleneck": plan.bottleneck,
        "from_s": plan.measure.from.secs_f64(),
        "to_s": plan.measure.to.secs_f64(),
        "base_rtt_s": base_rtt.secs_f64(),
    })
}

#[pymethods]
impl Scenario {
    #[new]
    fn new(py: Python<'_>, document: Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(other) = document.cast::<Self>() {
            return Ok(other.get().clone());
        }
        Ok(match document.extract::<String>() {
            Ok(text) => Self::of(py, Some(read(&text)?), None),
            Err(_) => Self::of(py, None, Some(document.unbind())),
        })
    }

    /// In the form of its file.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = || to_python(py, &self.text(py)?).map(Bound::unbind);
        Ok(self.0.document.get_or_try_init(py, made)?.bind(py))
    }

    /// As the text of a scenario file, in TOML.
    #[getter]
    fn toml(&self, py: Python<'_>) -> PyResult<String> {
        let error = |problem: String| bad(format!("scenario: expected what TOML can say, found: {problem}"));
        let table: toml::Table = serde_json::from_str(&self.text(py)?).map_err(|e| error(e.to_string()))?;
        toml::to_string_pretty(&table).map_err(|e| error(e.to_string()))
    }

    /// With every key of its stack, those that its profile sets included.
    #[getter]
    fn shown(&self, py: Python<'_>) -> PyResult<Self> {
        let shown = self.typed(py)?.shown("scenario").map_err(scenario_error)?;
        Ok(Self::of(py, Some(shown), None))
    }

    /// Sampling interval of flows and queues: `trace.interval`, or its default, which depends on the number of flows.
    #[getter]
    fn trace_interval(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.typed(py)?.trace_interval().to_string())
    }

    /// Upper bounds of what it takes to run it. They are `events` of the simulator, `rows` of all tables and `bytes` of memory, each with
    /// the key that contributes most; of a sweep those of the point that takes most.
    #[getter]
    fn estimate(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, (f64, &str)>> {
        let Estimate { events, rows, bytes } =
            self.0.estimate.get_or_try_init(py, || self.check(py, "scenario", true))?;
        let bounds = [("events", events), ("rows", rows), ("bytes", bytes)];
        Ok(bounds.into_iter().map(|(name, bound)| (name, (bound.amount, bound.key.as_str()))).collect())
    }

    /// Links, flows and times as engines see them. These are the `labels` of flows; `links` with name and rate; the number of the
    /// `bottleneck`; the measuring window, `from_s` to `to_s`; and the longest round-trip time of a flow without queueing.
    #[getter(plan)]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = || to_python(py, &facts(self.plan(py)?).to_string()).map(Bound::unbind);
        Ok(self.0.facts.get_or_try_init(py, made)?.bind(py))
    }

    /// What the fluid model needs: numbers in s, bit/s and packets. Raises `ScenarioError` where it has more than one bottleneck, or
    /// traffic that is no bulk transfer.
    #[getter]
    fn fluid_plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &fluid_plan(self.plan(py)?)?.to_string())
    }

    /// Name and settings (JSON) of the congestion control of each flow, and then of each crowd.
    #[getter]
    fn congestion_controls(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        let settings = |cc: &Cc| {
            let mut table = cc.table();
            table.remove("name");
            Value::Object(table).to_string()
        };
        let plan = self.plan(py)?;
        let flows = plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow));
        Ok(flows.map(|flow| (flow.cc.name, settings(&flow.cc))).collect())
    }

    /// The points of its sweep; one, the scenario itself, without a sweep.
    #[getter]
    fn expansion(&self, py: Python<'_>) -> PyResult<Expansion> {
        self.typed(py)?.expansion("scenario").map(Expansion).map_err(scenario_error)
    }
}

/// The points of the sweep of a scenario; none is made before it is asked for.
#[pyclass(frozen)]
pub struct Expansion(elephan_scenario::Expansion);

impl Expansion {
    fn at(&self, number: usize, repeat: u64) -> PyResult<Point> {
        if number >= self.0.points() {
            return Err(PyIndexError::new_err(format!(
                "expected a point below {}, found {number}",
                self.0.points()
            )));
        }
        Ok(self.0.point(number).map_err(scenario_error)?.repeat(repeat))
    }
}

#[pymethods]
impl Expansion {
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

    /// The scenario of repeat `repeat` of point `number`, and the settings that it stands for. Raises `ScenarioError` where there is no
    /// such point.
    fn point<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        repeat: u64,
    ) -> PyResult<(Scenario, Bound<'py, PyAny>)> {
        let Point { scenario, settings } = self.at(number, repeat)?;
        Ok((Scenario::of(py, Some(scenario), None), to_python(py, &Value::Object(settings).to_string())?))
    }

    /// The scenario of repeat `repeat` of point `number` as JSON with its keys in alphabetical order. One scenario has one
    /// such text. Raises `ScenarioError` where there is no such point.
    fn canonical(&self, number: usize, repeat: u64) -> PyResult<String> {
        let scenario = self.at(number, repeat)?.scenario;
        let mut document = serde_json::to_value(&scenario).expect("a scenario is always JSON");
        document.sort_all_objects();
        Ok(document.to_string())
    }
}

/// Reads a text (TOML, or JSON where `json`) as a plain document, and returns it as JSON. Nothing else is checked. Raises
/// `ScenarioError`, with the name `file`, where it is neither.
#[pyfunction]
#[pyo3(signature = (text, file, json=false))]
fn parse_document(text: &str, file: &str, json: bool) -> PyResult<String> {
    Ok(parse(text, file, syntax(json)).map_err(scenario_error)?.to_string())
}

/// Reads a scenario (TOML, or JSON where `json`), with all defaults written out. It sets `overrides`, and checks that the scenario works at
/// every point of its sweep, and that no point is beyond the limits of events, rows and memory unless it may be `large`. Files
/// that it names are read only where `files` allows it. Raises `ScenarioError` with a line for each mistake.
#[pyfunction]
#[pyo3(signature = (text, file, overrides, json=false, files=false, large=false))]
fn load_scenario(
    py: Python<'_>,
    text: &str,
    file: &str,
    overrides: Vec<(String, String)>,
    json: bool,
    files: bool,
    large: bool,
) -> PyResult<Scenario> {
    let files = if files { Files::Allowed } else { Files::Refused };
    let typed = parse(text, file, syntax(json))
        .and_then(|document| elephan_scenario::Scenario::from_document(document, file, &overrides, files))
        .map_err(scenario_error)?;
    let scenario = Scenario::of(py, Some(typed), None);
    let _ = scenario.0.estimate.set(py, scenario.check(py, file, large)?);
    Ok(scenario)
}

fn syntax(json: bool) -> Syntax {
    if json { Syntax::Json } else { Syntax::Toml }
}

/// Adds this part to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scenario>()?;
    module.add_class::<Expansion>()?;
    module.add_function(wrap_pyfunction!(parse_document, module)?)?;
    module.add_function(wrap_pyfunction!(load_scenario, module)?)
}
