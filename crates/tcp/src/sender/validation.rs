//! Congestion window validation (RFC 7661): a window that the application does not use is kept for a time, grows only when it is
//! full, and is no measure of the path when a loss shows congestion.
//!
//! What the path carries in a round trip, pipeACK, is the largest sample of a sampling period (section 4.2). Each ACK of
//! new data gives a sample: what has arrived since the newest segment was sent that it acknowledges. Until a round trip is over, at the start
//! and after each recovery, pipeACK is undefined, and the window is taken as validated. Nothing is sampled in a recovery.

use std::collections::VecDeque;

use elephan_cc::Cause;
use elephan_units::Time;

use super::Sender;
use super::acknowledge::Before;
use super::max_flight::MaxFlight;
use crate::config::{AfterIdle, Config};

/// Section 4.2: the shortest sampling period, and the number of round-trip times that it has at least.
const SAMPLING: (Time, f64) = (Time::from_secs(1), 3.0);
/// Section 5: how long a window is kept that is not validated, the nonvalidated period.
const KEPT: Time = Time::from_secs(300);

/// What a sender keeps where it has rules for a window that the application does not fill.
#[derive(Clone, Debug)]
pub struct Underuse {
    /// None where the window is not validated.
    pub validation: Option<Validation>,
    /// None where the window grows only if it is used.
    pub max_flight: Option<MaxFlight>,
}

impl Underuse {
    /// Of a connection that has sent nothing yet; none without such rules.
    pub fn new(config: &Config) -> Option<Self> {
        let validates = config.after_idle == AfterIdle::Validate;
        (validates || config.rate_limited_increase).then(|| Self {
            validation: validates.then(Validation::new),
            max_flight: config.rate_limited_increase.then(|| MaxFlight::new(config)),
        })
    }
}

/// The validation of the window, if it is validated.
pub fn validation_of(underuse: &mut Option<Box<Underuse>>) -> Option<&mut Validation> {
    underuse.as_mut()?.validation.as_mut()
}

/// What a sender keeps where it validates its window.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// New segments in flight: their end, and the bytes that had arrived when they were sent.
    sent: VecDeque<(u64, u64)>,
    /// Samples of the last period, each smaller than the one before: when it was taken, and bytes.
    samples: VecDeque<(Time, u64)>,
    /// pipeACK is undefined until everything below this has arrived; none before the first ACK.
    defined_from: Option<u64>,
    is_defined: bool,
    is_valid: bool,
    /// When the window ceases to be validated, or ceased to be; later by each period for which it was kept since.
    until: Time,
    /// A recovery that began while the window was not validated.
    recovery: Option<Recovery>,
}

/// A recovery that began while the window was not validated.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// What was used of the window, in bytes: pipeACK or LossFlightSize, the larger of them.
    used: u64,
    /// Bytes that were retransmitted, each counted once: R of section 4.4.1.
    retransmitted: u64,
}

impl Validation {
    /// A window of which nothing is known yet.
    pub fn new() -> Self {
        Self { is_valid: true, ..Self::default() }
    }

    /// A new segment up to `end` is sent when `delivered` bytes have arrived.
    pub fn on_sent(&mut self, end: u64, delivered: u64) {
        self.sent.push_back((end, delivered));
    }

    /// Everything below `una` has arrived, `delivered` bytes in all, outside a recovery; `next` is next to be sent.
    fn on_ack(&mut self, una: u64, next: u64, delivered: u64, now: Time) {
        self.is_defined |= una >= *self.defined_from.get_or_insert(next);
        let acked = self.sent.partition_point(|&(end, _)| end <= una);
        let Some((_, before)) = self.sent.drain(..acked).next_back() else { return };
        let bytes = delivered - before;
        while self.samples.back().is_some_and(|&(_, smaller)| smaller <= bytes) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, bytes));
    }

    /// Sampling begins again, as after a recovery.
    fn restart(&mut self) {
        *self = Self { until: self.until, ..Self::new() };
    }

    /// pipeACK, in bytes; zero if nothing arrived in the last sampling period.
    fn pipe_ack(&self) -> u64 {
        self.samples.front().map_or(0, |&(_, bytes)| bytes)
    }

    /// Finds whether `cwnd` bytes are validated now (section 4.3).
    fn validate(&mut self, cwnd: u64, srtt: Time, now: Time) -> bool {
        let (shortest, round_trips) = SAMPLING;
        let period = shortest.max(srtt.mul_f64(round_trips));
        while self.samples.front().is_some_and(|&(at, _)| at + period <= now) {
            self.samples.pop_front();
        }
        let enough = self.samples.iter().rfind(|&&(_, bytes)| 2 * bytes >= cwnd);
        self.is_valid = !self.is_defined || enough.is_some();
        self.until = match enough {
            Some(&(at, _)) => at + period,
            None if self.is_valid => now,
            None => self.until.min(now),
        };
        self.is_valid
    }
}

