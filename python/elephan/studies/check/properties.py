"""Properties of the samples of a run: always, eventually, and in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from elephan.api.run import Run
from elephan.studies.check.readings import Conditions, Numbers, Signal, Window, carried


@dataclass(frozen=True)
class Outcome:
    """Whether a run has a property (None: the run cannot tell), and at what time it shows, with what is the case then."""

    holds: bool | None
    why: str = ""


# How far a step may be, as a function of a run and the time at which it begins, in s.
Limit = Callable[[Run, float], float]


@dataclass(frozen=True)
class Always:
    """A condition holds at every sample, from the first at which `after` holds until the first at which `until` does."""

    condition: Conditions
    window: Window
    after: Conditions | None = None
    until: Conditions | None = None

    def of(self, run: Run) -> Outcome:
        """Whether a run has the property."""
        time_s, holds = self.condition.of(run)
        from_s, to_s = self.window.from_s or 0.0, np.inf if self.window.to_s is None else self.window.to_s
        if self.after is not None:
            starts = _first(self.after, run, from_s, to_s)
            if starts is None:
                return Outcome(None, f'"{self.after.text}" never held')
            from_s = starts
        if self.until is not None:
            ends = _first(self.until, run, from_s, to_s)
            if ends is None:
                return Outcome(holds=False, why=f'"{self.until.text}" never held')
            to_s = np.nextafter(ends, -np.inf)
        within = Window(from_s, to_s).of(time_s)
        if not within.any():
            # It ended where it began.
            return Outcome(True if self.until is not None else None, "no sample within the window")
        fails = time_s[within & ~holds]
        if len(fails) == 0:
            return Outcome(holds=True)
        return Outcome(holds=False, why=f"at {fails[0]:.6g} s: {self.condition.values(run, float(fails[0]))}")


@dataclass(frozen=True)
class Eventually:
    """A condition comes to hold: once, or each time that `after` comes to hold; within a limit if there is one."""

    condition: Conditions
    window: Window
    after: Conditions | None = None
    limit: Limit | None = None

    def of(self, run: Run) -> Outcome:
        """Whether a run has the property. A step whose limit is beyond the end is not counted."""
        time_s, holds = self.condition.of(run)
        window = Window(self.window.from_s or 0.0, run.summary.to_s if self.window.to_s is None else self.window.to_s)
        assert window.from_s is not None
        assert window.to_s is not None
        starts = [window.from_s] if self.after is None else _edges(self.after, run, window)
        if not starts:
            return Outcome(None, f'"{self.after.text if self.after else ""}" never held')
        counted = False
        for start_s in starts:
            last_s = window.to_s if self.limit is None else self.limit(run, start_s)
            if holds[Window(start_s, min(last_s, window.to_s)).of(time_s)].any():
                counted = True
            elif last_s <= window.to_s:
                return Outcome(holds=False, why=f"from {start_s:.6g} s to {last_s:.6g} s it did not")
        return Outcome(holds=True) if counted else Outcome(None, "the run ended before the limit")


@dataclass(frozen=True)
class Order:
    """Conditions come to hold one after another, each within a limit after the one before if there is one."""

    conditions: Sequence[Conditions]
    window: Window
    limit: Limit | None = None

    def of(self, run: Run) -> Outcome:
        """Whether a run has the property."""
        at_s, to_s = self.window.from_s or 0.0, run.summary.to_s if self.window.to_s is None else self.window.to_s
        for number, condition in enumerate(self.conditions):
            last_s = to_s if number == 0 or self.limit is None else min(to_s, self.limit(run, at_s))
            begin_s = at_s if number == 0 else float(np.nextafter(at_s, np.inf))
            found = _first(condition, run, begin_s, last_s)
            if found is None:
                return Outcome(holds=False, why=f'"{condition.text}" did not come from {at_s:.6g} s to {last_s:.6g} s')
            at_s = found
        return Outcome(holds=True)


Property = Always | Eventually | Order


def after_rounds(count: Signal, rounds: int, run: Run, from_s: float) -> float:
    """The end, in s, of so many round trips after a time, by the count of them that the algorithm keeps."""
    time_s, counted = count.of(run)
    begun = carried(np.array([from_s]), time_s, counted)[0]
    later = time_s[(time_s >= from_s) & (counted > begun + rounds)]
    return float(np.nextafter(later[0], -np.inf)) if len(later) else np.inf


def _first(condition: Conditions, run: Run, from_s: float, to_s: float) -> float | None:
    """The first time, in s, at which a condition holds."""
    time_s, holds = condition.of(run)
    found: Numbers = time_s[holds & Window(from_s, to_s).of(time_s)]
    return float(found[0]) if len(found) else None


def _edges(condition: Conditions, run: Run, window: Window) -> list[float]:
    """The times, in s, at which a condition comes to hold."""
    time_s, holds = condition.of(run)
    rises = holds & ~np.concatenate(([False], holds[:-1]))
    return [float(one) for one in time_s[rises & window.of(time_s)]]
