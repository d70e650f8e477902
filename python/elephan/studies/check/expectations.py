"""The expectations of a scenario file, as claims with places that a laboratory tests."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from elephan import _core
from elephan.api.derived import harm
from elephan.api.run import Run
from elephan.api.scenario import Scenario, checked
from elephan.studies.check.properties import Always, Eventually, Limit, Order, Property, after_rounds
from elephan.studies.check.quantities import quantity
from elephan.studies.check.readings import (
    NotKeptError,
    Reading,
    Window,
    conditions,
    mentions_variables,
    reading,
    signal,
)
from elephan.studies.judge import Arm, Claim, Place, Sample, Statistic, Time
from elephan.studies.lab import Engine, Question
from elephan.studies.sweeps.names import shown

# An expectation is judged after so many repeats, as far as it has them. The second run says whether anything in it is random.
LOOKS = (2, 5, 10, 20)
# The most repeats of a point, by the statistic, where the file does not say.
MOST: Mapping[Statistic, int] = {"mean": 20, "median": 20, "every": 1}
# The bounds of a metric. The first of each includes its value.
LOWER, UPPER = ("at_least", "above"), ("at_most", "below")
# What a metric is compared with, and how people say it.
COMPARED = {"ratio_to": "over that with", "difference_to": "less that with", "harm_to": "harmed against that with"}
WORDS = {"at_least": "at least", "at_most": "at most", "above": "above", "below": "below"}


@dataclass(frozen=True)
class Point:
    """A point of the population of an expectation: its number, its settings as the file has them, and its scenario."""

    number: int
    settings: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Expectation:
    """A sentence of a file, its number there, from 1 on, and what decides it.

    The places of the question and `properties`, if it is about properties, are in the order of `points`. `populations` are the
    scenarios of the arms, with the points as their sweep.
    """

    file: Path
    number: int
    points: Sequence[Point]
    question: Question
    populations: Mapping[str, Scenario]
    properties: Sequence[Property]
    # The settings that were given with the file.
    given: Mapping[str, str]
    # Whether it can be decided on the samples of a single flow, of whatever it is.
    is_of_samples: bool
    # Why no run with the settings that were given can tell, though one of the file as it is written can.
    untold: str = ""

    @property
    def name(self) -> str:
        """`FILE#NUMBER`."""
        return f"{self.file}#{self.number}"

    @property
    def says(self) -> str:
        """The sentence."""
        return self.question.claim.sentence

    @property
    def text(self) -> str:
        """What is read, as in the file."""
        return self.question.claim.statistic

    @property
    def bound(self) -> str:
        """What it must keep, as in the file; empty for a property."""
        return self.question.claim.bound


def engine_of(one: Expectation) -> Engine:
    """The engine of its runs."""
    name = one.given.get("engine", one.points[0].scenario.document["engine"])
    return next(engine for engine in get_args(Engine) if engine == name)


def expectations(file: Path, scenario: Scenario, settings: Mapping[str, str], *, large: bool) -> list[Expectation]:
    """The expectations of a scenario file, for scenarios with other values for some keys.

    Raises `ScenarioError` for what means nothing: a line for each expectation that is wrong.
    """
    if settings:
        # What is given has to suit the file. An expectation that it does not suit is not evaluated.
        document = {key: value for key, value in scenario.document.items() if key not in ("expect", "sweep")}
        checked(json.dumps(document), str(file), settings, as_json=True, large=large)
    found, wrong = list[Expectation](), list[str]()
    for number, told in enumerate(scenario.document.get("expect", ())):
        try:
            found.append(_told(file, number, told, scenario, settings, large=large))
        except _core.ScenarioError as error:
            wrong.append(str(error))
    if wrong:
        raise _core.ScenarioError("\n".join(dict.fromkeys("\n".join(wrong).split("\n"))))
    return found


def _told(
    file: Path, number: int, told: Mapping[str, Any], scenario: Scenario, settings: Mapping[str, str], *, large: bool
) -> Expectation:
    try:
        return _expectation(file, number, told, scenario, settings, large=large)
    except _core.ScenarioError as error:
        # What the file as it is written cannot tell either is its mistake.
        written = _expectation(file, number, told, scenario, {}, large=large)
        reason = (
            error.reason if isinstance(error, NotKeptError) else str(error).removeprefix(f"{file}: ").split("\n")[0]
        )
        return replace(written, question=replace(written.question, sets={"": ()}), given=settings, untold=reason)


def _expectation(
    file: Path, number: int, told: Mapping[str, Any], scenario: Scenario, settings: Mapping[str, str], *, large: bool
) -> Expectation:
    key = f"{file}: expect.{number}"
    window = Window(*(_core.seconds(told[end]) if end in told else None for end in ("from", "to")))
    compared = next((name for name in COMPARED if name in told), "")
    arms = [{}, told[compared]] if compared else [{}]
    populations = {
        f"{key}:{which}": _population(file, scenario, told, more, settings, large=large)
        for which, more in enumerate(arms)
    }
    first = next(iter(populations.values()))
    points = [_point(first, at) for at in range(first.points)]
    others = [[_point(one, at) for at in range(first.points)] for one in list(populations.values())[1:]]
    properties: list[Property] = []
    shown_in, is_of_samples = "", True
    statistic: Statistic = "every"
    if "metric" in told:
        readings = [reading(told["metric"], point.scenario, window, f"{key}.metric") for point in points]
        if compared == "harm_to" and readings[0].better == "neither":
            expected = "a metric of which more or less is better, such as goodput.1"
            raise _core.ScenarioError(f"{key}.metric: expected {expected}, found {told['metric']!r}")
        is_of_samples = readings[0].is_of_samples and not compared
        unit = "1" if compared in ("ratio_to", "harm_to") else readings[0].unit
        shown_in = "%" if readings[0].is_percentage and unit == readings[0].unit else unit
        statistic = told.get("statistic", "median" if readings[0].is_time and not compared else "mean")
        bounds = [
            _bounds(told, one, unit, compared, point.scenario, key) for one, point in zip(readings, points, strict=True)
        ]
        # The other run may have other flows, of which the same name or number means another.
        beside = [reading(told["metric"], point.scenario, window, f"{key}.metric") for one in others for point in one]
        reads: list[Callable[..., Sample]] = [
            partial(_read, one, other, compared) for one, other in zip(readings, beside or readings, strict=True)
        ]
        of_times = readings[0].is_time and not compared
        if statistic != "every" and (statistic == "median") != of_times:
            expected = "median or every" if of_times else "mean or every"
            raise _core.ScenarioError(f"{key}.statistic: expected {expected} of {told['metric']}, found {statistic}")
    else:
        properties = [_property(told, point.scenario, window, key) for point in points]
        bounds, reads = [(0.5, None)] * len(points), [partial(_holds, one) for one in properties]
    most = told.get("repeat", MOST[statistic])
    varied = {name for point in points for name, value in point.settings.items() if value != points[0].settings[name]}
    places = [
        Place(
            ", ".join(f"{name} = {shown(value)}" for name, value in point.settings.items() if name in varied),
            tuple(Arm(name, (("point", str(point.number)),)) for name in populations),
            read,
            above,
            below,
            unit=shown_in,
            statistic=statistic,
            repeats=most,
        )
        for point, read, (above, below) in zip(points, reads, bounds, strict=True)
    ]
    # A run is of one point.
    given = {**settings, **({"sweep": "{}"} if scenario.document.get("sweep") else {})}
    claim = Claim(key, told["says"], "", _text(told), _bound(told), told.get("at", "every"))
    question = Question(claim, {"": places}, [*(look for look in LOOKS if look < most), most])
    return Expectation(
        file,
        number + 1,
        points,
        question,
        populations,
        properties,
        given,
        is_of_samples,
    )


def _point(population: Scenario, number: int) -> Point:
    scenario, settings = population.point(number, 0)
    return Point(number, settings, Scenario(scenario))


def _population(
    file: Path,
    scenario: Scenario,
    told: Mapping[str, Any],
    more: Mapping[str, Any],
    settings: Mapping[str, str],
    *,
    large: bool,
) -> Scenario:
    """The scenario whose sweep has the points of an expectation, each with the settings of all and with `more`."""
    document = dict(scenario.document)
    del document["expect"]
    sweep = dict(told.get("over", document.get("sweep", {})))
    sweep.pop("repeat", None)
    window = {f"measure.{end}": told[end] for end in ("from", "to") if end in told and "metric" in told}
    if fixed := {**window, **told.get("set", {}), **more}:
        # What comes last counts.
        sweep["points"] = [{**one, **fixed} for one in sweep.pop("points", [{}])]
    document["sweep"] = sweep
    texts = [told.get(name, "") for name in ("metric", "always", "eventually", "after", "until", "within")]
    if any(mentions_variables(text) for text in [*texts, *told.get("order", ())]):
        document["trace"] = {**document.get("trace", {}), "variables": True}
    return checked(json.dumps(document), str(file), settings, as_json=True, large=large)


def _read(of: Reading, beside: Reading, compared: str, run: Run, other: Run | None = None) -> Sample:
    """What is read of a run, or how it compares with what `beside` reads of another one."""
    value = of.read(run)
    if other is None:
        return value
    here, there = number(value), number(beside.read(other))
    if here is None or there is None:
        return None
    if compared == "harm_to":
        return harm(there, here, of.better)
    if compared == "difference_to":
        return here - there
    return here / there if there else None


def number(value: Sample) -> float | None:
    """A sample as a number: unknown for a time that did not come."""
    if isinstance(value, Time):
        return value.seconds if value.seen else None
    assert not isinstance(value, tuple)
    return value


def _bounds(
    told: Mapping[str, Any], of: Reading, unit: str, compared: str, scenario: Scenario, key: str
) -> tuple[float | None, float | None]:
    """What the value must be above and below. Raises `ScenarioError` for bounds that no value can keep."""

    def end(names: tuple[str, str], towards: float) -> tuple[float | None, str]:
        name = next((name for name in names if name in told), None)
        if name is None:
            return None, ""
        bound = told[name]
        if isinstance(bound, str):
            value = quantity(bound, unit, f"{key}.{name}").value(scenario)
        elif unit == "1":
            value = float(bound)
        else:
            # The text of a number without a unit is refused with an example.
            value = quantity(f"{bound:g}", unit, f"{key}.{name}").value(scenario)
        # A tie keeps the first of them, and not the second.
        return math.nextafter(value, towards if name == names[0] else -towards), name

    (above, lower), (below, upper) = end(LOWER, -math.inf), end(UPPER, math.inf)
    if above is not None and below is not None and above >= below:
        raise _core.ScenarioError(f"{key}.{upper}: expected a bound beyond {lower}, {told[lower]}, found {told[upper]}")
    least, most = (-math.inf, math.inf) if compared else of.bounds
    if above is not None and above >= most:
        raise _core.ScenarioError(
            f"{key}.{lower}: expected a value that {of.text} can have, at most {most:g}, found {told[lower]}"
        )
    if below is not None and below <= least:
        raise _core.ScenarioError(
            f"{key}.{upper}: expected a value that {of.text} can have, at least {least:g}, found {told[upper]}"
        )
    return above, below


def _holds(of: Property, run: Run) -> Sample:
    holds = of.of(run).holds
    return None if holds is None else float(holds)


def _property(told: Mapping[str, Any], scenario: Scenario, window: Window, key: str) -> Property:
    """The property of a run that an expectation is about."""

    def of(name: str) -> Any:
        return conditions(told[name], scenario, f"{key}.{name}") if name in told else None

    duration_s = _core.seconds(scenario.document["duration"])
    for end, at_s in (("from", window.from_s), ("to", window.to_s)):
        if at_s is not None and at_s > duration_s:
            expected = f"a time within the duration of {duration_s:g} s"
            raise _core.ScenarioError(f"{key}.{end}: expected {expected}, found {told[end]}")
    limit = _limit(told, scenario, key) if "within" in told else None
    if "always" in told:
        return Always(of("always"), window, of("after"), of("until"))
    if "eventually" in told:
        return Eventually(of("eventually"), window, of("after"), limit)
    steps = [conditions(text, scenario, f"{key}.order.{number}") for number, text in enumerate(told["order"])]
    return Order(steps, window, limit)


def _limit(told: Mapping[str, Any], scenario: Scenario, key: str) -> Limit:
    text: str = told["within"]
    if text.endswith("rounds"):
        # Those of the flow of which the first condition is.
        where = str(told.get("eventually", told.get("order", [""])[0])).split(" ")[0].partition(".")[2]
        count = signal(f"round_count.{where}", scenario, f"{key}.within")
        return partial(after_rounds, count, int(text.split(maxsplit=1)[0]))
    length_s = _core.seconds(text)
    # A sample that is so far away counts, whatever the last binary digit.
    return lambda _, from_s: from_s + length_s + 1e-9


def _text(told: Mapping[str, Any]) -> str:
    """What is read, as people say it."""
    if "metric" not in told:
        parts = [f"{name} {told[name]}" for name in ("after", "always", "eventually", "until") if name in told]
        parts += [", then ".join(told["order"])] if "order" in told else []
        return " ".join([*parts, *([f"within {told['within']}"] if "within" in told else [])])
    for name, what in COMPARED.items():
        if name in told:
            return (
                f"{told['metric']} {what} {', '.join(f'{key} = {shown(value)}' for key, value in told[name].items())}"
            )
    return str(told["metric"])


def _bound(told: Mapping[str, Any]) -> str:
    """The bounds, as people say them."""
    return " and ".join(f"{word} {shown(told[name])}" for name, word in WORDS.items() if name in told)
