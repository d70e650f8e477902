//! RACK (RFC 8985): a segment is lost if one that was sent later has arrived, and the segment is overdue by
//! more than reordering explains. This holds for originals and retransmissions.
//!
//! The scoreboard keeps RACK.segment, the latest transmission that is known to have arrived, and finds what is
//! overdue (`scoreboard/overdue.rs`). Transmissions are ordered by their numbers, which also order those sent
//! at the same time; RFC 8985 orders these by sequence number.
//!
//! An ACK of a retransmission is ignored that comes sooner than the smallest round-trip time (section 6.2, step
//! 2), or whose echoed timestamp is older. The latter applies to cumulative acknowledgment only: above a hole
//! the echo stays that of the hole's left edge (RFC 7323, section 4.3). Linux does without it
//! (`tcp_rack_advance`).

use elephan_units::Time;

use super::acknowledge::Before;
use super::scoreboard::{DUP_THRESH, Delivered};
use super::settings::Repair;
use super::{Phase, Sender};
use crate::report::Counters;

/// RFC 8985, section 6.2, step 4: a wider reordering window lasts for this number of recoveries.
const PERSIST: u8 = 16;
/// Largest degree of reordering that is reported, in segments (Linux, `tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// What RACK keeps beside the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// RACK.rtt: the round-trip time of the last segment that was delivered.
    rtt: Time,
    /// Whether a delivery has shown something new since losses were looked for.
    advanced: bool,
    /// RACK.fack: offset after the highest segment that was delivered.
    fack: u64,
    /// RACK.reordering_seen.
    reordering_seen: bool,
    /// The largest distance by which a segment was overtaken, in segments; three at least.
    pub reordering: u64,
    /// RACK.dsack_round: a D-SACK counts again when this is acknowledged.
    dsack_round: Option<u64>,
    /// RACK.reo_wnd_mult: the reordering window in quarters of the smallest round-trip time; at most 255, as in
    /// Linux (`tcp_rack_update_reo_wnd`).
    steps: u8,
    /// RACK.reo_wnd_persist: number of recoveries for which these last.
    persist: u8,
}

impl Rack {
    /// Nothing was delivered yet.
    pub fn new() -> Self {
        Self { reordering: DUP_THRESH, steps: 1, ..Self::default() }
    }

    /// What lies from `offset` on was not retransmitted, and arrived after segments above it (Linux,
    /// `tcp_check_sack_reordering`).
    pub fn note_reordering(&mut self, offset: u64, mss: u32) {
        if offset < self.fack {
            self.reordering_seen = true;
            let distance = (self.fack - offset).div_ceil(u64::from(mss));
            self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
        }
    }

    /// Duplicate reports have undone a recovery: a wider reordering window lasts for another one (Linux,
    /// `tcp_try_undo_dsack`).
    pub fn extend(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// A reduction is undone: losses are looked for again, though nothing was delivered since (Linux, `tcp_undo_cwnd_reduction`).
    pub fn examine_again(&mut self) {
        self.advanced = true;
    }

    /// A timeout while segments are out of order, `sacked` of them known to have arrived: the degree of reordering was
    /// overestimated (Linux, `tcp_enter_loss`).
    pub fn distrust(&mut self, sacked: u64) {
        if sacked >= DUP_THRESH {
            self.reordering = DUP_THRESH;
        }
    }
}

impl Sender {
    /// An ACK was taken into the scoreboard (RFC 8985, section 6.2, steps 1 to 4); `last` is the last segment that it delivered,
    /// and `duplicate` is where a duplicate begins that it reported, and that widens the reordering window.
    #[inline(never)]
    pub(super) fn update_rack(
        &mut self,
        delivered: &Delivered,
        last: Option<(u64, Time)>,
        duplicate: Option<u64>,
        now: Time,
    ) {
        let settings = &self.settings;
        let Some(rack) = &mut self.rack else { return };
        // Step 2: each segment that is delivered sets RACK.rtt.
        if let Some((_, sent_at)) = last {
            rack.rtt = settings.clock(now).since(settings.clock(sent_at));
            rack.advanced = true;
        }
        // Step 3. The order of what one ACK reports is not known: only what lies below earlier reports was
        // overtaken. Its distance is to the highest that is known now, as in Linux (`tcp_sacktag_write_queue`,
        // `tcp_clean_rtx_queue`).
        let overtaken = delivered.lowest < rack.fack;
        rack.fack = rack.fack.max(self.board.highest_sacked().unwrap_or(0)).max(self.space.una);
        if overtaken {
            rack.note_reordering(delivered.lowest, self.settings.mss);
        }
        // Linux: a retransmission that arrives after its original, selectively acknowledged, was due to reordering
        // (`tcp_sacktag_one`).
        if let Some(offset) =
            duplicate.filter(|&offset| self.board.is_sacked_again(offset, self.settings.mss))
        {
            rack.note_reordering(offset, self.settings.mss);
        }
        // Step 4: the window widens once for each round trip with a D-SACK.
        if rack.dsack_round.is_some_and(|end| self.space.una >= end) {
            rack.dsack_round = None;
        }
        // Linux: the duplicate is due to reordering only if any was seen (`tcp_dsack_seen`).
        if duplicate.is_some() && rack.reordering_seen && rack.dsack_round.is_none() {
            rack.dsack_round = Some(self.space.next);
            rack.steps = rack.steps.saturating_add(1);
            rack.persist = PERSIST;
        }
    }

