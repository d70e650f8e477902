"""Running scenarios on the packet simulator."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from elephan import _core
from elephan.results import TABLES, Run
from elephan.scenario import Scenario
from elephan.summary import Summary

Progress = Callable[[float], object]


def run(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    captures: dict[str, str] | None = None,
    cancel: _core.Cancel | None = None,
) -> Run:
    """Run a scenario, and return what came of it.

    The interpreter lock is released meanwhile. `progress` is called every 50 ms with the share that is done; what it raises, or
    a signal handler, ends the run at once. `captures` gives the file to write for each link that the scenario's `trace.pcap`
    names; `cancel`, in place of `progress`, lets another thread stop the run, which then raises `KeyboardInterrupt`.
    A sweep has several runs: use `sweep`.
    """
    if scenario.document.get("sweep"):
        raise _core.ScenarioError("scenario: sweep: expected none for a single run, found one; use sweep()")
    return _run([scenario], 1, progress, captures, cancel)[0]


def run_many(scenarios: Sequence[Scenario], *, threads: int = 0, progress: Progress | None = None) -> list[Run]:
    """Run scenarios on all cores (or on `threads`); results come in the same order, and equal those of `run`."""
    return _run(scenarios, threads, progress)


def _run(
    scenarios: Sequence[Scenario],
    threads: int,
    progress: Progress | None,
    captures: dict[str, str] | None = None,
    cancel: _core.Cancel | None = None,
) -> list[Run]:
    if any(scenario.document["engine"] != "sim" for scenario in scenarios):
        # scipy's integrators take a moment to import.
        from elephan import fluid, linux  # noqa: PLC0415

        progress = progress or _heeds(cancel)
        engine = {
            "model": lambda one: fluid.run(one, progress),
            # Real time: one after the other.
            "linux": lambda one: linux.run(one, progress=progress),
            "sim": lambda one: _run([one], 1, progress, captures, cancel)[0],
        }
        return [engine[scenario.document["engine"]](scenario) for scenario in scenarios]
    started = time.perf_counter()
    results = _core.run_many([scenario.to_json() for scenario in scenarios], threads, progress, captures, cancel)
    wall = time.perf_counter() - started
    return [from_columns(scenario, result, wall) for scenario, result in zip(scenarios, results, strict=True)]


def _heeds(cancel: _core.Cancel | None) -> Progress | None:
    """A progress that stops a run whose `cancel` was set."""

    def progress(_: float) -> None:
        if cancel is not None and cancel.is_set():
            raise KeyboardInterrupt

    return None if cancel is None else progress


def from_columns(scenario: Scenario, result: dict[str, Any], wall_s: float) -> Run:
    """Make a run of what the extension module hands over."""
    return Run(
        scenario=scenario,
        summary=Summary.from_dict(json.loads(result["summary"])),
        columns={name: result[name] for name in TABLES},
        links=tuple(result["links"]),
        labels=tuple(result["labels"]),
        provenance={
            "elephan": _core.__version__,
            "engine": "sim",
            "wall_time_s": wall_s,
            "segments_delivered": result["segments_delivered"],
            "events_handled": result["events_handled"],
        },
    )
