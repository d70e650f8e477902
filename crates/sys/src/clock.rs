//! The clock of time stamps, and threads that act at exact times.

use std::num::NonZeroU64;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Time on the clock of the kernel's time stamps of packets, ns since 1970.
pub fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// CPU time of the calling thread so far, in seconds, including softirqs that ran on it.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The scheduling priority of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The default of other programs.
    Ordinary,
    /// Above all other programs: the emulator.
    Realtime,
    /// Above the emulator: code that holds the lock of a socket, even briefly. If it were preempted
    /// meanwhile, packets for the socket would wait, and acknowledgments and data would be sent in one burst.
    Socket,
}

/// Raises the priority of the calling thread, and makes its sleeps exact. The kernel lengthens the waits of other
/// than real-time threads by up to 0.1 %. If this is not permitted, the thread is unchanged; the effect shows in the
/// recorded lateness.
pub fn make_urgent(urgency: Urgency) {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let (policy, priority): (_, libc::c_int) = match urgency {
        Urgency::Ordinary => (libc::SCHED_OTHER, 0),
        Urgency::Realtime => (libc::SCHED_FIFO, 1),
        Urgency::Socket => (libc::SCHED_FIFO, 2),
    };
    #[expect(unsafe_code, reason = "rustix does not have this call, and musl refuses it")]
    // SAFETY: struct sched_param is one number, which outlives the call; zero is the calling thread.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority);
    }
}
