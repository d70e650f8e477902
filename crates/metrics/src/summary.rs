//! The result of a run, as it is written. To add a metric, add its line here, and its value where it is computed.

use crate::field::{Field, summary};

summary! {
    /// The metrics of a run over its measuring window. `null` stands for what is undefined.
    pub struct Summary {
        /// Start of the measuring window.
        from_s: f64, "s", "measured from";
        /// End of the measuring window.
        to_s: f64, "s", "measured to";
        /// Application bytes delivered in order over the measuring window, all flows together.
        goodput_bit_s: f64, "bit/s", "goodput" ["RFC 5166, section 2.1.1"] => Higher "Mbit/s, application bytes" 1e-6 1;
        /// IP packets that the bottleneck transmitted, as a share of what its rate allows.
        utilisation: Option<f64>, "1", "utilisation" <= 1.0 => Higher "%, IP packets" 100.0 1;
        /// Minimum of the flows' goodputs over their maximum.
        fairness: Option<f64>, "1", "fairness" <= 1.0 ["Li 2006, equation 7.9"] => Higher "least/most" 1.0 2;
        /// Jain's index of the flows' goodputs.
        jain: Option<f64>, "1", "Jain's index" <= 1.0 ["Jain, Chiu and Hawe 1984"];
        /// Standard deviation of a flow's goodput over its mean, averaged over the flows; samples of `measure.interval`.
        stability: Option<f64>, "1", "stability" ["Li 2006, equations 7.4 and 7.5"] => Lower "std/mean, 1 s" 1.0 3;
        /// Time from the start of the newest flow until its goodput is within a factor of 0.8 of its own average.
        convergence_s: Option<f64>, "s", "convergence" ["Li 2006, section 7.1.3"] => Lower "s to 80 %" 1.0 1;
        /// Time from the start of the newest flow until its goodput is within a factor of 0.8 of an equal share of the aggregate.
        fair_share_s: Option<f64>, "s", "fair share" => Lower "s to 80 %" 1.0 1;
        /// Retransmitted over transferred bytes, summed over flows, over the aggregate goodput.
        overhead_s_bit: Option<f64>, "s/bit", "overhead" ["Li 2006, equations 7.10 and 7.11"] => Lower "1e-7/(Mbit/s)" 1e13 2;
        /// The same over the whole run, slow start included: from the start of the first flow to the end of the measuring window.
        overhead_whole_s_bit: Option<f64>, "s/bit", "overhead, whole run";
        /// Packets dropped or lost at the bottleneck, as a share of those offered to it.
        loss_rate: Option<f64>, "1", "loss" <= 1.0 => Lower "% of packets" 100.0 4;
        /// Mean time between arrival and start of service at the bottleneck; none if no packet arrived.
        queue_delay_mean_s: Option<f64>, "s", "queueing" => Lower "ms, mean" 1e3 1;
        /// Congestion epochs: groups of window reductions within one round-trip time.
        congestion_epochs: u64, "1", "congestion epochs";
        /// Mean share of the active flows that reduce their window in a congestion epoch.
        synchronisation: Option<f64>, "1", "synchronisation" <= 1.0;
        /// Metrics of each flow.
        flows: Vec<FlowSummary>, "", "flows";
        /// Metrics of each crowd of short flows.
        crowds: Vec<CrowdSummary>, "", "crowds of short flows";
        /// Metrics of each stream of datagrams.
        streams: Vec<StreamSummary>, "", "streams of datagrams";
        /// Metrics of each link with a rate.
        links: Vec<LinkSummary>, "", "links";
        /// Transfers of flows, and chunks of applications, that finished in the measuring window; none if there were none.
        transfers: Option<TransferSummary>, "", "transfers";
    }
}

summary! {
    /// A flow over the measuring window.
    pub struct FlowSummary {
        /// Label.
        label: String, "", "flow";
        /// Start time; none if it did not start.
        start_s: Option<f64>, "s", "start" => Neither "s" 1.0 2;
        /// Application bytes delivered in order.
        goodput_bit_s: f64, "bit/s", "goodput" => Higher "Mbit/s" 1e-6 2;
        /// Standard deviation of the goodput over its mean.
        stability: Option<f64>, "1", "stability" ["Li 2006, equation 7.4"] => Lower "std/mean" 1.0 3;
        /// Time from the flow's start until its goodput is within a factor of 0.8 of its own average.
        convergence_s: Option<f64>, "s", "convergence" ["Li 2006, section 7.1.3"] => Lower "s" 1.0 1;
        /// Payload bytes sent, retransmissions included.
        sent_bytes: u64, "B", "bytes sent";
        /// Payload bytes retransmitted.
        retransmitted_bytes: u64, "B", "bytes retransmitted";
        /// Mean congestion window over the samples.
        cwnd_mean_segments: Option<f64>, "segments", "mean cwnd" => Neither "segments" 1.0 1;
        /// Mean smoothed round-trip time over the samples since the first RTT sample.
        srtt_mean_s: Option<f64>, "s", "mean RTT" => Neither "ms" 1e3 1;
        /// Reductions of the congestion window.
        congestion_events: u64, "1", "reductions" => Neither "" 1.0 0;
        /// Retransmission timeouts; none where the kernel does not report them (before Linux 6.7), and in the model.
        timeouts: Option<u64>, "1", "timeouts" => Lower "" 1.0 0;
        /// Host of the sender, if the scenario has `host`.
        host: Option<HostSummary>, "", "host";
    }
}

