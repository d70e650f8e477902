"""The parts of an experiment: the published data, a laboratory that runs scenarios, and the report that it fills."""

import csv
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario, load
from elephan.base.cores import core_count
from elephan.base.kinds import RUN
from elephan.base.plots import Figure
from elephan.engines.run import run
from elephan.studies.reproduce.judge import (
    Arm,
    Claim,
    Finding,
    Kind,
    Place,
    Quantity,
    Row,
    Sample,
    Verdict,
    agreement,
    compared,
    dead,
    decided,
    judged,
    over_sets,
)
from elephan.studies.sweeps.worker import VersionMismatchError, code_version, identity

T = TypeVar("T")
K = TypeVar("K")
Engine = Literal["sim", "kernel", "linux", "ns2"]
# Every source, and its name on the page.
SOURCES = {
    "kelly2003": "Scalable TCP (Kelly 2003)",
    "li2006": "Transport protocols over high performance networks (Li 2006)",
    "tekala2006": "Throughput of Scalable TCP (Tekala and Szabó 2006)",
    "nabeshima2004": "Convergence of HighSpeed TCP (Nabeshima and Yata 2004)",
    "ltcp2003": "Layered TCP (Bhandarkar, Jain and Reddy)",
}
# Engines other than the simulator. Each module has `express(scenario, engine)`, which returns the scenario as the engine can run it,
# with what its stack then does otherwise, in words, or raises `UnsuitableError`; and `run(scenario, cancel)`.
OTHERS: Mapping[Engine, str] = {
    "ns2": "elephan.studies.reproduce.ns2",
    "kernel": "elephan.studies.reproduce.kernels",
    "linux": "elephan.studies.reproduce.kernels",
}
# The numbers of repeats after which a claim or a comparison is judged, in full and with `--quick`.
LOOKS, QUICK_LOOKS = (5, 10, 20), (2,)
# Those of runs in which nothing is random: the second says what all others would.
ONCE = (2,)
# The name of the set of choices where there is only one.
ONLY = ""

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
    return {
        row["system"]: (float(row["value"]), _number(row["uncertainty"]))
        for row in _printed(source, locator, metric)
        if scenario_id in row["scenario_id"] and row["value"]
    }


def number(source: str, locator: str, metric: str, **columns: str) -> float:
    """The first published number of a source at `locator`. `metric` is a part of the metric's name, other columns are as given."""
    return next(float(row["value"]) for row in _printed(source, locator, metric) if columns.items() <= row.items())


