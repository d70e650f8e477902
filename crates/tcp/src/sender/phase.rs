//! Where the sender stands between losses, and what each way of repairing one keeps.

use super::halving::Halving;
use super::prr::Prr;
use super::settings::Descent;

/// Where the sender stands between losses.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// No loss is being repaired.
    Open {
        /// Without SACK, no fast retransmit while this is the cumulative acknowledgment: duplicates may answer what the repair
        /// that ended here retransmitted (RFC 6582, section 3.2, step 2).
        repaired_until: Option<u64>,
    },
    /// Fast recovery with selective acknowledgments (RFC 6675).
    Sack(SackRecovery),
    /// Fast recovery by duplicate ACKs (RFC 5681, section 3.2; RFC 6582).
    Reno(RenoRecovery),
    /// Everything outstanding was given up, after a timeout or in Tahoe's way: slow start from one
    /// segment, until everything below `recover` is acknowledged.
    Restart { recover: u64 },
}

/// A fast recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug)]
pub struct SackRecovery {
    /// It ends when everything below is acknowledged.
    pub recover: u64,
    /// The first lost segment is to be sent now, whatever the window.
    pub retransmit_now: bool,
    /// Whether the rescue retransmission (RFC 6675, section 4, rule 4 of NextSeg) was used.
    pub rescued: bool,
    /// What may be in flight.
    pub window: RecoveryWindow,
}

/// The window of a recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug)]
pub enum RecoveryWindow {
    /// The controller's: `cwnd` came down at once.
    Controller,
    /// What was sent follows what is delivered.
    Proportional(Prr),
    /// A window of its own, which comes down with the ACKs.
    Halving(Halving),
}

/// A fast recovery by duplicate ACKs.
#[derive(Clone, Copy, Debug)]
pub struct RenoRecovery {
    /// It ends when everything below is acknowledged.
    pub recover: u64,
    /// The oldest segment is to be sent now, whatever the window.
    pub retransmit_now: bool,
    /// What is added to `cwnd` for segments that have left the network, in segments.
    pub inflation: f64,
    /// Whether the first partial ACK came, the only one that restarts the timer.
    pub partial_seen: bool,
}

impl Phase {
    /// No loss is being repaired, and none was just now.
    pub const OPEN: Self = Self::Open { repaired_until: None };

    /// Whether no loss is being repaired.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Whether a loss is being repaired in fast recovery.
    pub fn is_fast_recovery(&self) -> bool {
        matches!(self, Self::Sack(_) | Self::Reno(_))
    }

    /// Whether a loss is being repaired in slow start.
    pub fn is_restart(&self) -> bool {
        matches!(self, Self::Restart { .. })
    }

    /// Whether a segment is to be sent now, whatever the window.
    pub fn retransmits_now(&self) -> bool {
        match self {
            Self::Sack(SackRecovery { retransmit_now, .. })
            | Self::Reno(RenoRecovery { retransmit_now, .. }) => *retransmit_now,
            Self::Open { .. } | Self::Restart { .. } => false,
        }
    }
}

impl SackRecovery {
    /// A recovery begins at `next`, with `outstanding` bytes not acknowledged; `cwnd` was the window before.
    pub fn new(next: u64, descent: Descent, cwnd: f64, outstanding: u64) -> Self {
        let window = match descent {
            Descent::AtOnce => RecoveryWindow::Controller,
            Descent::Proportional => RecoveryWindow::Proportional(Prr::new(outstanding)),
            Descent::Halving => RecoveryWindow::Halving(Halving::new(cwnd)),
        };
        Self { recover: next, retransmit_now: true, rescued: false, window }
    }

    /// The same after another reduction, when `next` was next to be sent and `pipe` bytes were in flight: of what
    /// is outstanding, much has arrived, and what is in flight is what the window holds.
    pub fn reduced(self, next: u64, descent: Descent, pipe: u64) -> Self {
        let window = match descent {
            Descent::Proportional => RecoveryWindow::Proportional(Prr::new(pipe)),
            Descent::AtOnce | Descent::Halving => self.window,
        };
        Self { recover: next, rescued: false, window, ..self }
    }

    /// A recovery out of the slow start after a timeout: what is lost waits for the window.
    pub fn after_restart(next: u64, descent: Descent, pipe: u64) -> Self {
        let recovery =
            Self { recover: next, retransmit_now: false, rescued: false, window: RecoveryWindow::Controller };
        recovery.reduced(next, descent, pipe)
    }
}
