"""What commands print: messages, and tables in the format that `--format` names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base.table import Head, Table, of_records
from elephan.base.text import Terminal, echo
from elephan.cli import complete
from elephan.cli.options import words

# Standard output, and standard error.
out, err = Terminal(), Terminal(stderr=True)
FORMATS = ("table", "csv", "json", "md", "latex")
# What `--columns` calls every column.
ALL = "all"


def _known(form: str) -> str:
    if form not in FORMATS:
        raise _core.ScenarioError(f"--format: expected {_core.one_of(FORMATS, form)}, found {form!r}")
    return form


Form = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"What is printed: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}. Only a table is followed by remarks.",
        callback=_known,
        autocompletion=complete.one_of(lambda: FORMATS),
    ),
]


Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to print, separated by commas, by the names in their heads; all for all of them.",
        show_default="those that tell most",
        autocompletion=complete.list_of(lambda: [ALL, *complete.metric_names()]),
    ),
]


def _name(head: Head) -> str:
    return head.text.replace(" ", "_")


def named(wanted: str | None, heads: Sequence[Head]) -> list[str] | None:
    """The columns that `--columns` names, with `_` for a space, out of those with these heads; None for the usual ones.

    Raises `ScenarioError` for another name. Commands call it before they begin.
    """
    if wanted is None:
        return None
    known = list(dict.fromkeys(_name(head) for head in heads if head.numeric))
    if wanted.strip() == ALL:
        return [ALL]
    names = [name.replace(" ", "_") for name in words(wanted)]
    if not names:
        raise _core.ScenarioError(f"--columns: expected names separated by commas, found {wanted!r}")
    for name in names:
        if name not in known:
            raise _core.ScenarioError(f"--columns: expected {_core.one_of([ALL, *known], name)}, found {name!r}")
    return names


def chosen(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """The tables with the columns of these names, and those of text, which identify a row; without empty ones."""
    if ALL in names:
        return list(tables)
    found = []
    for table in tables:
        texts = [place for place, head in enumerate(table.head) if not head.numeric]
        places = [
            place for name in names for place, head in enumerate(table.head) if head.numeric and _name(head) == name
        ]
        if places:
            found.append(table.only([*texts, *places]))
    return found


def told(table: Table, usual: Sequence[str] | None = None) -> Table:
    """The table with the columns that tell something: not undefined in every row, and of several rows not the same in all.

    Of `usual` names, if there are any, and those only; if no column is left, it is the whole table. The note names the rest.
    """
    rows = table.texts

    def tells(place: int) -> bool:
        head, cells = table.head[place], {row[place] for row in rows}
        if not head.numeric:
            return True
        return (usual is None or head.text in usual) and (len(cells) > 1 or (len(rows) == 1 and cells != {"-"}))

    places = [place for place in range(len(table.head)) if tells(place)]
    left = [_name(head) for place, head in enumerate(table.head) if place not in places]
    if not left or not any(table.head[place].numeric for place in places):
        return table
    note = f"--columns all shows {', '.join(left)} as well"
    return replace(table.only(places), note="; ".join(part for part in (table.note, note) if part))


def show(tables: Sequence[Table], form: str, document: Any = None, most_rows: int | None = None) -> None:
    """Print tables in one of `FORMATS`.

    JSON is `document`, or else the rows of the only table, or those of each table by its title. `most_rows` limits what a
    terminal shows of each table.
    """
    if form == "json":
        if document is None and len(tables) == 1:
            document = tables[0].to_dicts()
        elif document is None:
            document = {table.title: table.to_dicts() for table in tables}
        echo(json.dumps(document, indent=2, default=str) + "\n")
        return
    for number, table in enumerate(tables):
        if number:
            out.print()
        if form == "table":
            out.show(table, most_rows)
        else:
            echo(table.written(form))


def show_estimates(
    table: Table, found: Sequence[Mapping[str, Any]], form: str, names: Sequence[str] | None = None
) -> None:
    """Print a table of estimates. CSV and JSON are a record for each estimate: numbers with all digits, ends of intervals.

    `names` are the columns that were asked for, which records have as `metric`; None for all.
    """
    if form not in ("csv", "json"):
        show([table], form)
        return
    kept = [one for one in found if names is None or ALL in names or one["metric"].replace(" ", "_") in names]
    show([of_records(kept)], form, kept)
