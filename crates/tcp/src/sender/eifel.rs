//! The Eifel algorithm: the echoed timestamp of the first ACK after a retransmission tells which transmission
//! arrived (RFC 3522). If it was the original, the timeout or the fast retransmit was spurious, and is undone
//! (RFC 4015).
//!
//! Linux compares with the first retransmission of a recovery too (net/ipv4/tcp_input.c, `tcp_packet_delayed`),
//! also at later ACKs of the recovery, and leaves the retransmission timer as it is.

use elephan_cc::Cause;
use elephan_units::Time;

use super::Sender;
use super::rtt::ticks;

/// A reduction that may prove spurious.
#[derive(Clone, Copy, Debug)]
pub struct Eifel {
    /// Whether the timer caused it.
    timeout: bool,
    /// RetransmitTS: the timestamp of the first retransmission.
    stamp: Option<u32>,
}

impl Sender {
    /// The window was reduced. Only the first reduction of a recovery is examined.
    pub(super) fn begin_eifel(&mut self, cause: Cause) {
        let begins = self.settings.eifel && self.phase.is_open() && cause != Cause::Ecn;
        self.eifel = begins.then_some(Eifel { timeout: cause == Cause::Timeout, stamp: None });
    }

    /// A segment is retransmitted.
    pub(super) fn note_retransmission(&mut self, now: Time) {
        if let Some(Eifel { stamp: stamp @ None, .. }) = &mut self.eifel {
            *stamp = Some(ticks(now));
        }
    }

    /// Whether an ACK that moved the left edge shows that the last reduction was spurious: it echoes an older
    /// timestamp than that of the retransmission.
    #[inline(never)]
    pub(super) fn eifel_finds_spurious(&mut self, echoed: Option<u32>) -> bool {
        let Some(Eifel { timeout, stamp }) = self.eifel.take() else { return false };
        let (Some(stamp), Some(echo)) = (stamp, echoed.filter(|&echo| echo > 0)) else { return false };
        let spurious = echo.wrapping_sub(stamp).cast_signed() < 0;
        if spurious && timeout {
            self.rtt.was_too_small();
        }
        spurious
    }
}
