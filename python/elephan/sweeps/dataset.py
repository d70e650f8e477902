"""The folder of a sweep: a partitioned Parquet dataset that only grows by whole parts.

- `sweep.json`: the scenario with its sweep, and the code that ran it.
- `index.parquet`: a row for each run: identity, settings, metrics, error. While a sweep goes on, newer rows are in `index/`.
- `flows/`, `queues/`, `transfers/`: samples, in parts; their first column is the run's identity.
- `superseded.parquet`: rows of runs that were of this sweep before it was changed; found again when it is changed back.

A part is written under another name and renamed; that of the index comes last, so that a part counts as a whole or not at all.
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError
from elephan.reading import inside, read_json
from elephan.results import TABLES, write_json
from elephan.sweeps import names
from elephan.sweeps.worker import Batch

INDEX, SUPERSEDED, DESCRIPTION = "index.parquet", "superseded.parquet", "sweep.json"
# Columns that are text even where a part has none of it.
TEXT = {"run", "engine", "code", "status", "error", "summary", "scenario"}
# Columns of every row.
NEEDED = {"run", "point", "repeat", "status"}
# What a description has at least, for those who read it.
KEYS = {"name": str, "code": str, "settings": list, "described": list, "scenario": dict}
PART = re.compile(r"part-\d{6,}\.parquet", re.ASCII)
# What is long, and seldom wanted.
LONG = ("summary", "scenario")


class SweepError(RuntimeError):
    """Why a sweep stopped. What had finished before is in its folder."""


def span(points: Iterable[int]) -> str:
    """Points as people number them: `point 4`, `points 4 to 9`, `points 4, 6 and 9`."""
    found = sorted(set(points))
    if not found:
        return "no point"
    if len(found) == 1:
        return f"point {found[0]}"
    if found[-1] - found[0] + 1 == len(found) > 2:
        return f"points {found[0]} to {found[-1]}"
    first, last = (found[:-1], found[-1]) if len(found) <= 8 else (found[:7], f"{len(found) - 7} more")
    return f"points {', '.join(map(str, first))} and {last}"


class Dataset:
    """A sweep's folder, for reading."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def description(self) -> dict[str, Any]:
        """What the folder holds. Raises `SweepError` where it is none of a sweep."""
        path = self.folder / DESCRIPTION
        try:
            description = read_json(self.folder, DESCRIPTION)
        except (FileNotFoundError, NotADirectoryError):
            raise SweepError(f"{self.folder}: expected the folder of a sweep with {DESCRIPTION}, found none") from None
        except ScenarioError as error:
            raise SweepError(str(error)) from error
        for key, kind in KEYS.items():
            if not isinstance(description.get(key), kind):
                raise SweepError(f"{path}: expected {key} as a sweep writes it, found {description.get(key)!r:.40}")
        return description

    def index(self, *, long: bool = False) -> pl.DataFrame:
        """A row for each run, in the order of the points; with the summaries and scenarios as JSON if `long`."""
        frame = self._rows(self.index_parts(), long=long)
        return frame if frame.is_empty() else frame.sort("point", "repeat")

    def index_parts(self) -> list[Path]:
        """The files of the index: the newest last."""
        return [path for path in (inside(self.folder, INDEX), *self._parts("index")) if path.exists()]

    def short_names(self, frame: pl.DataFrame) -> dict[str, str]:
        """The short name of each column of the index that has one."""
        description = self.description()
        return names.short_names(frame.columns, description["settings"], description["described"])

    def runs(self) -> pl.DataFrame:
        """The index with short names: `cc`, `rtt`, `goodput`, `fairness`, ..."""
        self.description()
        frame = self.index()
        short = self.short_names(frame)
        return frame.rename({column: name for column, name in short.items() if column in frame.columns})

    def samples(self, name: str) -> list[Path]:
        """The parts of `flows`, `queues` or `transfers` that count."""
        index = self.index()
        known = set() if index.is_empty() else set(index["part"].unique())
        return [path for path in self._parts(name) if _number(path) in known]

    def points_of(self, path: Path) -> str:
        """The points whose samples are in a part."""
        return span(self.index().filter(pl.col("part") == _number(path))["point"])

    def _parts(self, name: str) -> list[Path]:
        found = sorted(path.name for path in (self.folder / name).glob("part-*.parquet") if PART.fullmatch(path.name))
        return [inside(self.folder, f"{name}/{file}") for file in found]

    @staticmethod
    def _rows(paths: Iterable[Path], *, long: bool) -> pl.DataFrame:
        frames = []
        for path in paths:
            try:
                present = pq.read_schema(path).names
                if missing := ", ".join(sorted(NEEDED - set(present))):
                    raise pa.ArrowInvalid(f"no column {missing}")
                frames.append(pl.read_parquet(path, columns=[c for c in present if long or c not in LONG], glob=False))
            except (pa.ArrowInvalid, pl.exceptions.PolarsError, OSError) as error:
                reason = str(error).strip().splitlines()[0]
                raise SweepError(
                    f"{path}: expected Parquet, found what cannot be read ({reason}); "
                    "remove it, and sweep again to compute its runs anew"
                ) from error
        if not frames:
            return pl.DataFrame()
        return pl.concat(frames, how="diagonal_relaxed").unique("run", keep="last", maintain_order=True)


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("part-"))


