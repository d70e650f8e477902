//! The Eifel algorithm: the echoed timestamp of the first ACK after a retransmission tells which transmission
//! arrived (RFC 3522). If it was the original, the timeout or the fast retransmit was spurious, and is undone
//! (RFC 4015).
//!
//! Linux compares with the first retransmission of a recovery too (net/ipv4/tcp_input.c, `tcp_packet_delayed`),
//! also at later ACKs of the recovery, takes an ACK before any retransmission for one of an original, goes on where the timer runs
//! out in a recovery, and leaves that timer's estimate as it is; with `undo = "windows"` so does this module. Where a retransmission of an
//! earlier recovery is still in flight, it compares with the first of that one (`tcp_retrans_stamp_cleanup`), and so
//! does this module: its ACK has an older timestamp than the retransmissions of the new recovery, and says nothing of them.

use elephan_cc::Cause;
use elephan_units::Time;

use super::Sender;
use super::rtt::ticks;
use super::scoreboard::Record;

/// What is kept to find a spurious reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eifel {
    /// The cause of the reduction that may prove spurious.
    pub examined: Option<Cause>,
    /// RetransmitTS: the timestamp of the first retransmission.
    stamp: Option<u32>,
}

impl Sender {
    /// The window was reduced. Only the first reduction of a recovery is examined, but in Linux each (`tcp_init_undo`).
    pub(super) fn begin_eifel(&mut self, cause: Cause) {
        let is_first = self.phase.is_open() || self.undoes_as_linux();
        let begins = self.settings.eifel && is_first && cause != Cause::Ecn;
        self.eifel.examined = begins.then_some(cause);
        if begins && !self.has_retransmitted() {
            self.eifel.stamp = None;
        }
    }

    /// Whether a retransmission of an earlier recovery is in flight (`tcp_any_retrans_done`). A probe does not count.
    fn has_retransmitted(&self) -> bool {
        let front_was = self.board.front().is_some_and(Record::was_retransmitted);
        !self.awaits_probe_ack() && (front_was || self.board.retransmitted() > 0)
    }

    /// A segment is retransmitted.
    pub(super) fn note_retransmission(&mut self, now: Time) {
        self.eifel.stamp.get_or_insert(ticks(now));
    }

    /// Whether an ACK that moved the left edge shows that the last reduction was spurious: it echoes an older
    /// timestamp than that of the retransmission.
    #[inline(never)]
    pub(super) fn eifel_finds_spurious(&mut self, echoed: Option<u32>) -> bool {
        let Some(cause) = self.eifel.examined else { return false };
        let first_decides = !self.undoes_as_linux();
        if first_decides {
            self.eifel.examined = None;
        }
        let Some(stamp) = self.eifel.stamp else {
            // Linux: nothing was retransmitted yet, because something else holds it back, so that an original has arrived. Without
            // SACK this is not known at the end of a recovery.
            let is_partial = self.phase.recover().is_some_and(|recover| self.space.una < recover);
            return self.undoes_as_linux() && (self.settings.sack() || is_partial);
        };
        let Some(echo) = echoed.filter(|&echo| echo > 0) else { return false };
        let spurious = echo.wrapping_sub(stamp).cast_signed() < 0;
        if spurious && cause == Cause::Timeout && first_decides {
            self.rtt.was_too_small();
        }
        spurious
    }
}
