//! Algorithms from outside: their registration, and Python classes as algorithms.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use elephan_abi::foreign::Object;
use elephan_abi::linux;
use elephan_abi::registered::{self, Description};
use elephan_cc::governor::{Fault, Governor, Limits, Report};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Cause, State};
use elephan_units::Mistake;
use elephan_units::entry::{Parameter, Range};
use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use serde_json::{Value, json};

use crate::{AlgorithmError, bad};

const NANOS: f64 = 1e-9;
const BITS: f64 = 8.0;

/// What happened to a connection since the last report, and its state.
#[pyclass(frozen, get_all, name = "Report")]
pub struct PyReport {
    /// Simulated time, in seconds.
    time_s: f64,
    /// Time since the last report, in seconds.
    interval_s: f64,
    /// Congestion window, in segments.
    cwnd_segments: f64,
    /// Slow-start threshold, in segments; infinite before the first loss.
    ssthresh_segments: f64,
    /// Rate at which payload is sent, in bit/s; zero: as `tcp.pacing` says.
    pacing_rate_bit_s: f64,
    /// Segments in flight.
    in_flight_segments: u32,
    /// Segments delivered since the last report.
    delivered_segments: u64,
    /// Segments found lost since the last report.
    lost_segments: u64,
    /// Segments whose ACK echoed a congestion mark since the last report.
    marked_segments: u64,
    /// Rate at which payload was delivered since the last report, in bit/s.
    delivery_rate_bit_s: f64,
    /// Mean of the round-trip times that were measured since the last report, in seconds; None if there is none.
    rtt_s: Option<f64>,
    /// Largest of these, in seconds.
    rtt_max_s: Option<f64>,
    /// Smallest of these, in seconds.
    rtt_min_s: Option<f64>,
    /// Smallest round-trip time of the connection, in seconds.
    min_rtt_s: f64,
    /// Smoothed round-trip time (RFC 6298), in seconds.
    srtt_s: f64,
    /// Round trips completed.
    round: u64,
    /// Payload of a full segment, in bytes.
    mss_bytes: u32,
    /// State of the sender, as Linux names it: `open`, `disorder`, `cwr`, `recovery` or `loss`.
    state: &'static str,
    /// Whether the window, not the application, limited the sender in the last round trip.
    is_window_limited: bool,
}

/// A congestion event: at most one for each window of data.
#[pyclass(frozen, get_all, name = "Loss")]
pub struct PyLoss {
    /// Simulated time, in seconds.
    time_s: f64,
    /// How it was detected: `loss` (duplicate or selective acknowledgments), `mark` (ECN) or `timeout`.
    cause: &'static str,
    /// Congestion window, in segments.
    cwnd_segments: f64,
    /// Slow-start threshold, in segments; infinite before the first loss.
    ssthresh_segments: f64,
    /// Segments in flight.
    in_flight_segments: u32,
    /// Smallest round-trip time of the connection, in seconds.
    min_rtt_s: f64,
    /// Smoothed round-trip time (RFC 6298), in seconds.
    srtt_s: f64,
}

/// What a controller decides; what it leaves out stays as it is.
#[pyclass(frozen, get_all, from_py_object)]
#[derive(Clone, Copy)]
pub struct Decision {
    /// Congestion window, in segments: 1 to 2^31.
    cwnd_segments: Option<f64>,
    /// Slow-start threshold, in segments: below it the window grows by slow start between two reports.
    ssthresh_segments: Option<f64>,
    /// Rate at which payload is sent, in bit/s; zero: as `tcp.pacing` says.
    pacing_rate_bit_s: Option<f64>,
}

#[pymethods]
impl Decision {
    /// Makes a decision.
    #[new]
    #[pyo3(signature = (*, cwnd_segments=None, ssthresh_segments=None, pacing_rate_bit_s=None))]
    fn new(
        cwnd_segments: Option<f64>,
        ssthresh_segments: Option<f64>,
        pacing_rate_bit_s: Option<f64>,
    ) -> Self {
        Self { cwnd_segments, ssthresh_segments, pacing_rate_bit_s }
    }
}

impl Decision {
    fn apply(self, limits: &mut Limits) {
        limits.cwnd = self.cwnd_segments.unwrap_or(limits.cwnd);
        limits.ssthresh = self.ssthresh_segments.unwrap_or(limits.ssthresh);
        limits.pacing_rate = self.pacing_rate_bit_s.map_or(limits.pacing_rate, |rate| rate / BITS);
    }
}

/// What a class and all its controllers share.
struct Shared {
    class: Py<PyAny>,
    name: String,
    keywords: Vec<(String, f64)>,
    interval_ns: Option<u64>,
    governs_recovery: bool,
}

/// The state at the last report, and the round-trip times since.
#[derive(Clone, Default)]
struct Since {
    last: Report,
    rtts: u64,
    rtt_sum_ns: f64,
    rtt_min_ns: i64,
    rtt_max_ns: i64,
}

