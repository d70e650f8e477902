"""SQL queries on a sweep, by DuckDB."""

import re
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from elephan._core import ScenarioError
from elephan.api.metrics import declared_columns, declared_fields
from elephan.api.run import TABLES
from elephan.studies.sweeps import names
from elephan.studies.sweeps.columns import USUAL
from elephan.studies.sweeps.dataset import Dataset, SweepError
from elephan.studies.sweeps.worker import STEADY

# Aggregates whose results have the unit of their column.
KEEPS_UNIT = re.compile(r"(?:avg|mean|median|min|max|sum|stddev|stddev_samp)\((\w+)\)")
# Columns that are shown without a query.
COLUMNS = "select table_name, column_name, data_type from information_schema.columns order by all"


def query(folder: str | Path, sql: str | None = None) -> pa.Table:
    """The result of a query as an Arrow table; without a query, the tables and their columns, with units and meanings.

    Columns of numbers have their unit in their metadata, where it is that of a column of the sweep or of an aggregate of one.

    `runs` has a row for each run, with short names; `flow_summaries` one for each flow of each run; `summaries` has its
    scenario and summary as JSON; `flows`, `queues`, ... have the samples. Raises `ScenarioError` for SQL that cannot be run,
    and `SweepError` if a part cannot be read.
    """
    data = Dataset(folder)
    runs = data.runs()
    if runs.is_empty():
        raise SweepError(data.without_runs())
    # Creating a view reads the metadata of all its parts, so only the views that the query names are created.
    wanted = [name for name in TABLES if sql is None or re.search(rf"\b{name}\b", sql)]
    try:
        with duckdb.connect() as connection:
            connection.register("runs", runs.to_arrow())
            for name in wanted:
                with suppress(SweepError) if sql is None else nullcontext():
                    _view(connection, name, "*", data.samples(name))
            if sql is None or "flow_summaries" in sql:
                connection.register("flow_summaries", data.flow_summaries().to_arrow())
            if sql is None or re.search(r"\bsummaries\b", sql):
                _view(connection, "summaries", "run, scenario, summary", data.index_parts())
            if sql is None:
                listed = connection.sql(COLUMNS).to_arrow_table()
                known = {table: _columns(data, table) for table in (*wanted, "runs", "summaries", "flow_summaries")}
                rows = [*zip(*(column.to_pylist() for column in listed.columns), strict=True)]
                # Another version may have had further columns.
                told = [known[table].get(name, ("1", "")) for table, name, _ in rows]
                of = [None if row[2] == "VARCHAR" else unit for row, (unit, _) in zip(rows, told, strict=True)]
                listed = listed.append_column("unit", pa.array(of, pa.string()))
                return listed.append_column("meaning", pa.array([meaning for _, meaning in told]))
            found = connection.sql(sql)
            if found is None:
                return pa.table({})
            units = {name: unit for name, (unit, _) in _columns(data, *wanted, "runs", "flow_summaries").items()}
            return _with_units(found.to_arrow_table(), units, _aliases(connection, sql))
    except duckdb.Error as error:
        for name in wanted:
            _whole(data, name)
        raise ScenarioError(f"query: {error}") from error


def example(folder: str | Path) -> str:
    """A query of a sweep: its mean goodput for each setting."""
    data = Dataset(folder)
    short = data.short_names(data.index())
    keys = [f'"{short[key]}"' if short[key] in ("from", "to") else short[key] for key in data.description()["settings"]]
    return f"select {', '.join([*keys, 'avg(goodput)'])} from runs group by all order by all"


def _columns(data: Dataset, *tables: str) -> dict[str, tuple[str, str]]:
    """The unit and the meaning of each column of these tables."""
    settings = data.description()["settings"]
    own = names.OF_A_RUN | STEADY | {key: f"{key} of the scenario." for key in (*settings, *USUAL)}

    def of(column: str, part: str) -> tuple[str, str]:
        place = ("TransferSummary", column.removeprefix("transfers_")) if "transfers_" in column else (part, column)
        if meaning := own.get(column) or declared_fields().get(place, {}).get("meaning"):
            return names.unit(column), meaning
        return names.unit(column), f"{column.rpartition('_')[0].removesuffix('_bit')} of the scenario, as a number."

    found = {column: of(column, "") for column in own}
    declared = ((name, one) for (table, name), one in declared_columns().items() if table in tables)
    found |= {name: (one["unit"], one["meaning"]) for name, one in declared}
    if "flow_summaries" in tables:
        found["flow"] = ("1", "Number of the flow, from 0 on.")
        found |= {column: of(column, part) for part, column in declared_fields() if part == "FlowSummary"}
    if "runs" in tables:
        found |= {name: of(column, "Summary") for column, name in data.short_names(data.index()).items()}
    return found | {"label": ("1", "Name of the flow."), "link": ("1", "Name of the link.")}


def _aliases(connection: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """The names that a query gives. A column with one of them may be anything."""
    found = connection.execute("select json_serialize_sql(?)", [sql]).fetchone()
    return set(re.findall(r'"alias(?:es)?":\s*\[?"([^"]+)"', found[0])) if found else set()


def _with_units(found: pa.Table, units: Mapping[str, str], aliases: set[str]) -> pa.Table:
    """The table with the unit of each number in the metadata of its column, where it is that of a column of the sweep."""
    fields = []
    for one in found.schema:
        match = KEEPS_UNIT.fullmatch(one.name)
        name = match[1] if match else one.name
        known = name not in aliases and one.name not in aliases and pa.types.is_primitive(one.type)
        unit = units.get(name, "1") if known else "1"
        fields.append(one if unit == "1" else one.with_metadata({"unit": unit}))
    return found.cast(pa.schema(fields))


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
