"""The charts over time of a run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from elephan.api.charts import MARKS, OF_FLOWS, OF_LINKS
from elephan.api.run import Run
from elephan.report import series
from elephan.report.content import Chart, Line, sentences

# Lines of a chart: as many as there are colours that all readers can distinguish.
MOST_LINES = 8
# The suffix of a line's name if the line is the threshold of a window.
SSTHRESH = " ssthresh"


def charts(folder: Path, run: Run, most: int = series.MOST_VALUES) -> list[Chart]:
    """All charts over time of a run: windows, goodput, round-trip times, queues, drops, load."""
    wanted = ["time_s", "flow", "cwnd_segments", "ssthresh_segments", "srtt_s", "goodput_bit_s"]
    flows = series.columns(folder, "flows", wanted)
    # Crowds of short flows and streams of datagrams have no window, but their goodput is shown beside that of the flows.
    others = [series.columns(folder, name, ["time_s", "flow", "goodput_bit_s"]) for name in ("crowds", "streams")]
    frame = pl.concat([one for one in (flows, *others) if one.height] or [flows], how="diagonal")
    found = []
    shown = list(range(min(len(run.labels), MOST_LINES)))
    alike = len(set(run.labels)) < len(run.labels)
    names = {flow: f"{run.labels[flow]} {flow + 1}" if alike else run.labels[flow] for flow in shown}
    more = f"The first {len(shown)} of {len(run.labels)} flows." if len(run.labels) > len(shown) else ""
    for what, metric in OF_FLOWS.items() if frame.height else ():
        lines: dict[str, tuple[int, series.Numbers]] = {}
        columns, meaning = [(metric.column, "")], metric.meaning
        if what == "cwnd":
            columns.append(("ssthresh_segments", SSTHRESH))
            meaning += " Dotted: slow-start threshold."
        for column, suffix in columns:
            aligned = series.align(frame, "flow", column, shown)
            for flow in shown:
                values = aligned.lines[str(flow)] * metric.factor
                if what == "srtt":
                    values[values == 0] = float("nan")
                if np.isfinite(values).any():
                    lines[names[flow] + suffix] = flow, values
        if not lines:
            continue
        every = series.Aligned(aligned.time_s, {name: values for name, (_, values) in lines.items()})
        thinned = series.thin(every, "flows.parquet", most)
        drawn = [
            Line(name, values, lines[name][0], minor=name.endswith(SSTHRESH)) for name, values in thinned.lines.items()
        ]
        note = sentences(more, thinned.note)
        found.append(Chart(what, metric.title, metric.unit, meaning, thinned.time_s, drawn, note))
    return [*found, *_link_charts(folder, run, most)]


def _link_charts(folder: Path, run: Run, most: int) -> list[Chart]:
    wanted = ["time_s", "link", "packets", "dropped", "lost", "marked", "utilisation"]
    queues = series.columns(folder, "queues", wanted)
    if not queues.height:
        return []
    # A queue that was always empty, like those of most acknowledgment links, would only be a line at zero.
    busy = queues.group_by("link").agg(pl.col("packets").max()).filter(pl.col("packets") > 0)["link"].to_list()
    links = [link.name for link in run.summary.links if link.name in busy][:MOST_LINES] or [run.summary.links[0].name]
    others = [link.name for link in run.summary.links if link.name not in links]
    more = f"Not shown: {_some(others)}." if others else ""
    found = []
    for what, metric in OF_LINKS.items():
        aligned = series.align(queues, "link", metric.column, links)
        scaled = {name: line * metric.factor for name, line in aligned.lines.items()}
        thinned = series.thin(series.Aligned(aligned.time_s, scaled), "queues.parquet", most)
        lines = [Line(name, values, k) for k, (name, values) in enumerate(thinned.lines.items())]
        note = sentences(more, thinned.note)
        found.append(Chart(what, metric.title, metric.unit, metric.meaning, thinned.time_s, lines, note))
    counted: dict[str, series.Numbers] = {}
    for column in ("dropped", "lost", "marked"):
        aligned = series.align(queues, "link", column, links)
        for name, totals in aligned.lines.items():
            if totals[-1] > 0:
                counted[f"{name} {column}"] = series.per_interval(totals)
    if counted:
        kept = dict(list(counted.items())[:MOST_LINES])
        thinned = series.thin(series.Aligned(aligned.time_s, kept), "queues.parquet", most)
        lines = [Line(name, values, k) for k, (name, values) in enumerate(thinned.lines.items())]
        drops = Chart("drops", MARKS.title, MARKS.unit, MARKS.meaning, thinned.time_s, lines, thinned.note, steps=True)
        found.insert(1, drops)
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
