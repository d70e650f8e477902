//! Measurements of a path between two hosts.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elephan_probe::{
    Arrivals, Client, Error, Event, HEADER_BYTES, Limits, NearHost, PORT, Sample, Server, Stream, Tcp,
    VirtualClient, Wire,
};
use elephan_session::Error as SessionError;
use elephan_sys::{Record, Recorded};
use elephan_units::Time;
use numpy::PyArray1;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::transfer::tables;
use crate::ScenarioError;
use crate::scenario::Scenario;
use crate::watch::{Cancel, watch};

fn failed(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Session(SessionError::Token(_) | SessionError::WrongToken) | Error::Wrong(_) => {
            ScenarioError::new_err(text)
        }
        // A test that cannot be made; others can.
        Error::Refused(_) | Error::Budget { .. } => PyPermissionError::new_err(text),
        Error::Cancelled => PyKeyboardInterrupt::new_err(text),
        Error::Session(_) | Error::System(..) => PyOSError::new_err(text),
    }
}

fn limits(bytes: u64, seconds: f64, rate: Option<u64>) -> Limits {
    // A float becomes the nearest integer of the type.
    Limits { bytes, millis: (seconds * 1e3) as u64, rate: rate.unwrap_or(u64::MAX) }
}

fn address(host: &str) -> PyResult<IpAddr> {
    host.parse()
        .map_err(|_| ScenarioError::new_err(format!("host: expected an IP address, found \"{host}\"")))
}

/// A session with `elephan probe server`: it asks for one test after the other, and keeps to what was agreed on.
///
/// `host` is an IP address. The session costs at most `max_bytes` of IP packets in both directions together, lasts at most
/// `max_seconds`, and sends at no more than `max_rate` (bit/s). Raises `ScenarioError` for a wrong token, `PermissionError` where the
/// server refuses, `OSError` for all else.
#[pyclass(frozen)]
pub struct ProbeClient(Session<Client>);

/// A client until its session ends.
struct Session<C>(Mutex<Option<C>>);

impl<C: Send> Session<C> {
    fn new(client: C) -> Self {
        Self(Mutex::new(Some(client)))
    }

    fn client(&self) -> MutexGuard<'_, Option<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&C) -> T) -> PyResult<T> {
        self.client().as_ref().map(work).ok_or_else(ended)
    }

    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut C, &(dyn Fn() -> bool + Sync)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let cancel = Cancel::default();
        watch(
            py,
            &cancel,
            |_| Ok(()),
            || match self.client().as_mut() {
                Some(client) => work(client, &|| cancel.is_set()).map_err(failed),
                None => Err(ended()),
            },
        )?
    }
}

fn ended() -> PyErr {
    ScenarioError::new_err("probe: expected a session, found that it has ended")
}

/// The methods that a session has over sockets and in virtual time, after those that it has of its own.
macro_rules! session {
    ($session:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $session {
            $($own)*

            /// What was agreed on: bytes, seconds, and rate in bit/s (none: no limit).
            fn limits(&self) -> PyResult<(u64, f64, Option<u64>)> {
                let Limits { bytes, millis, rate } = self.0.with(Client::limits)?;
                Ok((bytes, millis as f64 * 1e-3, (rate < u64::MAX).then_some(rate)))
            }

            /// The server's host: name, kernel, and the congestion control that it permits.
            fn host(&self) -> PyResult<(String, String, Vec<String>)> {
                self.0.with(|client| {
                    let (name, kernel, algorithms) = client.host();
                    (name.to_owned(), kernel.to_owned(), algorithms.to_vec())
                })
            }

            /// Whether packets have the headers of IPv6.
            fn is_v6(&self) -> PyResult<bool> {
                self.0.with(Client::is_v6)
            }

            /// Bytes of IP packets so far, in both directions together, at most.
            fn spent(&self) -> PyResult<u64> {
                self.0.with(Client::spent)
            }

            /// Seconds since the session began.
            fn elapsed(&self) -> PyResult<f64> {
                self.0.with(|client| client.elapsed().as_secs_f64())
            }

            /// Sends datagrams on a schedule, which the server perhaps echoes.
            ///
            /// They have these sizes (bytes of IP packets), and each is due at an offset from the first (ns). Waits up to `linger` seconds
            /// for the last. Returns a dict: `sent_ns` for each; `arrived`, `arrived_ns`, `echoed_ns`: sequence numbers and times at the
            /// server; `back`, `back_ns`: those of echoes here; `stamped`: whether the kernel gave the times of departure; `overflowed`,
            /// `overflowed_back`: datagrams that the sockets dropped; `bytes` of IP packets. Times are ns since 1970 on the clock of their
            /// host; zero means that it did not happen.
            #[pyo3(signature = (sizes, due_ns, echo=false, linger=0.2))]
            fn stream<'py>(
                &self,
                py: Python<'py>,
                sizes: Vec<u32>,
                due_ns: Vec<u64>,
                echo: bool,
                linger: f64,
            ) -> PyResult<Bound<'py, PyDict>> {
                let linger = Duration::try_from_secs_f64(linger).unwrap_or_default();
                let seen = self.0.work(py, |client, stop| client.stream(&sizes, &due_ns, echo, linger, stop))?;
                columns(py, seen)
            }

            /// Ends the session.
            fn finish(&self) -> PyResult<()> {
                self.0.client().take().map_or(Ok(()), |client| client.finish().map_err(failed))
            }
        }
    };
}

