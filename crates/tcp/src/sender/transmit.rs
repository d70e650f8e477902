//! What may be sent now: what is lost first, then new data, then what may be lost.

use elephan_units::Time;

use super::recovery::Phase;
use super::scoreboard::DUP_THRESH;
use super::{Sender, Transmission};
use crate::endpoint::Counters;

impl Sender {
    /// Bytes that congestion control allows in flight.
    fn allowance(&self) -> u64 {
        let limited_transmit = if self.limited_transmit && !self.sack && self.phase == Phase::Open {
            // RFC 3042: one new segment for each of the first two duplicates.
            self.dupacks.min(DUP_THRESH - 1) as f64
        } else {
            0.0
        };
        let cwnd = self.halving.map_or(self.controller.cwnd(), |halving| halving.cwnd());
        ((cwnd + self.inflation + limited_transmit) * f64::from(self.mss)) as u64
    }

    /// Bytes in flight, in the sense of the recovery in use: RFC 6675's pipe, which with SACK shrinks at
    /// each duplicate ACK and so makes limited transmit (its section 5, step 3); FlightSize in Reno's
    /// fast recovery, where `cwnd` is inflated instead.
    fn in_flight(&self) -> u64 {
        match self.phase {
            Phase::Open if self.sack && !self.limited_transmit => self.outstanding().max(self.board.pipe()),
            Phase::Recovery { .. } if !self.sack => self.outstanding(),
            Phase::Open | Phase::Recovery { .. } | Phase::Restart { .. } => self.board.pipe(),
        }
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

    /// Whether nothing is outstanding and nothing waits to be sent, as in the sending half of a mere receiver.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.una == self.next && self.next_new().is_none()
    }

    pub(super) fn may_send_new(&self) -> bool {
        self.next_new().is_some_and(|(len, _)| self.next + u64::from(len) <= self.edge())
    }

    /// Whether something would go if pacing let it.
    pub(super) fn may_send_something(&self) -> bool {
        self.burst < self.burst_limit
            && (self.retransmit_now
                || self.window_admits(u64::from(self.mss))
                    && (self.board.has_waiting() || self.may_send_new() || self.may_send_unknown()))
    }

    /// Whether something would go now.
    pub fn would_send(&self, now: Time) -> bool {
        self.may_send_something() && self.pacer.as_ref().is_none_or(|pacer| pacer.next() <= now)
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
    #[inline(always)]
    pub fn poll(&mut self, counters: &mut Counters, now: Time) -> Option<Transmission> {
        if self.deadline == Time::MAX && self.next_new().is_some() && !self.may_send_new() {
            // The peer's window is closed, and nothing is on its way that would bring an ACK: persist.
            self.deadline = now + self.rtt.rto();
        }
        if self.burst >= self.burst_limit || self.pacer.as_ref().is_some_and(|pacer| now < pacer.next()) {
            return None;
        }
        let transmission =
            if self.phase == Phase::Open { self.poll_new(now)? } else { self.poll_repair(now)? };
        let bytes = u64::from(transmission.len);
        self.burst += 1;
        self.last_sent = Some(now);
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

    /// While a loss is repaired: what is lost first.
    #[inline(never)]
    fn poll_repair(&mut self, now: Time) -> Option<Transmission> {
        self.poll_lost(now).or_else(|| self.poll_new(now)).or_else(|| self.poll_unknown(now))
    }

    /// A segment that is known to be lost.
    fn poll_lost(&mut self, now: Time) -> Option<Transmission> {
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

    #[inline(always)]
    fn poll_new(&mut self, now: Time) -> Option<Transmission> {
        let (len, fin) = self.next_new()?;
        if self.phase != Phase::Open && self.board.has_waiting() {
            return None;
        }
        let bytes = u64::from(len);
        if self.next + bytes > self.edge() {
            return None;
        }
        if self.board.is_empty() {
            self.validate_after_idle(now);
        }
        if !self.window_admits(bytes) {
            self.limited_at = Some(self.next);
            return None;
        }
        let offset = self.next;
        self.board.push(offset, len, fin, now, self.delivered);
        self.next += bytes + u64::from(fin);
        let push = self.next >= self.written;
        Some(Transmission { offset, len, fin, push, again: false, cwr: std::mem::take(&mut self.cwr) })
    }

    /// Whether RFC 6675's NextSeg comes to its rules 3 and 4.
    fn may_send_unknown(&self) -> bool {
        self.sack
            && matches!(self.phase, Phase::Recovery { .. })
            && !self.board.has_waiting()
            && !self.may_send_new()
            && (!self.rescued || self.board.has_unknown())
    }

    /// Rules 3 and 4 of RFC 6675's NextSeg: what may be lost, when there is nothing better to send.
    fn poll_unknown(&mut self, now: Time) -> Option<Transmission> {
        if !self.may_send_unknown() || !self.window_admits(u64::from(self.mss)) {
            return None;
        }
        if let Some(id) = self.board.next_unknown() {
            return Some(self.retransmit(id, now));
        }
        if self.rescued {
            return None;
        }
        self.rescued = true;
        let id = self.board.last_unknown()?;
        Some(self.retransmit(id, now))
    }

    fn retransmit(&mut self, id: u64, now: Time) -> Transmission {
        if self.sack && self.board.front_id() == Some(id) {
            // RFC 6675, section 6: a retransmission may restart the timer, so that a long recovery does
            // not run into it. Only that of the oldest segment does, for which the timer runs.
            self.deadline = now + self.rtt.rto();
        }
        let record = self.board.retransmit(id, now, self.delivered);
        self.undo.on_retransmission(record.offset, record.end());
        let push = record.end() >= self.written;
        Transmission {
            offset: record.offset,
            len: record.len,
            fin: record.is_fin(),
            push,
            again: true,
            cwr: false,
        }
    }

    /// RFC 5681, section 4.1: after an idle time of more than a timeout, start from the initial window.
    fn validate_after_idle(&mut self, now: Time) {
        if self.last_sent.is_some_and(|sent| now.since(sent) > self.rtt.rto()) {
            self.controller.moderate(f64::from(self.initial_window));
            self.last_sent = Some(now);
        }
    }
}
