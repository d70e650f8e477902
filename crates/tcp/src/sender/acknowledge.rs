//! Processing of an acknowledgment: what it delivered, the RTT sample, and how much the window grows.

use std::num::NonZero;

use elephan_cc::{Ack, Cause, State};
use elephan_units::Time;

use super::phase::{Phase, RecoveryWindow};
use super::rtt::{TICK, age, sent_by, ticks};
use super::scoreboard::{DUP_THRESH, Delivered};
use super::settings::Repair;
use super::{Acknowledgment, Duplicates, Round, Sender};
use crate::config::ByteCounting;
use crate::report::Counters;

/// The sender's state when an acknowledgment arrived.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Everything below this was acknowledged.
    pub una: u64,
    /// Bytes in the pipe.
    pub pipe: u64,
    /// Whether no loss recovery was in progress.
    pub open: bool,
}

impl Sender {
    /// Whether an ACK of new data needs no other rules than those of [`Sender::on_usual_ack`], unless it says more. So it is as long as
    ///
    /// - data is outstanding, of which nothing is known but that it was sent, and its timer runs for the first time;
    /// - no loss recovery is in progress, no reduction for a mark, and no reduction awaits the ACK that may show it to be spurious;
    /// - `cwnd` is not validated, is not limited in its growth, and not moderated at this ACK, and no duplicate ACKs have arrived;
    /// - no governor needs to know of each segment;
    /// - losses are found by counting and not by time, so that no segment is lost as long as none is missing;
    /// - segments have timestamps, a round-trip time is known, and the last timeout is over.
    pub fn is_usual(&self) -> bool {
        let Self { phase, frto, eifel, rack, tlp, underuse, duplicates, timer, .. } = self;
        rack.is_none()
            && phase.is_open()
            && self.board.is_untouched()
            && timer.is_usual()
            && self.rtt.is_usual()
            && tlp.is_none()
            && duplicates.is_none()
            && frto.is_none()
            && eifel.examined.is_none()
            && underuse.is_none()
            && self.settings.timestamps
            && !self.is_reduced_for_mark()
            && !(self.settings.is_particular && (self.is_sampled() || self.is_dubious()))
    }

    /// The fast path of [`Sender::on_ack`] for a sender that [`is usual`](Sender::is_usual), and an ACK without SACK blocks, ECN echo and data:
    /// everything below `offset` arrived, the peer accepts `window` bytes beyond it, and echoes this timestamp. Returns false, with
    /// nothing changed, unless it covers a segment or more.
    #[inline(always)]
    pub fn on_usual_ack(
        &mut self,
        offset: u64,
        window: u64,
        echo: u32,
        counters: &mut Counters,
        now: Time,
    ) -> bool {
        debug_assert!(self.is_usual());
        if offset <= self.space.una
            || offset > self.space.next
            || self.governed.is_some() && window != self.space.window()
        {
            return false;
        }
        let Some(acked) = self.board.acknowledge_untouched(offset) else { return false };
        self.burst = 0;
        self.space.advance(offset, window);
        counters.bytes_acked += acked.bytes;
        self.delivered += acked.bytes;
        let is_late = echo > 0 && ticks(acked.sent_at).wrapping_sub(echo).cast_signed() < 0;
        let rtt = if is_late { age(echo, now) } else { now - acked.sent_at };
        self.timed_from = self.space.next;
        self.rtt.sample(rtt);
        if self.governed.is_some() {
            self.tell_plain_ack(acked.bytes, rtt, State::Open, counters, now);
        } else {
            self.begin_round();
            let segments = self.growth(acked.bytes);
            let Self { controller, settings, space, rtt: estimate, round, delivered, .. } = self;
            controller.on_plain_ack(segments, || Ack {
                now,
                segments,
                delivered: settings.segments(*delivered),
                una: space.una,
                next: space.next,
                rtt: Some(rtt),
                min_rtt: estimate.min(),
                srtt: estimate.srtt(),
                round: round.number,
                state: State::Open,
                mss: settings.mss,
            });
        }
        if self.board.is_empty() {
            self.restart_timer(true, now);
        } else {
            self.start_timer(now);
        }
        true
    }

