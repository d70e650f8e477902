"""`elephan sweep paired`."""

from typing import Annotated

import typer

from elephan import _core
from elephan.base.documents import damage
from elephan.cli import complete
from elephan.cli.grids import Folder, Where, missing
from elephan.cli.options import assignments, command_line, words
from elephan.cli.output import Form, show_estimates
from elephan.studies.sweeps.tables import Pairs

app = command_line()


@app.command("paired")
def paired_command(
    folder: Folder,
    between: Annotated[str, typer.Option(help="Two values of a key to compare: flow.cc=htcp,scalable.")],
    metric: Annotated[
        str, typer.Option(help="Metric.", autocompletion=complete.one_of(complete.metric_names))
    ] = "goodput",
    where: Where = None,
    form: Form = "table",
) -> None:
    """Compare two settings of a sweep with common random numbers: difference, effect size and p-values."""
    key, equals, values = between.partition("=")
    both = words(values)
    if not equals or len(both) != 2:
        raise _core.ScenarioError(f"--between: expected KEY=FIRST,SECOND, found {between!r}")
    with damage(folder):
        compared = Pairs.of(folder, key, (both[0], both[1]), metric, assignments(where, "--where"))
        show_estimates(compared.table(), compared.records(), form)
        missing(folder)
