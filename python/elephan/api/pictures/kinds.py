"""The kinds of pictures, declared once: `elephan plot`, `Run.plot`, reports and the page draw these."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from elephan import _core
from elephan.api.pictures import across, many, over_time
from elephan.api.pictures.data import Picture, Runs
from elephan.api.pictures.many import Panels
from elephan.api.pictures.samples import Recorded


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, and how its data come from a run, or from the runs of a sweep or a comparison.

    Both raise `LackingError` for results that lack what the picture needs. None: there is no such picture of these.
    """

    name: str
    title: str
    meaning: str
    run: Callable[[Recorded], Picture] | None = None
    runs: Callable[[Runs], Panels] | None = None

    def of_run(self, run: Recorded) -> Picture:
        """Its data from a run. Raises `ScenarioError`."""
        if self.run is None:
            raise _core.ScenarioError(f"{self.name}: expected the results of a sweep, found a run")
        return self.run(run)

    def of_runs(self, runs: Runs) -> Panels:
        """Its data from many runs, in panels with names. Raises `ScenarioError`."""
        if self.runs is None:
            raise _core.ScenarioError(f"{self.name}: expected the results of a run or a comparison, found a sweep")
        return self.runs(runs)


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
            "Delay against the utilisation of the bottleneck: a point for each interval of a run, or each run of a sweep.",
            across.delay_load,
            many.delay_load,
        ),
        Kind("fairness-map", "Map of fairness", "Fairness over two swept keys.", runs=many.fairness_map),
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
    )
}


def kind_named(name: str) -> Kind:
    """The kind of this name. Raises `ScenarioError` for another one."""
    if name not in KINDS:
        raise _core.ScenarioError(f"plot: expected {_core.one_of(list(KINDS), name)}, found {name!r}")
    return KINDS[name]
