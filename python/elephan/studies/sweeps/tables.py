"""Tables of a sweep: estimates over repeats by setting, and paired comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import polars as pl

from elephan._core import ScenarioError
from elephan.api.metrics import METRICS, Centre, Metric, bounds
from elephan.api.pictures.data import Runs
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import listed
from elephan.studies.statistics import NOTABLE, Estimate, Interval, Paired, holm, notable
from elephan.studies.sweeps import flows, names
from elephan.studies.sweeps.dataset import Dataset, SweepError

# The metrics of a table if none is requested.
USUAL = ("goodput_bit_s", "utilisation", "fairness", "loss_rate", "queue_delay_mean_s")
# The metrics that all commands show, by column.
SHOWN = {metric.column: metric for metric in METRICS}
# Units of other columns that are easier to read: those of the metrics of a run.
SCALES = {
    unit: (metric.factor, metric.short_unit)
    for metric in METRICS
    for unit in [names.unit(metric.column)]
    if unit not in ("1", "s")
}


# A cell: the values of the rows' keys and of the columns', and a metric.
Place = tuple[tuple[Any, ...], tuple[Any, ...], str]


@dataclass(frozen=True)
class Selection:
    """The runs of a sweep that a table covers, and the columns that distinguish them."""

    frame: pl.DataFrame
    names: Mapping[str, str]
    settings: Sequence[str]
    failed: int

    @classmethod
    def of(
        cls, folder: str | Path, where: Mapping[str, Any] | None = None, metrics: Sequence[str] | str = ()
    ) -> "Selection":
        """Read the index, with the `metrics` of single flows, and keep the runs whose settings equal those of `where`."""
        data = Dataset(folder)
        settings = data.description()["settings"]
        of_flows = [name for name in listed(metrics) if flows.metric(name) is not None]
        frame = data.index(long=bool(of_flows))
        if frame.is_empty():
            raise SweepError(data.without_runs())
        short = data.short_names(frame)
        if of_flows:
            frame = flows.with_metrics(frame, of_flows).drop("summary", "scenario")
            short |= {name: name for name in of_flows}
        frame = _kept(frame, short, where or {})
        good = frame.filter(pl.col("status") == "ok")
        return cls(good, short, settings, len(frame) - len(good))

    @classmethod
    def of_runs(cls, runs: Runs, where: Mapping[str, Any] | None = None) -> "Selection":
        """Runs that need not be those of a sweep, such as a comparison's, with `METRICS`; those that match `where`."""
        columns = {
            **{key: _one_type([row[k] for row in runs.settings]) for k, key in enumerate(runs.keys)},
            **{
                one.column: [None if (value := row[k]) is None else value / one.factor for row in runs.values]
                for k, one in enumerate(METRICS)
            },
        }
        settings = [key for key in runs.keys if key != "repeat"]
        short = names.short_names(columns, settings, [])
        return cls(_kept(pl.DataFrame(columns), short, where or {}), short, settings, 0)

    def column(self, wanted: str, what: str) -> str:
        """The column with this name."""
        return names.find(wanted, dict(self.names), what)

    def metrics(self, wanted: Sequence[str] | str, what: str = "metrics") -> list[str]:
        """The columns of metrics; the usual ones if none is requested."""
        if not wanted:
            return [name for name in USUAL if name in self.frame.columns]
        wanted = listed(wanted)
        columns = [self.column(name, what) for name in wanted]
        for name, column in zip(wanted, columns, strict=True):
            if not self.frame[column].dtype.is_numeric() and self.frame[column].dtype != pl.Null:
                raise ScenarioError(f"{what}: expected a metric, found {name!r}, which is text")
        return columns

    def alone(self, keys: Sequence[str], options: str = "rows, cols or where") -> None:
        """Refuse keys that leave other settings mixed: a mean over two buffer sizes has no interval over repeats."""
        others = [key for key in self.settings if key not in keys and key != "seed"]
        if not others or self.frame.is_empty():
            return
        counts = (
            self.frame.group_by(keys).agg(pl.col(others).n_unique())
            if keys
            else self.frame.select(pl.col(others).n_unique())
        )
        mixed = [key for key in others if (counts[key] > 1).any()]
        if mixed:
            raise ScenarioError(
                f"{', '.join(mixed)}: expected it in {options}, found several values of it in one estimate"
            )


