//! What is reported of a connection to a governor, and the pacing that it asks for.

use elephan_cc::governor::{Event, Governor, Rate, Report, Snapshot, Told, clock, nanos};
use elephan_cc::{Cause, State};
use elephan_units::Time;

use super::pacing::Pacer;
use super::rate::{Counts, RateSampler, Sending};
use super::scoreboard::{Arrivals, Delivered};
use super::{Acknowledgment, Sender};
use crate::report::Counters;

/// What a sender keeps only where a governor sets its window.
#[derive(Clone, Debug)]
pub struct Governed {
    /// The state that the governor was told last.
    state: State,
    /// Whether the reduction that the current state answers was undone.
    undone: bool,
    /// Whether its end was told.
    ended: bool,
    delivered: Counts,
    /// Where the scoreboard began when the last ACK was processed.
    first: u64,
    /// Segments in flight when the last ACK arrived.
    prior_in_flight: u32,
    /// [`Report::is_predicted`] of that ACK.
    is_predicted: bool,
    /// The ACK that is being processed, once it is known what it delivered.
    ack: Option<Delivery>,
    /// Whether the governor asks for a reduction.
    asks: bool,
    /// None where the governor needs no rate.
    sampler: Option<RateSampler>,
}

/// What an ACK delivered, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Cumulatively or selectively acknowledged, and duplicates where these count as delivered.
    pub acked: u64,
    /// Cumulatively acknowledged.
    pub cumulative: u64,
    /// The last transmission among them: its id, and when it was sent.
    pub newest: Option<(u64, Time)>,
    pub rtt: Option<Time>,
    /// Whether the ACK echoed a mark.
    pub marked: bool,
}

impl Governed {
    /// A connection that has sent nothing yet.
    pub fn new(governor: &dyn Governor) -> Self {
        Self {
            state: State::Open,
            undone: false,
            ended: false,
            delivered: Counts::default(),
            first: 0,
            prior_in_flight: 0,
            is_predicted: false,
            ack: None,
            asks: false,
            sampler: governor.needs_rate().then(RateSampler::default),
        }
    }

    /// Whether it needs to know of each segment.
    #[inline]
    pub fn needs_rate(&self) -> bool {
        self.sampler.is_some()
    }
}

impl Sender {
    /// Whether a governor needs to know of each segment.
    #[inline]
    pub(super) fn is_sampled(&self) -> bool {
        self.governed.as_ref().is_some_and(|governed| governed.needs_rate())
    }

    /// Segments in flight, as Linux counts them (`tcp_packets_in_flight`).
    #[inline]
    pub(super) fn segments_in_flight(&self) -> u32 {
        let board = &self.board;
        (board.len() - board.sacked() - board.lost() + board.retransmitted()) as u32
    }

    /// The connection as it is now, and the ACK that is being processed.
    fn report(&self, now: Time) -> Report {
        let Some(governed) = &self.governed else { return Report::default() };
        let (in_flight, ack) = (self.segments_in_flight(), governed.ack);
        Report {
            now_ns: clock(now),
            rtt_ns: ack.and_then(|ack| ack.rtt).map_or(-1, |rtt| nanos(rtt).cast_signed()),
            min_rtt_ns: nanos(self.rtt.min()),
            srtt_ns: nanos(self.rtt.srtt()),
            sent_ns: clock(self.last_sent.min(now)),
            snd_una: self.space.una,
            snd_nxt: self.space.next,
            delivered: governed.delivered.all,
            delivered_ce: governed.delivered.marked,
            lost: self.board.losses().into(),
            round: self.round.number,
            growth: 0.0,
            acked: ack.map_or(0, |ack| ack.acked as u32),
            acked_cumulative: ack.map_or(0, |ack| ack.cumulative as u32),
            in_flight,
            prior_in_flight: ack.map_or(in_flight, |_| governed.prior_in_flight),
            sacked: self.board.sacked() as u32,
            outstanding_max: self.segments(self.usage.outstanding) as u32,
            mss: self.settings.mss,
            state: governed.state.into(),
            is_window_limited: u32::from(self.usage.limited),
            is_ece: ack.map_or(0, |ack| ack.marked.into()),
            rate: Rate::default(),
            is_predicted: ack.map_or(0, |_| governed.is_predicted.into()),
        }
    }

    /// Tells the governor something that is no ACK.
    #[inline(never)]
    fn tell(&mut self, told: Told, now: Time) {
        let report = self.report(now);
        self.tell_report(told, &report);
    }

    #[inline]
    fn tell_report(&mut self, told: Told, report: &Report) {
        if self.controller.tell(told, report)
            && let Some(governed) = &mut self.governed
        {
            governed.asks = true;
        }
        self.follow_pacing_rate();
    }

    /// The first data is about to be sent.
    pub(super) fn tell_start(&mut self, now: Time) {
        if self.governed.is_some() {
            self.tell(Told::Start, now);
        }
    }

