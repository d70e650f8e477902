"""`elephan scenario check`, `show`, `list` and `schema`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elephan.api.scenario import copy_examples, examples, load, schema
from elephan.base.text import echo
from elephan.cli.entries import purposes, table_of_names
from elephan.cli.options import Large, ScenarioFile, Settings, assignments, command_line
from elephan.cli.output import Form, err, out
from elephan.cli.output import show as show_tables

app = command_line(group=True)


@app.command("check")
def check(
    file: ScenarioFile,
    settings: Settings = None,
    large: Large = False,
) -> None:
    """Check a scenario file. Exit with 0 if it is valid; otherwise print one line for each error and exit with 2.

    For a valid file, print upper bounds of the events, rows and memory of its largest run.
    """
    scenario = load(file, assignments(settings), large=large)
    points, most = scenario.points * scenario.repeats, scenario.estimate
    out.print(f"{file}: valid, {points} run{'s' if points > 1 else ''}")
    figures = (("events", "events", 1.0), ("rows", "rows", 1.0), ("bytes", "MB of memory", 1e-6))
    for name, unit, scale in figures:
        amount, key = most[name]
        out.print(f"at most {amount * scale:.2g} {unit}, most of them for {key}", highlight=False, soft_wrap=True)


@app.command("show")
def show(
    file: ScenarioFile,
    settings: Settings = None,
) -> None:
    """Print a scenario as TOML with every key of its stack: the defaults, and those that `tcp.profile` sets."""
    table = load(file, assignments(settings)).shown.toml
    echo(table)


# Its name until version 0.1.
@app.command("examples", hidden=True)
@app.command("list")
def list_(
    context: typer.Context,
    copy: Annotated[
        Path | None,
        typer.Option("--out", help="Copy them into this new folder, with traces, algorithms and packetdrill scripts."),
    ] = None,
    form: Form = "table",
) -> None:
    """List the scenarios that come with Elephan. Every command that takes a scenario file also takes their names."""
    if context.info_name == "examples":
        err.message("`elephan scenario examples` is `elephan scenario list` now")
    if copy is not None:
        if copy.exists():
            raise FileExistsError(f"{copy}: expected no such folder, found one")
        copy_examples(copy)
        out.print(f"examples in {copy}", soft_wrap=True)
        return
    show_tables([table_of_names("", purposes(examples()))], form)


@app.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the scenario file."""
    typer.echo(json.dumps(schema(), indent=2))
