"""`elephan sweep table`."""

from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base.documents import damage
from elephan.base.table import of_records
from elephan.cli import complete
from elephan.cli.grids import Folder, Where, missing
from elephan.cli.options import assignments, command_line, words
from elephan.cli.output import Form, err, show
from elephan.studies.sweeps import tables

app = command_line()


@app.command("table")
def table_command(
    folder: Folder,
    rows: Annotated[
        str | None,
        typer.Option(help="Keys of the sweep, separated by commas.", show_default="all that are not columns"),
    ] = None,
    cols: Annotated[str | None, typer.Option(help="Keys of the sweep; without keys, the columns are metrics.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            "--columns",
            autocompletion=complete.list_of(complete.metric_names),
            help="Metrics, separated by commas: names as `elephan sweep query RESULTS` lists.",
        ),
    ] = None,
    where: Where = None,
    stat: Annotated[str, typer.Option(help="mean or median (with a bootstrap interval).")] = "mean",
    interval: Annotated[
        str | None, typer.Option(help="t (Student) or bootstrap.", show_default="t; for medians bootstrap")
    ] = None,
    form: Form = "table",
) -> None:
    """Show a sweep's metrics for each setting, with 95 % confidence intervals over repeats."""
    if stat not in ("mean", "median"):
        raise _core.ScenarioError(f"--stat: expected mean or median, found {stat!r}")
    interval = interval or ("t" if stat == "mean" else "bootstrap")
    if interval not in ("t", "bootstrap"):
        raise _core.ScenarioError(f"--interval: expected t or bootstrap, found {interval!r}")
    options: Any = {
        "rows": words(rows),
        "cols": words(cols),
        "metrics": words(metric),
        "where": assignments(where, "--where"),
        "interval": interval,
        "centre": stat,
    }
    with damage(folder):
        if form in ("csv", "json"):
            estimates = tables.records(folder, **options)
            show([of_records(estimates)], form, estimates)
        else:
            show(tables.table(folder, **options), form)
        failed = tables.Selection.of(folder, options["where"]).failed
        missing(folder)
    if failed:
        err.print(f"{failed} runs failed and are not included")
