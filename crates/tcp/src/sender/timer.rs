//! The timer of the sending half: for retransmission, or for a closed window if nothing is outstanding.

use elephan_cc::Cause;
use elephan_cc::governor::Event;
use elephan_units::Time;

use super::Sender;
use super::phase::Phase;
use super::rtt::TICK;
use crate::report::Counters;

/// RFC 9293, section 3.8.3: give up after R2, at least 100 s. Linux's `tcp_retries2`: 15 timeouts in a row.
const MAX_TRIES: u8 = 15;

/// The retransmission timer, or the persist timer if nothing is outstanding; and those of RACK and of tail loss
/// probes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Timer {
    /// When the first of the three runs out; `Time::MAX` if all are off.
    next: Time,
    /// Expiry time; `Time::MAX` when off.
    deadline: Time,
    /// When the reordering timer runs out (RFC 8985, section 6.2, step 5); `Time::MAX` when off.
    pub reordering: Time,
    /// When a tail loss probe is due (RFC 8985, section 7.2); `Time::MAX` for never.
    loss_probe: Time,
    /// Number of consecutive timeouts without progress.
    pub tries: u8,
    /// Whether a zero-window probe is due.
    pub probe: bool,
    /// After a timeout: the first lost segment is to be sent now, regardless of the window.
    pub front_is_due: bool,
}

impl Timer {
    /// A timer that is off.
    pub fn new() -> Self {
        Self {
            next: Time::MAX,
            deadline: Time::MAX,
            tries: 0,
            probe: false,
            reordering: Time::MAX,
            loss_probe: Time::MAX,
            front_is_due: false,
        }
    }

    /// Whether it is off.
    pub fn is_off(&self) -> bool {
        self.deadline == Time::MAX
    }

    /// Whether it is that of data that was sent once, and nothing is due.
    pub fn is_usual(&self) -> bool {
        !self.is_off() && self.tries == 0 && !self.probe && !self.front_is_due
    }

    /// Sets the retransmission or persist timer.
    #[inline]
    fn set(&mut self, deadline: Time) {
        self.deadline = deadline;
        self.note_next();
    }

    /// Sets the reordering timer.
    pub fn set_reordering(&mut self, deadline: Time) {
        self.reordering = deadline;
        self.note_next();
    }

    /// Sets the timer of tail loss probes, which never runs beyond the retransmission timer.
    pub fn set_loss_probe(&mut self, deadline: Time) {
        self.loss_probe = deadline.min(self.deadline);
        self.note_next();
    }

    /// Stops the timer of tail loss probes.
    pub fn stop_loss_probe(&mut self) {
        self.loss_probe = Time::MAX;
        self.note_next();
    }

    #[inline]
    fn note_next(&mut self) {
        self.next = self.deadline.min(self.reordering).min(self.loss_probe);
    }
}

/// When a timer of Linux runs out that is set `now` for a time: its wheel has slots of 1 ms for times below 63 ms, of 8 ms below
/// 504 ms, of 64 ms below 4.032 s, and so on, and a timer runs out at the end of its slot, so that it never does too soon
/// (kernel/time/timer.c, `calc_wheel_index`, with 1000 ticks a second). Timers run out on whole ticks, and the wheel's clock is a tick
/// ahead meanwhile (`__run_timers`), so one that is set then counts as a tick shorter.
#[inline(never)]
pub fn in_wheel(after: Time, now: Time) -> Time {
    const BITS: u32 = 3;
    const LEVELS: u32 = 8;
    let delta = after.picos().div_ceil(TICK.picos());
    let expires = (now.picos() / TICK.picos()).saturating_add(delta);
    let ahead = u64::from(now.picos().is_multiple_of(TICK.picos()));
    let level =
        (0..LEVELS).find(|level| delta.saturating_sub(ahead) < 63 << (BITS * level)).unwrap_or(LEVELS);
    let shift = BITS * level;
    let slot = expires.checked_shr(shift).map_or(u64::MAX, |slot| slot + 1);
    slot.checked_shl(shift)
        .and_then(|ticks| ticks.checked_mul(TICK.picos()))
        .map_or(Time::MAX, Time::from_picos)
}

impl Sender {
    /// Restarts the timer with a full timeout from now, for the outstanding data.
    #[inline]
    pub(super) fn start_timer(&mut self, now: Time) {
        self.timer.set(self.expiry(self.rtt.rto(), now));
    }

    /// When a timer that is set now for this time runs out: a kernel's is coarse.
    #[inline]
    pub(super) fn expiry(&self, after: Time, now: Time) -> Time {
        if self.settings.is_coarse() { in_wheel(after, now) } else { now.saturating_add(after) }
    }