/// The controller of a connection: an instance of the class, which is made when the connection begins.
struct Controller {
    shared: Arc<Shared>,
    seed: u64,
    instance: Option<Py<PyAny>>,
    since: Since,
}

impl Controller {
    fn new(shared: Arc<Shared>, seed: u64) -> Self {
        Self { shared, seed, instance: None, since: Since::default() }
    }

    /// Calls a method of the instance with `argument`, and carries out its decision.
    fn ask<T: PyClass>(
        &mut self,
        method: &str,
        argument: impl Into<PyClassInitializer<T>>,
        limits: &mut Limits,
    ) -> Result<(), Fault> {
        Python::attach(|py| {
            let decide = || {
                let answer = self.instance(py)?.call_method1(method, (Py::new(py, argument)?,))?;
                answer.extract::<Option<Decision>>().map_err(|_| {
                    let found =
                        answer.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
                    PyTypeError::new_err(format!("expected a Decision or None, found {found}"))
                })
            };
            match decide() {
                Ok(decision) => decision.into_iter().for_each(|decision| decision.apply(limits)),
                Err(error) => return Err(self.fault(py, method, error)),
            }
            Ok(())
        })
    }

    fn instance<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(instance) = &self.instance {
            return Ok(instance.bind(py).clone());
        }
        let keywords = self.shared.keywords.clone().into_py_dict(py)?;
        let made = self.shared.class.bind(py).call((), Some(&keywords))?;
        made.setattr("seed", self.seed)?;
        self.instance = Some(made.clone().unbind());
        Ok(made)
    }

    /// The fault that stands for an exception, which is kept for the caller of the run.
    fn fault(&self, py: Python<'_>, method: &str, error: PyErr) -> Fault {
        let kind =
            error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
        let text = format!("{}.{method} raised {kind}: {}", self.shared.name, error.value(py));
        let text = text.trim_end().trim_end_matches(':').to_owned();
        // What is replaced is dropped when the lock is free: it may run code of Python, which lets other threads go on.
        let replaced = RAISED.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone(), error);
        drop(replaced);
        Fault::new(text)
    }

    /// What is told at a report; counting starts again.
    fn report(&mut self, limits: &Limits, report: &Report) -> PyReport {
        let since = std::mem::replace(&mut self.since, Since { last: *report, ..Since::default() });
        let interval_s = seconds(report.now_ns.saturating_sub(since.last.now_ns));
        let delivered = report.delivered.saturating_sub(since.last.delivered);
        let measured = since.rtts > 0;
        let payload_bits = delivered as f64 * f64::from(report.mss) * BITS;
        PyReport {
            time_s: time_s(report.now_ns),
            interval_s,
            cwnd_segments: limits.cwnd,
            ssthresh_segments: limits.ssthresh,
            pacing_rate_bit_s: limits.pacing_rate * BITS,
            in_flight_segments: report.in_flight,
            delivered_segments: delivered,
            lost_segments: report.lost.saturating_sub(since.last.lost),
            marked_segments: report.delivered_ce.saturating_sub(since.last.delivered_ce),
            delivery_rate_bit_s: if interval_s > 0.0 { payload_bits / interval_s } else { 0.0 },
            rtt_s: measured.then(|| since.rtt_sum_ns * NANOS / since.rtts as f64),
            rtt_max_s: measured.then_some(since.rtt_max_ns as f64 * NANOS),
            rtt_min_s: measured.then_some(since.rtt_min_ns as f64 * NANOS),
            min_rtt_s: seconds(report.min_rtt_ns),
            srtt_s: seconds(report.srtt_ns),
            round: report.round,
            mss_bytes: report.mss,
            state: STATES.get(report.state as usize).copied().unwrap_or("open"),
            is_window_limited: report.is_window_limited != 0,
        }
    }
}

/// The states of a sender, by their numbers.
const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
const _: () = assert!(State::Loss as usize + 1 == STATES.len());

fn seconds(nanos: u64) -> f64 {
    nanos as f64 * NANOS
}

/// The simulated time of a time on a governor's clock.
fn time_s(now_ns: u64) -> f64 {
    seconds(now_ns - elephan_cc::governor::clock(elephan_units::Time::ZERO))
}

impl Governor for Controller {
    fn governs_recovery(&self) -> bool {
        self.shared.governs_recovery
    }

