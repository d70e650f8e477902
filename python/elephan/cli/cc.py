"""`elephan cc`: the congestion control algorithms."""

import itertools
import time
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.registry import (
    Entry,
    algorithms,
    cc_groups,
    recoveries,
    registered,
    slow_starts,
)
from elephan.base.table import Table, text_heads
from elephan.cli import complete
from elephan.cli.entries import implied, print_one, table_of
from elephan.cli.options import command_line
from elephan.cli.output import Form, out, show
from elephan.foreign import build, modules, names

app = command_line(group=True)


@app.command("list")
def list_(form: Form = "table") -> None:
    """List the congestion control algorithms, slow starts and loss recoveries."""
    parts = {
        **{f"congestion control (cc): {title}": entries for title, entries in cc_groups().items()},
        "slow start (slow_start)": slow_starts(),
        "loss recovery (tcp.recovery, by default sack)": recoveries(),
    }
    show([table_of(title, entries) for title, entries in parts.items()], form)
    if form != "table":
        return
    for tree in modules.trees()[:1]:
        listed = ", ".join(f"linux:{name}" for name in tree.modules())
        known = f"Of Linux {tree.version}, imported from {tree.source}, the simulator can run {listed}."
        out.print(known, highlight=False)
    own = ", ".join(f"{one.name} implies {implied(one)}" for one in algorithms() if one.implies)
    rule = f"An algorithm determines the window; tcp.recovery is independent of it. Unless a scenario sets it, {own}."
    out.print(rule, highlight=False)


@app.command("show")
def show_(
    name: Annotated[
        str,
        typer.Argument(help="Name of an algorithm or slow start.", autocompletion=complete.one_of(complete.cc_names)),
    ],
    form: Form = "table",
) -> None:
    """Show the parameters of an algorithm or slow start, with defaults, ranges and sources, and the variables that it keeps.

    Algorithms from outside have names such as linux:bbr, lib:./mine.so, bpf:./mine.bpf.c and python:mine:Mine.
    """
    known = [*itertools.chain(*cc_groups().values()), *slow_starts()]
    if name.startswith(names.KINDS):
        print_one("cc", [*([one] if (one := _outside(name)) else []), *known], one.name if one else name, form)
        return
    print_one("cc", known, name, form)


def _outside(name: str) -> Entry | None:
    """The algorithm from outside that a name stands for; None if no imported source of Linux has it."""
    absolute = names.absolute(name, Path.cwd())
    try:
        names.register(absolute)
    except (ValueError, OSError) as error:
        raise _core.ScenarioError(f"cc: {error}") from error
    return registered(absolute)


@app.command("import")
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            help="A kernel's tree, a tarball of one, or a Debian package with one, such as linux-source-6.1."
        ),
    ],
    form: Form = "table",
) -> None:
    """Import the congestion control modules of a kernel's source, which the simulator then runs as linux:NAME.

    Each is compiled once to see whether it can be.
    """
    rows: list[list[str]] = []
    try:
        tree = modules.import_tree(path)
        started = time.perf_counter()
        for name, found in modules.probe(tree):
            took_s, started = time.perf_counter() - started, time.perf_counter()
            says = str(found) if isinstance(found, ValueError) else "compiles"
            rows.append([f"linux:{name}", f"{took_s:.2f}", says])
    except ValueError as error:
        raise _core.ScenarioError(str(error)) from error
    title = f"Linux {tree.version}, imported from {tree.source}"
    show([Table(title, text_heads("name", "time (s)", "result"), rows)], form)


@app.command("include")
def include() -> None:
    """Print the folder of elephan-cc.h, the C interface of algorithms: cc -shared -fPIC -I"$(elephan cc include)" mine.c."""
    out.message(str(build.INCLUDE))
