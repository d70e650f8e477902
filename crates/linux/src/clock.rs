//! The time of a run, real or virtual, and threads that follow it.
//!
//! In real time, threads that need exact times poll the clock. On a virtual machine each sleep needs a timer
//! that the host must set. This was measured to take 30 to 50 us of CPU time, several times the cost of a
//! packet. Besides, the end of a sleep is unpredictable.
//!
//! In virtual time (user-mode Linux with `time-travel=inf-cpu`) computing takes no time and a sleep ends
//! exactly when it is due. So threads only sleep.

use std::time::{Duration, Instant};

use elephan_units::Time;
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::thread::{CpuSet, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Time since a run began.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// Real time, since this instant.
    Real(Instant),
    /// The virtual time of a kernel, since its monotonic clock showed so many nanoseconds.
    Virtual {
        /// The monotonic clock at time zero, ns.
        zero_ns: u64,
    },
}

impl Clock {
    /// Real time, starting at zero.
    pub fn real() -> Self {
        Self::Real(Instant::now())
    }

    /// The current time.
    pub fn now(self) -> Time {
        let nanos = match self {
            Self::Real(began) => began.elapsed().as_nanos() as u64,
            Self::Virtual { zero_ns } => monotonic_ns().saturating_sub(zero_ns),
        };
        Time::from_picos(nanos * 1000)
    }

    /// Sleeps until `due`; in real time the end of the sleep is inexact.
    pub fn sleep(self, due: Time) {
        // A kernel would set a timer even for a time that has passed.
        if due <= self.now() {
            return;
        }
        match self {
            Self::Real(_) => sleep(due.since(self.now())),
            Self::Virtual { zero_ns } => {
                let due_ns = zero_ns.saturating_add(due.picos().div_ceil(1000));
                let (seconds, nanos) = (due_ns / 1_000_000_000, due_ns % 1_000_000_000);
                let at = Timespec { tv_sec: seconds as i64, tv_nsec: nanos as _ };
                while clock_nanosleep_absolute(ClockId::Monotonic, &at) == Err(Errno::INTR) {}
            }
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The length of a rest of a thread that otherwise polls the clock,
const REST: Time = Time::from_micros(50);
/// and the maximum interval between rests: a thread rests for about 10 % of its time. A real-time thread that
/// leaves less than 5 % to others loses 50 ms at once each second, to the kernel's fair server (since 6.12)
/// or its throttling of real-time threads (before).
const REST_INTERVAL: Time = Time::from_micros(400);

/// The rests of a thread that polls the clock.
pub struct Rests {
    clock: Clock,
    /// The duration of one rest.
    length: Time,
    next: Time,
}

impl Rests {
    /// Rests for a thread that uses `clock`. Makes a few rests to measure how long they take on this machine.
    pub fn new(clock: Clock) -> Self {
        let mut taken = [(); 9].map(|()| {
            let began = clock.now();
            sleep(REST);
            clock.now().since(began)
        });
        taken.sort();
        Self { clock, length: taken[taken.len() / 2], next: clock.now() + REST_INTERVAL }
    }

    /// Rests if it is time to, preferably in a gap in which nothing is due before `due`; returns the intended
    /// length of the rest.
    pub fn rest(&mut self, due: Time) -> Time {
        let now = self.clock.now();
        let fits = due > now + self.length;
        if now < self.next || (!fits && now < self.next + REST_INTERVAL / 2) {
            return Time::ZERO;
        }
        sleep(REST);
        self.next = self.clock.now() + REST_INTERVAL;
        self.length
    }

    /// The thread has slept for another reason.
    pub fn slept(&mut self) {
        self.next = self.clock.now() + REST_INTERVAL;
    }
}

/// A sleep ends this long before a thread must act; the rest is spent polling the clock.
const SPIN: Time = Time::from_micros(150);

/// The waits of a thread that acts at exact times.
pub struct Waits {
    clock: Clock,
    /// None in virtual time.
    rests: Option<Rests>,
}

impl Waits {
    /// For a thread that uses `clock`.
    pub fn new(clock: Clock) -> Self {
        let rests = match clock {
            Clock::Real(_) => Some(Rests::new(clock)),
            Clock::Virtual { .. } => None,
        };
        Self { clock, rests }
    }

    /// Waits until `due`.
    pub fn wait(&mut self, due: Time) {
        let Some(rests) = &mut self.rests else { return self.clock.sleep(due) };
        while self.clock.now() + SPIN < due {
            self.clock.sleep(due.since(SPIN));
            rests.slept();
        }
        rests.rest(due);
        while self.clock.now() < due {
            std::hint::spin_loop();
        }
    }
}

fn sleep(pause: Time) {
    std::thread::sleep(Duration::from_nanos(pause.picos() / 1000));
}

/// The processors that a thread may run on.
#[derive(Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// The processors of the calling thread.
    pub fn own() -> Self {
        Self(sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()))
    }

    /// One of the processors, and the others. If there is only one, both sets contain it.
    pub fn split(self) -> (Self, Self) {
        let last = (0..CpuSet::MAX_CPU).rfind(|&cpu| self.0.is_set(cpu));
        let (Some(last), true) = (last, self.0.count() > 1) else { return (self, self) };
        let (mut one, mut others) = (CpuSet::new(), self.0);
        one.set(last);
        others.unset(last);
        (Self(one), Self(others))
    }

    /// Restricts the calling thread to these processors.
    pub fn keep(&self) {
        // If this is not permitted, the thread's processors are unchanged; the effect shows in the recorded
        // lateness.
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// Processor time that the host of this virtual machine gave to others so far, summed over all processors, s;
/// zero if the host does not report it (`steal` in proc(5), `/proc/stat`).
pub fn stolen_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: f64 = stat.split_whitespace().nth(8).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    ticks / clock_ticks_per_second() as f64
}