impl Sender {
    /// Whether the window is validated.
    pub(super) fn validates(&self) -> bool {
        matches!(self.underuse.as_deref(), Some(Underuse { validation: Some(_), .. }))
    }

    /// Whether the window is taken as valid now.
    pub(super) fn is_validated(&self) -> bool {
        let validation = self.underuse.as_ref().and_then(|rules| rules.validation.as_ref());
        validation.is_none_or(|validation| validation.is_valid)
    }

    /// Whether the window may grow by an ACK of new data. It may while it is validated (section 4.3), and otherwise if it was the limit
    /// (section 4.5.3). With rate-limited increase it always may, up to a limit.
    pub(super) fn may_grow(&self) -> bool {
        match self.underuse.as_deref() {
            Some(Underuse { max_flight: Some(_), .. }) => true,
            Some(Underuse { validation: Some(validation), .. }) => validation.is_valid || self.usage.limited,
            _ => self.is_window_limit(),
        }
    }

    /// Validates the window. One that was not for five minutes is halved, but for the initial window, and ssthresh remembers three quarters of it
    /// (section 4.4.3); and so for each five minutes more.
    pub(super) fn validate(&mut self, now: Time) {
        loop {
            let cwnd = self.bytes(self.controller.cwnd());
            let Some(validation) = validation_of(&mut self.underuse) else { return };
            if validation.validate(cwnd, self.rtt.srtt(), now) || now <= validation.until + KEPT {
                return;
            }
            validation.until += KEPT;
            self.controller.decay(1, f64::from(self.settings.initial_window));
        }
    }

    /// An ACK was processed. At the end of a recovery that began with a window that was not validated, the window is half of
    /// what was used less what was lost (section 4.4.1).
    pub(super) fn validate_ack(&mut self, before: Before, now: Time) {
        if self.phase.is_recovery() {
            return;
        }
        let (una, next, delivered) = (self.space.una, self.space.next, self.delivered);
        let Some(validation) = validation_of(&mut self.underuse) else { return };
        if before.open && una > before.una {
            validation.on_ack(una, next, delivered, now);
        } else if !before.open {
            if let Some(Recovery { used, retransmitted }) = validation.recovery {
                let left = used.saturating_sub(retransmitted);
                let window = self.segments(left) / 2.0;
                self.controller.restrict(window.min(self.controller.cwnd()));
            }
            self.restart_validation();
        }
        self.validate(now);
    }

    /// A recovery has ended, or the timer has run out: sampling begins again, and until then the window is taken as validated.
    pub(super) fn restart_validation(&mut self) {
        if let Some(validation) = validation_of(&mut self.underuse) {
            validation.restart();
        }
    }

    /// The window was reduced for an event before which everything below `una` had arrived, and was `validated` or not. If it was not, half
    /// of what was used of it is left, whatever the algorithm's rule (section 4.4.1). A mark is answered like a loss, of which nothing is
    /// retransmitted. A timeout has its usual response (section 4.4).
    pub(super) fn reduce_unvalidated(&mut self, cause: Cause, una: u64, validated: bool) {
        let flight_size = self.space.next - una;
        let Some(validation) = validation_of(&mut self.underuse) else { return };
        if cause != Cause::Timeout && !validated {
            let used = validation.pipe_ack().max(flight_size);
            if cause == Cause::Loss {
                validation.recovery = Some(Recovery { used, retransmitted: 0 });
            }
            let window = self.segments(used) / 2.0;
            self.controller.restrict(window);
        }
    }

    /// `bytes` are retransmitted for the first time.
    pub(super) fn note_first_retransmission(&mut self, bytes: u64) {
        if let Some(Recovery { retransmitted, .. }) =
            validation_of(&mut self.underuse).and_then(|validation| validation.recovery.as_mut())
        {
            *retransmitted += bytes;
        }
    }

    /// The reduction was undone.
    pub(super) fn validate_undo(&mut self) {
        if let Some(validation) = validation_of(&mut self.underuse) {
            validation.recovery = None;
        }
    }
}