/// What was seen of a stream, as Python gets it.
fn columns(py: Python<'_>, seen: Stream) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    let Arrivals { sequence, at_ns, echoed_ns, overflowed } = seen.arrived;
    result.set_item("sent_ns", PyArray1::from_vec(py, seen.sent_ns))?;
    result.set_item("stamped", seen.stamped)?;
    result.set_item("arrived", PyArray1::from_vec(py, sequence))?;
    result.set_item("arrived_ns", PyArray1::from_vec(py, at_ns))?;
    result.set_item("echoed_ns", PyArray1::from_vec(py, echoed_ns))?;
    result.set_item("overflowed", overflowed)?;
    result.set_item("back", PyArray1::from_vec(py, seen.echoes.sequence))?;
    result.set_item("back_ns", PyArray1::from_vec(py, seen.echoes.at_ns))?;
    result.set_item("overflowed_back", seen.echoes.overflowed)?;
    result.set_item("bytes", seen.bytes)?;
    Ok(result)
}

session! { ProbeClient {
    #[new]
    #[pyo3(signature = (host, port, token, max_bytes, max_seconds, max_rate=None))]
    fn new(
        py: Python<'_>,
        host: &str,
        port: u16,
        token: &str,
        max_bytes: u64,
        max_seconds: f64,
        max_rate: Option<u64>,
    ) -> PyResult<Self> {
        let to = SocketAddr::new(address(host)?, port);
        let token = token.parse().map_err(|error: SessionError| failed(error.into()))?;
        let wanted = limits(max_bytes, max_seconds, max_rate);
        let client = watch(py, &Cancel::default(), |_| Ok(()), || Client::connect(to, &token, wanted))?;
        Ok(Self(Session::new(client.map_err(failed)?)))
    }

    /// Sends by TCP, or receives if `down`, for so many seconds, and at most so many bytes of IP packets.
    ///
    /// Returns a dict: `tables`, the tables of a run from the sender's `TCP_INFO` each 100 ms (none if it was too short for any), as
    /// `transfer_send` returns them; `received_ns` and `received`, what the receiver had received; `bytes` of IP packets.
    fn tcp<'py>(
        &self,
        py: Python<'py>,
        cc: String,
        down: bool,
        seconds: f64,
        max_bytes: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let test = Tcp { cc, down, duration, bytes: max_bytes };
        let (sender, receiver) = self.0.work(py, |client, stop| client.tcp(&test, stop))?;
        let result = PyDict::new(py);
        match recorded(&sender.samples) {
            Some(recorded) => result.set_item("tables", tables(py, recorded)?)?,
            None => result.set_item("tables", py.None())?,
        }
        let (at, received): (Vec<u64>, Vec<u64>) = receiver.received.into_iter().unzip();
        result.set_item("received_ns", PyArray1::from_vec(py, at))?;
        result.set_item("received", PyArray1::from_vec(py, received))?;
        result.set_item("bytes", sender.wire_bytes.max(receiver.wire_bytes))?;
        Ok(result)
    }
} }

/// A session as `ProbeClient` has it, in virtual time, over the links of a scenario.
///
/// Nothing waits, and the seed of the scenario decides all that is random. `host_rate` (bit/s) is that at which the near host sends,
/// and `mtu` the longest packet that its device takes, in bytes; longer ones than `path_mtu` vanish on the path. The near host stands
/// still at each of `stalls`: since the beginning, and for how long (s). The clock of the far host gains `drift_ppm` on its own.
/// Raises as `ProbeClient`.
#[pyclass(frozen)]
pub struct VirtualProbe(Session<VirtualClient>);