    /// An acknowledgment arrived.
    pub fn on_ack(&mut self, ack: &Acknowledgment<'_>, counters: &mut Counters, now: Time) {
        if ack.offset > self.space.next {
            return;
        }
        self.burst = 0;
        let mut delivered = Delivered::new(now.since(self.rtt.min()));
        if self.governed.is_some() {
            delivered.told = Some(self.note_prior(ack));
        }
        let mut before =
            Before { una: self.space.una, pipe: self.board.pipe(), open: !self.phase.is_recovery() };
        let was_dubious = self.settings.moderate && self.is_dubious();
        let window_changed = self.space.take_window(ack.offset, ack.window);

        let advanced = ack.offset > self.space.una;
        // Of what an ACK delivers, cumulative acknowledgment comes last (Linux, `tcp_ack`).
        let mut last = None;
        if advanced {
            self.space.una = ack.offset;
            if self.rack.is_some() {
                delivered.echoed = ack.echoed.and_then(|echo| sent_by(echo, now));
            }
            self.board.acknowledge(ack.offset, &mut delivered);
            last = delivered.last;
            if delivered.ambiguous.is_some() && self.settings.is_coarse() {
                // Linux (`tcp_clean_rtx_queue`): of an ACK of a retransmission only what it reports above gives a sample.
                delivered.newest = None;
            }
            counters.bytes_acked += delivered.cumulative;
            self.timer.tries = 0;
            self.timer.front_is_due = false;
        }
        let sack = self.settings.sack();
        let duplicate_reported =
            sack && !ack.blocks.is_empty() && self.take_blocks(ack, before.una, &mut delivered, counters);
        self.delivered += delivered.bytes;
        let rtt = self.take_rtt(&delivered, advanced, ack.echoed, now);
        let reported = ack.blocks.first().filter(|_| duplicate_reported);
        if self.governed.is_some() {
            self.note_delivery(&delivered, self.duplicates_of(reported), advanced, rtt, ack.ece);
        }

        if self.rack.is_some() {
            let duplicate = reported.filter(|_| !self.is_of_probe(ack.blocks)).map(|block| block.0);
            self.update_rack(&delivered, last.or(delivered.last), duplicate, now);
        }

        // RFC 5681, section 2; with SACK, RFC 6675, section 2: an ACK that reports new data.
        let duplicate = ack.offset == before.una
            && !ack.has_data
            && self.space.outstanding() > 0
            && if sack { delivered.bytes > 0 } else { !window_changed };
        delivered.counted = self.counted(&delivered, advanced, reported);
        if advanced {
            self.duplicates = None;
        } else if duplicate {
            self.note_duplicate();
        }

        let mut lost_more = false;
        if ack.ece && self.undoes_as_linux() {
            // Linux, `tcp_fastretrans_alert`: the reduction is required, whatever the loss turns out to be.
            self.controller.confirm();
        }
        let found = self.find_spurious(advanced, duplicate, duplicate_reported, ack.echoed, &delivered);
        if let Some(found) = found {
            if !self.is_awaited(found, before.una) {
                lost_more = self.undo_spurious(found, before, counters, now);
                // As if there had been no recovery: this ACK, too, counts towards growth.
                before.open = true;
            }
        } else if let Repair::Sack { fack, reduction, .. } = self.settings.repair {
            if !self.phase.is_open() || self.rack.is_some() || !self.board.is_whole() {
                lost_more = self.repair_with_sack(fack, reduction, before, counters, now);
            }
        } else {
            self.repair_without_sack(advanced, duplicate, &delivered, counters, now);
        }
        if self.awaits_probe_ack() {
            let says_nothing = ack.offset == before.una && !ack.has_data && ack.blocks.is_empty();
            self.take_probe_ack(ack.blocks, duplicate_reported, says_nothing, before, counters, now);
        }
        if !before.open && !self.phase.is_recovery() {
            self.end_recovery(duplicate_reported);
        }
        if ack.ece {
            self.on_ece(before, counters, now);
        }
        if !self.phase.is_open() {
            self.set_recovery_window(delivered.counted, advanced && !lost_more);
        }
        if self.governed.is_some() {
            self.tell_state(now);
        }
        if self.validates() {
            self.validate_ack(before, now);
        }
        if delivered.counted > 0 || advanced {
            self.tell_controller(&delivered, rtt, before, ack.ece, counters, now);
        }
        self.tell_losses(now);
        if self.settings.moderate && self.space.next > before.una {
            self.moderate_if_dubious(was_dubious || !advanced && !ack.has_data && !window_changed);
        }
        let restarts = advanced || self.settings.is_coarse() && self.is_older_than_front(&delivered);
        self.restart_timer(restarts, now);
        if delivered.bytes > 0 || advanced {
            self.schedule_probe(false, now);
        }
    }