    /// Something has happened that is no ACK, reduction or change of state.
    pub fn tell_event(&mut self, event: Event, now: Time) {
        if self.governed.is_some() {
            self.tell(Told::Event(event), now);
        }
    }

    /// Tells the governor of the current state, if it has changed, and before of the end of a reduction.
    #[inline(never)]
    pub(super) fn tell_state(&mut self, now: Time) {
        if self.governed.is_none() {
            return;
        }
        self.tell_reduction_end(now);
        let state = self.state();
        let Some(governed) = &mut self.governed else { return };
        let ended = std::mem::take(&mut governed.ended);
        governed.undone = false;
        if state != std::mem::replace(&mut governed.state, state) || ended {
            self.tell(Told::State, now);
        }
    }

    /// Tells the governor of the state after a timeout, also if it was that before (Linux, `tcp_enter_loss`).
    pub(super) fn tell_timeout(&mut self, now: Time) {
        if let Some(governed) = &mut self.governed {
            governed.state = State::Open;
        }
        self.tell_state(now);
    }

    /// Tells the governor if the reduction of the state that it was told last has ended, and was not undone: before
    /// the same ACK begins the next one (Linux, `tcp_end_cwnd_reduction`).
    #[inline(never)]
    pub(super) fn tell_reduction_end(&mut self, now: Time) {
        let state = self.state();
        let Some(governed) = &mut self.governed else { return };
        let was_reduced = matches!(governed.state, State::Recovery | State::Cwr);
        let ends = was_reduced && !governed.ended && matches!(state, State::Open | State::Disorder);
        if !ends || governed.undone {
            return;
        }
        governed.ended = true;
        self.tell(Told::Event(Event::EndCwr), now);
    }

    /// A congestion event.
    pub(super) fn tell_congestion(&mut self, cause: Cause, now: Time) {
        let report = self.report(now);
        self.controller.on_governed_congestion(cause, &report);
        self.follow_pacing_rate();
    }

    /// An ACK was processed: reduces the window if the governor asks for it, and no reduction is in progress (Linux,
    /// net/ipv4/tcp_input.c, `tcp_enter_cwr`).
    fn reduce_if_asked(&mut self, counters: &mut Counters, now: Time) {
        let Some(governed) = &mut self.governed else { return };
        if !std::mem::take(&mut governed.asks) || !matches!(governed.state, State::Open | State::Disorder) {
            return;
        }
        self.reduce(Cause::Ecn, self.space.una, counters, now);
        self.tell_state(now);
    }

    /// The last reduction is undone.
    pub(super) fn note_undo(&mut self) {
        if let Some(governed) = &mut self.governed {
            governed.undone = true;
        }
        self.follow_pacing_rate();
    }

    /// An ACK arrived, and nothing of it was processed yet: what it delivers is to be told.
    #[inline(never)]
    pub(super) fn note_prior(&mut self, ack: &Acknowledgment<'_>) -> Arrivals {
        self.note_app_limited();
        let in_flight = self.segments_in_flight();
        let is_predicted = ack.offset > self.space.una
            && ack.window == self.space.window()
            && ack.blocks.is_empty()
            && !ack.ece;
        if let Some(governed) = &mut self.governed {
            governed.prior_in_flight = in_flight;
            governed.is_predicted = is_predicted;
        }
        Arrivals::default()
    }

    /// It is known what an ACK `delivered`, with `duplicates` that count, too: reports have it from here to [`Sender::tell_ack`].
    #[cold]
    pub(super) fn note_delivery(
        &mut self,
        delivered: &Delivered,
        duplicates: u64,
        advanced: bool,
        rtt: Option<Time>,
        marked: bool,
    ) {
        let Some(Arrivals { count, latest }) = delivered.told else { return };
        if delivered.bytes > 0 || duplicates > 0 || advanced {
            let newest = latest.map(|(_, id, sent_at)| (id, sent_at));
            self.note_ack(Some(Delivery {
                acked: count + duplicates,
                cumulative: delivered.segments,
                newest,
                rtt,
                marked,
            }));
        }
    }

    #[inline(never)]
    fn note_ack(&mut self, ack: Option<Delivery>) {
        if let Some(governed) = &mut self.governed {
            governed.ack = ack;
        }
    }

    /// What is known of a segment that was sent, for a governor that needs to know of each.
    fn snapshot(&self, id: u64) -> Option<Snapshot> {
        self.governed.as_ref()?.sampler.as_ref()?.snapshot(id, self.settings.sack())
    }

    /// Tells the governor which segments were found lost since it was told last, if it needs to know of each: before one of them is
    /// retransmitted.
    #[inline]
    pub(super) fn tell_losses(&mut self, now: Time) {
        if self.board.has_found() {
            self.tell_each_loss(now);
        }
    }

