"""`elephan scenario check`, `show`, `examples` and `schema`."""

import itertools
import json
import re
from pathlib import Path
from typing import Annotated

import typer

from elephan.api.scenario import copy_examples, examples, load, schema
from elephan.base.table import Table, text_heads
from elephan.base.text import echo
from elephan.cli.options import Large, ScenarioFile, Settings, assignments, command_line
from elephan.cli.output import out

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


@app.command("examples")
def examples_(
    copy: Annotated[
        Path | None,
        typer.Option("--out", help="Copy them into this new folder, with traces, algorithms and packetdrill scripts."),
    ] = None,
) -> None:
    """List the scenarios that come with Elephan. Every command that takes a scenario file also takes their names."""
    if copy is not None:
        if copy.exists():
            raise FileExistsError(f"{copy}: expected no such folder, found one")
        copy_examples(copy)
        out.print(f"examples in {copy}", soft_wrap=True)
        return
    rows = [[name, _purpose(file)] for name, file in examples().items()]
    out.show(Table("", text_heads("name", "what it shows"), rows))


def _purpose(file: Path) -> str:
    """The first sentence of the comment that a file begins with."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines())
    return re.split(r"(?<=[.?]) ", " ".join(line.removeprefix("#").strip() for line in lines))[0].rstrip(".")


@app.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the scenario file."""
    typer.echo(json.dumps(schema(), indent=2))
