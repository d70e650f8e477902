"""The summary of a run, with types. Made by `make declared` from crates/metrics/src/summary.rs; change it there."""

from elephan.api.part import Part


class HostSummary(Part, frozen=True, kw_only=True):
    """The host of a flow's sender over the measuring window."""

    busy: float
    """Share of the time in which the processor was busy. Unit: 1."""
    dropped: int
    """Packets dropped because the backlog was full. Unit: 1."""
    backlog_max_packets: int
    """Maximum backlog since the run began. Unit: packets."""
    stalls: int
    """Window reductions because the device queue was full. Unit: 1."""


class FlowSummary(Part, frozen=True, kw_only=True):
    """A flow over the measuring window."""

    label: str
    """Label."""
    start_s: float | None = None
    """Start time; none if it did not start. Unit: s."""
    goodput_bit_s: float
    """Application bytes delivered in order. Unit: bit/s."""
    stability: float | None = None
    """Standard deviation of the goodput over its mean. Unit: 1. Source: Li 2006, equation 7.4."""
    convergence_s: float | None = None
    """Time from the flow's start until its goodput is within a factor of 0.8 of its own average. Unit: s. Source: Li 2006, section 7.1.3."""
    sent_bytes: int
    """Payload bytes sent, retransmissions included. Unit: B."""
    retransmitted_bytes: int
    """Payload bytes retransmitted. Unit: B."""
    cwnd_mean_segments: float | None = None
    """Mean congestion window over the samples. Unit: segments."""
    srtt_mean_s: float | None = None
    """Mean smoothed round-trip time over the samples since the first RTT sample. Unit: s."""
    congestion_events: int
    """Reductions of the congestion window. Unit: 1."""
    timeouts: int | None = None
    """Retransmission timeouts; none where the kernel does not report them (before Linux 6.7), and in the model. Unit: 1."""
    host: HostSummary | None = None
    """Host of the sender, if the scenario has `host`."""


class TransferSummary(Part, frozen=True, kw_only=True):
    """Transfers, chunks or pages that finished in the measuring window."""

    count: int
    """Number of finished transfers, chunks or pages. Unit: 1."""
    bytes: int
    """Payload of these. Unit: B."""
    mean_s: float | None = None
    """Mean completion time: from the opening until the FIN was acknowledged, or from a chunk's write until its last byte was. Unit: s."""
    p50_s: float | None = None
    """Median completion time, to 1 %. Unit: s."""
    p95_s: float | None = None
    """95th percentile of the completion time, to 1 %. Unit: s."""
    p99_s: float | None = None
    """99th percentile of the completion time, to 1 %. Unit: s."""


class CrowdSummary(Part, frozen=True, kw_only=True):
    """A crowd of short flows over the measuring window: web users, or flows that arrive at random."""

    label: str
    """Label."""
    goodput_bit_s: float
    """Application bytes delivered in order on all connections. Unit: bit/s."""
    delivered_bytes: int
    """Application bytes delivered in order. Unit: B."""
    opened: int
    """Connections opened. Unit: 1."""
    failed: int
    """Connections that gave up after too many timeouts. Unit: 1."""
    sent_bytes: int
    """Payload bytes sent, retransmissions included. Unit: B."""
    retransmitted_bytes: int
    """Payload bytes retransmitted. Unit: B."""
    timeouts: int | None = None
    """Retransmission timeouts; none where the kernel does not report them (before Linux 6.7), and in the model. Unit: 1."""
    transfers: TransferSummary | None = None
    """Finished transfers; for web users, the objects."""
    pages: TransferSummary | None = None
    """Finished pages: from the request for the first object until the last object has arrived. None without web users."""


class StreamSummary(Part, frozen=True, kw_only=True):
    """A stream of datagrams over the measuring window, at its receiver."""

    label: str
    """Label."""
    start_s: float | None = None
    """Start time; none if it did not start. Unit: s."""
    goodput_bit_s: float
    """Payload that arrived, regardless of when it was sent. Unit: bit/s."""
    sent: int
    """Packets sent. Unit: 1."""
    received: int
    """Of those sent, packets received. Unit: 1."""
    lost: int
    """Of those sent, packets that did not arrive although a later one did. Packets in transit at the end are neither received nor lost. Unit: 1. Source: RFC 3550, appendix A.3."""
    reordered: int
    """Of those received, packets that arrived after one that was sent later. Unit: 1. Source: RFC 4737."""
    delay_mean_s: float | None = None
    """Mean one-way delay. Unit: s."""
    delay_p50_s: float | None = None
    """Median one-way delay, to 1 %. Unit: s."""
    delay_p99_s: float | None = None
    """99th percentile of the one-way delay, to 1 %. Unit: s."""
    delay_max_s: float | None = None
    """Maximum one-way delay. Unit: s."""
    jitter_s: float | None = None
    """Interarrival jitter at the end. Unit: s. Source: RFC 3550, section 6.4.1."""


