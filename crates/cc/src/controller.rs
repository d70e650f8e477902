//! The part that all algorithms share: the two windows, slow start, the loss window, whole windows, undo.

use elephan_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Start, Window};
use crate::governor::{Fault, Governor, Limits, REQUEST_CWR, Report, Told, clock};
use crate::registry::AnyAlgorithm;
use crate::slow_start::SlowStart;
use crate::variable::Tell;

/// RFC 5681, equation 4: `ssthresh` is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;
/// RFC 5681, section 3.1: the loss window is one segment.
const LOSS_WINDOW: f64 = 1.0;
/// By which a computed number of segments may fall short of a whole number that it is.
const ROUNDING: f64 = 1e-9;

/// Whether the window is a real number or, as in kernels, an integer with a counter of ACKs.
///
/// Kernels code a decrease in one of two ways, and the published measurements tell them apart
/// (thesis, sections 8.2.1 and 9.1.2): a window of 18 with b = 1/8 becomes 16 or 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantisation {
    /// The papers' form: the window is a real number.
    #[default]
    None,
    /// Whole windows, and a decrease rounds up: coded `cwnd - floor(b * cwnd)`.
    RoundUp,
    /// Whole windows, and a decrease rounds down: coded `floor(beta * cwnd)`.
    RoundDown,
}

impl Quantisation {
    /// The window of at most so many segments.
    fn floor(self, segments: f64) -> f64 {
        match self {
            Self::None => segments,
            Self::RoundUp | Self::RoundDown => libm::floor(segments),
        }
    }
}

/// What an undo restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    /// The window, the threshold and the algorithm's state: as if the event had not happened. If the window has grown beyond
    /// its earlier value, nothing changes (RFC 9438, section 4.9.2).
    #[default]
    State,
    /// The window and the threshold, each if it was larger before (Linux since 4.10, `tcp_undo_cwnd_reduction`).
    Windows,
    /// The threshold, if it was larger before, and a window of at least twice the reduced threshold (Linux 2.4, `tcp_undo_cwr`).
    TwiceSsthresh,
}

/// A rule that divides by zero does not grow, and no rule grows by more than `most`.
#[inline(always)]
fn limited(growth: f64, most: f64) -> f64 {
    if growth.is_finite() { growth.min(most) } else { 0.0 }
}

impl Window {
    #[inline(always)]
    fn add(&mut self, growth: f64) {
        self.cwnd = (self.cwnd + growth).max(LOSS_WINDOW);
    }
}

/// The state that a congestion event changes, and that an undo restores.
#[derive(Clone)]
#[repr(C)]
struct State {
    window: Window,
    algorithm: AnyAlgorithm,
    slow_start: SlowStart,
    /// With whole windows: accumulated growth of less than a segment (a kernel's `snd_cwnd_cnt / snd_cwnd`).
    fraction: f64,
    /// If the last ACK let the window grow, by how much of a segment for each one acknowledged; otherwise zero.
    rate: f64,
    /// The rate that a governor or the slow start paces at, in bytes per second; zero: none.
    pacing_rate: f64,
}

impl State {
    fn limits(&self) -> Limits {
        let Window { cwnd, ssthresh } = self.window;
        Limits { cwnd, ssthresh, pacing_rate: self.pacing_rate, requests: 0 }
    }

    /// Whole segments of `growth` at an ACK of `segments`, and of what waits. Kernels count what was acknowledged: what one segment of
    /// growth leaves over is a smaller share of the next where that takes more of it, as one does in a larger window (Linux,
    /// net/ipv4/tcp_cong.c, `tcp_cong_avoid_ai`).
    fn whole(&mut self, growth: f64, segments: f64) -> f64 {
        let rate = growth / segments;
        if rate > 0.0 && self.rate > 0.0 {
            self.fraction *= (rate / self.rate).clamp(1.0 - 1.0 / self.window.cwnd, 1.0);
        }
        self.fraction += growth;
        let whole = libm::trunc(self.fraction + libm::copysign(ROUNDING, self.fraction));
        self.fraction -= whole;
        self.rate = if whole > 0.0 { rate } else { 0.0 };
        whole
    }

