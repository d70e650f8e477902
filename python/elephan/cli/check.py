"""`elephan check`."""

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from elephan import _core
from elephan.api.scenario import EXAMPLES, load
from elephan.base import plots
from elephan.base.folders import new_file, only_writer, own_or_empty
from elephan.base.kinds import CHECK
from elephan.base.text import echo
from elephan.cli import complete
from elephan.cli.options import Large, Settings, assignments, command_line, words
from elephan.cli.output import Form, out, show
from elephan.cli.progress import progress_bar
from elephan.paths import qlog
from elephan.report.traced import Traced
from elephan.studies.check.decisions import (
    EXIT,
    Decided,
    Decision,
    Laboratory,
    Runs,
    changed,
    decide,
    on_trace,
    runs_of,
)
from elephan.studies.check.expectations import Expectation, engine_of, expectations
from elephan.studies.check.report import counted, junit, markdown, overview, records, remarks
from elephan.studies.sweeps.worker import code_version

app = command_line()
# The engines of `elephan run`.
ENGINES = ("sim", "model", "kernel", "linux")


@app.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="Scenario files with `[[expect]]`, or folders of such files; or names of examples.",
            autocompletion=complete.files(".toml", complete.scenario_names),
        ),
    ],
    settings: Settings = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Engines, separated by commas, as of `elephan run`.", show_default="that of each file"),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(help="Algorithm of the first flow, the one under test: a name, or python:, lib:, bpf:."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time after which no run is begun: 30s, 10min, 1h.", show_default="none")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Results folder of an earlier check: say whether its runs are equal to these, or changed."),
    ] = None,
    out_dir: Annotated[Path, typer.Option("--out", help="Results folder; finished runs in it are reused.")] = Path(
        "results/check"
    ),
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Decide on the samples of this qlog, a connection of a QUIC stack, and run nothing.", metavar="QLOG"
        ),
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    form: Form = "table",
    large: Large = False,
) -> None:
    """Decide the expectations of scenario files: held, failed, undecided or not evaluated.

    Each is run until it is decided, at most 20 times or as often as it says. Exit with 0 if all hold, with 1 if one failed, and
    otherwise with 3.
    """
    changes = assignments(settings) | ({} if cc is None else {"flow.0.cc": cc})
    if trace is not None:
        for option, given in (("--engine", engine), ("--cc", cc), ("--budget", budget), ("--against", against)):
            if given is not None:
                raise _core.ScenarioError(f"{option}: expected none with --trace, found {given}")
        _finish(_on_trace(_expectations(files, changes, "", large=large), trace), junit_file, form, compared=False)
    deadline = None if budget is None else time.monotonic() + _budget_s(budget)
    base = None if against is None else CHECK.load(against)
    own_or_empty(out_dir, CHECK)
    found = {name: _expectations(files, changes, name, large=large) for name in _engines(engine)}
    decided: list[Decided] = []
    with only_writer(out_dir, "check"):
        runs: dict[str, Mapping[str, str]] = {}
        for ones in found.values():
            for own in dict.fromkeys(engine_of(one) for one in ones):
                of_it = [one for one in ones if engine_of(one) == own]
                laboratory = Laboratory(out_dir / "runs", engine=own, deadline=deadline)
                with progress_bar(f"check {own}") as progress:
                    # At most: most are decided by fewer.
                    most = sum(one.question.looks[-1] * len(one.points) * len(one.populations) for one in of_it)
                    done = itertools.count(1)
                    laboratory.progress = lambda _, tell=progress, done=done, most=most: tell(
                        min(0.99, next(done) / most)
                    )
                    made = decide(of_it, laboratory)
                own_runs = runs_of(made, laboratory)
                if against is not None and base is not None:
                    compare = partial(changed, laboratory=laboratory, own=own_runs, base=against, kept=base["runs"])
                    made = [replace(one, change=compare(one)) for one in made]
                runs |= own_runs
                _draw(made, laboratory, out_dir)
                decided += made
        _write(out_dir, decided, runs)
    _finish(decided, junit_file, form, compared=base is not None)


