"""`elephan queue`: the queue disciplines."""

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from elephan import _core
from elephan.cells import number
from elephan.registry import queues
from elephan.summary import LinkSummary

app = typer.Typer(help="The queue disciplines.", no_args_is_help=True)

out = Console(width=max(Console().width, 132))


def class_tables(links: Iterable[LinkSummary]) -> Iterator[Table]:
    """A table for each link that has classes."""
    for link in links:
        if not link.classes:
            continue
        table = Table(title=f"classes of {link.name}", title_justify="left")
        table.add_column("class")
        for head in ("throughput\nMbit/s, IP packets", "offered\npackets", "dropped", "queueing\nms, mean"):
            table.add_column(head, justify="right")
        for one in link.classes:
            throughput, delay = number(one.throughput_bit_s, 1e-6), number(one.queue_delay_mean_s, 1e3)
            table.add_row(one.name, throughput, str(one.offered), str(one.dropped), delay)
        yield table


@app.command("list")
def queue_list() -> None:
    """List the queue disciplines."""
    table = Table(title="queue disciplines (queue)", title_justify="left")
    for head in ("name", "what it is", "source", "parameters"):
        table.add_column(head)
    for entry in queues():
        table.add_row(entry.name, entry.title, entry.source, ", ".join(p.name for p in entry.parameters))
    out.print(table)


@app.command("show")
def queue_show(name: Annotated[str, typer.Argument(help="Name of a queue discipline.")]) -> None:
    """Show a queue discipline's parameters, their defaults, ranges and sources."""
    known = queues()
    found = next((entry for entry in known if entry.name == name), None)
    if found is None:
        raise _core.ScenarioError(f"queue: expected one of {', '.join(e.name for e in known)}, found {name!r}")
    out.print(f"[bold]{found.name}[/]: {found.title}\nsource: {found.source}")
    if not found.parameters:
        return
    table = Table()
    for head in ("parameter", "default", "range", "meaning"):
        table.add_column(head)
    for p in found.parameters:
        default = p.default if isinstance(p.default, str) else json.dumps(p.default)
        table.add_row(p.name, default, p.range, p.meaning)
    out.print(table)
