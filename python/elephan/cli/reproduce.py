"""The commands `elephan reproduce ...`."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from matplotlib.figure import Figure

from elephan import _core
from elephan.base import plots
from elephan.base.documents import damage
from elephan.base.folders import new_file, only_writer
from elephan.base.table import Table, text_heads
from elephan.base.text import Terminal
from elephan.cli.options import command_line
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.page import report_of, report_place, table_of, write_page
from elephan.studies.sweeps.worker import code_version

app = command_line()
out = Terminal()
err = Terminal(stderr=True)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="`list`, `all`, `page`, a source, or SOURCE/EXPERIMENT.")],
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer and shorter runs: minutes for all.")] = False,
    engine: Annotated[
        str,
        typer.Option(help="sim, or kernel (a kernel's TCP; needs an image) for scenarios that a kernel can run."),
    ] = "sim",
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for runs and reports; existing runs are reused. [default: results/reproduce, with --engine kernel "
            "results/reproduce-kernel]",
        ),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Page to write. [default: docs/reproduction.md for `page`]")] = None,
) -> None:
    """Reproduce published experiments, and compare the results with the published numbers."""
    if engine not in ("sim", "kernel"):
        raise _core.ScenarioError(f"--engine: expected sim or kernel, found {engine!r}")
    out_dir = out_dir or Path("results/reproduce" if engine == "sim" else "results/reproduce-kernel")
    if name == "list":
        _list()
        return
    if name == "page":
        with damage(out_dir):
            out.print(f"{write_page(out_dir, page or Path('docs/reproduction.md'))}")
        return
    if name == "all":
        chosen = [e for e in EXPERIMENTS.values() if e.quick or not quick]
    else:
        chosen = [e for e in EXPERIMENTS.values() if name in (e.name, e.source)]
    if not chosen:
        raise _core.ScenarioError(
            f"reproduce: expected list, all, page, or one of {', '.join(EXPERIMENTS)}; found {name!r}"
        )
    lab = Lab(
        out_dir / "runs",
        quick=quick,
        engine=engine,
        progress=lambda what, share: err.print(f"  {what}: {share:.0%}", highlight=False) if err.is_terminal else None,
    )
    counts: Counter[str] = Counter()
    with only_writer(out_dir, "reproduction"):
        for one in chosen:
            started = time.perf_counter(), time.process_time(), lab.asked, lab.made
            report = report_of(one, one.function(lab), quick=quick)
            ended = time.perf_counter(), time.process_time(), lab.asked, lab.made
            wall, cpu, asked, made = (after - before for before, after in zip(started, ended, strict=True))
            report |= {
                "engine": engine,
                "wall_s": round(wall, 1),
                "cpu_s": round(cpu, 1),
                "runs": asked,
                "made": made,
                "code": code_version(),
            }
            _keep(out_dir, report)
            _print(report)
            counts.update(report["verdicts"].values())
            counts.update(check["verdict"] for check in report["checks"])
    out.print(f"{len(chosen)} experiments: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    if page is not None:
        with damage(out_dir):
            out.print(f"{write_page(out_dir, page)}")


def _list() -> None:
    rows = [
        [one.name, one.title, one.scenario or "formulas", "yes" if one.quick else ""] for one in EXPERIMENTS.values()
    ]
    head = text_heads("name", "what", "scenario", "in --quick")
    out.print(Table("published experiments", head, rows).to_terminal(out.width))


def _keep(folder: Path, report: dict[str, Any]) -> None:

    place = report_place(folder, report["name"], quick=report["quick"])
    draw = report.pop("draw")
    _write(place, report)

    def draw_and_tell() -> Figure:
        figure: Figure = draw()
        with new_file(place.with_suffix(".csv")) as new:
            plots.data_of(figure).write_csv(new)
        return figure

    if draw is not None and plots.save_beside(place.parent, {place.stem: draw_and_tell}):
        report["picture"] = str(place.with_suffix(".png").relative_to(folder))
        _write(place, report)


def _write(place: Path, report: dict[str, Any]) -> None:
    with new_file(place) as new:
        new.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _print(report: dict[str, Any]) -> None:
    if report["rows"]:
        out.print(table_of(report).to_terminal(out.width))
        for group, found in report["verdicts"].items():
            reason = report["reasons"].get(group, "") if found != "agrees" else ""
            out.strong(found, f": {group}{'; ' + reason if reason else ''}")
    for check in report["checks"]:
        out.strong(f"{check['claim']} {check['verdict']}", f": {check['text']} ({check['evidence']})")
