"""`elephan scenario check` and `elephan scenario schema`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.scenario import load, schema
from elephan.base.text import Terminal
from elephan.cli.options import Large, Settings, assignments

app = typer.Typer(no_args_is_help=True)
out = Terminal()


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="The scenario file.")],
    settings: Settings = None,
    large: Large = False,
) -> None:
    """Check a scenario file: exit code 0 where it can be run, 2 with a line for each mistake where not.

    Of a good one it tells the largest run: upper bounds of its events, its rows and its memory.
    """
    text = load(file, assignments(settings), large=large).to_json()
    expansion, most = _core.Expansion(text), _core.estimate(text)
    points = expansion.points * expansion.repeats
    out.print(f"{file}: good, {points} run{'s' if points > 1 else ''}")
    figures = (("events", "events", 1.0), ("rows", "rows", 1.0), ("bytes", "MB of memory", 1e-6))
    for name, unit, scale in figures:
        amount, key = most[name]
        out.print(f"at most {amount * scale:.2g} {unit}, most of them for {key}", highlight=False, soft_wrap=True)


@app.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the scenario file."""
    typer.echo(json.dumps(schema(), indent=2))