    /// Whether an ACK measures a segment that was sent before the last transmission of the oldest one, which may still arrive: its
    /// time starts again, unless the reordering timer runs (Linux, net/ipv4/tcp_input.c, `tcp_clean_rtx_queue`).
    #[cold]
    fn is_older_than_front(&self, delivered: &Delivered) -> bool {
        let front = self.board.front().filter(|_| self.timer.reordering == Time::MAX);
        delivered.newest.zip(front).is_some_and(|(sent_at, front)| sent_at < front.sent_at)
    }

    /// A recovery has ended, at an ACK that `reported` a duplicate or not.
    fn end_recovery(&mut self, reported: bool) {
        self.eifel.examined = None;
        if let Phase::Open { dubious_until, .. } = &mut self.phase {
            // Linux leaves the state of disorder when something above `next` is acknowledged.
            *dubious_until = self.space.next + 1;
        }
        if !reported {
            self.note_recovery_end();
        }
    }

    /// Number of bytes for which an ACK counts, of what it delivered. Where that is counted as Linux counts it, each segment is a whole
    /// one, a duplicate that the ACK `reported` was delivered too, and without SACK each duplicate ACK stood for a
    /// segment, which the next ACK does not count again (`tcp_remove_reno_sacks`).
    #[inline]
    fn counted(&self, delivered: &Delivered, advanced: bool, reported: Option<&(u64, u64)>) -> u64 {
        let bytes = delivered.bytes;
        if self.settings.byte_counting != ByteCounting::Delivered {
            return bytes;
        }
        let mss = u64::from(self.settings.mss);
        // A FIN alone is a segment, too.
        let bytes = bytes.max(u64::from(delivered.lowest < u64::MAX)).next_multiple_of(mss);
        match self.duplicates {
            Some(duplicates) if advanced && !self.settings.sack() => {
                bytes.saturating_sub(duplicates.count.get() * mss).max(bytes.min(mss))
            }
            _ => bytes + self.duplicates_of(reported) * mss,
        }
    }

    /// Number of duplicate segments that an ACK `reported` as delivered, as Linux counts them (`tcp_dsack_seen`).
    #[inline]
    fn duplicates_of(&self, reported: Option<&(u64, u64)>) -> u64 {
        match reported {
            Some(&(left, right)) if self.settings.byte_counting == ByteCounting::Delivered => {
                (right - left).div_ceil(self.settings.mss.into()).max(1)
            }
            _ => 0,
        }
    }

    /// The window of a recovery follows an ACK that delivered `bytes`; `is_good` says whether it moved the left edge
    /// and showed no further loss.
    #[inline(never)]
    pub(super) fn set_recovery_window(&mut self, bytes: u64, is_good: bool) {
        let Some(window) = self.phase.window() else { return };
        let (pipe, ssthresh, mss) = (self.board.pipe(), self.controller.ssthresh(), self.settings.mss);
        match window {
            RecoveryWindow::Controller => {}
            RecoveryWindow::Proportional(prr) => prr.on_ack(bytes, pipe, ssthresh, mss, is_good),
            RecoveryWindow::Halving(halving) => {
                halving.on_ack(pipe as f64 / f64::from(mss), ssthresh);
                self.controller.moderate(halving.cwnd());
            }
        }
    }

    /// Processes the selective acknowledgments of an ACK, before which everything below `una` was acknowledged; returns whether the
    /// first block reported a duplicate (RFC 2883).
    #[inline(never)]
    fn take_blocks(
        &mut self,
        ack: &Acknowledgment<'_>,
        una: u64,
        delivered: &mut Delivered,
        counters: &Counters,
    ) -> bool {
        let (mut blocks, mss) = (ack.blocks, self.settings.mss);
        let Some(&(left, right)) = blocks.first() else { return false };
        // RFC 2883, section 4: a duplicate lies below the cumulative acknowledgment, or within the second
        // block.
        let mut duplicate =
            left < ack.offset || blocks.get(1).is_some_and(|&second| second.0 <= left && right <= second.1);
        if duplicate && self.undoes_as_linux() {
            duplicate = self.undo.is_credible(left, right, mss, counters.segments_retransmitted);
            if duplicate {
                self.undo.on_credible_duplicate(left, right, una, mss);
            }
        } else if duplicate {
            self.undo.on_duplicate(left, right, mss);
        }
        if duplicate {
            blocks = &blocks[1..];
        }
        // Most ACKs repeat all blocks of the last one but the first, in the same places or further down.
        let known = self.board.last_blocks();
        for (place, &(left, right)) in blocks.iter().enumerate() {
            if right > self.space.una && right <= self.space.next {
                self.board.note_block(place, (left, right));
                if !known.contains(&(left, right)) {
                    self.board.sack(left.max(self.space.una), right, mss, delivered);
                }
            }
        }
        duplicate
    }