def _kept(frame: pl.DataFrame, short: dict[str, str], where: Mapping[str, Any]) -> pl.DataFrame:
    """The runs whose settings match `where`."""
    for key, value in where.items():
        column = names.find(key, short, "where")
        kept = [
            one for one in frame[column].unique(maintain_order=True) if names.same(names.shown(one), names.shown(value))
        ]
        if not kept:
            known = ", ".join(map(names.shown, frame[column].unique(maintain_order=True)))
            raise ScenarioError(f"where: {key}: expected one of {known}, found {value!r}")
        frame = frame.filter(pl.Series([one in kept for one in frame[column]], dtype=pl.Boolean))
    return frame


def _one_type(values: Sequence[Any]) -> list[Any]:
    """The values of a key that several results have, as text where their types differ."""
    mixed = len({type(value) for value in values if value is not None}) > 1
    return [names.shown(value) for value in values] if mixed else [*values]


def metric_of(column: str, values: Sequence[float | None]) -> Metric:
    """How a table shows a column with these values: one unit and one number of decimals for all of them.

    A metric is shown as in every command, with at least two digits of the largest value.
    """
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if metric := SHOWN.get(column) or flows.metric(column):
        return replace(metric, digits=max(metric.digits, _decimals(largest * metric.factor, 2)))
    unit = names.unit(column)
    if unit == "s" and 0 < largest < 1:
        factor, shown = 1e3, "ms"
    else:
        factor, shown = SCALES.get(unit, (1.0, "" if unit == "1" else unit))
    return Metric(names.short_metric(column), shown, _decimals(largest * factor, 4), factor, column)


def _decimals(largest: float, digits: int) -> int:
    """The number of decimals with which a value has so many digits."""
    return min(max(0, digits - 1 - math.floor(math.log10(largest))), 9) if largest > 0 else 1


def table(
    folder: str | Path,
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    interval: Interval = "t",
    centre: Centre = "mean",
) -> list[Table]:
    """Tables of a sweep: one for each metric if `cols` are given, otherwise one table with a column for each metric.

    `rows` and `cols` are keys of the sweep. If neither is given, all keys are `rows`. A cell is the mean over repeats and
    half of its 95 % interval, or the median and its interval.
    """
    chosen = Selection.of(folder, where, metrics)
    cells = estimates(chosen, rows, cols, metrics, interval, centre)
    row_keys, col_keys = _keys(chosen, rows, cols)
    columns = chosen.metrics(metrics)
    shown = {
        metric: metric_of(metric, [estimate.mean for (_, _, of), estimate in cells.items() if of == metric])
        for metric in columns
    }

    def text(place: Place) -> str:
        found, metric = cells.get(place), shown[place[2]]
        return "" if found is None else metric.text(metric.estimated(found), centre)

    best = _best(chosen, row_keys, col_keys, columns) if centre == "mean" else set()
    row_values = list(dict.fromkeys(row for row, _, _ in cells))
    col_values = list(dict.fromkeys(col for _, col, _ in cells))

    def made(title: str, heads: Sequence[Head], across: Sequence[tuple[tuple[Any, ...], str]], mark: str) -> Table:
        """A table with a column for each pair of values of the columns' keys and metric."""
        places = [[(row, *column) for column in across] for row in row_values]
        left = text_heads(*row_keys)
        lines = [[*map(names.titled, row), *map(text, line)] for row, line in zip(row_values, places, strict=True)]
        marked = frozenset(
            (k, len(left) + n) for k, line in enumerate(places) for n, place in enumerate(line) if place in best
        )
        return Table(title, [*left, *heads], lines, "", marked, mark)

    if not col_keys:
        return [made("", [metric.head for metric in shown.values()], [((), metric) for metric in columns], NOTABLE)]
    above = [Head(" ".join(map(names.titled, col))) for col in col_values]
    mark = f"in its row {NOTABLE}" if any(_names_algorithms(key) for key in col_keys) else NOTABLE
    by = f"by {', '.join(row_keys)} and {', '.join(col_keys)}"
    return [
        made(f"{shown[metric].head.line} {by}", above, [(col, metric) for col in col_values], mark)
        for metric in columns
    ]


