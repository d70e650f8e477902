"""The parts of an experiment: the published data, a laboratory that runs scenarios, and the report that it fills."""

import csv
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario, load
from elephan.base.plots import Figure
from elephan.studies import lab
from elephan.studies.judge import Arm, Claim, Kind, Place, Quantity, Row, Verdict, agreement, compared
from elephan.studies.lab import LOOKS, Engine, Judgement, Question

T = TypeVar("T")
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
# The numbers of repeats after which a claim or a comparison is judged with `--quick`.
QUICK_LOOKS = (2,)
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
        made = self.lab.test(Question(claim, places if isinstance(places, Mapping) else {ONLY: places}, looks))
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


@dataclass
class Lab(lab.Lab):
    """A laboratory for the scenarios of `scenarios/`. `quick` reduces the number and the length of the runs."""

    quick: bool = False
    # The claims to test, instead of everything; all if none.
    claims: frozenset[str] = frozenset()
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

    @property
    def job(self) -> Callable[..., Run]:
        """As in any laboratory; other engines need more than to be called."""
        return super().job if self.engine == "sim" else partial(_carried_out, self.engine)

    def place(self, scenario: Scenario) -> Path:
        """The results folder of a run; ns-2 runs what is a scenario of the simulator."""
        place = super().place(scenario)
        return place.with_name(f"ns2-{place.name}") if self.engine == "ns2" else place

    def test_all(self, questions: Sequence[Question]) -> list[Judgement]:
        """As in any laboratory, with the repeats of `--quick` where it is asked for."""
        return super().test_all([replace(one, looks=self.pick(tuple(one.looks), QUICK_LOOKS)) for one in questions])

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
            for i, values, why in self.samples({i: (one, repeats) for i, one in open_.items()}):
                rows[i] = compared(open_[i], values, band, len(looks), **why)
        return tuple(rows.values())


def _other(engine: Engine) -> Any:
    return import_module(OTHERS[engine])


def _carried_out(engine: Engine, scenario: Scenario, version: str, cancel: "_core.Cancel | None" = None) -> Run:
    lab.check_version(version)
    made: Run = _other(engine).run(scenario, cancel)
    return made


def command(arm: Arm) -> str:
    """The command that runs an arm with its first seed."""
    path = f"python/elephan/studies/reproduce/scenarios/{arm.scenario}.toml"
    return " ".join(["elephan run", path, *(f"--set {shlex.quote(f'{key}={value}')}" for key, value in arm.settings)])
