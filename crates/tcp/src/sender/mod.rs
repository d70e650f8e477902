//! The sending half: what may be sent next, and what an acknowledgment means.
//!
//! The congestion controller owns `cwnd` and `ssthresh`. The sender owns sequence space, the
//! retransmission timer, when a congestion event happens (once for each window of data), and the
//! allowance on top of `cwnd` that a recovery grants. What it does at an acknowledgment is in
//! `acknowledge.rs`, at a loss in `recovery.rs`, at a chance to send in `transmit.rs`.

mod acknowledge;
mod halving;
mod pacing;
mod prr;
mod recovery;
mod rtt;
mod scoreboard;
mod transmit;

use elephan_cc::Controller;
use elephan_units::{Bytes, Time};

use crate::config::{ByteCounting, Config, Recovery};

use halving::Halving;
use pacing::Pacer;
use prr::Prr;
use recovery::{Phase, Undo};
use scoreboard::Scoreboard;

pub use rtt::{Rtt, TICK, ticks};

/// RFC 9293, section 3.8.3: give up after R2, at least 100 s. Linux's `tcp_retries2`: 15 timeouts in a row.
const MAX_TRIES: u8 = 15;

/// What an acknowledgment says, with offsets instead of sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment<'a> {
    /// Everything below was received.
    pub offset: u64,
    /// Bytes beyond `offset` that the peer admits.
    pub window: u64,
    /// Selectively acknowledged `[left, right)`; a D-SACK block comes first.
    pub blocks: &'a [(u64, u64)],
    /// Whether the segment carried data, and so is no duplicate ACK.
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
    /// Whether it ends what the application wrote.
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
    /// The peer's window.
    pub window: u64,
}

/// The sending half of an endpoint.
pub struct Sender {
    pub(crate) controller: Controller,
    board: Scoreboard,
    rtt: Rtt,
    mss: u32,
    /// Everything below is acknowledged.
    una: u64,
    /// The next new byte to send.
    next: u64,
    /// What the application wrote; never reached by an endless writer.
    written: u64,
    closed: bool,
    /// Right edge of the peer's window.
    window_edge: u64,
    send_buffer: u64,

    phase: Phase,
    /// What was sent before the last reduction, and so was answered by it: new data below this offset,
    /// and of what was sent again the transmissions up to this one.
    reduced_until: u64,
    reduced_at: u32,
    /// Consecutive duplicate ACKs.
    dupacks: u64,
    /// Where `next` was at the first of them: what limited transmit sent since is beyond.
    before_dupacks: Option<u64>,
    /// Without SACK, no fast retransmit while this is the cumulative acknowledgment: duplicates may answer
    /// what the repair that ended here sent again (RFC 6582, section 3.2, step 2).
    repaired_until: Option<u64>,
    /// Reno's and NewReno's inflation of `cwnd` during fast recovery, in segments.
    inflation: f64,
    /// The segment that fast retransmit sends whatever the window.
    retransmit_now: bool,
    /// Whether this recovery's rescue retransmission (RFC 6675, section 4, rule 4 of NextSeg) was used.
    rescued: bool,
    /// NewReno: whether this recovery saw its first partial ACK, the only one that restarts the timer.
    partial_seen: bool,
    prr: Option<Prr>,
    halving: Option<Halving>,
    undo: Undo,
    /// The next new segment carries CWR.
    cwr: bool,

    delivered: u64,
    round: u64,
    round_end: u64,
    /// `cwnd` kept data back when this offset was next to be sent.
    limited_at: Option<u64>,
    /// Without timestamps: no sample from what was sent before this offset (one for each flight).
    timed_from: u64,
    /// Segments sent since the last acknowledgment, for the burst limit.
    burst: u32,
    pacer: Option<Pacer>,
    last_sent: Option<Time>,
    /// The retransmission timer, or the persist timer where nothing is outstanding; `Time::MAX` when off.
    deadline: Time,
    /// Timeouts in a row without progress.
    tries: u8,
    /// A zero-window probe is due.
    probe: bool,

    recovery: Recovery,
    byte_counting: ByteCounting,
    fack: bool,
    limited_transmit: bool,
    moderate: bool,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    dsack: bool,
    burst_limit: u32,
    initial_window: u32,
    use_prr: bool,
    rate_halving: bool,
}

