//! Real time, counted as the simulator counts its own; and threads that keep to it.

use std::time::Instant;

use elephan_units::Time;

/// Time since a run began.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock at zero.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time.
    pub fn now(self) -> Time {
        Time::from_picos(self.0.elapsed().as_nanos() as u64 * 1000)
    }
}

/// How urgent a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As other programs.
    Ordinary,
    /// Before all other programs: the emulator.
    Realtime,
    /// Before the emulator too: what holds the lock of a socket, be it for a moment. Were it put aside meanwhile, what arrives for
    /// the socket would wait, and acknowledgments and data would go out in one burst.
    Socket,
}

/// Makes the calling thread urgent, and its sleeps exact. Where that is not allowed it stays as it is; lateness will tell.
pub fn make_urgent(urgency: Urgency) {
    let (policy, priority) = match urgency {
        Urgency::Ordinary => (libc::SCHED_OTHER, 0),
        Urgency::Realtime => (libc::SCHED_FIFO, 1),
        Urgency::Socket => (libc::SCHED_FIFO, 2),
    };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: plain calls about the calling thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::sched_setscheduler(0, policy, &raw const parameters);
    }
}

/// CPU time of the calling thread so far, in seconds, softirqs that ran on it included.
pub fn cpu_s() -> f64 {
    // SAFETY: a zeroed rusage is valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
