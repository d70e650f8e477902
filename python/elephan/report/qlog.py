"""Charts of a qlog, as those of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from elephan._core import ScenarioError, one_of
from elephan.api.pictures.data import Chart, Line
from elephan.api.pictures.over_time import QUANTITIES
from elephan.paths.qlog import COLUMNS, read

# Of each kind of picture the columns of a log, with their factors and the names of their lines; and its unit.
PICTURES: Mapping[str, tuple[Sequence[tuple[str, str]], float, str]] = {
    "cwnd": ((("cwnd_bytes", ""), ("ssthresh_bytes", " ssthresh")), 1e-3, "kB"),
    "srtt": ((("srtt_s", ""),), 1e3, "ms"),
    "in-flight": ((("in_flight_bytes", ""),), 1e-3, "kB"),
}


def chart(path: Path, name: str) -> Chart:
    """The chart of a kind, `cwnd`, `srtt` or `in-flight`, from a file of qlog: its windows are in bytes.

    Raises `ScenarioError` for another kind, and for a log that is damaged or does not tell the quantity.
    """
    if name not in PICTURES:
        raise ScenarioError(f"plot: expected {one_of(list(PICTURES), name)} of a qlog, found {name!r}")
    log = read(path)
    columns, factor, unit = PICTURES[name]
    told = [(suffix, values) for column, suffix in columns if np.isfinite(values := log.column(column) * factor).any()]
    if not told or told[0][0]:
        raise ScenarioError(
            f"{path}: expected {', '.join(COLUMNS[columns[0][0]][0])} in updates of the metrics, found none"
        )
    lines = [Line(f"{path.name}{suffix}", values, 0, minor=bool(suffix)) for suffix, values in told]
    metric, time_s = QUANTITIES[name].metric, log.column("time_s")
    # A log may count from the start of its machine.
    notes = [f"time from the first update of the metrics, at {time_s[0]:.6g} s of the log", *log.notes]
    note = " ".join(f"{one[0].upper()}{one[1:]}." for one in notes)
    time_s = time_s - time_s[0]
    return Chart(name, metric.title, unit, metric.meaning, time_s, lines, note, until_s=float(time_s[-1]))
