"""A sweep: its runs, the results that are known already, and the loop that runs the rest."""

import json
import platform
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from elephan import _core
from elephan.api.outline import swept
from elephan.api.scenario import Scenario, Source, load
from elephan.api.summary import Summary
from elephan.base import notebook
from elephan.base.folders import default
from elephan.base.frames import as_pandas
from elephan.base.notebook import watched
from elephan.base.plots import Figure
from elephan.base.table import Table
from elephan.engines.isolated import try_out
from elephan.foreign import names as foreign
from elephan.guest import image
from elephan.studies.statistics import Estimate, Tight
from elephan.studies.sweeps import names
from elephan.studies.sweeps.batches import PlannedRun, Waiting, work_s
from elephan.studies.sweeps.columns import described, kind_of, values_of
from elephan.studies.sweeps.dataset import Dataset, Loss, SweepError, span
from elephan.studies.sweeps.plots import plot
from elephan.studies.sweeps.schedulers import fatal, scheduler
from elephan.studies.sweeps.tables import table
from elephan.studies.sweeps.worker import Batch, code_version, identity
from elephan.studies.sweeps.writer import Writer, writer

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

# A part is written when this much data has gathered, or this much time has passed. At most this is lost if the machine fails.
FLUSH_BYTES = 64 << 20
FLUSH_S = 15.0
# The width of an interval is not tested with fewer repeats, because a few can agree by chance.
FIRST_LOOK = 5


def _kernel(text: str) -> str:
    """What identifies the kernel of a scenario (canonical JSON): nothing if its engine has none."""
    if '"engine":"linux"' in text:
        return f" on Linux {platform.release()}"
    if '"engine":"kernel"' in text:
        kernel = image.find(json.loads(text).get("kernel", {}).get("version")).identity
        return f" on Linux {kernel}, {image.programs()}"
    return ""


