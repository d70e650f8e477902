//! `elephan._core`'s part on theory: forwards to `elephan-model`. Its callers are `elephan.theory` and `elephan.fluid`.

use std::collections::BTreeMap;

use elephan_cc::slow_start;
use elephan_metrics::{FlowSummary, LinkSummary, Summary};
use elephan_model::fluid::{Link, Network, Queue};
use elephan_model::rounds::{Path, Sample, transfer};
use elephan_model::stability::{self, LossModel};
use elephan_model::{Algorithm, Lifetime, independent, integrate, standard, tekala, utilisation};
use elephan_units::entry::Value;
use elephan_units::{Rate, Time};
use pyo3::prelude::*;

use crate::watch::{Cancel, Runs, interruptible};
use crate::{bad, to_json};

/// What `make` makes of a `cc` as a scenario gives it, in JSON: a name, or a table with `name` and parameters.
fn with_cc<T>(
    cc: &str,
    make: impl FnOnce(&str, &[(&str, Value)]) -> Result<T, elephan_model::Error>,
) -> PyResult<T> {
    let json = serde_json::from_str(cc).map_err(bad)?;
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
pub fn independent_window(py: Python<'_>, cc: &str, loss: f64, rtt: f64) -> PyResult<Option<f64>> {
    let work = |cancel: &Cancel, name: &str, settings: &[(&str, Value)]| {
        if let Algorithm::Fast(_) = Algorithm::new(name, settings)? {
            return Ok(None);
        }
        let rule = independent::rule(name, settings);
        let steady = independent::steady(&rule, loss, rtt, rtt, &|| cancel.is_set())?;
        Ok(Some(steady.window))
    };
    interruptible(py, |cancel| with_cc(cc, |name, settings| work(cancel, name, settings)))?
}

/// Flows for `rounds`: their `cc` in JSON, the name of their slow start, and how many there are.
type RoundsFlows = (String, String, usize);

/// What `rounds` returns: when all was delivered in s, what was lost of it, and the samples.
type RoundsCourse = (Option<f64>, f64, Vec<[f64; 6]>);

/// A transfer of so many `packets` by the first of `flows`, together, round trip by round trip. The others send all the time. `rate` is
/// in packets/s, `rtt` in s, `buffer` in packets; `loss` is the path's probability, and with `fair` each flow has a queue of its own.
/// It is given up after `most` s.
///
/// Returns when all was delivered, in s, or none; the packets lost for each delivered; and samples over time: seconds, packets
/// of the first that were delivered, of the others, the windows of the first together, the largest of them (segments), and the round-trip time
/// of one (s). Raises `ScenarioError` for an unknown algorithm or slow start.
#[pyfunction]
#[pyo3(signature = (rate, rtt, buffer, flows, packets, most, *, loss=0.0, fair=false, seed=1))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn rounds(
    py: Python<'_>,
    rate: f64,
    rtt: f64,
    buffer: f64,
    flows: Vec<RoundsFlows>,
    packets: f64,
    most: f64,
    loss: f64,
    fair: bool,
    seed: u64,
) -> PyResult<RoundsCourse> {
    let mut all = Vec::new();
    let senders = flows.first().map_or(0, |&(_, _, count)| count);
    for (cc, start, count) in flows {
        let entry = slow_start::find(&start).ok_or_else(|| bad(format!("slow_start: found {start:?}")))?;
        let start = entry.build(&[]).map_err(bad)?;
        let rule = with_cc(&cc, |name, settings| Ok(independent::rule(name, settings)))?;
        all.extend(std::iter::repeat_n((rule, start), count));
    }
    let path = Path { rate, rtt, buffer, loss, is_fair: fair };
    let work = |cancel: &Cancel| {
        transfer(&path, &all, senders, packets, most, seed, &|| cancel.is_set()).map_err(bad)
    };
    let course = interruptible(py, work)??;
    let fields = |it: Sample| [it.time, it.delivered, it.others, it.window, it.largest, it.rtt];
    Ok((course.finish, course.lost, course.samples.into_iter().map(fields).collect()))
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
pub fn fluid(
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
    let all = Runs::new(&cancel, BTreeMap::new());
    let run = all.one();
    let work = || {
        let mut lifetimes = Vec::new();
        for (cc, flows, rtt, start, stop, window, ssthresh) in classes {
            let is_cancelled = || cancel.is_set();
            with_cc(&cc, |name, settings| network.add(name, settings, flows, rtt, &is_cancelled))?;
            lifetimes.push(Lifetime { start, stop, window, ssthresh });
        }
        integrate(&network, &lifetimes, duration, interval, &|share| run.is_at(share)).map_err(bad)
    };
    let samples = all.watch(py, progress.as_ref(), 1, work)??;
    let fields = |it: elephan_model::Sample| (it.windows, it.rtts, it.losses, it.queue, it.offered, it.loss);
    Ok(samples.into_iter().map(fields).collect())
}

/// Windows, round-trip times and losses of all classes, the queue, what is offered, and the probability of a loss.
type FluidSample = (Vec<f64>, Vec<f64>, Vec<f64>, f64, f64, f64);

/// A summary in which nothing has happened, with one flow and one link, as JSON: what engines outside Rust fill in.
#[pyfunction]
pub fn empty_summary() -> String {
    let (flows, links) = (vec![FlowSummary::default()], vec![LinkSummary::default()]);
    to_json(&Summary { flows, links, ..Summary::default() })
}

/// Throughput of Standard TCP with timeouts, in bit/s (Li 2006, equation 5.7). `rtt` and the retransmission timeout `rto` are in s;
/// `per_ack` is the segments that an ACK acknowledges.
#[pyfunction]
pub fn pftk_bit_s(loss: f64, rtt: f64, rto: f64, segment_bytes: f64, per_ack: f64) -> f64 {
    standard::pftk_bit_s(loss, rtt, rto, segment_bytes, per_ack)
}

/// Utilisation by one flow (Li 2006, equation 5.6). It keeps the fraction `beta` at a loss; the buffer is `gamma`
/// bandwidth-delay products.
#[pyfunction]
pub fn utilisation_of(beta: f64, gamma: f64) -> f64 {
    utilisation::of(beta, gamma)
}

/// Kelly's condition for the stability of Scalable TCP at a link: load, loss, limit of `a`, and whether it holds. `rtt` is in s, `rate`
/// in packets/s, `buffer` in packets; `model` is `power`, `mm1b` or `excess`. Raises `ScenarioError` for another.
#[pyfunction]
pub fn scalable_stability(
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
pub fn tekala_window(
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
pub fn tekala_random_rate(alpha: f64, beta: f64, q: f64, rtt: f64, delay: f64) -> (f64, f64) {
    let independent = tekala::random_rate_independent(alpha, beta, q, rtt + delay);
    (tekala::random_rate(alpha, beta, q, rtt, delay), independent)
}

/// Seconds in a time such as "82 ms". Raises `ScenarioError` where the text is no time.
#[pyfunction]
pub fn seconds(text: &str) -> PyResult<f64> {
    text.parse::<Time>().map(Time::secs_f64).map_err(bad)
}

/// Bits per second in a rate such as "250 Mbit/s". Raises `ScenarioError` where the text is no rate.
#[pyfunction]
pub fn bits_per_second(text: &str) -> PyResult<f64> {
    text.parse::<Rate>().map(|rate| rate.bits_per_sec() as f64).map_err(bad)
}
