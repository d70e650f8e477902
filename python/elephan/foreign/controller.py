"""Congestion control in Python, called once a round trip: what `elephan.cc` offers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from elephan._core import Decision, Loss, Report


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm, which a scenario can set: `cc = { name = "python:mine:Mine", gain = 2 }`.

    A value is a number from `low` to `high`.
    """

    default: float
    low: float
    high: float
    meaning: str


class Controller:
    """Congestion control of a connection, decided once a round trip or at every interval.

    Between two decisions the window stays, except below the slow-start threshold: there it grows by slow start. A subclass
    overrides `on_report`, and `on_loss` if halving is not what it wants. Parameters are keyword arguments of its constructor;
    `seed` is set after that, before any other call. An exception ends the run as an `AlgorithmError`.
    """

    # The time between two reports, in seconds; None: a round trip.
    interval_s: ClassVar[float | None] = None
    # Whether a decision sets the window during loss recovery, too, in place of the window of the endpoint's recovery.
    governs_recovery: ClassVar[bool] = False
    # What a scenario can set, by name.
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    # Files beside its module that it reads, such as weights: a change of them is one of the algorithm.
    files: ClassVar[Sequence[str]] = ()
    # Where it is published.
    source: ClassVar[str] = ""

    # The seed of this connection's random numbers.
    seed: int = 0

    def on_start(self, report: Report) -> Decision | None:  # noqa: ARG002 - for subclasses
        """The connection is about to send its first data."""
        return None

    def on_report(self, report: Report) -> Decision | None:
        """A round trip has passed, or an interval; None changes nothing."""
        raise NotImplementedError(f"{type(self).__name__}.on_report")

    def on_loss(self, event: Loss) -> Decision | None:
        """A congestion event: sets the slow-start threshold, to which the endpoint's recovery reduces the window.

        Here it is half of the window.
        """
        return Decision(ssthresh_segments=max(event.cwnd_segments / 2, 2))
