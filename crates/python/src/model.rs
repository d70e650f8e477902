//! `elephan._core`'s part on theory: forwards to `elephan-model`. Its callers are `elephan.theory` and `elephan.fluid`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use elephan_metrics::{FlowSummary, LinkSummary, Summary};
use elephan_model::fluid::{Link, Network, Queue};
use elephan_model::stability::{self, LossModel};
use elephan_model::{Algorithm, Lifetime, Sample, independent, integrate, standard, tekala, utilisation};
use elephan_net::{Limit, Loss, Queue as Discipline};
use elephan_scenario::Plan;
use elephan_scenario::estimate::{MOST_MODELLED, SAME_START_S};
use elephan_traffic::Demand;
use elephan_units::entry::Value;
use elephan_units::{Rate, Time};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::ScenarioError;
use crate::watch::{Cancel, watch};

pub fn bad(message: impl ToString) -> PyErr {
    ScenarioError::new_err(message.to_string())
}

/// What `make` makes of a `cc` as a scenario gives it, in JSON: a name, or a table with `name` and parameters.
fn with_cc<T>(
    cc: &str,
    make: impl FnOnce(&str, &[(&str, Value)]) -> Result<T, elephan_model::Error>,
) -> PyResult<T> {
    let json: Json = serde_json::from_str(cc).map_err(bad)?;
    let elephan_scenario::Algorithm(cc) = elephan_scenario::Algorithm::from_json(json).map_err(bad)?;
    make(cc.name, &cc.settings()).map_err(bad)
}

/// The steady state of an algorithm. `cc` is as in a scenario, in JSON: a name, or a table with `name` and parameters. Windows are in
/// segments, `rtt` in s, `loss` is a probability for each packet. Raises `ScenarioError` where the algorithm has no model.
#[pyclass(frozen)]
pub struct Model(Algorithm);

#[pymethods]
impl Model {
    #[new]
    fn new(cc: &str) -> PyResult<Self> {
        with_cc(cc, Algorithm::new).map(Self)
    }
    /// Mean window at a loss rate, in segments, as the source prints it; none where no source does.
    fn published(&self, loss: f64, rtt: f64) -> Option<f64> {
        self.0.published(loss, rtt)
    }
    /// Mean window in segments under one loss in `1/loss` packets.
    fn window(&self, loss: f64, rtt: f64) -> f64 {
        self.0.window(loss, rtt)
    }
    /// Window in segments at which the sawtooth under one loss in `1/loss` packets loses.
    fn peak(&self, loss: f64, rtt: f64) -> f64 {
        self.0.peak(loss, rtt)
    }
    /// The loss rate that supports a mean window.
    fn loss(&self, window: f64, rtt: f64) -> f64 {
        self.0.loss(window, rtt)
    }
    /// Fraction of a window that a loss leaves.
    fn beta(&self, window: f64) -> f64 {
        self.0.beta(window)
    }
    /// Increase in segments for each round trip at a mean window.
    fn increase(&self, window: f64, rtt: f64) -> f64 {
        self.0.increase(window, rtt)
    }
    /// Round trips until a flow that lost at `window` is back there.
    fn recovery(&self, window: f64, rtt: f64) -> f64 {
        self.0.recovery(window, rtt)
    }
    /// Round trips from `window` to twice that, when capacity has come free.
    fn doubling(&self, window: f64, rtt: f64) -> f64 {
        self.0.doubling(window, rtt)
    }
    /// Round trips from `window` to half of that under a loss in each round trip.
    fn halving(&self, window: f64) -> f64 {
        self.0.halving(window)
    }
    /// Coefficient of variation of the rate under independent losses of small probability.
    fn variation(&self, window: f64, rtt: f64) -> f64 {
        self.0.variation(window, rtt)
    }
    /// Coefficient of variation of the window over one periodic sawtooth.
    fn sawtooth_variation(&self, window: f64) -> f64 {
        self.0.sawtooth_variation(window)
    }
    /// Exponents of the response function and of the ratio of rates by round-trip time. They are `d` and `e` of `w = c
    /// rtt^e / loss^d`, and the exponents with independent and with synchronised losses.
    fn rtt_unfairness(&self, loss: f64, rtt: f64) -> (f64, f64, f64, f64) {
        let it = self.0.rtt_unfairness(loss, rtt);
        (it.loss_exponent, it.rtt_exponent, it.independent, it.synchronised)
    }
    /// Layered TCP's layer `k`; none for other algorithms. It has its step and its first window in segments, how many times
    /// faster than Standard TCP it claims bandwidth and recovers, and the loss rate that supports it.
    fn layer(&self, k: u32) -> Option<(f64, f64, f64, f64, f64)> {
        let Algorithm::Ltcp(it) = &self.0 else { return None };
        let layer = it.numbered(k);
        let (claiming, loss) = (it.claiming_speed_up(k), it.supporting_loss(k));
        Some((layer.step, layer.from, claiming, it.recovery_speed_up(k), loss))
    }
}

