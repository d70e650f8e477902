"""Comparisons and sweeps that a page started. They continue in a thread of this process, even if no page watches them."""

import itertools
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.api.metrics import METRICS
from elephan.api.scenario import Scenario
from elephan.base.table import Table, text_heads
from elephan.base.text import file_name
from elephan.engines.run import run_many
from elephan.foreign import names
from elephan.studies.compare import Comparison, scenarios
from elephan.studies.sweeps.loop import Sweep, SweepRun
from elephan.ui.limits import Limits, checked
from elephan.ui.live_runs import JOIN_S, TooManyError

# Runs that the table of a sweep in progress shows.
SHOWN = 50
# Of the finished studies, as many are remembered.
REMEMBERED = 8
MOST_ALGORITHMS = 30


class _Comparison:
    """Algorithms on one path, with repeats, as `elephan compare` runs them."""

    def __init__(self, body: Mapping[str, Any], limits: Limits) -> None:
        algorithms = body.get("cc")
        if not isinstance(algorithms, list) or not all(isinstance(name, str) for name in algorithms):
            raise _core.ScenarioError("cc: expected a list of algorithms, found something else")
        if not 0 < len(algorithms) <= MOST_ALGORITHMS or len({*algorithms}) < len(algorithms):
            raise _core.ScenarioError(
                f"cc: expected 1 to {MOST_ALGORITHMS} different algorithms, found {len(algorithms)}"
            )
        _refuse({"flow": [{"cc": name} for name in algorithms]})
        path = body.get("path")
        path = path if isinstance(path, Mapping) else {}
        repeat = _whole(body, "repeat", 1, limits.study_runs // len(algorithms))
        texts = {key: _text(path, f"path.{key}") for key in ("rate", "rtt", "buffer")}
        texts |= {key: _text(body, key) for key in ("duration", "start_within")}
        flows = _whole(body, "flows", 1, limits.flows)
        seconds = {key: _seconds(key, texts[key]) for key in ("duration", "start_within")}
        if flows > 1 and seconds["duration"] <= seconds["start_within"]:
            found = f'found "{texts["duration"]}"'
            raise _core.ScenarioError(f"duration: expected more than the time within which flows start, {found}")
        self._scenarios = scenarios(
            cc=algorithms,
            rate=texts["rate"],
            rtt=texts["rtt"],
            buffer=texts["buffer"],
            flows=flows,
            duration=texts["duration"],
            repeat=repeat,
            seed=_whole(body, "seed", 0, 2**53),
            start_within=texts["start_within"],
            keys={},
        )
        self._repeat = repeat
        self.name = f"compare-{texts['rate']}-{texts['rtt']}"
        self.total = len(algorithms) * repeat
        _afford([checked(ones[0].document, limits) for ones in self._scenarios.values()], repeat, limits)

    def begin(self, study: "Study", folder: Path) -> None:
        """Run one repeat of all algorithms after the other."""
        runs: dict[str, list[Any]] = {name: [] for name in self._scenarios}
        each = len(runs)
        for number in range(self._repeat):
            begun = number * each

            def progress(share: float, begun: int = begun) -> None:
                study.reach(begun + share * each)

            of_all = run_many([ones[number] for ones in self._scenarios.values()], progress=progress)
            for name, run in zip(runs, of_all, strict=True):
                runs[name].append(run)
            note = f"{number + 1} of {self._repeat} repeats; ± or brackets: 95 % confidence interval"
            study.show(begun + each, Comparison(runs).table("So far", note))
        study.save()
        Comparison(runs).save(folder)


class _Sweep:
    """The points of a scenario's sweep, as `elephan sweep` runs them."""

    def __init__(self, body: Mapping[str, Any], limits: Limits) -> None:
        document = body.get("document")
        if not isinstance(document, Mapping) or not isinstance(sweep := document.get("sweep"), Mapping):
            raise _core.ScenarioError("sweep: expected keys with their values, found none")
        if not set(sweep) - {"repeat"}:
            raise _core.ScenarioError("sweep: expected a key with its values, found none")
        plain = {key: value for key, value in document.items() if key != "sweep"}
        checked(plain, limits)
        self._count(sweep, limits)
        _refuse({"sweep": sweep})
        text = json.dumps({**plain, "sweep": sweep})
        self._scenario = Scenario(_core.load_scenario(text, "scenario", [], json=True))
        self.total = self._scenario.points * self._scenario.repeats
        points = [self._scenario.point(point, 0)[0].document for point in range(self._scenario.points)]
        for point in points:
            point.pop("sweep", None)
        _afford([checked(point, limits) for point in points], self._scenario.repeats, limits)
        self.name = self._scenario.name

    @staticmethod
    def _count(sweep: Mapping[str, Any], limits: Limits) -> None:
        """Refuse a sweep that is too large, before its points are made."""
        count = repeat if isinstance(repeat := sweep.get("repeat", 1), int) else 1
        for key, values in sweep.items():
            if key in ("zip", "points"):
                raise _core.ScenarioError(f"sweep.{key}: expected none on this page, found one; use the command line")
            if key != "repeat" and not isinstance(values, list):
                raise _core.ScenarioError(f"sweep.{key}: expected a list of values, found something else")
            if key != "repeat":
                count *= max(len(values), 1)
        if count > limits.study_runs:
            raise _core.ScenarioError(f"sweep: expected at most {limits.study_runs} runs on this page, found {count}")

    def begin(self, study: "Study", folder: Path) -> None:
        """Run the points as they come."""
        recent: list[SweepRun] = []
        sweep = Sweep(self._scenario, folder)
        with closing(iter(sweep)) as runs:
            for run in runs:
                recent = [run, *recent][:SHOWN]
                study.show(sweep.done, _runs_table(recent, sweep.failed))
        if sweep.failed:
            study.text = f"{sweep.failed} runs failed; the results say why."


def _runs_table(runs: Sequence[SweepRun], failed: int) -> Table:
    settings = list(runs[0].settings)
    rows = [
        [*(str(run.settings[key]) for key in settings), str(run.repeat), *(m.cell(run.summary) for m in METRICS)]
        for run in runs
        if run.ok
    ]
    head = [*text_heads(*settings, "repeat"), *(metric.head for metric in METRICS)]
    return Table("The last runs", head, rows, f"{failed} runs failed" if failed else "")


def _refuse(document: Mapping[str, Any]) -> None:
    """Refuse names of algorithms that would load files or code."""
    if lines := list(names.refused(document, engine="sim")):
        raise _core.ScenarioError("\n".join(lines))


def _afford(each: Sequence[Scenario], repeats: int, limits: Limits) -> None:
    """Refuse what would take too long. `each` has one scenario for each point or algorithm."""
    events = repeats * sum(scenario.estimate["events"][0] for scenario in each)
    if events > limits.study_events:
        most = f"expected at most {limits.study_events:.1g} events of all runs on this page"
        raise _core.ScenarioError(f"scenario: {most}, found up to {events:.2g}; use the command line")


def _whole(body: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = body.get(key)
    if type(value) is not int or not least <= value <= most:
        raise _core.ScenarioError(f"{key}: expected a whole number from {least} to {most}, found {value!r:.40}")
    return value


def _seconds(key: str, text: str) -> float:
    try:
        return _core.seconds(text)
    except _core.ScenarioError as error:
        raise _core.ScenarioError(f"{key}: {error}") from error


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key.rpartition(".")[2])
    if not isinstance(value, str):
        raise _core.ScenarioError(f"{key}: expected a text, found {'nothing' if value is None else 'something else'}")
    return value


WORK: dict[str, type[_Comparison] | type[_Sweep]] = {"comparison": _Comparison, "sweep": _Sweep}


class Study:
    """A comparison or a sweep in progress."""

    def __init__(self, kind: str, work: "_Comparison | _Sweep", folder: Path) -> None:
        self.id = secrets.token_urlsafe(9)
        self.state = "running"
        self.text = ""
        self._kind, self._work, self._folder = kind, work, folder
        self._done = 0.0
        self._table: Table | None = None
        self._began, self._ended = time.monotonic(), 0.0
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"study {self.id}", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("done", "cancelled", "failed")

    def reach(self, done: float) -> None:
        """Say how many runs are done. Raises `KeyboardInterrupt` if the study is cancelled."""
        self._done = done
        if self._cancelled.is_set():
            raise KeyboardInterrupt

    def show(self, done: float, table: Table) -> None:
        """Show a table of what is done. Raises as `reach` does."""
        self._table = table
        self.reach(done)

    def save(self) -> None:
        """Say that only writing remains, which is not interrupted."""
        self.state = "saving"

    def cancel(self) -> None:
        """End it after the runs in progress."""
        if self.state == "running":
            self.state = "cancelling"
            self._cancelled.set()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, at most this long."""
        self._thread.join(timeout_s)

    def describe(self, *, table: bool = True) -> dict[str, Any]:
        """What a page shows of it."""
        elapsed = (self._ended or time.monotonic()) - self._began
        share = self._done / self._work.total
        return {
            "id": self.id,
            "kind": self._kind,
            "name": self._folder.name,
            "state": self.state,
            "done": self._done,
            "total": self._work.total,
            "elapsed_s": elapsed,
            "left_s": elapsed * (1 - share) / share if share > 0 and not self.is_over else None,
            "folder": self._folder.name if self._folder.is_dir() else None,
            "text": self.text,
            "table": self._table.to_page() if table and self._table is not None else None,
        }

    def _run(self) -> None:
        try:
            self._work.begin(self, self._folder)
            state = "done"
        except KeyboardInterrupt:
            state = "cancelled"
        except Exception as error:
            state, self.text = "failed", f"{error}"
        self._ended = time.monotonic()
        self.state = state


class Studies:
    """All studies of this server, newest first. One is carried out at a time, because it uses all cores."""

    def __init__(self, limits: Limits, results: Path) -> None:
        self._limits, self._results = limits, results
        self._studies: dict[str, Study] = {}
        self._lock = threading.Lock()

    def start(self, body: Mapping[str, Any]) -> Study:
        """Start a study. Raises `ScenarioError`, and `TooManyError` if another one goes on."""
        kind = body.get("kind")
        if not isinstance(kind, str) or kind not in WORK:
            raise _core.ScenarioError("kind: expected comparison or sweep, found something else")
        work = WORK[kind](body, self._limits)
        with self._lock:
            if any(not study.is_over for study in self._studies.values()):
                raise TooManyError("expected one comparison or sweep at a time, found one going on; cancel it, or wait")
            for key in list(self._studies)[: max(0, len(self._studies) - REMEMBERED)]:
                del self._studies[key]
            study = Study(kind, work, self._unused(work.name))
            self._studies[study.id] = study
            return study

    def get(self, key: str) -> Study | None:
        """The study with this id."""
        return self._studies.get(key)

    def all(self) -> Iterator[Study]:
        """All studies, newest first."""
        return reversed(list(self._studies.values()))

    def cancel_all(self) -> None:
        """End every study, because the server stops."""
        for study in self.all():
            study.cancel()

    def join(self) -> None:
        """Wait a short time for all studies to end."""
        for study in self.all():
            study.join(JOIN_S)

    def _unused(self, name: str) -> Path:
        stem = file_name(name)
        every = (self._results / f"{stem}-{number}" for number in itertools.count(1))
        return next(folder for folder in every if not folder.exists())
