//! The tables of samples that a run leaves behind. To add a column, add its line here, and its value where an engine fills the row.

use elephan_units::Time;

use crate::table::{Column, Table, table};

table! {
    /// Samples of every flow, from its start on.
    pub struct FlowTrace of FlowRow = "flows" {
        /// Time of the sample.
        time_s: f64, "s", "time", live;
        /// Number of the flow.
        flow: u32, "1", "flow", live;
        /// Congestion window of the sender.
        cwnd_segments: f64, "segments", "congestion window", live;
        /// Slow-start threshold; infinite before the first congestion event.
        ssthresh_segments: f64, "segments", "slow-start threshold", live;
        /// Smoothed round-trip time of the sender; unknown before the first RTT sample.
        srtt_s: f64 | null, "s", "smoothed RTT", live;
        /// Retransmission timeout; unknown where the engine does not tell.
        rto_s: f64 | null, "s", "retransmission timeout";
        /// Payload bytes estimated to be in flight (RFC 6675, section 4: pipe); unknown where the engine does not tell.
        pipe_bytes: u64 | null, "B", "bytes in flight";
        /// Application bytes delivered in order since the previous sample, as a rate.
        goodput_bit_s: f64, "bit/s", "goodput", live;
        /// Payload of the data segments that reached the receiver's network layer since the previous sample, in any order and
        /// duplicates included, as a rate; unknown where the receiver is not seen.
        receive_rate_bit_s: f64 | null, "bit/s", "receive rate";
        /// Application bytes delivered in order since the flow began.
        delivered_bytes: u64, "B", "bytes delivered";
        /// Payload bytes sent since the flow began, retransmissions included.
        sent_bytes: u64, "B", "bytes sent";
        /// Segments retransmitted since the flow began.
        retransmits: u64, "1", "retransmissions", live;
        /// Retransmission timeouts since the flow began; unknown where the engine does not tell.
        timeouts: u32 | null, "1", "timeouts";
        /// Reductions of the congestion window since the flow began, whatever the cause.
        congestion_events: u32, "1", "window reductions";
    }
}

table! {
    /// What only a kernel tells of its flows, row by row with [`FlowTrace`].
    pub struct KernelTrace of KernelRow = "flows" {
        /// Pacing rate of the kernel; infinite without pacing.
        pacing_rate_bit_s: f64, "bit/s", "pacing rate";
        /// Minimum round-trip time that the kernel has measured; unknown before the first.
        min_rtt_s: f64 | null, "s", "minimum RTT";
        /// Delivery rate that the kernel has measured; unknown before the first.
        delivery_rate_bit_s: f64 | null, "bit/s", "delivery rate";
        /// Time with data to send or in flight, since the flow began.
        busy_s: f64, "s", "time busy";
        /// Part of this time in which the receive window was the limit.
        rwnd_limited_s: f64, "s", "time limited by the receive window";
        /// Part of this time in which the send buffer was the limit.
        sndbuf_limited_s: f64, "s", "time limited by the send buffer";
    }
}

table! {
    /// Samples of every link with a rate.
    pub struct QueueTrace of QueueRow = "queues" {
        /// Time of the sample.
        time_s: f64, "s", "time", live;
        /// Number of the link.
        link: u32, "1", "link", live;
        /// Packets waiting in the queue, without the one in service.
        packets: u64, "1", "queue", live;
        /// Bytes of the packets waiting in the queue.
        bytes: u64, "B", "queue";
        /// Packets offered to the link since the run began.
        offered: u64, "1", "packets offered";
        /// Packets dropped by the link since the run began, for one of the four reasons.
        dropped: u64, "1", "packets dropped", live;
        /// Packets lost on the wire since the run began.
        lost: u64, "1", "packets lost", live;
        /// Packets marked since the run began (RFC 3168: Congestion Experienced).
        marked: u64, "1", "packets marked", live;
        /// IP packets transmitted since the previous sample, as a share of what the rate allows.
        utilisation: f64, "1", "utilisation", live;
        /// Packets dropped because the queue was full, since the run began.
        dropped_full: u64, "1", "dropped: queue full";
        /// Packets dropped by the queue discipline before the queue was full, since the run began.
        dropped_early: u64, "1", "dropped: queue discipline";
        /// Packets dropped by a policer since the run began.
        dropped_policed: u64, "1", "dropped: policer";
        /// Packets dropped because the link was down, since the run began.
        dropped_down: u64, "1", "dropped: link down";
    }
}

