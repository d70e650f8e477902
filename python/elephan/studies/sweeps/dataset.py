"""The folder of a sweep: a partitioned Parquet dataset that only grows by whole parts.

- `sweep.json`: the scenario with its sweep, and the code that ran it.
- `index.parquet`: a row for each run: identity, settings, metrics, error. While a sweep goes on, newer rows are in `index/`.
- `flows/`, `queues/`, `transfers/`: samples, in parts; their first column is the run's identity.
- `superseded.parquet`: rows of runs that were of this sweep before it was changed; found again when it is changed back.

That of the index comes last, so that a part counts as a whole or not at all. It records the files of the part, with bytes and
rows: what was removed or cut off since is found when the folder is opened. A sweep runs again what was in it.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError, __version__
from elephan.api.run import TABLES, write_json
from elephan.base.documents import damage, inside
from elephan.base.errors import FailedError
from elephan.base.folders import clear, new_file, only_writer, own_or_empty, read_document
from elephan.studies.sweeps import names
from elephan.studies.sweeps.worker import Batch

INDEX, SUPERSEDED, DESCRIPTION = "index.parquet", "superseded.parquet", "sweep.json"
# Columns that are text even where a part has none of it.
TEXT = {"run", "engine", "code", "status", "error", "summary", "scenario"}
# Columns of every row.
NEEDED = {"run", "point", "repeat", "part", "status"}
# What is long, and seldom wanted.
LONG = ("summary", "scenario")
PART = re.compile(r"part-\d{6,}\.parquet", re.ASCII)
# Key of what a file of the index says of itself, besides its rows: the files of parts, and the columns that tell runs.
RECORD = b"elephan"
# Of files that are missing so many are named.
MOST_NAMED = 5


class SweepError(FailedError):
    """Why a sweep stopped. What had finished before is in its folder."""


class DamagedError(SweepError):
    """A file of the index that cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, f"expected Parquet, found what cannot be read ({reason})"
        super().__init__(f"{path}: {self.reason}; sweep again to run anew what was in it")


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


@dataclass(frozen=True)
class Loss:
    """A file of a sweep's folder that is not there as it was written, and the points whose runs it had."""

    path: Path
    reason: str
    what: str
    points: Sequence[int]
    part: int | None = None

    def __str__(self) -> str:
        of = f" of {span(self.points)}" if self.points else ""
        return f"{self.path}: {self.reason}: the {self.what}{of} are missing"


def named(losses: Sequence[Loss], then: str) -> list[str]:
    """A line for each of the first few losses, which ends with what to do."""
    lines = [f"{loss}; {then}" for loss in losses[:MOST_NAMED]]
    return lines if len(losses) <= MOST_NAMED else [*lines, f"and {len(losses) - MOST_NAMED} files more; {then}"]


