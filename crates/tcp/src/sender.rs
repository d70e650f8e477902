//! The sending half: what may be sent next, and what an acknowledgment means.
//!
//! The congestion controller owns `cwnd` and `ssthresh`. This file owns sequence space, the
//! retransmission timer, when a congestion event happens (once for each window of data), and the
//! allowance on top of `cwnd` that a recovery grants.

use elephan_cc::{Ack, Cause, Congestion, Controller};
use elephan_units::Time;

use crate::config::{ByteCounting, Config, Recovery};
use crate::endpoint::Counters;
use crate::pacing::Pacer;
use crate::prr::Prr;
use crate::rtt::Rtt;
use crate::scoreboard::{DUP_THRESH, Delivered, Record, Scoreboard};

/// Where the sender stands between losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss is being repaired.
    Open,
    /// Fast recovery, until everything below `recover` is acknowledged.
    Recovery { recover: u64 },
    /// Everything outstanding was given up, after a timeout or in Tahoe's way: slow start from one
    /// segment, until everything below `recover` is acknowledged.
    Restart { recover: u64 },
}

/// What an acknowledgment says, with offsets instead of sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgment<'a> {
    /// Everything below was received.
    pub offset: u64,
    /// Bytes beyond `offset` that the peer admits.
    pub window: u64,
    /// Selectively acknowledged `[left, right)`; a D-SACK block, which may lie below `offset`, comes first.
    pub blocks: &'a [(u64, u64)],
    /// Whether the segment carried data, and so is no duplicate ACK.
    pub has_data: bool,
    /// Whether it echoed a congestion mark.
    pub ece: bool,
    /// The echoed timestamp as a time, cut to its tick.
    pub echoed: Option<Time>,
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
    /// Whether it was sent before.
    pub again: bool,
    /// Whether it tells the peer that the window was reduced (RFC 3168).
    pub cwr: bool,
}

/// Undo of a reduction that D-SACK shows to have been spurious.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// Retransmissions of this episode that were not reported as duplicates.
    unreported: u32,
    /// Whether an episode is on its way.
    armed: bool,
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
    /// No second reduction for data below, nor for transmissions up to `reduced_at`.
    reduced_until: u64,
    reduced_at: u32,
    /// What was outstanding at the last loss or timeout ends here.
    last_recover: Option<u64>,
    /// Consecutive duplicate ACKs.
    dupacks: u64,
    /// Reno's and NewReno's inflation of `cwnd` during fast recovery, in segments.
    inflation: f64,
    /// The segment that fast retransmit sends whatever the window.
    retransmit_now: bool,
    /// Whether this recovery's rescue retransmission (RFC 6675, section 5, rule 4) was used.
    rescued: bool,
    /// NewReno: whether this recovery saw its first partial ACK, the only one that restarts the timer.
    partial_seen: bool,
    prr: Option<Prr>,
    undo: Undo,
    cwr: bool,

    delivered: u64,
    round: u64,
    round_end: u64,
    /// `cwnd` kept data back when this offset was next to be sent.
    limited_at: Option<u64>,
    /// Without timestamps: the one segment that is timed (Karn).
    timed_from: u64,
    /// Segments sent since the last acknowledgment, for the burst limit.
    burst: u32,
    pacer: Option<Pacer>,
    last_sent: Time,
    /// The retransmission timer, or the persist timer where nothing is outstanding; `Time::MAX` when off.
    deadline: Time,
    /// A zero-window probe is due.
    probe: bool,

    recovery: Recovery,
    byte_counting: ByteCounting,
    fack: bool,
    lost_retransmission: bool,
    limited_transmit: bool,
    moderate: bool,
    timestamps: bool,
    sack: bool,
    burst_limit: u32,
    initial_window: u32,
    use_prr: bool,
}

