//! F-RTO (RFC 5682): whether a timeout was spurious shows in the two ACKs that follow the retransmission of
//! the first segment, if new data is sent in place of further retransmissions after the first of them.
//!
//! With SACK this is the RFC's section 3, without it section 2. Linux differs in four points (net/ipv4/tcp_input.c,
//! `tcp_process_loss`, `tcp_enter_loss`): the first ACK that shows the arrival of a segment sent once decides already,
//! without new data, and with SACK also one that covers the retransmission; a timeout that follows another is
//! examined too; the window limits the new data; and it stays what it is where the timeout was needed. With
//! `undo = "windows"` this module has them all.

use elephan_units::Time;

use super::scoreboard::Delivered;
use super::{Sender, Transmission};

/// RFC 5682, section 2.1, step 3a: the window of a timeout that was not spurious, in segments.
const WINDOW_AFTER_LOSS: f64 = 3.0;
/// Step 2b: the number of new segments.
const NEW_SEGMENTS: u8 = 2;

/// The step of the algorithm.
#[derive(Clone, Copy, Debug)]
pub enum Frto {
    /// Step 2: the first segment was retransmitted.
    Retransmitted {
        /// The next offset to be sent at the timeout.
        recover: u64,
    },
    /// Step 3: new data is sent instead of further retransmissions.
    SendingNew {
        /// The next offset to be sent at the timeout.
        recover: u64,
        /// Number of new segments that may still be sent.
        left: u8,
    },
}

impl Sender {
    /// A timeout: step 1. `may_be_spurious` says whether it is to be examined.
    pub(super) fn begin_frto(&mut self, may_be_spurious: bool) {
        let begins = self.settings.frto && may_be_spurious;
        self.frto = begins.then_some(Frto::Retransmitted { recover: self.space.next });
    }

    /// Whether an ACK shows that the timeout was spurious. `duplicate` says whether it is a duplicate ACK, and
    /// `reported` whether it reports a duplicate segment.
    #[inline(never)]
    pub(super) fn frto_finds_spurious(
        &mut self,
        advanced: bool,
        duplicate: bool,
        reported: bool,
        delivered: &Delivered,
    ) -> bool {
        match self.frto {
            Some(_) if !self.phase.is_restart() => self.frto = None,
            // Without SACK nothing tells which of the acknowledged segments the retransmission let arrive.
            Some(Frto::Retransmitted { recover } | Frto::SendingNew { recover, .. })
                if self.undoes_as_linux()
                    && delivered.lowest < recover
                    && (self.settings.sack() || delivered.ambiguous.is_none()) =>
            {
                return true;
            }
            Some(Frto::Retransmitted { recover }) if advanced => {
                let next = Frto::SendingNew { recover, left: NEW_SEGMENTS };
                self.frto = (self.space.una < recover && self.may_send_new()).then_some(next);
            }
            // Section 3: with SACK, duplicate ACKs that come before are no sign.
            Some(Frto::Retransmitted { .. }) if duplicate && !self.settings.sack() => self.frto = None,
            Some(Frto::SendingNew { recover, .. }) if advanced || duplicate => {
                self.frto = None;
                // Step 3b: data that was sent once, before the timeout, has arrived.
                if !reported && delivered.lowest < recover {
                    return true;
                }
                if !self.undoes_as_linux() {
                    self.controller.moderate(WINDOW_AFTER_LOSS);
                }
                // Without SACK the pipe does not show that one of the new segments has left it.
                self.timer.front_is_due = !advanced && !self.settings.sack();
            }
            _ => {}
        }
        false
    }

    /// Whether F-RTO decides what is sent, and if so, whether new data may be sent.
    #[inline]
    pub(super) fn frto_sends_new(&self) -> Option<bool> {
        match self.frto? {
            Frto::Retransmitted { .. } => None,
            Frto::SendingNew { .. } if self.undoes_as_linux() => {
                Some(self.may_send_new() && self.window_admits(u64::from(self.settings.mss)))
            }
            Frto::SendingNew { left, .. } => Some(left > 0 && self.may_send_new()),
        }
    }

    /// Step 2b: new data, regardless of the window, if it is not that which limits it.
    pub(super) fn poll_frto(&mut self, now: Time) -> Option<Transmission> {
        let Some(Frto::SendingNew { left, .. }) = &mut self.frto else { return None };
        *left = left.saturating_sub(1);
        let (len, fin) = self.next_new()?;
        Some(self.send_new(len, fin, now))
    }
}