    /// A recovery has ended, and nothing showed it to have been spurious.
    pub(super) fn note_recovery_end(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.persist = rack.persist.saturating_sub(1);
            if rack.persist == 0 {
                rack.steps = 1;
            }
        }
    }

    /// How long after its transmission a segment is overdue: RACK.rtt and RACK.reo_wnd (section 6.2, step 4).
    fn patience(&self, rack: &Rack) -> Time {
        let is_eager =
            !rack.reordering_seen && (self.phase.is_recovery() || self.board.has_sacked_at_least(DUP_THRESH));
        let window = if is_eager {
            Time::ZERO
        } else {
            let quarter = self.settings.clock(self.settings.clock(self.rtt.min()) / 4);
            (quarter * u64::from(rack.steps)).min(self.settings.clock(self.rtt.srtt()))
        };
        rack.rtt.saturating_add(window)
    }

    /// Marks losses and lost retransmissions: the offset of the highest segment newly marked lost, and the last
    /// transmission of a lost retransmission, if any. Sets the reordering timer if time alone may show more.
    #[inline]
    pub(super) fn detect_losses(&mut self, fack: bool, now: Time) -> (Option<u64>, Option<u32>) {
        if self.rack.is_some() {
            return self.detect_overdue(now);
        }
        (self.board.detect_losses(fack), self.board.detect_lost_retransmissions())
    }

    #[inline(never)]
    fn detect_overdue(&mut self, now: Time) -> (Option<u64>, Option<u32>) {
        let Some(rack) = &mut self.rack else { return (None, None) };
        // Linux (`tcp_rack_mark_lost`): an ACK that delivers nothing shows no loss, and does not set the timer again.
        let advanced = std::mem::take(&mut rack.advanced);
        if !advanced && self.settings.is_coarse() && now < self.timer.reordering {
            return (None, None);
        }
        let Some(rack) = &self.rack else { return (None, None) };
        let wait = self.patience(rack);
        let found = self.board.detect_overdue(wait, self.settings.clock_end(now));
        let deadline = found.pending.map_or(Time::MAX, |sent_at| {
            let overdue = self.settings.clock(sent_at).saturating_add(wait);
            self.expiry(overdue.since(self.settings.clock(now)) + self.settings.timer_margin, now)
        });
        self.timer.set_reordering(deadline);
        (found.lost, found.lost_again)
    }

    /// The reordering timer has run out: what is still missing is lost.
    pub(super) fn on_reordering_timer(&mut self, counters: &mut Counters, now: Time) {
        let Repair::Sack { fack, reduction, .. } = self.settings.repair else { return };
        self.burst = 0;
        let before = Before { una: self.space.una, pipe: self.board.pipe(), open: !self.phase.is_recovery() };
        let was_repairing = matches!(self.phase, Phase::Sack(_));
        if self.repair_with_sack(fack, reduction, before, counters, now)
            && let Phase::Sack(recovery) = &mut self.phase
        {
            // No ACK grants anything to send, and there may be no further one.
            recovery.retransmit_now = true;
            if !was_repairing && self.undoes_as_linux() {
                // Linux (`tcp_rack_reo_timeout`): it counts as the delivery of a segment.
                self.set_recovery_window(self.settings.mss.into(), false);
            }
        }
        self.tell_state(now);
        self.tell_losses(now);
    }

    /// A timeout: marks as lost what is overdue, and the first segment, which is sent at once (section 6.3).
    /// Without RACK, marks everything. In Linux there is no reordering window then (`tcp_timeout_mark_lost`).
    pub(super) fn lose_at_timeout(&mut self, now: Time) {
        self.timer.set_reordering(Time::MAX);
        self.timer.stop_loss_probe();
        self.forget_probe();
        match &self.rack {
            Some(rack) => {
                let wait = if self.undoes_as_linux() { rack.rtt } else { self.patience(rack) };
                let sent_by = self.settings.clock_end(now).since(wait);
                self.board.old_is_lost(sent_by);
                self.timer.front_is_due = true;
            }
            None => self.board.all_is_lost(),
        }
    }
}
