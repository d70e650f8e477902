//! Measurements of a path between two hosts.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elephan_probe::{
    Client, Error, Event, Limits, NearHost, Sample, Server, Stream, Tcp, VirtualClient, Wire,
};
use elephan_session::Error as SessionError;
use elephan_sys::{Record, Recorded};
use elephan_units::Time;
use numpy::PyArray1;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::transfer::tables;
use crate::bad;
use crate::scenario::Scenario;
use crate::tables::load_numpy;
use crate::watch::{Cancel, interruptible, watch};

fn failed(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Session(SessionError::Token(_) | SessionError::WrongToken) | Error::Wrong(_) => bad(text),
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

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

fn address(host: &str) -> PyResult<IpAddr> {
    host.parse().map_err(|_| bad(format!("host: expected an IP address, found \"{host}\"")))
}

enum Session {
    Real(Client),
    Virtual(VirtualClient),
}

/// What both kinds of session can.
macro_rules! either {
    ($session:expr, $client:ident => $value:expr) => {
        match $session {
            Session::Real($client) => $value,
            Session::Virtual($client) => $value,
        }
    };
}

/// A session with `elephan path probe server`: it asks for tests in turn, and keeps to what was agreed on.
///
/// `host` is an IP address. The session costs at most `max_bytes` of IP packets in both directions together, lasts at most
/// `max_seconds`, and sends at no more than `max_rate` (bit/s). Raises `ScenarioError` for a wrong token, `PermissionError` where the
/// server refuses, `OSError` for all else.
#[pyclass(frozen, subclass)]
pub struct ProbeClient(Mutex<Option<Session>>);

impl ProbeClient {
    fn of(session: Session) -> Self {
        Self(Mutex::new(Some(session)))
    }

    fn session(&self) -> MutexGuard<'_, Option<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&Session) -> T) -> PyResult<T> {
        self.session().as_ref().map(work).ok_or_else(ended)
    }

    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Session, &(dyn Fn() -> bool + Sync)) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        load_numpy(py);
        interruptible(py, |cancel| match self.session().as_mut() {
            Some(session) => work(session, &|| cancel.is_set()).map_err(failed),
            None => Err(ended()),
        })?
    }
}

fn ended() -> PyErr {
    bad("probe: expected a session, found that it has ended")
}

