"""The tables of a run: flows, other traffic, links and their classes."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from elephan.api import changes
from elephan.api.metrics import Metric, declared, metrics_of
from elephan.api.part import Part
from elephan.api.run import Run
from elephan.api.summary import LinkSummary
from elephan.base.table import Head, Table, text_heads

# Rows of a table; what is left out is said.
MOST_ROWS = 200

# Shares, which a summary has as two counts.
RETRANSMITTED = Metric(
    "retransmitted", "% of bytes", 3, 100, reading=lambda part: _share(part.retransmitted_bytes, part.sent_bytes)
)
LOST = Metric("lost", "%", 3, 100, reading=lambda stream: _share(stream.lost, stream.received + stream.lost))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# The keys of a summary that such a metric is made of; for others it is their column.
MADE_OF = {
    "retransmitted": ("sent_bytes", "retransmitted_bytes"),
    "lost": ("received", "lost"),
    "dropped": ("dropped", "dropped_full", "dropped_early", "dropped_policed", "dropped_down"),
    "transfers": ("transfers",),
    "pages": ("pages",),
}
# What tells of which part, or of which time, the figures are.
IDENTIFYING = ("label", "name", "from_s", "to_s")


# Tables of several runs leave it out, because fairness tells the same.
JAIN = Metric("Jain's index", "", 3, column="jain")


def heads() -> list[Head]:
    """The heads of the metrics that tables of a run can have."""
    parts = ("Summary", "FlowSummary", "HostSummary", "CrowdSummary", "StreamSummary", "LinkSummary", "ClassSummary")
    return [metric.head for part in (*parts, "TransferSummary") for metric in _metrics(part)]


def figures(part: Part, names: Collection[str]) -> dict[str, Any]:
    """A summary, or a part of it, as `to_dict`, of which only the figures of these metrics are left; empty without any."""
    keys = {
        key
        for metric in _metrics(type(part).__name__)
        if metric.name in names
        for key in MADE_OF.get(metric.name, [metric.column])
    }
    found: dict[str, Any] = {}
    for key, value in part.to_dict().items():
        below = getattr(part, key)
        if key in keys:
            found[key] = value
        elif isinstance(below, tuple) and any(of_each := [figures(each, names) for each in below]):
            found[key] = of_each
        elif isinstance(below, Part) and (of_it := figures(below, names)):
            found[key] = of_it
    identified = {key: getattr(part, key) for key in IDENTIFYING if hasattr(part, key)}
    return {**identified, **found} if found else {}


def together(run: Run) -> Table:
    """The metrics of a run's flows together."""
    metrics = _metrics("Summary")
    return _table("All flows together", [], metrics, [_cells(metrics, run.summary)])


def of_run(run: Run) -> list[Table]:
    """The tables of a run that are not empty."""
    made = (
        _flows(run),
        _hosts(run),
        _crowds(run),
        _streams(run),
        _links(run),
        changes.table(run.scenario, run.summary.to_s),
        *_classes(run),
        _transfers(run),
    )
    return [table for table in made if table.rows]


def _table(title: str, first: Sequence[str], metrics: Sequence[Metric], rows: Sequence[Sequence[str]]) -> Table:
    """`first` heads columns of text, which come before the metrics."""
    note = f"The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    return Table(title, [*text_heads(*first), *(metric.head for metric in metrics)], rows[:MOST_ROWS], note)


def _cells(metrics: Sequence[Metric], part: Any) -> list[str]:
    return [metric.cell(part) for metric in metrics]


def _metrics(part: str) -> Sequence[Metric]:
    """The metrics of a part of a summary, and what follows from several of its columns."""
    match part:
        case "Summary":
            return _with(part, "fairness", JAIN)
        case "FlowSummary":
            return _with(part, "srtt_mean_s", RETRANSMITTED)
        case "CrowdSummary":
            ended = [_ended(what, column) for what in ("transfers", "pages") for column in ("count", "p50_s", "p95_s")]
            return _with(part, "delivered_bytes", *ended, RETRANSMITTED)
        case "StreamSummary":
            return _with(part, "received", LOST)
        case _:
            return metrics_of(part)


def _with(part: str, after: str, *others: Metric) -> Sequence[Metric]:
    """The metrics of a part of a summary, with others after one of its columns."""
    metrics = metrics_of(part)
    place = 1 + [metric.column for metric in metrics].index(after)
    return [*metrics[:place], *others, *metrics[place:]]


def _flows(run: Run) -> Table:
    metrics = _metrics("FlowSummary")
    rows = [[f"{number}", flow.label, *_cells(metrics, flow)] for number, flow in enumerate(run.summary.flows, 1)]
    return _table("Flows", ["flow", "label"], metrics, rows)


def _hosts(run: Run) -> Table:
    metrics = _metrics("HostSummary")
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
    metrics = _metrics("CrowdSummary")
    rows = [[crowd.label, *_cells(metrics, crowd)] for crowd in run.summary.crowds]
    return _table("Crowds of short flows", ["crowd"], metrics, rows)


def _streams(run: Run) -> Table:
    metrics = _metrics("StreamSummary")
    rows = [[stream.label, *_cells(metrics, stream)] for stream in run.summary.streams]
    return _table("Streams of datagrams", ["stream"], metrics, rows)


def _links(run: Run) -> Table:
    metrics = _metrics("LinkSummary")
    rows = [
        [link.name, *(_drops(link) if metric.column == "dropped" else metric.cell(link) for metric in metrics)]
        for link in run.summary.links
    ]
    return _table("Links", ["link"], metrics, rows)


def _classes(run: Run) -> Iterator[Table]:
    metrics = _metrics("ClassSummary")
    for link in run.summary.links:
        rows = [[one.name, *_cells(metrics, one)] for one in link.classes]
        yield _table(f"Classes of {link.name}", ["class"], metrics, rows)


def _transfers(run: Run) -> Table:
    metrics, done = _metrics("TransferSummary"), run.summary.transfers
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