    fn set(&mut self, limits: Limits) {
        let Limits { cwnd, ssthresh, pacing_rate, .. } = limits;
        (self.window, self.pacing_rate) = (Window { cwnd, ssthresh }, pacing_rate);
    }
}

/// The congestion control of one connection.
#[derive(Clone)]
#[repr(C)]
pub struct Controller {
    quantisation: Quantisation,
    /// Whether a mark has a factor of its own (RFC 8511).
    abe: bool,
    state: State,
    /// The state before the last congestion event, until it is undone.
    before: Option<Box<State>>,
}

impl Controller {
    /// A controller that starts with `initial_window` segments.
    pub fn new(
        algorithm: AnyAlgorithm,
        slow_start: SlowStart,
        quantisation: Quantisation,
        initial_window: f64,
    ) -> Self {
        let window = Window { cwnd: initial_window.max(LOSS_WINDOW), ssthresh: f64::INFINITY };
        let state = State { window, algorithm, slow_start, fraction: 0.0, rate: 0.0, pacing_rate: 0.0 };
        Self { state, quantisation, abe: false, before: None }
    }

    /// The same, with an initial slow-start threshold of `segments`.
    #[must_use]
    pub fn with_ssthresh(mut self, segments: f64) -> Self {
        self.state.window.ssthresh = segments.max(MIN_SSTHRESH);
        self
    }

    /// The same with alternative backoff for marks: where the algorithm has a factor for it, a mark reduces the window by that (RFC 8511).
    #[must_use]
    pub fn with_abe(mut self) -> Self {
        self.abe = true;
        self
    }

    /// Whether the sender must be able to pace for the slow start.
    pub fn paces_start(&self) -> bool {
        self.state.slow_start.paces()
    }

    /// Whether the reduction that is in progress is one at once, whatever the sender's recovery is.
    pub fn retreats(&self) -> bool {
        self.state.slow_start.retreats()
    }

    /// The sender paces: rules that exist because of bursts do not apply.
    pub fn pace(&mut self) {
        self.state.slow_start.pace();
    }

    /// Whether the slow start limits what an ACK adds by itself, in place of byte counting's L.
    pub fn limits_start(&self) -> bool {
        self.state.slow_start.has_limit()
    }

    /// The congestion window, in segments; 1 or more.
    pub fn cwnd(&self) -> f64 {
        self.state.window.cwnd
    }

    /// The slow-start threshold, in segments; infinite until the first congestion event.
    pub fn ssthresh(&self) -> f64 {
        self.state.window.ssthresh
    }

    /// Whether the sender is in slow start, or in a start phase of the algorithm's own.
    pub fn in_slow_start(&self) -> bool {
        self.state.window.in_slow_start()
    }

    /// The same for a connection of its own: a governor's random numbers come from `seed`.
    #[must_use]
    pub fn fresh(&self, seed: u64) -> Self {
        let mut controller = self.clone();
        if let AnyAlgorithm::Governor(governor) = &mut controller.state.algorithm {
            *governor = governor.fresh(seed);
        }
        controller
    }