summary! {
    /// The host of a flow's sender over the measuring window.
    pub struct HostSummary {
        /// Share of the time in which the processor was busy.
        busy: f64, "1", "processor busy" <= 1.0 => Neither "%" 100.0 1;
        /// Packets dropped because the backlog was full.
        dropped: u64, "1", "dropped" => Lower "by backlog" 1.0 0;
        /// Maximum backlog since the run began.
        backlog_max_packets: u64, "packets", "backlog" => Neither "packets, most" 1.0 0;
        /// Window reductions because the device queue was full.
        stalls: u64, "1", "stalls" => Lower "device queue full" 1.0 0;
    }
}

summary! {
    /// A crowd of short flows over the measuring window: web users, or flows that arrive at random.
    pub struct CrowdSummary {
        /// Label.
        label: String, "", "crowd";
        /// Application bytes delivered in order on all connections.
        goodput_bit_s: f64, "bit/s", "goodput" => Higher "Mbit/s" 1e-6 2;
        /// Application bytes delivered in order.
        delivered_bytes: u64, "B", "delivered" => Higher "MB" 1e-6 1;
        /// Connections opened.
        opened: u64, "1", "opened";
        /// Connections that gave up after too many timeouts.
        failed: u64, "1", "failed" => Lower "" 1.0 0;
        /// Payload bytes sent, retransmissions included.
        sent_bytes: u64, "B", "bytes sent";
        /// Payload bytes retransmitted.
        retransmitted_bytes: u64, "B", "bytes retransmitted";
        /// Retransmission timeouts; none where the kernel does not report them (before Linux 6.7), and in the model.
        timeouts: Option<u64>, "1", "timeouts" => Lower "" 1.0 0;
        /// Finished transfers; for web users, the objects.
        transfers: Option<TransferSummary>, "", "transfers";
        /// Finished pages: from the request for the first object until the last object has arrived. None without web users.
        pages: Option<TransferSummary>, "", "pages";
    }
}

summary! {
    /// A stream of datagrams over the measuring window, at its receiver.
    pub struct StreamSummary {
        /// Label.
        label: String, "", "stream";
        /// Start time; none if it did not start.
        start_s: Option<f64>, "s", "start";
        /// Payload that arrived, regardless of when it was sent.
        goodput_bit_s: f64, "bit/s", "goodput" => Higher "Mbit/s" 1e-6 2;
        /// Packets sent.
        sent: u64, "1", "sent" => Neither "packets" 1.0 0;
        /// Of those sent, packets received.
        received: u64, "1", "received" => Neither "packets" 1.0 0;
        /// Of those sent, packets that did not arrive although a later one did. Packets in transit at the end are neither received nor lost.
        lost: u64, "1", "lost" ["RFC 3550, appendix A.3"];
        /// Of those received, packets that arrived after one that was sent later.
        reordered: u64, "1", "reordered" ["RFC 4737"] => Lower "packets" 1.0 0;
        /// Mean one-way delay.
        delay_mean_s: Option<f64>, "s", "delay" => Lower "ms, mean" 1e3 3;
        /// Median one-way delay, to 1 %.
        delay_p50_s: Option<f64>, "s", "delay, median";
        /// 99th percentile of the one-way delay, to 1 %.
        delay_p99_s: Option<f64>, "s", "delay" => Lower "ms, 99 %" 1e3 3;
        /// Maximum one-way delay.
        delay_max_s: Option<f64>, "s", "delay, maximum";
        /// Interarrival jitter at the end.
        jitter_s: Option<f64>, "s", "jitter" ["RFC 3550, section 6.4.1"] => Lower "ms" 1e3 3;
    }
}