table! {
    /// Every transfer of every flow and crowd that has transfers, and every chunk that the application of a flow writes.
    pub struct TransferTrace of TransferRow = "transfers" {
        /// Number of the flow or crowd; crowds are numbered after the flows.
        flow: u32, "1", "flow";
        /// Number of the transfer or chunk within its flow or crowd.
        index: u64, "1", "transfer";
        /// Time at which the connection was opened, or the chunk written.
        start_s: f64, "s", "start";
        /// Time at which all data were acknowledged, and of a transfer the FIN; unknown if the run ended before.
        end_s: f64 | null, "s", "end";
        /// Payload of the transfer or chunk.
        bytes: u64, "B", "size";
    }
}

table! {
    /// Samples of every crowd of short flows.
    pub struct CrowdTrace of CrowdRow = "crowds" {
        /// Time of the sample.
        time_s: f64, "s", "time";
        /// Number of the crowd; crowds are numbered after the flows.
        flow: u32, "1", "crowd";
        /// Number of open connections.
        open: u32, "1", "open connections";
        /// Connections opened since the run began.
        opened: u64, "1", "connections opened";
        /// Transfers finished since the run began.
        finished: u64, "1", "transfers finished";
        /// Application bytes delivered in order since the run began.
        delivered_bytes: u64, "B", "bytes delivered";
        /// Application bytes delivered in order since the previous sample, as a rate.
        goodput_bit_s: f64, "bit/s", "goodput";
        /// Payload of the data segments that reached the receivers' network layer since the previous sample, in any order and
        /// duplicates included, as a rate; unknown where the receivers are not seen.
        receive_rate_bit_s: f64 | null, "bit/s", "receive rate";
    }
}

table! {
    /// Samples of every stream of datagrams, from its start on.
    pub struct StreamTrace of StreamRow = "streams" {
        /// Time of the sample.
        time_s: f64, "s", "time";
        /// Number of the stream; streams are numbered after the flows and the crowds.
        flow: u32, "1", "stream";
        /// Packets sent since the stream began.
        sent: u64, "1", "packets sent";
        /// Packets received since the stream began.
        received: u64, "1", "packets received";
        /// Packets overtaken by a later one and not received yet: lost, or still in flight.
        missing: u64, "1", "packets missing";
        /// Payload received since the previous sample, as a rate.
        goodput_bit_s: f64, "bit/s", "goodput";
    }
}

table! {
    /// Every event, where a scenario asks for them.
    pub struct EventTrace of EventRow = "events" {
        /// Time of the event.
        time_s: f64, "s", "time";
        /// What happened: a number of [`EventKind`].
        kind: u8, "1", "event";
        /// Number of the flow, crowd or stream.
        flow: u32, "1", "flow";
        /// Number of the link on which it happened; none away from links.
        link: u32 | null, "1", "link";
        /// Sequence number of the segment, or of the acknowledgment, as on the wire.
        seq: u32, "1", "sequence number";
        /// Payload of the segment.
        bytes: u32, "B", "payload";
        /// Congestion window of the flow's sender after the event; with the engine kernel, when the flow last sent a segment
        /// or entered another state of congestion. Unknown for crowds and streams.
        cwnd_segments: f64 | null, "segments", "congestion window";
        /// Slow-start threshold at the same time; infinite before the first congestion event. Unknown for crowds and streams.
        ssthresh_segments: f64 | null, "segments", "slow-start threshold";
    }
}

table! {
    /// The variables of the flows' algorithms, where a scenario asks for them: all of a flow at each of its samples, and whenever a discrete
    /// one has changed.
    pub struct VariableTrace of VariableRow = "variables" {
        /// Time of the sample or of the change.
        time_s: f64, "s", "time";
        /// Number of the flow.
        flow: u32, "1", "flow";
        /// Name of the variable, which the flow's algorithm declares with unit and meaning (`elephan cc show`).
        variable: u32, "1", "variable";
        /// Its value in that unit; of a discrete variable the number of its value, from 0 on. Infinite where it is a bound that is not set,
        /// unknown where the algorithm does not know it yet.
        value: f64 | null, "1", "value";
        /// Name of the value of a discrete variable, such as a state; none of others.
        value_name: u32 | null, "1", "name of the value";
    }
}

