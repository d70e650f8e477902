//! What a run leaves behind: columns, ready to be written.

use elephan_units::Time;

/// Samples of every flow, from its start on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowTrace {
    /// Time of the sample, s.
    pub time_s: Vec<f64>,
    /// Number of the flow.
    pub flow: Vec<u32>,
    /// Congestion window, segments.
    pub cwnd_segments: Vec<f64>,
    /// Slow-start threshold, segments; infinite until the first congestion event.
    pub ssthresh_segments: Vec<f64>,
    /// Smoothed round-trip time, s; zero before the first sample.
    pub srtt_s: Vec<f64>,
    /// Retransmission timeout, s.
    pub rto_s: Vec<f64>,
    /// RFC 6675's pipe, bytes.
    pub pipe_bytes: Vec<u64>,
    /// Application bytes delivered in order since the last sample, as a rate, bit/s.
    pub goodput_bit_s: Vec<f64>,
    /// Application bytes delivered in order since the flow began.
    pub delivered_bytes: Vec<u64>,
    /// Payload bytes sent since the flow began, retransmissions included.
    pub sent_bytes: Vec<u64>,
    /// Segments retransmitted since the flow began.
    pub retransmits: Vec<u64>,
    /// Retransmission timeouts since the flow began.
    pub timeouts: Vec<u32>,
    /// Reductions of the window since the flow began, for whatever cause.
    pub congestion_events: Vec<u32>,
}

impl FlowTrace {
    /// Room for so many samples: memory that is not written to costs nothing, and columns that grow are copied.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            time_s: Vec::with_capacity(rows),
            flow: Vec::with_capacity(rows),
            cwnd_segments: Vec::with_capacity(rows),
            ssthresh_segments: Vec::with_capacity(rows),
            srtt_s: Vec::with_capacity(rows),
            rto_s: Vec::with_capacity(rows),
            pipe_bytes: Vec::with_capacity(rows),
            goodput_bit_s: Vec::with_capacity(rows),
            delivered_bytes: Vec::with_capacity(rows),
            sent_bytes: Vec::with_capacity(rows),
            retransmits: Vec::with_capacity(rows),
            timeouts: Vec::with_capacity(rows),
            congestion_events: Vec::with_capacity(rows),
        }
    }
}

/// Samples of every crowd of short flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrowdTrace {
    /// Time of the sample, s.
    pub time_s: Vec<f64>,
    /// Number of the crowd, flows counted before.
    pub flow: Vec<u32>,
    /// Connections that are open.
    pub open: Vec<u32>,
    /// Connections opened since the run began.
    pub opened: Vec<u64>,
    /// Transfers that ended since the run began.
    pub finished: Vec<u64>,
    /// Application bytes delivered in order since the run began.
    pub delivered_bytes: Vec<u64>,
    /// Application bytes delivered in order since the last sample, as a rate, bit/s.
    pub goodput_bit_s: Vec<f64>,
}

/// Samples of every stream of datagrams, from its start on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamTrace {
    /// Time of the sample, s.
    pub time_s: Vec<f64>,
    /// Number of the stream, flows and crowds counted before.
    pub flow: Vec<u32>,
    /// Packets sent since it began.
    pub sent: Vec<u64>,
    /// Packets received since it began.
    pub received: Vec<u64>,
    /// Packets missing at the receiver: lost, or overtaken and still on their way.
    pub missing: Vec<u64>,
    /// Payload received since the last sample, as a rate, bit/s.
    pub goodput_bit_s: Vec<f64>,
}

/// Samples of every link with a rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTrace {
    /// Time of the sample, s.
    pub time_s: Vec<f64>,
    /// Number of the link.
    pub link: Vec<u32>,
    /// Packets waiting, the one in service not counted.
    pub packets: Vec<u64>,
    /// Their bytes.
    pub bytes: Vec<u64>,
    /// Packets offered since the run began.
    pub offered: Vec<u64>,
    /// Packets dropped since the run began, for whatever reason.
    pub dropped: Vec<u64>,
    /// Packets that the wire lost since the run began.
    pub lost: Vec<u64>,
    /// Packets marked since the run began.
    pub marked: Vec<u64>,
    /// Bytes transmitted since the last sample, as a share of what the link's rate allows.
    pub utilisation: Vec<f64>,
    /// Packets dropped for want of room since the run began.
    pub dropped_full: Vec<u64>,
    /// Packets dropped by the discipline before the queue was full.
    pub dropped_early: Vec<u64>,
    /// Packets dropped by a policer.
    pub dropped_policed: Vec<u64>,
    /// Packets dropped since the link was down.
    pub dropped_down: Vec<u64>,
}

/// Every transfer of every flow and crowd that has transfers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransferTrace {
    /// Number of the flow, or of the crowd, flows counted before.
    pub flow: Vec<u32>,
    /// Number of the transfer within the flow or crowd.
    pub index: Vec<u64>,
    /// When its connection was opened, s.
    pub start_s: Vec<f64>,
    /// When all of it was acknowledged, the FIN too, s; NaN where the run ended first.
    pub end_s: Vec<f64>,
    /// Payload, bytes.
    pub bytes: Vec<u64>,
}

impl TransferTrace {
    pub(crate) fn push(&mut self, flow: u32, index: u64, bytes: u64, start: Time, end: Option<Time>) {
        self.flow.push(flow);
        self.index.push(index);
        self.start_s.push(start.secs_f64());
        self.end_s.push(end.map_or(f64::NAN, Time::secs_f64));
        self.bytes.push(bytes);
    }
}

/// What happened in a row of [`EventTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A connection was opened.
    Start,
    /// A sender gave a data segment to its first link.
    Send,
    /// A sender gave a data segment to its first link, not for the first time.
    Retransmit,
    /// A receiver gave an acknowledgment to its first link.
    Ack,
    /// A segment reached its end of the connection.
    Receive,
    /// A queue dropped a packet.
    Drop,
    /// A sender's window was reduced.
    Congestion,
    /// A sender's retransmission timer ran out.
    Timeout,
    /// A transfer ended.
    Finish,
}

impl EventKind {
    /// All kinds by number, as they are called in a file.
    pub const NAMES: [&'static str; 9] =
        ["start", "send", "retransmit", "ack", "receive", "drop", "congestion", "timeout", "finish"];
}

/// Every event, where a scenario asks for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventTrace {
    /// When, s.
    pub time_s: Vec<f64>,
    /// What: a number of [`EventKind`].
    pub kind: Vec<u8>,
    /// Number of the flow.
    pub flow: Vec<u32>,
    /// Number of the link, where it happened on one; else 2^32 - 1.
    pub link: Vec<u32>,
    /// Sequence number of the segment, or of the acknowledgment, as on the wire.
    pub seq: Vec<u32>,
    /// Payload bytes.
    pub bytes: Vec<u32>,
    /// Congestion window of the flow's sender afterwards, segments.
    pub cwnd_segments: Vec<f64>,
}