    fn start(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        let first = self.report(limits, report);
        self.ask("on_start", first, limits)
    }

    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        if limits.cwnd < limits.ssthresh {
            limits.cwnd = (limits.cwnd + report.growth).min(limits.ssthresh);
        }
        let since = &mut self.since;
        if let Ok(rtt) = u64::try_from(report.rtt_ns) {
            let is_first = since.rtts == 0;
            since.rtt_min_ns = if is_first { report.rtt_ns } else { since.rtt_min_ns.min(report.rtt_ns) };
            since.rtt_max_ns = since.rtt_max_ns.max(report.rtt_ns);
            since.rtt_sum_ns += rtt as f64;
            since.rtts += 1;
        }
        let is_due = match self.shared.interval_ns {
            Some(interval) => report.now_ns.saturating_sub(since.last.now_ns) >= interval,
            None => report.round > since.last.round,
        };
        if !is_due {
            return Ok(());
        }
        let told = self.report(limits, report);
        self.ask("on_report", told, limits)
    }

    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        let event = PyLoss {
            time_s: time_s(report.now_ns),
            cause: match cause {
                Cause::Loss => "loss",
                Cause::Ecn => "mark",
                Cause::Timeout => "timeout",
            },
            cwnd_segments: limits.cwnd,
            ssthresh_segments: limits.ssthresh,
            in_flight_segments: report.in_flight,
            min_rtt_s: seconds(report.min_rtt_ns),
            srtt_s: seconds(report.srtt_ns),
        };
        self.ask("on_loss", event, limits)
    }

    fn fresh(&self, seed: u64) -> Box<dyn Governor> {
        Box::new(Self::new(Arc::clone(&self.shared), seed))
    }

    fn boxed(&self) -> Box<dyn Governor> {
        let copied = Python::attach(|py| {
            let instance = self.instance.as_ref()?.bind(py);
            let copy = py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (instance,)));
            // One that cannot be copied starts again.
            copy.ok().map(Bound::unbind)
        });
        let since = self.since.clone();
        Box::new(Self { shared: Arc::clone(&self.shared), seed: self.seed, instance: copied, since })
    }
}

/// Exceptions of controllers, by the text of the fault that stands for each. No code of Python runs while it is locked: a thread that waits for the
/// lock has the interpreter.
static RAISED: Mutex<BTreeMap<String, PyErr>> = Mutex::new(BTreeMap::new());

/// The exception of a run whose algorithm failed with this fault. Its cause is what a controller raised.
pub fn failed(message: String, fault: &str) -> PyErr {
    Python::attach(|py| {
        // Other runs that failed at the same time have ended, too.
        let mut all = std::mem::take(&mut *RAISED.lock().unwrap_or_else(PoisonError::into_inner));
        let cause = all.remove(fault);
        let failed = AlgorithmError::new_err(message);
        failed.set_cause(py, cause);
        failed
    })
}

/// Registers a subclass of `elephan.cc.Controller` under `name`. `parameters` has of each its name, meaning, default and range.
#[pyfunction]
#[pyo3(signature = (name, class_, title, source, parameters, interval_s, governs_recovery))]
pub fn register_class(
    name: &str,
    class_: Py<PyAny>,
    title: String,
    source: String,
    parameters: Vec<(String, String, f64, f64, f64)>,
    interval_s: Option<f64>,
    governs_recovery: bool,
) {
    let parameter = |(name, meaning, default, low, high): (String, String, f64, f64, f64)| Parameter {
        name: name.into(),
        meaning: meaning.into(),
        unit: "".into(),
        default: json!(default),
        range: Range::Number { low, high, above: false },
    };
    let parameters: Vec<Parameter> = parameters.into_iter().map(parameter).collect();
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.to_string()).collect();
    let short = registered::short(name);
    let interval_ns = interval_s.map(|seconds| (seconds / NANOS) as u64);
    registered::register(name, Description { title, source, parameters }, move |values| {
        let shared = Shared {
            class: Python::attach(|py| class_.clone_ref(py)),
            name: short.clone(),
            keywords: names.iter().cloned().zip(values.iter().copied()).collect(),
            interval_ns,
            governs_recovery,
        };
        AnyAlgorithm::Governor(Box::new(Controller::new(Arc::new(shared), 0)))
    });
}

/// Registers an object under a name.
fn register_opened(name: &str, object: Result<Object, Mistake>) -> PyResult<()> {
    let object = object.map_err(bad)?;
    registered::register(name, object.description().clone(), move |values| object.build(values));
    Ok(())
}

/// Registers the algorithm of a shared object, which has the C interface, under `name`. Its code is loaded. Raises `ScenarioError`
/// for another file, and for another version of the interface.
#[pyfunction]
pub fn register_object(name: &str, path: PathBuf) -> PyResult<()> {
    register_opened(name, Object::open(&path))
}

/// Registers the algorithm whose table of functions is at an address of this process under `name`. The table must stay. Raises
/// `ScenarioError` where there is no such table.
#[pyfunction]
#[expect(unsafe_code, reason = "the caller has the table")]
pub fn register_table(name: &str, address: usize) -> PyResult<()> {
    // SAFETY: `elephan.foreign.controllers`, the only caller, keeps the table and what it refers to.
    register_opened(name, unsafe { Object::at(address) })
}

/// Makes known that the running kernel has an algorithm called `name`, with `linux:`, which Elephan does not list.
#[pyfunction]
pub fn add_linux_name(name: &str) {
    linux::add(name);
}

/// The description of the algorithm from outside that is registered under `name`, as JSON; None if there is none.
#[pyfunction]
#[pyo3(name = "registered")]
pub fn described(name: &str) -> Option<String> {
    registered::find(name).map(|known| Value::Object(known.describe()).to_string())
}
