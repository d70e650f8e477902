//! Selects what may be sent now: lost segments first, then new data, then segments that may be lost.

use elephan_cc::governor::Event;
use elephan_units::Time;

use super::phase::{Phase, RecoveryWindow, SackRecovery};
use super::scoreboard::DUP_THRESH;
use super::validation::validation_of;
use super::{Sender, Transmission, Usage};
use crate::config::AfterIdle;
use crate::report::Counters;

impl Sender {
    /// Bytes that congestion control allows in flight.
    fn allowance(&self) -> f64 {
        let cwnd = self.controller.cwnd();
        let segments = match &self.phase {
            // RFC 3042: one new segment for each of the first two duplicates.
            Phase::Open { .. } if self.settings.limited_transmit && !self.settings.sack() => {
                let count = self.duplicates.map_or(0, |duplicates| duplicates.count.get());
                cwnd + count.min(DUP_THRESH - 1) as f64
            }
            Phase::Cwr { window: RecoveryWindow::Halving(halving), .. }
            | Phase::Sack(SackRecovery { window: RecoveryWindow::Halving(halving), .. }) => halving.cwnd(),
            Phase::Reno(recovery) => cwnd + recovery.inflation,
            Phase::Open { .. } | Phase::Cwr { .. } | Phase::Sack(_) | Phase::Restart { .. } => cwnd,
        };
        segments * f64::from(self.settings.mss)
    }

    /// Bytes in flight, as defined by the recovery in use. With SACK this is RFC 6675's pipe; it shrinks at
    /// each duplicate ACK and so implements limited transmit (its section 5, step 3). In Reno's fast recovery
    /// it is FlightSize, because `cwnd` is inflated instead.
    fn in_flight(&self) -> u64 {
        match self.phase {
            Phase::Open { .. } if self.settings.sack() && !self.settings.limited_transmit => {
                self.space.outstanding().max(self.board.pipe())
            }
            Phase::Reno(_) => self.space.outstanding(),
            Phase::Open { .. } | Phase::Cwr { .. } | Phase::Sack(_) | Phase::Restart { .. } => {
                self.board.pipe()
            }
        }
    }

    /// Bytes that the window admits now.
    pub(super) fn admitted(&self) -> u64 {
        match self.phase.proportional() {
            Some(prr) => prr.cwnd(self.settings.mss).saturating_sub(self.board.pipe()),
            None => (self.allowance() as u64).saturating_sub(self.in_flight()),
        }
    }

    pub(super) fn window_admits(&self, bytes: u64) -> bool {
        match self.phase.proportional() {
            Some(prr) => self.board.pipe() + bytes <= prr.cwnd(self.settings.mss),
            None => (self.in_flight() + bytes).cast_signed() as f64 <= self.allowance(),
        }
    }

    pub(super) fn next_new(&self) -> Option<(u16, bool)> {
        let (len, fin) = self.space.next_new(self.settings.mss)?;
        (len > 0 || self.admits_fin()).then_some((len, fin))
    }

    /// Whether a FIN without data may be sent.
    #[cold]
    fn admits_fin(&self) -> bool {
        !self.space.closes_apart() || self.window_admits(self.settings.mss.into())
    }