def _names_algorithms(key: str) -> bool:
    return key.rsplit(".", 1)[-1] == "cc"


def _best(chosen: Selection, row_keys: list[str], col_keys: list[str], metrics: Sequence[str]) -> set[Place]:
    """The cells of the notable algorithm of each metric: among those that differ in nothing else."""
    keys = [*row_keys, *col_keys]
    of_cc = [key for key in keys if _names_algorithms(key)]
    if len(of_cc) != 1 or "seed" not in chosen.frame.columns:
        return set()
    others = [key for key in keys if key != of_cc[0]]
    groups = chosen.frame.group_by(others, maintain_order=True) if others else [((), chosen.frame)]
    found: set[Place] = set()
    for _, group in groups:
        for metric in metrics:
            samples: dict[tuple[Any, ...], dict[int, Any]] = {}
            for *place, seed, value in group.select(*keys, "seed", metric).iter_rows():
                samples.setdefault(tuple(place), {})[seed] = value
            best = notable(samples, SHOWN[metric].better if metric in SHOWN else "neither")
            if best is not None:
                found.add((best[: len(row_keys)], best[len(row_keys) :], metric))
    return found


def _keys(chosen: Selection, rows: Sequence[str], cols: Sequence[str]) -> tuple[list[str], list[str]]:
    col_keys = [chosen.column(key, "cols") for key in listed(cols)]
    row_keys = [chosen.column(key, "rows") for key in listed(rows)]
    if not rows:
        row_keys = [key for key in chosen.settings if key not in col_keys and key != "seed"]
    return row_keys, col_keys


def estimates(
    chosen: Selection,
    rows: Sequence[str],
    cols: Sequence[str],
    metrics: Sequence[str],
    interval: Interval = "t",
    centre: Centre = "mean",
) -> dict[Place, Estimate]:
    """The estimate over repeats for each row, column and metric, in the order of the points."""
    row_keys, col_keys = _keys(chosen, rows, cols)
    keys = [*row_keys, *col_keys]
    chosen.alone(keys)
    columns = chosen.metrics(metrics)
    limits = {name: shown.bounds for name in columns if (shown := flows.metric(name)) is not None}
    groups = chosen.frame.group_by(keys, maintain_order=True) if keys else [((), chosen.frame)]
    found = {}
    for values, group in groups:
        for metric in columns:
            estimate = Estimate.of(group[metric].to_list(), interval, centre, limits.get(metric) or bounds(metric))
            found[tuple(values[: len(row_keys)]), tuple(values[len(row_keys) :]), metric] = estimate
    return found


def _unit(column: str) -> str:
    """The SI unit of a column, also of a metric of a flow."""
    of_a_flow = flows.metric(column)
    return names.unit(column if of_a_flow is None else of_a_flow.column)


def records(
    folder: str | Path,
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    interval: Interval = "t",
    centre: Centre = "mean",
) -> list[dict[str, Any]]:
    """The same estimates for programs: one for each cell and metric, in SI units, with the keys of the cell as text."""
    chosen = Selection.of(folder, where, metrics)
    keys = [key for part in _keys(chosen, rows, cols) for key in part]
    return [
        {
            **dict(zip(keys, map(str, (*row, *col)), strict=True)),
            "metric": names.short_metric(metric),
            "unit": _unit(metric),
            **vars(estimate),
        }
        for (row, col, metric), estimate in estimates(chosen, rows, cols, metrics, interval, centre).items()
    ]


