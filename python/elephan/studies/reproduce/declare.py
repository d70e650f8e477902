"""The language of the sources: claims, and printed numbers beside ours, over the points of grids."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import chain, product
from statistics import fmean
from typing import Any

from elephan.api.run import Run
from elephan.studies.judge import Arm, Claim, Kind, Place, Quantity, Sample, Statistic, Time
from elephan.studies.lab import LOOKS
from elephan.studies.reproduce.lab import ONLY, Lab, Report, experiment

# A point, and a grid of them: the values of each key, or its only value. A key of several words has tuples of values, one for each word.
Point = Mapping[str, Any]
Grid = Mapping[str, Any]
Read = Callable[..., Any]
NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Reading:
    """What is read of a run. `under` has what is read instead under some sets of choices."""

    read: Read
    unit: str = ""
    under: Mapping[str, Read] = field(default_factory=dict)


def used(run: Run) -> float:
    """The utilisation of the bottleneck."""
    return run.summary.utilisation or 0.0


def mean_window(run: Run) -> float:
    """The mean window of the first flow, in segments."""
    return run.summary.flows[0].cwnd_mean_segments or math.nan


def reached(segments: float, run: Run) -> Time:
    """When the window of the only flow is first as large as that, if it is."""
    large = run.flows.filter(run.flows["cwnd_segments"] >= segments)["time_s"]
    return Time(float(large[0]), seen=True) if len(large) else Time(run.summary.to_s, seen=False)


# How a sample is made of the readings of the runs at a point, with its unit if that is not the reading's, and the statistic over repeats.
HOW: Mapping[str, tuple[Read, str | None, Statistic]] = {
    "value": (lambda x: x, None, "mean"),
    "share": (lambda x: x, None, "share"),
    "median": (lambda x: x, None, "median"),
    "earlier": (lambda x, y: (x, y), "", "earlier"),
    "less": (lambda x, y: x - y, None, "mean"),
    "second less first": (lambda x, y: y - x, None, "mean"),
    "gain": (lambda x, y: 100 * (y / x - 1), "%", "mean"),
    "over": (lambda x, y: x / y, "", "mean"),
    "second over first": (lambda x, y: y / x, "", "mean"),
    "logarithm": (lambda x, y: math.log(x / y), "", "mean"),
    "decades": (lambda x, y: math.log10(x / y), "decades", "mean"),
    "decades below 1": (lambda x: -math.log10(x), "decades", "mean"),
    "doublings": (lambda x, y: math.log2(x / y), "doublings", "mean"),
    "range": (lambda *values: max(values) - min(values), None, "mean"),
    # Of three: by how much the second exceeds the first, less its distance from the third.
    "excess less distance": (lambda x, y, z: (y - x) - abs(y - z), None, "mean"),
    # Of two pairs.
    "less, less": (lambda a, b, x, y: (a - b) - (x - y), None, "mean"),
    "gain, less": (lambda a, b, x, y: 100 * (b / a - 1) - 100 * (y / x - 1), "%", "mean"),
    "decades, less": (lambda a, b, x, y: math.log10(a / b) - math.log10(x / y), "decades", "mean"),
    "decades, second less first": (lambda a, b, x, y: math.log10(x / y) - math.log10(a / b), "decades", "mean"),
    "logarithm, less": (lambda a, b, x, y: math.log(a / b) - math.log(x / y), "", "mean"),
    "distance, less": (lambda a, b, x, y: abs(math.log(a / b)) - abs(math.log(x / y)), "", "mean"),
}


def reader(read: Reading, how: str = "value", chosen: str = ONLY) -> Read:
    """What `how` makes of the readings of runs under a set of choices; none where one of them is undefined."""
    one = read.under.get(chosen, read.read)

    def sample(*runs: Run) -> Sample:
        values = [one(run) for run in runs]
        made: Sample = None if None in values else HOW[how][0](*values)
        return made

    return sample


def mean_of(read: Read, count: int) -> Read:
    """The mean of what is read of `count` runs at a time: those of one cell after another."""
    return lambda *runs: fmean(read(*runs[i : i + count]) for i in range(0, len(runs), count))


def points(grid: Grid, outer: Point = NONE) -> Iterator[dict[str, Any]]:
    """The points of a grid, in the order of its keys.

    A value that is a key of the `outer` point stands for the value there. One that is a function takes the other values of its point.
    """

    def resolved(value: Any) -> Any:
        return outer.get(value, value) if isinstance(value, str) else value

    def several(values: Any) -> Iterable[Any]:
        return values if isinstance(values, Iterable) and not isinstance(values, str | dict) else (values,)

    axes = (
        [dict(zip(key.split(), one if " " in key else (one,), strict=True)) for one in several(resolved(values))]
        for key, values in grid.items()
    )
    for parts in product(*axes):
        at = {key: resolved(value) for part in parts for key, value in part.items()}
        known = {key: value for key, value in at.items() if not callable(value)}
        yield {key: value(known) if callable(value) else value for key, value in at.items()}


@dataclass(frozen=True)
class Points:
    """Places, or printed numbers, one at each point of a grid.

    `name` has keys of the point in braces. `read` is a reading of the chapter by its name and, after a comma, how a sample is made of it;
    or it is what takes the runs of a point. With `how`, a function is a reading; if that is "point", it takes the point before the runs, and
    if it is "exact" the point alone.
    A place is bound `above` and `below`, or by such keys of its point; above 0 without any.
    """

    name: str
    read: str | Read
    how: str = "runs"
    above: float | None = None
    below: float | None = None
    unit: str | None = None
    statistic: Statistic | None = None
    may_collapse: tuple[int, ...] = ()
    grid: Grid = field(default_factory=dict)
    runs: Grid = field(default_factory=dict)
    over: Grid = field(default_factory=dict)

    def at(self, grid: Grid = NONE, /, **more: Any) -> "Points":
        """At a grid, and what it is at already. Its key `printed` is a published number, with its `error`, which is of `of_repeats` runs."""
        return replace(self, grid={**self.grid, **grid, **more})

    def of(self, runs: Grid = NONE, /, **more: Any) -> "Points":
        """Of a run for each point of another grid, with the other keys of the first. Else there is one, or those of algorithms `a` and `b`."""
        return replace(self, runs={**runs, **more})

    def mean(self, over: Grid = NONE, /, **more: Any) -> "Points":
        """The mean over a grid."""
        return replace(self, over={**over, **more})


# Points of a claim: those of a grid, those of several that take turns at each point, or those that depend on the set of choices.
Declared = Points | Sequence[Points] | Callable[[str], Points]
# Printed numbers of a comparison: those at points, or what a function makes for a set of choices.
Rows = Points | Sequence[Quantity] | Callable[[str], Points | Sequence[Quantity]]


@dataclass(frozen=True)
class Sets:
    """The sets of choices under which a claim is tested, and what is said of them as tried."""

    names: tuple[str, ...] = (ONLY,)
    tried: str = ""


@dataclass
class Chapter(Report):
    """A report of claims and comparisons over grids. `arm` makes the arm of a run at a point, under a set of choices; else the point has it.

    `named` has values of grids, and `under` makes the sets of choices of a claim from what it names; `shared` has what all claims have in common, and their kind is that of comparisons.
    `unit` is that of places that have none.
    """

    arm: Callable[[str, Point], Arm] = field(kw_only=True, default=lambda _, at: at["arm"])
    readings: Mapping[str, Reading] = field(default_factory=dict)
    looks: tuple[int, ...] = LOOKS
    shared: Point = field(default_factory=dict)
    named: Point = field(default_factory=dict)
    under: Callable[..., Sets] = Sets
    unit: str = ""

    def claim(
        self,
        key: str,
        sentence: str,
        population: str,
        statistic: str,
        bound: str,
        *declared: Declared,
        sets: Sets | Sequence[str] = (),
        looks: Sequence[int] = (),
        **more: Any,
    ) -> None:
        """Test a claim at its places under each of `sets`; `more` are further keys of the claim."""
        sets = sets if isinstance(sets, Sets) else self.under(*sets)
        claim = Claim(key, sentence, population, statistic, bound, **{"tried": sets.tried, **self.shared, **more})
        places = {name: [place for one in declared for place in self._turns(one, name)] for name in sets.names}
        self.test(claim, places, looks or self.looks)

    def _turns(self, declared: Declared, chosen: str) -> Iterable[Place]:
        if callable(declared):
            declared = declared(chosen)
        each = [declared] if isinstance(declared, Points) else declared
        return chain(*zip(*(self.places(one, chosen) for one in each), strict=True))

    def places(self, of: Points, chosen: str = ONLY) -> list[Place]:
        """The places of points under a set of choices."""
        made = []
        for at, name, arms, read, unit, statistic in self._made(of, chosen):
            sides = at.get("above", of.above), at.get("below", of.below)
            bounds = [None if bound is None else float(bound) for bound in sides]
            above, below = [0.0, None] if bounds == [None, None] else bounds
            made.append(Place(name, arms, read, above, below, unit, statistic, of.may_collapse))
        return made

    def rows(self, group: str, unit: str, *declared: Rows, variants: Mapping[str, str] = NONE, **more: Any) -> None:
        """Compare printed numbers with ours, and show beside them what `variants` make of ours: sets of choices, and what each changes."""
        for chosen in (ONLY, *variants):
            rows: list[Quantity] = []
            for one in declared:
                made = one(chosen) if callable(one) else one
                rows += self.quantities(made, chosen) if isinstance(made, Points) else made
            name = f"{group}, {chosen}" if chosen else group
            changed = {"cause_of": group, **more, "changed": variants[chosen]} if chosen else more
            kind = self.shared.get("kind", Kind.SIMULATION)
            self.compare(name, unit, rows, **{"looks": self.looks, "kind": kind, **changed})

    def quantities(self, of: Points, chosen: str = ONLY) -> list[Quantity]:
        """The printed numbers of points, with what is compared with them under a set of choices."""
        return [
            Quantity(name, at["printed"], at.get("error"), arms, read, statistic, at.get("of_repeats", 0))
            for at, name, arms, read, _, statistic in self._made(of, chosen)
        ]

    def _made(self, of: Points, chosen: str) -> Iterator[tuple[Point, str, tuple[Arm, ...], Read, str, Statistic]]:
        how = of.how
        if isinstance(of.read, str):
            name, _, how = of.read.partition(", ")
            reading, how = self.readings[name], how or "value"
        else:
            reading = Reading(of.read)
        of_runs = how in ("runs", "point", "exact")
        _, unit, statistic = HOW["value" if of_runs else how]
        unit = next(one for one in (of.unit, unit, reading.unit) if one is not None) or self.unit
        for at in points(of.grid, self.named):
            known = {**self.named, **at}
            pair = {"system": ("a", "b")} if "a" in at else {}
            each = [] if how == "exact" else list(points(of.runs or pair, known))
            arms = tuple(self.arm(chosen, {**at, **more, **one}) for more in points(of.over, known) for one in each)
            if how in ("point", "exact"):
                read: Read = partial(reading.read, at)
            else:
                read = reading.read if how == "runs" else reader(reading, how, chosen)
            read = mean_of(read, len(each)) if of.over else read
            yield at, of.name.format(**at), arms, read, unit, of.statistic or statistic

    def formula(self, group: str, unit: str, band: float, *rows: tuple[str, float, float], reason: str = "") -> None:
        """Compare printed numbers with those of a formula: each row has a name, the printed one and ours."""
        self.compare(group, unit, [Quantity.exact(*row) for row in rows], kind=Kind.FORMULA, band=band, reason=reason)


def declares(
    make: Callable[[Lab], Chapter], source: str, name: str, title: str, scenario: str = "", **more: Any
) -> Callable[[Callable[[Chapter], None]], Callable[[Lab], Report]]:
    """Register an experiment of a source, whose function declares what it has in the report that `make` gives.

    `name` and `scenario` are those without the source's; `more` is as for `experiment`.
    """

    def register(function: Callable[[Chapter], None]) -> Callable[[Lab], Report]:
        @experiment(f"{source}/{name}", title, f"{source}/{scenario}" if scenario else None, **more)
        @wraps(function)
        def fill(lab: Lab) -> Report:
            report = make(lab)
            function(report)
            return report

        return fill

    return register
