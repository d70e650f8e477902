"""Runs that a page started. They continue in threads of this process, even if no page watches them.

A change during a run is a change of the scenario: a flow that starts now, or an event of a link. The run is repeated from its
beginning at full speed, up to the moment of the change. The same seed gives the same result, so what is on the screen stays
valid; this is checked by comparison. So the scenario always reproduces what is on the screen.
"""

import contextlib
import copy
import itertools
import json
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from elephan import _core
from elephan.api.metrics import declared_columns
from elephan.api.pictures.marks import planned
from elephan.api.pictures.samples import mean_s
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.text import file_name
from elephan.engines import guest
from elephan.engines.sim import from_columns
from elephan.report.read import tiles
from elephan.ui.limits import Limits, checked

# Minimum time between messages: a screen cannot show more.
SECONDS_BETWEEN = 0.04
MOST_CALLS = 50_000
# How long a server that stops waits for its runs.
JOIN_S = 0.5

Columns = dict[str, np.ndarray[Any, Any]]
# Samples of flows and of queues, as they came.
Samples = dict[str, list[Columns]]
# The columns of samples that a page draws.
LIVE = {
    name: [column for (table, column), one in declared_columns().items() if table == name and one["is_live"]]
    for name in ("flows", "queues")
}


class LiveRun:
    """A run in progress, and the messages that it has sent. Without `save`, its results are only shown."""

    def __init__(
        self, document: Mapping[str, Any], limits: Limits, save: Callable[[Run], str] | None, speed: float
    ) -> None:
        self.id = secrets.token_urlsafe(9)
        self.document = copy.deepcopy(dict(document))
        self.limits = limits
        self.scenario = checked(self.document, limits)
        # JSON texts in order. A page that connects late reads them from the first.
        self.messages: list[str] = []
        self.state = "running"
        self.time_s = 0.0
        self.speed = speed
        self._save = save
        self._condition = threading.Condition()
        self._listeners: set[Callable[[], None]] = set()
        self._restart_at: float | None = None
        # Stops the current simulation, even if its simulated time does not advance.
        self._cancel = _core.Cancel()
        self._has_begun = False
        self._samples = _empty()
        # How many of them are in messages.
        self._told = {"flows": 0, "queues": 0}
        self._introduce("start")
        self._thread = threading.Thread(target=self._run, name=f"run {self.id}", daemon=True)
        self._thread.start()

    # ---- Observers ----

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener`, from any thread, when there are new messages; returns a function that stops this."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended and released its samples."""
        return self.state in ("done", "cancelled", "failed")

    @property
    def goes_on(self) -> bool:
        """Whether the run can still be changed, paused or cancelled."""
        return self.state in ("running", "paused")

    @property
    def is_interrupted(self) -> bool:
        """Whether the run is to end, or to restart with another scenario."""
        return self.state == "cancelling" or self._restart_at is not None

    def describe(self) -> dict[str, Any]:
        """The entry of the run in a list of runs."""
        return {
            "id": self.id,
            "name": self.scenario.name,
            "state": self.state,
            "time_s": self.time_s,
            "duration_s": _core.seconds(self.scenario.document["duration"]),
            "is_saved": self._save is not None,
        }

    # ---- Control ----

    def control(self, *, pause: bool | None = None, speed: float | None = None, cancel: bool = False) -> None:
        """Pause or resume the run, set its speed as a multiple of real time (0: full speed), or end it."""
        with self._condition:
            if not self.goes_on:
                return
            if cancel:
                self.state = "cancelling"
                self._cancel.set()
            elif pause is not None:
                self.state = "paused" if pause else "running"
            if speed is not None:
                self.speed = speed
            self._condition.notify_all()
            # This comes before the run's own thread can report the end.
            self._tell({"type": "state", "state": self.state, "speed": self.speed, "time_s": self.time_s})

    def change(self, make: Callable[[dict[str, Any], str], None]) -> None:
        """Change the scenario from the next sample on: `make` gets the document and that time. Raises `ScenarioError`."""
        with self._condition:
            if not self.goes_on:
                raise _core.ScenarioError("scenario: expected a run that goes on, found one that is over")
            document = copy.deepcopy(self.document)
            # A new flow does not move the measuring window, which begins with the latest start unless the file says otherwise.
            document["measure"] = {"from": f"{self._described['from_s']:.9g} s", **(document.get("measure") or {})}
            make(document, f"{self.time_s + self._interval():.9g} s")
            self.scenario = checked(document, self.limits)
            self.document = document
            self._restart_at = self.time_s
            self._cancel.set()
            self._condition.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait until the run has ended, at most this long."""
        self._thread.join(timeout_s)

    # ---- The run's own thread ----

    def _interval(self) -> float:
        """Simulated seconds between two polls of the run: the interval of its samples, within bounds."""
        interval = _core.seconds(self.scenario.trace_interval)
        duration = _core.seconds(self.scenario.document["duration"])
        return interval * math.ceil(duration / interval / MOST_CALLS)

    def _run(self) -> None:
        until: float | None = None
        while True:
            scenario = self.scenario
            watcher = _Watcher(self, until)
            try:
                carry_out = self._on_guest if scenario.document["engine"] == "kernel" else self._simulate
                result = carry_out(scenario, watcher)
            except KeyboardInterrupt:
                result = None
            except Exception as error:
                self._end("failed", text=f"{error}")
                return
            with self._condition:
                changed = self._restart_at if self.state != "cancelling" else None
                self._restart_at = None
                if changed is not None:
                    self._cancel = _core.Cancel()
                elif self.state != "cancelling":
                    # From here on the run can no longer be changed.
                    self.state = "saving"
            if changed is not None:
                until = changed if self._has_begun else None
                self._introduce("changed")
                continue
            self._flush()
            if result is None or self.state == "cancelling":
                del result
                self._end("cancelled")
            else:
                self._finish(result)
            return

    def _simulate(self, scenario: Scenario, watcher: "_Watcher") -> Run:
        started = time.perf_counter()
        result = _core.run_live(scenario, self._interval(), watcher, self._cancel, watcher.listen)
        return from_columns(scenario, result, time.perf_counter() - started)

    def _on_guest(self, scenario: Scenario, watcher: "_Watcher") -> Run:
        """Run on a guest kernel, and pass its samples to `watcher` when all are there: virtual time is faster than a viewer."""

        def progress(_: float) -> None:
            watcher.listen()
            if self.is_interrupted:
                raise KeyboardInterrupt

        run = guest.run(scenario, progress=progress)
        interval, duration = self._interval(), _core.seconds(scenario.document["duration"])
        begins = {"flows": 0, "queues": 0}
        for number in range(math.floor(duration / interval + 0.5) + 1):
            time_s, rows = number * interval, {}
            for name, begin in begins.items():
                times = run.columns[name]["time_s"]
                begins[name] = end = int(np.searchsorted(times, time_s + interval / 2))
                rows[name] = {column: run.columns[name][column][begin:end] for column in LIVE[name]}
            if not watcher(time_s, **rows):
                raise KeyboardInterrupt
        return run

    def _finish(self, run: Run) -> None:
        try:
            folder = None if self._save is None else self._save(run)
        except OSError as error:
            # An error that Elephan raised has its own words and no number.
            why = f"{error}" if error.errno is None else f"{error.filename or 'results'}: {error.strerror}"
            self._end("failed", text=f"{why}; nothing was written")
            return
        shown = [asdict(tile) for tile in tiles(run.summary)]
        self._end("done", folder=folder, tiles=shown, wall_s=run.provenance["wall_time_s"])

    def _end(self, state: str, **more: Any) -> None:
        self._samples = _empty()
        with self._condition:
            self.state = state
        self._tell({"type": state, "time_s": self.time_s, **more})

    def look(self, time_s: float, flows: Columns, queues: Columns) -> bool:
        """Add new samples, and wait for their time or while paused. False ends or restarts the run."""
        with self._condition:
            if self.is_interrupted:
                # Samples after the moment of a change do not count.
                return False
            _add(self._samples, flows, queues)
            self.time_s, self._has_begun = time_s, True
            return True

    def wait(self, pace: "_Pace", time_s: float) -> bool:
        """Wait in real time until `time_s` is due; false ends or restarts the run."""
        with self._condition:
            while not self.is_interrupted:
                left = None if self.state == "paused" else pace.left(self.speed, time_s)
                if left is not None and left <= 0:
                    return True
                self._condition.wait(left)
                if self.state == "paused":
                    pace.stop()
            return False

    def replace(self, past: Samples) -> None:
        """Replace the samples of the past if a change affected earlier times."""
        if _same(past, self._samples):
            return
        self._samples, self._told = past, {"flows": 0, "queues": 0}
        why = "The run was repeated, because the change affects its beginning: a shorter round-trip time changes link delays."
        self._tell({"type": "restart", "why": why})
        self._flush()

    def _flush(self) -> None:
        fresh = {name: rows[self._told[name] :] for name, rows in self._samples.items()}
        self._told = {name: len(rows) for name, rows in self._samples.items()}
        if told := {name: _listed(_joined(rows)) for name, rows in fresh.items() if rows}:
            self._tell({"type": "samples", "time_s": self.time_s, **told})

    def _introduce(self, kind: str) -> None:
        self._described = self.scenario.plan
        duration_s = _core.seconds(self.scenario.document["duration"])
        self._tell(
            {
                "type": kind,
                "id": self.id,
                "name": self.scenario.name,
                "document": self.document,
                "duration_s": duration_s,
                "speed": self.speed,
                "state": self.state,
                "mean_s": mean_s(self.scenario, duration_s),
                "marks": [asdict(mark) for mark in planned(self.scenario)],
                **self._described,
            }
        )

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.messages.append(json.dumps(message, allow_nan=False))
        for listener in list(self._listeners):
            with contextlib.suppress(RuntimeError):  # its event loop is closed
                listener()


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


class _Pace:
    """Simulated time against real time, since it was last set."""

    def __init__(self, time_s: float) -> None:
        self._speed = 0.0
        self._anchor: tuple[float, float] | None = None
        self._last = time_s

    def stop(self) -> None:
        self._anchor = None

    def left(self, speed: float, time_s: float) -> float:
        """Seconds until `time_s` is due at this speed."""
        if speed == 0:
            self._anchor = None
            self._last = time_s
            return 0.0
        now = time.monotonic()
        if self._anchor is None or speed != self._speed:
            self._speed, self._anchor = speed, (now, self._last)
        left = self._anchor[0] + (time_s - self._anchor[1]) / speed - now
        if left <= 0:
            self._last = time_s
        return left


class _Watcher:
    """The simulator calls it with new samples. Up to `until` it only collects them, because they are on the screen already."""

    def __init__(self, run: LiveRun, until: float | None) -> None:
        self._run = run
        self._until = until or 0.0
        self._replayed = None if until is None else _empty()
        self._pace = _Pace(self._until)
        self._told = 0.0
        # The time when the simulator resumed computing; None while this object is being called.
        self._left: float | None = time.perf_counter()
        self._spent = 0.0

    def listen(self) -> None:
        """Raise if the simulator has computed for too long. Called regularly, also if simulated time does not advance."""
        left = self._left
        spent = self._spent + (0.0 if left is None else time.perf_counter() - left)
        if spent > self._run.limits.computing_s:
            most = f"expected at most {self._run.limits.computing_s:g} s of computing on this page"
            raise RuntimeError(f"{most}; stopped at {self._run.time_s:.1f} s of simulated time")

    def __call__(self, time_s: float, flows: Columns, queues: Columns) -> bool:
        run = self._run
        self.listen()
        now, left, self._left = time.perf_counter(), self._left, None
        self._spent += now - (left or now)
        if self._replayed is not None:
            _add(self._replayed, flows, queues)
            if time_s < self._until:
                goes_on = not run.is_interrupted
                self._left = time.perf_counter()
                return goes_on
            run.replace(self._replayed)
            self._replayed = None
            flows, queues = {}, {}
        goes_on = run.look(time_s, flows, queues)
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN or run.speed > 0 or run.state == "paused":
            run._flush()
            self._told = now
        goes_on = goes_on and run.wait(self._pace, time_s)
        self._left = time.perf_counter()
        return goes_on


def _empty() -> Samples:
    return {"flows": [], "queues": []}


def _add(samples: Samples, flows: Columns, queues: Columns) -> None:
    for name, rows in (("flows", flows), ("queues", queues)):
        if rows and len(rows["time_s"]):
            samples[name].append(rows)


def _joined(rows: list[Columns]) -> Columns:
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]} if rows else {}


def _same(one: Samples, other: Samples) -> bool:
    both = ((_joined(one[name]), _joined(other[name])) for name in one)
    return all(
        a.keys() == b.keys() and all(np.array_equal(a[column], b[column], equal_nan=True) for column in a)
        for a, b in both
    )


def _listed(columns: Columns) -> dict[str, list[Any]]:
    """Columns as JSON, with six digits, and null for values that are not finite."""

    def short(value: float) -> float | None:
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {
        name: [short(value) for value in column.tolist()] if column.dtype.kind == "f" else column.tolist()
        for name, column in columns.items()
    }