@dataclass(frozen=True)
class SweepRun:
    """A finished run of a sweep. Points count from 1, repeats from 0."""

    run: str
    point: int
    repeat: int
    settings: Mapping[str, Any]
    error: str | None
    reused: bool
    metrics: Mapping[str, Any] = field(repr=False)
    scenario_json: str = field(repr=False)
    summary_json: str | None = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether it has a result."""
        return self.error is None

    @cached_property
    def summary(self) -> Summary:
        """Its metrics. Raises `SweepError` if the run failed."""
        if self.summary_json is None:
            raise SweepError(f"point {self.point}, repeat {self.repeat}: {self.error}")
        return Summary.from_dict(json.loads(self.summary_json))

    @cached_property
    def scenario(self) -> Scenario:
        """Its scenario."""
        return Scenario(json.loads(self.scenario_json))


class Sweep:
    """A sweep and its folder. Iterating over it runs what is missing, and yields every run as it finishes, known runs first."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        *,
        where: "str | Client | None" = None,
        workers: int = 0,
        retry_failed: bool = False,
        until: str | None = None,
        max_repeat: int | None = None,
        isolate: bool = False,
        kept: bool = False,
    ) -> None:
        self.scenario = scenario
        self.folder = folder
        # The identities of the runs that are used whatever code made them, by their scenarios.
        self._kept: dict[str, str] = {}
        if kept and folder.exists():
            index = Dataset(folder).index(long=True)
            self._kept = {} if index.is_empty() else dict(index.select("scenario", "run").iter_rows())
        self.total = self.done = self.reused = self.failed = 0
        # What was missing in the folder when the sweep began. These runs are repeated.
        self.losses: list[Loss] = []
        engines = {str(scenario.document["engine"]), *values_of(scenario.document.get("sweep", {}), "engine")}
        if "linux" in engines and where is not None:
            raise _core.ScenarioError(
                "engine: expected sim or model on a cluster, found linux, which needs this machine's kernel"
            )
        # Runs on the kernel are in real time. In parallel they would contend for the processors.
        if "linux" in engines and workers > 1:
            raise _core.ScenarioError(f"workers: expected 1 with the linux engine, found {workers}")
        self._where, self._workers = where, workers or ("linux" in engines)
        self._retry_failed, self._isolate = retry_failed, isolate
        self._tight = [] if until is None else Tight.parse(until)
        if until is not None and max_repeat is None:
            raise _core.ScenarioError("max_repeat: expected a number with until, found none")
        self._repeats = self.scenario.repeats
        self._most = self._repeats
        if max_repeat is not None:
            if max_repeat < 1:
                raise _core.ScenarioError(f"max_repeat: expected 1 or more, found {max_repeat}")
            self._repeats = min(max(self._repeats, FIRST_LOOK), max_repeat) if self._tight else self._repeats
            self._most = max(max_repeat, self._repeats)
        sweep = scenario.document.get("sweep", {})
        self._settings = swept(sweep)
        self._kinds = {key: kind_of(values_of(sweep, key)) for key in self._settings}
        self._described: dict[int, dict[str, Any]] = {}
        self._not_metrics: set[str] = set()
        # For each point: the samples of the metrics in `until`, by repeat, and the number of unfinished runs.
        self._samples: dict[int, dict[str, dict[int, Any]]] = {}
        self._open: dict[int, int] = {}
        self._wanted: dict[int, int] = {}

    def __repr__(self) -> str:
        done, total, failed = self._progress()
        runs = f"{done} of {total} runs done{f', {failed} failed' if failed else ''}"
        return f"<Sweep of {', '.join(self._settings)}: {self.points} points in {self.folder}, {runs}>"

    def _repr_html_(self) -> str:
        if not self._progress()[0]:
            return notebook.shown(self.scenario.name, [repr(self)[1:-1], self.scenario.outline])
        parts = [
            *(table.to_html() for table in self.tables()),
            notebook.picture(self.plot(), "Goodput over the first key"),
        ]
        return notebook.shown(self.scenario.name, [repr(self)[1:-1], self.scenario.outline], *parts)

    @property
    def points(self) -> int:
        """The number of points, without repeats."""
        return self.scenario.points

    def _progress(self) -> tuple[int, int, int]:
        """How many runs are done, of how many, and how many failed; before the sweep begins, those that its folder has."""
        if self.total:
            return self.done, self.total, self.failed
        data = Dataset(self.folder)
        known: dict[str, str] = {}
        # A sweep that has begun repeats what is lost.
        with suppress(SweepError):
            data.description()
            known = {row["run"]: row["status"] for row in data.index().iter_rows(named=True)}
        every = product(range(self.points), range(self._repeats)) if known else ()
        found = [known[run] for point, repeat in every if (run := self._run(point, repeat).run) in known]
        return len(found), self.points * self._repeats, found.count("failed")

    # Planning.

    def _run(self, point: int, repeat: int) -> PlannedRun:
        text = self.scenario.canonical(point, repeat)
        run = self._kept.get(text) or identity(text, f"{code_version()}{_kernel(text)}")
        return PlannedRun(point, repeat, run, text)

    def _describe(self, one: PlannedRun) -> dict[str, Any]:
        """The columns of the index that describe a run."""
        columns = self._described.get(one.point)
        if columns is None:
            scenario, settings = self.scenario.point(one.point, 0)
            columns = described(settings, self._kinds, scenario.document)
            self._described = {one.point: columns}
        return {
            "run": one.run,
            "point": one.point + 1,
            "repeat": one.repeat,
            "code": code_version(),
            **columns,
            "seed": (columns["seed"] + one.repeat) % 2**64,
            "scenario": one.scenario,
        }

    def _plan(self, known: Mapping[str, Mapping[str, Any]]) -> tuple[list[PlannedRun], deque[tuple[int, int]]]:
        """The runs that are known, and the point and repeat of those that are missing."""
        have: list[PlannedRun] = []
        missing: deque[tuple[int, int]] = deque()
        for point in range(self.points):
            self._wanted[point] = self._repeats
            repeat = 0
            while True:
                if repeat >= self._wanted[point]:
                    if self._open.get(point):
                        break
                    # All requested repeats are known. `until` may request more.
                    if not self._more(point):
                        extra = self._run(point, repeat)
                        if extra.run not in known:
                            break
                        # Repeats of an earlier, longer sweep are kept.
                        self._wanted[point] = repeat + 1
                one = self._run(point, repeat)
                row = known.get(one.run)
                if row is None or (row["status"] == "failed" and self._retry_failed):
                    missing.append((point, repeat))
                    self._open[point] = self._open.get(point, 0) + 1
                else:
                    have.append(one)
                    self._note(point, repeat, row)
                repeat += 1
        return have, missing

    def _note(self, point: int, repeat: int, row: Mapping[str, Any]) -> None:
        for tight in self._tight:
            if row["status"] == "ok":
                column = names.find(tight.metric, {key: names.short_metric(key) for key in row}, "until: ci()")
                self._samples.setdefault(point, {}).setdefault(tight.metric, {})[repeat] = row[column]

    def _more(self, point: int) -> bool:
        """Whether the intervals of a point whose runs are all done require more repeats. Their number is then in `_wanted`."""
        have = self._wanted[point]
        if not self._tight or have >= self._most:
            return False
        wanted = have
        for tight in self._tight:
            samples = self._samples.get(point, {}).get(tight.metric, {})
            estimate = Estimate.of([samples.get(repeat) for repeat in range(have)])
            if not tight.holds(estimate):
                wanted = max(wanted, tight.repeats(estimate))
        self._wanted[point] = min(wanted, self._most)
        return wanted > have

    def _finished(self, one: PlannedRun, row: Mapping[str, Any]) -> list[tuple[int, int]]:
        """Record a finished run, and return the further runs that it makes necessary."""
        self._note(one.point, one.repeat, row)
        self._open[one.point] -= 1
        have = self._wanted[one.point]
        if self._open[one.point] or not self._more(one.point):
            return []
        more = [(one.point, repeat) for repeat in range(have, self._wanted[one.point])]
        self._open[one.point] = len(more)
        return more

    # The loop.

    def __iter__(self) -> Generator[SweepRun]:
        with ExitStack() as stack:
            out = stack.enter_context(writer(self.folder))
            have, missing = self._begin(out)
            self.total, self.done, self.reused, self.failed = len(have) + len(missing), len(have), len(have), 0
            yield from self._known(out)
            if missing:
                yield from self._run_missing(out, missing)
            out.finish()

    def _begin(self, out: Writer) -> tuple[list[PlannedRun], deque[tuple[int, int]]]:
        known, self.losses = out.known()
        rows: dict[str, dict[str, Any]] = {}
        if not known.is_empty():
            needed = known if self._tight else known.select("run", "status")
            rows = {row["run"]: row for row in needed.iter_rows(named=True)}
        have, missing = self._plan(rows)
        described = [self._describe(one) for one in have]
        frame = pl.DataFrame(described, None if described else {"run": pl.String}, infer_schema_length=None)
        first = self._describe(self._run(0, 0))
        self._not_metrics = {*first, *names.OF_A_RUN}
        usual = [key for key in first if key not in names.OF_A_RUN and key not in self._settings]
        out.begin(
            {
                "name": self.scenario.name,
                "code": code_version(),
                "points": self.points,
                "settings": self._settings,
                "described": usual,
                "scenario": self.scenario.document,
            },
            known,
            frame,
        )
        return have, missing

    def _known(self, out: Writer) -> Iterator[SweepRun]:
        index = out.index(long=True)
        for rows in index.iter_slices(1000):
            for row in rows.iter_rows(named=True):
                self.failed += row["status"] == "failed"
                yield self._result(row, reused=True)

    def _result(self, row: Mapping[str, Any], *, reused: bool) -> SweepRun:
        return SweepRun(
            run=row["run"],
            point=row["point"],
            repeat=row["repeat"],
            settings={key: row[key] for key in self._settings},
            error=row["error"],
            reused=reused,
            metrics={key: value for key, value in row.items() if key not in self._not_metrics},
            scenario_json=row["scenario"],
            summary_json=row.get("summary"),
        )

    def _run_missing(self, out: Writer, missing: deque[tuple[int, int]]) -> Iterator[SweepRun]:
        if not self._isolate:
            try_out(self._with_foreign(point for point, _ in missing))
        pool = scheduler(self._where, self._workers, isolate=self._isolate)
        waiting = Waiting(self._run, missing)
        sent: dict[int, list[PlannedRun]] = {}
        number, at_once, flushed = 0, True, time.monotonic()
        try:
            while waiting or sent:
                while waiting and len(sent) < (1 if waiting.suspects else 2 * pool.workers()):
                    number += 1
                    sent[number] = waiting.batch(pool.workers())
                    pool.submit(number, [(one.run, one.scenario) for one in sent[number]])
                taken = []
                for which, outcome in pool.finished():
                    taken += self._take(which, sent[which], outcome, waiting, out)
                    pool.forget(which)
                    del sent[which]
                # The whole batch is recorded before any run is yielded, because the caller may stop here.
                yield from taken
                if out.waiting_bytes > FLUSH_BYTES or time.monotonic() - flushed > FLUSH_S:
                    out.flush()
                    flushed = time.monotonic()
            at_once = False
        finally:
            try:
                for which, batch in pool.close(at_once=at_once):
                    self._take(which, sent[which], batch, waiting, out)
            finally:
                # Finished runs are kept, whatever stopped the loop.
                out.flush()

    def _with_foreign(self, points: Iterable[int]) -> Iterator[Scenario]:
        """The scenarios of points, as long as the sweep names algorithms from outside that none of them had."""
        left = {*foreign.used(self.scenario.document)} if foreign.mentioned(self.scenario.to_json()) else set()
        for point in dict.fromkeys(points):
            if not left:
                return
            scenario = Scenario(self.scenario.point(point, 0)[0])
            left -= {*foreign.used(scenario.document)}
            yield scenario

    def _take(
        self, number: int, runs: list[PlannedRun], outcome: Batch | Exception, waiting: Waiting, out: Writer
    ) -> list[SweepRun]:
        """Record the results of a batch. If the sweep was stopped, the batch has the results of its first runs only."""
        if isinstance(outcome, Exception):
            if fatal(outcome):
                raise SweepError(f"{span(one.point + 1 for one in runs)}: {outcome}") from outcome
            if not waiting.convicts(runs):
                return []
            kind, told = type(outcome).__name__, str(outcome)
            reason = f"{kind}: {told}" if told else kind
            batch = Batch([{"run": runs[0].run, "status": "failed", "error": reason}], {})
        else:
            batch = outcome
            waiting.cleared(runs)
        runs = runs[: len(batch.rows)]
        described = [self._describe(one) for one in runs]
        out.add(number, batch, described)
        taken = []
        for one, row, more in zip(runs, batch.rows, described, strict=True):
            waiting.note(work_s(row, more["engine"]))
            extra = self._finished(one, row)
            waiting.missing.extend(extra)
            self.total += len(extra)
            self.done += 1
            self.failed += row["status"] == "failed"
            taken.append(self._result({**more, **row}, reused=False))
        return taken

    def run(self, progress: Callable[["Sweep"], object] | None = None) -> "Sweep":
        """Run what is missing. `progress` is called after each run; without it, a bar is shown as by `elephan.run`."""
        with (
            watched(self.scenario.name, None if progress is None else lambda _: None) as told,
            closing(iter(self)) as runs,
        ):
            for _ in runs:
                if progress is not None:
                    progress(self)
                elif told is not None:
                    told(self.done / self.total)
        return self

    # The results.

    def to_polars(self, rows: Literal["runs", "flows"] = "runs") -> pl.DataFrame:
        """A row for each run, or for each flow of each run, in the order of the points.

        Columns of runs have short names, as in `elephan sweep query`; values are in SI units. Those of flows are the
        settings and the figures of a flow, whose names have the units. Flows count from 0.
        """
        data = Dataset(self.folder)
        return data.runs() if rows == "runs" else data.flow_summaries()

    def to_pandas(self, rows: Literal["runs", "flows"] = "runs") -> Any:
        """As `to_polars`, for pandas, which has to be installed. Raises `FailedError` if it is not."""
        return as_pandas(self.to_polars(rows))

    def to_xarray(self) -> "xr.Dataset":
        """The metrics as arrays whose dimensions are the keys of the sweep, and `repeat`: as `Dataset.to_xarray`."""
        return Dataset(self.folder).to_xarray()

    def tables(self, **chosen: Any) -> list[Table]:
        """Estimates over repeats by setting, as tables; `chosen` is as for `elephan.studies.sweeps.table`."""
        return table(self.folder, **chosen)

    def plot(self, metric: str = "goodput", over: Sequence[str] | str | None = None, **chosen: Any) -> Figure:
        """Plot a metric over a key, another metric, or two keys; `chosen` is as for `elephan.studies.sweeps.plot`."""
        return plot(self.folder, metric, over, **chosen)

    def samples(self, name: str = "flows") -> pl.LazyFrame:
        """The samples of all runs: `flows`, `queues`, `transfers`, ... Join them to `to_polars()` on `run`."""
        paths = Dataset(self.folder).samples(name)
        if not paths:
            return pl.LazyFrame(schema={"run": pl.String})
        parts = pl.scan_parquet(paths, missing_columns="insert")
        return parts.with_columns(pl.col("run").cast(pl.String))


