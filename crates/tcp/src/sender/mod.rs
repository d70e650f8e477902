//! The sending half: selects what to send next, and processes acknowledgments.
//!
//! The congestion controller owns `cwnd` and `ssthresh`. The sender owns the sequence space, the
//! retransmission timer, the decision when a congestion event happens (once for each window of data), and the
//! allowance on top of `cwnd` that a recovery grants. Acknowledgments are processed in `acknowledge.rs`,
//! losses in `recovery.rs`, timer expiry in `timer.rs`, and transmission in `transmit.rs`. The state of a
//! recovery is in `phase.rs`. Loss detection by time is in `rack.rs`,
//! probes for a lost tail are in `tlp.rs`. `frto.rs` and `eifel.rs` find reductions that were spurious, besides
//! D-SACK (`undo.rs`).
//! Whether the application uses the window is in `validation.rs`, and how far it may grow then in `max_flight.rs`.

mod acknowledge;
mod eifel;
mod frto;
mod governed;
mod halving;
mod max_flight;
mod pacing;
mod phase;
mod prr;
mod rack;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod settings;
mod space;
mod super_segment;
mod timer;
mod tlp;
mod transmit;
mod undo;
mod validation;

use std::num::NonZero;

use elephan_cc::governor::Governor;
use elephan_cc::{Cause, Controller};
use elephan_units::{Bytes, Time};

use crate::config::{AfterIdle, BurstSize};
use crate::stack::Stack;

use eifel::Eifel;
use frto::Frto;
use governed::Governed;
use pacing::Pacer;
use phase::Phase;
use rack::Rack;
use scoreboard::Scoreboard;
use settings::{Repair, Settings};
use space::SendSpace;
use timer::Timer;
use tlp::Tlp;
use undo::Undo;
use validation::Underuse;

pub use rtt::{Rtt, TICK, ticks};
pub use timer::in_wheel;

/// What an acknowledgment says, with offsets instead of sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment<'a> {
    /// Everything below this was received.
    pub offset: u64,
    /// The peer's window: bytes that it accepts beyond `offset`.
    pub window: u64,
    /// Selectively acknowledged ranges `[left, right)`; a D-SACK block comes first.
    pub blocks: &'a [(u64, u64)],
    /// Whether the segment carried data, and so is not a duplicate ACK.
    pub has_data: bool,
    /// Whether it echoed a congestion mark.
    pub ece: bool,
    /// The echoed timestamp, in ticks.
    pub echoed: Option<u32>,
}

/// A data segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Offset of its first byte.
    pub offset: u64,
    /// Payload bytes.
    pub len: u16,
    /// Whether it carries the FIN.
    pub fin: bool,
    /// Whether it ends an application write.
    pub push: bool,
    /// Whether it was sent before.
    pub again: bool,
    /// Whether it tells the peer that the window was reduced (RFC 3168).
    pub cwr: bool,
}

/// What both ends agreed on in the handshake.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    /// Payload of a full segment.
    pub mss: u32,
    /// Selective acknowledgments.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// The peer's receive window.
    pub window: u64,
}

/// The sending half of an endpoint. What an ACK touches while nothing is missing comes first.
#[repr(C)]
pub struct Sender {
    space: SendSpace,
    usage: Usage,
    round: Round,
    /// Payload bytes known to have arrived since the connection began.
    delivered: u64,
    /// Without timestamps: data sent before this offset gives no RTT sample (one for each flight).
    timed_from: u64,
    /// When a segment was last sent; `Time::MAX` before the first.
    last_sent: Time,
    /// None where an algorithm of ours sets the window.
    governed: Option<Box<Governed>>,
    pacer: Option<Box<Pacer>>,
    /// Segments sent since the last acknowledgment or timer, for the burst limit; [`super_segment::DEFERRED`] where new data waits
    /// for the next of these.
    burst: u32,
    eifel: Eifel,
    rtt: Rtt,
    timer: Timer,
    pub(crate) controller: Controller,
    settings: Settings,
    board: Scoreboard,
    phase: Phase,
    /// Consecutive duplicate ACKs; none since the left edge moved or a timeout marked everything lost.
    duplicates: Option<Duplicates>,
    last_reduction: Reduction,
    undo: Undo,
    rack: Option<Box<Rack>>,
    /// None where no probes are sent.
    tlp: Option<Box<Tlp>>,
    frto: Option<Frto>,
    /// None where there are no rules for a window that the application does not fill, but that it does not grow.
    underuse: Option<Box<Underuse>>,
}

