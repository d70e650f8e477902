//! The sender's settings: those of the stack, and the options both ends agreed on. Fixed once the connection
//! is open.

use elephan_cc::Undo;
use elephan_units::Time;

use crate::config::{AfterIdle, ByteCounting, Config, Recovery, SsthreshBase, WindowReduction};

/// A tick of the clock of segments in a kernel.
const MICROSECOND: Time = Time::from_micros(1);

/// The sender's settings.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Settings {
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// Maximum number of segments sent back to back for each ACK.
    pub burst_limit: u32,
    /// What a kernel's coarse timers add to those of RACK and of tail loss probes.
    pub timer_margin: Time,
    /// How much the window grows for an ACK.
    pub byte_counting: ByteCounting,
    /// How losses are detected and repaired.
    pub repair: Repair,
    /// Whether each of the first two duplicate ACKs allows a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether dubious ACKs limit `cwnd` to the packets in flight.
    pub moderate: bool,
    /// Whether plain ACKs may need more than the fast path: `cwnd` is moderated or validated, duplicate ACKs count as delivered
    /// segments, or there is a governor.
    pub is_particular: bool,
    /// Whether a loss found during a recovery reduces the window again.
    pub reduce_again: bool,
    /// What an undo restores.
    pub undo: Undo,
    /// Whether Standard TCP halves the window at a congestion event, instead of the data in flight.
    pub halves_cwnd: bool,
    /// What happens to the window after an idle time.
    pub after_idle: AfterIdle,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Whether spurious timeouts are detected by F-RTO.
    pub frto: bool,
    /// Whether spurious retransmissions are detected by timestamps.
    pub eifel: bool,
    /// Whether both ends use ECN.
    pub ecn: bool,
    /// Whether a loss is repaired and not answered.
    pub ignores_losses: bool,
    /// The restart window after an idle period, in segments.
    pub initial_window: u32,
}

/// How losses are detected and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Fast retransmit, then slow start from one segment.
    Tahoe,
    /// Fast recovery, until the first ACK of new data.
    Reno,
    /// Fast recovery, until the whole window at the loss is acknowledged.
    NewReno,
    /// Fast recovery with selective acknowledgments.
    Sack {
        /// Whether forward acknowledgment is used: all holes far enough below the highest block are lost.
        fack: bool,
        /// Whether reductions that D-SACK shows to have been spurious are undone.
        undo: bool,
        /// How the window is reduced.
        reduction: WindowReduction,
    },
}

impl Settings {
    /// The settings of a stack, before the handshake.
    pub fn new(config: &Config) -> Self {
        Self {
            mss: config.mss(),
            repair: Repair::new(config),
            byte_counting: config.byte_counting,
            limited_transmit: config.limited_transmit,
            moderate: config.moderate_cwnd,
            is_particular: config.moderate_cwnd
                || config.byte_counting == ByteCounting::Delivered
                || config.after_idle == AfterIdle::Validate,
            reduce_again: config.reduce_again,
            undo: config.undo,
            halves_cwnd: config.ssthresh_base == SsthreshBase::Cwnd,
            after_idle: config.after_idle,
            timestamps: config.timestamps,
            frto: config.frto,
            eifel: config.eifel,
            timer_margin: config.timer_margin,
            ecn: config.ecn,
            ignores_losses: config.misbehave.ignore_losses,
            burst_limit: config.burst_limit.unwrap_or(u32::MAX),
            initial_window: config.initial_window,
        }
    }

    /// In a recovery with selective acknowledgments the controller's window is the limit.
    pub fn leave_recovery_window(&mut self) {
        if let Repair::Sack { reduction, .. } = &mut self.repair {
            *reduction = WindowReduction::AtOnce;
        }
    }

    /// Number of full segments that `bytes` make.
    #[inline]
    pub fn segments(&self, bytes: u64) -> f64 {
        // The conversion of a signed number is one instruction.
        bytes.cast_signed() as f64 / f64::from(self.mss)
    }

    /// Whether timers and timestamps count ticks, as a kernel's.
    #[inline]
    pub fn is_coarse(&self) -> bool {
        self.timer_margin > Time::ZERO
    }

    /// A time on the clock of segments: a kernel's counts microseconds (Linux, `tcp_mstamp`).
    #[inline]
    pub fn clock(&self, time: Time) -> Time {
        if self.is_coarse() { Time::from_micros(time.picos() / MICROSECOND.picos()) } else { time }
    }

    /// The last moment at which that clock shows the same time.
    #[inline]
    pub fn clock_end(&self, now: Time) -> Time {
        if self.is_coarse() { self.clock(now) + MICROSECOND - Time::from_picos(1) } else { now }
    }

    /// Whether losses are repaired with selective acknowledgments.
    #[inline]
    pub fn sack(&self) -> bool {
        matches!(self.repair, Repair::Sack { .. })
    }
}

impl Repair {
    fn new(config: &Config) -> Self {
        match config.recovery {
            Recovery::Tahoe => Self::Tahoe,
            Recovery::Reno => Self::Reno,
            Recovery::NewReno => Self::NewReno,
            Recovery::Sack => {
                Self::Sack { fack: config.fack, undo: config.dsack, reduction: config.window_reduction }
            }
        }
    }
}
