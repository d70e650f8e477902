"""The tables of a run: flows, other traffic, links and their classes."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from elephan.api import changes
from elephan.api.metrics import Metric, declared, metrics_of
from elephan.api.part import Part
from elephan.api.registry import cc_text
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
    return _table("All flows together", [], "Summary", [([], run.summary)])


def of_run(run: Run) -> list[Table]:
    """The tables of a run that are not empty."""
    summary, done = run.summary, run.summary.transfers
    flows = [([f"{number}", cc_text(flow.label)], flow) for number, flow in enumerate(summary.flows, 1)]
    hosts = [(texts, flow.host) for texts, flow in flows if flow.host is not None]
    made = (
        _table("Flows", ["flow", "label"], "FlowSummary", flows),
        _table("Hosts of senders", ["flow", "label"], "HostSummary", hosts),
        _table("Crowds of short flows", ["crowd"], "CrowdSummary", [([one.label], one) for one in summary.crowds]),
        _table("Streams of datagrams", ["stream"], "StreamSummary", [([one.label], one) for one in summary.streams]),
        _table("Links", ["link"], "LinkSummary", [([one.name], one) for one in summary.links]),
        changes.table(run.scenario, summary.to_s),
        *(
            _table(f"Classes of {link.name}", ["class"], "ClassSummary", [([one.name], one) for one in link.classes])
            for link in summary.links
        ),
        _table("Transfers", [], "TransferSummary", [([], done)] if done is not None and done.count else []),
    )
    return [table for table in made if table.rows]


def _table(title: str, first: Sequence[str], part: str, found: Sequence[tuple[Sequence[str], Part]]) -> Table:
    """The metrics of such parts of a summary, a row each, behind the texts that identify it, which `first` heads."""
    metrics = _metrics(part)
    note = f"The first {MOST_ROWS} of {len(found)}." if len(found) > MOST_ROWS else ""
    rows = [[*texts, *(_cell(metric, one) for metric in metrics)] for texts, one in found[:MOST_ROWS]]
    return Table(title, [*text_heads(*first), *(metric.head for metric in metrics)], rows, note)


def _cell(metric: Metric, part: Part) -> str:
    return _drops(part) if isinstance(part, LinkSummary) and metric.column == "dropped" else metric.cell(part)


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


def _ended(what: str, column: str) -> Metric:
    """A metric of the transfers or of the pages of a crowd."""

    def read(crowd: Any) -> float | None:
        done = getattr(crowd, what)
        return None if done is None else getattr(done, column)

    metric = declared("TransferSummary", column)
    return replace(metric, name=what, unit=metric.unit or metric.name, digits=min(metric.digits, 2), reading=read)


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