/// Consecutive duplicate ACKs.
#[derive(Clone, Copy, Debug)]
struct Duplicates {
    /// One or more, so that none takes no room of its own.
    count: NonZero<u64>,
    /// The next offset to be sent when the first of them arrived; data that limited transmit sent since lies
    /// beyond it.
    next: u64,
}

/// A reduction, and which transmissions preceded it.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// What it answered.
    cause: Cause,
    /// New data below this offset was sent before the reduction.
    until: u64,
    /// Retransmissions up to this transmission number were sent before the reduction.
    transmission: u32,
    /// The next new segment must notify the peer of the reduction (CWR).
    untold: bool,
}

/// How much of the window was used since the beginning of a round trip (RFC 7661, section 4.3, in the form of
/// Linux, `tcp_cwnd_validate`): the maximum counts, because what is in flight when an ACK arrives may be little.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Whether `cwnd` was the limit.
    limited: bool,
    /// Largest number of outstanding bytes.
    outstanding: u64,
    /// The next round trip begins when this is acknowledged.
    until: u64,
}

/// A round trip: from the transmission of a segment to its acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Number of completed round trips.
    number: u64,
    /// The current round trip ends when this is acknowledged.
    end: u64,
}

impl Sender {
    /// A sender of this stack. Random numbers of a governor come from `seed`.
    pub fn new(stack: &Stack, seed: u64) -> Self {
        let Stack { config, controller, .. } = stack;
        let mut settings = Settings::new(config);
        if controller.governs_recovery() || settings.ignores_losses {
            settings.leave_recovery_window();
        }
        let governor = controller.governor();
        settings.is_particular |= governor.is_some();
        let validates = config.after_idle == AfterIdle::Validate;
        let pacer = if config.pacing || config.burst != BurstSize::Segments(1) {
            Some(Pacer::new(config))
        } else {
            // Segments that are paced are sent one by one, as those have to be that are sampled.
            (governor.is_some_and(Governor::needs_rate) || validates || controller.paces_start())
                .then_some(Pacer::AT_ONCE)
        };
        let mut board = Scoreboard::new(settings.sack() && (config.lost_retransmission || config.rack));
        if governor.is_some_and(Governor::needs_rate) {
            board.keep_found();
        }
        Self {
            controller: controller.fresh(seed),
            settings,
            space: SendSpace::new(
                config.send_buffer.map_or(u64::MAX, Bytes::get),
                config.send_buffer_tuning,
                config.unsent.map(Bytes::get),
            ),
            board,
            rtt: Rtt::new(config.rto_min, config.rto_variance_min, config.is_coarse()),
            timer: Timer::new(),
            phase: Phase::OPEN,
            duplicates: None,
            last_reduction: Reduction { cause: Cause::Loss, until: 0, transmission: 0, untold: false },
            undo: Undo::default(),
            rack: (settings.sack() && config.rack).then(|| Box::new(Rack::new())),
            tlp: (settings.sack() && config.tlp).then(Box::default),
            frto: None,
            eifel: Eifel::default(),
            delivered: 0,
            round: Round { number: 0, end: 0 },
            usage: Usage { limited: false, outstanding: 0, until: 0 },
            timed_from: 0,
            burst: 0,
            pacer: pacer.map(Box::new),
            last_sent: Time::MAX,
            governed: controller.governor().map(|governor| Box::new(Governed::new(governor))),
            underuse: Underuse::new(config).map(Box::new),
        }
    }

    /// The handshake is in progress; these are the options agreed on.
    pub fn agree(&mut self, agreement: &Agreement) {
        self.settings.mss = agreement.mss;
        if !agreement.sack && self.settings.sack() {
            self.settings.repair = Repair::NewReno;
            (self.rack, self.tlp) = (None, None);
        }
        self.settings.timestamps = agreement.timestamps;
        self.settings.eifel &= agreement.timestamps;
        self.space.open(agreement.window);
    }

    /// The window that the peer offers with the last segment of the handshake, in bytes.
    pub fn set_window(&mut self, window: u64) {
        self.space.open(window);
    }

