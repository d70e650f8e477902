//! Congestion control from outside: it sets the window itself, at every ACK and in every state of the sender.
//!
//! The types have the layout of `elephan-cc.h`, the C interface of such algorithms, whose comments give the meaning of
//! each value. So an object that was compiled from C is called without a conversion.

use std::fmt;

use elephan_units::Time;

use crate::algorithm::{Cause, State};
use crate::variable::Tell;

/// The largest window, in segments.
const MAX_CWND: f64 = (1u64 << 31) as f64;
/// Where the clock that a governor sees begins, in nanoseconds: some algorithms use zero for "never".
const EPOCH_NS: u64 = 1_000_000_000;

/// What limits a sender: its values when a governor is called, the governor's when the call returns
/// (`struct elephan_cc_window`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The congestion window, in segments: 1 to 2^31.
    pub cwnd: f64,
    /// The slow-start threshold, in segments: 1 or more, infinite until the first congestion event.
    pub ssthresh: f64,
    /// Bytes of payload per second; zero: as the endpoint's own settings say.
    pub pacing_rate: f64,
    /// What the governor asks for, zero when it is called: [`REQUEST_CWR`].
    pub requests: u64,
}

/// A reduction without a loss or a mark, for a delay (`ELEPHAN_CC_REQUEST_CWR`): the endpoint responds as to a mark, unless a
/// reduction is in progress.
pub const REQUEST_CWR: u64 = 1;

impl Limits {
    /// Whether all values are in range.
    #[inline]
    fn check(&self) -> Result<(), Fault> {
        // A NaN is in no range.
        let is_good = (1.0..=MAX_CWND).contains(&self.cwnd)
            && self.ssthresh >= 1.0
            && (0.0..f64::INFINITY).contains(&self.pacing_rate);
        if is_good { Ok(()) } else { Err(self.wrong()) }
    }

    #[cold]
    fn wrong(&self) -> Fault {
        let (what, expected, found) = if !(1.0..=MAX_CWND).contains(&self.cwnd) {
            ("cwnd", "1 to 2^31 segments", self.cwnd)
        } else if self.ssthresh >= 1.0 {
            ("pacing_rate", "a rate of 0 bytes per second or more", self.pacing_rate)
        } else {
            ("ssthresh", "1 segment or more", self.ssthresh)
        };
        Fault::new(format!("{what}: expected {expected}, found {found}"))
    }
}

/// A sample of the delivery rate, of the newest segment that an ACK delivered (`struct elephan_cc_rate`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Length of the sample, in nanoseconds; zero or less: no sample.
    pub interval_ns: i64,
    /// [`Report::delivered`] when that segment was sent.
    pub prior_delivered: u64,
    /// [`Report::delivered_ce`] when that segment was sent.
    pub prior_delivered_ce: u64,
    /// Segments delivered since.
    pub delivered: u32,
    /// Of these, segments whose ACK echoed a mark.
    pub delivered_ce: u32,
    /// Segments found lost since the ACK before.
    pub lost: u32,
    /// Whether the sender ran out of data during the sample.
    pub is_app_limited: u32,
    /// Whether the ACK is of a single segment and may have been delayed.
    pub is_ack_delayed: u32,
    /// Bytes sent and not cumulatively acknowledged when that segment was sent, itself included.
    pub sent_in_flight: u32,
}

/// A connection at an ACK, or at another event (`struct elephan_cc_ack`). Congestion, states and events that follow from an ACK are
/// told before it, with what it delivered.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// The time, in nanoseconds of a clock that is never zero: see [`clock`].
    pub now_ns: u64,
    /// Round-trip time that this ACK measured, in nanoseconds; negative: none.
    pub rtt_ns: i64,
    /// Smallest round-trip time so far; zero before the first sample.
    pub min_rtt_ns: u64,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt_ns: u64,
    /// When a segment was last sent, by the clock of `now_ns`.
    pub sent_ns: u64,
    /// Bytes from the start of the connection that are acknowledged.
    pub snd_una: u64,
    /// Bytes from the start of the connection that were sent.
    pub snd_nxt: u64,
    /// Segments delivered so far, cumulatively or selectively acknowledged.
    pub delivered: u64,
    /// Of these, segments whose ACK echoed a mark.
    pub delivered_ce: u64,
    /// Segments found lost so far.
    pub lost: u64,
    /// Round trips completed.
    pub round: u64,
    /// Segments for which a window may grow by the endpoint's rules (RFC 3465, RFC 7661); zero in recovery and while
    /// the window is not the limit.
    pub growth: f64,
    /// Segments that this ACK delivered, cumulatively or selectively; and duplicates that it reports, where `tcp.byte_counting` is
    /// "delivered".
    pub acked: u32,
    /// Segments that it acknowledged cumulatively.
    pub acked_cumulative: u32,
    /// Segments in flight after this ACK.
    pub in_flight: u32,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments outstanding that are selectively acknowledged.
    pub sacked: u32,
    /// Largest number of segments outstanding in this round trip.
    pub outstanding_max: u32,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// The state of the sender, [`State`] as a number.
    pub state: u32,
    /// Whether the window, not the application, limited the sender in the last round trip.
    pub is_window_limited: u32,
    /// Whether the ACK echoed a mark.
    pub is_ece: u32,
    /// The delivery rate, where [`Governor::needs_rate`].
    pub rate: Rate,
    /// Whether the header of the ACK was the expected one: it acknowledges new data cumulatively, with no SACK blocks, no echoed
    /// mark, and the window of the last (header prediction; the fast path of Linux, net/ipv4/tcp_input.c, `tcp_rcv_established`).
    pub is_predicted: u32,
}

