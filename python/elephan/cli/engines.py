"""`elephan compare --engines`: scenarios and sweeps on the simulator and on a kernel's TCP."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from elephan import _core
from elephan.api.scenario import Scenario, load
from elephan.base.folders import check_new, default, new_folder
from elephan.base.text import file_names
from elephan.cli import FAILED
from elephan.cli.options import words
from elephan.cli.output import err, out, show
from elephan.cli.progress import announce

# The engines that run a kernel: in virtual time, or the running one.
KERNELS = ("kernel", "linux")


def of_files(
    files: Sequence[Path], rules: Mapping[str, str], changes: Mapping[str, str], *, large: bool
) -> dict[str, Scenario]:
    """The scenarios of files by name, each with each algorithm; as it is without any. Raises `ScenarioError`."""
    found: dict[str, Scenario] = {}
    for path in files:
        for cc, rule in rules.items() or [("", "")]:
            scenario = load(path, {**changes, **({"flow.cc": rule} if rule else {})}, large=large)
            name = f"{scenario.name} {cc}".strip()
            if name in found:
                raise _core.ScenarioError(f"{path}: expected scenarios of different names, found {name!r} twice")
            found[name] = scenario
    return found


def kernel_of(engines: str, repeat: int | None) -> str:
    """The kernel of `--engines`. Raises `ScenarioError` for another pair, and for repeats of what is exact."""
    first, *rest = words(engines) or [""]
    if first != "sim" or len(rest) != 1 or rest[0] not in KERNELS:
        known = " or ".join(f"sim,{engine}" for engine in KERNELS)
        raise _core.ScenarioError(f"--engines: expected {known}, found {engines!r}")
    if rest[0] == "kernel" and (repeat or 1) > 1:
        raise _core.ScenarioError(f"--repeat: expected 1 with the engine kernel, whose runs are exact, found {repeat}")
    return rest[0]


def compare_engines(
    todo: Mapping[str, Scenario],
    engine: str,
    repeat: int,
    out_dir: Path | None,
    form: str,
    *,
    kept: bool,
    large: bool,
    force: bool,
) -> None:
    """Run scenarios, given by name, on the simulator and on a kernel; print the differences, and write all results.

    Sweeps are run at each of their points; `kept` is as for `_compare_sweeps`.
    """
    swept = [name for name, one in todo.items() if one.document.get("sweep")]
    if swept and (len(swept) < len(todo) or engine != "kernel"):
        raise _core.ScenarioError(f"FILE: expected sweeps alone, and --engines sim,kernel, found {swept[0]} and others")
    if kept and not (swept and out_dir):
        raise _core.ScenarioError("--kept: expected sweeps, and the folder of their runs as --out, found none")
    if swept:
        _compare_sweeps(todo, out_dir, form, kept=kept, large=large)
        return
    # The import takes a second, and completion waits for that of this module.
    from elephan.studies import side_by_side  # noqa: PLC0415

    folder, places = out_dir or default("engines"), file_names(todo)
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


def _compare_sweeps(todo: Mapping[str, Scenario], out_dir: Path | None, form: str, *, kept: bool, large: bool) -> None:
    """Run sweeps, given by name, on the simulator and on a kernel in virtual time, and print where these agree.

    Runs that the results folder has are not repeated, unless they failed. If `kept`, those of the kernel are used whatever
    code made them. Raises as a sweep does.
    """
    # The import takes a second, and completion waits for that of this module.
    from elephan.cli.sweep import run_sweep  # noqa: PLC0415
    from elephan.studies import grid  # noqa: PLC0415
    from elephan.studies.sweeps.loop import sweep  # noqa: PLC0415

    folder, places = out_dir or default("engines"), file_names(todo)
    every = {name: grid.planned(scenario, large=large) for name, scenario in todo.items()}
    failed = False
    for name, engines in every.items():
        for engine, scenario in engines.items():
            err.print(f"{name}, {engine}", highlight=False)
            try:
                to_keep = kept and engine == "kernel"
                run_sweep(sweep(scenario, folder / places[name] / engine, retry_failed=True, kept=to_keep), err)
            except typer.Exit:
                # Its message is printed, and the map shows where.
                failed = True
    cells = [cell for name, scenario in todo.items() for cell in grid.read(scenario, folder / places[name])]
    show(grid.tables(cells), form, grid.records(cells))
    if form == "table":
        out.message(f"results in {folder}")
    if failed:
        raise typer.Exit(FAILED)
