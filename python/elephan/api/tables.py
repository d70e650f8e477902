"""The tables of a run: flows, other traffic, links and their classes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from elephan.api.metrics import Metric, declared, metrics_of
from elephan.api.run import Run
from elephan.api.summary import LinkSummary
from elephan.base.table import Table, text_heads

# Rows of a table; what is left out is said.
MOST_ROWS = 200

# Shares, which a summary has as two counts.
RETRANSMITTED = Metric(
    "retransmitted", "% of bytes", 3, 100, reading=lambda part: _share(part.retransmitted_bytes, part.sent_bytes)
)
LOST = Metric("lost", "%", 3, 100, reading=lambda stream: _share(stream.lost, stream.received + stream.lost))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def of_run(run: Run) -> list[Table]:
    """The tables of a run that are not empty."""
    made = (_flows(run), _hosts(run), _crowds(run), _streams(run), _links(run), *_classes(run), _transfers(run))
    return [table for table in made if table.rows]


def _table(title: str, first: Sequence[str], metrics: Sequence[Metric], rows: Sequence[Sequence[str]]) -> Table:
    """`first` heads columns of text, which come before the metrics."""
    note = f"The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    return Table(title, [*text_heads(*first), *(metric.head for metric in metrics)], rows[:MOST_ROWS], note)


def _cells(metrics: Sequence[Metric], part: Any) -> list[str]:
    return [metric.cell(part) for metric in metrics]


def _with(part: str, after: str, *others: Metric) -> list[Metric]:
    """The metrics of a part of a summary, with others after one of its columns."""
    metrics = metrics_of(part)
    place = 1 + [metric.column for metric in metrics].index(after)
    return [*metrics[:place], *others, *metrics[place:]]


def _flows(run: Run) -> Table:
    metrics = _with("FlowSummary", "srtt_mean_s", RETRANSMITTED)
    rows = [[f"{number}", flow.label, *_cells(metrics, flow)] for number, flow in enumerate(run.summary.flows, 1)]
    return _table("Flows", ["flow", "label"], metrics, rows)


def _hosts(run: Run) -> Table:
    metrics = metrics_of("HostSummary")
    rows = [
        [f"{number}", flow.label, *_cells(metrics, flow.host)]
        for number, flow in enumerate(run.summary.flows, 1)
        if flow.host is not None
    ]
    return _table("Hosts of senders", ["flow", "label"], metrics, rows)


def _ended(what: str, column: str) -> Metric:
    """A metric of the transfers or of the pages of a crowd."""

    def read(crowd: Any) -> float | None:
        done = getattr(crowd, what)
        return None if done is None else getattr(done, column)

    metric = declared("TransferSummary", column)
    return replace(metric, name=what, unit=metric.unit or metric.name, digits=min(metric.digits, 2), reading=read)


def _crowds(run: Run) -> Table:
    ended = [_ended(what, column) for what in ("transfers", "pages") for column in ("count", "p50_s", "p95_s")]
    metrics = _with("CrowdSummary", "delivered_bytes", *ended, RETRANSMITTED)
    rows = [[crowd.label, *_cells(metrics, crowd)] for crowd in run.summary.crowds]
    return _table("Crowds of short flows", ["crowd"], metrics, rows)


def _streams(run: Run) -> Table:
    metrics = _with("StreamSummary", "received", LOST)
    rows = [[stream.label, *_cells(metrics, stream)] for stream in run.summary.streams]
    return _table("Streams of datagrams", ["stream"], metrics, rows)


def _links(run: Run) -> Table:
    metrics = metrics_of("LinkSummary")
    rows = [
        [link.name, *(_drops(link) if metric.column == "dropped" else metric.cell(link) for metric in metrics)]
        for link in run.summary.links
    ]
    return _table("Links", ["link"], metrics, rows)


def _classes(run: Run) -> Iterator[Table]:
    metrics = metrics_of("ClassSummary")
    for link in run.summary.links:
        rows = [[one.name, *_cells(metrics, one)] for one in link.classes]
        yield _table(f"Classes of {link.name}", ["class"], metrics, rows)


def _transfers(run: Run) -> Table:
    metrics, done = metrics_of("TransferSummary"), run.summary.transfers
    return _table("Transfers", [], metrics, [_cells(metrics, done)] if done is not None and done.count else [])


def _drops(link: LinkSummary) -> str:
    """Number of packets that a link dropped, with the reasons unless all were drops at a full queue."""
    reasons = {
        "full": link.dropped_full,
        "early": link.dropped_early,
        "policed": link.dropped_policed,
        "down": link.dropped_down,
    }
    told = [f"{count} {reason}" for reason, count in reasons.items() if count]
    return str(link.dropped) if link.dropped == link.dropped_full else f"{link.dropped}: {', '.join(told)}"
