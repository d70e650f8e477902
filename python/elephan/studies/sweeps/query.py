"""SQL queries on a sweep, by DuckDB."""

import re
from contextlib import nullcontext, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError
from elephan.api.run import TABLES
from elephan.studies.sweeps.dataset import Dataset, SweepError

# Columns that are shown without a query.
COLUMNS = "select table_name, column_name, data_type from information_schema.columns order by all"


def query(folder: str | Path, sql: str | None = None) -> pa.Table:
    """The result of a query as an Arrow table; without a query, the tables and their columns.

    `runs` has a row for each run, with short names; `summaries` has its scenario and summary as JSON; `flows`, `queues`, ...
    have the samples. Raises `ScenarioError` for SQL that cannot be run, and `SweepError` if a part cannot be read.
    """
    data = Dataset(folder)
    runs = data.runs()
    if runs.is_empty():
        raise SweepError(f"{folder}: expected runs, found none yet")
    # Creating a view reads the metadata of all its parts, so only the views that the query names are created.
    wanted = [name for name in TABLES if sql is None or re.search(rf"\b{name}\b", sql)]
    try:
        with duckdb.connect() as connection:
            connection.register("runs", runs.to_arrow())
            for name in wanted:
                with suppress(SweepError) if sql is None else nullcontext():
                    _view(connection, name, "*", data.samples(name))
            if sql is None or "summaries" in sql:
                _view(connection, "summaries", "run, scenario, summary", data.index_parts())
            found = connection.sql(sql or COLUMNS)
            return pa.table({}) if found is None else found.to_arrow_table()
    except duckdb.Error as error:
        for name in wanted:
            _whole(data, name)
        raise ScenarioError(f"query: {error}") from error


def _view(connection: duckdb.DuckDBPyConnection, name: str, columns: str, paths: list[Path]) -> None:
    if paths:
        files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        connection.execute(f"create view {name} as select {columns} from read_parquet([{files}], union_by_name = true)")


def _whole(data: Dataset, name: str) -> None:
    """Refuse samples if one of their parts cannot be read."""
    for path in data.samples(name):
        try:
            pq.read_metadata(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise SweepError(
                f"{path}: expected the {name} of {data.points_of(path)} as Parquet, found what cannot be read ({error})"
            ) from error
