"""`elephan doctor`."""

import typer

from elephan.base.table import Table, text_heads
from elephan.cli.options import command_line
from elephan.cli.output import Form, show
from elephan.studies.machine import checks

app = command_line()


@app.command()
def doctor(form: Form = "table") -> None:
    """Show what works on this machine, and what to install for the rest.

    Takes a second. Exit with 0 if the simulator works; the rest may be of no interest to you.
    """
    found = checks()
    rows = [[check.part, "yes" if check.works else "no", check.found, check.remedy] for check in found]
    show([Table("", text_heads("part", "works", "found", "needs"), rows)], form)
    if not found[0].works:
        raise typer.Exit(1)
