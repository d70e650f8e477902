//! The interface of an algorithm: its inputs and its decisions.

use elephan_units::Time;

/// The two windows of a sender, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// How many segments may be in flight.
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

/// An acknowledgment that told the sender something new.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Segments of window growth it is worth: newly acknowledged segments after byte counting
    /// (RFC 3465), or 1 for each ACK without it. Zero while the sender recovers from a loss and
    /// while the window is not what limits it.
    pub segments: f64,
    /// Segments delivered since the connection began: cumulatively or selectively acknowledged.
    pub delivered: f64,
    /// Segments in flight when the ACK arrived.
    pub flight_size: f64,
    /// The round-trip time of this ACK, where it gives one (Karn; RFC 7323, section 4).
    pub rtt: Option<Time>,
    /// The smallest round-trip time of the connection, `T_min`; zero before the first sample.
    pub min_rtt: Time,
    /// The smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Time,
    /// Round trips completed: grows by one when data sent after its last growth is acknowledged.
    pub round: u64,
    /// Whether the sender is in fast recovery, when `cwnd` must not grow. Not so after a timeout:
    /// then the sender is in slow start.
    pub in_recovery: bool,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
}

/// Why the window must come down.
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
    /// When the sender learnt of it.
    pub now: Time,
    /// How it learnt of it.
    pub cause: Cause,
    /// Segments sent and not yet cumulatively acknowledged: RFC 5681's FlightSize.
    pub flight_size: f64,
    /// Segments delivered since the connection began.
    pub delivered: f64,
    /// The smallest round-trip time of the connection.
    pub min_rtt: Time,
}

/// How the window moves at an ACK below `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// By how many segments `cwnd` moves; may be negative.
    pub growth: f64,
    /// Whether the start ends here: `ssthresh` becomes the window that results.
    pub ends: bool,
}

/// How the window moves in congestion avoidance, and what a congestion event leaves of it.
///
/// An implementation is one file: its source, its constants with citations, its state, its rules,
/// its tests. It never sees slow start, the loss window or recovery unless it asks to.
pub trait Algorithm: Send {
    /// By how many segments `cwnd` moves at this ACK in congestion avoidance; may be negative.
    ///
    /// The controller lets it grow by no more than `ack.segments`, which is slow start's pace.
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64;

    /// The window to fall back to at a congestion event: the new `ssthresh`, in segments.
    ///
    /// The controller keeps it at 2 or more, never raises `cwnd` to it, and after a timeout sets
    /// `cwnd` to the loss window.
    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64;

    /// Called for every ACK, in slow start and recovery too, before anything else.
    fn observe(&mut self, _window: &Window, _ack: &Ack) {}

    /// A start of the algorithm's own, in place of slow start: asked at every ACK below `ssthresh`.
    fn start(&mut self, _window: &Window, _ack: &Ack) -> Option<Start> {
        None
    }

    /// A copy, with its state: what an undo goes back to.
    fn boxed(&self) -> Box<dyn Algorithm>;
}
