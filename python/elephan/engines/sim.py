"""The packet simulator."""

import json
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.api.run import TABLES, Run
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary
from elephan.base.errors import told

Progress = Callable[[float], object]


def run_all(
    scenarios: Sequence[Scenario],
    threads: int,
    progress: Progress | None,
    captures: dict[str, str] | None = None,
    cancel: _core.Cancel | None = None,
) -> list[Run]:
    """Run scenarios on `threads` (0: on all cores), with results in the same order."""
    started = time.perf_counter()
    try:
        results = _core.run_many(scenarios, threads, progress, captures, cancel)
    except _core.AlgorithmError as error:
        raise _explained(error) from error.__cause__
    wall = time.perf_counter() - started
    return [from_columns(scenario, result, wall) for scenario, result in zip(scenarios, results, strict=True)]


class _Enough(Exception):  # noqa: N818 - no error
    """The time has come to which a run was to go."""


def begin(scenario: Scenario, *, until_s: float, progress: Progress | None = None) -> None:
    """Run a scenario to this simulated time, without results. Raises what the run itself raises until then.

    `progress` is called with 0 every 50 ms.
    """

    def goes_on(time_s: float, *_: object) -> bool:
        if time_s >= until_s:
            raise _Enough
        return True

    try:
        with suppress(_Enough):
            _core.run_live(scenario, until_s, goes_on, listen=progress and partial(progress, 0.0))
    except _core.AlgorithmError as error:
        raise _explained(error) from error.__cause__


def _explained(error: _core.AlgorithmError) -> _core.AlgorithmError:
    """The error with what a class of the user's may have meant, and the line in the file of the method that was called."""
    raised = error.__cause__
    if raised is None:
        return error
    frames = traceback.extract_tb(raised.__traceback__)
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    line = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    text = f"{type(raised).__name__}: {raised}".removesuffix(": ")
    return _core.AlgorithmError(f"{error}".replace(text, told(raised)) + line)


def from_columns(
    scenario: Scenario, result: dict[str, Any], wall_s: float, engine: str = "sim", system: str | None = None
) -> Run:
    """Make a run from the data of the extension module. `system` names the kernel on which the engine ran it.

    The quality of the links is known only where they are a kernel's own.
    """
    columns = {name: result[name] for name in TABLES}
    columns["flows"] = {**columns["flows"], **result.get("kernel", {})}
    return Run(
        scenario=scenario,
        summary=Summary.from_dict(json.loads(result["summary"])),
        columns=columns,
        links=tuple(result["links"]),
        labels=tuple(result["labels"]),
        provenance={
            "elephan": _core.__version__,
            "engine": engine,
            **({"kernel": system} if system is not None else {}),
            "wall_time_s": wall_s,
            "segments_delivered": result["segments_delivered"],
            "events_handled": result["events_handled"],
            **({"quality": json.loads(result["quality"])} if "quality" in result else {}),
        },
    )