    /// The round-trip time that this ACK measures, if any: that of the newest segment that it delivered.
    ///
    /// Karn: only a segment that was sent once gives a sample by itself. An ACK that fills a hole also
    /// acknowledges segments that arrived long before, if no SACK block reported them; the echoed timestamp
    /// is of the segment that moved the left edge, or of an older one (RFC 7323, section 4.3), and such a
    /// segment was sent before. Where no segment gives a sample, the timestamp does, whichever transmission
    /// it names (RFC 7323, section 4.1), if the left edge moved. It has ticks of 1 ms; where it only
    /// identifies the transmission, the sample is exact, unless clocks are coarse: then it is a number of ticks. Without
    /// timestamps one sample is taken for each flight (RFC 6298, section 3).
    fn take_rtt(
        &mut self,
        delivered: &Delivered,
        advanced: bool,
        echoed: Option<u32>,
        now: Time,
    ) -> Option<Time> {
        let echoed = echoed.filter(|&echo| echo > 0);
        let rtt = match (delivered.newest, delivered.ambiguous, echoed) {
            // Linux (`tcp_ack_update_rtt`).
            (newest, ambiguous, Some(echo)) if ambiguous.is_some() && self.settings.is_coarse() => {
                match newest {
                    Some(sent_at) => now - sent_at,
                    None if advanced => (TICK * u64::from(ticks(now).wrapping_sub(echo))).max(TICK),
                    None => return None,
                }
            }
            (Some(sent_at), None, None) => now - sent_at,
            (Some(sent_at), ambiguous, Some(echo))
                if (ambiguous.is_none() || self.settings.sack())
                    && ticks(sent_at).wrapping_sub(echo).cast_signed() >= 0 =>
            {
                now - sent_at
            }
            // Where a round trip takes less than a tick, the echo may be of the original as well, if that was sooner than any.
            (_, Some(sent_at), Some(echo))
                if echo == ticks(sent_at) && (self.rtt.min() >= TICK || now - sent_at >= self.rtt.min()) =>
            {
                now - sent_at
            }
            (_, _, Some(echo)) if advanced => age(echo, now),
            _ => return None,
        };
        self.take_sample(rtt);
        Some(rtt)
    }

    /// Takes a round-trip time, which counts fully once for each flight, or always with timestamps.
    #[inline]
    fn take_sample(&mut self, rtt: Time) {
        if self.settings.timestamps || self.space.una > self.timed_from {
            self.timed_from = self.space.next;
            self.rtt.sample(rtt);
        } else {
            self.rtt.observe(rtt);
        }
    }

    /// Passes an ACK of new data on to the controller.
    ///
    /// The window grows only if it was the limit at some time in the last round trip; in slow start, if more
    /// than half of it was outstanding (RFC 7661, section 4.3, in Linux's form, `tcp_is_cwnd_limited`). It does
    /// not grow in fast recovery, nor at the ACK that ends one. Nor does
    /// it grow at an ACK that echoes a mark (RFC 3168, section 6.1.2), except in the recovery after a
    /// timeout: only new data can tell the peer that the window was reduced, and until then the echo carries
    /// no new information.
    fn tell_controller(
        &mut self,
        delivered: &Delivered,
        rtt: Option<Time>,
        before: Before,
        marked: bool,
        counters: &mut Counters,
        now: Time,
    ) {
        self.begin_round();
        self.measure_flight();
        let state = self.state();
        let held_back = marked && !self.phase.is_restart();
        let ends = !before.open && !self.phase.is_recovery();
        let counts = !ends || self.settings.byte_counting == ByteCounting::Delivered;
        // An ACK that does not move the left edge over a segment counts for none, unless each that moves it does, or segments were
        // overtaken further than three places before: then order says nothing (Linux, `tcp_may_raise_cwnd`).
        let in_any_order = self.settings.byte_counting == ByteCounting::Delivered
            && delivered.bytes > 0
            && self.reordering() > DUP_THRESH;
        let grows = state != State::Recovery
            && !matches!(self.phase, Phase::Cwr { .. })
            && !held_back
            && counts
            && (delivered.segments > 0
                || in_any_order
                || self.settings.byte_counting == ByteCounting::PerAnyAck && self.space.una > before.una)
            && self.may_grow();
        let growth = if grows { self.worth(delivered.counted, delivered.cumulative) } else { 0.0 };
        if self.governed.is_some() {
            self.tell_ack(growth, counters, now);
        } else {
            self.grow(growth, rtt, state, now);
        }
    }

