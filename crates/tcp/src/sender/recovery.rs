//! The sender's response to a loss: the kind of recovery, and one congestion event for each window of data.
//!
//! A window of data is the data sent before the last reduction. That reduction was the response to all its
//! losses, whether duplicate ACKs, SACK, a mark or the timer reveal them. Data sent after it, retransmissions
//! included, is the next window: its loss is another indication of congestion (RFC 5681, section 4.3), also
//! while the first loss is being repaired.

use elephan_cc::{Cause, Congestion, State, Undo};
use elephan_units::Time;

use super::acknowledge::Before;
use super::phase::{Phase, RecoveryWindow, RenoRecovery, SackRecovery};
use super::scoreboard::{DUP_THRESH, Delivered, is_later};
use super::settings::Repair;
use super::{Reduction, Sender};
use crate::config::WindowReduction;
use crate::report::Counters;

/// Linux 2.4 and 2.6 (net/ipv4/tcp_input.c, `tcp_max_burst`): number of segments that one ACK may release at
/// once.
const MAX_BURST: f64 = 3.0;

impl Sender {
    // ---- Losses that ACKs show ----

    /// Losses that selective acknowledgments show (RFC 6675, section 5; RFC 8985); returns whether there are any that
    /// earlier ACKs did not show.
    #[inline(never)]
    pub(super) fn repair_with_sack(
        &mut self,
        fack: bool,
        reduction: WindowReduction,
        before: Before,
        counters: &mut Counters,
        now: Time,
    ) -> bool {
        if let Phase::Sack(recovery) = &mut self.phase {
            recovery.only_new = false;
        }
        let (lost, lost_again) = self.detect_losses(fack, now);
        let unanswered = lost.is_some_and(|offset| offset >= self.last_reduction.until)
            || lost_again.is_some_and(|number| is_later(number, self.last_reduction.transmission));
        let next = self.space.next;
        if let Phase::Cwr { until, .. } = self.phase
            && self.space.una > until
        {
            // A further loss is another reduction.
            self.phase = Phase::OPEN;
            self.tell_reduction_end(now);
        }
        match self.phase {
            Phase::Open { .. } if self.board.has_waiting() => {
                let cwnd = self.controller.cwnd();
                // In Linux what is lost after an undo is another event, also if it was found before.
                let undone = !self.settings.reduce_again && self.space.una >= self.last_reduction.until;
                if unanswered || undone {
                    self.reduce(Cause::Loss, before.una, counters, now);
                }
                self.phase = Phase::Sack(self.recovery(reduction, cwnd, before));
                self.start_timer(now);
            }
            Phase::Sack(recovery) if unanswered && self.settings.reduce_again => {
                self.reduce(Cause::Loss, before.una, counters, now);
                self.phase = Phase::Sack(recovery.reduced(next, self.reduction(reduction), before.pipe));
            }
            Phase::Restart { .. } if unanswered => {
                let flight =
                    if self.settings.halves_cwnd { self.bytes(self.controller.cwnd()) } else { before.pipe };
                self.reduce(Cause::Loss, before.una, counters, now);
                self.phase = Phase::Sack(SackRecovery::after_restart(next, reduction, flight));
            }
            Phase::Cwr { window, .. } if self.board.has_waiting() => {
                // Linux's tcp_enter_recovery: the reduction that is in progress goes on.
                self.phase = Phase::Sack(SackRecovery::new(next, window));
                self.start_timer(now);
            }
            Phase::Sack(SackRecovery { recover, .. }) | Phase::Restart { recover } => {
                if self.space.una >= recover {
                    self.phase = Phase::OPEN;
                    self.tell_reduction_end(now);
                    if !self.settings.reduce_again && self.board.lost() > 0 {
                        // What is missing now was sent in the recovery that has ended. A mark in it may have been
                        // answered since.
                        self.note_recovery_end();
                        let cwnd = self.controller.cwnd();
                        if self.space.una >= self.last_reduction.until {
                            self.reduce(Cause::Loss, before.una, counters, now);
                        }
                        self.phase = Phase::Sack(self.recovery(reduction, cwnd, before));
                    }
                }
            }
            Phase::Open { .. } | Phase::Cwr { .. } | Phase::Reno(_) => {}
        }
        lost.is_some() || lost_again.is_some()
    }

