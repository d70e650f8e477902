"""`elephan compare-engines`: a scenario on the simulator and on a kernel's TCP."""

from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.scenario import Scenario, load
from elephan.base.folders import check_new, default, new_folder
from elephan.base.text import file_names
from elephan.cli import complete
from elephan.cli.options import Force, Large, Settings, assignments, command_line, words
from elephan.cli.output import Form, err, out, show
from elephan.cli.progress import announce
from elephan.studies import side_by_side

app = command_line()


@app.command()
def compare_engines(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Scenario files, or names of examples.",
            autocompletion=complete.files(".toml", complete.scenario_names),
        ),
    ],
    cc: Annotated[
        str | None,
        typer.Option(
            help="Algorithms for all flows, separated by commas, one run each.",
            autocompletion=complete.list_of(complete.cc_names),
        ),
    ] = None,
    settings: Settings = None,
    engine: Annotated[
        str, typer.Option(help="The kernel: kernel (in virtual time; needs an image), or linux (this one; needs root).")
    ] = "kernel",
    repeat: Annotated[
        int, typer.Option(min=1, help="Number of runs with --engine linux, which vary; the median is reported.")
    ] = 1,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Results folder.", show_default="results/engines")
    ] = None,
    form: Form = "table",
    large: Large = False,
    force: Force = False,
) -> None:
    """Run scenarios on the simulator and on a kernel's TCP, and show the differences."""
    if engine not in side_by_side.ENGINES:
        raise _core.ScenarioError(f"--engine: expected one of {', '.join(side_by_side.ENGINES)}, found {engine!r}")
    if engine == "kernel" and repeat > 1:
        raise _core.ScenarioError(f"--repeat: expected 1 with the engine kernel, whose runs are exact, found {repeat}")
    changes = {**assignments(settings), "engine": engine}
    folder = out_dir or default("engines")
    names: list[str | None] = [*words(cc)] or [None]
    todo: dict[str, Scenario] = {}
    for path in files:
        for cc_name in names:
            scenario = load(path, {**changes, **({"flow.cc": cc_name} if cc_name else {})}, large=large)
            name = f"{scenario.name} {cc_name or ''}".strip()
            if name in todo:
                raise _core.ScenarioError(f"{path}: expected scenarios of different names, found {name!r} twice")
            todo[name] = scenario
    places = file_names(todo)
    for name in todo:
        check_new(folder / places[name], force=force)
    announce([*todo.values()], repeat, cores=1)
    made: list[side_by_side.Pair] = []
    try:
        for pair in side_by_side.pairs(todo, engine=engine, repeat=repeat, large=large):
            with new_folder(folder / places[pair.name], force=force) as place:
                pair.write_into(place)
            pair.draw(folder / places[pair.name])
            made.append(pair)
            err.print(f"{len(made)}/{len(todo)}: {pair.name}", highlight=False)
    except (KeyboardInterrupt, OSError) as error:
        if made:
            error.add_note(f"{len(made)} of {len(todo)} scenarios are in {folder}")
        raise
    show([side_by_side.table(made)], form, side_by_side.records(made))
    if form == "table":
        out.message(f"results and figures in {folder}")
