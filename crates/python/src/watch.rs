//! Work that is carried out on other threads, while the caller's thread listens to Python.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use elephan_metrics::{Control, SoFar};
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

/// Carries out `work` on another thread, until it ends or a signal handler raises.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Cancel) -> T + Send) -> PyResult<T> {
    let cancel = Cancel::default();
    watch(py, &cancel, |_| Ok(()), || work(&cancel))
}

/// What one or more runs share.
pub struct Runs<'a> {
    cancel: &'a Cancel,
    captures: BTreeMap<String, PathBuf>,
    /// Progress of all runs together, in millionths of a run.
    done: AtomicU64,
}

impl<'a> Runs<'a> {
    /// Runs that `cancel` stops, of which `captures` has the files of captured links.
    pub fn new(cancel: &'a Cancel, captures: BTreeMap<String, PathBuf>) -> Self {
        Self { cancel, captures, done: AtomicU64::new(0) }
    }

    /// One of them.
    pub fn one(&self) -> OneOf<'_> {
        OneOf { all: self, before: AtomicU64::new(0) }
    }

    /// Carries out so many runs, as [`watch`] does; `progress` gets the share that is done.
    pub fn watch<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        count: usize,
        work: impl FnOnce() -> T + Send,
    ) -> PyResult<T> {
        let tell = |py: Python<'_>| {
            let share = self.done.load(Ordering::Relaxed) as f64 * 1e-6 / count as f64;
            progress.map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
        };
        watch(py, self.cancel, tell, work)
    }
}

/// One run among several.
pub struct OneOf<'a> {
    all: &'a Runs<'a>,
    before: AtomicU64,
}

impl OneOf<'_> {
    /// So much of it is done. Returns whether it goes on.
    pub fn is_at(&self, share: f64) -> bool {
        let now = (share * 1e6) as u64;
        let before = self.before.swap(now, Ordering::Relaxed);
        self.all.done.fetch_add(now - before, Ordering::Relaxed);
        !self.is_cancelled()
    }
}

impl Control for OneOf<'_> {
    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        self.is_at(so_far.share);
        true
    }

    fn is_cancelled(&self) -> bool {
        self.all.cancel.is_set()
    }

    fn pcap_file(&self, name: &str) -> Option<PathBuf> {
        self.all.captures.get(name).cloned()
    }
}