#[pymethods]
impl ProbeClient {
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
        let client = interruptible(py, |_| Client::connect(to, &token, wanted))?;
        Ok(Self::of(Session::Real(client.map_err(failed)?)))
    }

    /// What was agreed on: bytes, seconds, and rate in bit/s (none: no limit).
    fn limits(&self) -> PyResult<(u64, f64, Option<u64>)> {
        let Limits { bytes, millis, rate } =
            self.with(|session| either!(session, client => client.limits()))?;
        Ok((bytes, millis as f64 * 1e-3, (rate < u64::MAX).then_some(rate)))
    }

    /// The server's host: name, kernel, and the congestion control that it permits.
    fn host(&self) -> PyResult<(String, String, Vec<String>)> {
        self.with(|session| {
            let (name, kernel, algorithms) = either!(session, client => client.host());
            (name.to_owned(), kernel.to_owned(), algorithms.to_vec())
        })
    }

    /// Whether packets have the headers of IPv6.
    fn is_v6(&self) -> PyResult<bool> {
        self.with(|session| either!(session, client => client.is_v6()))
    }

    /// Bytes of IP packets so far, in both directions together, at most.
    fn spent(&self) -> PyResult<u64> {
        self.with(|session| either!(session, client => client.spent()))
    }

    /// Seconds since the session began.
    fn elapsed(&self) -> PyResult<f64> {
        self.with(|session| either!(session, client => client.elapsed().as_secs_f64()))
    }

    /// Sends datagrams on a schedule, which the server perhaps echoes.
    ///
    /// They have these sizes (bytes of IP packets), and each is due at an offset from the first (ns). Waits up to `linger` seconds for the last. Returns a dict: `sent_ns` for each; `arrived`, `arrived_ns`, `echoed_ns`: sequence
    /// numbers and times at the server; `back`, `back_ns`: those of echoes here; `stamped`: whether the kernel gave the times of
    /// departure; `overflowed`, `overflowed_back`: datagrams that the sockets dropped; `bytes` of IP packets. Times are ns since
    /// 1970 on the clock of their host; zero means that it did not happen.
    #[pyo3(signature = (sizes, due_ns, echo=false, linger=0.2))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        sizes: Vec<u32>,
        due_ns: Vec<u64>,
        echo: bool,
        linger: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let linger = seconds(linger);
        let Stream { sent_ns, stamped, arrived, echoes, bytes } = self.work(
            py,
            |session, stop| either!(session, client => client.stream(&sizes, &due_ns, echo, linger, stop)),
        )?;
        Ok(dict! { py;
            "sent_ns" => PyArray1::from_vec(py, sent_ns),
            "stamped" => stamped,
            "arrived" => PyArray1::from_vec(py, arrived.sequence),
            "arrived_ns" => PyArray1::from_vec(py, arrived.at_ns),
            "echoed_ns" => PyArray1::from_vec(py, arrived.echoed_ns),
            "overflowed" => arrived.overflowed,
            "back" => PyArray1::from_vec(py, echoes.sequence),
            "back_ns" => PyArray1::from_vec(py, echoes.at_ns),
            "overflowed_back" => echoes.overflowed,
            "bytes" => bytes,
        })
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
        let test = Tcp { cc, down, duration: self::seconds(seconds), bytes: max_bytes };
        let (sender, receiver) = self.work(py, |session, stop| match session {
            Session::Real(client) => client.tcp(&test, stop),
            Session::Virtual(_) => {
                Err(Error::Refused("TCP: expected a path in real time, found one in virtual time".to_owned()))
            }
        })?;
        let (at, received): (Vec<u64>, Vec<u64>) = receiver.received.into_iter().unzip();
        Ok(dict! { py;
            "tables" => recorded(&sender.samples).map(|recorded| tables(py, recorded)).transpose()?,
            "received_ns" => PyArray1::from_vec(py, at),
            "received" => PyArray1::from_vec(py, received),
            "bytes" => sender.wire_bytes.max(receiver.wire_bytes),
        })
    }

    /// Ends the session.
    fn finish(&self) -> PyResult<()> {
        let session = self.session().take();
        session.map_or(Ok(()), |session| either!(session, client => client.finish()).map_err(failed))
    }
}

/// A session in virtual time, over the links of a scenario. There is no TCP in it.
///
/// Nothing waits, and the seed of the scenario decides all that is random. `host_rate` (bit/s) is that at which the near host sends,
/// and `mtu` the longest packet that its device takes, in bytes; longer ones than `path_mtu` vanish on the path. The near host stands
/// still at each of `stalls`: since the beginning, and for how long (s). The clock of the far host gains `drift_ppm` on its own.
/// Raises as `ProbeClient`.
#[pyclass(frozen, extends = ProbeClient)]
pub struct VirtualProbe;

#[pymethods]
impl VirtualProbe {
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
    ) -> PyResult<PyClassInitializer<Self>> {
        let near = NearHost {
            rate: host_rate.unwrap_or(u64::MAX),
            mtu,
            path_mtu: path_mtu.unwrap_or(u32::MAX),
            stalls: stalls.into_iter().map(|(at, lasting)| (seconds(at), seconds(lasting))).collect(),
            drift_ppm,
        };
        let wanted = limits(max_bytes, max_seconds, max_rate);
        let client = VirtualClient::over(scenario.get().plan(py)?, near, wanted, wanted).map_err(failed)?;
        Ok(PyClassInitializer::from(ProbeClient::of(Session::Virtual(client))).add_subclass(Self))
    }

    /// Lets virtual time pass.
    fn sleep(this: PyRef<'_, Self>, seconds: f64) -> PyResult<()> {
        this.as_super().with(|session| match session {
            Session::Virtual(client) => client.wire().sleep(self::seconds(seconds)),
            Session::Real(_) => {}
        })
    }
}

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
        let hear =
            |event: Event| lines.lock().unwrap_or_else(PoisonError::into_inner).push(event.to_string());
        watch(py, &cancel, listen, || self.0.run(&|| cancel.is_set(), &hear))?.map_err(failed)
    }
}
