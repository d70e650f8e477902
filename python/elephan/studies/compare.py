"""Comparison of algorithms on one path, with confidence intervals over repeats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from elephan import _core
from elephan.api.charts import CHARTS
from elephan.api.metrics import METRICS
from elephan.api.run import Run, write_json
from elephan.api.scenario import Scenario, dumbbell, flow
from elephan.base.folders import new_folder
from elephan.base.plots import STYLE, Line, draw_lines, save_beside
from elephan.base.table import Table, text_heads
from elephan.base.text import drawn, file_name
from elephan.engines.run import run_isolated, run_many
from elephan.studies.statistics import Estimate


@dataclass(frozen=True)
class Comparison:
    """Runs of each algorithm, and estimates of each metric.

    `failed` has the errors of the algorithms that are left out, because isolated runs of theirs failed.
    """

    runs: dict[str, list[Run]]
    failed: dict[str, list[str]] = field(default_factory=dict)

    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """For each algorithm and each metric, the mean over repeats and its confidence interval."""
        return {
            name: {metric.name: Estimate.of([metric.read(run.summary) for run in runs]) for metric in METRICS}
            for name, runs in self.runs.items()
        }

    def to_frame(self) -> pl.DataFrame:
        """One row for each algorithm and metric: mean, half-width of the confidence interval, number of values, repeats."""
        units = {metric.name: metric.unit for metric in METRICS}
        return pl.DataFrame(
            [
                {
                    "cc": cc,
                    "metric": name,
                    "unit": units[name],
                    "mean": estimate.mean,
                    "ci95_half_width": estimate.half_width,
                    "values": estimate.values,
                    "repeats": estimate.repeats,
                }
                for cc, estimates in self.estimates().items()
                for name, estimate in estimates.items()
            ],
            schema_overrides={"mean": pl.Float64, "ci95_half_width": pl.Float64},
        )

    def table(self, title: str = "", note: str = "") -> Table:
        """A row for each algorithm, a column for each metric."""
        head = [*text_heads("cc"), *(metric.head for metric in METRICS)]
        # The label of a flow has no more of a path than the file's name.
        labels = {name: runs[0].labels[0] for name, runs in self.runs.items()}
        if len({*labels.values()}) < len(labels):
            labels = {name: name for name in self.runs}
        rows = [
            [labels[name], *(metric.text(estimates[metric.name]) for metric in METRICS)]
            for name, estimates in self.estimates().items()
        ]
        return Table(title, head, rows, note)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write one results folder for each run, the table, and plots of cwnd and goodput over time."""
        with new_folder(folder, force=force) as place:
            self.write_into(place)
        self.draw(Path(folder))
        return Path(folder)

    def write_into(self, place: Path) -> None:
        """Write the files of a comparison's folder into `place`, which exists."""
        for name, runs in self.runs.items():
            for repeat, run in enumerate(runs):
                inner = place / run_path(name, repeat)
                inner.mkdir(parents=True)
                run.write_into(inner)
        self.to_frame().write_csv(place / "table.csv")
        (place / "table.md").write_text(self.table().to_markdown(), encoding="utf-8")
        names = {name: [run.scenario.document["seed"] for run in runs] for name, runs in self.runs.items()}
        write_json(place / "comparison.json", {"elephan": _core.__version__, "runs": names})

    def draw(self, folder: Path) -> None:
        """Plot cwnd and goodput over time into this comparison's folder. A failed plot is one line on standard error."""
        save_beside(folder, {what: partial(self.plot, what) for what in ("cwnd", "goodput")})

    def plot(self, what: str = "cwnd") -> Figure:
        """Plot one quantity over time for the first repeat of each algorithm."""
        names = list(self.runs)
        columns = 2 if len(names) > 1 else 1
        rows = -(-len(names) // columns)
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(4.6 * columns, 1.7 * rows + 0.4))
            grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
            for axes, name in zip(grid.flat, names, strict=False):
                run = self.runs[name][0]
                draw_lines(axes, [Line(*line) for line in run.lines(what)], "", run.summary.to_s)
                axes.set_title(drawn(name))
            for axes in list(grid.flat)[len(names) :]:
                axes.set_visible(False)
            figure.supxlabel("time (s)", fontsize=9)
            figure.supylabel(CHARTS[what].label, fontsize=9)
            return figure