    /// An ACK was processed; `advanced` says whether it moved the left edge (RFC 6298, section 5).
    #[inline]
    pub(super) fn restart_timer(&mut self, advanced: bool, now: Time) {
        if self.board.is_empty() {
            // Nothing is outstanding, or the peer's window is closed and a probe was answered.
            self.timer.set_reordering(Time::MAX);
            self.timer.tries = 0;
            self.timer.set(Time::MAX);
            if self.may_send_new() {
                self.rtt.forget_back_off();
            }
        } else if advanced {
            // RFC 6582, section 4, the impatient variant: only the first partial ACK restarts it.
            if let Phase::Reno(recovery) = &mut self.phase
                && std::mem::replace(&mut recovery.partial_seen, true)
            {
                return;
            }
            self.start_timer(now);
        }
    }

    /// A timer may have run out: acts on it.
    #[inline(never)]
    pub fn on_timer(&mut self, counters: &mut Counters, now: Time) {
        if now >= self.timer.reordering {
            self.on_reordering_timer(counters, now);
        }
        if now >= self.timer.loss_probe {
            self.on_probe_timer(now);
        }
        if now < self.timer.deadline {
            return;
        }
        self.burst = 0;
        self.rtt.back_off();
        self.start_timer(now);
        if self.board.is_empty() {
            // The persist timer: probe whether a closed window has opened (RFC 9293, section 3.8.6.1).
            self.timer.probe = true;
        } else {
            counters.timeouts += 1;
            self.note_app_limited();
            self.tell_event(Event::Timeout, now);
            // RFC 5681, section 3.1: ssthresh is held when the same segment times out again. It is also held
            // if there was already a reduction for the window in which the segment was sent; in Linux, also in any
            // recovery (net/ipv4/tcp_input.c, `tcp_enter_loss`).
            let in_recovery = self.phase.is_fast_recovery() && !self.settings.reduce_again;
            let again = self.timer.tries > 0;
            let answered = again || in_recovery || self.front_is_answered(now);
            let first = !answered && !self.phase.is_recovery();
            let in_linux = self.undoes_as_linux() && (again || !self.phase.is_recovery());
            self.begin_frto(first || in_linux);
            if answered {
                // In Linux a timeout in a recovery leaves what is known of the recovery (`tcp_enter_loss`).
                if !(again || in_recovery && self.undoes_as_linux()) {
                    self.eifel.examined = None;
                }
                self.controller.collapse();
                self.note_reduction(Cause::Timeout);
            } else {
                self.reduce(Cause::Timeout, self.space.una, counters, now);
            }
            if self.phase.is_open()
                && let Some(rack) = &mut self.rack
            {
                rack.distrust(self.board.sacked());
            }
            self.restart_validation();
            self.lose_at_timeout(now);
            if self.undoes_as_linux() {
                // Linux, `tcp_enter_loss`: what may still arrive, and the segment that is retransmitted now.
                self.controller.open_to(f64::from(self.segments_in_flight()) + 1.0);
            }
            self.phase = Phase::Restart { recover: self.space.next };
            self.duplicates = None;
            self.tell_timeout(now);
            self.tell_losses(now);
        }
        self.timer.tries = self.timer.tries.saturating_add(1);
    }

    /// Whether a zero-window probe is due; the call clears the request.
    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.timer.probe)
    }

    /// Whether so many consecutive timeouts brought no progress that the peer is taken to be gone.
    pub fn is_hopeless(&self) -> bool {
        self.timer.tries > MAX_TRIES
    }

    /// When the next timer runs out; `Time::MAX` for never.
    #[inline]
    pub fn timeout_at(&self) -> Time {
        self.timer.next
    }

    /// When [`Sender::on_timer`] is due, or pacing allows the next segment; `Time::MAX` for never.
    #[inline]
    pub fn deadline(&self) -> Time {
        if self.pacer.is_some() { self.paced_deadline() } else { self.timeout_at() }
    }

    #[inline(never)]
    fn paced_deadline(&self) -> Time {
        match &self.pacer {
            Some(pacer) if pacer.is_pacing() && self.may_send_something() => {
                self.timeout_at().min(pacer.next())
            }
            _ => self.timeout_at(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_of_linux_runs_out_at_the_end_of_its_slot() {
        // Ticks at which it is set, for how many, and at which it runs out: the slots have 1, 8, 64 and 512 ticks.
        for (now, after, expiry) in [
            (1000, 62, 1063),
            (1000, 63, 1064),
            (1000, 300, 1304),
            (1001, 503, 1512),
            (1001, 504, 1536),
            (1000, 2000, 3008),
            (1000, 4032, 5120),
        ] {
            let found = in_wheel(TICK * after, TICK * now + Time::from_picos(1));
            assert_eq!(found, TICK * expiry, "{after} ms");
        }
        // Set by a timer that runs out.
        assert_eq!(in_wheel(TICK * 504, TICK * 15_448), TICK * 15_960);
        assert_eq!(in_wheel(Time::MAX, Time::MAX), Time::MAX);
    }
}
