"""The parts of an experiment: a laboratory that runs scenarios, rows, checks, and verdicts."""

import csv
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from elephan import _core
from elephan.api.metrics import Metric
from elephan.api.run import Run
from elephan.api.scenario import Scenario, load
from elephan.base.table import Head, of_markdown, text_heads
from elephan.engines.run import run
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps.loop import identity
from elephan.studies.sweeps.worker import code_version

T = TypeVar("T")
# Every source, and its name on the page.
SOURCES = {
    "kelly2003": "Scalable TCP (Kelly 2003)",
    "li2006": "Transport protocols over high performance networks (Li 2006)",
    "tekala2006": "Throughput of Scalable TCP (Tekala and Szabó 2006)",
    "nabeshima2004": "Convergence of HighSpeed TCP (Nabeshima and Yata 2004)",
    "ltcp2003": "Layered TCP (Bhandarkar, Jain and Reddy)",
}


# The scenarios, published figures and claims of each source.
SCENARIOS = Path(__file__).parent / "scenarios"


@cache
def figures(source: str) -> tuple[Mapping[str, str], ...]:
    """The published numbers of a source."""
    with (SCENARIOS / source / "figures.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def claims(source: str) -> Mapping[str, Mapping[str, str]]:
    """The claims of a source, by their ids."""
    with (SCENARIOS / source / "claims.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def printed(source: str, locator: str, metric: str, scenario_id: str = "") -> dict[str, tuple[float, float | None]]:
    """The published values of a source at `locator` for each system: value and uncertainty. `metric` is a part of the metric's name."""
    found = {}
    for row in figures(source):
        fits = row["locator"].startswith(locator) and metric in row["metric"] and scenario_id in row["scenario_id"]
        if fits and row["value"]:
            found[row["system"]] = (float(row["value"]), _number(row["uncertainty"]))
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Row:
    """A published number beside ours. `band` is the relative deviation that still counts as agreement."""

    group: str
    system: str
    unit: str
    published: float | None
    uncertainty: float | None
    ours: Estimate
    band: float = 0.1

    @property
    def deviation(self) -> float | None:
        """The relative deviation of our value."""
        if self.published is None or self.ours.mean is None or self.published == 0:
            return None
        return self.ours.mean / self.published - 1

    @property
    def agrees(self) -> bool:
        """Whether our value is within the band, or within both uncertainties. A published "never" agrees only with "never"."""
        if self.published is None or self.ours.mean is None:
            return self.published is None and self.ours.mean is None
        distance = abs(self.ours.mean - self.published)
        band = self.band * abs(self.published)
        # A wide interval from few repeats does not count as agreement.
        return distance <= max(band, (self.uncertainty or 0.0) + min(self.ours.half_width or 0.0, band))


@dataclass(frozen=True)
class Check:
    """The test of a claim. `holds` is None if the claim cannot be tested here."""

    claim: str
    holds: bool | None
    evidence: str

    @property
    def verdict(self) -> str:
        """`confirmed`, `refuted`, or `untestable here`."""
        return {True: "confirmed", False: "refuted", None: "untestable here"}[self.holds]


@dataclass
class Report:
    """The results of an experiment."""

    rows: list[Row] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    draw: "Callable[[], Figure] | None" = None

    def check(self, claim: str, holds: bool | None, evidence: str) -> None:
        """Record the test of a claim."""
        self.checks.append(Check(claim, None if holds is None else bool(holds), evidence))

    def verdicts(self) -> dict[str, str]:
        """The verdict for each group of rows: agrees within the band, same ordering, or differs."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.group, []).append(row)
        return {name: verdict(rows) for name, rows in groups.items()}


def verdict(rows: Sequence[Row]) -> str:
    """Whether all rows agree, or at least all pairs with different published values have the same order."""
    if all(row.agrees for row in rows):
        return "agrees"
    known = [row for row in rows if row.published is not None and row.ours.mean is not None]
    pairs = 0
    for a, b in combinations(known, 2):
        apart = abs((a.published or 0) - (b.published or 0)) - (a.uncertainty or 0) - (b.uncertainty or 0)
        if apart <= 0.02 * abs(a.published or 0):
            continue
        pairs += 1
        if ((a.published or 0) - (b.published or 0)) * ((a.ours.mean or 0) - (b.ours.mean or 0)) <= 0:
            return "differs"
    return "same ordering" if pairs else "differs"


@dataclass(frozen=True)
class Experiment:
    """A published table or figure."""

    name: str
    title: str
    scenario: str | None
    choices: tuple[str, ...]
    function: Callable[["Lab"], Report]
    quick: bool

    @property
    def source(self) -> str:
        """The key of the source."""
        return self.name.split("/")[0]


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(
    name: str, title: str, scenario: str | None = None, *, choices: Iterable[str] = (), quick: bool = True
) -> Callable[[Callable[["Lab"], Report]], Callable[["Lab"], Report]]:
    """Register an experiment. `choices` are values that we chose because the source does not give them; `quick`: part of `--quick`."""

    def register(function: Callable[["Lab"], Report]) -> Callable[["Lab"], Report]:
        EXPERIMENTS[name] = Experiment(name, title, scenario, tuple(choices), function, quick)
        return function

    return register


@dataclass
class Lab:
    """Runs scenarios, each once, on one engine. `quick` reduces the number and the length of the runs.

    A run is stored in `folder` as a results folder, under the identity that it has in a sweep (its scenario and the code
    version), and later requests read it from there. So an interruption loses only the runs in progress. The folder of a
    sweep cannot store these runs: it has one scenario, and the flows of an experiment cannot be expressed as a list of
    settings.
    """

    folder: Path
    quick: bool = False
    engine: str = "sim"
    progress: Callable[[str, float], object] | None = None
    # How many runs were requested, and how many of them were carried out.
    asked: int = 0
    made: int = 0

    def pick(self, full: T, quick: T) -> T:
        """The first value in a full laboratory, the second in a quick one."""
        return quick if self.quick else full

    def scenario(self, name: str, settings: Mapping[str, str] | None = None) -> Scenario:
        """The scenario `SOURCE/FILE` of the published data, with some keys changed."""
        return load(SCENARIOS / f"{name}.toml", {**(settings or {}), "engine": self.engine})

    def runs(self, name: str, points: Sequence[Mapping[str, str]], repeats: int = 1) -> list[list[Run]]:
        """Run the scenario `SOURCE/FILE` with each of the settings in `points` and seeds 1 to `repeats`; results in this order."""
        scenarios = [
            self.scenario(name, {**point, "seed": str(seed)}) for point in points for seed in range(1, repeats + 1)
        ]
        found = self.run(name, scenarios)
        return [found[i : i + repeats] for i in range(0, len(found), repeats)]

    def run(self, what: str, scenarios: Sequence[Scenario]) -> list[Run]:
        """The runs of scenarios, in the same order. Runs that are not stored are carried out on all cores."""
        places = [self.folder / _identity(scenario) for scenario in scenarios]
        missing = {p: s for p, s in zip(places, scenarios, strict=True) if not (p / "run.json").exists()}
        cancel = _core.Cancel()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            waiting = [pool.submit(_keep, scenario, place, cancel) for place, scenario in missing.items()]
            try:
                for done, one in enumerate(as_completed(waiting), 1):
                    one.result()
                    if self.progress is not None:
                        self.progress(what, done / len(waiting))
            except BaseException as error:
                cancel.set()
                pool.shutdown(cancel_futures=True)
                made = self.made + sum(not one.cancelled() and one.exception() is None for one in waiting)
                if isinstance(error, KeyboardInterrupt) and made:
                    error.add_note(f"finished runs are kept in {self.folder}: {made}")
                raise
        self.asked, self.made = self.asked + len(places), self.made + len(missing)
        return [Run.load(place) for place in places]


def _identity(scenario: Scenario) -> str:
    return identity(_core.Expansion(scenario.to_json()).canonical(0, 0), code_version())


def _keep(scenario: Scenario, place: Path, cancel: _core.Cancel) -> None:
    run(scenario, cancel=cancel).save(place, force=True)


def changed_alone(
    lab: Lab,
    scenario: str,
    changes: Sequence[tuple[str, str, Mapping[str, str], Mapping[str, str]]],
    metrics: Sequence[Metric],
    repeats: int,
) -> Report:
    """The effect of each choice that a source leaves open, changed one at a time: name, system, settings, and the change.

    The metrics before and after the change form one table, which is the note of the report.
    """
    points = [settings for _, _, base, change in changes for settings in (base, {**base, **change})]
    flat = iter(lab.runs(scenario, points, repeats))
    rows = []
    for what, system, *_ in changes:
        pair = next(flat), next(flat)
        cells = [" → ".join(estimate(runs, metric.read).text() for runs in pair) for metric in metrics]
        rows.append([what, system, *cells])
    head = [
        *text_heads("choice", "system"),
        *(Head(metric.name, metric.short_unit) for metric in metrics),
    ]
    return Report(notes=[of_markdown(head, rows).to_markdown().rstrip()])


def estimate(runs: Sequence[Run], read: Callable[[Any], float | None]) -> Estimate:
    """The mean of a metric over the summaries of repeats."""
    return Estimate.of([read(run.summary) for run in runs])


def exactly(value: float | None) -> Estimate:
    """A number without randomness, as an estimate."""
    return Estimate.of([value])


def mean(estimate: Estimate) -> float:
    """The mean, or NaN if it is undefined."""
    return math.nan if estimate.mean is None else estimate.mean


def mbit(text: str) -> float:
    """The number of Mbit/s in a rate such as "250 Mbit/s"."""
    return _core.bits_per_second(text) / 1e6
