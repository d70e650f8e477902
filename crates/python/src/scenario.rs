//! The scenario that Python holds: read and resolved once, whatever is asked of it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use elephan_abi::registered;
use elephan_scenario::plan::{Cc, Link};
use elephan_scenario::{Estimate, Expansion, Files, Plan, Point, Syntax, parse};
use elephan_traffic::{Pattern, Start};
use elephan_units::{Rate, Time};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{bad, to_json};

/// A scenario: a document of the form of its file, its JSON, or another scenario.
///
/// What needs more than the document raises `ScenarioError` where it cannot be read or run. So a stored result can be shown where its
/// scenario cannot be run.
#[pyclass(frozen, subclass)]
#[derive(Clone)]
pub struct Scenario(Arc<Forms>);

/// The document or the typed scenario is there from the beginning; all else is made when it is first needed.
#[derive(Default)]
struct Forms {
    document: OnceLock<Py<PyAny>>,
    typed: OnceLock<elephan_scenario::Scenario>,
    resolved: OnceLock<Plan>,
    facts: OnceLock<Py<PyAny>>,
    expansion: OnceLock<Expansion>,
    estimate: OnceLock<Estimate>,
}

/// A form, which is made if it is not there. Two threads may both make it; one result is kept.
fn form<T>(of: &OnceLock<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&T> {
    if let Some(there) = of.get() {
        return Ok(there);
    }
    let new = make()?;
    Ok(of.get_or_init(|| new))
}

fn to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

fn read(text: &str) -> PyResult<elephan_scenario::Scenario> {
    elephan_scenario::Scenario::from_json(text, "scenario", &[]).map_err(bad)
}

impl From<elephan_scenario::Scenario> for Scenario {
    fn from(typed: elephan_scenario::Scenario) -> Self {
        Self(Arc::new(Forms { typed: typed.into(), ..Forms::default() }))
    }
}

impl Scenario {
    /// As JSON.
    pub fn text(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(document) = self.0.document.get() {
            return py.import("json")?.call_method1("dumps", (document,))?.extract();
        }
        Ok(to_json(self.typed(py)?))
    }

    fn typed(&self, py: Python<'_>) -> PyResult<&elephan_scenario::Scenario> {
        form(&self.0.typed, || read(&self.text(py)?))
    }

    /// Resolved, without its sweep.
    pub fn plan(&self, py: Python<'_>) -> PyResult<&Plan> {
        form(&self.0.resolved, || self.typed(py)?.resolve("scenario").map_err(bad))
    }

    fn expansion(&self, py: Python<'_>) -> PyResult<&Expansion> {
        let made = || self.typed(py)?.expansion("scenario").map_err(bad);
        form(&self.0.expansion, made)
    }

    fn at(&self, py: Python<'_>, number: usize, repeat: u64) -> PyResult<Point> {
        let expansion = self.expansion(py)?;
        let points = expansion.points();
        if number >= points {
            return Err(PyIndexError::new_err(format!("expected a point below {points}, found {number}")));
        }
        Ok(expansion.point(number).map_err(bad)?.repeat(repeat))
    }

    /// Checks every point of its sweep. A signal ends that between two points, with what its handler raises.
    fn check(&self, py: Python<'_>, file: &str, large: bool) -> PyResult<Estimate> {
        let typed = self.typed(py)?;
        if typed.sweep.is_empty() {
            let plan = typed.check(file, large).map_err(bad)?;
            let estimate = plan.estimate.clone();
            // Another thread may have resolved it meanwhile, to the same.
            let _ = self.0.resolved.set(plan);
            return Ok(estimate);
        }
        let mut largest = Estimate::default();
        for estimate in typed.expansion(file).map_err(bad)?.check(large) {
            py.check_signals()?;
            largest = largest.max(estimate.map_err(bad)?);
        }
        Ok(largest)
    }
}

fn facts(plan: &Plan) -> Value {
    let links = plan.links.iter().map(|Link { name, config }| {
        let initial = json!({ "rate": config.rate, "delay": config.delay, "loss": config.loss });
        let weights: Vec<f64> =
            config.queue.classes().iter().map(|class| class.weight.unwrap_or(1.0)).collect();
        let rate = config.rate.map(Rate::bits_per_sec);
        json!({ "name": name, "rate_bit_s": rate, "weights": weights, "initial": initial })
    });
    let changes = plan.changes.iter().map(|change| {
        json!({
            "at_s": change.at.secs_f64(),
            "link": plan.links[change.link as usize].name,
            "rate": change.rate,
            "delay": change.delay,
            "loss": change.loss,
            "weights": change.weights,
            "up": change.up,
        })
    });
    let starts = plan.flows.iter().map(|flow| match flow.start {
        Start::At(time) => Some(time.secs_f64()),
        _ => None,
    });
    let slow_starts = plan.flows.iter().map(|flow| flow.slow_start.name);
    let routes = plan.flows.iter().map(|flow| &plan.routes[flow.forward as usize]);
    let constant = plan.streams.iter().map(|stream| stream.datagrams);
    let constant = constant.filter(|datagrams| matches!(datagrams.pattern, Pattern::Constant));
    let base_rtt = plan.flows.iter().map(|flow| flow.rtt).max().unwrap_or(Time::ZERO);
    json!({
        "labels": plan.labels().collect::<Vec<_>>(),
        "starts_s": starts.collect::<Vec<_>>(),
        "slow_starts": slow_starts.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
        "bottleneck": plan.bottleneck,
        "constant_bit_s": constant.map(|datagrams| datagrams.rate.bits_per_sec() as f64).sum::<f64>(),
        "from_s": plan.measure.from.secs_f64(),
        "to_s": plan.measure.to.secs_f64(),
        "base_rtt_s": base_rtt.secs_f64(),
    })
}

/// Puts another algorithm in place of each from outside.
fn replace_foreign(document: &mut Value) {
    match document {
        Value::Array(all) => all.iter_mut().for_each(replace_foreign),
        Value::Object(table) => {
            for (key, value) in table {
                let name = value.get("name").unwrap_or(value).as_str();
                if key == "cc" && name.is_some_and(registered::is_foreign) {
                    *value = json!("reno");
                } else {
                    replace_foreign(value);
                }
            }
        }
        _ => {}
    }
}

#[pymethods]
impl Scenario {
    #[new]
    fn new(document: Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(other) = document.cast::<Self>() {
            return Ok(other.get().clone());
        }
        Ok(match document.extract::<String>() {
            Ok(text) => read(&text)?.into(),
            Err(_) => Self(Arc::new(Forms { document: document.unbind().into(), ..Forms::default() })),
        })
    }

    /// In the form of its file.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = || to_python(py, &self.text(py)?).map(Bound::unbind);
        Ok(form(&self.0.document, made)?.bind(py))
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
        let shown = self.typed(py)?.shown("scenario").map_err(bad)?;
        Ok(shown.into())
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
        let Estimate { events, rows, bytes } = form(&self.0.estimate, || self.check(py, "scenario", true))?;
        let bounds = [("events", events), ("rows", rows), ("bytes", bytes)];
        Ok(bounds.into_iter().map(|(name, bound)| (name, (bound.amount, bound.key.as_str()))).collect())
    }

    /// Links, flows and times as engines see them. These are the `labels` of flows, and when they start (None if that is drawn);
    /// `links` with name, rate, the weights of classes, and what they are like before the `changes`, in order of time; the `routes` of
    /// data of each flow, as numbers of links; the number of the `bottleneck`; the rate of all streams of datagrams that are constant; the
    /// measuring window, `from_s` to `to_s`; and the longest round-trip time of a flow without queueing. An algorithm from outside
    /// need not be registered for it.
    #[getter(plan)]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = || {
            let found = self.plan(py).map(facts).or_else(|error| {
                let mut document: Value = serde_json::from_str(&self.text(py)?).map_err(|_| error)?;
                replace_foreign(&mut document);
                read(&document.to_string())?.resolve("scenario").map_err(bad).map(|plan| facts(&plan))
            })?;
            to_python(py, &found.to_string()).map(Bound::unbind)
        };
        Ok(form(&self.0.facts, made)?.bind(py))
    }

    /// What the fluid model needs: numbers in s, bit/s and packets. Raises `ScenarioError` where it has more than one bottleneck, or
    /// traffic that is no bulk transfer.
    #[getter]
    fn fluid_plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.plan(py)?.fluid().map_err(bad)?.to_string())
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

    /// How many points its sweep has, repeats not counted; without a sweep one, itself.
    #[getter]
    fn points(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.expansion(py)?.points())
    }

    /// With how many seeds each point is to be run.
    #[getter]
    fn repeats(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.expansion(py)?.repeats())
    }

    /// The scenario of repeat `repeat` of point `number`, and the settings that it stands for. Raises `ScenarioError` where there is no
    /// such point.
    fn point<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        repeat: u64,
    ) -> PyResult<(Scenario, Bound<'py, PyAny>)> {
        let Point { scenario, settings } = self.at(py, number, repeat)?;
        Ok((scenario.into(), to_python(py, &Value::Object(settings).to_string())?))
    }

    /// The scenario of repeat `repeat` of point `number` as JSON with its keys in alphabetical order. One scenario has one
    /// such text. Raises `ScenarioError` where there is no such point.
    fn canonical(&self, py: Python<'_>, number: usize, repeat: u64) -> PyResult<String> {
        let scenario = self.at(py, number, repeat)?.scenario;
        let mut document = serde_json::to_value(&scenario).expect("a scenario is always JSON");
        document.sort_all_objects();
        Ok(document.to_string())
    }
}

