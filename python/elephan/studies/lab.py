"""A laboratory: runs scenarios, each once, and tests claims by intervals over repeats; adds repeats while these can decide."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.cores import core_count
from elephan.base.kinds import RUN
from elephan.engines.run import run
from elephan.studies.judge import (
    Arm,
    Claim,
    Finding,
    Place,
    Quantity,
    Sample,
    Verdict,
    dead,
    decided,
    judged,
    over_sets,
)
from elephan.studies.sweeps.worker import VersionMismatchError, code_version, identity

K = TypeVar("K")
Engine = Literal["sim", "model", "kernel", "linux", "ns2"]
# The numbers of repeats after which a claim or a comparison is judged.
LOOKS = (5, 10, 20)


class UnsuitableError(_core.ScenarioError):
    """An engine cannot run a scenario; the message has the reasons."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict, and what was found at each place under each set of choices."""

    claim: Claim
    verdict: Verdict
    findings: Mapping[str, tuple[Finding, ...]]
    verdicts: Mapping[str, Verdict]


@dataclass
class Lab(ABC):
    """Runs scenarios, each once, on one engine.

    A run is stored in `folder` as a results folder, under the identity that it has in a sweep (its scenario and the code
    version), and later requests read it from there. So an interruption loses only the runs in progress. The folder of a
    sweep cannot store these runs: it has one scenario, and what differs between the arms of a claim cannot be expressed as a
    list of settings. `executor` runs them elsewhere, on a cluster's workers.
    """

    folder: Path
    engine: Engine = "sim"
    # How many looks are taken at most; all if none. The error rate is that of all.
    most_looks: int | None = None
    # Called with the processor time of the runs that were carried out or read so far.
    progress: Callable[[float], object] | None = None
    executor: Executor | None = None
    # How many runs were requested, how many of them were carried out, and the processor time of all, when they were made.
    asked: int = 0
    made: int = 0
    cost_s: float = 0.0
    # The runs that `cost_s` includes: several claims read the same.
    counted: set[Path] = field(default_factory=set)

    @abstractmethod
    def scenario(self, arm: Arm, seed: int = 1) -> Scenario:
        """The scenario of an arm. Raises `UnsuitableError` if the engine of the laboratory cannot run it."""

    @property
    def job(self) -> Callable[..., Run]:
        """What carries a run out, here or on a worker: a function of a scenario, the code version and, here, a `Cancel`."""
        return carried_out

    def place(self, scenario: Scenario) -> Path:
        """The results folder of a run."""
        return self.folder / identity(scenario.canonical(0, 0), code_version())

    def runs(self, arms: Sequence[Arm], repeats: int) -> list[list[Run]]:
        """The runs of arms with seeds 1 to `repeats`, for figures and for what needs no verdict; results in this order."""
        found = self.run([self.scenario(arm, seed) for arm in arms for seed in range(1, repeats + 1)])
        return [found[i : i + repeats] for i in range(0, len(found), repeats)]

    def run(self, scenarios: Sequence[Scenario]) -> list[Run]:
        """The runs of scenarios, in the same order. Runs that are not stored are carried out on all cores."""
        places = [self.place(one) for one in scenarios]
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
                waiting[pool.submit(self.job, scenario, code_version(), *cancels)] = place
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

    def test(self, claim: Claim, sets: Mapping[str, Sequence[Place]], looks: Sequence[int] = LOOKS) -> Judgement:
        """Test a claim; repeats are added at the places, and in the sets, that are undecided."""
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
            for (name, i), values, why in self.samples(open_, repeats):
                # A contradiction between sets may come from any place of any set.
                count = len(sets[name]) * len(sets)
                findings[name][i] = judged(open_[name, i], values, len(looks), count, **why)
            verdicts = {name: decided(list(found.values()), claim.rule) for name, found in findings.items()}
        made = {name: tuple(found.values()) for name, found in findings.items()}
        return Judgement(claim, over_sets(list(verdicts.values())), made, verdicts)

    def samples(
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


def _is_open(one: Finding, rule: str) -> bool:
    """Whether more repeats can help: a place is undecided, or it could decide the claim alone but is not that clear yet."""
    return one.holds is None or (one.holds is (rule == "some") and not one.alone)


def check_version(version: str) -> None:
    """Raise `VersionMismatchError` if a worker has other code than the client."""
    if version != code_version():
        raise VersionMismatchError(f"expected a worker with Elephan {version}, found {code_version()}")


def carried_out(scenario: Scenario, version: str, cancel: "_core.Cancel | None" = None) -> Run:
    """Run a scenario on its engine."""
    check_version(version)
    return run(scenario, cancel=cancel)