    /// Tells the variables of the algorithm, and of the slow start that it uses.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        let State { algorithm, slow_start, .. } = &self.state;
        algorithm.variables(tell);
        if !algorithm.has_slow_start() || slow_start.paces() {
            slow_start.variables(tell);
        }
    }

    /// The governor, if one sets the window.
    pub fn governor(&self) -> Option<&dyn Governor> {
        match &self.state.algorithm {
            AnyAlgorithm::Governor(governor) => Some(governor.as_ref()),
            _ => None,
        }
    }

    /// The fault of the governor, which is not called again.
    pub fn fault(&self) -> Option<&Fault> {
        match &self.state.algorithm {
            AnyAlgorithm::Failed(fault) => Some(fault),
            _ => None,
        }
    }

    /// The rate that the governor or the slow start paces at, in bytes of payload per second; zero: none.
    #[inline]
    pub fn pacing_rate(&self) -> f64 {
        self.state.pacing_rate
    }

    /// Whether a governor sets cwnd in recovery, too.
    pub fn governs_recovery(&self) -> bool {
        self.governor().is_some_and(Governor::governs_recovery)
    }

    /// Tells the governor something; its window is the window. Returns whether it asks for a reduction.
    #[inline]
    pub fn tell(&mut self, told: Told, report: &Report) -> bool {
        let limits = self.state.limits();
        let Some(said) = self.ask(report.now_ns, |governor| governor.tell(told, limits, report)) else {
            return false;
        };
        self.state.set(said);
        said.requests & REQUEST_CWR != 0
    }

    /// The answer of the governor; none if it has failed.
    #[inline]
    fn ask<T>(&mut self, now_ns: u64, ask: impl FnOnce(&mut dyn Governor) -> Result<T, Fault>) -> Option<T> {
        let AnyAlgorithm::Governor(governor) = &mut self.state.algorithm else { return None };
        match ask(governor.as_mut()) {
            Ok(answer) => Some(answer),
            Err(fault) => {
                self.state.algorithm = AnyAlgorithm::Failed(fault.at_ns(now_ns));
                self.before = None;
                None
            }
        }
    }

    /// [`Controller::on_ack`] for an ACK outside a recovery that is worth `segments`; `ack` tells all of it to an algorithm that asks for
    /// more.
    #[inline(always)]
    pub fn on_plain_ack(&mut self, segments: f64, ack: impl FnOnce() -> Ack) {
        let State { window, algorithm, slow_start, .. } = &mut self.state;
        if self.quantisation == Quantisation::None
            && !window.in_slow_start()
            && !slow_start.controls()
            && let Some(growth) = algorithm.increase_by_window(window, segments)
        {
            if segments > 0.0 {
                window.add(limited(growth, segments));
            }
        } else {
            self.on_ack(&ack());
        }
    }

    /// An ACK with new information for the sender.
    pub fn on_ack(&mut self, ack: &Ack) {
        let State { window, algorithm, slow_start, .. } = &mut self.state;
        algorithm.observe(window, ack);
        if slow_start.controls() && self.control(ack) || ack.in_recovery() {
            return;
        }
        let State { window, algorithm, slow_start, .. } = &mut self.state;
        if window.in_slow_start() {
            slow_start.observe(window, ack);
            if ack.segments > 0.0 {
                let start = algorithm.start(window, ack).unwrap_or_else(|| slow_start.grow(window, ack));
                self.start(start, ack);
            }
        } else if ack.segments > 0.0 {
            let growth = algorithm.increase(window, ack);
            self.grow(growth, ack.segments);
        }
    }

    /// An ACK of a connection whose slow start controls the windows; returns whether they may not grow.
    #[cold]
    fn control(&mut self, ack: &Ack) -> bool {
        let mut window = self.state.window;
        let holds = self.state.slow_start.control(&mut window, ack);
        if window.cwnd != self.state.window.cwnd {
            window.cwnd = self.quantisation.floor(window.cwnd).max(LOSS_WINDOW);
            self.state.fraction = 0.0;
        }
        window.ssthresh = window.ssthresh.max(MIN_SSTHRESH);
        self.state.window = window;
        self.state.pacing_rate = self.state.slow_start.pacing_rate();
        holds
    }

    /// [`Controller::on_ack`] of a sender that may be rate-limited and has had `max_flight` segments in flight: the window grows to limit(maxFS) at
    /// most, what the transmission of a window of that size would make of it (draft-ietf-ccwg-ratelimited-increase-10, section 3). The rule
    /// limits increases only.
    pub fn on_rate_limited_ack(&mut self, ack: &Ack, max_flight: f64) {
        let (cwnd, starts) = (self.cwnd(), self.in_slow_start());
        self.on_ack(ack);
        if self.cwnd() <= max_flight.max(cwnd) || self.state.slow_start.has_jumped() {
            return;
        }
        let increase = if starts {
            max_flight
        } else {
            let window = Window { cwnd: max_flight.max(LOSS_WINDOW), ..self.state.window };
            let whole = Ack { segments: max_flight, ..*ack };
            limited(self.state.algorithm.clone().increase(&window, &whole), max_flight)
        };
        self.moderate((max_flight + increase).max(cwnd));
    }

    /// Grows the window up to `ssthresh`, and uses the rest of the ACK's segments for growth beyond it.
    fn start(&mut self, start: Start, ack: &Ack) {
        let State { window, fraction, .. } = &self.state;
        let room = window.ssthresh - window.cwnd - fraction;
        if start.growth <= room {
            self.grow(start.growth, ack.segments);
            if start.ends {
                self.state.window.ssthresh = self.state.window.cwnd.max(MIN_SSTHRESH);
            }
            return;
        }
        self.grow(room, ack.segments);
        if !self.state.algorithm.uses_rest() {
            return;
        }
        let rest = Ack { segments: ack.segments * (1.0 - room / start.growth), ..*ack };
        let growth = self.state.algorithm.increase(&self.state.window, &rest);
        self.grow(growth, rest.segments);
    }

    /// Changes the window by `growth` segments, but upwards by at most `most`, the rate of slow start (RFC
    /// 5681, section 3.1). Kernels have the same limit, because their window grows by one for an ACK.
    fn grow(&mut self, growth: f64, most: f64) {
        let growth = limited(growth, most);
        let growth = match self.quantisation {
            Quantisation::None => growth,
            Quantisation::RoundUp | Quantisation::RoundDown => self.state.whole(growth, most),
        };
        self.state.window.add(growth);
    }

    fn remember(&mut self) {
        match &mut self.before {
            Some(before) => **before = self.state.clone(),
            before @ None => *before = Some(Box::new(self.state.clone())),
        }
    }

    /// A congestion event of which the governor is told, as in [`Controller::on_congestion`].
    pub fn on_governed_congestion(&mut self, cause: Cause, report: &Report) {
        self.remember();
        let limits = self.state.limits();
        let Some(mut said) = self.ask(report.now_ns, |governor| governor.reduce(cause, limits, report))
        else {
            return;
        };
        if !self.governs_recovery() {
            said.ssthresh = said.ssthresh.max(MIN_SSTHRESH);
            said.cwnd = if cause == Cause::Timeout { LOSS_WINDOW } else { said.ssthresh.min(said.cwnd) };
        }
        self.state.set(said);
    }

    /// A congestion event; the caller ensures that there is only one for each window of data.
    pub fn on_congestion(&mut self, event: &Congestion) {
        self.remember();
        let State { window, algorithm, slow_start, fraction, pacing_rate, .. } = &mut self.state;
        let most = slow_start.on_congestion(event);
        *pacing_rate = slow_start.pacing_rate();
        let mut target = algorithm.decrease(window, event);
        if self.abe
            && event.cause == Cause::Ecn
            && let Some(beta) = algorithm.abe()
        {
            target = beta * event.flight_size;
        }
        let target = match self.quantisation {
            Quantisation::None => target,
            Quantisation::RoundUp => libm::ceil(target),
            Quantisation::RoundDown => libm::floor(target),
        };
        let target = most.map_or(target, |most| target.min(self.quantisation.floor(most)));
        *fraction = 0.0;
        // `max` also turns a NaN into the smallest threshold.
        window.ssthresh = target.max(MIN_SSTHRESH);
        window.cwnd = match event.cause {
            Cause::Timeout => LOSS_WINDOW,
            // The data in flight may exceed the window, as after a timeout; the window must not rise.
            Cause::Loss | Cause::Ecn => window.ssthresh.min(window.cwnd),
        };
    }

    /// The last congestion event is not to be undone.
    pub fn confirm(&mut self) {
        self.before = None;
    }

    /// The window after a timeout is `segments`, if these are more than the loss window.
    pub fn open_to(&mut self, segments: f64) {
        if !self.governs_recovery() {
            self.state.window.cwnd = segments.max(LOSS_WINDOW);
        }
    }

    /// Restarts from the loss window: a retransmitted segment timed out again, or Tahoe.
    pub fn collapse(&mut self) {
        if self.governs_recovery() {
            return;
        }
        self.state.window.cwnd = LOSS_WINDOW;
        self.state.fraction = 0.0;
    }

    /// The next data follows after `idle`, in which nothing was in flight.
    pub fn resume(&mut self, idle: Time) {
        self.state.algorithm.resume(idle);
    }

    /// Reduces `cwnd` to `segments` if it is larger: congestion window moderation and validation.
    pub fn moderate(&mut self, segments: f64) {
        let segments = self.quantisation.floor(segments);
        if segments < self.state.window.cwnd {
            self.state.window.cwnd = segments.max(LOSS_WINDOW);
            self.state.fraction = 0.0;
        }
    }

    /// Sets the threshold to `segments`, and the window with it: a reduction whose size the sender determines (RFC 7661, section 4.4.1).
    pub fn restrict(&mut self, segments: f64) {
        let segments = self.quantisation.floor(segments);
        let window = &mut self.state.window;
        window.ssthresh = segments.max(MIN_SSTHRESH);
        window.cwnd = segments.max(LOSS_WINDOW);
        self.state.fraction = 0.0;
    }

    /// Data is sent after an idle time of `timeouts` retransmission timeouts: the window is halved for each, down
    /// to `restart` segments, and ssthresh is at least three quarters of what it was (RFC 2861, section 3.1; RFC 7661, section 4.4.3).
    pub fn decay(&mut self, timeouts: u32, restart: f64) {
        let window = &mut self.state.window;
        window.ssthresh = window.ssthresh.max(0.75 * window.cwnd);
        let halved = window.cwnd * libm::exp2(-f64::from(timeouts));
        self.moderate(halved.max(restart));
    }

    /// Undoes the last congestion event: the supposed loss was reordering or delay. A governor may say what is restored.
    pub fn undo(&mut self, undo: Undo, now: Time) {
        let Some(before) = self.before.take() else { return };
        let limits = self.state.limits();
        if let Some(Some(said)) = self.ask(clock(now), |governor| governor.restore(limits, &before.limits()))
        {
            self.state.set(said);
            return;
        }
        let window = &mut self.state.window;
        match undo {
            Undo::State => {
                if window.cwnd <= before.window.cwnd {
                    self.state = *before;
                }
                return;
            }
            Undo::Windows => {
                window.cwnd = window.cwnd.max(before.window.cwnd);
                self.state.algorithm.undo();
            }
            Undo::TwiceSsthresh => window.cwnd = window.cwnd.max(2.0 * window.ssthresh),
        }
        window.ssthresh = window.ssthresh.max(before.window.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;

    #[test]
    fn slow_start_ends_at_ssthresh_and_the_rest_counts_beyond() {
        // 9.5 and an ACK of 2: 0.5 to ssthresh, and 1.5/10 beyond.
        let mut history = History::of("reno").starting(9.5);
        history.controller = history.controller.with_ssthresh(10.0);
        history.ack(2.0).window_near(10.15, 1e-12);
    }

    #[test]
    fn no_growth_in_recovery() {
        let mut history = History::of("reno");
        history.in_recovery = true;
        history.ack(1.0).window_is(10.0);
    }

    #[test]
    fn ssthresh_is_two_segments_at_least() {
        for (cwnd, after) in [(10.0, 5.0), (3.0, 2.0), (1.5, 1.5)] {
            let mut history = History::of("reno").at(cwnd);
            history.loss();
            assert_eq!((history.cwnd(), history.ssthresh()), (after, f64::max(after, 2.0)));
        }
    }

    #[test]
    fn a_loss_does_not_raise_the_window_though_more_is_in_flight() {
        let mut history = History::of("reno").at(4.0);
        history.controller.on_congestion(&crate::history::loss(20.0));
        assert_eq!((history.cwnd(), history.ssthresh()), (4.0, 10.0));
    }

    #[test]
    fn a_timeout_leaves_the_loss_window_and_a_second_one_the_threshold() {
        let mut history = History::of("reno").at(20.0);
        history.event(Cause::Timeout);
        assert_eq!((history.cwnd(), history.ssthresh()), (1.0, 10.0));
        history.ack(1.0);
        history.controller.collapse();
        assert_eq!((history.cwnd(), history.ssthresh()), (1.0, 10.0));
    }

    #[test]
    fn whole_windows_grow_when_a_segment_is_complete() {
        // 4 + 1/4 for each ACK: the fourth completes a segment. In slow start, limited to 1/2 at a window of
        // 101, the second completes one.
        let mut history = History::of("reno").quantised(Quantisation::RoundUp).at(4.0);
        let windows = [0; 4].map(|_| {
            history.ack(1.0);
            history.cwnd()
        });
        assert_eq!(windows, [4.0, 4.0, 4.0, 5.0]);
        let mut history =
            History::of("reno").quantised(Quantisation::RoundUp).slow_start("limited").starting(101.0);
        history.ack(1.0).window_is(101.0);
        history.ack(1.0).window_is(102.0);
    }

    #[test]
    fn a_window_of_n_is_complete_with_n_acks() {
        // The sum of n times 1/n is below 1 for many n; kernels count in integers, and what ACKs of two segments leave over counts
        // for one in a window of any size.
        let mut history = History::of("reno").quantised(Quantisation::RoundDown).at(2.0);
        for window in 2..1000 {
            history.acks(window - 1, 1.0).window_is(f64::from(window));
            history.ack(1.0).window_is(f64::from(window + 1));
        }
        let mut history = History::of("reno").quantised(Quantisation::RoundDown).at(3.0);
        let (mut window, mut count) = (3, 0);
        for _ in 0..100_000 {
            history.ack(2.0);
            count += 2;
            if count >= window {
                (count, window) = (count - window, window + 1);
            }
            history.window_is(f64::from(window));
        }
    }

    #[test]
    fn growth_that_is_waiting_counts_towards_ssthresh() {
        // Limited slow start at 101 adds 1/2 for each: after one ACK 0.5 is accumulated and 0.5 is missing to
        // ssthresh. An ACK of 4 uses 1 for that, and 3/102 is accumulated beyond; 60 more make 63/102.
        let mut history =
            History::of("reno").quantised(Quantisation::RoundUp).slow_start("limited").starting(101.0);
        history.controller = history.controller.with_ssthresh(102.0);
        history.ack(1.0).ack(4.0).acks(60, 1.0).window_is(102.0);
        history.acks(40, 1.0).window_is(103.0);
    }

    #[test]
    fn a_loss_and_moderation_forget_growth_that_is_not_complete() {
        // 3/4 of a segment is accumulated at 4.
        let mut history = History::of("reno").quantised(Quantisation::RoundDown).at(4.0);
        history.acks(3, 1.0);
        let waiting = history.clone();
        history.loss().ack(1.0).window_is(2.0);
        history.controller.undo(Undo::State, Time::ZERO);
        history.ack(1.0).window_is(5.0);

        let mut history = waiting;
        history.controller.moderate(3.7);
        history.window_is(3.0);
        history.ack(1.0).window_is(3.0);
    }

    #[test]
    fn moderation_only_lowers() {
        let mut history = History::of("reno").at(20.0);
        history.controller.moderate(30.0);
        history.window_is(20.0);
        history.controller.moderate(0.0);
        history.window_is(1.0);
    }

    #[test]
    fn a_decay_remembers_three_quarters_of_any_window() {
        // RFC 2861, section 3.1; Linux, tcp_cwnd_restart: ssthresh of a window below the restart window, too.
        for (cwnd, halved, ssthresh) in [(8.0, 8.0, 6.0), (40.0, 20.0, 30.0)] {
            let mut history = History::of("reno").at(cwnd);
            history.controller.decay(1, 10.0);
            assert_eq!((history.cwnd(), history.ssthresh()), (halved, ssthresh));
        }
    }

    #[test]
    fn undo_takes_back_the_last_event_once() {
        let mut history = History::of("reno").at(20.0);
        history.loss().loss();
        history.controller.undo(Undo::State, Time::ZERO);
        history.window_is(10.0);
        history.controller.undo(Undo::State, Time::ZERO);
        history.window_is(10.0);
    }

    #[test]
    fn undo_leaves_a_window_that_has_outgrown_what_it_was() {
        let mut history = History::of("reno").starting(20.0);
        history.loss().acks(400, 1.0);
        let cwnd = history.cwnd();
        assert!(cwnd > 20.0);
        history.controller.undo(Undo::State, Time::ZERO);
        assert_eq!((history.cwnd(), history.ssthresh()), (cwnd, 10.0));
    }
}
