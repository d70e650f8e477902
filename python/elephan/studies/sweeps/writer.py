"""Writes a sweep's folder."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import __version__
from elephan.api.run import TABLES, write_json
from elephan.base.documents import inside
from elephan.base.folders import clear, new_file, only_writer, own_or_empty
from elephan.base.kinds import SWEEP
from elephan.studies.sweeps.dataset import (
    INDEX,
    RECORD,
    SUPERSEDED,
    TEXT,
    DamagedError,
    Dataset,
    Files,
    Loss,
    Records,
    SweepError,
    file_of,
    joined,
    number_of,
    read_index,
    span,
)
from elephan.studies.sweeps.worker import Batch


class Writer(Dataset):
    """A sweep's folder, opened for writing.

    `add` collects rows and samples, and `flush` writes them. Raises `SweepError` if another process already writes the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._waiting: dict[int, tuple[list[dict[str, Any]], dict[str, pa.Table]]] = {}
        self.waiting_bytes = 0
        own_or_empty(self.folder, SWEEP)
        self._stack = ExitStack()
        try:
            self._stack.enter_context(only_writer(self.folder, "sweep"))
        except FileExistsError as error:
            raise SweepError(str(error)) from error
        for name in (".", "index", *TABLES):
            if (self.folder / name).is_dir():
                clear(self.folder / name)

    def close(self) -> None:
        """Let other processes write."""
        self._stack.close()

    def known(self) -> tuple[pl.DataFrame, list[Loss]]:
        """Every row that ever belonged to this sweep and is still complete, samples included; and what is lost."""
        lost = []
        found: list[tuple[Path, pl.DataFrame, dict[str, Any] | None]] = []
        for path in [inside(self.folder, SUPERSEDED), inside(self.folder, INDEX), *self._parts("index")]:
            try:
                if (one := read_index(path, long=True)) is not None:
                    found.append((path, *one))
                elif (self.folder / SWEEP.document).exists() and path.name in self.description().get("files", []):
                    lost.append(Loss(path, "expected it, found none", "runs in it", ()))
            except DamagedError as error:
                lost.append(Loss(path, error.reason, "runs in it", ()))
                # Its parts cannot be distinguished from parts that were never finished.
                path.unlink()
        records = Records.of([record for _, _, record in found])
        frame = joined([rows for _, rows, _ in found])
        last = max(records.files, default=0)
        if not lost:
            lost += self._gaps(records)
            # A sweep that was killed leaves the samples of at most one part without an index.
            top = max((number_of(path) for name in TABLES for path in self._parts(name)), default=0)
            for part in range(last + 1, top) if records.are_complete else ():
                path = self.folder / "index" / file_of(part)
                lost.append(Loss(path, "expected it, found none", "runs in it", ()))
        lost_files = self._lost_files(frame, records, deep=True)
        gone = {loss.part for loss in lost_files}
        if gone:
            frame = frame.filter(~pl.col("part").is_in(list(gone)))
        self._files = {part: {} if part in gone else names for part, names in records.files.items()}
        self._told = records.described
        self._aside = {run for path, rows, _ in found if path.name == SUPERSEDED for run in rows["run"]}
        return frame, lost + lost_files

    def begin(self, description: Mapping[str, Any], known: pl.DataFrame, described: pl.DataFrame) -> None:
        """Make the index from the rows of `described`, which have identity and settings, as far as the runs are in `known`.

        The other known rows become superseded. Samples of parts that do not count are removed.
        """
        parts: set[int] = set()
        self._files = {} if known.is_empty() else self._files
        self._described = sorted({*described.columns, *description["settings"], *description["described"]} - {"run"})
        self._part = max(self._files, default=0)
        if not known.is_empty():
            before = self.description()
            self._part = max(self._part, int(known["part"].max() or 0))  # type: ignore[arg-type]
            parts = set(known["part"])
            # What an earlier version wrote has no record. The state that was found is recorded now.
            for part in range(1, self._part + 1):
                self._files.setdefault(part, self._found(part) if part in parts else {})
            self._told |= {*before["settings"], *before["described"], *self._described}
            # The superseded rows are written first, together with those that return to the index, so that every row is always
            # in a file.
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
                if number_of(path) not in parts:
                    path.unlink()

    def _found(self, part: int) -> Files:
        """The files of a part, as found on the disk."""
        found = {}
        for name in TABLES:
            path = self.folder / name / file_of(part)
            with contextlib.suppress(FileNotFoundError, pa.ArrowInvalid):
                found[name] = path.stat().st_size, pq.read_metadata(path).num_rows
        return found

    def _describe(self) -> None:
        """Write the description, with the files of the index that exist from now on."""
        files = [name for name in (INDEX, SUPERSEDED) if (self.folder / name).exists()]
        with new_file(self.folder / SWEEP.document) as new:
            write_json(new, {"elephan": __version__, **self._description, "files": files})

    def add(self, number: int, batch: Batch, described: Sequence[Mapping[str, Any]]) -> None:
        """Add the runs of a batch, once even if called twice; `described` has the point and settings of each."""
        rows = [{**more, **row} for row, more in zip(batch.rows, described, strict=True)]
        self.waiting_bytes += sum(table.nbytes for table in batch.samples.values())
        # Both are added in one step: Ctrl-C can come at any moment, and rows without their samples would be lost.
        self._waiting[number] = rows, batch.samples

    @property
    def waiting(self) -> int:
        """The number of runs that are not written yet."""
        return sum(len(rows) for rows, _ in self._waiting.values())

    def flush(self) -> None:
        """Write what was added, as one part."""
        # A batch that was stopped in its first run has no rows.
        if not self.waiting:
            return
        rows = [row for rows, _ in self._waiting.values() for row in rows]
        part = self._part + 1
        files: dict[str, tuple[int, int]] = {}
        try:
            for name in TABLES:
                if tables := [samples[name] for _, samples in self._waiting.values() if name in samples]:
                    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
                    path = self.folder / name / file_of(part)
                    # This entry is made before the file appears, because unfinished files are removed.
                    files[name] = 0, table.num_rows
                    self._replace(path, table)
                    files[name] = path.stat().st_size, table.num_rows
            rows = [{**row, "part": part} for row in rows]
            self._replace(self.folder / "index" / file_of(part), _table(rows), {part: files})
        except OSError as error:
            for name in files:
                (self.folder / name / file_of(part)).unlink(missing_ok=True)
            points = span(row["point"] for row in rows)
            raise SweepError(
                f"{self.folder}: {error.strerror or error}, while writing {points} ({self.waiting} runs, which are lost); "
                f"everything before is safe: repeat the command to continue"
            ) from error
        self._files[part] = files
        self._part, self._waiting, self.waiting_bytes = part, {}, 0

    def finish(self) -> None:
        """Merge the newer rows of the index into `index.parquet`."""
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
        # Errors of Python's own files state the operating system's message in plain words.
        with new_file(path) as new, new.open("wb") as file:
            pq.write_table(table, file, compression="zstd")


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    # Most rows have the same keys.
    columns = dict.fromkeys(chain.from_iterable(dict.fromkeys(map(tuple, rows))))
    arrays: dict[str, pa.Array] = {}
    for column in columns:
        array = pa.array([row.get(column) for row in rows])
        if pa.types.is_null(array.type):
            array = pa.nulls(len(rows), pa.string() if column in TEXT else pa.float64())
        arrays[column] = array
    return pa.table(arrays)


@contextlib.contextmanager
def writer(folder: str | Path) -> Iterator[Writer]:
    """Open a sweep's folder for writing."""
    one = Writer(folder)
    try:
        yield one
    except KeyboardInterrupt:
        # It may have come in the midst of the last `flush`.
        one.flush()
        raise
    finally:
        one.close()
