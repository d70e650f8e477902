"""The command `elephan reproduce`."""

import csv
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from elephan import _core
from elephan.base import plots
from elephan.base.cores import core_count
from elephan.base.documents import damage, read_json
from elephan.base.folders import new_file, only_writer
from elephan.base.plots import Figure
from elephan.base.table import Table, text_heads
from elephan.cli import complete, parse
from elephan.cli.options import Scheduler, Tls, check_tls, command_line
from elephan.cli.output import Form, err, out, show
from elephan.cli.progress import progress_bar, span
from elephan.studies.lab import Engine
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import OTHERS, SCENARIOS, SOURCES, Experiment, Lab, claims
from elephan.studies.reproduce.page import commands, write_page
from elephan.studies.reproduce.stored import places_of, report_of, report_place, tables_of, verdicts_of
from elephan.studies.sweeps.schedulers import connect
from elephan.studies.sweeps.worker import code_version

app = command_line()

PAGE = Path("docs/reproduction.md")
# The processor time of each experiment, in full and with `--quick`, when its runs were made last.
COSTS = SCENARIOS / "costs.csv"


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="`list`, `all`, `page`, a source, or SOURCE/EXPERIMENT.",
            autocompletion=complete.one_of(complete.experiments),
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer and shorter runs: minutes for all. Their verdicts do not count.")
    ] = False,
    looks: Annotated[
        int | None,
        typer.Option(
            min=1, help="Judge after at most this many looks at growing numbers of repeats.", show_default="all"
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(help="Test this claim only, such as K02, and keep the rest of a stored report. May be repeated."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="sim; ns2 (needs ns-2); linux (the running kernel, in real time; root) or kernel (an image, in virtual time), "
            "for scenarios that these can express."
        ),
    ] = "sim",
    against: Annotated[
        str | None, typer.Option(help="Run the experiment on this engine as well, and show its numbers beside ours.")
    ] = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    out_dir: Annotated[
        Path, typer.Option("--out", help="Folder for runs and reports; finished runs are reused.")
    ] = Path("results/reproduce"),
    form: Form = "table",
    page: Annotated[Path | None, typer.Option(help="Page to write.", show_default=f"{PAGE} for `page`")] = None,
) -> None:
    """Reproduce published experiments, and compare the results with the published numbers and claims.

    One experiment takes seconds to half an hour, all of them hours: the time is stated before it starts. An interrupted
    command loses only the runs in progress.
    """
    engines = [_engine("--engine", engine), *([_engine("--against", against)] if against is not None else [])]
    if name == "list":
        show([_list()], form)
        return
    if name == "page":
        out.print(f"{_page(out_dir, page or PAGE)}")
        return
    chosen = _chosen(name, quick=quick)
    asked = frozenset(claim or ())
    _check_claims(asked, chosen)
    check_tls(tls, scheduler=scheduler)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        stack.enter_context(only_writer(out_dir, "reproduction"))
        executor: Executor | None = None
        if scheduler is not None:
            client = stack.enter_context(connect(scheduler, tls))
            executor = client.get_executor()
        labs = [
            Lab(out_dir / "runs", quick=quick, engine=one, most_looks=looks, claims=asked, executor=executor)
            for one in dict.fromkeys(engines)
        ]
        work = _Work(chosen, labs, out_dir, _costs(quick=quick), form=form)
        err.message(work.announcement())
        for one in chosen:
            counts.update(work.do(one))
    if untested := sorted(asked - work.tested):
        raise _core.ScenarioError(f"--claim: expected a claim that {name} tests, found {', '.join(untested)}")
    tell = out.message if form == "table" else err.message
    if form != "table":
        show(work.tables, form, work.reports)
    tell(f"{_counted(len(chosen))}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    if quick:
        tell("These verdicts are from fewer and shorter runs (--quick); the page does not count them.")
    if page is not None:
        tell(f"{_page(out_dir, page)}")


def _page(folder: Path, page: Path) -> Path:
    """Write the page, unless a report by another version has a command that this one does not know."""
    with damage(folder):
        for line in commands(folder):
            parse(line)
        return write_page(folder, page)


def _engine(option: str, name: str) -> Engine:
    engines: tuple[Engine, ...] = ("sim", *OTHERS)
    for one in engines:
        if name == one:
            return one
    raise _core.ScenarioError(f"{option}: expected one of {', '.join(engines)}, found {name!r}")


def _chosen(name: str, *, quick: bool) -> list[Experiment]:
    if name == "all":
        return [one for one in EXPERIMENTS.values() if one.quick or not quick]
    chosen = [one for one in EXPERIMENTS.values() if name in (one.name, one.source)]
    if not chosen:
        near = get_close_matches(name, [*EXPERIMENTS, *SOURCES, "list", "all", "page"], 3, 0.0)
        raise _core.ScenarioError(
            f"reproduce: expected list, all, page, a source or an experiment such as {', '.join(near)}; found {name!r}"
        )
    return chosen


def _check_claims(asked: frozenset[str], chosen: Sequence[Experiment]) -> None:
    known = sorted(id_ for source in dict.fromkeys(one.source for one in chosen) for id_ in claims(source))
    for id_ in sorted(asked.difference(known)):
        raise _core.ScenarioError(f"--claim: expected one of {', '.join(known)}; found {id_!r}")


def _costs(*, quick: bool) -> dict[str, float]:
    if not COSTS.is_file():
        return {}
    with COSTS.open(encoding="utf-8", newline="") as file:
        return {row["experiment"]: float(row["quick_s" if quick else "full_s"]) for row in csv.DictReader(file)}


@dataclass
class _Work:
    """Experiments to be done in laboratories, one for each engine."""

    chosen: Sequence[Experiment]
    labs: Sequence[Lab]
    folder: Path
    costs: dict[str, float]
    # The claims that were tested.
    tested: set[str] = field(default_factory=set)
    form: str = "table"
    tables: list[Table] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)

    def announcement(self) -> str:
        """What will be done, and how long it takes if nothing is there yet."""
        known = sum(self.costs.get(one.name, 0.0) for one in self.chosen)
        cores = core_count()
        text = f"{_counted(len(self.chosen))}; runs that are in {self.folder / 'runs'} are reused"
        if known:
            # Experiments share runs.
            most = "at most " if len(self.chosen) > 1 else ""
            took = f"{span(known)} of processor time, {span(known / cores)} on {cores} cores"
            text += f"; where it was measured, they took {most}{took}"
        return text

    def do(self, one: Experiment) -> Counter[str]:
        """Do an experiment on every engine and store the reports; returns the verdicts of the first engine.

        Tables and verdicts are printed at once, other formats when all experiments are done.
        """
        reports = [self._report(one, lab) for lab in self.labs]
        first, others = reports[0], {lab.engine: report for lab, report in zip(self.labs[1:], reports[1:], strict=True)}
        self.reports += reports
        tables = tables_of(first, others)
        if self.form != "table":
            self.tables += tables
            return verdicts_of(first)
        show(tables, self.form)
        beside = {engine: {claim["claim"]: claim for claim in other["claims"]} for engine, other in others.items()}
        for claim in first["claims"]:
            out.strong(f"{claim['claim']} {claim['verdict']}", f": {claim['sentence']}")
            same = {engine: found[claim["claim"]] for engine, found in beside.items() if claim["claim"] in found}
            places = places_of(claim, same)
            if places is not None:
                out.show(places)
        return verdicts_of(first)

    def _report(self, one: Experiment, lab: Lab) -> dict[str, Any]:
        lab.asked = lab.made = 0
        lab.cost_s = 0.0
        lab.counted, lab.differences = set(), {}
        started = time.perf_counter()
        with progress_bar(one.name) as progress:
            expected = self.costs.get(one.name)
            lab.progress = lambda spent_s: progress(min(0.99, spent_s / expected) if expected else 0.0)
            made = one.function(lab)
        report = report_of(one, made) | {
            "wall_s": round(time.perf_counter() - started, 1),
            "cost_s": round(lab.cost_s, 1),
            "runs": lab.asked,
            "made": lab.made,
            "differences": list(lab.differences),
            "code": code_version(),
        }
        self.tested.update(claim["claim"] for claim in report["claims"])
        if lab.claims:
            # A part of an experiment on the simulator is no report of it.
            if report["claims"] and (lab.engine != "sim" or _place(self.folder, report).is_file()):
                _write(_place(self.folder, report), _renewed(self.folder, report))
        else:
            _keep(self.folder, report, made.draw)
        return report