impl Sender {
    /// A sender for this stack and controller.
    pub fn new(config: &Config, controller: Controller) -> Self {
        Self {
            controller,
            board: Scoreboard::default(),
            rtt: Rtt::new(config.rto_min),
            mss: config.mss(),
            una: 0,
            next: 0,
            written: 0,
            closed: false,
            window_edge: 0,
            send_buffer: config.send_buffer.map_or(u64::MAX, elephan_units::Bytes::get),
            phase: Phase::Open,
            reduced_until: 0,
            reduced_at: 0,
            last_recover: None,
            dupacks: 0,
            inflation: 0.0,
            retransmit_now: false,
            rescued: false,
            partial_seen: false,
            prr: None,
            undo: Undo::default(),
            cwr: false,
            delivered: 0,
            round: 0,
            round_end: 0,
            limited_at: None,
            timed_from: 0,
            burst: 0,
            pacer: config.pacing.then(Pacer::default),
            last_sent: Time::ZERO,
            deadline: Time::MAX,
            probe: false,
            recovery: config.recovery,
            byte_counting: config.byte_counting,
            fack: config.fack,
            lost_retransmission: config.lost_retransmission,
            limited_transmit: config.limited_transmit,
            moderate: config.moderate_cwnd,
            timestamps: config.timestamps,
            sack: config.recovery == Recovery::Sack,
            burst_limit: config.burst_limit.unwrap_or(u32::MAX),
            initial_window: config.initial_window,
            use_prr: config.prr,
        }
    }

    /// The handshake agreed on these: payload of a full segment, SACK, timestamps, the peer's window.
    pub fn agree(&mut self, mss: u32, sack: bool, timestamps: bool, window: u64) {
        self.mss = mss;
        self.sack = sack && self.recovery == Recovery::Sack;
        if self.recovery == Recovery::Sack && !sack {
            self.recovery = Recovery::NewReno;
        }
        self.timestamps = timestamps;
        self.window_edge = window;
    }

    /// A round-trip time from the handshake.
    pub fn sample_rtt(&mut self, rtt: Time) {
        self.rtt.sample(rtt);
    }

    /// The round-trip estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// The next new offset.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Everything below is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// RFC 6675's pipe, in bytes.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
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

    /// When [`Sender::on_timer`] is due; `Time::MAX` where no timer runs.
    pub fn deadline(&self, now_blocked_by_pacing: bool) -> Time {
        match &self.pacer {
            Some(pacer) if now_blocked_by_pacing => self.deadline.min(pacer.next()),
            _ => self.deadline,
        }
    }

