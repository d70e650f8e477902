"""Runs scenarios, each on its engine."""

from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Source, load
from elephan.base.notebook import watched
from elephan.base.text import listed
from elephan.engines import sim
from elephan.engines.sim import Progress

# Engines other than the simulator. Each has a function `run`, and is imported when a scenario requests it.
OTHERS = {
    "model": "elephan.engines.fluid",
    "linux": "elephan.engines.linux",
    "kernel": "elephan.engines.guest",
}
# Runs in processes of their own.
ISOLATED = "elephan.engines.isolated"


def run(
    scenario: Source,
    *,
    progress: Progress | None = None,
    captures: dict[str, str] | None = None,
    cancel: _core.Cancel | None = None,
    threads: int = 1,
    isolate: bool = False,
) -> Run:
    """Run a scenario, and return its results. It may be a file, the name of an example or a document, as for `load`.

    The interpreter lock is released during the run. `progress` is called every 50 ms with the completed share; an exception
    from it, or from a signal handler, ends the run at once. Without it, a notebook and Python's prompt show a bar if the run
    takes more than a second. `captures` gives the output file for each link that the scenario's `trace.pcap` names. `cancel`,
    instead of `progress`, lets another thread stop the run, which then raises `KeyboardInterrupt`. The simulator divides the
    run among `threads` threads (0: one for each core); the results are the same. `isolate` gives the run a process of its own:
    an algorithm in C that crashes is then an `AlgorithmError` here. A sweep has several runs: use `sweep` for it.
    """
    scenario = load(scenario)
    if scenario.document.get("sweep"):
        raise _core.ScenarioError("scenario: sweep: expected none for a single run, found one; use sweep()")
    with watched(scenario.name, progress) if cancel is None else nullcontext(progress) as told:
        if isolate:
            alone: Run = import_module(ISOLATED).run(
                scenario, progress=told, captures=captures, cancel=cancel, threads=threads
            )
            return alone
        if (name := scenario.document["engine"]) != "sim":
            if threads != 1:
                raise _core.ScenarioError(f"threads: expected 1 with the engine {name}, found {threads}")
            made: Run = import_module(OTHERS[name]).run(scenario, progress=told or _heeds(cancel))
            return made
        return sim.run_all([scenario], threads, told, captures, cancel)[0]


def run_many(
    scenarios: Sequence[Source] | Source, *, threads: int = 0, progress: Progress | None = None, isolate: bool = False
) -> list[Run]:
    """Run scenarios on all cores (or on `threads`); results come in the same order, and equal those of `run`.

    On engines other than the simulator they run in sequence. `isolate` is as for `run`. An error of a run is raised.
    `progress` is called with the completed share; without it, a bar is shown as by `run`.
    """
    every = list(map(load, listed(scenarios)))
    count = len(every)
    with watched(f"{count} runs", progress) as told:
        if isolate:
            outcomes: list[Run | Exception] = import_module(ISOLATED).run_many(every, threads, told)
            for outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
            return [outcome for outcome in outcomes if isinstance(outcome, Run)]
        if any(scenario.document["engine"] != "sim" for scenario in every):
            return [run(one, progress=told and _part(told, done, count)) for done, one in enumerate(every)]
        return sim.run_all(every, threads, told)


def _part(progress: Progress, done: int, count: int) -> Progress:
    """The progress of one of `count` runs in sequence, of which `done` are over."""
    return lambda share: progress((done + share) / count)


def _heeds(cancel: _core.Cancel | None) -> Progress | None:
    """A progress function that stops a run if its `cancel` is set."""

    def progress(_: float) -> None:
        if cancel is not None and cancel.is_set():
            raise KeyboardInterrupt

    return None if cancel is None else progress
