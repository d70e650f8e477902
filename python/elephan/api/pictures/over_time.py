"""Pictures over time: the quantities that are drawn, with their declared titles and meanings, and charts of them."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from elephan.api.metrics import Metric, declared, declared_columns
from elephan.api.pictures.data import Chart, LackingError, Line, Numbers, sentences
from elephan.api.pictures.marks import marks
from elephan.api.pictures.samples import MOST_LINES, Recorded, Samples, edges, mean_s, means, names

# The suffix of a line's name if the line is the threshold of a window.
SSTHRESH = " ssthresh"
# What `drops` counts, in lines of their own.
COUNTED = ("dropped", "lost", "marked")


@dataclass(frozen=True)
class Quantity:
    """A quantity over time of each flow or of each link.

    `mean` says whether means are drawn, not samples, and `is_live` whether the page has it while a run goes on.
    """

    of: Literal["flows", "links"]
    metric: Metric
    mean: bool = False
    is_live: bool = True


def _sampled(table: str, column: str, like: Metric, unit: str = "") -> Metric:
    """A column of the samples, in the unit of a figure of the summary, or in `unit`, which says what is counted."""
    found = declared_columns()[table, column]
    return replace(
        like, name=found["title"], unit=unit or like.short_unit, column=column, meaning=found["meaning"], source=""
    )


KILOBYTES, MEGABYTES = Metric("", "kB", 1, 1e-3), Metric("", "MB", 1, 1e-6)
# Counts of several columns: its column is none of them.
DROPS = Metric(
    "drops and marks",
    "packets/s",
    digits=1,
    meaning="Packets that the queue dropped, the wire lost, or the queue marked, as a rate.",
)
GOODPUT = declared("FlowSummary", "goodput_bit_s")
# Goodput at the receivers' network layer.
RECEIVE_RATE = "receive-rate"
# Crowds of short flows and streams of datagrams have no window, but are shown beside the flows in these. A datagram is
# delivered when it arrives: both are the goodput of streams.
WITH_OTHERS = ("goodput", RECEIVE_RATE)
# By the name that `elephan plot` knows.
QUANTITIES = {
    "cwnd": Quantity("flows", _sampled("flows", "cwnd_segments", declared("FlowSummary", "cwnd_mean_segments"))),
    "goodput": Quantity("flows", _sampled("flows", "goodput_bit_s", GOODPUT, "Mbit/s, application bytes"), mean=True),
    RECEIVE_RATE: Quantity(
        "flows",
        _sampled("flows", "receive_rate_bit_s", GOODPUT, "Mbit/s, all payload"),
        mean=True,
        is_live=False,
    ),
    "srtt": Quantity("flows", _sampled("flows", "srtt_s", declared("FlowSummary", "srtt_mean_s"))),
    "in-flight": Quantity("flows", _sampled("flows", "pipe_bytes", KILOBYTES), is_live=False),
    "queue": Quantity("links", _sampled("queues", "packets", declared("LinkSummary", "queue_max_packets"))),
    "drops": Quantity("links", DROPS, mean=True),
    "utilisation": Quantity(
        "links", _sampled("queues", "utilisation", declared("LinkSummary", "utilisation")), mean=True
    ),
    "sequence": Quantity("flows", _sampled("flows", "delivered_bytes", MEGABYTES), is_live=False),
}


def chart(run: Recorded, name: str) -> Chart:
    """The chart of one of `QUANTITIES`. Its lines are those of at most eight flows or links.

    Raises `ScenarioError` for results whose samples lack the quantity.
    """
    quantity = QUANTITIES[name]
    found, lines = (_of_flows if quantity.of == "flows" else _of_links)(run, name, quantity)
    steps = name == "drops"
    time_s, drawn = on_one_grid(lines)
    bounds = edges(time_s, mean_s(run.scenario, float(time_s[-1]))) if quantity.mean and len(time_s) > 1 else time_s
    averaged = ""
    if len(bounds) < len(time_s):
        time_s, drawn = _averaged(lines, bounds, steps=steps)
        averaged = f"Means over {bounds[1]:.3g} s; the results folder has all samples."
    happened, unmarked = marks(run)
    end_s = max([run.summary.to_s, *time_s[-1:]])
    window = (run.summary.from_s, run.summary.to_s)
    outside = f"Shaded: outside the measuring window, {window[0]:g} s to {window[1]:g} s."
    metric = quantity.metric
    return Chart(
        id=name,
        title=metric.title,
        unit=metric.unit,
        meaning=sentences(metric.meaning, "Dotted: slow-start threshold." if name == "cwnd" else ""),
        time_s=time_s,
        lines=drawn,
        note=sentences(found, averaged, outside if window != (0, end_s) else "", unmarked),
        steps=steps,
        until_s=end_s,
        window=window,
        marks=happened,
    )


# The own times of a line, and the line.
Sampled = tuple[Numbers, Line]


def _of_flows(run: Recorded, name: str, quantity: Quantity) -> tuple[str, list[Sampled]]:
    metric, called = quantity.metric, names(run)
    shown = range(min(len(called), MOST_LINES))
    wanted = [("flows", metric.column, "")]
    if name in WITH_OTHERS:
        wanted += [("crowds", metric.column, ""), ("streams", GOODPUT.column, "")]
    if name == "cwnd":
        wanted.append(("flows", "ssthresh_segments", SSTHRESH))
    found = []
    for table, column, suffix in wanted:
        samples = Samples(run, table, [column])
        if samples.keys and not np.isfinite(samples.columns.get(column, np.nan)).any() and not suffix:
            raise LackingError(
                f"{name}: expected numbers in {column} of {table}.parquet, found none: the engine does not tell it, or "
                "the results are of an older version"
            )
        for flow in (flow for flow in shown if flow in samples.keys and column in samples.columns):
            values = samples.of(flow, column) * metric.factor
            if np.isfinite(values).any():
                line = Line(called[flow] + suffix, values, flow, minor=bool(suffix))
                found.append((samples.of(flow, "time_s"), line))
    more = f"The first {len(shown)} of {len(called)} flows." if len(called) > len(shown) else ""
    return more, found


def _of_links(run: Recorded, name: str, quantity: Quantity) -> tuple[str, list[Sampled]]:
    wanted = COUNTED if name == "drops" else (quantity.metric.column,)
    samples = Samples(run, "queues", ["packets", *wanted])
    # A queue that was always empty, like those of most acknowledgment links, would only be a line at zero.
    busy = [link for link in samples.keys if samples.of(link, "packets").max() > 0]
    declared_order = [link.name for link in run.summary.links if link.name in samples.keys]
    links = [link for link in declared_order if link in busy][:MOST_LINES] or declared_order[:1]
    others = [link for link in declared_order if link not in links]
    found: list[Sampled] = []
    for link in links:
        times = samples.of(link, "time_s")
        for column in (column for column in wanted if column in samples.columns):
            values = samples.of(link, column)
            if name == "drops":
                if values[-1] == 0:
                    continue
                values = np.diff(values, prepend=0.0) / np.maximum(np.diff(times, prepend=0.0), 1e-12)
            label = f"{link} {column}" if name == "drops" else link
            found.append((times, Line(label, values * quantity.metric.factor, len(found))))
    more = f"Not shown: {', '.join(others[:3])}{f' and {len(others) - 3} more' if len(others) > 3 else ''}."
    return more if others else "", found[:MOST_LINES]


def on_one_grid(lines: list[Sampled]) -> tuple[Numbers, list[Line]]:
    """The samples of lines on the union of their times."""
    times = np.unique(np.concatenate([own for own, _ in lines])) if lines else np.empty(0)
    drawn = []
    for own, line in lines:
        values = np.full(len(times), np.nan)
        values[np.searchsorted(times, own)] = line.values
        drawn.append(replace(line, values=values))
    return times, drawn


def _averaged(lines: list[Sampled], bounds: Numbers, *, steps: bool) -> tuple[Numbers, list[Line]]:
    """Means over equal intervals: at the middle of each, or as steps that end with each."""
    averaged = [replace(line, values=means(own, line.values, bounds)) for own, line in lines]
    if steps:
        return bounds, [replace(line, values=np.insert(line.values, 0, 0.0)) for line in averaged]
    return (bounds[:-1] + bounds[1:]) / 2, averaged