/// Mean window in segments of an algorithm under independent losses. `cc` is in JSON, `rtt` in s. None for FAST, which
/// lives by its queue. Raises `ScenarioError` where the algorithm has no model.
#[pyfunction]
fn independent_window(py: Python<'_>, cc: &str, loss: f64, rtt: f64) -> PyResult<Option<f64>> {
    let cancel = Cancel::default();
    let work = |name: &str, settings: &[(&str, Value)]| {
        if let Algorithm::Fast(_) = Algorithm::new(name, settings)? {
            return Ok(None);
        }
        let rule = independent::rule(name, settings);
        let steady = independent::steady(&rule, loss, rtt, rtt, &|| cancel.is_set())?;
        Ok(Some(steady.window))
    };
    watch(py, &cancel, |_| Ok(()), || with_cc(cc, work))?
}

/// A class of flows for `fluid`: `cc` as JSON, how many, round-trip time, start and stop in s, first window and `ssthresh` in segments.
type FluidClass = (String, f64, f64, f64, Option<f64>, f64, f64);

/// Integrates windows and queue as differential equations, sampled every `interval` s. `rate` is in packets/s and `buffer` in packets;
/// `queue` is `droptail`, `red` or `power`. `classes` are `(cc as JSON, flows, rtt, start, stop, window, ssthresh)` in s and segments;
/// `red` is `(min, max, max_p, weight, gentle, wait)` with thresholds in packets. `progress` is called every 50 ms with the share that is
/// done.
///
/// For each sample the windows (segments), round-trip times (s) and losses so far of all classes; the queue (packets), what is
/// offered (packets/s) and the probability of a loss. Raises `ScenarioError` for another queue, or an algorithm without a model.
#[pyfunction]
#[pyo3(signature = (rate, buffer, queue, classes, duration, interval, random_loss=0.0, red=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
fn fluid(
    py: Python<'_>,
    rate: f64,
    buffer: f64,
    queue: &str,
    classes: Vec<FluidClass>,
    duration: f64,
    interval: f64,
    random_loss: f64,
    red: Option<(f64, f64, f64, f64, bool, bool)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<FluidSample>> {
    let queue = match (queue, red) {
        ("droptail", None) => Queue::DropTail,
        ("power", None) => Queue::Power,
        ("red", Some((min, max, max_p, weight, gentle, wait))) => {
            Queue::Red { min, max, max_p, weight, gentle, wait }
        }
        _ => return Err(bad(format!("queue: expected droptail, red or power, found {queue:?}"))),
    };
    let mut network = Network::new(Link { rate, buffer, queue, random_loss });
    let cancel = Cancel::default();
    let done = AtomicU64::new(0);
    let work = || {
        let mut lifetimes = Vec::new();
        for (cc, flows, rtt, start, stop, window, ssthresh) in classes {
            let is_cancelled = || cancel.is_set();
            with_cc(&cc, |name, settings| network.add(name, settings, flows, rtt, &is_cancelled))?;
            lifetimes.push(Lifetime { start, stop, window, ssthresh });
        }
        let goes_on = |share: f64| {
            done.store((share * 1e6) as u64, Ordering::Relaxed);
            !cancel.is_set()
        };
        integrate(&network, &lifetimes, duration, interval, &goes_on).map_err(bad)
    };
    let tell = |py: Python<'_>| match &progress {
        None => Ok(()),
        Some(progress) => progress.call1(py, (done.load(Ordering::Relaxed) as f64 * 1e-6,)).map(drop),
    };
    let samples = watch(py, &cancel, tell, work)??;
    let fields = |it: Sample| (it.windows, it.rtts, it.losses, it.queue, it.offered, it.loss);
    Ok(samples.into_iter().map(fields).collect())
}

/// Windows, round-trip times and losses of all classes, the queue, what is offered, and the probability of a loss.
type FluidSample = (Vec<f64>, Vec<f64>, Vec<f64>, f64, f64, f64);

/// A class, from its first flow, how many they are, and the sum of their starts in s.
fn describe(plan: &Plan, &(first, count, starts): &(usize, u64, f64)) -> Json {
    let flow = &plan.flows[first];
    json!({
        "label": flow.label,
        "cc": flow.cc.table(),
        "flows": count,
        "rtt_s": flow.rtt.secs_f64(),
        "start_s": starts / count as f64,
        "stop_s": flow.stop.map(Time::secs_f64),
        "initial_window": flow.tcp.initial_window,
        "initial_ssthresh": flow.tcp.initial_ssthresh,
    })
}

