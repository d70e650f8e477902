"""Output of `elephan cc` and `elephan queue`: entries that a scenario can select, and their parameters."""

import json
from collections.abc import Sequence

from elephan import _core
from elephan.api.registry import Entry
from elephan.base.table import Table, text_heads
from elephan.base.text import Terminal

out = Terminal()


def print_list(title: str, entries: Sequence[Entry]) -> None:
    """Print a table of entries."""
    rows = [[entry.name, entry.title, entry.source, ", ".join(p.name for p in entry.parameters)] for entry in entries]
    out.print(Table(title, text_heads("name", "title", "source", "parameters"), rows).to_terminal(out.width))


def implied(entry: Entry) -> str:
    """The settings that a name implies unless the scenario sets them, in the form of the scenario file."""
    return ", ".join(f'tcp.{key} = "{word}"' for key, word in entry.implies.items())


def print_one(kind: str, entries: Sequence[Entry], name: str) -> None:
    """Print an entry and its parameters. Raises `ScenarioError` if no entry has this name."""
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise _core.ScenarioError(f"{kind}: expected one of {', '.join(e.name for e in entries)}, found {name!r}")
    out.strong(found.name, f": {found.title}\nsource: {found.source}")
    if found.implies:
        out.message(f"implies: {implied(found)}, unless the scenario sets it")
    if not found.parameters:
        return
    rows = [
        [p.name, p.default if isinstance(p.default, str) else json.dumps(p.default), p.unit, p.range, p.meaning]
        for p in found.parameters
    ]
    out.print(Table("", text_heads("parameter", "default", "unit", "range", "meaning"), rows).to_terminal(out.width))
