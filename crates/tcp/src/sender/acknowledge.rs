//! What an acknowledgment means: what was delivered, how long it took, what it is worth.

use elephan_cc::Ack;
use elephan_units::Time;

use super::recovery::Phase;
use super::rtt::ticks;
use super::scoreboard::{DUP_THRESH, Delivered};
use super::{Acknowledgment, Sender};
use crate::config::ByteCounting;
use crate::endpoint::Counters;

/// Linux 2.4 and 2.6 (net/ipv4/tcp_input.c, `tcp_max_burst`): segments that an ACK may set free at once.
const MAX_BURST: u64 = 3;

/// How things stood when an acknowledgment arrived.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Everything below was acknowledged.
    pub una: u64,
    /// Bytes in the pipe.
    pub pipe: u64,
    /// Whether no loss was being repaired.
    pub open: bool,
}

impl Sender {
    /// An acknowledgment arrived.
    pub fn on_ack(&mut self, ack: &Acknowledgment<'_>, counters: &mut Counters, now: Time) {
        if ack.offset > self.next {
            return;
        }
        self.burst = 0;
        let before = Before { una: self.una, pipe: self.board.pipe(), open: self.phase == Phase::Open };
        let window_changed = self.take_window(ack);

        let mut delivered = Delivered::new(now.since(self.rtt.min()));
        let advanced = ack.offset > self.una;
        if advanced {
            self.una = ack.offset;
            self.board.acknowledge(ack.offset, &mut delivered);
            counters.bytes_acked += delivered.cumulative;
            self.tries = 0;
        }
        let duplicate_reported = self.sack && self.take_blocks(ack, &mut delivered);
        self.delivered += delivered.bytes;
        let rtt = self.take_rtt(&delivered, ack.echoed, now);

        // RFC 5681, section 2; with SACK, RFC 6675, section 2: it tells of new data.
        let duplicate = ack.offset == before.una
            && !ack.has_data
            && self.outstanding() > 0
            && if self.sack { delivered.bytes > 0 } else { !window_changed };
        if advanced {
            self.dupacks = 0;
            self.before_dupacks = None;
        } else if duplicate {
            self.dupacks += 1;
            self.before_dupacks.get_or_insert(self.next);
        }

        if duplicate_reported && self.is_spurious() {
            self.undo_reduction(counters);
        } else if self.sack {
            self.repair_with_sack(before, counters, now);
        } else {
            self.repair_without_sack(advanced, duplicate, &delivered, counters, now);
        }
        if ack.ece {
            self.on_ece(before, counters, now);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_ack(delivered.bytes, self.board.pipe(), self.controller.ssthresh(), self.mss);
        }
        if let Some(halving) = &mut self.halving {
            halving.on_ack(self.board.pipe() as f64 / f64::from(self.mss), self.controller.ssthresh());
            self.controller.moderate(halving.cwnd());
        }
        if delivered.bytes > 0 || advanced {
            self.tell_controller(&delivered, rtt, before, ack.ece, now);
        }
        if self.moderate && self.phase == Phase::Open && delivered.segments > MAX_BURST {
            self.controller.moderate(self.segments(self.board.pipe()) + MAX_BURST as f64);
        }
        self.restart_timer(advanced, now);
    }

    /// Takes the peer's window; returns whether it changed. As in Linux (`tcp_may_update_window`), an ACK
    /// of nothing new can open or close the window, but not move its edge back: it may be an old one.
    fn take_window(&mut self, ack: &Acknowledgment<'_>) -> bool {
        let edge = ack.offset + ack.window;
        let changed = edge != self.window_edge && ack.offset == self.una;
        if ack.offset > self.una || changed && (edge > self.window_edge || ack.window == 0) {
            self.window_edge = edge;
        }
        changed
    }

    /// Selective acknowledgments; returns whether the first block reported a duplicate (RFC 2883).
    fn take_blocks(&mut self, ack: &Acknowledgment<'_>, delivered: &mut Delivered) -> bool {
        let mut blocks = ack.blocks;
        let Some(&(left, right)) = blocks.first() else { return false };
        // RFC 2883, section 4: below the cumulative acknowledgment, or within the second block.
        let duplicate =
            left < ack.offset || blocks.get(1).is_some_and(|&second| second.0 <= left && right <= second.1);
        if duplicate {
            self.undo.on_duplicate(left, right, self.mss);
            blocks = &blocks[1..];
        }
        for &(left, right) in blocks {
            if right > self.una && right <= self.next {
                self.board.sack(left.max(self.una), right, self.mss, delivered);
            }
        }
        duplicate
    }