@dataclass(frozen=True)
class Pairs:
    """Two values of a key compared by a metric: a paired comparison for each of the other settings, and its p-value by Holm."""

    metric: str
    others: Sequence[str]
    both: tuple[str, str]
    found: Sequence[tuple[tuple[Any, ...], Paired, float | None]]

    @classmethod
    def of(
        cls, folder: str | Path, key: str, both: tuple[str, str], metric: str, where: Mapping[str, Any] | None
    ) -> Self:
        """Compare the runs that have the same seed."""
        chosen = Selection.of(folder, where, [metric])
        column = chosen.column(key, "key")
        (measured,) = chosen.metrics(metric, "metric")
        known = [names.shown(one) for one in chosen.frame[column].unique(maintain_order=True)]
        for argument, value in zip(("first", "second"), both, strict=True):
            if not any(names.same(one, names.shown(value)) for one in known):
                raise ScenarioError(f"{argument}: {key}: expected one of {', '.join(known)}, found {value!r}")
        first, second = (next(one for one in known if names.same(one, names.shown(value))) for value in both)
        both = first, second
        others = [one for one in chosen.settings if one not in (column, "seed")]
        groups = chosen.frame.group_by(others, maintain_order=True) if others else [((), chosen.frame)]
        compared = []
        for values, group in groups:
            samples: dict[str, dict[int, Any]] = {value: {} for value in both}
            for value, seed, sample in group.select(column, "seed", measured).iter_rows():
                if names.shown(value) in samples:
                    samples[names.shown(value)][seed] = sample
            compared.append((values, Paired.of(*(samples[value] for value in both))))
        adjusted = holm([pair.p_t for _, pair in compared])
        return cls(
            measured, others, both, [(values, pair, p) for (values, pair), p in zip(compared, adjusted, strict=True)]
        )

    def table(self) -> Table:
        """The comparisons for people, a row each."""
        shown = metric_of(self.metric, [one for _, pair, _ in self.found for one in (pair.first, pair.second)])
        lines = [
            [
                *map(names.titled, values),
                str(pair.pairs),
                number(pair.first, shown.factor, shown.digits),
                number(pair.second, shown.factor, shown.digits),
                shown.estimated(pair.difference).text(),
                number(pair.effect),
                _p(pair.p_t),
                _p(holm_p),
                _p(pair.p_wilcoxon),
            ]
            for values, pair, holm_p in self.found
        ]
        both = [*map(names.titled, self.both)]
        heads = ("pairs", *both, "difference", "Cohen's d", "p (t)", "p (t, Holm)", "p (Wilcoxon)")
        title = f"{shown.head.line}: {' against '.join(both)}, paired by seed"
        return Table(title, [*text_heads(*self.others), *map(Head, heads)], lines)

    def records(self) -> list[dict[str, Any]]:
        """The comparisons for programs, in SI units: means of both, and of their difference with its 95 % interval."""
        return [
            {
                **dict(zip(self.others, map(str, values), strict=True)),
                "metric": names.short_metric(self.metric),
                "unit": _unit(self.metric),
                "pairs": pair.pairs,
                "first": self.both[0],
                "second": self.both[1],
                "first_mean": pair.first,
                "second_mean": pair.second,
                "difference": pair.difference.mean,
                "low": pair.difference.low,
                "high": pair.difference.high,
                "cohens_d": pair.effect,
                "p_t": pair.p_t,
                "p_t_holm": holm_p,
                "p_wilcoxon": pair.p_wilcoxon,
            }
            for values, pair, holm_p in self.found
        ]


def paired(
    folder: str | Path, *, key: str, first: str, second: str, metric: str, where: Mapping[str, Any] | None = None
) -> Table:
    """Compare two values of a key with common random numbers: pairs of runs with the same seed, for each of the other settings.

    The p-values are those of the paired t-test, adjusted for the number of lines (Holm), and of Wilcoxon's signed-rank test.
    """
    return Pairs.of(folder, key, (first, second), metric, where).table()


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 1e-4 else f"{value:.4f}"