class ClassSummary(Part, frozen=True, kw_only=True):
    """A class of a scheduler over the measuring window."""

    name: str
    """Name."""
    offered: int
    """Packets offered. Unit: 1."""
    dropped: int
    """Packets dropped. Unit: 1."""
    throughput_bit_s: float
    """IP packets transmitted. Unit: bit/s."""
    guaranteed_bit_s: float | None = None
    """Rate that its weight guarantees; none without weights, or if they changed. Unit: bit/s."""
    qos_efficiency: float | None = None
    """QoS efficiency factor: throughput achieved over throughput guaranteed. Unit: 1. Source: Li 2006, equations 9.2 and 9.3."""
    queue_delay_mean_s: float | None = None
    """Mean queueing delay of the packets. Unit: s."""


class LinkSummary(Part, frozen=True, kw_only=True):
    """A link over the measuring window."""

    name: str
    """Name."""
    utilisation: float | None = None
    """IP packets transmitted, as a share of the rate. Unit: 1."""
    offered: int
    """Packets offered. Unit: 1."""
    dropped: int
    """Of those offered, packets dropped, for one of the four reasons below. Unit: 1."""
    lost: int
    """Of those offered, packets lost on the wire. Unit: 1."""
    marked: int
    """Of those offered, packets marked. Unit: 1."""
    queue_delay_mean_s: float | None = None
    """Mean queueing delay of the packets; none if no packet arrived. Unit: s."""
    queue_delay_p50_s: float | None = None
    """Median queueing delay. Unit: s."""
    queue_delay_p95_s: float | None = None
    """95th percentile of the queueing delay. Unit: s."""
    queue_delay_p99_s: float | None = None
    """99th percentile of the queueing delay. Unit: s."""
    queue_mean_packets: float
    """Mean number of packets waiting, without the one in service. Unit: packets."""
    queue_max_packets: int
    """Maximum number of packets waiting. Unit: packets."""
    dropped_full: int
    """Packets dropped because the queue was full. Unit: 1."""
    dropped_early: int
    """Packets dropped by the queue discipline before the queue was full. Unit: 1."""
    dropped_policed: int
    """Packets dropped by a policer. Unit: 1."""
    dropped_down: int
    """Packets dropped because the link was down. Unit: 1."""
    classes: tuple[ClassSummary, ...] = ()
    """Metrics of each class of a scheduler, followed by its subclasses; empty for other disciplines."""


class Summary(Part, frozen=True, kw_only=True):
    """The metrics of a run over its measuring window. `null` stands for what is undefined."""

    from_s: float
    """Start of the measuring window. Unit: s."""
    to_s: float
    """End of the measuring window. Unit: s."""
    goodput_bit_s: float
    """Application bytes delivered in order over the measuring window, all flows together. Unit: bit/s. Source: RFC 5166, section 2.1.1."""
    utilisation: float | None = None
    """IP packets that the bottleneck transmitted, as a share of what its rate allows. Unit: 1."""
    fairness: float | None = None
    """Minimum of the flows' goodputs over their maximum. Unit: 1. Source: Li 2006, equation 7.9."""
    jain: float | None = None
    """Jain's index of the flows' goodputs. Unit: 1. Source: Jain, Chiu and Hawe 1984."""
    stability: float | None = None
    """Standard deviation of a flow's goodput over its mean, averaged over the flows; samples of `measure.interval`. Unit: 1. Source: Li 2006, equations 7.4 and 7.5."""
    convergence_s: float | None = None
    """Time from the start of the newest flow until its goodput is within a factor of 0.8 of its own average. Unit: s. Source: Li 2006, section 7.1.3."""
    fair_share_s: float | None = None
    """Time from the start of the newest flow until its goodput is within a factor of 0.8 of an equal share of the aggregate. Unit: s."""
    overhead_s_bit: float | None = None
    """Retransmitted over transferred bytes, summed over flows, over the aggregate goodput. Unit: s/bit. Source: Li 2006, equations 7.10 and 7.11."""
    overhead_whole_s_bit: float | None = None
    """The same over the whole run, slow start included: from the start of the first flow to the end of the measuring window. Unit: s/bit."""
    loss_rate: float | None = None
    """Packets dropped or lost at the bottleneck, as a share of those offered to it. Unit: 1."""
    queue_delay_mean_s: float | None = None
    """Mean time between arrival and start of service at the bottleneck; none if no packet arrived. Unit: s."""
    congestion_epochs: int
    """Congestion epochs: groups of window reductions within one round-trip time. Unit: 1."""
    synchronisation: float | None = None
    """Mean share of the active flows that reduce their window in a congestion epoch. Unit: 1."""
    flows: tuple[FlowSummary, ...] = ()
    """Metrics of each flow."""
    crowds: tuple[CrowdSummary, ...] = ()
    """Metrics of each crowd of short flows."""
    streams: tuple[StreamSummary, ...] = ()
    """Metrics of each stream of datagrams."""
    links: tuple[LinkSummary, ...] = ()
    """Metrics of each link with a rate."""
    transfers: TransferSummary | None = None
    """Transfers of flows, and chunks of applications, that finished in the measuring window; none if there were none."""
