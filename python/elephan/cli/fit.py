"""`elephan path fit`."""

from pathlib import Path
from typing import Annotated

import typer

from elephan._core import ScenarioError
from elephan.base import plots
from elephan.base.folders import check_new, new_folder
from elephan.cli.options import Force, command_line
from elephan.cli.output import Form, err, out, show
from elephan.cli.progress import progress_bar, span
from elephan.paths.fit import fit as run_fit
from elephan.paths.fit import reading, write_into
from elephan.paths.overlay import overlay
from elephan.paths.tables import of_estimates

app = command_line()


@app.command()
def fit(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="A capture (pcap or pcapng; several of the same time are merged), a qlog of a QUIC stack, a log of `ss -ti`, "
            "or a results folder.",
        ),
    ],
    folder: Annotated[Path, typer.Option("--out", help="Folder for path.toml, path.json and the comparison.")],
    cc: Annotated[
        str | None, typer.Option(help="Algorithm of the transfer.", show_default="what the source tells")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, max=100, help="Simulations, with draws over the intervals.")] = 5,
    force: Force = False,
    form: Form = "table",
) -> None:
    """Estimate rate, base delay, buffer and loss of a path from a transfer, and compare with a simulation of it."""
    if not str(folder):
        raise ScenarioError("--out: expected a folder, found none")
    check_new(folder, force=force)
    size, most_s = reading(sources)
    if size:
        err.message(f"reading {size * 1e-6:.3g} MB, about {span(most_s)}")

    def starting(runs: int, duration_s: float, core_s: float) -> None:
        err.message(f"{runs} simulations of {duration_s:.3g} s each, about {span(core_s)} of a core")

    with progress_bar(f"{draws} simulations") as progress:
        made = run_fit(sources, cc, count=draws, starting=starting, progress=progress)
    with new_folder(folder, force=force) as place:
        write_into(place, made)
    title = f"{made.estimates.source}: measured, and simulated on the fitted path"
    plots.save_beside(folder, {"overlay": lambda: overlay(made.prediction, made.measured, title)})
    document = {**made.estimates.to_dict(), "partings": [part.text for part in made.partings]}
    show([of_estimates(made.estimates.values(), made.estimates.source)], form, document)
    if form != "table":
        return
    for note in made.estimates.notes:
        out.message(f"note: {note}")
    for part in made.partings:
        out.message(part.text)
    out.message(
        f"results in {folder}; `elephan path recommend --path {folder / 'path.toml'} --size 100GB` says how to use the path"
    )
