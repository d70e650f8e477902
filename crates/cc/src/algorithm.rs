//! The interface of an algorithm: its inputs and its decisions.

use elephan_units::Time;

use crate::variable::Tell;

/// The two windows of a sender, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Maximum number of segments in flight.
    pub cwnd: f64,
    /// Below this window the sender is in slow start; infinite until the first congestion event.
    pub ssthresh: f64,
}

impl Window {
    /// Whether the sender is in slow start (RFC 5681, section 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// An acknowledgment with new information for the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Number of segments for which the window may grow: newly acknowledged segments after byte counting (RFC
    /// 3465), or 1 for each ACK without it. Zero during loss recovery and while the window is not the limit.
    pub segments: f64,
    /// Segments delivered since the connection began: cumulatively or selectively acknowledged.
    pub delivered: f64,
    /// Up to where data is cumulatively acknowledged, in bytes since the connection began.
    pub una: u64,
    /// Up to where data was sent.
    pub next: u64,
    /// The round-trip time of this ACK, if it gives a sample (Karn; RFC 7323, section 4).
    pub rtt: Option<Time>,
    /// The smallest round-trip time of the connection, `T_min`; zero before the first sample.
    pub min_rtt: Time,
    /// The smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Time,
    /// Round trips completed: increases by one when data sent after its last increase is acknowledged.
    pub round: u64,
    /// The state of the sender.
    pub state: State,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
}

impl Ack {
    /// Whether the sender is in fast recovery, when `cwnd` must not grow. False after a timeout, because the
    /// sender is then in slow start.
    pub fn in_recovery(&self) -> bool {
        self.state == State::Recovery
    }
}

/// The state of a sender, as Linux names it (include/uapi/linux/tcp.h, `tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// All data arrives in order.
    #[default]
    Open,
    /// Duplicate or selective acknowledgments arrive, and no segment is taken as lost.
    Disorder,
    /// The window was reduced without a loss: for an echoed mark, or a full queue of the host's own device.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Slow start after a timeout.
    Loss,
}

/// Why the window must be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Duplicate or selective acknowledgments.
    Loss,
    /// An echoed congestion mark (RFC 3168).
    Ecn,
    /// The retransmission timer.
    Timeout,
}

/// A congestion event: at most one for each window of data.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When the sender detected it.
    pub now: Time,
    /// How the sender detected it.
    pub cause: Cause,
    /// Segments sent and not yet cumulatively acknowledged: RFC 5681's FlightSize.
    pub flight_size: f64,
    /// Segments delivered since the connection began.
    pub delivered: f64,
    /// The smallest round-trip time of the connection.
    pub min_rtt: Time,
}

/// How the window changes at an ACK below `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// The change of `cwnd` in segments; may be negative.
    pub growth: f64,
    /// Whether the start phase ends here: `ssthresh` is then set to the resulting window.
    pub ends: bool,
}

/// How the window changes in congestion avoidance, and its reduction at a congestion event.
///
/// An implementation is one file: its source, its constants with citations, its state, its rules, its tests.
/// It is not involved in slow start, the loss window or recovery unless it requests it.
pub trait Algorithm: Send + Sync {
    /// The change of `cwnd` at this ACK in congestion avoidance, in segments; may be negative.
    ///
    /// The controller limits growth to `ack.segments`, the rate of slow start.
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64;

    /// The same at an ACK worth so many segments, where it depends on nothing else than the window, and [`Algorithm::observe`] does
    /// nothing; `None` elsewhere.
    #[inline(always)]
    fn increase_by_window(&self, _window: &Window, _segments: f64) -> Option<f64> {
        None
    }

    /// The window after a congestion event: the new `ssthresh`, in segments.
    ///
    /// The controller keeps it at 2 or more, never raises `cwnd` to it, and after a timeout sets
    /// `cwnd` to the loss window.
    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64;

    /// Fraction of the data in flight that remains after a mark where marks are answered by less than losses are; none for a rule of
    /// which RFC 8511 says nothing.
    fn abe(&self) -> Option<f64> {
        None
    }

    /// Whether the segments of an ACK that slow start does not need to reach `ssthresh` count for congestion avoidance.
    fn uses_rest(&self) -> bool {
        true
    }

    /// Called for every ACK, in slow start and recovery too, before anything else.
    fn observe(&mut self, _window: &Window, _ack: &Ack) {}

    /// The next data follows after `idle`, in which nothing was in flight: clocks that count the time since a
    /// congestion event leave it out (RFC 9438, section 5.8).
    fn resume(&mut self, _idle: Time) {}

    /// The last congestion event is undone, but for the windows not the algorithm's state: it may restore what it must by itself.
    fn undo(&mut self) {}

    /// A start phase of the algorithm's own, in place of slow start: called at every ACK below `ssthresh`.
    fn start(&mut self, _window: &Window, _ack: &Ack) -> Option<Start> {
        None
    }

    /// Whether [`Algorithm::start`] always takes the place of slow start.
    fn has_slow_start(&self) -> bool {
        false
    }

    /// Tells its variables: the state that a trace records.
    fn variables(&self, _tell: &mut Tell<'_>) {}
}