/// Reads a text (TOML, or JSON where `json`) as a plain document, and returns it as JSON. Nothing else is checked. Raises
/// `ScenarioError`, with the name `file`, where it is neither.
#[pyfunction]
#[pyo3(signature = (text, file, json=false))]
pub fn parse_document(text: &str, file: &str, json: bool) -> PyResult<String> {
    Ok(parse(text, file, if json { Syntax::Json } else { Syntax::Toml }).map_err(bad)?.to_string())
}

/// Reads a scenario (TOML, or JSON where `json`), with all defaults written out. It sets `overrides`, and checks that the scenario works at
/// every point of its sweep, and that no point is beyond the limits of events, rows and memory unless it may be `large`. Files
/// that it names are read only where `files` allows it. Raises `ScenarioError` with a line for each mistake.
#[pyfunction]
#[pyo3(signature = (text, file, overrides, json=false, files=false, large=false))]
pub fn load_scenario(
    py: Python<'_>,
    text: &str,
    file: &str,
    overrides: Vec<(String, String)>,
    json: bool,
    files: bool,
    large: bool,
) -> PyResult<Scenario> {
    let files = if files { Files::Allowed } else { Files::Refused };
    let typed = parse(text, file, if json { Syntax::Json } else { Syntax::Toml })
        .and_then(|document| elephan_scenario::Scenario::from_document(document, file, &overrides, files))
        .map_err(bad)?;
    let scenario = Scenario::from(typed);
    let _ = scenario.0.estimate.set(scenario.check(py, file, large)?);
    Ok(scenario)
}