/// A connection when it sent a segment for the last time, which is known where [`Governor::needs_rate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The segment's number, counted from zero at the start of the connection.
    pub number: u64,
    /// [`Report::delivered`] then.
    pub delivered: u64,
    /// [`Report::lost`] then.
    pub lost: u64,
    /// [`Report::in_flight`] then, the segment included.
    pub in_flight: u32,
    /// Whether the sender had run out of data.
    pub is_app_limited: bool,
    /// Whether the connection has selective acknowledgments.
    pub has_sack: bool,
}

/// A time on the clock that a governor sees, in nanoseconds: it begins at one second.
#[inline]
pub fn clock(time: Time) -> u64 {
    EPOCH_NS + nanos(time)
}

/// A duration in nanoseconds.
#[inline]
pub fn nanos(time: Time) -> u64 {
    time.picos() / 1000
}

/// What happens beside ACKs and reductions (`enum elephan_cc_event`; Linux's `tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first data after an idle time, in which nothing was in flight; where undo is Linux's, also a retransmission when
    /// nothing is in flight.
    Start,
    /// As before, and the endpoint has reduced cwnd to a restart window.
    Restart,
    /// A fast recovery or the response to a mark has ended: cwnd may be set to ssthresh.
    EndCwr,
    /// The retransmission timer ran out; [`Governor::congestion`] follows, unless the loss is covered already.
    Timeout,
    /// As a receiver: a marked segment arrived after one without a mark.
    Ce,
    /// As a receiver: the reverse.
    NoCe,
}

/// What a governor is told, besides congestion events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The connection is about to send its first data.
    Start,
    /// An ACK delivered data.
    Ack,
    /// This is the newest segment that an ACK delivered; [`Told::Ack`] follows.
    Newest(Snapshot),
    /// This segment is taken as lost.
    Lost(Snapshot),
    /// The state of the sender has become that of the report.
    State,
    /// Something else.
    Event(Event),
}

/// An error of a governor, which ends the run.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault(Box<(Time, String)>);

impl Fault {
    /// A fault with this text, which says what was expected and what was found.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Box::new((Time::ZERO, text.into())))
    }

    /// The same at this time of [`clock`].
    pub(crate) fn at_ns(mut self, now_ns: u64) -> Self {
        self.0.0 = Time::from_picos(now_ns.saturating_sub(EPOCH_NS).saturating_mul(1000));
        self
    }

    /// When it happened.
    pub fn at(&self) -> Time {
        self.0.0
    }

    /// What happened.
    pub fn text(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({} at {})", self.text(), self.at())
    }
}

/// An algorithm from outside, which sets the window itself.
///
/// A call may change the limits as it likes. Values out of range are a fault, and so is an error that a call returns: the
/// limits stay as they were before the call, and the governor is not called again.
pub trait Governor: Send + Sync {
    /// Whether it sets cwnd in recovery, too: the endpoint's own recovery window is not used, nor its loss window.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Whether [`Report::rate`] is to be filled in, which takes a record for each segment in flight.
    fn needs_rate(&self) -> bool {
        false
    }

    /// Whether connections negotiate ECN, and the receiver echoes each mark as in DCTCP (RFC 8257, section 3.2).
    fn needs_ecn(&self) -> bool {
        false
    }

    /// The connection is about to send its first data; the report has its first values.
    fn start(&mut self, _limits: &mut Limits, _report: &Report) -> Result<(), Fault> {
        Ok(())
    }

    /// An ACK delivered data, in any state.
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault>;

    /// The newest segment that the next ACK delivered, where [`Governor::needs_rate`].
    fn newest(&mut self, _segment: &Snapshot) {}

