"""Tables of a sweep: estimates over repeats by setting, and paired comparisons; as text, CSV, Markdown or LaTeX."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from elephan._core import ScenarioError
from elephan.api.metrics import METRICS, Centre, Metric
from elephan.base.numbers import number
from elephan.base.table import Head, Table, text_heads
from elephan.studies.statistics import Estimate, Interval, Paired, holm
from elephan.studies.sweeps import names
from elephan.studies.sweeps.dataset import Dataset, SweepError

Format = Literal["text", "csv", "markdown", "latex"]
FORMATS = ("text", "csv", "markdown", "latex")
# The metrics of a table if none is requested.
USUAL = ("goodput_bit_s", "utilisation", "fairness", "loss_rate", "queue_delay_mean_s")
# Units that are easier to read: those of the metrics of a run.
SCALES = {
    unit: (metric.factor, metric.short_unit)
    for metric in METRICS
    for unit in [names.unit(metric.column)]
    if unit not in ("1", "s")
}


@dataclass(frozen=True)
class Selection:
    """The runs of a sweep that a table covers, and the columns that distinguish them."""

    frame: pl.DataFrame
    names: Mapping[str, str]
    settings: Sequence[str]
    failed: int

    @classmethod
    def of(cls, folder: str | Path, where: Mapping[str, str] | None = None) -> "Selection":
        """Read the index, and keep the runs whose settings match `where`."""
        data = Dataset(folder)
        settings = data.description()["settings"]
        frame = data.index()
        if frame.is_empty():
            raise SweepError(f"{folder}: expected runs, found none yet")
        short = data.short_names(frame)
        for key, value in (where or {}).items():
            column = names.find(key, short, "--where")
            known = [names.shown(one) for one in frame[column].unique(maintain_order=True)]
            if value not in known:
                raise ScenarioError(f"--where: {key}: expected one of {', '.join(known)}, found {value!r}")
            keep = pl.Series([names.shown(one) == value for one in frame[column]], dtype=pl.Boolean)
            frame = frame.filter(keep)
        good = frame.filter(pl.col("status") == "ok")
        return cls(good, short, settings, len(frame) - len(good))

    def column(self, wanted: str, what: str) -> str:
        """The column with this name."""
        return names.find(wanted, dict(self.names), what)

    def metrics(self, wanted: Sequence[str]) -> list[str]:
        """The columns of metrics; the usual ones if none is requested."""
        if not wanted:
            return [name for name in USUAL if name in self.frame.columns]
        columns = [self.column(name, "--metric") for name in wanted]
        for name, column in zip(wanted, columns, strict=True):
            if not self.frame[column].dtype.is_numeric() and self.frame[column].dtype != pl.Null:
                raise ScenarioError(f"--metric: expected a metric, found {name!r}, which is text")
        return columns

    def alone(self, keys: Sequence[str]) -> None:
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
                f"table: {', '.join(mixed)} would be mixed in a cell: expected it in --rows, --cols or --where"
            )


def _metric(column: str, values: Sequence[float | None]) -> Metric:
    """How a table shows a column with these values: one unit and one number of decimals for all of them."""
    sizes = [abs(value) for value in values if value is not None]
    unit = names.unit(column)
    if unit == "s" and sizes and max(sizes) < 1:
        factor, shown = 1e3, "ms"
    else:
        factor, shown = SCALES.get(unit, (1.0, "" if unit == "1" else unit))
    return Metric(names.short_metric(column), shown, _digits([size * factor for size in sizes]), factor, column)


def _digits(sizes: Sequence[float]) -> int:
    """The number of decimals with which the largest value has four digits."""
    largest = max(sizes, default=0.0)
    return min(max(0, 3 - math.floor(math.log10(largest))), 9) if largest > 0 else 1


def table(
    folder: str | Path,
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    interval: Interval = "t",
    centre: Centre = "mean",
) -> list[Table]:
    """Tables of a sweep: one for each metric if `cols` are given, otherwise one table with a column for each metric.

    `rows` and `cols` are keys of the sweep. If neither is given, all keys are `rows`. A cell is the mean over repeats and
    half of its 95 % interval, or the median and its interval.
    """
    chosen = Selection.of(folder, where)
    cells = estimates(chosen, rows, cols, metrics, interval, centre)
    row_keys, col_keys = _keys(chosen, rows, cols)
    columns = chosen.metrics(metrics)
    shown = {
        metric: _metric(metric, [estimate.mean for (_, _, of), estimate in cells.items() if of == metric])
        for metric in columns
    }

    def text(row: tuple[Any, ...], col: tuple[Any, ...], column: str) -> str:
        found = cells.get((row, col, column))
        return "" if found is None else shown[column].text(shown[column].estimated(found), centre)

    row_values = list(dict.fromkeys(row for row, _, _ in cells))
    col_values = list(dict.fromkeys(col for _, col, _ in cells))
    left = text_heads(*row_keys)
    if not col_keys:
        lines = [[*map(names.shown, row), *(text(row, (), metric) for metric in columns)] for row in row_values]
        return [Table("", [*left, *(metric.head for metric in shown.values())], lines)]
    above = [Head(" ".join(map(names.shown, col))) for col in col_values]
    return [
        Table(
            f"{shown[metric].head.line} by {', '.join(row_keys)} and {', '.join(col_keys)}",
            [*left, *above],
            [[*map(names.shown, row), *(text(row, col, metric) for col in col_values)] for row in row_values],
        )
        for metric in columns
    ]


def _keys(chosen: Selection, rows: Sequence[str], cols: Sequence[str]) -> tuple[list[str], list[str]]:
    col_keys = [chosen.column(key, "--cols") for key in cols]
    row_keys = [chosen.column(key, "--rows") for key in rows]
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
) -> dict[tuple[tuple[Any, ...], tuple[Any, ...], str], Estimate]:
    """The estimate over repeats for each row, column and metric, in the order of the points."""
    row_keys, col_keys = _keys(chosen, rows, cols)
    keys = [*row_keys, *col_keys]
    chosen.alone(keys)
    columns = chosen.metrics(metrics)
    groups = chosen.frame.group_by(keys, maintain_order=True) if keys else [((), chosen.frame)]
    found = {}
    for values, group in groups:
        for metric in columns:
            estimate = Estimate.of(group[metric].to_list(), interval, centre)
            found[tuple(values[: len(row_keys)]), tuple(values[len(row_keys) :]), metric] = estimate
    return found


def long_csv(
    folder: str | Path,
    *,
    rows: Sequence[str] = (),
    cols: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    interval: Interval = "t",
    centre: Centre = "mean",
) -> str:
    """The same estimates as CSV for programs: a line for each cell and metric, in SI units, with all digits."""
    chosen = Selection.of(folder, where)
    row_keys, col_keys = _keys(chosen, rows, cols)
    fields = ("mean", "median", "standard_error", "low", "high", "values", "repeats")
    lines = [
        [*map(str, row), *map(str, col), names.short_metric(metric), names.unit(metric)]
        + ["" if (value := getattr(estimate, name)) is None else repr(value) for name in fields]
        for (row, col, metric), estimate in estimates(chosen, rows, cols, metrics, interval, centre).items()
    ]
    return Table("", text_heads(*row_keys, *col_keys, "metric", "unit", *fields), lines).to_csv()


def paired(
    folder: str | Path, *, key: str, first: str, second: str, metric: str, where: Mapping[str, str] | None = None
) -> Table:
    """Compare two values of a key with common random numbers: pairs of runs with the same seed, for each of the other settings.

    The p-values are those of the paired t-test, adjusted for the number of lines (Holm), and of Wilcoxon's signed-rank test.
    """
    chosen = Selection.of(folder, where)
    column = chosen.column(key, "--between")
    (measured,) = chosen.metrics([metric])
    known = [names.shown(one) for one in chosen.frame[column].unique(maintain_order=True)]
    for value in (first, second):
        if value not in known:
            raise ScenarioError(f"--between: {key}: expected one of {', '.join(known)}, found {value!r}")
    others = [one for one in chosen.settings if one not in (column, "seed")]
    groups = chosen.frame.group_by(others, maintain_order=True) if others else [((), chosen.frame)]
    compared = []
    for values, group in groups:
        samples: dict[str, dict[int, Any]] = {first: {}, second: {}}
        for value, seed, sample in group.select(column, "seed", measured).iter_rows():
            if names.shown(value) in samples:
                samples[names.shown(value)][seed] = sample
        compared.append((values, Paired.of(samples[first], samples[second])))
    shown = _metric(measured, [one for _, pair in compared for one in (pair.first, pair.second)])
    adjusted = holm([pair.p_t for _, pair in compared])
    lines = [
        [
            *map(names.shown, values),
            str(pair.pairs),
            number(pair.first, shown.factor, shown.digits),
            number(pair.second, shown.factor, shown.digits),
            shown.text(shown.estimated(pair.difference)),
            number(pair.effect),
            _p(pair.p_t),
            _p(holm_p),
            _p(pair.p_wilcoxon),
        ]
        for (values, pair), holm_p in zip(compared, adjusted, strict=True)
    ]
    heads = ("pairs", first, second, "difference", "Cohen's d", "p (t)", "p (t, Holm)", "p (Wilcoxon)")
    title = f"{shown.head.line}: {names.shown(first)} against {names.shown(second)}, paired by seed"
    return Table(title, [*text_heads(*others), *map(Head, heads)], lines)


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 1e-4 else f"{value:.4f}"