    /// For how many segments the window may grow at an ACK that delivered `bytes`, where nothing is missing.
    #[inline]
    pub(super) fn growth(&self, bytes: u64) -> f64 {
        if self.is_window_limit() { self.worth(bytes, bytes) } else { 0.0 }
    }

    /// Whether the window was the limit in the last round trip.
    #[inline]
    pub(super) fn is_window_limit(&self) -> bool {
        self.usage.limited
            || self.controller.in_slow_start()
                && self.segments(2 * self.usage.outstanding) > self.controller.cwnd()
    }

    /// A new round trip begins when everything below the end of the last is acknowledged.
    #[inline]
    pub(super) fn begin_round(&mut self) {
        if self.space.una > self.round.end {
            self.round = Round { number: self.round.number + 1, end: self.space.next };
        }
    }

    /// Tells the controller of an ACK worth `segments` of growth.
    #[inline]
    fn grow(&mut self, segments: f64, rtt: Option<Time>, state: State, now: Time) {
        let max_flight = self.max_flight();
        let ack = Ack {
            now,
            segments,
            delivered: self.segments(self.delivered),
            una: self.space.una,
            next: self.space.next,
            rtt,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
            round: self.round.number,
            state,
            mss: self.settings.mss,
        };
        match max_flight {
            Some(segments) => self.controller.on_rate_limited_ack(&ack, segments),
            None => self.controller.on_ack(&ack),
        }
    }

    /// The state that the controller is told.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Cwr { .. } => State::Cwr,
            Phase::Sack(_) | Phase::Reno(_) => State::Recovery,
            Phase::Restart { .. } => State::Loss,
            Phase::Open { .. } => {
                if self.is_reduced_for_mark() {
                    State::Cwr
                } else if self.duplicates.is_some() || self.board.has_sacked() {
                    State::Disorder
                } else {
                    State::Open
                }
            }
        }
    }

    /// Whether the data sent before a reduction that answered a mark is not all acknowledged yet.
    #[inline]
    fn is_reduced_for_mark(&self) -> bool {
        self.last_reduction.cause == Cause::Ecn && self.space.una < self.last_reduction.until
    }

    /// A duplicate ACK arrived.
    fn note_duplicate(&mut self) {
        match &mut self.duplicates {
            Some(Duplicates { count, .. }) => *count = count.saturating_add(1),
            None => self.duplicates = Some(Duplicates { count: NonZero::<u64>::MIN, next: self.space.next }),
        }
    }

    /// How many segments of growth an ACK counts for that moved the left edge: it delivered `bytes`, and `cumulative`
    /// is what it acknowledged cumulatively.
    #[inline(always)]
    fn worth(&self, bytes: u64, cumulative: u64) -> f64 {
        let limit = match self.settings.byte_counting {
            ByteCounting::PerAck | ByteCounting::PerAnyAck => return 1.0,
            ByteCounting::Delivered => return self.segments(bytes).ceil(),
            ByteCounting::Abc { limit } => limit,
        };
        let acked = self.segments(cumulative);
        if self.controller.in_slow_start() { self.worth_at_start(acked, limit) } else { acked }
    }

    /// The same in slow start, where an ACK acknowledges `acked` segments.
    #[inline(never)]
    fn worth_at_start(&self, acked: f64, limit: u8) -> f64 {
        // RFC 3465, section 2.3: L = 1 in the slow start after a timeout.
        if self.phase.is_restart() {
            acked.min(1.0)
        } else if self.controller.limits_start() {
            acked
        } else {
            acked.min(f64::from(limit))
        }
    }

    /// FlightSize, in segments (RFC 5681, section 2): the data sent beyond `una`, without the segments that
    /// limited transmit added (section 3.2, step 2). It never exceeds the window: segments counted beyond the
    /// window have left the network.
    /// In Linux it is the window.
    pub(super) fn flight_size(&self, una: u64) -> f64 {
        if self.settings.halves_cwnd {
            return self.controller.cwnd();
        }
        let next = self.duplicates.map_or(self.space.next, |duplicates| duplicates.next);
        self.segments(next - una).min(self.controller.cwnd())
    }
}