    #[inline(never)]
    fn tell_each_loss(&mut self, now: Time) {
        let found = self.board.take_found();
        let mut report = self.report(now);
        report.lost -= found.len() as u64;
        for id in found {
            report.lost += 1;
            if let Some(segment) = self.snapshot(id) {
                self.tell_report(Told::Lost(segment), &report);
            }
        }
    }

    /// The ACK that delivered data, for which the window may grow by `growth` segments: what it says of the state is told already.
    #[inline(never)]
    pub(super) fn tell_ack(&mut self, growth: f64, counters: &mut Counters, now: Time) {
        let Some(governed) = &mut self.governed else { return };
        let Some(delivery) = governed.ack else { return };
        governed.first = self.board.first();
        governed.delivered.all += delivery.acked;
        governed.delivered.marked += if delivery.marked { delivery.acked } else { 0 };
        self.tell_losses(now);
        if let Some(newest) = delivery.newest.and_then(|(id, _)| self.snapshot(id)) {
            self.tell_report(Told::Newest(newest), &Report::default());
        }
        let losses = self.board.losses();
        let Some(governed) = &mut self.governed else { return };
        let delivered = governed.delivered;
        let rate = match &mut governed.sampler {
            None => Rate::default(),
            Some(sampler) => {
                sampler.sample(delivery.newest, governed.first, delivered, losses, self.rtt.min(), now)
            }
        };
        // As Linux (net/ipv4/tcp_input.c, `tcp_clean_rtx_queue`): a lone segment that is not full.
        let is_ack_delayed = (delivery.acked, delivery.cumulative) == (1, 1)
            && !self.board.has_sacked()
            && rate.prior_delivered + 1 == delivered.all
            && (1..self.settings.mss).contains(&rate.sent_in_flight);
        let mut report = self.report(now);
        report.growth = growth;
        report.rate = Rate { is_ack_delayed: u32::from(is_ack_delayed), ..rate };
        self.tell_report(Told::Ack, &report);
        self.note_ack(None);
        self.reduce_if_asked(counters, now);
    }

    /// The same where nothing was missing, lost or retransmitted, and the window is that of the last ACK: `bytes` were delivered. The
    /// state is told, too.
    #[inline(never)]
    pub(super) fn tell_plain_ack(
        &mut self,
        bytes: u64,
        rtt: Time,
        state: State,
        counters: &mut Counters,
        now: Time,
    ) {
        let (in_flight, first) = (self.segments_in_flight(), self.board.first());
        let Some(governed) = &mut self.governed else { return };
        let acked = first - std::mem::replace(&mut governed.first, first);
        governed.prior_in_flight = in_flight + acked as u32;
        governed.ack =
            Some(Delivery { acked, cumulative: acked, newest: None, rtt: Some(rtt), marked: false });
        governed.is_predicted = true;
        if state != governed.state {
            self.tell_state(now);
        }
        self.begin_round();
        if let Some(governed) = &mut self.governed {
            governed.delivered.all += acked;
        }
        let mut report = self.report(now);
        report.growth = self.growth(bytes);
        self.tell_report(Told::Ack, &report);
        self.note_ack(None);
        self.reduce_if_asked(counters, now);
    }

    /// New data is sent, or segment `id` again: the scoreboard and the send space know of it already. `is_first` says whether
    /// nothing was in flight before.
    #[inline]
    pub(super) fn note_sent(&mut self, id: u64, end: u64, is_first: bool, now: Time) {
        if self.is_sampled() {
            self.sample_sent(id, end, is_first, now);
        }
    }

    fn sample_sent(&mut self, id: u64, end: u64, is_first: bool, now: Time) {
        let (in_flight, losses) = (self.segments_in_flight(), self.board.losses());
        let unacknowledged = end - self.space.una;
        if let Some(governed) = &mut self.governed
            && let Some(sampler) = &mut governed.sampler
        {
            let delivered = governed.delivered;
            sampler.on_sent(id, Sending { is_first, delivered, unacknowledged, in_flight, losses }, now);
        }
    }

    /// Takes note if the application, and nothing else, limits what is in flight.
    #[inline]
    pub(super) fn note_app_limited(&mut self) {
        if self.is_sampled() {
            self.sample_app_limited();
        }
    }

    #[inline(never)]
    fn sample_app_limited(&mut self) {
        let in_flight = self.segments_in_flight();
        let has_segment = self.space.written.saturating_sub(self.space.next) >= u64::from(self.settings.mss);
        let has_room = f64::from(in_flight) < self.controller.cwnd();
        if has_segment || !has_room || self.board.has_waiting() {
            return;
        }
        if let Some(governed) = &mut self.governed
            && let Some(sampler) = &mut governed.sampler
        {
            sampler.on_app_limited(governed.delivered.all + u64::from(in_flight));
        }
    }

    /// Paces, once the governor has asked for it.
    #[inline]
    fn follow_pacing_rate(&mut self) {
        if self.controller.pacing_rate() > 0.0 && self.pacer.is_none() {
            self.pacer = Some(Box::new(Pacer::AT_ONCE));
        }
    }
}