def _renewed(folder: Path, report: dict[str, Any]) -> dict[str, Any]:
    """The stored report of the same code, if there is one, with the claims of `report` in their places."""
    place = _place(folder, report)
    # Notes are of the whole experiment. A part does not take its place in the archive of the page.
    alone = report | {"notes": [], "part": True}
    stored: dict[str, Any] = read_json(place.parent, place.name) if place.is_file() else alone
    if stored["code"] != report["code"]:
        raise _core.ScenarioError(
            f"{place}: expected a report by {report['code']}, found one by {stored['code']}; run the whole experiment again"
        )
    new = {one["claim"]: one for one in report["claims"]}
    kept = [new.pop(one["claim"], one) for one in stored["claims"]]
    return stored | {"claims": [*kept, *new.values()]}


def _place(folder: Path, report: dict[str, Any]) -> Path:
    return report_place(folder, report["name"], quick=report["quick"], engine=report["engine"])


def _keep(folder: Path, report: dict[str, Any], draw: "Callable[[], Figure] | None") -> None:
    place = _place(folder, report)
    _write(place, report)

    def draw_and_tell() -> Figure:
        assert draw is not None
        figure = draw()
        with new_file(place.with_suffix(".csv")) as new:
            plots.data_of(figure).write_csv(new)
        return figure

    if draw is not None and plots.save_beside(place.parent, {place.stem: draw_and_tell}):
        report["picture"] = str(place.with_suffix(".png").relative_to(folder))
        _write(place, report)


def _counted(experiments: int) -> str:
    return "1 experiment" if experiments == 1 else f"{experiments} experiments"


def _list() -> Table:
    rows = [
        [one.name, one.title, one.scenario or "formulas", "yes" if one.quick else ""] for one in EXPERIMENTS.values()
    ]
    head = text_heads("name", "what", "scenario", "in --quick")
    return Table("published experiments", head, rows)


def _write(place: Path, report: dict[str, Any]) -> None:
    with new_file(place) as new:
        new.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
