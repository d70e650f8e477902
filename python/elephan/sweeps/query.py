"""SQL over a sweep, by DuckDB."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError
from elephan.results import TABLES
from elephan.sweeps.dataset import INDEX, Dataset, SweepError


def connect(folder: str | Path) -> duckdb.DuckDBPyConnection:
    """A database with the views `runs`, `summaries` and those of samples over a sweep's folder."""
    data = Dataset(folder)
    runs = data.runs()
    if runs.is_empty():
        raise SweepError(f"{folder}: expected runs, found none yet")
    connection = duckdb.connect()
    connection.register("runs", runs.to_arrow())
    for name in TABLES:
        _view(connection, name, "*", data.samples(name))
    index = [
        path for path in (data.folder / INDEX, *sorted((data.folder / "index").glob("part-*.parquet"))) if path.exists()
    ]
    _view(connection, "summaries", "run, scenario, summary", index)
    return connection


def _view(connection: duckdb.DuckDBPyConnection, name: str, columns: str, paths: list[Path]) -> None:
    if paths:
        files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        connection.execute(f"create view {name} as select {columns} from read_parquet([{files}], union_by_name = true)")


def query(folder: str | Path, sql: str) -> pa.Table:
    """What a query gives, as an Arrow table.

    Raises `ScenarioError` for SQL that cannot be run, and `SweepError` where a part of the folder cannot be read.
    """
    try:
        with connect(folder) as connection:
            found = connection.sql(sql)
            return pa.table({}) if found is None else found.to_arrow_table()
    except duckdb.Error as error:
        _whole(Dataset(folder))
        raise ScenarioError(f"query: {error}") from error


def _whole(data: Dataset) -> None:
    """Refuse a folder with a part that cannot be read."""
    for name in TABLES:
        for path in data.samples(name):
            try:
                pq.read_metadata(path)
            except (OSError, pa.ArrowInvalid) as error:
                raise SweepError(
                    f"{path}: expected the {name} of {data.points_of(path)} as Parquet, found what cannot be read ({error})"
                ) from error