summary! {
    /// A link over the measuring window.
    pub struct LinkSummary {
        /// Name.
        name: String, "", "link";
        /// IP packets transmitted, as a share of the rate.
        utilisation: Option<f64>, "1", "utilisation" <= 1.0 => Higher "%" 100.0 1;
        /// Packets offered.
        offered: u64, "1", "offered" => Neither "packets" 1.0 0;
        /// Of those offered, packets dropped, for one of the four reasons below.
        dropped: u64, "1", "dropped" => Lower "packets" 1.0 0;
        /// Of those offered, packets lost on the wire.
        lost: u64, "1", "lost" => Lower "packets" 1.0 0;
        /// Of those offered, packets marked.
        marked: u64, "1", "marked" => Neither "packets" 1.0 0;
        /// Mean queueing delay of the packets; none if no packet arrived.
        queue_delay_mean_s: Option<f64>, "s", "queueing" => Lower "ms, mean" 1e3 2;
        /// Median queueing delay.
        queue_delay_p50_s: Option<f64>, "s", "queueing, median";
        /// 95th percentile of the queueing delay.
        queue_delay_p95_s: Option<f64>, "s", "queueing" => Lower "ms, 95 %" 1e3 2;
        /// 99th percentile of the queueing delay.
        queue_delay_p99_s: Option<f64>, "s", "queueing" => Lower "ms, 99 %" 1e3 2;
        /// Mean number of packets waiting, without the one in service.
        queue_mean_packets: f64, "packets", "queue" => Lower "packets, mean" 1.0 1;
        /// Maximum number of packets waiting.
        queue_max_packets: u64, "packets", "queue" => Neither "packets, most" 1.0 0;
        /// Packets dropped because the queue was full.
        dropped_full: u64, "1", "dropped: queue full";
        /// Packets dropped by the queue discipline before the queue was full.
        dropped_early: u64, "1", "dropped: queue discipline";
        /// Packets dropped by a policer.
        dropped_policed: u64, "1", "dropped: policer";
        /// Packets dropped because the link was down.
        dropped_down: u64, "1", "dropped: link down";
        /// Metrics of each class of a scheduler, followed by its subclasses; empty for other disciplines.
        classes: Vec<ClassSummary>, "", "classes";
    }
}

summary! {
    /// A class of a scheduler over the measuring window.
    pub struct ClassSummary {
        /// Name.
        name: String, "", "class";
        /// Packets offered.
        offered: u64, "1", "offered" => Neither "packets" 1.0 0;
        /// Packets dropped.
        dropped: u64, "1", "dropped" => Lower "packets" 1.0 0;
        /// IP packets transmitted.
        throughput_bit_s: f64, "bit/s", "throughput" => Higher "Mbit/s, IP packets" 1e-6 2;
        /// Rate that its weight guarantees; none without weights, or if they changed.
        guaranteed_bit_s: Option<f64>, "bit/s", "guaranteed" => Neither "Mbit/s" 1e-6 2;
        /// QoS efficiency factor: throughput achieved over throughput guaranteed.
        qos_efficiency: Option<f64>, "1", "QoS efficiency" ["Li 2006, equations 9.2 and 9.3"] => Higher "used/guaranteed" 1.0 2;
        /// Mean queueing delay of the packets.
        queue_delay_mean_s: Option<f64>, "s", "queueing" => Lower "ms, mean" 1e3 2;
    }
}

summary! {
    /// Transfers, chunks or pages that finished in the measuring window.
    pub struct TransferSummary {
        /// Number of finished transfers, chunks or pages.
        count: u64, "1", "finished" => Neither "" 1.0 0;
        /// Payload of these.
        bytes: u64, "B", "payload";
        /// Mean completion time: from the opening until the FIN was acknowledged, or from a chunk's write until its last byte was.
        mean_s: Option<f64>, "s", "completion" => Lower "s, mean" 1.0 3;
        /// Median completion time, to 1 %.
        p50_s: Option<f64>, "s", "completion" => Lower "s, median" 1.0 3;
        /// 95th percentile of the completion time, to 1 %.
        p95_s: Option<f64>, "s", "completion" => Lower "s, 95 %" 1.0 3;
        /// 99th percentile of the completion time, to 1 %.
        p99_s: Option<f64>, "s", "completion" => Lower "s, 99 %" 1.0 3;
    }
}

/// The parts of a summary and their figures.
pub const PARTS: [(&str, &[Field]); 8] = [
    ("Summary", Summary::FIELDS),
    ("FlowSummary", FlowSummary::FIELDS),
    ("HostSummary", HostSummary::FIELDS),
    ("CrowdSummary", CrowdSummary::FIELDS),
    ("StreamSummary", StreamSummary::FIELDS),
    ("LinkSummary", LinkSummary::FIELDS),
    ("ClassSummary", ClassSummary::FIELDS),
    ("TransferSummary", TransferSummary::FIELDS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_the_unit() {
        let ends = [
            ("_s_bit", "s/bit"),
            ("_bit_s", "bit/s"),
            ("_segments", "segments"),
            ("_packets", "packets"),
            ("_s", "s"),
        ];
        for field in PARTS.iter().flat_map(|(_, fields)| *fields).filter(|field| !field.unit.is_empty()) {
            let by_name = ends.iter().find(|(end, _)| field.name.ends_with(end)).map(|(_, unit)| *unit);
            let counted = if field.name.ends_with("bytes") { "B" } else { "1" };
            assert_eq!(field.unit, by_name.unwrap_or(counted), "{}", field.name);
        }
    }
}
