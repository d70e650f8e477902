//! Captures of TCP.

use std::path::PathBuf;

use elephan_capture::{Ack, Capture, Connection, Data, Error, Followed, connections, follow, read};
use numpy::IntoPyArray;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bad;
use crate::tables::load_numpy;

/// The connections of a capture, or of several captures of the same time, each as a dict of what its packets show.
///
/// `data_*` are columns of the packets with data: `time_ns`, `offset` in the stream, `payload`, `bytes` of the IP packet, `again`
/// (0: new, 1: seen before, 2: fills a hole, 3: was acknowledged), `before_ns` (when the same data, or the hole, was first seen).
/// `ack_*` are columns of the acknowledgments: `time_ns`, `delivered` bytes, `sent_ns` of the last data that it delivers (-1 for
/// none that was sent once), `sent_offset` of its end, `flight`, `window` (0 if unknown), `dsack`. `answer_*` are the times, and how long the sender's
/// side took, from the timestamps. `from`, `to` are the ends, `mss` and `handshake_ns` are None if they were not captured, and
/// `is_cut` tells whether a file ended within a packet. Raises `ScenarioError` for a file that is no capture of TCP, and `OSError`.
#[pyfunction]
pub fn read_captures(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    load_numpy(py);
    let mut packets = Vec::new();
    let mut is_cut = false;
    for path in &paths {
        let Capture { packets: found, is_cut: cut } =
            py.detach(|| read(path)).map_err(|error| match error {
                Error::File(error) => {
                    PyOSError::new_err((error.raw_os_error(), error.to_string(), path.clone()))
                }
                error => bad(format!("{}: {error}", path.display())),
            })?;
        packets.extend(found);
        is_cut |= cut;
    }
    let followed: Vec<(Connection, Followed)> = py.detach(|| {
        packets.sort_by_key(|packet| packet.time_ns);
        connections(packets)
            .into_iter()
            .map(|one| {
                let found = follow(&one);
                (one, found)
            })
            .collect()
    });
    followed.into_iter().map(|(one, found)| of(py, &one, found, is_cut)).collect()
}

fn of<'py>(py: Python<'py>, one: &Connection, found: Followed, is_cut: bool) -> PyResult<Bound<'py, PyDict>> {
    let ends = found.ends.unwrap_or(one.ends);
    let made = dict! { py;
        "from" => ends[0].to_string(),
        "to" => ends[1].to_string(),
        "is_ipv6" => ends[0].is_ipv6(),
        "is_cut" => is_cut,
        "mss" => found.mss,
        "headers" => found.headers,
        "handshake_ns" => found.handshake_ns,
    };
    macro_rules! columns {
        ($($name:literal: $rows:expr => $value:expr;)*) => {
            $(made.set_item($name, $rows.iter().map($value).collect::<Vec<_>>().into_pyarray(py))?;)*
        };
    }
    columns! {
        "data_time_ns": found.data => |row: &Data| row.time_ns;
        "data_offset": found.data => |row: &Data| row.offset;
        "data_payload": found.data => |row: &Data| row.payload;
        "data_bytes": found.data => |row: &Data| row.bytes;
        "data_again": found.data => |row: &Data| row.again as u8;
        "data_before_ns": found.data => |row: &Data| row.before_ns;
        "ack_time_ns": found.acks => |row: &Ack| row.time_ns;
        "ack_delivered": found.acks => |row: &Ack| row.delivered;
        "ack_sent_ns": found.acks => |row: &Ack| row.sent_ns;
        "ack_sent_offset": found.acks => |row: &Ack| row.sent_offset;
        "ack_flight": found.acks => |row: &Ack| row.flight;
        "ack_window": found.acks => |row: &Ack| row.window;
        "ack_dsack": found.acks => |row: &Ack| row.dsack;
        "answer_time_ns": found.answers => |row: &(i64, i64)| row.0;
        "answer_ns": found.answers => |row: &(i64, i64)| row.1;
    }
    Ok(made)
}
