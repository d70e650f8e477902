"""A laboratory: runs scenarios, each once, and tests claims by intervals over repeats; adds repeats while these can decide."""

import time
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
from elephan.base.errors import FailedError
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
# What a run may raise that is no fault of this program.
FAULTS = (_core.ScenarioError, FailedError)
OUT_OF_TIME = "the time was over"


class UnsuitableError(_core.ScenarioError):
    """An engine cannot run a scenario; the message has the reasons."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its verdict, and what was found at each place under each set of choices."""

    claim: Claim
    verdict: Verdict
    findings: Mapping[str, tuple[Finding, ...]]
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class Question:
    """A claim, its places under each set of unpublished choices, and the numbers of repeats after which it is judged."""

    claim: Claim
    sets: Mapping[str, Sequence[Place]]
    looks: Sequence[int] = LOOKS


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
    # Why runs failed, by their folders; none where a run that fails ends everything.
    failures: dict[Path, str] | None = None
    # When to stop, on the clock of `time.monotonic`: runs that are in progress then are given up. Needs `failures`.
    deadline: float | None = None

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

    def dead(self, run: Run) -> str:
        """Why a run says nothing; empty if it was alive."""
        return dead(run)

    def runs(self, arms: Sequence[Arm], repeats: int) -> list[list[Run]]:
        """The runs of arms with seeds 1 to `repeats`, for figures and for what needs no verdict; results in this order."""
        found = self.run([self.scenario(arm, seed) for arm in arms for seed in range(1, repeats + 1)])
        return [found[i : i + repeats] for i in range(0, len(found), repeats)]

    def run(self, scenarios: Sequence[Scenario]) -> list[Run]:
        """The runs of scenarios, in the same order. Runs that are not stored are carried out on all cores."""
        return [one for one in self.attempts(scenarios) if isinstance(one, Run)]

    def attempts(self, scenarios: Sequence[Scenario]) -> list[Run | str]:
        """As `run`; in place of a run that failed, the reason."""
        places = [self.place(one) for one in scenarios]
        failed = {} if self.failures is None else self.failures
        missing = {
            place: scenario
            for place, scenario in zip(places, scenarios, strict=True)
            if place not in failed and not (place / RUN.document).exists()
        }
        self._carry_out(missing)
        self.asked, self.made = self.asked + len(places), self.made + len(missing)
        runs = [failed[place] if place in failed else Run.load(place) for place in places]
        new = {place: one for place, one in zip(places, runs, strict=True) if place not in self.counted}
        self.counted |= new.keys()
        self.cost_s += sum(_cost_s(one) for one in new.values() if isinstance(one, Run))
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
            left_s = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            for one in as_completed(waiting, left_s):
                try:
                    made = one.result()
                except FAULTS as error:
                    if self.failures is None:
                        raise
                    self.failures[waiting[one]] = f"a run failed: {error}"
                    continue
                made.save(waiting[one], force=True)
                kept += 1
                spent_s += _cost_s(made)
                if self.progress is not None:
                    self.progress(spent_s)
        except TimeoutError:
            assert self.failures is not None
            cancel.set()
            local.shutdown(cancel_futures=True)
            self.failures |= {place: OUT_OF_TIME for place in missing if not (place / RUN.document).exists()}
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

    def test(self, question: Question) -> Judgement:
        """Test a claim."""
        return self.test_all([question])[0]

    def test_all(self, questions: Sequence[Question]) -> list[Judgement]:
        """Test claims; repeats are added at the places, and in the sets, that are undecided. Claims share runs."""
        findings: list[dict[str, dict[int, Finding]]] = [{name: {} for name in one.sets} for one in questions]
        verdicts = [dict.fromkeys(one.sets, Verdict.UNDECIDED) for one in questions]
        for look in range(max((len(one.looks[: self.most_looks]) for one in questions), default=0)):
            open_ = {
                (number, name, i): (place, question.looks[look])
                for number, question in enumerate(questions)
                if look < len(question.looks[: self.most_looks])
                for name, places in question.sets.items()
                if verdicts[number][name] == Verdict.UNDECIDED
                for i, place in enumerate(places)
                if (one := findings[number][name].get(i)) is None
                or (_is_open(one, question.claim.rule) and place.arms and not one.found.same)
            }
            for (number, name, i), values, why in self.samples(open_):
                question, (place, _) = questions[number], open_[number, name, i]
                if why.get("unusable") == OUT_OF_TIME and i in findings[number][name]:
                    # What fewer repeats told stays.
                    continue
                # A contradiction between sets may come from any place of any set.
                count = len(question.sets[name]) * len(question.sets)
                findings[number][name][i] = judged(place, values, len(question.looks), count, **why)
            for question, found, verdict in zip(questions, findings, verdicts, strict=True):
                verdict |= {name: decided(list(one.values()), question.claim.rule) for name, one in found.items()}
        return [
            Judgement(
                question.claim,
                over_sets(list(verdict.values())),
                {name: tuple(one.values()) for name, one in found.items()},
                verdict,
            )
            for question, found, verdict in zip(questions, findings, verdicts, strict=True)
        ]

    def samples(
        self, asked: Mapping[K, tuple[Place | Quantity, int]]
    ) -> Iterator[tuple[K, list[Sample], dict[str, Any]]]:
        """For each place or number, with its repeats: samples, and whether the runs are equal or why they are unusable."""
        scenarios: dict[tuple[Arm, int], Scenario] = {}
        refused: dict[Arm, str] = {}
        for arm, seed in dict.fromkeys(
            (arm, k) for one, n in asked.values() for arm in one.arms for k in range(1, n + 1)
        ):
            try:
                if arm not in refused:
                    scenarios[arm, seed] = self.scenario(arm, seed)
            except UnsuitableError as error:
                refused[arm] = str(error)
        attempts = dict(zip(scenarios, self.attempts(list(scenarios.values())), strict=True))
        runs = {key: one for key, one in attempts.items() if isinstance(one, Run)}

        def unusable(one: Place | Quantity, seeds: range) -> Iterator[str]:
            yield from (refused[arm] for arm in one.arms if arm in refused)
            if not one.arms and self.engine != "sim":
                yield "a formula, which needs no engine"
            if len({scenarios[arm, 1].to_json() for arm in one.arms}) < len(set(one.arms)):
                yield f"{self.engine}: expected arms that differ, found none: it cannot be told what distinguishes them"
            yield from (why for arm in one.arms for seed in seeds if isinstance(why := attempts[arm, seed], str))
            may_collapse = one.may_collapse if isinstance(one, Place) else ()
            alive = [arm for index, arm in enumerate(one.arms) if index not in may_collapse]
            yield from filter(None, (self.dead(runs[arm, seed]) for arm in alive for seed in seeds))

        for key, (one, repeats) in asked.items():
            seeds = range(1, repeats + 1)
            if why := next(unusable(one, seeds), ""):
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
