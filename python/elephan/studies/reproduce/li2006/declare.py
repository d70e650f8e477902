"""The language of the chapters: claims, and printed numbers beside ours, over the points of grids."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from statistics import fmean
from typing import Any

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Kind, Place, Quantity, Sample, Statistic
from elephan.studies.reproduce.lab import LOOKS, ONLY, Report

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


# What becomes of the readings of the runs at a point: a sample, its unit if that is not the reading's, and the statistic over repeats.
HOW: Mapping[str, tuple[Read, str | None, Statistic]] = {
    "value": (lambda x: x, None, "mean"),
    "share": (lambda x: x, None, "share"),
    "median": (lambda x: x, None, "median"),
    "earlier": (lambda x, y: (x, y), "", "earlier"),
    "less": (lambda x, y: x - y, None, "mean"),
    "second less first": (lambda x, y: y - x, None, "mean"),
    "over": (lambda x, y: x / y, "", "mean"),
    "second over first": (lambda x, y: y / x, "", "mean"),
    "logarithm": (lambda x, y: math.log(x / y), "", "mean"),
    "decades": (lambda x, y: math.log10(x / y), "decades", "mean"),
    "decades below 1": (lambda x: -math.log10(x), "decades", "mean"),
    "doublings": (lambda x, y: math.log2(x / y), "doublings", "mean"),
    # Of two pairs.
    "less, less": (lambda a, b, x, y: (a - b) - (x - y), None, "mean"),
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
    """The points of a grid, in the order of its keys. A value that is a key of the `outer` point stands for the value there."""

    def resolved(value: Any) -> Any:
        return outer.get(value, value) if isinstance(value, str) else value

    def several(values: Any) -> Iterable[Any]:
        return values if isinstance(values, Iterable) and not isinstance(values, str | dict) else (values,)

    axes = (
        [dict(zip(key.split(), one if " " in key else (one,), strict=True)) for one in several(resolved(values))]
        for key, values in grid.items()
    )
    for parts in product(*axes):
        yield {key: resolved(value) for part in parts for key, value in part.items()}


@dataclass(frozen=True)
class Points:
    """Places, or printed numbers, one at each point of a grid.

    `name` has keys of the point in braces. A point has the runs of the grid `runs`, with the other keys of the point. Without `runs`
    it has one, or those of the algorithms `a` and `b` if it has such keys. `read` is a reading of the chapter by its name, or what is
    read of a run, and `how` says what becomes of the readings. Where `how` is "runs", `read` takes the runs themselves; where it is
    "point", it takes the set of choices and the point, and returns what takes the runs. `mean` is a grid over which the mean is taken.

    A place must be above 0 if neither it nor its point has a bound. `printed` is the published number, of the point or of all.
    """

    name: str
    read: str | Read
    how: str
    grid: Grid
    runs: Grid = field(default_factory=dict)
    mean: Grid = field(default_factory=dict)
    above: float | None = None
    below: float | None = None
    unit: str | None = None
    statistic: Statistic | None = None
    may_collapse: tuple[int, ...] = ()
    printed: float | None = None


# Points of a claim: those of a grid, those of several that take turns at each point, or those that depend on the set of choices.
Declared = Points | Sequence[Points] | Callable[[str], Points]


@dataclass(frozen=True)
class Sets:
    """The sets of choices under which a claim is tested, and what is said of them as tried."""

    names: tuple[str, ...] = (ONLY,)
    tried: str = ""


@dataclass
class Chapter(Report):
    """A report of claims and comparisons over grids. `arm` makes the arm of a run at a point, under a set of choices.

    `shared` has what all claims have in common.
    """

    arm: Callable[[str, Point], Arm] = field(kw_only=True)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    looks: tuple[int, ...] = LOOKS
    shared: Point = field(default_factory=dict)

    def claim(
        self,
        key: str,
        sentence: str,
        population: str,
        statistic: str,
        bound: str,
        *declared: Declared,
        sets: Sets = Sets(),
        looks: Sequence[int] = (),
        **more: Any,
    ) -> None:
        """Test a claim at its places under each of `sets`; `more` are further keys of the claim."""
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
        _, unit, statistic = HOW.get(of.how, HOW["value"])
        unit = next(one for one in (of.unit, unit, self._reading(of).unit) if one is not None)
        statistic = of.statistic or statistic
        made = []
        for at, name, arms, read in self._made(of, chosen):
            above, below = at.get("above", of.above), at.get("below", of.below)
            above = 0 if above is None and below is None else above
            made.append(Place(name, arms, read, above, below, unit, statistic, of.may_collapse))
        return made

    def rows(
        self,
        group: str,
        unit: str,
        *declared: Points | Callable[[str], list[Quantity]],
        variants: Mapping[str, str] = NONE,
        **more: Any,
    ) -> None:
        """Compare printed numbers with ours, and show beside them what `variants` make of ours: sets of choices, and what each changes."""
        for chosen in (ONLY, *variants):
            rows = [
                row
                for one in declared
                for row in (self.quantities(one, chosen) if isinstance(one, Points) else one(chosen))
            ]
            cause = {"cause_of": group, "changed": variants[chosen]} if chosen else {}
            self.compare(
                f"{group}, {chosen}" if chosen else group, unit, rows, **{"looks": self.looks, **cause, **more}
            )

    def quantities(self, of: Points, chosen: str = ONLY) -> list[Quantity]:
        """The printed numbers of points, with what is compared with them under a set of choices."""
        statistic = of.statistic or HOW.get(of.how, HOW["value"])[2]
        return [
            Quantity(name, at.get("printed", of.printed), at.get("error"), arms, read, statistic)
            for at, name, arms, read in self._made(of, chosen)
        ]

    def _reading(self, of: Points) -> Reading:
        return self.readings[of.read] if isinstance(of.read, str) else Reading(of.read)

    def _made(self, of: Points, chosen: str) -> Iterator[tuple[Point, str, tuple[Arm, ...], Read]]:
        reading = self._reading(of)
        for at in points(of.grid):
            each = list(points(of.runs or ({"system": ("a", "b")} if "a" in at else {}), at))
            arms = tuple(self.arm(chosen, {**at, **more, **one}) for more in points(of.mean, at) for one in each)
            if of.how in HOW:
                read = reader(reading, of.how, chosen)
            else:
                read = reading.read(chosen, at) if of.how == "point" else reading.read
            yield at, of.name.format(**at), arms, mean_of(read, len(each)) if of.mean else read

    def formula(self, group: str, unit: str, band: float, *rows: tuple[str, float, float]) -> None:
        """Compare printed numbers with those of a formula: each row has a name, the printed one and ours."""
        self.compare(group, unit, [Quantity.exact(*row) for row in rows], kind=Kind.FORMULA, band=band)