class Dataset:
    """A sweep's folder, for reading."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def description(self) -> dict[str, Any]:
        """What the folder holds. Raises `SweepError` where it is none of a sweep."""
        try:
            return read_document(self.folder / DESCRIPTION)
        except (FileNotFoundError, NotADirectoryError):
            raise SweepError(f"{self.folder}: expected the folder of a sweep with {DESCRIPTION}, found none") from None
        except ScenarioError as error:
            raise SweepError(str(error)) from error

    def index(self, *, long: bool = False) -> pl.DataFrame:
        """A row for each run, in the order of the points; with the summaries and scenarios as JSON if `long`."""
        return self._index(long=long)[0]

    def _index(self, *, long: bool) -> tuple[pl.DataFrame, "_Records"]:
        # A sweep that ends meanwhile puts the parts into the index, and then removes them: so they come first.
        newer = [found for path in self._parts("index") if (found := _read(path, long=long)) is not None]
        older = _read(inside(self.folder, INDEX), long=long)
        files = newer if older is None else [older, *newer]
        frame = _joined([rows for rows, _ in files])
        records = _Records.of([record for _, record in files])
        return frame if frame.is_empty() else frame.sort("point", "repeat"), records

    def index_parts(self) -> list[Path]:
        """The files of the index: the newest last."""
        return [path for path in (inside(self.folder, INDEX), *self._parts("index")) if path.exists()]

    def short_names(self, frame: pl.DataFrame) -> dict[str, str]:
        """The short name of each column of the index that has one."""
        description = self.description()
        with damage(self.folder / DESCRIPTION):
            return names.short_names(frame.columns, description["settings"], description["described"])

    def runs(self) -> pl.DataFrame:
        """The index with short names: `cc`, `rtt`, `goodput`, `fairness`, ..."""
        self.description()
        frame = self.index()
        short = self.short_names(frame)
        return frame.rename({column: name for column, name in short.items() if column in frame.columns})

    def samples(self, name: str) -> list[Path]:
        """The parts of `flows`, `queues` or `transfers` that count. Raises `SweepError` where one is missing or not whole."""
        index, records = self._index(long=False)
        known = set() if index.is_empty() else set(index["part"].unique())
        for loss in self._lost_files(index, records):
            if loss.path.parent.name == name:
                raise SweepError(f"{loss}; sweep again to run them")
        return [path for path in self._parts(name) if _number(path) in known]

    def losses(self) -> list[Loss]:
        """What is missing or not whole."""
        index, records = self._index(long=False)
        gone = [path for name in self.description().get("files", []) if not (path := self.folder / name).exists()]
        lost = [Loss(path, "expected it, found none", "runs in it", ()) for path in gone]
        return [*lost, *([] if gone else self._gaps(records)), *self._lost_files(index, records)]

    def _gaps(self, records: "_Records") -> list[Loss]:
        """Parts of the index that were there, since later ones are."""
        if not records.are_complete or not records.files:
            return []
        gaps = set(range(1, max(records.files) + 1)) - records.files.keys()
        paths = [self.folder / "index" / _file(part) for part in sorted(gaps)]
        return [Loss(path, "expected it, found none", "runs in it", ()) for path in paths]

    def _lost_files(self, rows: pl.DataFrame, records: "_Records", *, deep: bool = False) -> list[Loss]:
        """The samples of rows that are missing or not whole; `deep` also reads what the files say of themselves."""
        if rows.is_empty():
            return []
        lost = []
        for part in sorted(set(rows["part"].unique()) & records.files.keys()):
            for name, (size, count) in records.files[part].items():
                path = self.folder / name / _file(part)
                if reason := _wrong(path, size, count if deep else None):
                    points = rows.filter(pl.col("part") == part)["point"].to_list()
                    lost.append(Loss(path, reason, name, points, part))
        return lost

    def points_of(self, path: Path) -> str:
        """The points whose samples are in a part."""
        return span(self.index().filter(pl.col("part") == _number(path))["point"])

    def _parts(self, name: str) -> list[Path]:
        found = sorted(path.name for path in (self.folder / name).glob("part-*.parquet") if PART.fullmatch(path.name))
        return [inside(self.folder, f"{name}/{file}") for file in found]


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("part-"))


def _file(part: int) -> str:
    return f"part-{part:06}.parquet"


# The files of a part by their folder: bytes and rows.
Files = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class _Records:
    """What files of the index say besides their rows."""

    files: dict[int, Files]
    described: set[str]
    # Whether all of the files say something: those of earlier versions do not.
    are_complete: bool

    @classmethod
    def of(cls, found: Sequence[Mapping[str, Any] | None]) -> "_Records":
        files: dict[int, Files] = {}
        described: set[str] = set()
        for record in found:
            if record is not None:
                files |= {int(part): names for part, names in record["files"].items()}
                described |= set(record["described"])
        return cls(files, described, None not in found)


def _read(path: Path, *, long: bool) -> tuple[pl.DataFrame, dict[str, Any] | None] | None:
    """The rows of a file of the index and its record; none where there is no file. Raises `DamagedError`."""
    try:
        schema = pq.read_schema(path)
        frame = pl.read_parquet(path, columns=[c for c in schema.names if long or c not in LONG], glob=False)
        record = json.loads((schema.metadata or {}).get(RECORD, b"null"))
        missing = () if frame.is_empty() else NEEDED - set(schema.names)
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, pl.exceptions.PolarsError, ValueError) as error:
        raise DamagedError(path, str(error).strip().splitlines()[0]) from error
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror or error}") from error
    if missing:
        raise DamagedError(path, f"no column {min(missing)}")
    return frame, record


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not frames:
        return pl.DataFrame()
    return pl.concat(frames, how="diagonal_relaxed").unique("run", keep="last", maintain_order=True)


def _wrong(path: Path, size: int, count: int | None) -> str | None:
    """What is wrong with a file that had so many bytes and, where that is to be looked at, rows."""
    try:
        found = path.stat().st_size
        if found != size:
            return f"expected {size} bytes, found {found}"
        if count is not None and (rows := pq.read_metadata(path).num_rows) != count:
            return f"expected {count} rows, found {rows}"
    except (FileNotFoundError, NotADirectoryError):
        return f"expected {size} bytes, found none"
    except pa.ArrowInvalid as error:
        return f"expected Parquet, found what cannot be read ({str(error).strip().splitlines()[0]})"
    return None


class Writer(Dataset):
    """A sweep's folder, for the one that writes it.

    Rows and samples are gathered by `add` and written by `flush`. Raises `SweepError` where another writes it already.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._waiting: list[tuple[list[dict[str, Any]], dict[str, pa.Table]]] = []
        self.waiting_bytes = 0
        own_or_empty(self.folder, DESCRIPTION)
        self._stack = ExitStack()
        try:
            self._stack.enter_context(only_writer(self.folder, "sweep"))
        except FileExistsError as error:
            raise SweepError(str(error)) from error
        for name in (".", "index", *TABLES):
            if (self.folder / name).is_dir():
                clear(self.folder / name)

    def close(self) -> None:
        """Let others write."""
        self._stack.close()

    def known(self) -> tuple[pl.DataFrame, list[Loss]]:
        """Every row that was ever of this sweep and is still whole, samples included; and what is not."""
        lost = []
        found: list[tuple[Path, pl.DataFrame, dict[str, Any] | None]] = []
        for path in [inside(self.folder, SUPERSEDED), inside(self.folder, INDEX), *self._parts("index")]:
            try:
                if (one := _read(path, long=True)) is not None:
                    found.append((path, *one))
                elif self._was_there(path):
                    lost.append(Loss(path, "expected it, found none", "runs in it", ()))
            except DamagedError as error:
                lost.append(Loss(path, error.reason, "runs in it", ()))
                # Its parts cannot be told from those that were never finished.
                path.unlink()
        records = _Records.of([record for _, _, record in found])
        frame = _joined([rows for _, rows, _ in found])
        last = max(records.files, default=0)
        if not lost:
            lost += self._gaps(records)
            # A sweep that was killed leaves samples of one part without an index, not of more.
            top = max((_number(path) for name in TABLES for path in self._parts(name)), default=0)
            for part in range(last + 1, top) if records.are_complete else ():
                path = self.folder / "index" / _file(part)
                lost.append(Loss(path, "expected it, found none", "runs in it", ()))
        lost_files = self._lost_files(frame, records, deep=True)
        gone = {loss.part for loss in lost_files}
        if gone:
            frame = frame.filter(~pl.col("part").is_in(list(gone)))
        self._files = {part: {} if part in gone else names for part, names in records.files.items()}
        self._told = records.described
        self._aside = {run for path, rows, _ in found if path.name == SUPERSEDED for run in rows["run"]}
        return frame, lost + lost_files

    def _was_there(self, path: Path) -> bool:
        return (self.folder / DESCRIPTION).exists() and path.name in self.description().get("files", [])

    def begin(self, description: Mapping[str, Any], known: pl.DataFrame, described: pl.DataFrame) -> None:
        """Make the index one of the rows of `described`, which tell run and settings, as far as they are in `known`.

        The other known rows are put aside. Samples of parts that do not count are removed.
        """
        parts: set[int] = set()
        self._files = {} if known.is_empty() else self._files
        self._described = sorted({*described.columns, *description["settings"], *description["described"]} - {"run"})
        self._part = max(self._files, default=0)
        if not known.is_empty():
            before = self.description()
            self._part = max(self._part, int(known["part"].max() or 0))  # type: ignore[arg-type]
            parts = set(known["part"])
            # What an earlier version wrote has no record: from now on, it is as it was found.
            for part in range(1, self._part + 1):
                self._files.setdefault(part, self._found(part) if part in parts else {})
            self._told |= {*before["settings"], *before["described"], *self._described}
            # First, and with those that come back from there: at no moment is a row nowhere.
            members, aside = set(described["run"]), self._aside
            others = known.filter([run in aside or run not in members for run in known["run"]])
            if set(others["run"]) != aside:
                self._replace(self.folder / SUPERSEDED, others.to_arrow(), self._files)
            result = known.drop(*self._told, strict=False)
            current = described.join(result, on="run", how="inner", maintain_order="left")
            self._replace(self.folder / INDEX, current.to_arrow(), self._files)
        else:
            for name in (INDEX, SUPERSEDED):
                (self.folder / name).unlink(missing_ok=True)
        self._description = dict(description)
        self._describe()
        for path in self._parts("index"):
            path.unlink()
        for name in TABLES:
            for path in self._parts(name):
                if _number(path) not in parts:
                    path.unlink()

    def _found(self, part: int) -> Files:
        """The files of a part as they are."""
        found = {}
        for name in TABLES:
            path = self.folder / name / _file(part)
            with contextlib.suppress(FileNotFoundError, pa.ArrowInvalid):
                found[name] = path.stat().st_size, pq.read_metadata(path).num_rows
        return found

    def _describe(self) -> None:
        """Write the document, with the files of the index that are there from now on."""
        files = [name for name in (INDEX, SUPERSEDED) if (self.folder / name).exists()]
        with new_file(self.folder / DESCRIPTION) as new:
            write_json(new, {"elephan": __version__, **self._description, "files": files})

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
        files: dict[str, tuple[int, int]] = {}
        try:
            for name in TABLES:
                if tables := [samples[name] for _, samples in self._waiting if name in samples]:
                    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
                    path = self.folder / name / _file(part)
                    # Before it is there: what is not finished is removed.
                    files[name] = 0, table.num_rows
                    self._replace(path, table)
                    files[name] = path.stat().st_size, table.num_rows
            rows = [{**row, "part": part} for row in rows]
            self._replace(self.folder / "index" / _file(part), _table(rows), {part: files})
        except OSError as error:
            for name in files:
                (self.folder / name / _file(part)).unlink(missing_ok=True)
            points = span(row["point"] for row in rows)
            raise SweepError(
                f"{self.folder}: {error.strerror or error}, while writing {points} ({self.waiting} runs, which are lost); "
                f"everything before is safe: sweep again to go on"
            ) from error
        self._files[part] = files
        self._part, self._waiting, self.waiting_bytes = part, [], 0

    def finish(self) -> None:
        """Put the newer rows of the index into `index.parquet`."""
        parts = self._parts("index")
        if parts:
            self._replace(self.folder / INDEX, self.index(long=True).to_arrow(), self._files)
            self._describe()
            for path in parts:
                path.unlink()
            with contextlib.suppress(OSError):
                (self.folder / "index").rmdir()

    def _replace(self, path: Path, table: pa.Table, files: Mapping[int, Files] | None = None) -> None:
        if files is not None:
            record = json.dumps({"files": files, "described": sorted(self._described)})
            table = table.replace_schema_metadata({RECORD: record})
        # A file of Python's own tells in plain words what the disk said.
        with new_file(path) as new, new.open("wb") as file:
            pq.write_table(table, file, compression="zstd")


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
