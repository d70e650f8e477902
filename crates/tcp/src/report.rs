//! What an endpoint reports: its counters and its state.

use elephan_cc::State;
use elephan_units::Time;

/// An endpoint's counters since it began; they never decrease. Those that the fast paths count come last: in memory, a sender follows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Payload bytes received from the peer and handed to the application, once and in order.
    pub bytes_delivered: u64,
    /// Reductions for a loss found by duplicate or selective ACKs: at most one for each window of data.
    pub loss_events: u64,
    /// Reductions for an ECN echo.
    pub ecn_events: u64,
    /// Reductions because the host's own device queue was full (Web100's SendStalls).
    pub stalls: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions undone.
    pub undos: u64,
    /// Number of congestion events reported to the controller, for any cause.
    pub reductions: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes that were sent and that the peer acknowledged cumulatively.
    pub bytes_acked: u64,
}

/// An endpoint's state as sampled by a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Slow-start threshold, in segments; infinite until the first congestion event.
    pub ssthresh: f64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Time,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Time,
    /// Retransmission timeout.
    pub rto: Time,
    /// RFC 6675's pipe: bytes thought to be in flight.
    pub pipe: u64,
    /// Whether loss recovery is in progress.
    pub in_recovery: bool,
    /// The state of the sender, as `tcpi_ca_state` names it.
    pub state: State,
    /// Number of segments sent and not cumulatively acknowledged (`tcpi_unacked`).
    pub unacked: u64,
    /// Number of these that are selectively acknowledged (`tcpi_sacked`).
    pub sacked: u64,
    /// Number of these that are taken as lost, and not known to have arrived since (`tcpi_lost`).
    pub lost: u64,
    /// Number of these of which a retransmission is thought to be in flight (`tcpi_retrans`).
    pub retransmitted: u64,
    /// Degree of reordering, in segments (`tcpi_reordering`): the duplicate ACK threshold, or with RACK the largest distance by
    /// which a segment was overtaken.
    pub reordering: u64,
}