class Writer(Dataset):
    """A sweep's folder, for the one that writes it.

    Rows and samples are gathered by `add` and written by `flush`. Raises `SweepError` where another writes it already.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._waiting: list[tuple[list[dict[str, Any]], dict[str, pa.Table]]] = []
        self.waiting_bytes = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise SweepError(f"{folder}: expected no other sweep that writes here, found one") from error
        for path in self.folder.rglob("*.tmp"):
            path.unlink()

    def close(self) -> None:
        """Let others write."""
        self._lock.close()

    def known(self) -> pl.DataFrame:
        """Every row that was ever of this sweep."""
        aside = inside(self.folder, SUPERSEDED)
        return self._rows([*([aside] if aside.exists() else []), *self.index_parts()], long=True)

    def begin(self, description: Mapping[str, Any], known: pl.DataFrame, described: pl.DataFrame) -> None:
        """Make the index one of the rows of `described`, which tell run and settings, as far as they are known.

        The other known rows are put aside. Samples of parts that were not finished are removed.
        """
        number = 0
        parts: set[int] = set()
        if not known.is_empty():
            before = self.description()
            number = int(known["part"].max() or 0)  # type: ignore[arg-type]
            parts = set(known["part"])
            members = described["run"].implode()
            others = known.filter(~pl.col("run").is_in(members))
            if not others.is_empty():
                self._replace(self.folder / SUPERSEDED, others.to_arrow())
            old = {*before["settings"], *before["described"], *described.columns} - {"run"}
            result = known.drop(*old, strict=False)
            current = described.join(result, on="run", how="inner", maintain_order="left")
            write_json(self.folder / f"{DESCRIPTION}.tmp", description)
            self._replace(self.folder / INDEX, current.to_arrow())
        else:
            write_json(self.folder / f"{DESCRIPTION}.tmp", description)
        (self.folder / f"{DESCRIPTION}.tmp").rename(self.folder / DESCRIPTION)
        for path in self._parts("index"):
            path.unlink()
        for name in TABLES:
            for path in self._parts(name):
                if _number(path) not in parts:
                    path.unlink()
        self._part = number

    def add(self, batch: Batch, described: Sequence[Mapping[str, Any]]) -> None:
        """Take the runs of a batch; `described` tells point and settings of each."""
        rows = [{**more, **row} for row, more in zip(batch.rows, described, strict=True)]
        self.waiting_bytes += sum(table.nbytes for table in batch.samples.values())
        # At once: Ctrl-C may come at any moment, and rows without their samples would be lost for good.
        self._waiting.append((rows, batch.samples))

    @property
    def waiting(self) -> int:
        """How many runs are not written yet."""
        return sum(len(rows) for rows, _ in self._waiting)

    def flush(self) -> None:
        """Write what was gathered, as one part."""
        if not self._waiting:
            return
        rows = [row for rows, _ in self._waiting for row in rows]
        part = self._part + 1
        file = f"part-{part:06}.parquet"
        written = []
        try:
            for name in TABLES:
                if tables := [samples[name] for _, samples in self._waiting if name in samples]:
                    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
                    written.append(self.folder / name / file)
                    self._replace(written[-1], table)
            self._replace(self.folder / "index" / file, _table([{**row, "part": part} for row in rows]))
        except OSError as error:
            for path in written:
                path.unlink(missing_ok=True)
            points = span(row["point"] for row in rows)
            raise SweepError(
                f"{self.folder}: {error.strerror or error}, while writing {points} ({self.waiting} runs, which are lost); "
                f"everything before is safe: sweep again to go on"
            ) from error
        self._part, self._waiting, self.waiting_bytes = part, [], 0

    def finish(self) -> None:
        """Put the newer rows of the index into `index.parquet`."""
        parts = self._parts("index")
        if parts:
            self._replace(self.folder / INDEX, self.index(long=True).to_arrow())
            for path in parts:
                path.unlink()
            with contextlib.suppress(OSError):
                (self.folder / "index").rmdir()

    @staticmethod
    def _replace(path: Path, table: pa.Table) -> None:
        path.parent.mkdir(exist_ok=True)
        other = path.with_name(path.name + ".tmp")
        try:
            with other.open("wb") as file:
                pq.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            other.rename(path)
        except BaseException:
            other.unlink(missing_ok=True)
            raise


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    # Most rows have the same keys.
    columns = dict.fromkeys(chain.from_iterable(dict.fromkeys(map(tuple, rows))))
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        array = pa.array([row.get(column) for row in rows])
        if pa.types.is_null(array.type):
            array = array.cast(pa.string() if column in TEXT else pa.float64())
        arrays[column] = array
    return pa.table(arrays)


@contextlib.contextmanager
def writer(folder: str | Path) -> Iterator[Writer]:
    """Write a sweep's folder."""
    one = Writer(folder)
    try:
        yield one
    finally:
        one.close()
