//! What the sender does at a loss: which recovery, and one congestion event for each window of data.
//!
//! A window of data is what was sent before the last reduction. Its losses were answered by that
//! reduction, whether duplicate ACKs, SACK, a mark or the timer show them. What was sent after it, the
//! retransmissions too, is the next window: its loss is another indication of congestion (RFC 5681,
//! section 4.3), also while the first is being repaired.

use elephan_cc::{Cause, Congestion};
use elephan_units::Time;

use super::Sender;
use super::acknowledge::Before;
use super::halving::Halving;
use super::prr::Prr;
use super::scoreboard::{DUP_THRESH, Delivered, is_later};
use crate::config::Recovery;
use crate::endpoint::Counters;

/// Where the sender stands between losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery, until everything below `recover` is acknowledged.
    Recovery { recover: u64 },
    /// Everything outstanding was given up, after a timeout or in Tahoe's way: slow start from one
    /// segment, until everything below `recover` is acknowledged.
    Restart { recover: u64 },
}

/// Undo of a reduction that D-SACK shows to have been spurious (RFC 3708, section 2): every
/// retransmission since was reported as a duplicate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// Whether the last reduction was for a loss, and may be undone.
    armed: bool,
    /// Retransmissions since, less those reported as duplicates.
    unreported: u32,
    /// What was sent again: everything within these offsets. Duplicates elsewhere are the network's.
    from: u64,
    to: u64,
    /// The last report; the network may duplicate that too.
    last: (u64, u64),
}

impl Undo {
    /// `[left, right)` was sent again.
    pub fn on_retransmission(&mut self, left: u64, right: u64) {
        if self.unreported == 0 && self.to == 0 {
            self.from = left;
        }
        self.unreported += 1;
        self.from = self.from.min(left);
        self.to = self.to.max(right);
    }

    /// The peer reported `[left, right)` as a duplicate.
    pub fn on_duplicate(&mut self, left: u64, right: u64, mss: u32) {
        let again = std::mem::replace(&mut self.last, (left, right)) == (left, right);
        if !again && left >= self.from && right <= self.to {
            let segments = (right - left).div_ceil(u64::from(mss)).max(1);
            self.unreported = self.unreported.saturating_sub(segments as u32);
        }
    }
}

impl Sender {
    // ---- Losses that ACKs show ----

    /// Losses that selective acknowledgments show (RFC 6675, section 5).
    pub(super) fn repair_with_sack(&mut self, before: Before, counters: &mut Counters, now: Time) {
        let lost = self.board.detect_losses(self.fack);
        let lost_again = self.board.detect_lost_retransmissions();
        let unanswered = lost.is_some_and(|offset| offset >= self.reduced_until)
            || lost_again.is_some_and(|transmission| is_later(transmission, self.reduced_at));
        match self.phase {
            Phase::Open if self.board.has_waiting() => {
                self.halving = self.rate_halving.then(|| Halving::new(self.controller.cwnd()));
                if unanswered {
                    self.reduce(Cause::Loss, before.una, counters, now);
                }
                self.prr = self.use_prr.then(|| Prr::new(self.outstanding()));
                self.enter_fast_recovery(now);
            }
            Phase::Recovery { .. } | Phase::Restart { .. } if unanswered => {
                self.reduce(Cause::Loss, before.una, counters, now);
                // Of what is outstanding, much has arrived: what is in flight is what the window holds.
                self.prr = self.use_prr.then(|| Prr::new(before.pipe));
                self.rescued = false;
                self.phase = Phase::Recovery { recover: self.next };
            }
            Phase::Open => {}
            Phase::Recovery { recover } | Phase::Restart { recover } => {
                if self.una >= recover {
                    self.leave_recovery();
                }
            }
        }
    }

    /// Losses that duplicate ACKs show (RFC 5681, section 3.2; RFC 6582, section 3.2).
    pub(super) fn repair_without_sack(
        &mut self,
        advanced: bool,
        duplicate: bool,
        delivered: &Delivered,
        counters: &mut Counters,
        now: Time,
    ) {
        match self.phase {
            Phase::Open => {
                if duplicate && self.duplicates_tell_of_loss() {
                    if !self.front_is_answered(now) {
                        self.reduce(Cause::Loss, self.una, counters, now);
                    }
                    self.repair_front(now);
                }
            }
            Phase::Recovery { recover } => {
                if self.una >= recover {
                    self.leave_recovery();
                    self.repaired_until = (self.recovery == Recovery::NewReno).then_some(recover);
                } else if advanced {
                    self.on_partial_ack(delivered);
                } else if duplicate {
                    // RFC 5681, section 3.2, step 4: a segment has left the network.
                    self.inflation += 1.0;
                }
            }
            Phase::Restart { recover } => {
                if self.una >= recover {
                    self.leave_recovery();
                    self.repaired_until = Some(recover);
                }
            }
        }
    }

    /// Three duplicate ACKs: the oldest segment is lost.
    fn repair_front(&mut self, now: Time) {
        if self.recovery == Recovery::Tahoe {
            self.board.all_is_lost();
            self.controller.collapse();
            self.phase = Phase::Restart { recover: self.next };
            self.restart_for_retransmission(now);
            return;
        }
        self.board.front_is_lost();
        // RFC 5681, section 3.2, step 3: the segments that have left the network.
        self.inflation = DUP_THRESH as f64;
        self.enter_fast_recovery(now);
    }