/// What the fluid model needs of a plan: numbers in s, bit/s and packets.
///
/// # Errors
/// `ScenarioError` where it has more than one bottleneck, or traffic that is no bulk transfer.
pub fn fluid_plan(plan: &Plan) -> PyResult<Json> {
    let refuse = |key: &str, expected: &str, found: &str| {
        bad(format!("scenario: {key}: engine \"model\": expected {expected}, found {found}"))
    };
    let replayed = plan.replays.iter().map(|replay| replay.link as usize);
    let scheduled = plan.links.iter().position(|link| link.config.schedule.is_some());
    if let Some(link) = replayed.chain(scheduled).min() {
        let name = plan.links[link].name.as_str();
        let key = match name {
            "bottleneck" => "path.trace",
            "bottleneck.reverse" => "path.reverse.trace",
            _ => "link.trace",
        };
        return Err(refuse(key, "links that do not change", &format!("a trace of {name}")));
    }
    let bottleneck = &plan.links[plan.bottleneck as usize];
    let Some(rate) = bottleneck.config.rate else {
        return Err(refuse("path.rate", "a bottleneck with a rate", "none"));
    };
    // Flows that are alike are one class: each flow's class, and of each class its first flow, how many, and the sum of starts.
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut classes: Vec<(usize, u64, f64)> = Vec::new();
    let mut members = Vec::with_capacity(plan.flows.len());
    for (number, flow) in plan.flows.iter().enumerate() {
        let key = format!("flow.{number}");
        if flow.demand != Demand::Unlimited {
            return Err(refuse(&key, "data without end", "transfers"));
        }
        let route = &plan.routes[flow.forward as usize];
        if !route.contains(&plan.bottleneck) {
            return Err(refuse(&key, "data across the bottleneck", "another way"));
        }
        if let Some(slower) = route
            .iter()
            .map(|&link| &plan.links[link as usize])
            .find(|link| link.name != bottleneck.name && link.config.rate.is_some_and(|other| other <= rate))
        {
            return Err(refuse(&key, "a single bottleneck", &format!("link {} too", slower.name)));
        }
        let start = flow.start.draw(plan.seed, number as u64).secs_f64();
        let kind = format!(
            "{:?} {:?} {:?} {} {:?}",
            flow.cc,
            flow.rtt,
            flow.stop,
            (start / SAME_START_S) as u64,
            flow.tcp.initial_ssthresh
        );
        let class = *found.entry(kind).or_insert_with(|| {
            classes.push((number, 0, 0.0));
            classes.len() - 1
        });
        classes[class].1 += 1;
        classes[class].2 += start;
        members.push(class);
    }
    let classes: Vec<Json> = classes.iter().map(|class| describe(plan, class)).collect();
    let packet = plan.flows.first().map_or(1500, |flow| flow.tcp.packet.get());
    if plan.flows.iter().any(|flow| flow.tcp.packet.get() != packet) {
        return Err(refuse("tcp.packet", "one size for all flows", "several"));
    }
    let random_loss = match bottleneck.config.loss {
        None => 0.0,
        Some(Loss::Random { probability }) => probability,
        Some(Loss::Periodic { every }) => 1.0 / every as f64,
        Some(Loss::GilbertElliott { .. }) => {
            return Err(refuse("path.loss", "random or periodic losses", "gilbert-elliott"));
        }
    };
    let buffer = match bottleneck.config.limit {
        Limit::Packets(packets) => packets as f64,
        Limit::Bytes(bytes) => (bytes / packet) as f64,
    };
    let packets_per_second = rate.bits_per_sec() as f64 / (8.0 * packet as f64);
    let red = match &bottleneck.config.queue {
        Discipline::DropTail(_) => None,
        Discipline::Red(red) => {
            let (min, max, weight) = red.settled(packets_per_second);
            Some((min, max, red.max_p, weight, red.gentle, red.wait))
        }
        other => return Err(refuse("path.queue", "droptail or red", other.name())),
    };
    Ok(json!({
        "link": bottleneck.name,
        "rate_bit_s": rate.bits_per_sec(),
        "buffer_packets": buffer,
        "queue": bottleneck.config.queue.name(),
        // Minimum, maximum, max_p, weight, gentle and wait, as `fluid` takes them.
        "red": red,
        "random_loss": random_loss,
        "packet_bytes": packet,
        "mss_bytes": plan.flows.first().map_or(1460, |flow| flow.tcp.mss()),
        "classes": classes,
        // The class of each flow; empty where there are too many flows to list.
        "members": if members.len() <= MOST_MODELLED { members } else { Vec::new() },
        "duration_s": plan.duration.secs_f64(),
        "from_s": plan.measure.from.secs_f64(),
        "to_s": plan.measure.to.secs_f64(),
        "interval_s": plan.measure.interval.secs_f64(),
        "trace_s": plan.trace.interval.secs_f64(),
    }))
}

