"""The kinds of pictures, declared once: `elephan plot`, `Run.plot`, reports and the page draw these."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from elephan import _core
from elephan.api.pictures import across, over_time
from elephan.api.pictures.data import Picture
from elephan.api.pictures.samples import Recorded
from elephan.api.pictures.variables import variables


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, and how its data come from a run.

    That raises `LackingError` for a run that lacks what the picture needs.
    """

    name: str
    title: str
    meaning: str
    of_run: Callable[[Recorded], Picture]


KINDS = {
    kind.name: kind
    for kind in (
        *(
            Kind(name, quantity.metric.title, quantity.metric.meaning, partial(over_time.chart, name=name))
            for name, quantity in over_time.QUANTITIES.items()
        ),
        Kind(
            "delay-cdf",
            "Distribution of delay",
            "Share of samples in which a flow's smoothed round-trip time is at most this.",
            across.delay_cdf,
        ),
        Kind(
            "delay-load",
            "Delay against load",
            "Delay against the utilisation of the bottleneck: a point for each interval of a run.",
            across.delay_load,
        ),
        Kind(
            "phase",
            "Windows of two flows",
            "The window of the second flow against that of the first (Chiu and Jain 1989).",
            across.phase,
        ),
        Kind(
            "queue-window",
            "Queue against window",
            "The queue of the bottleneck against the sum of all windows.",
            across.queue_window,
        ),
        Kind(
            "variables",
            "State of congestion control",
            "What the flows' algorithms keep, such as BBR's state and bounds: a panel for each variable (`trace.variables`).",
            variables,
        ),
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name. Raises `ScenarioError` for another one."""
    if name not in KINDS:
        raise _core.ScenarioError(f"plot: expected {_core.one_of(list(KINDS), name)}, found {name!r}")
    return KINDS[name]
