"""Comparison of algorithms on one path, with confidence intervals over repeats."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import polars as pl

from elephan import _core
from elephan.api.metrics import METRICS, Metric
from elephan.api.outline import network
from elephan.api.own import Reading, of_run, own_metrics, stored
from elephan.api.pictures.data import Runs
from elephan.api.pictures.draw import WIDTH, figure
from elephan.api.pictures.samples import experiment
from elephan.api.registry import cc_text
from elephan.api.run import Run, write_json
from elephan.api.scenario import Source
from elephan.api.summary import Summary
from elephan.base import notebook
from elephan.base.folders import new_folder
from elephan.base.frames import as_pandas
from elephan.base.kinds import COMPARISON
from elephan.base.notebook import watched
from elephan.base.plots import Figure, save_beside
from elephan.base.table import Table, text_heads
from elephan.base.text import file_name, listed, short
from elephan.engines import isolated
from elephan.engines.run import run_many
from elephan.foreign.names import used
from elephan.studies import intervals
from elephan.studies.planned import planned
from elephan.studies.statistics import NOTABLE, Estimate, notable
from elephan.studies.sweeps.plots import pictures
from elephan.studies.sweeps.tables import Selection

# What a row of a comparison's frame is.
Rows = Literal["runs", "flows", "estimates"]


@dataclass(frozen=True)
class Comparison:
    """Runs of each algorithm, and estimates of each metric.

    `failed` has the errors of the algorithms that are left out, because runs of theirs failed.
    """

    runs: dict[str, list[Run]]
    failed: dict[str, list[str]] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = METRICS

    def __repr__(self) -> str:
        count = max(map(len, self.runs.values()), default=0)
        failed = f"; failed: {', '.join(self.failed)}" if self.failed else ""
        return f"<Comparison of {', '.join(self.runs)}: {count} {'run' if count == 1 else 'runs'} each{failed}>"

    def _repr_html_(self) -> str:
        document = next(iter(self.runs.values()))[0].scenario.document
        facts = [repr(self)[1:-1], network(document), document["duration"]]
        picture = notebook.picture(self.plot("metrics"), "Metrics of each algorithm, with their intervals")
        return notebook.shown("Comparison", facts, self.table().to_html(), picture)

    @cached_property
    def values(self) -> dict[str, dict[str, list[float | None]]]:
        """For each algorithm and each metric, its value in each repeat, in the metric's unit. Raises `MetricError`."""
        return {
            name: {metric.name: [of_run(metric, run) for run in runs] for metric in self.metrics}
            for name, runs in self.runs.items()
        }

    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """For each algorithm and each metric, the mean over repeats and its confidence interval."""
        return {
            name: {metric.name: Estimate.of(values[metric.name], within=metric.within) for metric in self.metrics}
            for name, values in self.values.items()
        }

    def to_polars(self, rows: Rows = "runs") -> pl.DataFrame:
        """The results as a frame: a row for each run, for each of its flows, or for each estimate.

        `runs` and `flows` have the algorithm as `cc`, the repeat, the seed, and the figures of a summary or of a flow, whose
        names have the units and whose meanings are in docs/results.md. `runs` also has the user's own metrics, in their
        units. Flows count from 0. `estimates` has for each algorithm and metric: unit, mean, ends of its 95 % confidence
        interval, number of values, repeats.
        """
        if rows == "estimates":
            return self._estimates()
        own = [metric for metric in self.metrics if metric.reading is not None]
        found = [
            {
                **{"cc": cc, "repeat": repeat, "seed": run.scenario.document["seed"]},
                **part,
                **({metric.name: self.values[cc][metric.name][repeat] for metric in own} if rows == "runs" else {}),
            }
            for cc, runs in self.runs.items()
            for repeat, run in enumerate(runs)
            for part in _parts(run.summary, rows)
        ]
        return pl.DataFrame(found, infer_schema_length=None)

    def to_pandas(self, rows: Rows = "runs") -> Any:
        """As `to_polars`, for pandas, which has to be installed. Raises `FailedError` if it is not."""
        return as_pandas(self.to_polars(rows))

    def _estimates(self) -> pl.DataFrame:
        units = {metric.name: metric.unit for metric in self.metrics}
        return pl.DataFrame(
            [
                {
                    "cc": cc,
                    "metric": name,
                    "unit": units[name],
                    **{key: getattr(estimate, key) for key in ("mean", "low", "high", "values", "repeats")},
                }
                for cc, estimates in self.estimates().items()
                for name, estimate in estimates.items()
            ],
            schema_overrides={"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64},
        )

    def table(self, title: str = "", note: str = "") -> Table:
        """A row for each algorithm, a column for each metric."""
        head = [*text_heads("cc"), *(metric.head for metric in self.metrics)]
        labels = {name: cc_text(name) for name in self.runs}
        if len({*labels.values()}) < len(labels):
            labels = {name: name for name in self.runs}
        found = self.estimates()
        rows = [
            [labels[name], *(metric.text(one[metric.name]) for metric in self.metrics)] for name, one in found.items()
        ]
        notes = [*([note] if note else []), *_identical({labels[name]: one for name, one in found.items()})]
        best = {metric.name: notable(self._by_seed(metric), metric.better) for metric in self.metrics}
        marked = frozenset(
            (row, 1 + column)
            for row, name in enumerate(found)
            for column, metric in enumerate(self.metrics)
            if best[metric.name] == name
        )
        return Table(title, head, rows, "; ".join(notes), marked, NOTABLE)

    def _by_seed(self, metric: Metric) -> dict[str, dict[int, float | None]]:
        return {
            name: {
                run.scenario.document["seed"]: value
                for run, value in zip(runs, self.values[name][metric.name], strict=True)
            }
            for name, runs in self.runs.items()
        }

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write one results folder for each run, the table, and plots of cwnd and goodput over time.

        Of the user's metrics the values are kept, so that reports show them; their functions are not.
        """
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
        self.to_polars("estimates").write_csv(place / "table.csv")
        (place / "table.md").write_text(self.table().to_markdown(), encoding="utf-8")
        names = {name: [run.scenario.document["seed"] for run in runs] for name, runs in self.runs.items()}
        own = [
            stored(metric, {name: values[metric.name] for name, values in self.values.items()})
            for metric in self.metrics
            if metric.reading is not None
        ]
        write_json(
            place / COMPARISON.document,
            {"elephan": _core.__version__, "runs": names, **({"metrics": own} if own else {})},
        )

    def draw(self, folder: Path) -> None:
        """Plot cwnd and goodput over time into this comparison's folder. A failed plot is one line on standard error."""
        save_beside(folder, {what: partial(self.plot, what) for what in ("cwnd", "goodput")})

    def plot(
        self,
        kind: str = "cwnd",
        over: Sequence[str] | str | None = None,
        by: Sequence[str] | str | None = None,
        where: Mapping[str, str] | None = None,
        *,
        cdf: bool = False,
        width: float = WIDTH,
        title: bool = True,
    ) -> Figure:
        """Draw a picture of a kind for the first repeat of each algorithm. Raises `ScenarioError` for another kind.

        With `over`, `by`, `where` or `cdf`, `kind` is a metric of all runs, drawn as that of a sweep over `cc`.
        `metrics` draws all `metrics` instead, with their intervals.
        """
        if over or by or where or cdf:
            panels = pictures(Selection.of_runs(self.table_of_runs(), where), kind, over, by, cdf=cdf)
            return figure(panels, panels[0][1].title if title else "", width)
        if kind == "metrics":
            return intervals.figure(self.estimates(), self.metrics)
        first = next(iter(self.runs.values()))
        document, repeats = first[0].scenario.document, len(first)
        more = f"seed {document['seed']}{f', the first of {repeats} repeats' if repeats > 1 else ''}"
        text = f"{short(', '.join(self.runs), 60)}: {experiment(document)}, {more}"
        return figure([(name, runs[0].picture(kind)) for name, runs in self.runs.items()], text if title else "", width)

    def table_of_runs(self) -> Runs:
        """The runs with their metrics: one row each."""
        every = [(name, run) for name, runs in self.runs.items() for run in runs]
        return Runs(
            "Metrics over repeats",
            ["cc", "seed"],
            [[name, run.scenario.document["seed"]] for name, run in every],
            [[metric.read(run.summary) for metric in METRICS] for _, run in every],
        )


def _parts(summary: Summary, rows: Rows) -> list[dict[str, Any]]:
    if rows == "flows":
        return [{"flow": number, **flow.scalars()} for number, flow in enumerate(summary.flows)]
    return [summary.scalars()]


def _identical(found: Mapping[str, Mapping[str, Estimate]]) -> list[str]:
    """What to say of repeats that gave the same values."""
    every = {name: [one for one in estimates.values() if one.values > 1] for name, estimates in found.items()}
    names = [name for name, estimates in every.items() if estimates and all(one.identical for one in estimates)]
    if names:
        return [
            f"the repeats of {', '.join(names)} are identical, because nothing in these runs is random: one is enough"
        ]
    some = any(one.identical for estimates in every.values() for one in estimates)
    return ["without an interval: the same value in all repeats"] if some else []


def run_path(name: str, repeat: int) -> str:
    """The path of a run within a comparison's folder."""
    return f"runs/{file_name(name)}-{repeat}"


def compare(
    scenario: Source | None = None,
    *,
    cc: Sequence[str] | str | Mapping[str, str],
    repeat: int = 5,
    threads: int = 0,
    progress: Callable[[float], object] | None = None,
    isolate: bool = False,
    metrics: Sequence[Metric | Reading] | Metric | Reading = (),
    against: str | None = None,
    **keys: Any,
) -> Comparison:
    """Compare algorithms on one path, `repeat` runs of each, on all cores. `cc` may give them names: `{"mine": "lib:x.c"}`.

    The path is that of `scenario` (a file, an example, a document, a `Scenario`), whose flows all get the algorithm. Without
    one it is a dumbbell of `rate` ("250 Mbit/s"), `rtt` ("82 ms"), `buffer` ("20% bdp") with `flows` (2) of each algorithm for
    `duration` ("300 s"): the first starts at once and the others at random times within `start_within` ("20 s"), so that they
    start at any phase of its congestion epoch (Li 2006, section 8.1.3), and measured is from then to the end. Further
    tables of the file are keywords, such as `tcp={"initial_window": 2}`. `settings` are other values for single keys, as in
    `load`: `{"path.queue": "codel"}`. Repeat `k` has seed `seed + k` for every algorithm: common random numbers; `large` is as
    for `load`.

    With `against`, all flows but the first run that algorithm, which is compared as well: shown are the share of the first
    flow, that of the others, and the harm to these (Ware et al., HotNets 2019), the part that they lose of their goodput beside
    a flow of their own kind.

    Each algorithm from outside is tried for a moment before anything else runs, and what it raises then is raised. Algorithms
    with a run that fails later are left out, unless all have one. With `isolate` each run has a process of its own, as in
    `run`, and nothing is tried before. `metrics` are functions of a run that give a number, which tables, frames and plots show
    beside the metrics of a summary; `elephan.metric` gives them a unit. A metric that fails raises `MetricError`. `progress`
    and the bar are as for `run`.
    """
    made = planned(scenario, cc=cc, repeat=repeat, against=against, **keys)
    # The goodput of the others beside a flow of their own kind, by seed.
    beside: dict[int, float] = {}
    rivals = () if against is None else _of_rivals(beside)
    own = own_metrics((*listed(metrics), *rivals))
    every = [one for repeats in made.values() for one in repeats]
    with watched(f"{len(made)} algorithms x {repeat} runs", progress) as told:
        foreign = any(used(one.document) for one in every[::repeat] if one.document["engine"] == "sim")
        if foreign and not isolate:
            isolated.try_out(every[::repeat], told)
        if foreign or isolate:
            outcomes = iter(isolated.run_many(every, threads, told, isolate=isolate))
            found = _without_failed({name: [next(outcomes) for _ in repeats] for name, repeats in made.items()})
        else:
            runs = iter(run_many(every, threads=threads, progress=told))
            found = Comparison({name: [next(runs) for _ in repeats] for name, repeats in made.items()})
    if against is not None:
        beside |= {run.scenario.document["seed"]: _others(run) for run in found.runs.get(against, ())}
    found = replace(found, metrics=(*METRICS, *own))
    # A metric that fails does so here, and not where the results are shown.
    found.values  # noqa: B018
    return found


def _others(run: Run) -> float:
    """The goodput of all flows but the first, bit/s."""
    return sum(one.goodput_bit_s for one in run.summary.flows[1:])


def _of_rivals(beside: Mapping[int, float]) -> tuple[Metric, ...]:
    """The shares of the first flow and of the others, and the harm to these, whose goodput without it is `beside`, by seed."""

    def share(run: Run) -> float | None:
        total = run.summary.goodput_bit_s
        return run.summary.flows[0].goodput_bit_s / total if total > 0 else None

    def harm(run: Run) -> float | None:
        without = beside.get(run.scenario.document["seed"], 0.0)
        return 1 - _others(run) / without if without > 0 else None

    shares = Metric("share", "% of goodput", 1, 100.0, reading=share, better="neither", bounds=(0.0, 1.0))
    rest = replace(shares, name="others' share", reading=lambda run: None if (own := share(run)) is None else 1 - own)
    return (
        shares,
        rest,
        replace(shares, name="harm", unit="% of others' goodput", reading=harm, bounds=(-math.inf, 1.0)),
    )


def _without_failed(outcomes: dict[str, list[Run | Exception]]) -> Comparison:
    """The comparison of the algorithms without an error. Raises the first error if all have one."""
    errors = {name: [one for one in every if isinstance(one, Exception)] for name, every in outcomes.items()}
    failed = {name: every for name, every in errors.items() if every}
    if len(failed) == len(outcomes):
        raise next(iter(failed.values()))[0]
    return Comparison(
        {
            name: [one for one in every if isinstance(one, Run)]
            for name, every in outcomes.items()
            if name not in failed
        },
        {name: [str(error) for error in every] for name, every in failed.items()},
    )
