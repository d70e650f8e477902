"""`elephan paired`."""

from typing import Annotated

import typer

from elephan import _core
from elephan.base.documents import damage
from elephan.cli.grids import Folder, Form, Where, known_form, missing, print_tables
from elephan.cli.options import assignments, command_line, words
from elephan.studies.sweeps import tables

app = command_line()


@app.command("paired")
def paired_command(
    folder: Folder,
    between: Annotated[str, typer.Option(help="Two values of a key to compare: flow.cc=htcp,scalable.")],
    metric: Annotated[str, typer.Option(help="Metric.")] = "goodput",
    where: Where = None,
    form: Form = "text",
) -> None:
    """Compare two settings of a sweep with common random numbers: difference, effect size and p-values."""
    key, equals, values = between.partition("=")
    both = words(values)
    if not equals or len(both) != 2:
        raise _core.ScenarioError(f"--between: expected KEY=FIRST,SECOND, found {between!r}")
    with damage(folder):
        compared = tables.paired(
            folder, key=key, first=both[0], second=both[1], metric=metric, where=assignments(where, "--where")
        )
        print_tables([compared], known_form(form))
        missing(folder)
