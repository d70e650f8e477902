//! Transfers between two hosts.

use std::io::{stdin, stdout};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use data_encoding::HEXLOWER;
use elephan_session::Token;
use elephan_sys::Recorded;
use elephan_transfer::{
    Done, Error, Event, Folder, Limit, Options, PORT, Payload, Place, Progress, Receiver, Watch,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::tables::columns;
use crate::watch::{Cancel, watch};
use crate::{bad, tables_of};

impl Watch for Cancel {
    fn is_cancelled(&self) -> bool {
        self.is_set()
    }
}

fn raised(error: Error) -> PyErr {
    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err("the transfer was cancelled"),
        Error::Asked(_) | Error::Session(elephan_session::Error::Token(_)) => bad(error),
        error => PyOSError::new_err(error.to_string()),
    }
}

fn done(done: &Done) -> Value {
    json!({
        "bytes": done.bytes, "there": done.there, "hash": done.hash.map(|hash| HEXLOWER.encode(&hash)),
    })
}

/// Sends a file (`path`; `-` is standard input), or `memory` bytes, to the receiver of `token`.
///
/// `cc` is the kernel's name of a congestion control, `pace` the highest rate of each stream in bit/s. The calling thread calls
/// `progress` every 50 ms, with the bytes of all (None until the transfer is open, and of standard input), those that are stored,
/// the rate in bit/s, and what limits it (or None), and runs signal handlers. Returns the tables of the streams as an engine
/// does, and `done` (JSON): what was done. Raises `ScenarioError` for what does not work as it was asked for, `OSError` for what ended the transfer.
#[pyfunction]
#[pyo3(signature = (host, port, token, *, path=None, memory=None, streams=4, plain=false, force=false, cc=None, pace=None, patience_s=20.0, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the options of a command")]
pub fn transfer_send<'py>(
    py: Python<'py>,
    host: String,
    port: u16,
    token: &str,
    path: Option<PathBuf>,
    memory: Option<u64>,
    streams: u32,
    plain: bool,
    force: bool,
    cc: Option<String>,
    pace: Option<f64>,
    patience_s: f64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let payload = match (path, memory) {
        (Some(path), None) if path == Path::new("-") => Payload::Pipe(stdin().as_fd().try_clone_to_owned()?),
        (Some(path), None) => Payload::File(path),
        (None, Some(bytes)) => Payload::Memory(bytes),
        _ => return Err(bad("transfer: expected a path or memory, found both or neither")),
    };
    let token: Token = token.parse().map_err(|error: elephan_session::Error| raised(error.into()))?;
    let options = Options {
        host,
        port,
        token,
        payload,
        streams,
        plain,
        force,
        cc,
        pace: pace.map(|bits| (bits / 8.0) as u64),
        patience: patience(patience_s)?,
    };
    let (cancel, board) = (Cancel::default(), Mutex::new(Progress::default()));
    let tell = |py: Python<'_>| {
        let now = *board.lock().expect("nobody panics with it");
        let now = (now.total, now.stored, now.rate_bit_s, now.limit.map(Limit::name));
        progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, now).map(drop))
    };
    let sent = watch(py, &cancel, tell, || elephan_transfer::send(&options, &cancel, &board))?;
    let sent = sent.map_err(raised)?;
    let result = tables(py, sent.recorded)?;
    result.set_item("done", done(&sent.done).to_string())?;
    Ok(result)
}

fn patience(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|patience| !patience.is_zero())
        .ok_or_else(|| bad(format!("patience: expected a number of seconds above 0, found {seconds}")))
}

/// The tables of what was recorded, as an engine gives them.
pub(crate) fn tables(py: Python<'_>, recorded: Recorded) -> PyResult<Bound<'_, PyDict>> {
    let Recorded { outcome, kernel, labels, .. } = recorded;
    let result = tables_of(py, outcome, Vec::new(), labels)?;
    result.set_item("kernel", columns(py, kernel)?)?;
    result.set_item("duration_s", recorded.duration_s)?;
    result.set_item("interval_s", recorded.interval_s)?;
    result.set_item("min_rtt_s", recorded.min_rtt_s)?;
    result.set_item("fastest_bit_s", recorded.fastest_bit_s)?;
    result.set_item("packet_bytes", recorded.packet_bytes)?;
    Ok(result)
}

fn event(event: &Event) -> String {
    let value = match event {
        Event::Began(peer, what) => json!({ "event": "began", "peer": peer.to_string(), "what": what }),
        Event::Ended(peer, told, took) => json!({
            "event": "ended", "peer": peer.to_string(), "done": done(told), "took_s": took.as_secs_f64(),
        }),
        Event::Failed(peer, why) => json!({ "event": "failed", "peer": peer.to_string(), "why": why }),
    };
    value.to_string()
}

/// Receives transfers at an address (`host:port`), into `folder` (`-` is standard output), or memory.
///
/// Calls `started` with the port and the token, and then `tell` every 50 ms, with what has happened since (JSON each). Goes on
/// until one of these raises; with `once`, and into standard output, until a transfer has come to its end. Raises
/// `ScenarioError` for an address or a folder that cannot be used, `OSError` if what was sent into standard output ended early.
#[pyfunction]
#[pyo3(signature = (at, folder, started, tell, *, once=false, patience_s=20.0))]
pub fn transfer_receive(
    py: Python<'_>,
    at: &str,
    folder: Option<PathBuf>,
    started: Py<PyAny>,
    tell: Py<PyAny>,
    once: bool,
    patience_s: f64,
) -> PyResult<()> {
    let address: SocketAddr =
        at.parse().map_err(|_| bad(format!("address: expected one such as 0.0.0.0:{PORT}, found {at:?}")))?;
    let place = match folder {
        None => Place::Nowhere,
        Some(path) if path == Path::new("-") => Place::Pipe(stdout().as_fd().try_clone_to_owned()?),
        Some(path) => Place::Folder(Folder::open(&path).map_err(raised)?),
    };
    let receiver = Receiver::bind(address, place, patience(patience_s)?).map_err(raised)?;
    let port = receiver.address().map_err(raised)?.port();
    started.call1(py, (port, receiver.token().to_string()))?;
    let cancel = Cancel::default();
    let tell = |py: Python<'_>| {
        let events: Vec<String> = receiver.events().iter().map(event).collect();
        tell.call1(py, (events,)).map(drop)
    };
    watch(py, &cancel, tell, || receiver.serve(&cancel, once))?.map_err(raised)
}