    /// How the window is reduced: as `usual`, or at once in the Safe Retreat of Careful Resume, for which a gradual reduction is not
    /// appropriate (RFC 9959, section 4.5).
    fn reduction(&self, usual: WindowReduction) -> WindowReduction {
        if self.controller.retreats() { WindowReduction::AtOnce } else { usual }
    }

    /// A recovery that begins now; `cwnd` is the window before its reduction.
    fn recovery(&self, reduction: WindowReduction, cwnd: f64, before: Before) -> SackRecovery {
        let reduction = self.reduction(reduction);
        let flight = match reduction {
            // Linux (`tcp_init_cwnd_reduction`): RecoverFS is the window.
            WindowReduction::Prr if self.settings.halves_cwnd => self.bytes(cwnd),
            // RFC 9937, section 6: without what was selectively acknowledged before this ACK.
            WindowReduction::Prr => before.pipe,
            _ => self.space.outstanding(),
        };
        SackRecovery::new(self.space.next, RecoveryWindow::new(reduction, cwnd, flight, self.held(cwnd)))
    }

    /// Window of a proportional reduction, in bytes, until an ACK delivers something; `cwnd` is the window before it. Linux leaves
    /// it as it is; elsewhere nothing is sent beyond what is in flight.
    fn held(&self, cwnd: f64) -> u64 {
        if self.settings.halves_cwnd { self.bytes(cwnd) } else { self.board.pipe() }
    }

    /// Losses that duplicate ACKs show (RFC 5681, section 3.2; RFC 6582, section 3.2).
    #[inline(never)]
    pub(super) fn repair_without_sack(
        &mut self,
        advanced: bool,
        duplicate: bool,
        delivered: &Delivered,
        counters: &mut Counters,
        now: Time,
    ) {
        let una = self.space.una;
        match self.phase {
            Phase::Open { repaired_until, .. } => {
                let enough = self.duplicates.is_some_and(|duplicates| duplicates.count.get() >= DUP_THRESH);
                if duplicate && enough && repaired_until != Some(una) {
                    if !self.front_is_answered(now) {
                        self.reduce(Cause::Loss, una, counters, now);
                    }
                    self.repair_front(now);
                }
            }
            Phase::Reno(mut recovery) => {
                if una >= recovery.recover {
                    let whole = self.settings.repair == Repair::NewReno;
                    self.phase =
                        Phase::Open { repaired_until: whole.then_some(recovery.recover), dubious_until: 0 };
                } else if advanced {
                    self.on_partial_ack(recovery, delivered);
                } else if duplicate {
                    // RFC 5681, section 3.2, step 4: the duplicate ACK means that a segment has left the
                    // network.
                    recovery.inflation += 1.0;
                    self.phase = Phase::Reno(recovery);
                }
            }
            Phase::Restart { recover } => {
                if una >= recover {
                    self.phase = Phase::Open { repaired_until: Some(recover), dubious_until: 0 };
                }
            }
            Phase::Cwr { .. } | Phase::Sack(_) => {}
        }
    }

    /// Three duplicate ACKs: the oldest segment is taken as lost.
    fn repair_front(&mut self, now: Time) {
        let recover = self.space.next;
        self.phase = if self.settings.repair == Repair::Tahoe {
            self.board.all_is_lost();
            self.controller.collapse();
            Phase::Restart { recover }
        } else {
            self.board.front_is_lost();
            Phase::Reno(RenoRecovery {
                recover,
                retransmit_now: true,
                // RFC 5681, section 3.2, step 3: the segments that have left the network.
                inflation: DUP_THRESH as f64,
                partial_seen: false,
            })
        };
        self.start_timer(now);
    }