def _printed(source: str, locator: str, metric: str) -> Iterator[Mapping[str, str]]:
    return (row for row in figures(source) if row["locator"].startswith(locator) and metric in row["metric"])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Comparison:
    """Published numbers of one kind beside ours, and their verdict.

    `cause_of` names the comparison that this one explains: the same numbers after `changed`, one thing, was changed. Such a
    comparison has no verdict that counts. `command` runs the first of its scenarios.
    """

    group: str
    unit: str
    kind: Kind
    band: float
    rows: tuple[Row, ...]
    verdict: Verdict
    reason: str = ""
    cause_of: str = ""
    changed: str = ""
    command: str = ""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict, and what was found at each place under each set of choices."""

    claim: Claim
    verdict: Verdict
    findings: Mapping[str, tuple[Finding, ...]]
    verdicts: Mapping[str, Verdict]


@dataclass
class Report:
    """The results of an experiment: comparisons, judgements, notes and a figure."""

    lab: "Lab"
    comparisons: list[Comparison] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    draw: "Callable[[], Figure] | None" = None

    def compare(
        self,
        group: str,
        unit: str,
        quantities: Iterable[Quantity],
        *,
        kind: Kind = Kind.SIMULATION,
        band: float = 0.1,
        looks: Sequence[int] = LOOKS,
        reason: str = "",
        cause_of: str = "",
        changed: str = "",
    ) -> Comparison:
        """Compare published numbers with ours, and keep the result. `reason` explains a deviation if there is one.

        A laboratory that tests certain claims only compares nothing.
        """
        asked = () if self.lab.claims else tuple(quantities)
        rows = self.lab.compare(asked, band, looks)
        if kind == Kind.SIMULATION and self.lab.engine in ("kernel", "linux"):
            kind = Kind.KERNEL
        first = next((command(one.arms[0]) for one in asked if one.arms), "")
        made = Comparison(group, unit, kind, band, rows, agreement(rows), reason, cause_of, changed, first)
        if asked:
            self.comparisons.append(made)
        return made

    def test(
        self, claim: Claim, places: "Sequence[Place] | Mapping[str, Sequence[Place]]", looks: Sequence[int] = LOOKS
    ) -> Judgement:
        """Test a claim at its places, or at those of several sets of unpublished choices, and keep the result.

        A claim that the laboratory was not asked for is not tested, and stays undecided. One that only the simulator can answer is
        untestable elsewhere.
        """
        if not self.lab.asks(claim.id):
            return Judgement(claim, Verdict.UNDECIDED, {}, {})
        if claim.oracle and self.lab.engine != "sim":
            self.judgements.append(Judgement(claim, Verdict.UNTESTABLE, {}, {}))
            return self.judgements[-1]
        made = self.lab.test(claim, places if isinstance(places, Mapping) else {ONLY: places}, looks)
        self.judgements.append(made)
        return made

    def untestable(self, claim: str, why: str) -> None:
        """Keep a claim that cannot be tested here, with the reason."""
        if not self.lab.asks(claim):
            return
        one = Claim(claim, "", "", "", why)
        self.judgements.append(Judgement(one, Verdict.UNTESTABLE, {}, {}))


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


class UnsuitableError(_core.ScenarioError):
    """An engine cannot run a scenario; the message has the reasons."""


@dataclass
class Lab:
    """Runs scenarios, each once, on one engine. `quick` reduces the number and the length of the runs.

    A run is stored in `folder` as a results folder, under the identity that it has in a sweep (its scenario and the code
    version), and later requests read it from there. So an interruption loses only the runs in progress. The folder of a
    sweep cannot store these runs: it has one scenario, and the flows of an experiment cannot be expressed as a list of
    settings. `executor` runs them elsewhere, on a cluster's workers.
    """

    folder: Path
    quick: bool = False
    engine: Engine = "sim"
    # How many looks are taken at most; all if none. The error rate is that of all.
    most_looks: int | None = None
    # The claims to test, instead of everything; all if none.
    claims: frozenset[str] = frozenset()
    # Called with the processor time of the runs that were carried out or read so far.
    progress: Callable[[float], object] | None = None
    executor: Executor | None = None
    # How many runs were requested, how many of them were carried out, and the processor time of all, when they were made.
    asked: int = 0
    made: int = 0
    cost_s: float = 0.0
    # The runs that `cost_s` includes: several claims read the same.
    counted: set[Path] = field(default_factory=set)
    # What the engine does otherwise than the scenarios ask, each line once.
    differences: dict[str, None] = field(default_factory=dict)

    def asks(self, claim: str) -> bool:
        """Whether the laboratory tests this claim."""
        return not self.claims or claim in self.claims

    def pick(self, full: T, quick: T) -> T:
        """The first value in a full laboratory, the second in a quick one."""
        return quick if self.quick else full

    def scenario(self, arm: Arm, seed: int = 1) -> Scenario:
        """The scenario of an arm. Raises `UnsuitableError` if the engine of the laboratory cannot run it."""
        path = SCENARIOS / f"{arm.scenario}.toml"
        scenario = load(path, {**dict(arm.settings), "seed": str(seed)}, large=True)
        if self.engine == "sim":
            return scenario
        expressed: Scenario
        expressed, differences = _other(self.engine).express(scenario, self.engine)
        self.differences |= dict.fromkeys(differences)
        return expressed

    def runs(self, arms: Sequence[Arm], repeats: int) -> list[list[Run]]:
        """The runs of arms with seeds 1 to `repeats`, for figures and for what needs no verdict; results in this order."""
        found = self.run([self.scenario(arm, seed) for arm in arms for seed in range(1, repeats + 1)])
        return [found[i : i + repeats] for i in range(0, len(found), repeats)]

    def run(self, scenarios: Sequence[Scenario]) -> list[Run]:
        """The runs of scenarios, in the same order. Runs that are not stored are carried out on all cores."""
        engine = "ns2-" if self.engine == "ns2" else ""
        places = [self.folder / f"{engine}{identity(one.canonical(0, 0), code_version())}" for one in scenarios]
        missing = {p: s for p, s in zip(places, scenarios, strict=True) if not (p / RUN.document).exists()}
        self._carry_out(missing)
        self.asked, self.made = self.asked + len(places), self.made + len(missing)
        runs = [Run.load(place) for place in places]
        new = {place: one for place, one in zip(places, runs, strict=True) if place not in self.counted}
        self.counted |= new.keys()
        self.cost_s += sum(map(_cost_s, new.values()))
        return runs

    def _carry_out(self, missing: Mapping[Path, Scenario]) -> None:
        cancel = _core.Cancel()
        # In real time one run at a time, whose links need a processor of their own.
        local = ThreadPoolExecutor(1 if self.engine == "linux" else core_count())
        pool = local if self.executor is None else self.executor
        cancels = (cancel,) if self.executor is None else ()
        waiting: dict[Future[Run], Path] = {}
        kept, spent_s = 0, self.cost_s
        try:
            for place, scenario in missing.items():
                waiting[pool.submit(_made, scenario, self.engine, code_version(), *cancels)] = place
            for one in as_completed(waiting):
                made = one.result()
                made.save(waiting[one], force=True)
                kept += 1
                spent_s += _cost_s(made)
                if self.progress is not None:
                    self.progress(spent_s)
        except BaseException as error:
            cancel.set()
            for one in waiting:
                one.cancel()
            if isinstance(error, KeyboardInterrupt) and self.made + kept:
                # In place of the note on a run that was being written.
                error.__notes__ = [f"finished runs are kept in {self.folder}: {self.made + kept}"]
            raise
        finally:
            local.shutdown(cancel_futures=True)

    def compare(self, quantities: Sequence[Quantity], band: float, looks: Sequence[int]) -> tuple[Row, ...]:
        """Compare published numbers with ours; repeats are added while a row is undecided."""
        looks = self.pick(tuple(looks), QUICK_LOOKS)
        rows: dict[int, Row] = {}
        for repeats in looks[: self.most_looks]:
            open_ = {
                i: one
                for i, one in enumerate(quantities)
                if (row := rows.get(i)) is None
                or (row.agrees is None and one.arms and not row.unusable and not row.found.same)
            }
            for i, values, why in self._samples(open_, repeats):
                rows[i] = compared(open_[i], values, band, len(looks), **why)
        return tuple(rows.values())

    def test(self, claim: Claim, sets: Mapping[str, Sequence[Place]], looks: Sequence[int]) -> Judgement:
        """Test a claim; repeats are added at the places, and in the sets, that are undecided."""
        looks = self.pick(tuple(looks), QUICK_LOOKS)
        findings: dict[str, dict[int, Finding]] = {name: {} for name in sets}
        verdicts = dict.fromkeys(sets, Verdict.UNDECIDED)
        for repeats in looks[: self.most_looks]:
            open_ = {
                (name, i): place
                for name, places in sets.items()
                if verdicts[name] == Verdict.UNDECIDED
                for i, place in enumerate(places)
                if (one := findings[name].get(i)) is None
                or (_is_open(one, claim.rule) and place.arms and not one.found.same)
            }
            for (name, i), values, why in self._samples(open_, repeats):
                # A contradiction between sets may come from any place of any set.
                count = len(sets[name]) * len(sets)
                findings[name][i] = judged(open_[name, i], values, len(looks), count, **why)
            verdicts = {name: decided(list(found.values()), claim.rule) for name, found in findings.items()}
        made = {name: tuple(found.values()) for name, found in findings.items()}
        return Judgement(claim, over_sets(list(verdicts.values())), made, verdicts)

    def _samples(
        self, asked: Mapping[K, Place | Quantity], repeats: int
    ) -> Iterator[tuple[K, list[Sample], dict[str, Any]]]:
        """For each place or number: samples of the repeats, and either whether the runs are equal or why they are unusable."""
        scenarios: dict[tuple[Arm, int], Scenario] = {}
        refused: dict[Arm, str] = {}
        seeds = range(1, repeats + 1)
        for arm in dict.fromkeys(arm for one in asked.values() for arm in one.arms):
            try:
                scenarios |= {(arm, seed): self.scenario(arm, seed) for seed in seeds}
            except UnsuitableError as error:
                refused[arm] = str(error)
        runs = dict(zip(scenarios, self.run(list(scenarios.values())), strict=True))

        def unusable(one: Place | Quantity) -> Iterator[str]:
            yield from (refused[arm] for arm in one.arms if arm in refused)
            if not one.arms and self.engine != "sim":
                yield "a formula, which needs no engine"
            if len({scenarios[arm, 1].to_json() for arm in one.arms}) < len(set(one.arms)):
                yield f"{self.engine}: expected arms that differ, found none: it cannot be told what distinguishes them"
            may_collapse = one.may_collapse if isinstance(one, Place) else ()
            alive = [arm for index, arm in enumerate(one.arms) if index not in may_collapse]
            yield from filter(None, (dead(runs[arm, seed]) for arm in alive for seed in seeds))

        for key, one in asked.items():
            if why := next(unusable(one), ""):
                yield key, [], {"unusable": why}
                continue
            repeated = [[runs[arm, seed] for arm in one.arms] for seed in seeds] if one.arms else []
            same = repeats > 1 and all(
                run.summary == first.summary for row in repeated for run, first in zip(row, repeated[0], strict=True)
            )
            yield key, [one.read(*row) for row in repeated], {"same": same}


def _cost_s(made: Run) -> float:
    """The time that a run took on its core, when it was made."""
    return float(made.provenance["wall_time_s"])


def _other(engine: Engine) -> Any:
    return import_module(OTHERS[engine])


def _is_open(one: Finding, rule: str) -> bool:
    """Whether more repeats at a place can help: it is undecided, or it could decide the claim alone but is not that clear yet."""
    return one.holds is None or (one.holds is (rule == "some") and not one.alone)


def _made(scenario: Scenario, engine: Engine, version: str, cancel: "_core.Cancel | None" = None) -> Run:
    if version != code_version():
        raise VersionMismatchError(f"expected a worker with Elephan {version}, found {code_version()}")
    if engine == "sim":
        return run(scenario, cancel=cancel)
    made: Run = _other(engine).run(scenario, cancel)
    return made


def command(arm: Arm) -> str:
    """The command that runs an arm with its first seed."""
    path = f"python/elephan/studies/reproduce/scenarios/{arm.scenario}.toml"
    return " ".join(["elephan run", path, *(f"--set {shlex.quote(f'{key}={value}')}" for key, value in arm.settings)])
