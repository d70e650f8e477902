"""`elephan compare`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.api.metrics import METRICS
from elephan.api.run import Run
from elephan.base.errors import given_as
from elephan.base.folders import default, new_folder
from elephan.base.table import Head
from elephan.cli import FAILED, complete
from elephan.cli.engines import compare_engines, kernel_of, of_files
from elephan.cli.options import Force, Isolate, Large, Settings, assignments, command_line, words
from elephan.cli.output import Columns, Form, chosen, err, named, out, show_estimates, told
from elephan.cli.progress import announce, progress_bar
from elephan.studies.planned import ARGUMENTS, FLOWS, PATH, START_WITHIN, planned

USUAL_CC = ("reno", "cubic", "bbr", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp")
# The metrics that are shown where they differ, unless others are asked for.
USUAL = ("goodput", "fairness", "stability", "convergence", "loss", "queueing")
# The arguments of the comparison that options give.
OPTIONS = {
    key: f"--{key.replace('_', '-')}" for key in (*ARGUMENTS.values(), "flows", "duration", "repeat", "seed", "against")
}
# With less than this share of a run in the measuring window, a note gives it.
LEAST_MEASURED = 0.7

app = command_line()


@app.command()
def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Scenario file, or the name of an example, in place of the options of the path; several with --engines.",
            autocompletion=complete.files(".toml", complete.scenario_names),
            show_default=False,
        ),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            help="Algorithms, separated by commas; NAME=ALGORITHM gives one a name: mine=lib:x.c.",
            autocompletion=complete.list_of(complete.cc_names),
            show_default=", ".join(USUAL_CC),
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Let one flow of each meet flows of this algorithm: shares and harm.",
            autocompletion=complete.one_of(complete.cc_names),
        ),
    ] = None,
    settings: Settings = None,
    rate: Annotated[
        str | None, typer.Option(help="Rate of the bottleneck, counting IP packets.", show_default=PATH["rate"])
    ] = None,
    rtt: Annotated[str | None, typer.Option(help="Round-trip time without queueing.", show_default=PATH["rtt"])] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            help='Buffer of the bottleneck: "20% bdp", "500 packets" or "750 kB".', show_default=PATH["buffer"]
        ),
    ] = None,
    flows: Annotated[int | None, typer.Option(min=1, help="Number of flows.", show_default=str(FLOWS))] = None,
    duration: Annotated[str | None, typer.Option(help="Duration of each run.", show_default=PATH["duration"])] = None,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, help="Number of runs of each algorithm, each with another seed.", show_default="5"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="First seed.", show_default="1")] = None,
    start_within: Annotated[
        str | None,
        typer.Option(help="Flows after the first start at random within this time.", show_default=START_WITHIN),
    ] = None,
    engines: Annotated[
        str | None,
        typer.Option(
            help="Compare two engines instead: sim,kernel (a kernel in virtual time; needs an image) or sim,linux (this one; "
            "needs root).",
        ),
    ] = None,
    kept: Annotated[
        bool,
        typer.Option(
            "--kept", help="With --engines and sweeps: use the kernel's runs in --out, whatever code made them."
        ),
    ] = False,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Results folder.", show_default="results/compare-...")
    ] = None,
    columns: Columns = None,
    form: Form = "table",
    isolate: Isolate = False,
    large: Large = False,
    force: Force = False,
) -> None:
    """Compare algorithms on one path: a table with 95 % confidence intervals, and plots; or two engines.

    The path is that of the options, or of a scenario file. With --engines each scenario and algorithm runs on both, and a
    file with a sweep at each of its points: in which cells they agree.
    """
    # Completion waits for the import of this module, and matplotlib takes a second.
    from elephan.studies.compare import compare as run_comparison  # noqa: PLC0415

    path = {
        "rate": rate,
        "rtt": rtt,
        "buffer": buffer,
        "flows": flows,
        "duration": duration,
        "start_within": start_within,
    }
    given: dict[str, Any] = {key: value for key, value in {**path, "seed": seed}.items() if value is not None}
    changes = assignments(settings)
    if engines is not None:
        others = {"against": against, "columns": columns, "isolate": isolate or None, **({} if not files else given)}
        for name, value in others.items():
            if value is not None:
                raise _core.ScenarioError(f"--{name.replace('_', '-')}: expected none with --engines, found {value!r}")
    rules = _rules(cc, USUAL_CC if engines is None or not files else ())
    if engines is not None:
        changes["engine"] = kernel_of(engines, repeat)
        with given_as(OPTIONS):
            if files:
                scenarios = of_files(files, rules, changes, large=large)
            else:
                every = planned(cc=rules, settings=changes, repeat=1, large=large, **given)
                scenarios = {name: one for name, (one,) in every.items()}
        compare_engines(scenarios, changes["engine"], repeat or 1, out_dir, form, kept=kept, large=large, force=force)
        return
    if kept or (files and len(files) > 1):
        found = "--kept" if kept else len(files or ())
        raise _core.ScenarioError(f"FILE: expected one scenario, or --engines, found {found}")
    file = files[0] if files else None
    of_rivals = ("share", "others' share", "harm") if against is not None else ()
    wanted = named(columns, [*(metric.head for metric in METRICS), *map(Head, of_rivals)])
    everything: dict[str, Any] = {"cc": rules, "against": against, "settings": changes, "large": large, **given}
    with given_as(OPTIONS):
        _last(file, given)
        first = [scenarios[0] for scenarios in planned(file, repeat=1, **everything).values()]
    repeats = repeat or 5
    announce(first, repeats)
    folder = out_dir or default("-".join(["compare", *_described(file, against, changes, given)]))
    with (
        given_as(OPTIONS),
        new_folder(folder, force=force) as place,
        progress_bar(f"{', '.join(rules)}: {repeats * len(first)} runs") as progress,
    ):
        result = run_comparison(file, repeat=repeats, isolate=isolate, progress=progress, **everything)
        result.write_into(place)
    result.draw(folder)
    for error in dict.fromkeys(error for errors in result.failed.values() for error in errors):
        err.message(error)
    run = next(iter(result.runs.values()))[0]
    table = result.table(_title(run, against, repeats), _note(run, repeats))
    table = told(table, (*of_rivals, *USUAL)) if wanted is None else chosen([table], wanted)[0]
    show_estimates(table, result.to_polars("estimates").to_dicts(), form, wanted)
    if form == "table":
        out.message(f"results, table and plots in {folder}")
    raise typer.Exit(FAILED if result.failed else 0)


def _rules(cc: str | None, usual: Sequence[str]) -> dict[str, str]:
    """The algorithms of `--cc` by name. Raises `ScenarioError` if there are none."""
    found = {}
    for word in words(cc) if cc is not None else usual:
        name, equals, rule = word.partition("=")
        # A path may have the sign, too.
        is_named = bool(equals and rule) and re.fullmatch(r"[\w.+-]+", name) is not None
        found[name if is_named else word] = rule if is_named else word
    if cc is not None and not found:
        raise _core.ScenarioError(f"--cc: expected algorithms separated by commas, found {cc!r}")
    return found


def _described(
    file: Path | None,
    against: str | None,
    changes: Mapping[str, str],
    given: Mapping[str, Any],
) -> Iterator[str]:
    """What the name of the results folder says: the path, and what is not as usual."""
    if file is None:
        told = {**PATH, "flows": FLOWS, "seed": 1, **given}
        yield f"{told['rate']}-{told['rtt']}-{told['buffer']}-{told['flows']}-flows"
        yield from [f"against-{against}"] * (against is not None)
        yield f"{told['duration']}-seed-{told['seed']}"
    else:
        yield from [
            file.stem,
            *([f"against-{against}"] if against else []),
            *(f"{key}-{value}" for key, value in given.items()),
        ]
    yield from (f"{key}-{value}" for key, value in changes.items())


def _title(run: Run, against: str | None, repeats: int) -> str:
    """The scenario and the number of runs on one line."""
    document = run.scenario.document
    count = sum(one.get("count", 1) for one in document["flow"])
    met = f", one against {count - 1} of {against}" if against else ""
    path = document.get("path", {})
    told = [
        f"{path[key]}" if key != "buffer" else f"buffer {path[key]}" for key in ("rate", "rtt", "buffer") if key in path
    ]
    each = f"{repeats} run{'s' * (repeats > 1)} each"
    return ", ".join([f"{count} flow{'s' * (count > 1)}{met}", *told, document["duration"], each])


def _note(run: Run, repeats: int) -> str:
    """What the numbers are, and how much of a run they are of if that is little."""
    summary, duration_s = run.summary, _core.seconds(run.scenario.document["duration"])
    share = (summary.to_s - summary.from_s) / duration_s
    little = f"measured from {summary.from_s:g} s on, {100 * share:.0f} % of each run" if share < LEAST_MEASURED else ""
    interval = "±, or the numbers in brackets: 95 % confidence interval" if repeats > 1 else ""
    return "; ".join(part for part in (little, interval) if part)


def _last(file: Path | None, given: Mapping[str, Any]) -> None:
    """Refuse runs that end before all flows have started: measured is from then on."""
    if file is not None or given.get("flows") == 1:
        return
    seconds = {}
    for name, usual in (("duration", PATH["duration"]), ("start_within", START_WITHIN)):
        try:
            seconds[name] = _core.seconds(given.get(name, usual))
        except _core.ScenarioError as error:
            raise _core.ScenarioError(f"{name}: {error}") from error
    if seconds["duration"] <= seconds["start_within"]:
        within, duration = given.get("start_within", START_WITHIN), given.get("duration", PATH["duration"])
        raise _core.ScenarioError(
            f'duration: expected more than --start-within, "{within}", in which all flows start, found "{duration}"'
        )