    /// A partial ACK: new data, but not the whole window at the loss (RFC 6582, section 3.2, step 3).
    fn on_partial_ack(&mut self, mut recovery: RenoRecovery, delivered: &Delivered) {
        if self.settings.repair == Repair::Reno {
            // RFC 5681, section 3.2, step 6, ends fast recovery at the first ACK of new data.
            self.phase = Phase::OPEN;
            return;
        }
        self.board.front_is_lost();
        recovery.retransmit_now = true;
        let acked = self.segments(delivered.cumulative);
        recovery.inflation = (recovery.inflation - acked).max(1.0 - self.controller.cwnd());
        if acked >= 1.0 {
            recovery.inflation += 1.0;
        }
        self.phase = Phase::Reno(recovery);
    }

    // ---- Congestion without a loss ----

    /// An echoed mark (RFC 3168, section 6.1.2): at most one reduction for each window of data. The peer
    /// continues to echo until the first data sent after a reduction, which carries CWR, has arrived.
    #[inline(never)]
    pub(super) fn on_ece(&mut self, before: Before, counters: &mut Counters, now: Time) {
        if self.undoes_as_linux() {
            // What was reduced at this ACK is not to be undone either.
            self.controller.confirm();
        }
        if self.space.una > self.last_reduction.until {
            counters.ecn_events += 1;
            self.reduce_without_loss(before.una, counters, now);
        }
    }

    /// A reduction where nothing is known to be lost, at an ACK before which everything below `una` was acknowledged. Linux
    /// carries it out over a round trip (`tcp_enter_cwr`), beginning with the window before, and not with what is in flight
    /// (`tcp_init_cwnd_reduction`).
    fn reduce_without_loss(&mut self, una: u64, counters: &mut Counters, now: Time) {
        let cwnd = self.controller.cwnd();
        self.reduce(Cause::Ecn, una, counters, now);
        if let Repair::Sack { reduction, .. } = self.settings.repair
            && self.reduction(reduction) != WindowReduction::AtOnce
            && self.phase.is_open()
            && una < self.space.next
        {
            let window = RecoveryWindow::new(reduction, cwnd, self.bytes(cwnd), self.held(cwnd));
            self.phase = Phase::Cwr { until: self.space.next, window };
        }
    }

    /// The host's device queue has no room for the next segment: at most one reduction for each window of
    /// data.
    pub fn on_local_congestion(&mut self, counters: &mut Counters, now: Time) {
        if self.space.una > self.last_reduction.until {
            counters.stalls += 1;
            self.reduce_without_loss(self.space.una, counters, now);
            self.tell_state(now);
        }
    }

    // ---- Reductions ----

    /// Whether the last reduction already covers the loss of the oldest segment: the reduction came after the
    /// last transmission that can be known to be lost, that is, one that is a round trip old.
    pub(super) fn front_is_answered(&self, now: Time) -> bool {
        self.space.una < self.last_reduction.until
            && self.board.front().is_some_and(|front| {
                !front.was_sent_after(self.last_reduction.transmission)
                    || now.since(front.sent_at) < self.rtt.srtt()
            })
    }

    /// Marks all data sent so far as covered by a reduction.
    pub(super) fn note_reduction(&mut self, cause: Cause) {
        self.last_reduction = Reduction {
            cause,
            until: self.space.next,
            transmission: self.board.transmissions(),
            // RFC 3168, section 6.1.2: CWR is sent after every reduction, whatever its cause.
            untold: self.settings.ecn,
        };
    }

