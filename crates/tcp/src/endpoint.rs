//! One end of a connection.

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::Config;
use crate::segment::Segment;

/// What an endpoint has counted since it began; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Payload bytes of ours that the peer acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Payload bytes of the peer's that were handed to the application, once and in order.
    pub bytes_delivered: u64,
    /// Congestion events: by duplicate or selective ACKs, by ECN, by the timer.
    pub loss_events: u64,
    /// Congestion events by ECN echo.
    pub ecn_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions undone.
    pub undos: u64,
}

/// What a trace samples of an endpoint.
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
    /// Whether the sender is in recovery.
    pub in_recovery: bool,
}

/// One end of a TCP connection.
pub struct Endpoint {
    #[expect(dead_code, reason = "to be written")]
    config: Config,
    controller: Controller,
}

#[expect(unused_variables, clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "to be written")]
impl Endpoint {
    /// An endpoint that opens the connection: its SYN is ready to be sent.
    ///
    /// `iss` is the initial sequence number.
    pub fn connect(config: Config, controller: Controller, iss: u32, now: Time) -> Self {
        Self { config, controller }
    }

    /// An endpoint that waits for a SYN.
    pub fn listen(config: Config, controller: Controller, iss: u32) -> Self {
        Self { config, controller }
    }

    /// The application has `bytes` more to send; `u64::MAX` means that it never ends.
    pub fn write(&mut self, bytes: u64) {
        unimplemented!()
    }

    /// The application will write no more: a FIN follows the last byte.
    pub fn close(&mut self) {
        unimplemented!()
    }

    /// A segment arrived. `congestion_experienced` is the IP header's mark.
    pub fn on_segment(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        unimplemented!()
    }

    /// The time that [`Endpoint::poll_timeout`] asked for has come; harmless when it has not.
    pub fn on_timer(&mut self, now: Time) {
        unimplemented!()
    }

    /// The next segment to send, until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        unimplemented!()
    }

    /// Whether data segments are sent ECN-capable (ECT(0)): agreed in the handshake.
    pub fn ecn_capable(&self) -> bool {
        unimplemented!()
    }

    /// When the endpoint wants [`Endpoint::on_timer`]; `Time::MAX` when it waits for nothing.
    pub fn poll_timeout(&self) -> Time {
        unimplemented!()
    }

    /// Whether everything written was acknowledged, the FIN too where there was one.
    pub fn is_finished(&self) -> bool {
        unimplemented!()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        unimplemented!()
    }

    /// What a trace samples.
    pub fn snapshot(&self) -> Snapshot {
        unimplemented!()
    }

    /// The congestion controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }
}
