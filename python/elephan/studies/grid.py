"""A grid of cells: sweeps on the simulator and on a kernel in virtual time, and in which cells they agree.

A cell is a point of a sweep, and has the same seeds on both engines. Its scenario's `name` says where it is: a sweep sets it
beside the keys that it changes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import polars as pl

from elephan import _core
from elephan.api.metrics import Metric
from elephan.api.registry import cc_text
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary
from elephan.base.table import Table, text_heads
from elephan.studies import side_by_side
from elephan.studies.side_by_side import AIMS, EPOCH, GOODPUT, RESENT, WINDOW
from elephan.studies.statistics import Estimate, Paired
from elephan.studies.sweeps.dataset import Dataset

ENGINES = ("sim", "kernel")
Verdict = Literal["agrees", "differs", "undecided"]
# The columns of samples that the figures need.
SAMPLED = ("run", "time_s", "flow", "retransmits", "congestion_events")


def planned(scenario: Scenario, *, large: bool = False) -> dict[str, Scenario]:
    """The sweep of a scenario on both engines: with the simulator's algorithms of the same rules, and as it is.

    Raises `ScenarioError` for an algorithm that the simulator lacks.
    """
    simulated = side_by_side.on_simulator(scenario, large=large)
    if simulated is None:
        raise _core.ScenarioError(f"{scenario.name}: expected algorithms that the simulator has, too, found others")
    return {"sim": simulated, "kernel": scenario.with_settings({"engine": "kernel"}, large=large)}


@dataclass(frozen=True)
class Stored:
    """What a sweep keeps of a run, for the figures of a comparison of engines."""

    summary: Summary
    flows: pl.DataFrame


def _total(run: Stored) -> float:
    """The goodput of flows and crowds, bit/s."""
    return run.summary.goodput_bit_s + sum(crowd.goodput_bit_s for crowd in run.summary.crowds)


def _completion(run: Stored) -> float | None:
    return run.summary.transfers.mean_s if run.summary.transfers else None


def _share(run: Stored) -> float | None:
    """The share of the first of several flows in the goodput of all."""
    rates = [flow.goodput_bit_s for flow in run.summary.flows]
    return rates[0] / sum(rates) if len(rates) > 1 and sum(rates) > 0 else None


TOTAL = replace(GOODPUT, reading=_total)
COMPLETION = Metric("completion", "s", digits=3, reading=_completion)
SHARE = Metric("share", "% of goodput", digits=1, factor=100.0, reading=_share)
# How close the means are meant to be, as shares of the kernel's.
BOUNDS = {
    TOTAL: AIMS[GOODPUT],
    COMPLETION: AIMS[GOODPUT],
    WINDOW: AIMS[WINDOW],
    EPOCH: AIMS[EPOCH],
    RESENT: AIMS[RESENT],
}


@dataclass(frozen=True)
class Cell:
    """A cell: the values of each quantity on each engine, by seed.

    `error` is that of a run that failed. A figure that a run does not have is None, such as an epoch without two reductions.
    """

    file: str
    place: str
    cc: str
    values: Mapping[Metric, Mapping[str, Mapping[int, float | None]]]
    error: str | None = None

    def mean(self, quantity: Metric, engine: str) -> float | None:
        """The mean over the seeds; none if a run lacks the figure."""
        values = list(self.values.get(quantity, {}).get(engine, {}).values())
        return None if not values or None in values else Estimate.of(values).mean

    def apart(self, quantity: Metric) -> Estimate | None:
        """By how much the simulator exceeds the kernel, as a share of the kernel's mean, with the interval of pairs of seeds.

        None where a run of either lacks the figure, and where the kernel's mean is zero.
        """
        sim, kernel = self.mean(quantity, "sim"), self.mean(quantity, "kernel")
        return None if sim is None or not kernel else self.difference(quantity).scaled(1 / kernel)

    def difference(self, quantity: Metric) -> Estimate:
        """The difference of the pairs of seeds, simulator less kernel."""
        of = self.values[quantity]
        return Paired.of(of["sim"], of["kernel"]).difference

    def verdict(self, quantity: Metric) -> Verdict | None:
        """Whether the interval of the difference is within the bound, wholly beyond it, or neither; none without a figure."""
        found, bound = self.apart(quantity), BOUNDS[quantity]
        if found is None or found.low is None or found.high is None:
            return None
        if max(-found.low, found.high) <= bound:
            return "agrees"
        return "differs" if found.low > bound or found.high < -bound else "undecided"

    @property
    def quantities(self) -> list[Metric]:
        """Those that are judged: in transfers of a given size the time that they take, otherwise the goodput."""
        left_out = TOTAL if self.mean(COMPLETION, "kernel") is not None else COMPLETION
        return [one for one in BOUNDS if one is not left_out]

    @property
    def text(self) -> str:
        """What differs (`!`) and what is undecided (`?`), in percent of the kernel's; "no verdict" where there is none."""
        if self.error is not None:
            return "failed"
        marks = {"differs": "!", "undecided": "?"}
        told = []
        for quantity in self.quantities:
            found, mark = self.apart(quantity), marks.get(self.verdict(quantity) or "")
            if found is not None and found.mean is not None and mark:
                interval = "" if found.identical else f" ± {100 * (found.half_width or 0.0):.1f}"
                told.append(f"{quantity.name} {100 * found.mean:+.1f}{interval} %{mark}")
        judged = any(self.verdict(quantity) for quantity in self.quantities)
        return ", ".join(told) or ("agrees" if judged else "no verdict")

    @property
    def share(self) -> str:
        """The share of the first flow, % of all: the simulator's, the kernel's, and the difference with its interval."""
        sim, kernel = self.mean(SHARE, "sim"), self.mean(SHARE, "kernel")
        if sim is None or kernel is None:
            return ""
        return f"{sim:.{SHARE.digits}f} / {kernel:.{SHARE.digits}f} ({self.difference(SHARE).text(SHARE.digits)})"