    /// A segment is taken as lost, where [`Governor::needs_rate`]. [`Report::lost`] counts it, and none that are told after it. The
    /// congestion event that answers the loss is told before, and the ACK that shows it after.
    fn lost(&mut self, _limits: &mut Limits, _report: &Report, _segment: &Snapshot) -> Result<(), Fault> {
        Ok(())
    }

    /// A congestion event, at most one for each window of data: sets ssthresh. The endpoint then reduces cwnd as its
    /// recovery says, unless the governor governs recovery.
    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault>;

    /// The state of the sender has become that of the report.
    fn state(&mut self, _limits: &mut Limits, _report: &Report) -> Result<(), Fault> {
        Ok(())
    }

    /// Something else has happened.
    fn event(&mut self, _limits: &mut Limits, _report: &Report, _event: Event) -> Result<(), Fault> {
        Ok(())
    }

    /// The last reduction was not justified. `limits` are those of now, `before` those of before the reduction. Returns
    /// whether it has set them; otherwise the endpoint's settings say what is restored.
    fn undo(&mut self, _limits: &mut Limits, _before: &Limits) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Tells its variables, as [`crate::Algorithm::variables`].
    fn variables(&self, _tell: &mut Tell<'_>) {}

    /// A new state with the same parameters, for a connection whose random numbers come from `seed`.
    fn fresh(&self, seed: u64) -> Box<dyn Governor>;

    /// A copy, including its state, which an undo restores.
    fn boxed(&self) -> Box<dyn Governor>;
}

impl dyn Governor + '_ {
    /// Tells it something, and returns the limits that it sets.
    #[inline]
    pub(crate) fn tell(&mut self, told: Told, mut limits: Limits, report: &Report) -> Result<Limits, Fault> {
        match told {
            Told::Ack => self.ack(&mut limits, report)?,
            Told::Newest(segment) => self.newest(&segment),
            Told::Lost(segment) => self.lost(&mut limits, report, &segment)?,
            Told::Start => self.start(&mut limits, report)?,
            Told::State => self.state(&mut limits, report)?,
            Told::Event(event) => self.event(&mut limits, report, event)?,
        }
        limits.check()?;
        Ok(limits)
    }

    /// The same for a congestion event.
    pub(crate) fn reduce(
        &mut self,
        cause: Cause,
        mut limits: Limits,
        report: &Report,
    ) -> Result<Limits, Fault> {
        self.congestion(&mut limits, report, cause)?;
        limits.check()?;
        Ok(limits)
    }

    /// The same for an undo; none if it has none.
    pub(crate) fn restore(&mut self, mut limits: Limits, before: &Limits) -> Result<Option<Limits>, Fault> {
        let has_undone = self.undo(&mut limits, before)?;
        limits.check()?;
        Ok(has_undone.then_some(limits))
    }
}

