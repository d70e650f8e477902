"""Decides expectations: runs what is needed, judges, and says what speaks for a verdict."""

import hashlib
import json
import math
import os
import re
import shlex
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from elephan.api.run import TABLES, Run
from elephan.api.scenario import Scenario
from elephan.base.numbers import significant
from elephan.base.text import toml
from elephan.foreign.names import KINDS
from elephan.studies import lab
from elephan.studies.check.expectations import Expectation, Point, number
from elephan.studies.judge import Arm, Finding, Place, Verdict, dead, interval, judged, keeps
from elephan.studies.lab import OUT_OF_TIME, Engine

# The factor and the name of the unit in which a quantity is shown.
SHOWN = {"bit/s": (1e-6, "Mbit/s"), "B": (1e-3, "kB"), "1": (1.0, ""), "%": (100.0, "%")}


class Decision(StrEnum):
    """What an expectation comes to."""

    HELD = "held"
    FAILED = "failed"
    UNDECIDED = "undecided"
    NOT_EVALUATED = "not evaluated"


# The exit code of a command of one expectation. Of several, a failure counts before what is not decided.
EXIT = {Decision.HELD: 0, Decision.FAILED: 1, Decision.UNDECIDED: 3, Decision.NOT_EVALUATED: 3}
# The engine of what no engine ran.
TRACE = "trace"
DECISIONS = {Verdict.CONFIRMED: Decision.HELD, Verdict.REFUTED: Decision.FAILED}


@dataclass(frozen=True)
class At:
    """A point of an expectation: what was found there, what it comes to, and the first repeat that speaks against it."""

    point: Point
    finding: Finding
    decision: Decision
    seed: int
    # Commands that repeat that run, one for each arm.
    commands: tuple[str, ...]
    # What is the case in that run, of a property.
    why: str = ""

    @property
    def found(self) -> str:
        """The value with its interval, as people read it."""
        found, unit = self.finding.found, self.finding.unit
        if self.finding.unusable:
            return self.finding.unusable
        if self.why or unit == "":
            return self.why or ("yes" if found.low > 0 else "")
        return shown_interval(found.value, found.low, found.high, unit)


def shown_interval(value: float, low: float, high: float, unit: str) -> str:
    """`0.31 [0.20, 0.42] Mbit/s`."""
    if math.isnan(value):
        return "undefined"
    is_short = unit == "s" and all(abs(one) < 1 for one in (value, low, high) if math.isfinite(one))
    factor, name = (1e3, "ms") if is_short else SHOWN.get(unit, (1.0, unit))

    def text(one: float) -> str:
        return significant(one * factor, 3) if math.isfinite(one) else "never" if unit == "s" else "?"

    ends = "" if low == high else " (no interval)" if math.isinf(low) else f" [{text(low)}, {text(high)}]"
    return f"{text(value)}{ends} {name}".rstrip()


@dataclass(frozen=True)
class Decided:
    """An expectation on an engine, and what it came to."""

    expectation: Expectation
    engine: str
    decision: Decision
    places: tuple[At, ...]
    reason: str = ""
    # How it compares with the same of an earlier check.
    change: str = ""

    @property
    def repeats(self) -> int:
        """The most repeats of a point."""
        return max((one.finding.found.repeats for one in self.places), default=0)

    @property
    def worst(self) -> At:
        """The point that speaks most against it: one that failed, or else one that is not decided."""
        order = [Decision.FAILED, Decision.NOT_EVALUATED, Decision.UNDECIDED, Decision.HELD]
        if self.decision == Decision.HELD:
            # Where it holds at some points, those speak for it.
            order.reverse()
        return min(self.places, key=lambda one: order.index(one.decision))


@dataclass
class Laboratory(lab.Lab):
    """A laboratory for the points of expectations."""

    populations: Mapping[str, Scenario] = field(default_factory=dict)
    failures: dict[Path, str] | None = field(default_factory=dict)

    def scenario(self, arm: Arm, seed: int = 1) -> Scenario:
        """The scenario of an arm: a point of a population. Repeat k has the seed of the file plus k - 1."""
        ((_, number),) = arm.settings
        scenario, _ = self.populations[arm.scenario].point(int(number), seed - 1)
        return Scenario(scenario)

    def dead(self, run: Run) -> str:
        """Why a run says nothing about congestion control. A flow that has little to send carries little."""
        flows = run.scenario.document["flow"]
        return "" if any(name in one for one in flows for name in ("size", "app", "stop")) else dead(run)