def read(scenario: Scenario, folder: Path) -> list[Cell]:
    """The cells of a sweep, whose runs are in the folders `sim` and `kernel` of this folder, in the order of its points."""
    found = {engine: dict(_stored(folder / engine)) for engine in ENGINES}
    cells = []
    for point in range(scenario.points):
        one, settings = scenario.point(point, 0)
        seeds = range(scenario.repeats)
        runs = {engine: {seed: found[engine].get((point + 1, seed)) for seed in seeds} for engine in ENGINES}
        wrong = [run for by_seed in runs.values() for run in by_seed.values() if not isinstance(run, Stored)]
        values = {
            quantity: {
                engine: {seed: quantity.read(run) for seed, run in by_seed.items() if isinstance(run, Stored)}
                for engine, by_seed in runs.items()
            }
            for quantity in (*BOUNDS, SHARE)
        }
        error = None if not wrong else wrong[0] or "expected a run, found none"
        cells.append(Cell(scenario.name, str(settings.get("name", scenario.name)), _algorithms(one), values, error))
    return cells


def _algorithms(one: _core.Scenario) -> str:
    named = [flow["cc"] if isinstance(flow["cc"], str) else flow["cc"]["name"] for flow in one.document["flow"]]
    return cc_text(" + ".join(dict.fromkeys(named)))


def _stored(folder: Path) -> Iterator[tuple[tuple[int, int], Stored | str]]:
    """The runs of a sweep by point and repeat: what it keeps, or why a run failed."""
    data = Dataset(folder)
    paths = data.samples("flows")
    samples: dict[Any, pl.DataFrame] = {}
    if paths:
        frame = pl.scan_parquet(paths).select(SAMPLED).with_columns(pl.col("run").cast(pl.String)).collect()
        samples = {key[0]: rows for key, rows in frame.partition_by("run", as_dict=True).items()}
    nothing = pl.DataFrame(schema=dict.fromkeys(SAMPLED, pl.Float64))
    for row in data.index(long=True).iter_rows(named=True):
        place = (row["point"], row["repeat"])
        if row["status"] == "ok":
            yield place, Stored(Summary.from_dict(json.loads(row["summary"])), samples.get(row["run"], nothing))
        else:
            yield place, str(row["error"])


def records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """For programs: of each cell and quantity, both means, the difference as a share with its interval, and the verdict."""
    found = []
    for one in cells:
        for quantity in (*one.quantities, *([SHARE] if one.mean(SHARE, "kernel") is not None else [])):
            apart = one.apart(quantity)
            found.append(
                {
                    "file": one.file,
                    "place": one.place,
                    "cc": one.cc,
                    "quantity": quantity.name,
                    "unit": quantity.unit,
                    **{engine: one.mean(quantity, engine) for engine in ENGINES},
                    "apart": apart and apart.mean,
                    "low": apart and apart.low,
                    "high": apart and apart.high,
                    "verdict": one.verdict(quantity) if quantity in BOUNDS else None,
                    "error": one.error,
                }
            )
    return found


def tables(cells: Sequence[Cell]) -> list[Table]:
    """The number of verdicts of each file; then its map, a row for each algorithm and a column for each place.

    Files with several flows also have a table of the first flow's share.
    """
    by_file: dict[str, list[Cell]] = {}
    for one in cells:
        by_file.setdefault(one.file, []).append(one)
    kinds: tuple[Verdict, ...] = ("agrees", "differs", "undecided")
    rows = []
    for file, every in by_file.items():
        counts = Counter((quantity.name, one.verdict(quantity)) for one in every for quantity in one.quantities)
        names = list(dict.fromkeys(quantity.name for quantity in BOUNDS))
        judged = [" / ".join(str(counts[name, kind]) for kind in kinds) for name in names]
        clean = sum(one.text == "agrees" for one in every)
        failed = sum(one.error is not None for one in every)
        rows.append([file, f"{len(every)}", f"{clean}", *judged, f"{failed}"])
    bounds = [f"{quantity.name}, {100 * bound:.0f} %" for quantity, bound in BOUNDS.items()]
    head = text_heads("cells", "number", "agree in all", *bounds, "failed")
    made = [Table("agrees / differs / undecided", head, rows)]
    for file, every in by_file.items():
        places, names = (list(dict.fromkeys(getattr(one, key) for one in every)) for key in ("place", "cc"))
        at = {(one.cc, one.place): one for one in every}
        of_share = f"{file}: share of the first flow (difference), %"
        for title, text in ((file, attrgetter("text")), (of_share, attrgetter("share"))):
            body = [[name, *(text(at[name, one]) if (name, one) in at else "" for one in places)] for name in names]
            if any(any(row[1:]) for row in body):
                made.append(Table(title, text_heads(file, *places), body))
    return made
