//! The result of a run, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run was worth, over its measuring window. `null` stands for what is undefined: a ratio of nothing, a flow that did
/// not converge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Start of the measuring window, s.
    pub from_s: f64,
    /// End of the measuring window, s.
    pub to_s: f64,
    /// Application bytes delivered in order, all flows together, bit/s.
    pub goodput_bit_s: f64,
    /// IP packets that the bottleneck served, as a share of its rate.
    pub utilisation: Option<f64>,
    /// Smallest goodput over largest (thesis, equation 7.9).
    pub fairness: Option<f64>,
    /// Jain's index of the goodputs.
    pub jain: Option<f64>,
    /// Mean over flows of the standard deviation of goodput over its mean (thesis, equations 7.4 and 7.5).
    pub stability: Option<f64>,
    /// 80 % convergence time of the flow that started last, against its own average in the measuring window
    /// (thesis, section 7.1.3), s.
    pub convergence_s: Option<f64>,
    /// Time from the start of the flow that started last until its short-term goodput is within 80 % of an equal
    /// share of the aggregate, s.
    pub fair_share_s: Option<f64>,
    /// Retransmitted over transferred bytes, summed over flows, over the aggregate goodput (thesis, equations 7.10 and
    /// 7.11), 1/(bit/s).
    pub overhead_s_bit: Option<f64>,
    /// Packets dropped or lost at the bottleneck, as a share of those offered to it.
    pub loss_rate: Option<f64>,
    /// Mean queueing delay at the bottleneck, s.
    pub queue_delay_mean_s: f64,
    /// Congestion epochs: groups of reductions within one round-trip time.
    pub congestion_epochs: u64,
    /// Mean share of the active flows that back off in an epoch.
    pub synchronisation: Option<f64>,
    /// Each flow.
    pub flows: Vec<FlowSummary>,
    /// Each crowd of short flows.
    pub crowds: Vec<CrowdSummary>,
    /// Each stream of datagrams.
    pub streams: Vec<StreamSummary>,
    /// Each link that has a rate.
    pub links: Vec<LinkSummary>,
    /// Transfers of flows that ended in the measuring window; none where no flow has any.
    pub transfers: Option<TransferSummary>,
}

/// A flow over the measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSummary {
    /// What tables and plots call it.
    pub label: String,
    /// When it started, s; none where it did not.
    pub start_s: Option<f64>,
    /// Application bytes delivered in order, bit/s.
    pub goodput_bit_s: f64,
    /// Standard deviation of goodput over its mean (thesis, equation 7.4).
    pub stability: Option<f64>,
    /// 80 % convergence time against its own average (thesis, section 7.1.3), s.
    pub convergence_s: Option<f64>,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Mean congestion window over the samples, segments.
    pub cwnd_mean_segments: Option<f64>,
    /// Mean smoothed round-trip time over the samples, s.
    pub srtt_mean_s: Option<f64>,
    /// Reductions of the window.
    pub congestion_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The sender's host, where sending costs it something.
    pub host: Option<HostSummary>,
}

/// The host of a flow's sender over the measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostSummary {
    /// Share of the time that its processor was busy.
    pub busy: f64,
    /// Packets that found its backlog full.
    pub dropped: u64,
    /// Most packets in its backlog since the run began.
    pub backlog_max_packets: u64,
    /// Reductions of the window because its device queue was full.
    pub stalls: u64,
}

/// A crowd of short flows over the measuring window: web users, or flows that arrive by themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrowdSummary {
    /// What tables and plots call it.
    pub label: String,
    /// Application bytes delivered in order, all its connections together, bit/s.
    pub goodput_bit_s: f64,
    /// The same, in bytes.
    pub delivered_bytes: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections that gave up after too many timeouts.
    pub failed: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Its transfers that ended; of web users, the objects.
    pub transfers: Option<TransferSummary>,
    /// Pages that ended: from asking for the first object until the last has arrived. None where there are no web users.
    pub pages: Option<TransferSummary>,
}

/// A stream of datagrams over the measuring window, at its receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSummary {
    /// What tables and plots call it.
    pub label: String,
    /// When it started, s; none where it did not.
    pub start_s: Option<f64>,
    /// Payload received, bit/s.
    pub goodput_bit_s: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Packets that did not arrive though a later one did (RFC 3550, appendix A.3).
    pub lost: u64,
    /// Packets that arrived after one that was sent later (RFC 4737).
    pub reordered: u64,
    /// Mean one-way delay, s.
    pub delay_mean_s: Option<f64>,
    /// Half of the packets took no longer, to 1 %, s.
    pub delay_p50_s: Option<f64>,
    /// 99 % of the packets took no longer, to 1 %, s.
    pub delay_p99_s: Option<f64>,
    /// The longest one-way delay, s.
    pub delay_max_s: Option<f64>,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1), s.
    pub jitter_s: Option<f64>,
}

/// A link over the measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// IP packets served, as a share of its rate.
    pub utilisation: Option<f64>,
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped, for one of the four reasons below.
    pub dropped: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Mean queueing delay of the packets, s.
    pub queue_delay_mean_s: f64,
    /// Median queueing delay, s.
    pub queue_delay_p50_s: f64,
    /// 95 % of the packets waited no longer, s.
    pub queue_delay_p95_s: f64,
    /// 99 % of the packets waited no longer, s.
    pub queue_delay_p99_s: f64,
    /// Mean number of packets waiting, the one in service not counted.
    pub queue_mean_packets: f64,
    /// Most packets waiting at once.
    pub queue_max_packets: u64,
    /// Packets dropped for want of room.
    pub dropped_full: u64,
    /// Packets dropped by the discipline before the queue was full.
    pub dropped_early: u64,
    /// Packets dropped by a policer.
    pub dropped_policed: u64,
    /// Packets dropped since the link was down.
    pub dropped_down: u64,
    /// Each class of a scheduler, a class's own classes after it; empty for other disciplines.
    pub classes: Vec<ClassSummary>,
}

/// A class of a scheduler over the measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassSummary {
    /// Its name.
    pub name: String,
    /// Packets offered.
    pub offered: u64,
    /// Packets of it that were dropped.
    pub dropped: u64,
    /// IP packets served, bit/s.
    pub throughput_bit_s: f64,
    /// What its weight guaranteed it of the link, bit/s; none without weights, or where they changed.
    pub guaranteed_bit_s: Option<f64>,
    /// QoS efficiency factor: what it achieved over what it was guaranteed (thesis, equations 9.2 and 9.3).
    pub qos_efficiency: Option<f64>,
    /// Mean queueing delay of its packets, s.
    pub queue_delay_mean_s: Option<f64>,
}

/// Transfers, or pages, that ended in the measuring window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferSummary {
    /// How many ended.
    pub count: u64,
    /// Their payload.
    pub bytes: u64,
    /// Mean completion time, from opening the connection until the FIN was acknowledged, s.
    pub mean_s: Option<f64>,
    /// Median completion time, to 1 %, s.
    pub p50_s: Option<f64>,
    /// 95 % took no longer, to 1 %, s.
    pub p95_s: Option<f64>,
    /// 99 % took no longer, to 1 %, s.
    pub p99_s: Option<f64>,
}
