"""The tables of a run: flows, what else was on the network, links and their classes."""

from collections.abc import Iterator, Sequence

from elephan.api.run import Run
from elephan.api.summary import LinkSummary, TransferSummary
from elephan.base.numbers import number, percent
from elephan.base.table import Head, Table, names

# Rows of a table; what is left out is said.
MOST_ROWS = 200


def of_run(run: Run) -> list[Table]:
    """The tables of a run; only those that have something in them."""
    made = (_flows(run), _hosts(run), _crowds(run), _streams(run), _links(run), *_classes(run), _transfers(run))
    return [table for table in made if table.rows]


def _table(title: str, first: Sequence[str], heads: Sequence[tuple[str, str]], rows: list[list[str]]) -> Table:
    """`first` heads columns of text, `heads` columns of numbers."""
    head = [*names(*first), *(Head(*one) for one in heads)]
    note = f"The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    return Table(title, head, rows[:MOST_ROWS], note)


def _flows(run: Run) -> Table:
    heads = [
        ("start", "s"),
        ("goodput", "Mbit/s"),
        ("stability", "std/mean"),
        ("convergence", "s"),
        ("mean cwnd", "segments"),
        ("mean RTT", "ms"),
        ("retransmitted", "% of bytes"),
        ("reductions", ""),
        ("timeouts", ""),
    ]
    rows = [
        [
            f"{position + 1}",
            flow.label,
            number(flow.start_s, 1, 2),
            number(flow.goodput_bit_s, 1e-6, 2),
            number(flow.stability, 1, 3),
            number(flow.convergence_s, 1, 1),
            number(flow.cwnd_mean_segments, 1, 1),
            number(flow.srtt_mean_s, 1e3, 1),
            percent(flow.retransmitted_bytes, flow.sent_bytes),
            str(flow.congestion_events),
            str(flow.timeouts),
        ]
        for position, flow in enumerate(run.summary.flows)
    ]
    return _table("Flows", ["flow", "label"], heads, rows)


def _hosts(run: Run) -> Table:
    heads = [("processor busy", "%"), ("backlog", "packets, most"), ("dropped", "by backlog"), ("stalls", "")]
    rows = [
        [
            f"{position + 1}",
            flow.label,
            number(flow.host.busy, 100, 1),
            str(flow.host.backlog_max_packets),
            f"{flow.host.dropped:,}",
            str(flow.host.stalls),
        ]
        for position, flow in enumerate(run.summary.flows)
        if flow.host is not None
    ]
    return _table("Hosts of senders", ["flow", "label"], heads, rows)


def _ended(done: TransferSummary | None) -> list[str]:
    return ["-"] * 3 if done is None else [f"{done.count:,}", number(done.p50_s, 1, 2), number(done.p95_s, 1, 2)]


def _crowds(run: Run) -> Table:
    heads = [("goodput", "Mbit/s"), ("delivered", "MB")]
    for what in ("transfers", "pages"):
        heads += [(what, "ended"), (what, "s, median"), (what, "s, 95 %")]
    heads += [("retransmitted", "% of bytes"), ("timeouts", ""), ("failed", "")]
    rows = [
        [
            crowd.label,
            number(crowd.goodput_bit_s, 1e-6, 2),
            number(crowd.delivered_bytes, 1e-6, 1),
            *_ended(crowd.transfers),
            *_ended(crowd.pages),
            percent(crowd.retransmitted_bytes, crowd.sent_bytes),
            str(crowd.timeouts),
            str(crowd.failed),
        ]
        for crowd in run.summary.crowds
    ]
    return _table("Crowds of short flows", ["crowd"], heads, rows)


def _streams(run: Run) -> Table:
    heads = [
        ("goodput", "Mbit/s"),
        ("sent", "packets"),
        ("received", "packets"),
        ("lost", "%"),
        ("reordered", "packets"),
        ("delay", "ms, mean"),
        ("delay", "ms, 99 %"),
        ("jitter", "ms"),
    ]
    rows = [
        [
            stream.label,
            number(stream.goodput_bit_s, 1e-6, 2),
            f"{stream.sent:,}",
            f"{stream.received:,}",
            percent(stream.lost, stream.received + stream.lost),
            f"{stream.reordered:,}",
            number(stream.delay_mean_s, 1e3, 3),
            number(stream.delay_p99_s, 1e3, 3),
            number(stream.jitter_s, 1e3, 3),
        ]
        for stream in run.summary.streams
    ]
    return _table("Streams of datagrams", ["stream"], heads, rows)


def _links(run: Run) -> Table:
    heads = [
        ("utilisation", "%"),
        ("offered", "packets"),
        ("dropped", "packets"),
        ("lost", "packets"),
        ("marked", "packets"),
        ("queueing", "ms, mean"),
        ("queueing", "ms, 95 %"),
        ("queueing", "ms, 99 %"),
        ("queue", "packets, mean"),
        ("queue", "packets, most"),
    ]
    return _table("Links", ["link"], heads, [_link(link) for link in run.summary.links])


def _link(link: LinkSummary) -> list[str]:
    return [
        link.name,
        number(link.utilisation, 100, 1),
        f"{link.offered:,}",
        drops(link),
        f"{link.lost:,}",
        f"{link.marked:,}",
        number(link.queue_delay_mean_s, 1e3, 2),
        number(link.queue_delay_p95_s, 1e3, 2),
        number(link.queue_delay_p99_s, 1e3, 2),
        number(link.queue_mean_packets, 1, 1),
        str(link.queue_max_packets),
    ]


def _classes(run: Run) -> Iterator[Table]:
    heads = [
        ("throughput", "Mbit/s, IP packets"),
        ("guaranteed", "Mbit/s"),
        ("QoS efficiency", "used/guaranteed"),
        ("offered", "packets"),
        ("dropped", "packets"),
        ("queueing", "ms, mean"),
    ]
    for link in run.summary.links:
        rows = [
            [
                one.name,
                number(one.throughput_bit_s, 1e-6, 2),
                number(one.guaranteed_bit_s, 1e-6, 2),
                number(one.qos_efficiency, 1, 2),
                f"{one.offered:,}",
                f"{one.dropped:,}",
                number(one.queue_delay_mean_s, 1e3, 2),
            ]
            for one in link.classes
        ]
        yield _table(f"Classes of {link.name}", ["class"], heads, rows)


def _transfers(run: Run) -> Table:
    done = run.summary.transfers
    heads = [
        ("transfers ended", ""),
        *(("completion", unit) for unit in ("s, mean", "s, median", "s, 95 %", "s, 99 %")),
    ]
    rows = []
    if done is not None and done.count:
        times = (done.mean_s, done.p50_s, done.p95_s, done.p99_s)
        rows = [[f"{done.count:,}", *(number(value, 1, 3) for value in times)]]
    return _table("Transfers", [], heads, rows)


def drops(link: LinkSummary) -> str:
    """How many packets a link dropped, and why, where that was not all for want of room."""
    reasons = {
        "full": link.dropped_full,
        "early": link.dropped_early,
        "policed": link.dropped_policed,
        "down": link.dropped_down,
    }
    told = [f"{count} {reason}" for reason, count in reasons.items() if count]
    return str(link.dropped) if link.dropped == link.dropped_full else f"{link.dropped}: {', '.join(told)}"
