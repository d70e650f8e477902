"""`elephan cc`: the congestion control algorithms."""

from typing import Annotated

import typer

from elephan.api.registry import algorithms, linux_algorithms, recoveries, slow_starts
from elephan.cli.entries import implied, out, print_list, print_one
from elephan.cli.options import command_line

app = command_line(group=True)


@app.command("list")
def list_() -> None:
    """List the congestion control algorithms, slow starts and loss recoveries."""
    print_list("congestion control (cc)", algorithms())
    print_list("Linux's own (cc, with the engines kernel and linux)", linux_algorithms())
    print_list("slow start (slow_start)", slow_starts())
    print_list("loss recovery (tcp.recovery, by default sack)", recoveries())
    names = ", ".join(f"{one.name} implies {implied(one)}" for one in algorithms() if one.implies)
    out.message(
        f"An algorithm determines the window; tcp.recovery is independent of it. Unless a scenario sets it, {names}."
    )


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="Name of an algorithm or slow start.")]) -> None:
    """Show the parameters of an algorithm or slow start: defaults, ranges and sources."""
    print_one("cc", [*algorithms(), *linux_algorithms(), *slow_starts()], name)