impl EventTrace {
    /// Puts the events in order of time. They are reported in order, except for packets that a queue drops when their turn comes: a
    /// link decides that as of then, when somebody next looks.
    pub fn sort(&mut self) {
        if self.time_s.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.time_s.len()).collect();
        order.sort_by(|&a, &b| self.time_s[a].total_cmp(&self.time_s[b]));
        let mut sorted = Self::with_capacity(order.len());
        for row in order {
            sorted.push(EventRow {
                time_s: self.time_s[row],
                kind: self.kind[row],
                flow: self.flow[row],
                link: self.link[row],
                seq: self.seq[row],
                bytes: self.bytes[row],
                cwnd_segments: self.cwnd_segments[row],
                ssthresh_segments: self.ssthresh_segments[row],
            });
        }
        *self = sorted;
    }
}

/// An unknown number in a column of `u32`.
pub const UNKNOWN: u32 = u32::MAX;

/// Seconds in a column; an unknown time is NaN.
pub fn seconds(time: Option<Time>) -> f64 {
    time.map_or(f64::NAN, Time::secs_f64)
}

/// The tables and their columns, in the order of their files. The columns of [`KernelTrace`] are those of the flows of a run on a kernel.
pub const TABLES: [(&str, &[Column]); 8] = [
    (FlowTrace::NAME, FlowTrace::COLUMNS),
    (KernelTrace::NAME, KernelTrace::COLUMNS),
    (QueueTrace::NAME, QueueTrace::COLUMNS),
    (TransferTrace::NAME, TransferTrace::COLUMNS),
    (CrowdTrace::NAME, CrowdTrace::COLUMNS),
    (StreamTrace::NAME, StreamTrace::COLUMNS),
    (EventTrace::NAME, EventTrace::COLUMNS),
    (VariableTrace::NAME, VariableTrace::COLUMNS),
];

impl TransferTrace {
    /// Adds a transfer; `end` is `None` where the run ended first.
    pub fn add(&mut self, flow: u32, index: u64, bytes: u64, start: Time, end: Option<Time>) {
        self.push(TransferRow { flow, index, start_s: start.secs_f64(), end_s: seconds(end), bytes });
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
    /// A sender's retransmission timer expired.
    Timeout,
    /// A transfer ended.
    Finish,
}

impl EventKind {
    /// All kinds by number, as they are called in a file.
    pub const NAMES: [&'static str; 9] =
        ["start", "send", "retransmit", "ack", "receive", "drop", "congestion", "timeout", "finish"];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::table::Slice;

    #[test]
    fn a_name_ends_with_the_unit() {
        let units = BTreeMap::from([("_bit_s", "bit/s"), ("_segments", "segments"), ("_s", "s")]);
        for column in TABLES.iter().flat_map(|(_, columns)| *columns) {
            let by_name = ["_bit_s", "_segments", "_s"].iter().find(|end| column.name.ends_with(**end));
            let counted = if column.name.ends_with("bytes") { "B" } else { "1" };
            assert_eq!(column.unit, by_name.map_or(counted, |end| units[end]), "{}", column.name);
            assert!(column.meaning.len() > 5 && !column.title.is_empty(), "{}", column.name);
        }
    }

    #[test]
    fn rows_are_read_back_by_column() {
        let mut trace = TransferTrace::default();
        trace.add(3, 0, 1000, Time::from_secs(1), Some(Time::from_secs(2)));
        trace.add(3, 1, 2000, Time::from_secs(2), None);
        assert_eq!(trace.rows(), 2);
        let found: BTreeMap<_, _> = trace.since(1).map(|(column, values)| (column.name, values)).collect();
        assert_eq!(found["bytes"], Slice::U64(&[2000]));
        assert_eq!(found["start_s"], Slice::F64(&[2.0]));
        assert!(trace.end_s[1].is_nan());
        let names: Vec<_> =
            trace.into_columns().map(|(column, values)| (column.name, values.rows())).collect();
        assert_eq!(names, [("flow", 2), ("index", 2), ("start_s", 2), ("end_s", 2), ("bytes", 2)]);
    }
}