def decide(expectations: Sequence[Expectation], laboratory: Laboratory) -> list[Decided]:
    """Decide expectations on the engine of a laboratory; repeats are added to those that are undecided."""
    laboratory.populations = {name: one for each in expectations for name, one in each.populations.items()}
    judgements = iter(laboratory.test_all([one.question for one in expectations if not one.untold]))
    return [
        Decided(one, laboratory.engine, Decision.NOT_EVALUATED, (), one.untold)
        if one.untold
        else _decided(one, next(judgements), laboratory)
        for one in expectations
    ]


def _decided(one: Expectation, judgement: lab.Judgement, laboratory: Laboratory) -> Decided:
    findings = judgement.findings[""]
    places = tuple(
        _at(one, number, point, finding, laboratory)
        for number, (point, finding) in enumerate(zip(one.points, findings, strict=True))
    )
    unusable = [finding.unusable for finding in findings if finding.unusable]
    decision, reason = DECISIONS.get(judgement.verdict, Decision.UNDECIDED), ""
    if decision == Decision.UNDECIDED:
        # One of many points that is not clearly enough beyond the bound decides nothing.
        places = tuple(replace(at, decision=decision) if at.decision == Decision.FAILED else at for at in places)
        refused = next((why for why in unusable if why != OUT_OF_TIME), "")
        undefined = next((at for at in places if math.isnan(at.finding.found.value)), None)
        if refused:
            decision, reason = Decision.NOT_EVALUATED, refused
        elif unusable:
            reason = f"{OUT_OF_TIME} at {len(unusable)} of {len(findings)} points"
        elif undefined is not None:
            decision, reason = Decision.NOT_EVALUATED, undefined.why or f"{one.text} is undefined there"
        else:
            reason = _needed(findings)
            if laboratory.deadline is not None and time.monotonic() > laboratory.deadline:
                reason = f"{OUT_OF_TIME}; {reason}"
    return Decided(one, laboratory.engine, decision, places, reason.split("\n")[0])


def _needed(findings: Sequence[Finding]) -> str:
    """What would decide the first point that is open: how many repeats, if the mean stays where it is."""
    finding = next((one for one in findings if one.holds is None), None)
    if finding is None:
        return f"a point is beyond the bound, but not clearly enough as one of {len(findings)}"
    found = finding.found
    gaps = [abs(found.value - bound) for bound in (finding.above, finding.below) if bound is not None]
    half = max(found.high - found.value, found.value - found.low)
    if not math.isfinite(half) or min(gaps) == 0:
        return f"undecided after {found.repeats} repeats; more would be needed"
    most = math.ceil(found.repeats * (half / min(gaps)) ** 2)
    return (
        f"some {most} repeats would decide, if the value stays" if most > found.repeats else "more repeats would decide"
    )


def _at(one: Expectation, number: int, point: Point, finding: Finding, laboratory: Laboratory) -> At:
    place = one.question.sets[""][number]
    decision = {True: Decision.HELD, False: Decision.FAILED, None: Decision.UNDECIDED}[finding.holds]
    if finding.unusable and finding.unusable != OUT_OF_TIME:
        decision = Decision.NOT_EVALUATED
    against, why = 1, ""
    if place.statistic == "every" and not finding.unusable and finding.holds is not True:
        against, why = _against(one, number, place, finding, laboratory)
    first = laboratory.scenario(place.arms[0], against)
    commands = tuple(
        _command(one, laboratory.populations[arm.scenario], point.number, first.document, laboratory.engine)
        for arm in place.arms
    )
    return At(point, finding, decision, int(first.document["seed"]), commands, why)


def _against(one: Expectation, number: int, place: Place, finding: Finding, laboratory: Laboratory) -> tuple[int, str]:
    """The first repeat that speaks against an expectation about every repeat, and why if it is about a property."""
    for repeat in range(1, finding.found.repeats + 1):
        runs = laboratory.run([laboratory.scenario(arm, repeat) for arm in place.arms])
        sample = place.read(*runs)
        if sample is None or not keeps(place, sample):
            return repeat, one.properties[number].of(runs[0]).why if one.properties else ""
    return 1, ""


def _typed(value: Any) -> str:
    """A value as an option gives it: a text that TOML reads as something else is quoted."""
    if not isinstance(value, str):
        return toml(value)
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return value
    return toml(value)


def _command(one: Expectation, population: Scenario, number: int, document: Mapping[str, Any], engine: Engine) -> str:
    """The command that repeats a run."""
    _, settings = population.point(number, 0)
    given = [f"{key}={value}" for key, value in one.given.items() if key != "engine"]
    words = given + [f"{key}={_typed(value)}" for key, value in settings.items()]
    more = [] if engine == "sim" else ["--engine", engine]
    sets = [word for text in words for word in ("--set", text)]
    return shlex.join(["elephan", "run", str(one.file), *sets, "--seed", str(document["seed"]), *more])


