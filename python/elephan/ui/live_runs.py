"""All runs that pages started, and the folder in which they are saved."""

import contextlib
import itertools
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.api.run import Run
from elephan.base.text import file_name
from elephan.ui.limits import Limits
from elephan.ui.live import LiveRun

# How long a server that stops waits for its runs.
JOIN_S = 0.5


class TooManyError(Exception):
    """The maximum number of concurrent runs is reached."""


class LiveRuns:
    """All runs of this server, newest first; of the finished ones, only the last few."""

    def __init__(self, limits: Limits, results: Path) -> None:
        self._limits = limits
        self._results = results
        self._runs: dict[str, LiveRun] = {}
        self._lock = threading.Lock()

    def start(self, document: Mapping[str, Any], speed: float, *, save: bool = True) -> LiveRun:
        """Start a run. Raises `ScenarioError`, and `TooManyError` if the maximum number of runs is in progress."""
        with self._lock:
            going = [run for run in self._runs.values() if not run.is_over]
            if len(going) >= self._limits.runs:
                raise TooManyError(
                    f"expected at most {self._limits.runs} runs at a time, found {len(going)} going on; cancel one, or wait"
                )
            run = LiveRun(document, self._limits, self._save if save else None, speed)
            over = [key for key, one in self._runs.items() if one.is_over]
            for key in over[: max(0, len(over) - 8)]:
                del self._runs[key]
            self._runs[run.id] = run
            return run

    def get(self, key: str) -> LiveRun | None:
        """The run with this id."""
        return self._runs.get(key)

    def all(self) -> list[LiveRun]:
        """All runs, newest first."""
        return list(reversed(self._runs.values()))

    def cancel_all(self) -> None:
        """End every run, because the server stops."""
        for run in list(self._runs.values()):
            run.control(cancel=True)

    def join(self) -> None:
        """Wait a short time for all runs to end."""
        deadline = time.monotonic() + JOIN_S
        for run in list(self._runs.values()):
            run.join(max(deadline - time.monotonic(), 0.0))

    def _save(self, run: Run) -> str:
        """Write the results folder under an unused name; returns the name."""
        stem = file_name(run.scenario.name)
        for number in itertools.count(1):
            name = f"{stem}-{number}"
            with contextlib.suppress(FileExistsError):
                run.save(self._results / name)
                return name
        raise AssertionError