/// A summary in which nothing has happened, with one flow and one link, as JSON: what engines outside Rust fill in.
#[pyfunction]
fn empty_summary() -> String {
    let summary = Summary {
        flows: vec![FlowSummary::default()],
        links: vec![LinkSummary::default()],
        ..Summary::default()
    };
    serde_json::to_string(&summary).expect("a summary is always JSON")
}

/// Throughput of Standard TCP with timeouts, in bit/s (Li 2006, equation 5.7). `rtt` and the retransmission timeout `rto` are in s;
/// `per_ack` is the segments that an ACK acknowledges.
#[pyfunction]
fn pftk_bit_s(loss: f64, rtt: f64, rto: f64, segment_bytes: f64, per_ack: f64) -> f64 {
    standard::pftk_bit_s(loss, rtt, rto, segment_bytes, per_ack)
}

/// Utilisation by one flow (Li 2006, equation 5.6). It keeps the fraction `beta` at a loss; the buffer is `gamma`
/// bandwidth-delay products.
#[pyfunction]
fn utilisation_of(beta: f64, gamma: f64) -> f64 {
    utilisation::of(beta, gamma)
}

/// Kelly's condition for the stability of Scalable TCP at a link: load, loss, limit of `a`, and whether it holds. `rtt` is in s, `rate`
/// in packets/s, `buffer` in packets; `model` is `power`, `mm1b` or `excess`. Raises `ScenarioError` for another.
#[pyfunction]
fn scalable_stability(
    a: f64,
    b: f64,
    flows: f64,
    rtt: f64,
    rate: f64,
    buffer: f64,
    model: &str,
) -> PyResult<(f64, f64, f64, bool)> {
    let model = match model {
        "power" => LossModel::Power { buffer },
        "mm1b" => LossModel::Mm1b { buffer },
        "excess" => LossModel::Excess,
        _ => return Err(bad(format!("--queue: expected power, mm1b or excess, found {model:?}"))),
    };
    let margin = stability::at_link(a, b, flows, rtt, rate, model);
    Ok((margin.load, margin.loss, margin.limit, margin.stable))
}

/// Scalable TCP's window in segments at each of `times`, alone on a link. By Tekala and Szabo 2006, equations 6 to 12.
/// Times and `rtt` are in s, `mu` in packets/s, `buffer` in packets, `ssthresh` in segments.
#[pyfunction]
fn tekala_window(
    times: Vec<f64>,
    alpha: f64,
    beta: f64,
    mu: f64,
    rtt: f64,
    buffer: f64,
    ssthresh: f64,
) -> Vec<f64> {
    let path = tekala::Path { alpha, beta, mu, rtt, buffer, ssthresh };
    times.into_iter().map(|t| path.window(t)).collect()
}

/// Scalable TCP's throughput under random loss `q`, in packets/s. The first is by Tekala and Szabo 2006, equation 24, the
/// second with independent losses. `rtt` and the queueing `delay` are in s.
#[pyfunction]
fn tekala_random_rate(alpha: f64, beta: f64, q: f64, rtt: f64, delay: f64) -> (f64, f64) {
    let independent = tekala::random_rate_independent(alpha, beta, q, rtt + delay);
    (tekala::random_rate(alpha, beta, q, rtt, delay), independent)
}

/// Seconds in a time such as "82 ms". Raises `ScenarioError` where the text is no time.
#[pyfunction]
fn seconds(text: &str) -> PyResult<f64> {
    text.parse::<Time>().map(Time::secs_f64).map_err(bad)
}

/// Bits per second in a rate such as "250 Mbit/s". Raises `ScenarioError` where the text is no rate.
#[pyfunction]
fn bits_per_second(text: &str) -> PyResult<f64> {
    text.parse::<Rate>().map(|rate| rate.bits_per_sec() as f64).map_err(bad)
}

/// Adds this part to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Model>()?;
    for function in [
        wrap_pyfunction!(fluid, module)?,
        wrap_pyfunction!(empty_summary, module)?,
        wrap_pyfunction!(independent_window, module)?,
        wrap_pyfunction!(pftk_bit_s, module)?,
        wrap_pyfunction!(utilisation_of, module)?,
        wrap_pyfunction!(scalable_stability, module)?,
        wrap_pyfunction!(tekala_window, module)?,
        wrap_pyfunction!(tekala_random_rate, module)?,
        wrap_pyfunction!(seconds, module)?,
        wrap_pyfunction!(bits_per_second, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