    /// Whether pacing alone holds back what could be sent.
    pub fn is_paced_out(&self) -> bool {
        self.pacer.is_some() && self.may_send_something()
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.mss)
    }

    /// Payload bytes and FIN not yet acknowledged.
    fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    // ---- Acknowledgments ----

    /// An acknowledgment arrived.
    pub fn on_ack(&mut self, ack: &Acknowledgment<'_>, counters: &mut Counters, now: Time) {
        if ack.offset > self.next {
            return;
        }
        self.burst = 0;
        let pipe_before = self.board.pipe();
        let una_before = self.una;
        let edge = ack.offset + ack.window;
        let window_changed = edge != self.window_edge && ack.offset == self.una;
        self.window_edge = self.window_edge.max(edge);

        let mut delivered = Delivered::default();
        let advanced = ack.offset > self.una;
        if advanced {
            self.una = ack.offset;
            self.board.acknowledge(ack.offset, &mut delivered);
            counters.bytes_acked += delivered.cumulative;
        }
        let duplicate_reported = self.sack && self.take_blocks(ack, una_before, &mut delivered);
        self.delivered += delivered.bytes;
        self.take_rtt(&delivered, ack.echoed, advanced, now);

        let pure_duplicate = !advanced
            && !ack.has_data
            && self.outstanding() > 0
            && !duplicate_reported
            && (!window_changed || delivered.bytes > 0);
        if advanced {
            self.dupacks = 0;
        } else if pure_duplicate && (!self.sack || delivered.bytes > 0) {
            self.dupacks += 1;
        }

        let was_open = self.phase == Phase::Open;
        self.update_phase(advanced, pure_duplicate, &delivered, pipe_before, counters, now);
        if ack.ece {
            self.on_ece(una_before, counters, now);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(delivered.bytes, self.board.pipe(), self.controller.ssthresh(), self.mss);
        }
        if delivered.bytes > 0 || advanced {
            self.tell_controller(&delivered, una_before, pipe_before, was_open, now);
        }
        if self.moderate && self.phase == Phase::Open && delivered.segments > DUP_THRESH {
            self.controller.moderate(self.segments(self.board.pipe()));
        }
        self.restart_timer(advanced, now);
    }

    /// Selective acknowledgments; returns whether the first block reported a duplicate (RFC 2883).
    fn take_blocks(&mut self, ack: &Acknowledgment<'_>, una_before: u64, delivered: &mut Delivered) -> bool {
        let mut blocks = ack.blocks;
        let mut duplicate_reported = false;
        if let Some(&(left, right)) = blocks.first() {
            let within_second = blocks.get(1).is_some_and(|&(l, r)| l <= left && right <= r);
            if right <= una_before.max(ack.offset) && left < ack.offset || within_second {
                duplicate_reported = true;
                let count = (right - left).div_ceil(u64::from(self.mss)).max(1);
                self.undo.unreported = self.undo.unreported.saturating_sub(count as u32);
                blocks = &blocks[1..];
            }
        }
        for &(left, right) in blocks {
            if right > self.una && right <= self.next {
                self.board.sack(left.max(self.una), right, self.mss, delivered);
            }
        }
        duplicate_reported
    }

    /// Karn: only what was sent once gives a sample, or what timestamps tell apart. The sample is the
    /// segment's own, so that it is exact; timestamps in milliseconds only say which transmission it was.
    fn take_rtt(&mut self, delivered: &Delivered, echoed: Option<Time>, advanced: bool, now: Time) {
        let sample = match (delivered.newest, delivered.ambiguous) {
            (Some((sent_at, _)), _) if self.timestamps => Some(now - sent_at),
            (Some((sent_at, _)), _) if self.una > self.timed_from => {
                self.timed_from = self.next;
                Some(now - sent_at)
            }
            (None, Some(sent_at)) if echoed.is_some_and(|echoed| echoed + TICK > sent_at) => {
                Some(now - sent_at)
            }
            _ => None,
        };
        if let Some(rtt) = sample {
            self.rtt.sample(rtt);
        } else if advanced && self.timestamps {
            self.rtt.progress();
        }
    }

    fn update_phase(
        &mut self,
        advanced: bool,
        pure_duplicate: bool,
        delivered: &Delivered,
        pipe_before: u64,
        counters: &mut Counters,
        now: Time,
    ) {
        if self.sack && (delivered.bytes > 0 || advanced) {
            self.board.detect_losses(self.fack);
            let lost_again =
                if self.lost_retransmission { self.board.detect_lost_retransmissions() } else { None };
            // RFC 5681, section 4.3: the loss of a retransmission is a second indication of congestion, where that
            // retransmission was sent after the last reduction.
            if lost_again.is_some_and(|sent| sent.wrapping_sub(self.reduced_at).cast_signed() > 0)
                && matches!(self.phase, Phase::Recovery { .. })
            {
                self.reduced_until = self.una;
                self.reduce(Cause::Loss, counters, now);
            }
        }
        if self.undo.armed && self.undo.unreported == 0 {
            self.undo(counters);
            return;
        }
        match self.phase {
            Phase::Open => {
                let lost = if self.sack { self.board.has_waiting() } else { self.dupacks >= DUP_THRESH };
                // RFC 6582, section 3.2, step 2: duplicates of what was outstanding at the last loss may come from its
                // retransmissions; they say nothing new.
                let told_before = !self.sack && self.last_recover.is_some_and(|recover| self.una <= recover);
                if lost && !told_before {
                    self.enter_recovery(pipe_before, counters, now);
                }
            }
            Phase::Recovery { recover } => {
                if self.una >= recover {
                    self.leave_recovery();
                } else if advanced && !self.sack {
                    self.on_partial_ack(delivered);
                } else if pure_duplicate && !self.sack {
                    self.inflation += 1.0;
                }
            }
            Phase::Restart { recover } => {
                if self.una >= recover {
                    self.leave_recovery();
                }
            }
        }
    }

    fn enter_recovery(&mut self, pipe_before: u64, counters: &mut Counters, now: Time) {
        self.reduce(Cause::Loss, counters, now);
        let recover = self.next;
        self.last_recover = Some(recover);
        self.rescued = false;
        self.partial_seen = false;
        match self.recovery {
            Recovery::Tahoe => {
                self.board.all_is_lost();
                self.controller.collapse();
                self.phase = Phase::Restart { recover };
            }
            Recovery::Reno | Recovery::NewReno => {
                self.board.front_is_lost();
                self.retransmit_now = true;
                // RFC 5681, section 3.2, step 3: the three segments that left the network.
                self.inflation = DUP_THRESH as f64;
                self.phase = Phase::Recovery { recover };
            }
            Recovery::Sack => {
                self.retransmit_now = true;
                self.prr = self.use_prr.then(|| Prr::new(pipe_before));
                self.phase = Phase::Recovery { recover };
            }
        }
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0.0;
        self.prr = None;
        self.retransmit_now = false;
    }

    /// New data, but not all of the window at the loss (RFC 6582, section 3.2, step 3).
    fn on_partial_ack(&mut self, delivered: &Delivered) {
        if self.recovery == Recovery::Reno {
            // RFC 2581 ends fast recovery at the first ACK of new data.
            self.leave_recovery();
            return;
        }
        self.board.front_is_lost();
        self.retransmit_now = true;
        let acked = self.segments(delivered.cumulative);
        self.inflation = (self.inflation - acked).max(-self.controller.cwnd() + 1.0);
        if acked >= 1.0 {
            self.inflation += 1.0;
        }
    }

    fn undo(&mut self, counters: &mut Counters) {
        self.undo.armed = false;
        self.controller.undo();
        self.board.nothing_is_lost();
        self.leave_recovery();
        counters.undos += 1;
    }

    /// RFC 3168, section 6.1.2: at most once for each window of data.
    fn on_ece(&mut self, una_before: u64, counters: &mut Counters, now: Time) {
        if self.phase == Phase::Open && una_before >= self.reduced_until {
            self.reduce(Cause::Ecn, counters, now);
            self.cwr = true;
        }
    }

    /// A congestion event, unless this window of data had one.
    fn reduce(&mut self, cause: Cause, counters: &mut Counters, now: Time) {
        match cause {
            Cause::Loss => counters.loss_events += 1,
            Cause::Ecn => counters.ecn_events += 1,
            Cause::Timeout => {}
        }
        if cause == Cause::Loss && self.una < self.reduced_until {
            return;
        }
        self.reduced_until = self.next;
        self.reduced_at = self.board.transmissions();
        if cause != Cause::Ecn {
            self.undo = Undo { unreported: 0, armed: false };
        }
        counters.reductions += 1;
        // What duplicate ACKs let out beyond cwnd is not a window that the path has carried.
        let flight_size = self.segments(self.outstanding()).min(self.controller.cwnd());
        self.controller.on_congestion(&Congestion {
            now,
            cause,
            flight_size,
            delivered: self.segments(self.delivered),
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
            mss: self.mss,
        });
    }

    fn tell_controller(
        &mut self,
        delivered: &Delivered,
        una_before: u64,
        pipe_before: u64,
        was_open: bool,
        now: Time,
    ) {
        if self.una > self.round_end {
            self.round += 1;
            self.round_end = self.next;
        }
        let in_recovery = matches!(self.phase, Phase::Recovery { .. });
        let limited = self.limited_at.is_some_and(|at| una_before <= at)
            || self.controller.in_slow_start() && self.segments(2 * pipe_before) >= self.controller.cwnd();
        // The ACK that ends a recovery acknowledges what the window had shrunk for already.
        let grows = limited && !in_recovery && (was_open || self.phase != Phase::Open);
        let (rtt, delivery_rate) = match delivered.newest {
            Some((sent_at, before)) if now > sent_at => {
                let rtt = now - sent_at;
                (Some(rtt), Some(self.segments(self.delivered - before) / rtt.secs_f64()))
            }
            _ => (None, None),
        };
        self.controller.on_ack(&Ack {
            now,
            segments: if grows { self.worth(delivered) } else { 0.0 },
            delivered: self.segments(self.delivered),
            flight_size: self.segments(pipe_before),
            rtt,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
            delivery_rate,
            round: self.round,
            in_recovery,
            mss: self.mss,
        });
    }

    /// What an ACK is worth in segments of growth.
    fn worth(&self, delivered: &Delivered) -> f64 {
        if delivered.segments == 0 {
            return 0.0;
        }
        match self.byte_counting {
            ByteCounting::PerAck => 1.0,
            ByteCounting::Abc { limit } => {
                let acked = self.segments(delivered.cumulative);
                if !self.controller.in_slow_start() {
                    return acked;
                }
                // RFC 3465, section 2.3: L = 1 in the slow start after a timeout.
                let restart = matches!(self.phase, Phase::Restart { .. });
                acked.min(if restart { 1.0 } else { f64::from(limit) })
            }
        }
    }

    // ---- Timers ----

    /// RFC 6298, section 5.
    fn restart_timer(&mut self, advanced: bool, now: Time) {
        if self.board.is_empty() {
            self.deadline = Time::MAX;
            if self.may_send_new() {
                self.rtt.progress();
            }
        } else if advanced {
            // RFC 6582, section 4, the impatient variant: only the first partial ACK restarts it.
            let partial = !self.sack && matches!(self.phase, Phase::Recovery { .. });
            if partial && self.partial_seen {
                return;
            }
            self.partial_seen |= partial;
            self.deadline = now + self.rtt.rto();
        }
    }

    /// Whether the retransmission or persist timer has run out; acts on it.
    pub fn on_timer(&mut self, counters: &mut Counters, now: Time) {
        if now < self.deadline {
            return;
        }
        self.burst = 0;
        if self.board.is_empty() {
            // The persist timer: ask whether a closed window has opened (RFC 9293, section 3.8.6.1).
            self.probe = true;
            self.rtt.back_off();
            self.deadline = now + self.rtt.rto();
            return;
        }
        counters.timeouts += 1;
        let again = matches!(self.phase, Phase::Restart { .. })
            && self.board.front().is_some_and(Record::was_retransmitted);
        if again {
            // RFC 5681, section 3.1: ssthresh is held when the same segment times out again.
            self.controller.collapse();
        } else {
            self.reduce(Cause::Timeout, counters, now);
        }
        self.board.all_is_lost();
        self.leave_recovery();
        self.phase = Phase::Restart { recover: self.next };
        self.last_recover = Some(self.next);
        self.reduced_until = self.next;
        self.dupacks = 0;
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
    }

    // ---- Transmissions ----

    /// Bytes that congestion control allows in flight.
    fn allowance(&self) -> u64 {
        let limited_transmit = if self.limited_transmit && !self.sack && self.phase == Phase::Open {
            // RFC 3042: one new segment for each of the first two duplicates.
            self.dupacks.min(DUP_THRESH - 1) as f64
        } else {
            0.0
        };
        ((self.controller.cwnd() + self.inflation + limited_transmit) * f64::from(self.mss)) as u64
    }

    /// Bytes in flight, in the sense of the recovery in use.
    fn in_flight(&self) -> u64 {
        let count_all = match self.phase {
            Phase::Open => self.sack && !self.limited_transmit,
            Phase::Recovery { .. } => !self.sack,
            Phase::Restart { .. } => false,
        };
        if count_all { self.outstanding() } else { self.board.pipe() }
    }

    fn window_admits(&self, bytes: u64) -> bool {
        match &self.prr {
            Some(prr) => prr.admits(bytes),
            None => self.in_flight() + bytes <= self.allowance(),
        }
    }

    /// The new segment that would come next, whatever the window: payload bytes, and whether with the FIN.
    fn next_new(&self) -> Option<(u16, bool)> {
        let left = self.written.saturating_sub(self.next);
        let len = left.min(u64::from(self.mss));
        let fin = self.closed && len == left && self.next <= self.written;
        (len > 0 || fin).then_some((len as u16, fin))
    }

    fn may_send_something(&self) -> bool {
        self.retransmit_now
            || self.window_admits(u64::from(self.mss)) && (self.board.has_waiting() || self.may_send_new())
    }

    fn may_send_new(&self) -> bool {
        self.next_new().is_some_and(|(len, _)| self.next + u64::from(len) <= self.edge())
    }

    /// Where the peer's window and our own buffer end.
    fn edge(&self) -> u64 {
        self.window_edge.min(self.una.saturating_add(self.send_buffer))
    }

    /// Whether a zero-window probe is due; asking takes it.
    pub fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }

    /// The next data segment to send now, until there is none.
    pub fn poll(&mut self, counters: &mut Counters, now: Time) -> Option<Transmission> {
        if self.burst >= self.burst_limit || self.pacer.as_ref().is_some_and(|pacer| now < pacer.next()) {
            return None;
        }
        let transmission =
            self.poll_lost(now).or_else(|| self.poll_new(now)).or_else(|| self.poll_unknown(now))?;
        let bytes = u64::from(transmission.len);
        self.burst += 1;
        self.last_sent = now;
        if self.deadline == Time::MAX {
            self.deadline = now + self.rtt.rto();
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(&self.controller, self.rtt.srtt(), now);
        }
        counters.segments_sent += 1;
        counters.bytes_sent += bytes;
        if transmission.again {
            counters.segments_retransmitted += 1;
            counters.bytes_retransmitted += bytes;
        }
        Some(transmission)
    }

    /// A segment that is known to be lost.
    fn poll_lost(&mut self, now: Time) -> Option<Transmission> {
        if self.phase == Phase::Open {
            return None;
        }
        if self.retransmit_now {
            self.retransmit_now = false;
            let id = if self.sack { self.board.next_lost() } else { self.board.front_id() };
            return id.map(|id| self.retransmit(id, now));
        }
        if !self.board.has_waiting() || !self.window_admits(u64::from(self.mss)) {
            return None;
        }
        let id = self.board.next_lost()?;
        Some(self.retransmit(id, now))
    }

    fn poll_new(&mut self, now: Time) -> Option<Transmission> {
        let (len, fin) = self.next_new()?;
        if self.phase != Phase::Open && self.board.has_waiting() {
            return None;
        }
        self.validate_after_idle(now);
        let bytes = u64::from(len);
        if self.next + bytes > self.edge() {
            if self.board.is_empty() && self.deadline == Time::MAX {
                self.deadline = now + self.rtt.rto();
            }
            return None;
        }
        if !self.window_admits(bytes) {
            self.limited_at = Some(self.next);
            return None;
        }
        let offset = self.next;
        self.board.push(offset, len, fin, now, self.delivered);
        self.next += bytes + u64::from(fin);
        Some(Transmission { offset, len, fin, again: false, cwr: std::mem::take(&mut self.cwr) })
    }

    /// Rules 3 and 4 of RFC 6675's NextSeg: what may be lost, when there is nothing better to send.
    fn poll_unknown(&mut self, now: Time) -> Option<Transmission> {
        if !self.sack || !matches!(self.phase, Phase::Recovery { .. }) {
            return None;
        }
        if self.board.has_waiting() || !self.window_admits(u64::from(self.mss)) || self.may_send_new() {
            return None;
        }
        if let Some(id) = self.board.next_unknown() {
            return Some(self.retransmit(id, now));
        }
        if self.rescued {
            return None;
        }
        let id = self.board.last_unknown()?;
        self.rescued = true;
        Some(self.retransmit(id, now))
    }

    fn retransmit(&mut self, id: u64, now: Time) -> Transmission {
        let record = self.board.retransmit(id, now, self.delivered);
        self.undo.armed = self.sack;
        self.undo.unreported += 1;
        Transmission { offset: record.offset, len: record.len, fin: record.is_fin(), again: true, cwr: false }
    }

    /// RFC 5681, section 4.1: after an idle time of more than a timeout, start from the initial window.
    fn validate_after_idle(&mut self, now: Time) {
        if self.board.is_empty() && self.last_sent > Time::ZERO && now.since(self.last_sent) > self.rtt.rto()
        {
            self.controller.moderate(f64::from(self.initial_window));
            self.last_sent = now;
        }
    }
}

/// A tick of the timestamp clock (RFC 7323, section 5.4).
pub const TICK: Time = Time::from_millis(1);