    /// A congestion event. The data in flight at the event is that beyond `una`; for a mark this is the left
    /// edge before the ACK. The caller ensures that there was no other event in this window of data.
    pub(super) fn reduce(&mut self, cause: Cause, una: u64, counters: &mut Counters, now: Time) {
        if self.settings.ignores_losses && cause == Cause::Loss {
            self.ignore_loss();
            return;
        }
        counters.reductions += 1;
        counters.loss_events += u64::from(cause == Cause::Loss);
        self.note_reduction(cause);
        let undo = matches!(self.settings.repair, Repair::Sack { undo: true, .. });
        self.begin_eifel(cause);
        self.undo.on_reduction(!self.phase.is_recovery(), undo && cause != Cause::Ecn);
        if cause != Cause::Ecn && self.undoes_as_linux() {
            self.undo.begin(self.space.una, self.board.retransmitted());
        }
        if self.governed.is_some() {
            self.tell_congestion(cause, now);
            return;
        }
        self.validate(now);
        let validated = self.is_validated();
        self.controller.on_congestion(&Congestion {
            now,
            cause,
            flight_size: self.flight_size(una),
            delivered: self.segments(self.delivered),
            min_rtt: self.rtt.min(),
        });
        self.reduce_unvalidated(cause, una, validated);
    }

    /// A loss for which an honest sender reduces its window: the window stays as it is, and so does the threshold if there is one.
    #[cold]
    fn ignore_loss(&mut self) {
        let untold = self.last_reduction.untold;
        self.note_reduction(Cause::Loss);
        self.last_reduction.untold = untold;
        if self.controller.ssthresh().is_infinite() {
            self.controller.restrict(self.controller.cwnd());
        }
    }

    /// Whether the next ACK is dubious whatever it says (Linux 2.4, net/ipv4/tcp_input.c, `tcp_ack_is_dubious`): a segment is
    /// missing, or a reduction or recovery is in progress or was the last round trip.
    #[inline]
    pub(super) fn is_dubious(&self) -> bool {
        let Phase::Open { dubious_until, .. } = self.phase else { return true };
        self.space.una < dubious_until || self.state() != State::Open
    }

    /// Moderates the window after an ACK that `was_dubious` by itself, or showed that a segment is missing (`tcp_try_to_open`, and
    /// `tcp_fastretrans_alert` after a timeout). A fast recovery and the response to a mark have windows of their own.
    pub(super) fn moderate_if_dubious(&mut self, was_dubious: bool) {
        match self.state() {
            State::Open if !was_dubious => {}
            State::Open | State::Disorder | State::Loss => self.moderate(),
            State::Recovery | State::Cwr => {}
        }
    }

    /// Limits the window to what is in flight, and the segments that an ACK may release at once.
    pub(super) fn moderate(&mut self) {
        self.controller.moderate(self.segments(self.board.pipe()) + MAX_BURST);
    }

    /// Undoes the last reduction; `unmarks` says whether what was lost is so no longer.
    #[inline(never)]
    pub(super) fn undo_reduction(&mut self, unmarks: bool, counters: &mut Counters, now: Time) {
        counters.undos += 1;
        self.undo.disarm();
        (self.frto, self.eifel.examined) = (None, None);
        self.controller.undo(self.settings.undo, now);
        self.validate_undo();
        self.note_undo();
        self.rtt.forget_back_off();
        if let Some(rack) = &mut self.rack {
            rack.examine_again();
        }
        if unmarks && self.rack.is_some() {
            // Linux removes what it marks from the list that it examines (`tcp_rack_detect_loss`), but not at a timeout.
            self.board.nothing_is_overdue(!self.undoes_as_linux() || self.phase.is_restart());
        } else if unmarks {
            self.board.nothing_is_lost();
        }
        self.timer.front_is_due = false;
        self.phase = Phase::OPEN;
        // Twice ssthresh may be more than the window ever was: Linux 2.4 moderates it at every undo.
        if self.settings.moderate || self.settings.undo == Undo::TwiceSsthresh {
            self.moderate();
        }
        // A loss that is detected after the undo is a separate congestion event.
        self.last_reduction.until = self.space.una;
    }
}