session! { VirtualProbe {
    #[new]
    #[pyo3(signature = (
        scenario, max_bytes, max_seconds, max_rate=None, *, host_rate=None, mtu=1500, path_mtu=None, stalls=Vec::new(), drift_ppm=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of Python")]
    fn new(
        py: Python<'_>,
        scenario: Py<Scenario>,
        max_bytes: u64,
        max_seconds: f64,
        max_rate: Option<u64>,
        host_rate: Option<u64>,
        mtu: u32,
        path_mtu: Option<u32>,
        stalls: Vec<(f64, f64)>,
        drift_ppm: i32,
    ) -> PyResult<Self> {
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let near = NearHost {
            rate: host_rate.unwrap_or(u64::MAX),
            mtu,
            path_mtu: path_mtu.unwrap_or(u32::MAX),
            stalls: stalls.into_iter().map(|(at, lasting)| (seconds(at), seconds(lasting))).collect(),
            drift_ppm,
        };
        let wanted = limits(max_bytes, max_seconds, max_rate);
        let plan = scenario.get().plan(py)?;
        Ok(Self(Session::new(VirtualClient::over(plan, near, wanted, wanted).map_err(failed)?)))
    }

    /// Lets virtual time pass.
    fn sleep(&self, seconds: f64) -> PyResult<()> {
        let lasting = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.0.with(|client| client.wire().sleep(lasting))
    }

    /// Is refused: there is no TCP in this virtual time.
    #[expect(unused_variables, reason = "the arguments of `ProbeClient.tcp`")]
    fn tcp(&self, cc: &str, down: bool, seconds: f64, max_bytes: u64) -> PyResult<()> {
        self.0.with(|_| ())?;
        Err(PyPermissionError::new_err("TCP: expected a path in real time, found one in virtual time"))
    }
} }

/// The tables of a run of one flow, from the sender's samples; none if there are fewer than two.
fn recorded(samples: &[Sample]) -> Option<Recorded> {
    let (first, last) = (samples.first()?, samples.last()?);
    let since = |sample: &Sample| Time::from_micros(sample.at_ns.saturating_sub(first.at_ns) / 1000);
    let mut record = Record::of_streams(1);
    for sample in samples {
        record.look(since(sample), [(0, sample.info)]);
    }
    (since(last) > Time::ZERO).then(|| record.finish(since(last), [(0, last.info)]))
}

/// A server that clients measure the path to; `bind` is an IP address (none: all addresses), and port 0 any port.
///
/// A session costs at most `max_bytes` and `max_seconds`, and sends at most at `max_rate` (bit/s); `clients` may have one at a time.
/// Raises `OSError` if it cannot listen.
#[pyclass(frozen)]
pub struct ProbeServer(Server);

#[pymethods]
impl ProbeServer {
    #[new]
    #[pyo3(signature = (bind, port, max_bytes, max_seconds, max_rate=None, clients=1))]
    fn new(
        bind: Option<&str>,
        port: u16,
        max_bytes: u64,
        max_seconds: f64,
        max_rate: Option<u64>,
        clients: usize,
    ) -> PyResult<Self> {
        let at = bind.map(address).transpose()?;
        let server = Server::bind(at, port, limits(max_bytes, max_seconds, max_rate), clients);
        Ok(Self(server.map_err(failed)?))
    }

    /// What a client needs to be admitted.
    fn token(&self) -> String {
        self.0.token().to_string()
    }

    /// The port, of TCP and UDP.
    fn port(&self) -> PyResult<u16> {
        self.0.port().map_err(failed)
    }

    /// Serves until Ctrl-C. `tell` gets a line for each thing that happens.
    fn run(&self, py: Python<'_>, tell: Py<PyAny>) -> PyResult<()> {
        let cancel = Cancel::default();
        let lines = Mutex::new(Vec::new());
        let taken = || std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
        let listen =
            |py: Python<'_>| taken().into_iter().try_for_each(|line| tell.call1(py, (line,)).map(drop));
        let hear = |event| lines.lock().unwrap_or_else(PoisonError::into_inner).push(line(&event));
        watch(py, &cancel, listen, || self.0.run(&|| cancel.is_set(), &hear))?.map_err(failed)
    }
}

fn line(event: &Event) -> String {
    match event {
        Event::Admitted(from, limits) => {
            let rate =
                if limits.rate < u64::MAX { format!(", {} bit/s", limits.rate) } else { String::new() };
            format!(
                "{from}: admitted, for at most {} bytes, {} s{rate}",
                limits.bytes,
                limits.millis as f64 * 1e-3
            )
        }
        Event::Left(from, bytes) => format!("{from}: left after {bytes} bytes"),
        Event::Refused(from, why) => format!("{from}: refused: {why}"),
    }
}

/// Adds what is in this file.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ProbeClient>()?;
    module.add_class::<ProbeServer>()?;
    module.add_class::<VirtualProbe>()?;
    module.add("PROBE_PORT", PORT)?;
    module.add("PROBE_HEADER", HEADER_BYTES)
}