    /// The round-trip time that this ACK shows, if one: of the newest segment that it delivered.
    ///
    /// Karn: only what was sent once gives a sample, or what the echoed timestamp tells apart. The
    /// sample is exact, because it is the time since the segment was sent; timestamps of 1 ms only say
    /// which transmission it was. Without timestamps one sample is taken for each flight (RFC 6298,
    /// section 3).
    fn take_rtt(&mut self, delivered: &Delivered, echoed: Option<u32>, now: Time) -> Option<Time> {
        let sent_at = match (delivered.newest, delivered.ambiguous) {
            (Some((sent_at, _)), None) => sent_at,
            // What arrived long before the hole was filled is acknowledged with it, where nothing reported it then. The echo
            // is of the segment that moved the left edge, or of an older one (RFC 7323, section 4.3).
            (Some((sent_at, _)), Some(_))
                if self.sack && echoed.is_some_and(|echo| ticks(sent_at) >= echo) =>
            {
                sent_at
            }
            (_, Some(sent_at)) if echoed.is_some_and(|echo| echo == ticks(sent_at)) => sent_at,
            _ => return None,
        };
        let rtt = now - sent_at;
        if self.timestamps || self.una > self.timed_from {
            self.timed_from = self.next;
            self.rtt.sample(rtt);
        } else {
            self.rtt.observe(rtt);
        }
        Some(rtt)
    }

    /// Passes on what the controller wants to know of an ACK of new data.
    ///
    /// The window grows only where it was what kept data back (RFC 7661, section 4.3, in Linux's form):
    /// data was waiting for it when what is now acknowledged was on its way; or, in slow start, more
    /// than half of it is in flight. It does not grow in fast recovery, nor at the ACK that ends one, nor
    /// at one that echoes a mark (RFC 3168, section 6.1.2), but for the repair after a timeout: only new data
    /// can say that the window was reduced, and until then the echo tells nothing new.
    fn tell_controller(
        &mut self,
        delivered: &Delivered,
        rtt: Option<Time>,
        before: Before,
        marked: bool,
        now: Time,
    ) {
        if self.una > self.round_end {
            self.round += 1;
            self.round_end = self.next;
        }
        let in_recovery = matches!(self.phase, Phase::Recovery { .. });
        let limited = self.limited_at.is_some_and(|at| before.una <= at)
            || self.controller.in_slow_start() && self.segments(2 * before.pipe) > self.controller.cwnd();
        let held_back = marked && !matches!(self.phase, Phase::Restart { .. });
        let grows = limited && !in_recovery && !held_back && (before.open || self.phase != Phase::Open);
        self.controller.on_ack(&Ack {
            now,
            segments: if grows { self.worth(delivered) } else { 0.0 },
            delivered: self.segments(self.delivered),
            flight_size: self.segments(before.pipe),
            rtt,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
            delivered_since: delivered.newest.map(|(_, before)| self.delivered - before),
            round: self.round,
            in_recovery,
            mss: self.mss,
        });
    }

    /// What an ACK is worth in segments of growth: only what it acknowledges cumulatively counts.
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

    /// RFC 6298, section 5.
    fn restart_timer(&mut self, advanced: bool, now: Time) {
        if self.board.is_empty() {
            // Nothing to wait for, or the peer's closed window, for which a probe was answered.
            self.tries = 0;
            self.deadline = Time::MAX;
            if self.may_send_new() {
                self.rtt.forget_back_off();
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

    /// FlightSize, in segments (RFC 5681, section 2): what is sent beyond `una`, without what limited
    /// transmit added (section 3.2, step 2). It is never more than the window, beyond which only segments
    /// count that have left the network.
    pub(super) fn flight_size(&self, una: u64) -> f64 {
        let sent = self.before_dupacks.unwrap_or(self.next) - una;
        self.segments(sent).min(self.controller.cwnd())
    }

    /// Whether three duplicate ACKs without SACK mean a loss (RFC 6582, section 3.2, step 2).
    pub(super) fn duplicates_tell_of_loss(&self) -> bool {
        self.dupacks >= DUP_THRESH && self.repaired_until != Some(self.una)
    }
}