def on_trace(one: Expectation, trace: Any) -> Decided:
    """Decide an expectation on the samples of a recorded connection, which is in place of the run of its only point."""
    place, point = one.question.sets[""][0], one.points[0]
    reason = ""
    if not one.is_of_samples:
        reason = f"a trace has samples, of which {one.text} is no statistic"
    elif len(one.points) > 1:
        reason = f"expected one point, found {len(one.points)}: a trace is of one"
    if reason:
        return Decided(one, TRACE, Decision.NOT_EVALUATED, (), reason)
    finding = judged(replace(place, statistic="every", repeats=1), [place.read(trace)], 1, 1)
    decision = {True: Decision.HELD, False: Decision.FAILED, None: Decision.NOT_EVALUATED}[finding.holds]
    why = one.properties[0].of(trace).why if one.properties and decision != Decision.HELD else ""
    at = At(point, finding, decision, 0, (), why)
    unknown = "the trace has no such samples" if decision == Decision.NOT_EVALUATED else ""
    return Decided(one, TRACE, decision, (at,), unknown and (why or unknown))


# Comparison with an earlier check.

# The folder and the digest of each run, by what identifies its scenario.
Runs = Mapping[str, Mapping[str, str]]


def scenarios_of(decided: Decided, laboratory: Laboratory) -> Iterator[Scenario]:
    """The scenarios of the runs that a decision rests on."""
    for place, at in zip(decided.expectation.question.sets[""], decided.places, strict=True):
        for arm in place.arms:
            for repeat in range(1, at.finding.found.repeats + 1):
                yield laboratory.scenario(arm, repeat)


def key_of(scenario: Scenario, folder: Path) -> str:
    """What identifies a scenario, whatever the code that runs it.

    The files of its algorithms are named as they are seen from the folder of the scenario file, which may be a copy.
    """

    def seen(found: re.Match[str]) -> str:
        return f'"{found[1]}{os.path.relpath(found[2], folder.absolute())}'

    text = re.sub(rf'"({"|".join(KINDS)})(/[^":]*)', seen, scenario.canonical(0, 0))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest(run: Run) -> str:
    """A digest of the results of a run: the summary and all samples, to the bit."""
    found = hashlib.blake2b(json.dumps(run.summary.to_dict()).encode(), digest_size=16)
    for name in TABLES:
        sink = pa.BufferOutputStream()
        table = run.table(name).combine_chunks()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        found.update(sink.getvalue())
    return found.hexdigest()


def runs_of(decided: Sequence[Decided], laboratory: Laboratory) -> Runs:
    """The runs that decisions rest on."""
    found: dict[str, Mapping[str, str]] = {}
    for one in decided:
        for scenario in scenarios_of(one, laboratory):
            key, place = key_of(scenario, one.expectation.file.parent), laboratory.place(scenario)
            if key not in found and place not in (laboratory.failures or {}):
                found[key] = {"run": place.name, "digest": digest(Run.load(place))}
    return found


def changed(decided: Decided, laboratory: Laboratory, own: Runs, base: Path, kept: Runs) -> str:
    """How the runs of an expectation compare with those of an earlier check in the folder `base`: `equal`, or what changed."""
    equal = differ = 0
    has_failed = False
    differences: list[float] = []
    one = decided.expectation
    for place, at in zip(one.question.sets[""], decided.places, strict=True):
        # Where no run says anything, the first stands for all.
        for repeat in range(1, max(1, at.finding.found.repeats) + 1):
            scenarios = [laboratory.scenario(arm, repeat) for arm in place.arms]
            keys = [key_of(scenario, one.file.parent) for scenario in scenarios]
            if not all(key in kept for key in keys):
                continue
            if not all(key in own for key in keys):
                has_failed = True
                continue
            if all(own[key]["digest"] == kept[key]["digest"] for key in keys):
                equal += 1
                differences.append(0.0)
                continue
            differ += 1
            before = place.read(*(Run.load(base / "runs" / kept[key]["run"]) for key in keys))
            now = place.read(*laboratory.run(scenarios))
            earlier, later = number(before), number(now)
            differences.append(math.nan if earlier is None or later is None else later - earlier)
    if has_failed:
        return "runs failed that the base has"
    if not equal and not differ:
        return "no run in common"
    if not differ:
        return "equal"
    text = f"changed in {differ} of {equal + differ} runs"
    if one.properties or any(map(math.isnan, differences)):
        return text
    same = float(np.ptp(differences)) == 0
    found = interval(differences, "mean", 0.05, same=same and differ == len(differences))
    shift = shown_interval(found.value, found.low, found.high, one.question.sets[""][0].unit)
    return f"{text}: {'+' if found.value > 0 else ''}{shift}"