    fn enter_fast_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery { recover: self.next };
        self.rescued = false;
        self.partial_seen = false;
        self.retransmit_now = true;
        self.restart_for_retransmission(now);
    }

    /// A fast retransmission has a whole timeout of its own, as in ns-2 and Linux: what is left of the
    /// original's may be too short for it to be answered.
    fn restart_for_retransmission(&mut self, now: Time) {
        self.deadline = now + self.rtt.rto();
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0.0;
        self.prr = None;
        self.halving = None;
        self.retransmit_now = false;
    }

    /// New data, but not all of the window at the loss (RFC 6582, section 3.2, step 3).
    fn on_partial_ack(&mut self, delivered: &Delivered) {
        if self.recovery == Recovery::Reno {
            // RFC 5681, section 3.2, step 6, ends fast recovery at the first ACK of new data.
            self.leave_recovery();
            return;
        }
        self.board.front_is_lost();
        self.retransmit_now = true;
        let acked = self.segments(delivered.cumulative);
        self.inflation = (self.inflation - acked).max(1.0 - self.controller.cwnd());
        if acked >= 1.0 {
            self.inflation += 1.0;
        }
    }

    /// An echoed mark (RFC 3168, section 6.1.2): at most one reduction for each window of data. The echo
    /// goes on until the first data sent after a reduction, which carries CWR, has arrived.
    pub(super) fn on_ece(&mut self, before: Before, counters: &mut Counters, now: Time) {
        if self.una > self.reduced_until {
            counters.ecn_events += 1;
            self.reduce(Cause::Ecn, before.una, counters, now);
        }
    }

    /// The host has no room for what would be sent: at most one reduction for each window of data.
    pub fn on_local_congestion(&mut self, counters: &mut Counters, now: Time) {
        if self.una > self.reduced_until {
            counters.stalls += 1;
            self.reduce(Cause::Ecn, self.una, counters, now);
        }
    }

    // ---- The timer ----

    /// Whether the retransmission or persist timer has run out; acts on it.
    pub fn on_timer(&mut self, counters: &mut Counters, now: Time) {
        if now < self.deadline {
            return;
        }
        self.burst = 0;
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
        if self.board.is_empty() {
            // The persist timer: ask whether a closed window has opened (RFC 9293, section 3.8.6.1).
            self.probe = true;
        } else {
            counters.timeouts += 1;
            // RFC 5681, section 3.1: ssthresh is held when the same segment times out again. It is held
            // too when the window that the segment was sent in has been answered.
            if self.tries > 0 || self.front_is_answered(now) {
                self.controller.collapse();
                self.note_reduction();
            } else {
                self.reduce(Cause::Timeout, self.una, counters, now);
            }
            self.board.all_is_lost();
            self.leave_recovery();
            self.phase = Phase::Restart { recover: self.next };
            self.dupacks = 0;
            self.before_dupacks = None;
        }
        self.tries = self.tries.saturating_add(1);
    }

    // ---- Reductions ----

    /// Whether the last reduction answered the loss of the oldest segment: it came after the last
    /// transmission that can be known to be lost, that is, one that is a round trip old.
    fn front_is_answered(&self, now: Time) -> bool {
        self.una < self.reduced_until
            && self.board.front().is_some_and(|front| {
                !front.was_sent_after(self.reduced_at) || now.since(front.sent_at) < self.rtt.srtt()
            })
    }

    /// From now on, what was sent so far is answered.
    fn note_reduction(&mut self) {
        self.reduced_until = self.next;
        self.reduced_at = self.board.transmissions();
        // RFC 3168, section 6.1.2: said after every reduction, for whatever reason.
        self.cwr = self.ecn;
    }

    /// A congestion event; what was in flight then was beyond `una`, which for a mark is where it was before
    /// the ACK. The caller sees to it that its window of data had none.
    fn reduce(&mut self, cause: Cause, una: u64, counters: &mut Counters, now: Time) {
        counters.reductions += 1;
        counters.loss_events += u64::from(cause == Cause::Loss);
        self.note_reduction();
        if self.phase == Phase::Open {
            self.undo = Undo { last: self.undo.last, ..Undo::default() };
        }
        self.undo.armed = self.dsack && self.sack && cause != Cause::Ecn;
        self.controller.on_congestion(&Congestion {
            now,
            cause,
            flight_size: self.flight_size(una),
            delivered: self.segments(self.delivered),
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
            mss: self.mss,
        });
    }

    /// Whether everything that was sent again since the last reduction was reported as a duplicate.
    pub(super) fn is_spurious(&self) -> bool {
        self.undo.armed && self.undo.unreported == 0 && self.undo.to > 0
    }

    /// Takes the last reduction back.
    pub(super) fn undo_reduction(&mut self, counters: &mut Counters) {
        counters.undos += 1;
        self.undo.armed = false;
        self.controller.undo();
        self.rtt.forget_back_off();
        self.board.nothing_is_lost();
        self.leave_recovery();
        // What proves to be lost after all is a congestion event of its own.
        self.reduced_until = self.una;
    }
}
