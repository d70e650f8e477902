"""The folder of a sweep: a partitioned Parquet dataset that only grows by whole parts.

- `sweep.json`: the scenario with its sweep, and the code that ran it.
- `index.parquet`: a row for each run: identity, settings, metrics, error. During a sweep, newer rows are in `index/`.
- `flows/`, `queues/`, `transfers/`: samples, in parts. Their first column is the identity of the run.
- `superseded.parquet`: rows of runs that belonged to this sweep before it was changed. They are used again if it is changed
  back.

The index file of a part is written last, so that a part counts as a whole or not at all. It records the files of the part,
with bytes and rows, so that opening the folder detects files that were removed or truncated since. A sweep repeats their runs.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError
from elephan.api.summary import Summary
from elephan.base.documents import damage, inside
from elephan.base.errors import FailedError
from elephan.base.kinds import SWEEP
from elephan.studies.sweeps import arrays, names

if TYPE_CHECKING:
    import xarray as xr

INDEX, SUPERSEDED = "index.parquet", "superseded.parquet"
# Columns that are text, even in a part in which all their values are null.
TEXT = {"run", "engine", "code", "status", "error", "summary", "scenario"}
# Columns that every row has.
NEEDED = {"run", "point", "repeat", "part", "status"}
# Columns that are long and seldom needed.
LONG = ("summary", "scenario")
PART = re.compile(r"part-\d{6,}\.parquet", re.ASCII)
# Metadata key of an index file: the files of its parts, and the columns that describe a run.
RECORD = b"elephan"
# Maximum number of missing files that a message names.
MOST_NAMED = 5


class SweepError(FailedError):
    """The reason why a sweep stopped. Its folder has the runs that had finished."""


class DamagedError(SweepError):
    """A file of the index that cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, f"expected Parquet, found what cannot be read ({reason})"
        super().__init__(f"{path}: {self.reason}; repeat the sweep to repeat its runs")


def span(points: Iterable[int]) -> str:
    """Point numbers as text: `point 4`, `points 4 to 9`, `points 4, 6 and 9`."""
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
    """A file of a sweep's folder that is missing or was changed, and the points whose runs it had."""

    path: Path
    reason: str
    what: str
    points: Sequence[int]
    part: int | None = None

    def __str__(self) -> str:
        of = f" of {span(self.points)}" if self.points else ""
        return f"{self.path}: {self.reason}: the {self.what}{of} are missing"


def named(losses: Sequence[Loss], then: str) -> list[str]:
    """A line for each of the first few lost files; the last line says what to do."""
    lines = [f"{loss}; {then}" for loss in losses[:MOST_NAMED]]
    return lines if len(losses) <= MOST_NAMED else [*lines, f"and {len(losses) - MOST_NAMED} files more; {then}"]