    /// Whether nothing is outstanding, nothing waits to be sent and no probe awaits its reaction, as in the
    /// sending half of a pure receiver.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.space.outstanding() == 0 && !self.space.has_new() && !self.awaits_probe_ack()
    }

    pub(super) fn may_send_new(&self) -> bool {
        self.next_new()
            .is_some_and(|(len, _)| self.space.has_room(u64::from(len)) || self.space.small_room().is_some())
    }

    /// Whether there are lost segments to be retransmitted, at this ACK.
    #[inline]
    fn may_send_lost(&self) -> bool {
        self.board.has_waiting()
            && !matches!(self.phase, Phase::Sack(SackRecovery { only_new: true, .. }))
            && !self.has_retransmitted_enough()
    }

    /// Linux compares numbers only: while as many segments were retransmitted as are lost, also others, none is
    /// (net/ipv4/tcp_output.c, `tcp_xmit_retransmit_queue`).
    fn has_retransmitted_enough(&self) -> bool {
        self.undoes_as_linux() && self.board.retransmitted() >= self.board.lost()
    }

    /// Whether a segment would be sent if pacing allowed it.
    pub(super) fn may_send_something(&self) -> bool {
        if self.burst >= self.settings.burst_limit {
            return false;
        }
        if let Some(sends_new) = self.frto_sends_new() {
            return sends_new;
        }
        self.phase.retransmits_now()
            || self.is_probe_due()
            || self.timer.front_is_due && self.board.has_waiting()
            || self.window_admits(u64::from(self.settings.mss))
                && (self.may_send_lost() || self.may_send_new() || self.may_send_unknown())
    }

    /// Whether a retransmission would be sent before any new data, if pacing allowed it.
    pub(super) fn repairs_first(&self) -> bool {
        self.phase.retransmits_now()
            || self.is_probe_due()
            || self.timer.front_is_due && self.board.has_waiting()
            || self.frto_sends_new().is_none() && self.may_send_lost()
    }

    /// Whether a segment would be sent now.
    pub fn would_send(&self, now: Time) -> bool {
        self.may_send_something()
            && self.pacer.as_ref().is_none_or(|pacer| pacer.may_send(now) && !self.would_defer(now))
    }

    /// The fast path of [`Sender::poll`] and of the calls that follow it at this time, for a sender that [`is usual`](Sender::is_usual):
    /// sends the full segments of new data that may leave now, but for the last of a write, which has a flag. Returns the first of
    /// them, their number, and whether nothing follows them now, because the window is the limit; or `None`, with nothing
    /// changed, unless there are any and:
    ///
    /// - nothing but the window, the buffers and the burst limit says when a segment leaves: neither pacing nor a socket is in use;
    /// - no reduction waits to be signalled to the peer (CWR).
    #[inline(always)]
    pub fn poll_burst(&mut self, counters: &mut Counters, now: Time) -> Option<(Transmission, u16, bool)> {
        if self.pacer.is_some() || self.last_reduction.untold || self.space.has_socket() {
            return None;
        }
        let mss = u64::from(self.settings.mss);
        let offset = self.space.next;
        // Of what is in flight nothing is lost or has arrived, and what follows a FIN is not sent.
        let admitted = (self.controller.cwnd() * f64::from(self.settings.mss)) as u64;
        let admitted = admitted.saturating_sub(self.space.outstanding());
        let room = self.space.limit().saturating_sub(offset);
        let written = self.space.written.saturating_sub(offset);
        let most = self.settings.burst_limit.saturating_sub(self.burst);
        let bytes = admitted.min(room).min(written.saturating_sub(1));
        // Most bursts are of one or two segments, and a division takes longer than the rest.
        let fit =
            if bytes < 3 * mss { u64::from(bytes >= mss) + u64::from(bytes >= 2 * mss) } else { bytes / mss };
        let count = fit.min(u64::from(most)).min(u16::MAX.into());
        if count == 0 {
            return None;
        }
        let (bytes, len) = (count * mss, mss as u16);
        self.board.push_many(offset, len, count as u32, now);
        self.space.next += bytes;
        self.burst += count as u32;
        self.last_sent = now;
        counters.segments_sent += count;
        counters.bytes_sent += bytes;
        // Whether a full segment waits that only the window does not admit.
        let is_limit = written - bytes >= mss
            && room - bytes >= mss
            && admitted - bytes < mss
            && u64::from(most) > count;
        self.note_usage(is_limit);
        let first = Transmission { offset, len, fin: false, push: false, again: false, cwr: false };
        Some((first, count as u16, is_limit))
    }

    /// The next data segment to send now; `None` when there are no more.
    #[inline(always)]
    pub fn poll(&mut self, counters: &mut Counters, now: Time) -> Option<Transmission> {
        if self.timer.is_off() && self.next_new().is_some() && !self.may_send_new() {
            // The peer's window is closed, and nothing in flight would elicit an ACK: enter the persist
            // state.
            self.start_timer(now);
        }
        if self.burst >= self.settings.burst_limit || self.pacer.is_some() && !self.pacing_admits(now) {
            return None;
        }
        let transmission = if self.is_probe_due() {
            self.poll_probe(now)?
        } else if self.phase.is_open() {
            self.poll_new(now)?
        } else {
            self.poll_repair(now)?
        };
        let bytes = u64::from(transmission.len);
        self.burst += 1;
        self.last_sent = now;
        if self.timer.is_off() {
            self.start_timer(now);
        }
        if !transmission.again {
            self.schedule_probe(true, now);
        }
        if let Some(RecoveryWindow::Proportional(prr)) = self.phase.window() {
            prr.on_sent(bytes);
        }
        counters.segments_sent += 1;
        counters.bytes_sent += bytes;
        if transmission.again {
            counters.segments_retransmitted += 1;
            counters.bytes_retransmitted += bytes;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(&self.controller, bytes, counters.segments_sent, self.rtt.srtt(), now);
            if let Some(validation) = validation_of(&mut self.underuse).filter(|_| !transmission.again) {
                validation.on_sent(self.space.next, self.delivered);
            }
        }
        Some(transmission)
    }

    /// The persist timer has run out: fills a window below a segment, if the peer's window is not closed (RFC
    /// 9293, section 3.8.6.2.1: the override timeout).
    pub fn poll_override(&mut self, counters: &mut Counters, now: Time) -> Option<Transmission> {
        self.space.fills_small_window = true;
        let transmission = self.poll(counters, now);
        self.space.fills_small_window = false;
        transmission
    }

    /// During loss recovery: lost segments come first.
    #[inline(never)]
    fn poll_repair(&mut self, now: Time) -> Option<Transmission> {
        if let Some(sends_new) = self.frto_sends_new() {
            return if sends_new { self.poll_frto(now) } else { None };
        }
        self.poll_lost(now).or_else(|| self.poll_new(now)).or_else(|| self.poll_unknown(now))
    }

    /// A segment that is known to be lost.
    fn poll_lost(&mut self, now: Time) -> Option<Transmission> {
        let enough = self.has_retransmitted_enough();
        let at_once = match &mut self.phase {
            Phase::Sack(recovery) if recovery.retransmit_now => {
                recovery.retransmit_now = false;
                (!enough).then(|| self.board.next_lost())
            }
            Phase::Reno(recovery) if recovery.retransmit_now => {
                recovery.retransmit_now = false;
                Some(self.board.front_id())
            }
            _ => None,
        };
        if let Some(id) = at_once {
            return id.map(|id| self.retransmit(id, now));
        }
        if std::mem::take(&mut self.timer.front_is_due) {
            return self.board.next_lost().map(|id| self.retransmit(id, now));
        }
        if !self.may_send_lost() || !self.window_admits(u64::from(self.settings.mss)) {
            return None;
        }
        let id = self.board.next_lost()?;
        Some(self.retransmit(id, now))
    }

    #[inline(always)]
    fn poll_new(&mut self, now: Time) -> Option<Transmission> {
        let (mut len, mut fin) = self.next_new()?;
        if !self.phase.is_open() && self.may_send_lost() {
            return None;
        }
        if !self.space.has_room(u64::from(len)) {
            (len, fin) = (self.space.small_room()?, false);
        }
        let bytes = u64::from(len);
        if self.board.is_empty() && !self.resume(now) {
            return None;
        }
        if !self.window_admits(bytes) {
            self.note_usage(true);
            return None;
        }
        if self.pacer.is_some() && !self.take_of_super_segment(now) {
            return None;
        }
        Some(self.send_new(len, fin, now))
    }

    /// Sends new data.
    #[inline(always)]
    pub(super) fn send_new(&mut self, len: u16, fin: bool, now: Time) -> Transmission {
        let offset = self.space.next;
        let (id, is_first) = (self.board.next_id(), self.board.is_empty());
        self.board.push(offset, len, fin, now);
        self.space.next += u64::from(len) + u64::from(fin);
        self.note_sent(id, self.space.next, is_first, now);
        self.note_usage(false);
        if self.underuse.is_some() {
            self.measure_flight();
        }
        let push = self.space.next >= self.space.push();
        if push {
            self.space.end_write();
        }
        Transmission {
            offset,
            len,
            fin,
            push,
            again: false,
            cwr: std::mem::take(&mut self.last_reduction.untold),
        }
    }

    /// Whether RFC 6675's NextSeg reaches its rules 3 and 4. With RACK it does not: time shows what is lost, as
    /// in Linux.
    #[inline]
    fn may_send_unknown(&self) -> bool {
        let Phase::Sack(recovery) = &self.phase else { return false };
        self.rack.is_none()
            && !self.board.has_waiting()
            && !self.may_send_new()
            && (!recovery.rescued || self.board.has_unknown())
    }

    /// Rules 3 and 4 of RFC 6675's NextSeg: a segment that may be lost, when rules 1 and 2 give nothing to
    /// send.
    fn poll_unknown(&mut self, now: Time) -> Option<Transmission> {
        if !self.may_send_unknown() || !self.window_admits(u64::from(self.settings.mss)) {
            return None;
        }
        let id = match (self.board.next_unknown(), &mut self.phase) {
            (Some(id), _) => id,
            (None, Phase::Sack(recovery)) if !recovery.rescued => {
                recovery.rescued = true;
                self.board.last_unknown()?
            }
            (None, _) => return None,
        };
        Some(self.retransmit(id, now))
    }

    pub(super) fn retransmit(&mut self, id: u64, now: Time) -> Transmission {
        // Of losses that an ACK without new data showed nothing is known afterwards.
        self.tell_losses(now);
        if self.settings.sack() && self.board.front_id() == Some(id) {
            // RFC 6675, section 6: a retransmission may restart the timer, so that it does not expire during
            // a long recovery. Only the retransmission of the oldest segment does so, because the timer runs
            // for that segment.
            self.start_timer(now);
        }
        if self.undoes_as_linux() && self.segments_in_flight() == 0 {
            // Linux (`tcp_event_data_sent`): after a timeout, too.
            self.controller.resume(now.since(self.last_sent));
            self.tell_event(Event::Start, now);
        }
        let is_first = self.validates() && !self.board.was_retransmitted(id);
        let record = self.board.retransmit(id, now);
        if is_first {
            self.note_first_retransmission(u64::from(record.len));
        }
        self.note_sent(id, record.end(), false, now);
        self.note_retransmission(now);
        self.undo.on_retransmission(record.offset, record.end());
        let push = record.end() >= self.space.written;
        Transmission {
            offset: record.offset,
            len: record.len,
            fin: record.is_fin(),
            push,
            again: true,
            cwr: false,
        }
    }

    /// Data is to be sent, and nothing is in flight. Returns whether it may be, or something goes before the first.
    fn resume(&mut self, now: Time) -> bool {
        if self.last_sent == Time::MAX {
            if std::mem::take(&mut self.space.holds) {
                return false;
            }
            self.tell_start(now);
            self.last_sent = now;
            return true;
        }
        let idle = now.since(self.last_sent);
        self.controller.resume(idle);
        let rto = self.rtt.rto();
        let restarts = idle > rto && !self.controller.governs_recovery();
        if restarts {
            let restart = f64::from(self.settings.initial_window);
            match self.settings.after_idle {
                AfterIdle::Restart => self.controller.moderate(restart),
                AfterIdle::Decay => self.controller.decay((idle.picos() / rto.picos()) as u32, restart),
                AfterIdle::Keep | AfterIdle::Validate => {}
            }
        }
        self.validate(now);
        let changes = matches!(self.settings.after_idle, AfterIdle::Restart | AfterIdle::Decay);
        let restarts = restarts && changes;
        self.tell_event(if restarts { Event::Restart } else { Event::Start }, now);
        self.last_sent = now;
        true
    }

    /// Something is to be sent before the first data: the next poll gives none.
    pub fn hold_once(&mut self) {
        self.space.holds = true;
    }

    /// Records how much of the window is used; `limited` says that data waits for the window.
    #[inline(always)]
    pub(super) fn note_usage(&mut self, limited: bool) {
        let usage = &self.usage;
        let begins = self.space.una >= usage.until;
        if usage.limited && !begins && !limited {
            return;
        }
        // Without data that waits, a full window is the limit too.
        let limited = limited || !self.window_admits(u64::from(self.settings.mss));
        let outstanding = self.space.outstanding();
        if begins || limited || outstanding > usage.outstanding {
            self.usage = Usage { limited, outstanding, until: self.space.next };
        }
    }
}