def _on_trace(ones: Sequence[Expectation], file: Path) -> list[Decided]:
    """Decide on the connection of a file, which is flow 1 of each scenario."""
    log = qlog.read(file)
    return [on_trace(one, Traced(log, one.points[0].scenario)) for one in ones]


def _finish(decided: Sequence[Decided], junit_file: Path | None, form: str, *, compared: bool) -> NoReturn:
    """Write and print the decisions, and exit with their code."""
    if junit_file is not None:
        with new_file(junit_file) as new:
            new.write_bytes(junit(decided))
    _show(decided, form, compared=compared)
    raise typer.Exit(_code(decided))


def _code(decided: Sequence[Decided]) -> int:
    codes = {EXIT[one.decision] for one in decided}
    return 1 if 1 in codes else max(codes)


def _budget_s(text: str) -> float:
    found = _core.quantity(text.strip())
    if found is None or found[1] != "s" or not found[0] > 0:
        raise _core.ScenarioError(f"--budget: expected a time such as 30s, 10min or 1h, found {text!r}")
    return found[0]


def _engines(text: str | None) -> list[str]:
    """The engines of the option; an empty name is that of each file."""
    if text is None:
        return [""]
    names = words(text)
    for name in names or [text]:
        if name not in ENGINES:
            raise _core.ScenarioError(f"--engine: expected {_core.one_of(ENGINES, name)}, found {name!r}")
    return list(dict.fromkeys(names))


def _expectations(files: Sequence[Path], changes: dict[str, str], engine: str, *, large: bool) -> list[Expectation]:
    """The expectations of files, and of the files of folders that have some. Raises `ScenarioError` if a file has none."""
    changes = changes | ({"engine": engine} if engine else {})
    found = list[Expectation]()
    for file in files:
        folder = file if file.is_dir() else EXAMPLES / file
        places = _files(folder) if folder.is_dir() and not file.is_file() else [file]
        for place in places:
            scenario = load(place, large=large)
            ones = expectations(place, scenario, changes, large=large)
            if not ones:
                raise _core.ScenarioError(f"{place}: expected [[expect]] in it, found none")
            found += ones
    return found


def _files(folder: Path) -> list[Path]:
    """The scenario files below a folder that have expectations."""
    every = sorted(folder.rglob("*.toml"))
    found = [file for file in every if "[[expect]]" in file.read_text(encoding="utf-8", errors="replace")]
    if not found:
        raise _core.ScenarioError(f"{folder}: expected scenario files with [[expect]] in it, found none")
    return found


def _draw(decided: Sequence[Decided], laboratory: Laboratory, folder: Path) -> None:
    """Draw the run that speaks against each expectation that failed."""
    files = list(dict.fromkeys(one.expectation.file for one in decided))
    stems = [file.stem for file in files]
    for one in decided:
        if one.decision != Decision.FAILED:
            continue
        file = one.expectation.file
        name = file.stem if stems.count(file.stem) == 1 else f"{file.stem}-{files.index(file) + 1}"
        worst = one.worst
        place = one.expectation.question.sets[""][one.places.index(worst)]
        first = int(worst.point.scenario.document["seed"])
        run = laboratory.run([laboratory.scenario(place.arms[0], worst.seed - first + 1)])[0]
        plots.save_beside(folder, {f"{name}-{one.expectation.number}-{one.engine}": run.plot})


def _write(folder: Path, decided: Sequence[Decided], runs: Runs) -> None:
    document = {"elephan": _core.__version__, "code": code_version(), "expectations": records(decided), "runs": runs}
    with new_file(folder / CHECK.document) as new:
        new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _show(decided: Sequence[Decided], form: str, *, compared: bool) -> None:
    if form == "md":
        table = markdown(decided, compared=compared)
        echo(table)
        return
    show([overview(decided, compared=compared)], form, records(decided))
    if form != "table":
        return
    for one in decided:
        if one.decision in (Decision.FAILED, Decision.UNDECIDED) and (lines := remarks(one)):
            out.print()
            out.strong(f"{one.expectation.name} {one.decision}", f": {one.expectation.says}")
            for line in lines:
                out.message(line)
    out.message(counted(decided))
