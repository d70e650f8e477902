//! The TCP connections of programs that this process has started.

use elephan_sys::{Watched, Watcher};
use elephan_units::Time;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::transfer::tables;
use crate::watch::{Cancel, watch};

/// Samples the TCP connections of the programs that this process starts meanwhile, and of those that they start.
///
/// Calls `start`, and then `is_over` every 50 ms until it is true; samples are kept every `interval_s` seconds. Returns `tables`
/// as an engine does, or None without a connection; `flows`: of each its congestion control by the kernel's name, start in s,
/// and bytes received; the number of `connections`, of those `without_info` (`TCP_INFO`), which are in no table, and of
/// `foreign` processes, whose sockets this user may not see.
///
/// Raises `OSError` where the kernel has no sock_diag, and what the functions raise.
#[pyfunction]
pub fn watch_programs(
    py: Python<'_>,
    interval_s: f64,
    start: Py<PyAny>,
    is_over: Py<PyAny>,
) -> PyResult<Bound<'_, PyDict>> {
    let watcher = Watcher::new(Time::from_secs_f64(interval_s)).map_err(|error| {
        let wanted = "expected a kernel with sock_diag (CONFIG_INET_DIAG) and /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)";
        PyOSError::new_err(format!("TCP's sockets: {wanted}, found: {error}"))
    })?;
    start.call0(py)?;
    let cancel = Cancel::default();
    let tell = |py: Python<'_>| {
        if is_over.call0(py)?.extract(py)? {
            cancel.set();
        }
        Ok(())
    };
    let Watched { recorded, flows, connections, without_info, foreign } =
        watch(py, &cancel, tell, || watcher.run(|| cancel.is_set()))?;
    Ok(dict! { py;
        "tables" => recorded.map(|recorded| tables(py, recorded)).transpose()?,
        "flows" => flows,
        "connections" => connections,
        "without_info" => without_info,
        "foreign" => foreign,
    })
}
