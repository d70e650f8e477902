"""What can be chosen by name: entries that a scenario can select, with their parameters, and files that come with Elephan."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from elephan import _core
from elephan.api.registry import Entry
from elephan.base.table import Table, text_heads
from elephan.cli.output import out, show

# What the table of an algorithm's variables is called.
VARIABLES = "State that trace.variables records"


def table_of(title: str, entries: Sequence[Entry]) -> Table:
    """A table of entries."""
    rows = [[entry.name, entry.title, entry.source, ", ".join(p.name for p in entry.parameters)] for entry in entries]
    return Table(title, text_heads("name", "title", "source", "parameters"), rows)


def table_of_names(title: str, meanings: Mapping[str, str]) -> Table:
    """A table of names and what each is."""
    return Table(title, text_heads("name", "what it shows"), [[*one] for one in meanings.items()])


def purposes(files: Mapping[str, Path]) -> dict[str, str]:
    """Of each file, the first sentence of the comment that it begins with."""

    def comment(file: Path) -> str:
        lines = itertools.takewhile(re.compile("#|//").match, file.read_text(encoding="utf-8").splitlines())
        return " ".join(line.lstrip("#/").strip() for line in lines)

    return {name: re.split(r"(?<=[.?]) ", comment(file))[0].rstrip(".") for name, file in files.items()}


def implied(entry: Entry) -> str:
    """The settings that a name implies unless the scenario sets them, in the form of the scenario file."""
    return ", ".join(f'tcp.{key} = "{word}"' for key, word in entry.implies.items())


def print_one(kind: str, entries: Sequence[Entry], name: str, form: str) -> None:
    """Print an entry and its parameters. Raises `ScenarioError` if no entry has this name."""
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise _core.ScenarioError(f"{kind}: expected {_core.one_of([e.name for e in entries], name)}, found {name!r}")
    rows = [
        [p.name, p.default if isinstance(p.default, str) else json.dumps(p.default), p.unit, p.range, p.meaning]
        for p in found.parameters
    ]
    table = Table("", text_heads("parameter", "default", "unit", "range", "meaning"), rows)
    kept = [[one.name, one.unit, ", ".join(one.values), one.meaning] for one in found.variables]
    variables = Table(VARIABLES, text_heads("variable", "unit", "values", "meaning"), kept)
    if form != "table":
        show([one for one in (table, variables) if one is table or one.rows], form, asdict(found))
        return
    out.strong(found.name, f": {found.title}\nsource: {found.source}")
    if found.implies:
        out.message(f"implies: {implied(found)}, unless the scenario sets it")
    for one in (table, variables):
        if one.rows:
            out.show(one)