impl Sender {
    /// A sender for this stack and controller.
    pub fn new(config: &Config, controller: Controller) -> Self {
        Self {
            controller,
            board: Scoreboard::new(config.recovery == Recovery::Sack && config.lost_retransmission),
            rtt: Rtt::new(config.rto_min),
            mss: config.mss(),
            una: 0,
            next: 0,
            written: 0,
            closed: false,
            window_edge: 0,
            send_buffer: config.send_buffer.map_or(u64::MAX, Bytes::get),
            phase: Phase::Open,
            reduced_until: 0,
            reduced_at: 0,
            dupacks: 0,
            before_dupacks: None,
            repaired_until: None,
            inflation: 0.0,
            retransmit_now: false,
            rescued: false,
            partial_seen: false,
            prr: None,
            halving: None,
            undo: Undo::default(),
            cwr: false,
            delivered: 0,
            round: 0,
            round_end: 0,
            limited_at: None,
            timed_from: 0,
            burst: 0,
            pacer: config.pacing.then(Pacer::default),
            last_sent: None,
            deadline: Time::MAX,
            tries: 0,
            probe: false,
            recovery: config.recovery,
            byte_counting: config.byte_counting,
            fack: config.fack,
            limited_transmit: config.limited_transmit,
            moderate: config.moderate_cwnd,
            timestamps: config.timestamps,
            sack: config.recovery == Recovery::Sack,
            ecn: config.ecn,
            dsack: config.dsack,
            burst_limit: config.burst_limit.unwrap_or(u32::MAX),
            initial_window: config.initial_window,
            use_prr: config.prr,
            rate_halving: config.rate_halving,
        }
    }

    /// The handshake is under way, and this is agreed on.
    pub fn agree(&mut self, agreement: &Agreement) {
        self.mss = agreement.mss;
        self.sack = agreement.sack;
        if self.recovery == Recovery::Sack && !agreement.sack {
            self.recovery = Recovery::NewReno;
        }
        self.timestamps = agreement.timestamps;
        self.window_edge = agreement.window;
    }

    /// The handshake is over, after so many `tries`. `rtt` is its round-trip time, unless its SYN was
    /// sent more than once; `ecn` says whether both ends take part in it.
    pub fn establish(&mut self, rtt: Option<Time>, tries: u32, ecn: bool) {
        self.ecn = ecn;
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

    /// The round-trip estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The next new offset.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Everything below is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Offset of the right edge of the peer's window.
    pub fn window_edge(&self) -> u64 {
        self.window_edge
    }

    /// RFC 6675's pipe, in bytes.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }

    /// Segments outstanding up to `bytes` beyond the oldest, as if all were full.
    pub fn segments_below(&self, bytes: i32) -> u64 {
        u64::from(bytes.max(0).cast_unsigned().div_ceil(self.mss)).min(self.board.len())
    }

    /// Segments that are lost and were not sent again since.
    pub fn waiting(&self) -> u64 {
        self.board.waiting()
    }

    /// Whether a loss is being repaired.
    pub fn in_recovery(&self) -> bool {
        self.phase != Phase::Open
    }

    /// The application has `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// The application writes no more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the application has closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Cuts what was written to what was sent, and closes: an endless writer stops.
    pub fn stop(&mut self) {
        self.written = self.next.min(self.written);
        self.closed = true;
    }

    /// Whether everything written is acknowledged, and the FIN where there was one.
    pub fn is_finished(&self) -> bool {
        self.una >= self.written.saturating_add(u64::from(self.closed))
    }

    /// Whether so many timeouts in a row brought no progress that the peer must be gone.
    pub fn is_hopeless(&self) -> bool {
        self.tries > MAX_TRIES
    }

    /// When [`Sender::on_timer`] is due, or pacing lets the next segment go; `Time::MAX` for never.
    #[inline]
    pub fn deadline(&self) -> Time {
        match &self.pacer {
            Some(pacer) if self.may_send_something() => self.deadline.min(pacer.next()),
            _ => self.deadline,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.mss)
    }

    /// Payload bytes and FIN not yet acknowledged.
    fn outstanding(&self) -> u64 {
        self.next - self.una
    }
}
