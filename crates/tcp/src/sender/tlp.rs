//! Tail loss probes (RFC 8985, section 7): where the end of a flight is lost, no later segment shows it. After
//! two round trips without an ACK one segment is sent as a probe, and its ACK lets RACK find what is lost.

use elephan_cc::Cause;
use elephan_cc::governor::Event;
use elephan_units::Time;

use super::acknowledge::Before;
use super::{Sender, Transmission};
use crate::report::Counters;

/// TLP.max_ack_delay (section 7.1): what a single segment's ACK may be delayed by. Linux adds its smallest
/// RTO, which has the same value (`tcp_schedule_loss_probe`).
const MAX_ACK_DELAY: Time = Time::from_millis(200);
/// Section 7.2: the probe timeout before the first round-trip time.
const INITIAL_PTO: Time = Time::from_secs(1);

/// The state of tail loss probes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tlp {
    /// A probe is to be sent now, regardless of the window.
    due: bool,
    /// The probe that awaits its ACK.
    probe: Option<Probe>,
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// TLP.end_seq: the next offset to be sent after it.
    end: u64,
    /// TLP.is_retrans.
    again: bool,
}

impl Sender {
    /// New data was sent, or an ACK delivered data (section 7.2): (re)starts the probe timer. It does not run while a
    /// probe awaits its ACK, and when other timers are in charge: in a recovery, or where segments were
    /// selectively acknowledged.
    ///
    /// Where `sent` data restarts it, a kernel counts the retransmission timeout, which the probe is not to exceed, from the last
    /// transmission of the oldest segment (Linux, `tcp_rto_delta_us`).
    #[inline]
    pub(super) fn schedule_probe(&mut self, sent: bool, now: Time) {
        let Some(tlp) = &mut self.tlp else { return };
        tlp.due = false;
        self.timer.stop_loss_probe();
        if tlp.probe.is_some() || self.phase.is_recovery() || self.board.has_sacked() || self.board.is_empty()
        {
            return;
        }
        let pto = match (self.rtt.srtt(), self.board.len()) {
            (Time::ZERO, _) => INITIAL_PTO,
            (srtt, 1) => srtt * 2 + MAX_ACK_DELAY,
            (srtt, _) => srtt * 2 + self.settings.timer_margin,
        };
        let left = match self.board.front() {
            Some(oldest) if sent && self.settings.is_coarse() => (oldest.sent_at + self.rtt.rto()).since(now),
            _ => Time::ZERO,
        };
        let due = self.expiry(if left > Time::ZERO { pto.min(left) } else { pto }, now);
        self.timer.set_loss_probe(due);
    }

    /// The probe timer has run out (section 7.3). The retransmission timer restarts, whether or not a probe
    /// can be sent.
    pub(super) fn on_probe_timer(&mut self, now: Time) {
        self.timer.stop_loss_probe();
        self.burst = 0;
        self.start_timer(now);
        if let Some(tlp) = &mut self.tlp {
            tlp.due = true;
        }
    }

    /// Whether it is open whether a probe repaired a loss.
    #[inline]
    pub(super) fn awaits_probe_ack(&self) -> bool {
        self.tlp.as_ref().is_some_and(|tlp| tlp.probe.is_some())
    }

    /// Whether a probe is to be sent now.
    #[inline]
    pub(super) fn is_probe_due(&self) -> bool {
        self.tlp.as_ref().is_some_and(|tlp| tlp.due)
    }

    /// The probe: new data if the peer's window has room, otherwise the last segment again.
    #[inline(never)]
    pub(super) fn poll_probe(&mut self, now: Time) -> Option<Transmission> {
        self.tlp.as_mut()?.due = false;
        let transmission = match self.space.next_new(self.settings.mss) {
            Some((len, fin)) if self.space.has_room(u64::from(len)) => self.send_new(len, fin, now),
            _ => {
                let id = self.board.last_unknown()?;
                // In Linux a probe is no retransmission of a recovery (`__tcp_retransmit_skb`).
                let kept = (self.undo, self.eifel);
                let transmission = self.retransmit(id, now);
                if self.undoes_as_linux() {
                    (self.undo, self.eifel) = kept;
                }
                transmission
            }
        };
        let probe = Probe { end: self.space.next, again: transmission.again };
        self.tlp.as_mut()?.probe = Some(probe);
        self.timer.stop_loss_probe();
        Some(transmission)
    }

    /// Reacts to a loss that the probe has repaired (section 7.4): what the probe carried was lost, unless the
    /// peer reports it as a duplicate. `reported` says whether the ACK's first block is such a report, and
    /// `duplicate` whether the ACK reports nothing new.
    #[inline(never)]
    pub(super) fn take_probe_ack(
        &mut self,
        blocks: &[(u64, u64)],
        reported: bool,
        duplicate: bool,
        before: Before,
        counters: &mut Counters,
        now: Time,
    ) {
        let Some(probe) = self.tlp.as_ref().and_then(|tlp| tlp.probe) else { return };
        if self.phase.is_recovery() {
            // The recovery's reduction is the reaction.
            self.forget_probe();
            return;
        }
        if self.space.una < probe.end {
            return;
        }
        let spurious = reported && blocks.first().is_some_and(|block| block.1 == probe.end);
        if !probe.again || spurious {
            self.forget_probe();
        } else if self.space.una > probe.end {
            self.forget_probe();
            self.reduce(Cause::Loss, before.una, counters, now);
            // The probe's ACK has shown that the original did not arrive.
            self.eifel.examined = None;
            self.undo.disarm();
            self.tell_event(Event::EndCwr, now);
        } else if duplicate {
            // The original and the probe arrived, at a peer without D-SACK.
            self.forget_probe();
        }
    }

    /// No ACK of a probe is awaited, and none is due: a recovery takes over.
    pub(super) fn forget_probe(&mut self) {
        if let Some(tlp) = &mut self.tlp {
            **tlp = Tlp::default();
        }
    }

    /// Whether the first of an ACK's blocks reports as a duplicate what only a probe retransmitted: this is no sign of reordering (Linux,
    /// `FLAG_DSACK_TLP`).
    pub(super) fn is_of_probe(&self, blocks: &[(u64, u64)]) -> bool {
        let probe = self.tlp.as_ref().and_then(|tlp| tlp.probe).filter(|probe| probe.again);
        probe.is_some_and(|probe| blocks.first().is_some_and(|block| block.1 == probe.end))
    }
}
