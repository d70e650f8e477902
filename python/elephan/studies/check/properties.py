"""Properties of the samples of a run: always, eventually, and in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elephan.api.run import Run
from elephan.studies.check.readings import Conditions, Numbers, Signal, Window, carried, end_s

UNKNOWN = "no sample within the window"
CUT_OFF = "the run ended before the limit"


@dataclass(frozen=True)
class Outcome:
    """Whether a run has a property (None: the run cannot tell), and at what time it shows, with what is the case then."""

    holds: bool | None
    why: str = ""


# The times of samples, in s, and whether a condition holds then: `Conditions.of`.
Samples = tuple[Numbers, npt.NDArray[np.bool_]]
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
        from_s, to_s = _whole(self.window, run)
        if self.after is not None:
            starts = _first(self.after.of(run), from_s, to_s)
            if starts is None:
                return Outcome(None, f'"{self.after.text}" never held')
            from_s = starts
        if self.until is not None:
            ends = _first(self.until.of(run), from_s, to_s)
            if ends is None:
                return Outcome(holds=False, why=f'"{self.until.text}" never held')
            to_s = float(np.nextafter(ends, -np.inf))
        within = Window(from_s, to_s).of(time_s)
        if not within.any():
            # It ended where it began.
            return Outcome(True if self.until is not None else None, UNKNOWN)
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
        from_s, to_s = _whole(self.window, run)
        if not Window(from_s, to_s).of(time_s).any():
            return Outcome(None, UNKNOWN)
        starts = [from_s] if self.after is None else _rises(self.after.of(run), from_s, to_s)
        if not starts:
            return Outcome(None, f'"{self.after.text if self.after else ""}" never came to hold')
        counted = False
        for start_s in starts:
            last_s = to_s if self.limit is None else self.limit(run, start_s)
            if holds[Window(start_s, min(last_s, to_s)).of(time_s)].any():
                counted = True
            elif last_s <= to_s:
                return Outcome(holds=False, why=f"from {start_s:.6g} s to {last_s:.6g} s it did not")
        return Outcome(holds=True) if counted else Outcome(None, CUT_OFF)


@dataclass(frozen=True)
class Order:
    """Conditions come to hold one after another, each within a limit after the one before if there is one.

    The first has to hold at some sample, the others have to come to hold then or later. Two may come at one sample.
    """

    conditions: Sequence[Conditions]
    window: Window
    limit: Limit | None = None

    def of(self, run: Run) -> Outcome:
        """Whether a run has the property."""
        at_s, to_s = _whole(self.window, run)
        before: Conditions | None = None
        for condition in self.conditions:
            limit_s = to_s if before is None or self.limit is None else self.limit(run, at_s)
            last_s = min(to_s, limit_s)
            samples = condition.of(run)
            if not Window(at_s, last_s).of(samples[0]).any():
                return Outcome(None, UNKNOWN)
            if before is None:
                found = _first(samples, at_s, last_s)
            else:
                # The same once more is another time.
                begin_s = float(np.nextafter(at_s, np.inf)) if condition.text == before.text else at_s
                found = next(iter(_rises(samples, begin_s, last_s)), None)
            if found is None and limit_s > to_s:
                return Outcome(None, CUT_OFF)
            if found is None:
                return Outcome(holds=False, why=f'"{condition.text}" did not come from {at_s:.6g} s to {last_s:.6g} s')
            at_s, before = found, condition
        return Outcome(holds=True)


Property = Always | Eventually | Order


def after_rounds(count: Signal, rounds: int, run: Run, from_s: float) -> float:
    """The end, in s, of so many round trips after a time, by the count of them that the algorithm keeps."""
    time_s, counted = count.of(run)
    begun = carried(np.array([from_s]), time_s, counted)[0]
    later = time_s[(time_s >= from_s) & (counted > begun + rounds)]
    return float(np.nextafter(later[0], -np.inf)) if len(later) else np.inf


def _whole(window: Window, run: Run) -> tuple[float, float]:
    """The start and the end of what a property is of, in s: by default the whole run."""
    return window.from_s or 0.0, end_s(run) if window.to_s is None else window.to_s


def _first(samples: Samples, from_s: float, to_s: float) -> float | None:
    """The first time, in s, at which a condition holds."""
    time_s, holds = samples
    found: Numbers = time_s[holds & Window(from_s, to_s).of(time_s)]
    return float(found[0]) if len(found) else None


def _rises(samples: Samples, from_s: float, to_s: float) -> list[float]:
    """The times, in s, at which a condition comes to hold."""
    time_s, holds = samples
    rises = holds & ~np.concatenate(([False], holds[:-1]))
    return [float(one) for one in time_s[rises & Window(from_s, to_s).of(time_s)]]
