//! Work that is carried out on other threads, while the caller's thread listens to Python.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often the caller's thread looks for signals, and tells of progress.
const LISTENS: Duration = Duration::from_millis(50);

/// Stops runs that go on in other threads, once for all.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Cancel(AtomicBool);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Whether they are to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops them, within milliseconds.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Carries out `work` on another thread. The caller's thread meanwhile runs Python's signal handlers, which Python does on its
/// main thread only, and calls `tell`, both every 50 ms and `tell` once more at the end.
///
/// What either raises sets `cancel`, at which the work is to end, and is raised here when it has.
pub fn watch<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    tell: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let listen = |py: Python<'_>| py.check_signals().and_then(|()| tell(py));
    let (outcome, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (working, ends) = mpsc::channel::<()>();
            let worker = scope.spawn(move || {
                // Dropped at the end, also where the work panics.
                let _working = working;
                work()
            });
            let mut raised = None;
            while ends.recv_timeout(LISTENS) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = Python::attach(listen)
                {
                    cancel.set();
                    raised = Some(error);
                }
            }
            (worker.join(), raised)
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    listen(py)?;
    Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
}
