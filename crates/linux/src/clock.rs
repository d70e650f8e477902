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
    /// Before everything else on the machine: the emulator.
    Realtime,
    /// Before other programs: applications.
    High,
}

/// Makes the calling thread urgent, and its sleeps exact. Where that is not allowed it stays as it is; lateness will tell.
pub fn make_urgent(urgency: Urgency) {
    // SAFETY: plain calls about the calling thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        match urgency {
            Urgency::Realtime => {
                let parameters = libc::sched_param { sched_priority: 1 };
                libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
            }
            Urgency::High => {
                libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -15);
            }
        }
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
