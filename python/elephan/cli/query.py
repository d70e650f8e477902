"""`elephan sweep query`."""

from typing import Annotated

import pyarrow as pa
import typer

from elephan.base.documents import damage
from elephan.base.table import Head, Table
from elephan.cli.grids import Folder, missing
from elephan.cli.options import command_line
from elephan.cli.output import Form, show
from elephan.studies.sweeps.query import query

app = command_line()


@app.command("query")
def query_command(
    folder: Folder,
    sql: Annotated[str | None, typer.Argument(help="SQL over runs, flows, queues, transfers and summaries.")] = None,
    form: Form = "table",
) -> None:
    """Query a sweep with SQL; without a query, list its tables and columns."""
    with damage(folder):
        found = query(folder, sql)
        missing(folder)
    lines = [["" if value is None else f"{value:.6g}" if isinstance(value, float) and form != "csv" else str(value)
              for value in row.values()] for row in found.to_pylist()]  # fmt: skip
    units = [(one.metadata or {}).get(b"unit", b"").decode() for one in found.schema]
    head = [
        Head(one.name, unit, numeric=pa.types.is_primitive(one.type))
        for one, unit in zip(found.schema, units, strict=True)
    ]
    show([Table("", head, lines)], form, found.to_pylist())
