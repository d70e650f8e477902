//! The sender's loss recovery state, and what each kind of recovery keeps.

use super::halving::Halving;
use super::prr::Prr;
use crate::config::WindowReduction;

/// The sender's loss recovery state.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// No loss recovery is in progress.
    Open {
        /// Without SACK, no fast retransmit while this is the cumulative acknowledgment: duplicates may be
        /// responses to retransmissions of the recovery that ended here (RFC 6582, section 3.2, step 2).
        repaired_until: Option<u64>,
        /// Whether the last recovery was spurious may show until this is acknowledged.
        dubious_until: u64,
    },
    /// A mark, or a full queue of the host's own device, reduces the window over a round trip, and nothing is known to be
    /// lost: Linux's state CWR, for all but a window that is reduced at once.
    Cwr {
        /// It ends when something from here on is acknowledged.
        until: u64,
        /// The window meanwhile.
        window: RecoveryWindow,
    },
    /// Fast recovery with selective acknowledgments (RFC 6675).
    Sack(SackRecovery),
    /// Fast recovery by duplicate ACKs (RFC 5681, section 3.2; RFC 6582).
    Reno(RenoRecovery),
    /// All outstanding data was marked lost, after a timeout or as in Tahoe: slow start from one segment,
    /// until everything below `recover` is acknowledged.
    Restart { recover: u64 },
}

/// A fast recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug)]
pub struct SackRecovery {
    /// The recovery ends when everything below this is acknowledged.
    pub recover: u64,
    /// The first lost segment is to be sent now, regardless of the window.
    pub retransmit_now: bool,
    /// Whether the last ACK showed that an original had arrived late: until the next one only new data is sent.
    pub only_new: bool,
    /// Whether the rescue retransmission (RFC 6675, section 4, rule 4 of NextSeg) was used.
    pub rescued: bool,
    /// The window of the recovery.
    pub window: RecoveryWindow,
}

/// The window of a recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug)]
pub enum RecoveryWindow {
    /// The controller's window: `cwnd` was reduced at once.
    Controller,
    /// Sending in proportion to delivery.
    Proportional(Prr),
    /// A separate window, which decreases with the ACKs.
    Halving(Halving),
}

/// A fast recovery by duplicate ACKs.
#[derive(Clone, Copy, Debug)]
pub struct RenoRecovery {
    /// The recovery ends when everything below this is acknowledged.
    pub recover: u64,
    /// The oldest segment is to be sent now, regardless of the window.
    pub retransmit_now: bool,
    /// Inflation of `cwnd` for segments that have left the network, in segments.
    pub inflation: f64,
    /// Whether the first partial ACK has arrived, the only one that restarts the timer.
    pub partial_seen: bool,
}

impl Phase {
    /// No loss recovery is in progress, and none has just ended.
    pub const OPEN: Self = Self::Open { repaired_until: None, dubious_until: 0 };

    /// Whether neither a loss recovery nor a reduction over a round trip is in progress.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Whether a loss recovery is in progress.
    #[inline]
    pub fn is_recovery(&self) -> bool {
        !matches!(self, Self::Open { .. } | Self::Cwr { .. })
    }

    /// The state of a proportional reduction that is in progress.
    pub fn proportional(&self) -> Option<&Prr> {
        match self {
            Self::Cwr { window: RecoveryWindow::Proportional(prr), .. }
            | Self::Sack(SackRecovery { window: RecoveryWindow::Proportional(prr), .. }) => Some(prr),
            _ => None,
        }
    }

    /// The window of a reduction that is in progress.
    #[inline]
    pub fn window(&mut self) -> Option<&mut RecoveryWindow> {
        match self {
            Self::Cwr { window, .. } | Self::Sack(SackRecovery { window, .. }) => Some(window),
            Self::Open { .. } | Self::Reno(_) | Self::Restart { .. } => None,
        }
    }

    /// Where the fast recovery that is in progress ends.
    pub fn recover(&self) -> Option<u64> {
        match *self {
            Self::Sack(SackRecovery { recover, .. }) | Self::Reno(RenoRecovery { recover, .. }) => {
                Some(recover)
            }
            Self::Open { .. } | Self::Cwr { .. } | Self::Restart { .. } => None,
        }
    }

    /// Whether fast recovery is in progress.
    pub fn is_fast_recovery(&self) -> bool {
        matches!(self, Self::Sack(_) | Self::Reno(_))
    }

    /// Whether recovery in slow start is in progress.
    pub fn is_restart(&self) -> bool {
        matches!(self, Self::Restart { .. })
    }

    /// Whether a segment is to be sent now, regardless of the window.
    pub fn retransmits_now(&self) -> bool {
        match self {
            Self::Sack(SackRecovery { retransmit_now, .. })
            | Self::Reno(RenoRecovery { retransmit_now, .. }) => *retransmit_now,
            Self::Open { .. } | Self::Cwr { .. } | Self::Restart { .. } => false,
        }
    }
}

impl RecoveryWindow {
    /// A reduction begins with `flight` bytes in flight; `cwnd` was the window before, and `held` bytes are that of a proportional
    /// reduction until an ACK delivers something.
    pub fn new(reduction: WindowReduction, cwnd: f64, flight: u64, held: u64) -> Self {
        match reduction {
            WindowReduction::AtOnce => Self::Controller,
            WindowReduction::Prr | WindowReduction::PrrRfc6937 => {
                Self::Proportional(Prr::new(flight, held, reduction == WindowReduction::Prr))
            }
            WindowReduction::RateHalving => Self::Halving(Halving::new(cwnd)),
        }
    }
}

impl SackRecovery {
    /// A recovery begins at `next`.
    pub fn new(next: u64, window: RecoveryWindow) -> Self {
        Self { recover: next, retransmit_now: true, only_new: false, rescued: false, window }
    }

    /// The same after another reduction, when `next` was next to be sent and `pipe` bytes were in flight.
    /// Much of the outstanding data has arrived, and the data in flight is what the window limits.
    pub fn reduced(self, next: u64, reduction: WindowReduction, pipe: u64) -> Self {
        let window = match reduction {
            WindowReduction::Prr | WindowReduction::PrrRfc6937 => {
                RecoveryWindow::Proportional(Prr::new(pipe, pipe, reduction == WindowReduction::Prr))
            }
            WindowReduction::AtOnce | WindowReduction::RateHalving => self.window,
        };
        Self { recover: next, rescued: false, window, ..self }
    }

    /// A recovery that follows the slow start after a timeout: retransmissions wait for the window.
    pub fn after_restart(next: u64, reduction: WindowReduction, pipe: u64) -> Self {
        let recovery = Self { retransmit_now: false, ..Self::new(next, RecoveryWindow::Controller) };
        recovery.reduced(next, reduction, pipe)
    }
}