class Dataset:
    """A sweep's folder, opened for reading."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<Dataset {self.folder}>"

    def description(self) -> dict[str, Any]:
        """The description of the sweep. Raises `SweepError` if the folder does not belong to a sweep."""
        try:
            return SWEEP.load(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            raise SweepError(
                f"{self.folder}: expected the folder of a sweep with {SWEEP.document}, found none"
            ) from None
        except ScenarioError as error:
            raise SweepError(str(error)) from error

    def index(self, *, long: bool = False) -> pl.DataFrame:
        """A row for each run, in the order of the points; with the summaries and scenarios as JSON if `long`."""
        return self._index(long=long)[0]

    def _index(self, *, long: bool) -> tuple[pl.DataFrame, "Records"]:
        # A sweep that ends at this moment first merges the parts into the index, and then removes them. So the parts are read
        # first.
        newer = [found for path in self._parts("index") if (found := read_index(path, long=long)) is not None]
        older = read_index(inside(self.folder, INDEX), long=long)
        files = newer if older is None else [older, *newer]
        frame = joined([rows for rows, _ in files])
        records = Records.of([record for _, record in files])
        return frame if frame.is_empty() else frame.sort("point", "repeat"), records

    def index_parts(self) -> list[Path]:
        """The files of the index, the newest last."""
        return [path for path in (inside(self.folder, INDEX), *self._parts("index")) if path.exists()]

    def short_names(self, frame: pl.DataFrame) -> dict[str, str]:
        """The short name of each column of the index that has one."""
        description = self.description()
        with damage(self.folder / SWEEP.document):
            return names.short_names(frame.columns, description["settings"], description["described"])

    def runs(self) -> pl.DataFrame:
        """The index with short names: `cc`, `rtt`, `goodput`, `fairness`, ..."""
        self.description()
        frame = self.index()
        short = self.short_names(frame)
        return frame.rename({column: name for column, name in short.items() if column in frame.columns})

    def flow_summaries(self) -> pl.DataFrame:
        """A row for each flow of each run: the settings, the number of the flow from 0 on, and its figures."""
        of_a_run = ("run", "point", "repeat", "seed", *self.description()["settings"])
        index = self.index(long=True).filter(status="ok")
        rows = [
            {**{key: row[key] for key in of_a_run}, "flow": number, **flow.scalars()}
            for row in index.iter_rows(named=True)
            for number, flow in enumerate(Summary.from_dict(json.loads(row["summary"])).flows)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_xarray(self) -> "xr.Dataset":
        """The metrics of all runs as arrays of xarray, an optional package: `pip install 'elephan[xarray]'`.

        Each key of the sweep is a dimension, by its short name; the keys of `[sweep.zip]` share one, `zip`, and those of
        `[[sweep.points]]` another, `points`. The last is `repeat`, from 0 on. Coordinates are the settings; where all of a
        key are quantities of one unit, also as numbers (`rtt_s`). Values are in SI units, which the attribute `units` has;
        a run that failed, or is missing, has NaN. Raises `FailedError` if xarray is not installed, and `SweepError` for a
        folder without runs.
        """
        description, index = self.description(), self.index()
        if index.is_empty():
            raise SweepError(self.without_runs())
        return arrays.of_runs(index, description)

    def samples(self, name: str) -> list[Path]:
        """The parts of `flows`, `queues` or `transfers` that count. Raises `SweepError` if one is missing or incomplete."""
        index, records = self._index(long=False)
        known = set() if index.is_empty() else set(index["part"].unique())
        for loss in self._lost_files(index, records):
            if loss.path.parent.name == name:
                raise SweepError(f"{loss}; repeat the sweep to run them")
        return [path for path in self._parts(name) if number_of(path) in known]

    def losses(self) -> list[Loss]:
        """The files that are missing or incomplete."""
        index, records = self._index(long=False)
        gone = [path for name in self.description().get("files", []) if not (path := self.folder / name).exists()]
        lost = [Loss(path, "expected it, found none", "runs in it", ()) for path in gone]
        return [*lost, *([] if gone else self._gaps(records)), *self._lost_files(index, records)]

    def without_runs(self) -> str:
        """Why the index has no rows, for a message."""
        lost = named(self.losses(), "repeat the sweep to run them")
        return lost[0] if lost else f"{self.folder}: expected runs, found none yet"

    def _gaps(self, records: "Records") -> list[Loss]:
        """Missing parts of the index: a part with a higher number exists."""
        if not records.are_complete or not records.files:
            return []
        gaps = set(range(1, max(records.files) + 1)) - records.files.keys()
        paths = [self.folder / "index" / file_of(part) for part in sorted(gaps)]
        return [Loss(path, "expected it, found none", "runs in it", ()) for path in paths]

    def _lost_files(self, rows: pl.DataFrame, records: "Records", *, deep: bool = False) -> list[Loss]:
        """The sample files of these rows that are missing or incomplete; `deep` also reads the metadata of the files."""
        if rows.is_empty():
            return []
        lost = []
        for part in sorted(set(rows["part"].unique()) & records.files.keys()):
            for name, (size, count) in records.files[part].items():
                path = self.folder / name / file_of(part)
                if reason := wrong(path, size, count if deep else None):
                    points = rows.filter(pl.col("part") == part)["point"].to_list()
                    lost.append(Loss(path, reason, name, points, part))
        return lost

    def points_of(self, path: Path) -> str:
        """The points whose samples are in a part."""
        return span(self.index().filter(pl.col("part") == number_of(path))["point"])

    def _parts(self, name: str) -> list[Path]:
        found = sorted(path.name for path in (self.folder / name).glob("part-*.parquet") if PART.fullmatch(path.name))
        return [inside(self.folder, f"{name}/{file}") for file in found]


def number_of(path: Path) -> int:
    """The number of a part, from the name of its file."""
    return int(path.stem.removeprefix("part-"))


def file_of(part: int) -> str:
    """The file name of a part."""
    return f"part-{part:06}.parquet"


# The files of a part by their folder: bytes and rows.
Files = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Records:
    """The metadata of index files, in addition to their rows."""

    files: dict[int, Files]
    described: set[str]
    # Whether all of the files have a record. Files of earlier versions do not.
    are_complete: bool

    @classmethod
    def of(cls, found: Sequence[Mapping[str, Any] | None]) -> "Records":
        """Join the records of several files."""
        files: dict[int, Files] = {}
        described: set[str] = set()
        for record in found:
            if record is not None:
                files |= {int(part): names for part, names in record["files"].items()}
                described |= set(record["described"])
        return cls(files, described, None not in found)


def read_index(path: Path, *, long: bool) -> tuple[pl.DataFrame, dict[str, Any] | None] | None:
    """The rows of an index file, and its record; None if the file does not exist. Raises `DamagedError`."""
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


def joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of several index files; the last row of each run counts."""
    if not frames:
        return pl.DataFrame()
    return pl.concat(frames, how="diagonal_relaxed").unique("run", keep="last", maintain_order=True)


def wrong(path: Path, size: int, count: int | None) -> str | None:
    """What is wrong with a file of this expected size in bytes and, if they are to be checked, this number of rows."""
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