impl From<State> for u32 {
    /// As Linux numbers them.
    fn from(state: State) -> Self {
        state as Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::AnyAlgorithm;
    use crate::{Controller, Quantisation, SlowStart, Undo};

    /// A governor that sets what it was given, or fails.
    #[derive(Clone)]
    struct Fixed {
        said: Result<Limits, &'static str>,
        governs_recovery: bool,
        undoes: Option<f64>,
    }

    impl Fixed {
        fn say(&self, limits: &mut Limits) -> Result<(), Fault> {
            *limits = self.said.map_err(Fault::new)?;
            Ok(())
        }
    }

    impl Governor for Fixed {
        fn governs_recovery(&self) -> bool {
            self.governs_recovery
        }
        fn ack(&mut self, limits: &mut Limits, _: &Report) -> Result<(), Fault> {
            self.say(limits)
        }
        fn congestion(&mut self, limits: &mut Limits, _: &Report, _: Cause) -> Result<(), Fault> {
            self.say(limits)
        }
        fn undo(&mut self, limits: &mut Limits, before: &Limits) -> Result<bool, Fault> {
            let Some(more) = self.undoes else { return Ok(false) };
            limits.cwnd = before.cwnd + more;
            Ok(true)
        }
        fn fresh(&self, _: u64) -> Box<dyn Governor> {
            self.boxed()
        }
        fn boxed(&self) -> Box<dyn Governor> {
            Box::new(self.clone())
        }
    }

    fn limits(cwnd: f64, ssthresh: f64, pacing_rate: f64) -> Limits {
        Limits { cwnd, ssthresh, pacing_rate, requests: 0 }
    }

    fn says(cwnd: f64, ssthresh: f64, pacing_rate: f64) -> Fixed {
        Fixed { said: Ok(limits(cwnd, ssthresh, pacing_rate)), governs_recovery: false, undoes: None }
    }

    fn controller(governor: Fixed) -> Controller {
        let governor = AnyAlgorithm::Governor(Box::new(governor));
        Controller::new(governor, SlowStart::Standard, Quantisation::RoundDown, 10.0)
    }

    fn at(seconds: u64) -> Report {
        Report { now_ns: clock(Time::from_secs(seconds)), ..Report::default() }
    }

    #[test]
    fn its_window_is_the_window() {
        // Neither the rate of slow start nor whole windows limit it.
        let mut controller = controller(says(100.5, f64::INFINITY, 1e6));
        controller.tell(Told::Ack, &at(0));
        assert_eq!((controller.cwnd(), controller.ssthresh()), (100.5, f64::INFINITY));
        assert_eq!(controller.pacing_rate(), 1e6);
        assert!(controller.fault().is_none());
    }

    #[test]
    fn a_value_out_of_range_is_a_fault_and_the_last_window_stays() {
        let nan = f64::NAN;
        let wrong = [
            (limits(nan, 5.0, 0.0), "cwnd: expected 1 to 2^31 segments, found NaN"),
            (limits(0.99, 5.0, 0.0), "cwnd: expected 1 to 2^31 segments, found 0.99"),
            (limits(f64::INFINITY, 5.0, 0.0), "cwnd: expected 1 to 2^31 segments, found inf"),
            (limits(2_147_483_649.0, 5.0, 0.0), "cwnd: expected 1 to 2^31 segments, found 2147483649"),
            (limits(10.0, nan, 0.0), "ssthresh: expected 1 segment or more, found NaN"),
            (limits(10.0, 0.5, 0.0), "ssthresh: expected 1 segment or more, found 0.5"),
            (limits(10.0, 5.0, -1.0), "pacing_rate: expected a rate of 0 bytes per second or more, found -1"),
            (limits(10.0, 5.0, nan), "pacing_rate: expected a rate of 0 bytes per second or more, found NaN"),
        ];
        for (said, text) in wrong {
            let mut controller = controller(Fixed { said: Ok(said), ..says(0.0, 0.0, 0.0) });
            controller.tell(Told::Ack, &at(3));
            let first = controller.fault().cloned().expect(text);
            assert_eq!((first.text(), first.at()), (text, Time::from_secs(3)));
            controller.on_governed_congestion(Cause::Loss, &at(4));
            assert_eq!(controller.fault(), Some(&first));
            assert_eq!((controller.cwnd(), controller.ssthresh()), (10.0, f64::INFINITY));
        }
        let good = [limits(1.0, 1.0, 0.0), limits(2_147_483_648.0, f64::INFINITY, 1e12)];
        assert!(good.iter().all(|limits| limits.check().is_ok()));
        let mut controller = controller(Fixed { said: Err("it fell"), ..says(0.0, 0.0, 0.0) });
        controller.on_governed_congestion(Cause::Loss, &at(4));
        assert_eq!(controller.fault().map(Fault::text), Some("it fell"));
    }

    #[test]
    fn a_reduction_is_the_endpoints_unless_it_governs_recovery() {
        // It asks for a window of 30 and a threshold of 1, after 10.
        let windows = |governs_recovery, cause| {
            let mut controller = controller(Fixed { governs_recovery, ..says(30.0, 1.0, 0.0) });
            controller.on_governed_congestion(cause, &at(0));
            (controller.cwnd(), controller.ssthresh())
        };
        assert_eq!(windows(false, Cause::Loss), (2.0, 2.0));
        assert_eq!(windows(false, Cause::Timeout), (1.0, 2.0));
        assert_eq!(windows(true, Cause::Loss), (30.0, 1.0));
        assert_eq!(windows(true, Cause::Timeout), (30.0, 1.0));
        for (governs_recovery, cwnd) in [(false, 1.0), (true, 30.0)] {
            let mut controller = controller(Fixed { governs_recovery, ..says(30.0, 1.0, 0.0) });
            controller.tell(Told::Ack, &at(0));
            controller.collapse();
            assert_eq!(controller.cwnd(), cwnd);
        }
    }

    #[test]
    fn an_undo_is_its_own_or_that_of_the_settings() {
        for (undoes, cwnd) in [(Some(3.0), 13.0), (None, 10.0)] {
            let mut controller = controller(Fixed { undoes, ..says(7.0, 7.0, 0.0) });
            controller.on_governed_congestion(Cause::Loss, &at(0));
            assert_eq!(controller.cwnd(), 7.0);
            controller.undo(Undo::State, Time::ZERO);
            assert_eq!(controller.cwnd(), cwnd);
            controller.undo(Undo::State, Time::ZERO);
            assert_eq!(controller.cwnd(), cwnd, "there is nothing more to undo");
        }
    }

    #[test]
    fn the_clock_begins_at_a_second() {
        assert_eq!(clock(Time::ZERO), 1_000_000_000);
        assert_eq!(clock(Time::from_micros(2)), 1_000_002_000);
    }
}