def sweep(
    scenario: Source,
    out: str | Path | None = None,
    *,
    scheduler: "str | Client | None" = None,
    workers: int = 0,
    retry_failed: bool = False,
    until: str | None = None,
    max_repeat: int | None = None,
    isolate: bool = False,
    kept: bool = False,
) -> Sweep:
    """Make a sweep from a scenario, with results in the folder `out` (by default `results/NAME`).

    The scenario may be a file, the name of an example or a document, as for `load`. Nothing is run until the sweep is iterated,
    which yields each run as it finishes, or until `run()` is called. Results that the folder already has are not computed
    again. `scheduler` is the address of a Dask scheduler, or a client; otherwise `workers` threads (0: all cores) run the
    sweep. `retry_failed` repeats failed runs. `until="ci(fairness) < 5%"` adds repeats to each point, up to `max_repeat`, until
    half of the 95 % interval is that small. Each algorithm from outside is tried for a moment before anything
    runs; what it raises then is raised, and what it raises later is the error of its run. `isolate` gives each run a process of
    its own, as in `run`, and nothing is tried. With `kept` the runs that the folder has are used whatever code made them, and
    whatever image of a kernel. Raises `ScenarioError` if a point is invalid.
    """
    scenario = load(scenario)
    folder = Path(out) if out is not None else default(scenario.name)
    return Sweep(
        scenario,
        folder,
        where=scheduler,
        workers=workers,
        retry_failed=retry_failed,
        until=until,
        max_repeat=max_repeat,
        isolate=isolate,
        kept=kept,
    )