    /// The handshake is complete, after `tries` attempts. `rtt` is its round-trip time, unless its SYN was
    /// sent more than once; `ecn` says whether both ends use ECN.
    pub fn establish(&mut self, rtt: Option<Time>, tries: u32, ecn: bool) {
        self.settings.ecn = ecn;
        match rtt {
            Some(rtt) => self.rtt.sample(rtt),
            None => self.rtt.syn_was_lost(),
        }
        if tries > 2 {
            // RFC 5681, section 3.1, asks for one segment after a lost SYN; RFC 6928, section 2, only
            // after more than one retransmission, because one is often spurious.
            self.controller.moderate(1.0);
        }
    }

    /// The send buffer follows `cwnd`, if it is tuned.
    pub fn tune_buffer(&mut self) {
        if self.space.is_tuned() {
            self.space.tune_buffer(self.controller.cwnd(), self.settings.mss);
        }
    }

    /// An ACK was processed, and what the one before released is sent: the send buffer follows `cwnd`, and the application writes on.
    #[inline]
    pub fn make_room(&mut self) {
        if self.space.has_socket() {
            self.fill_socket();
        }
    }

    #[inline(never)]
    fn fill_socket(&mut self) {
        self.tune_buffer();
        self.space.refill(self.settings.mss);
    }

    /// Whether a sender that was usual still is after [`Sender::on_usual_ack`], as far as is known without a further look: data is
    /// outstanding, and no governor had a say.
    #[inline(always)]
    pub fn stays_usual(&self) -> bool {
        !self.board.is_empty() && self.governed.is_none()
    }

    /// The round-trip estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The send sequence space.
    pub fn space(&self) -> &SendSpace {
        &self.space
    }

    /// The congestion window, in segments. A proportional reduction has one of its own: Linux's `snd_cwnd` (`tcp_cwnd_reduction`).
    pub fn cwnd(&self) -> f64 {
        self.phase
            .proportional()
            .map_or_else(|| self.controller.cwnd(), |prr| self.segments(prr.cwnd(self.settings.mss)))
    }

    /// RFC 6675's pipe, in bytes.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }

    /// Number of segments outstanding up to `bytes` beyond the oldest, as if all were full-sized.
    pub fn segments_below(&self, bytes: i32) -> u64 {
        u64::from(bytes.max(0).cast_unsigned().div_ceil(self.settings.mss)).min(self.board.len())
    }

    /// Number of segments that are lost and were not retransmitted since.
    pub fn waiting(&self) -> u64 {
        self.board.waiting()
    }

    /// The segments in flight.
    pub(crate) fn board(&self) -> &Scoreboard {
        &self.board
    }

    /// Degree of reordering, in segments.
    pub fn reordering(&self) -> u64 {
        self.rack.as_ref().map_or(scoreboard::DUP_THRESH, |rack| rack.reordering)
    }

    /// Whether loss recovery is in progress.
    pub fn in_recovery(&self) -> bool {
        self.phase.is_recovery()
    }

    /// The application writes `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        self.note_app_limited();
        if self.burst == super_segment::DEFERRED {
            // What is written may fill a super-segment.
            self.burst = 0;
        }
        self.space.write(bytes);
    }

    /// The application closes: it writes no more.
    pub fn close(&mut self) {
        self.space.closed = true;
    }

    /// Discards data that was written but not sent, and closes: this stops an endless writer.
    pub fn stop(&mut self) {
        self.space.stop();
    }

    /// All state but that of the controller, for tests that compare.
    #[cfg(test)]
    pub(crate) fn describe(&self) -> String {
        let Self { controller: _, settings, space, board, rtt, timer, phase, duplicates, .. } = self;
        let board = board.recorded_all();
        let Self { last_reduction, undo, rack, tlp, frto, eifel, delivered, round, usage, .. } = self;
        let Self { timed_from, burst, pacer, last_sent, governed, underuse, .. } = self;
        format!(
            "{:?} {:?} {:?}",
            (settings, space, board, rtt, timer, phase, duplicates),
            (last_reduction, undo, rack, tlp, frto, eifel, delivered, round, usage),
            (timed_from, burst, pacer, last_sent, governed, underuse)
        )
    }

    fn bytes(&self, segments: f64) -> u64 {
        (segments * f64::from(self.settings.mss)) as u64
    }

    fn segments(&self, bytes: u64) -> f64 {
        self.settings.segments(bytes)
    }
}