def run_path(name: str, repeat: int) -> str:
    """The path of a run within a comparison's folder."""
    return f"runs/{file_name(name)}-{repeat}"


def scenarios(
    *,
    cc: Sequence[str],
    rate: str,
    rtt: str,
    buffer: str,
    flows: int,
    duration: str,
    repeat: int,
    seed: int,
    start_within: str,
    keys: dict[str, Any],
    large: bool = False,
) -> dict[str, list[Scenario]]:
    """Make the scenarios of a comparison: for each algorithm, one for each repeat.

    The first flow starts at once, the others at random within `start_within`. Repeat `k` has seed `seed + k` for every
    algorithm: common random numbers.
    """
    later = {"uniform": ["0 s", start_within]}
    first, others = flow(cc="{cc}"), [flow(cc="{cc}", start=later) for _ in range(flows - 1)]
    return {
        name: [
            dumbbell(
                name=f"{name} {rate} {rtt}",
                rate=rate,
                rtt=rtt,
                buffer=buffer,
                duration=duration,
                seed=seed + k,
                flows=[{**one, "cc": name} for one in [first, *others]],
                large=large,
                **keys,
            )
            for k in range(repeat)
        ]
        for name in cc
    }


def compare(
    *,
    cc: Sequence[str],
    rate: str = "250 Mbit/s",
    rtt: str = "82 ms",
    buffer: str = "20% bdp",
    flows: int = 2,
    duration: str = "300 s",
    repeat: int = 5,
    seed: int = 1,
    start_within: str = "20 s",
    threads: int = 0,
    large: bool = False,
    progress: Callable[[float], object] | None = None,
    isolate: bool = False,
    **keys: Any,
) -> Comparison:
    """Compare algorithms on one path: `flows` flows of each, `repeat` times, on all cores.

    The first flow starts at once and the others at random times within `start_within`, so that they start at any phase of its
    congestion epoch (Li 2006, section 8.1.3). The measuring window is from then to the end. `keys` are further tables of the
    scenario file, such as `tcp={"initial_window": 2}`; `large` is as for `load`. With `isolate` each run has a process of
    its own, as in `run`; algorithms with a run that failed are left out, unless all have one.
    """
    made = scenarios(
        cc=cc,
        rate=rate,
        rtt=rtt,
        buffer=buffer,
        flows=flows,
        duration=duration,
        repeat=repeat,
        seed=seed,
        start_within=start_within,
        keys=keys,
        large=large,
    )
    every = [scenario for repeats in made.values() for scenario in repeats]
    if not isolate:
        runs = iter(run_many(every, threads=threads, progress=progress))
        return Comparison({name: [next(runs) for _ in repeats] for name, repeats in made.items()})
    outcomes = iter(run_isolated(every, threads=threads, progress=progress))
    return _without_failed({name: [next(outcomes) for _ in repeats] for name, repeats in made.items()})


def _without_failed(outcomes: dict[str, list[Run | Exception]]) -> Comparison:
    """The comparison of the algorithms without an error. Raises the first error if all have one."""
    runs = {name: [one for one in every if isinstance(one, Run)] for name, every in outcomes.items()}
    errors = {name: [one for one in every if isinstance(one, Exception)] for name, every in outcomes.items()}
    failed = {name: every for name, every in errors.items() if every}
    if len(failed) == len(outcomes):
        raise next(iter(failed.values()))[0]
    return Comparison(
        {name: every for name, every in runs.items() if name not in failed},
        {name: [str(error) for error in every] for name, every in failed.items()},
    )
