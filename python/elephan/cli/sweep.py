"""`elephan sweep`."""

import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from elephan import _core
from elephan.api.scenario import load
from elephan.base.errors import given_as
from elephan.base.folders import default, own_or_empty
from elephan.base.kinds import SWEEP
from elephan.base.text import Terminal
from elephan.cli import FAILED
from elephan.cli.grids import tell
from elephan.cli.options import (
    Isolate,
    Large,
    ScenarioFile,
    Scheduler,
    Settings,
    Tls,
    assignments,
    check_tls,
    command_line,
)
from elephan.cli.output import err, out
from elephan.cli.progress import Lines, NameColumn, announce
from elephan.studies.sweeps.dataset import Dataset, named
from elephan.studies.sweeps.loop import Sweep, SweepRun, sweep
from elephan.studies.sweeps.schedulers import connect

SHOWN_FAILURES = 5
OPTIONS = {"until": "--until", "max_repeat": "--max-repeat", "workers": "--workers"}

app = command_line()


@app.command("run")
def sweep_command(
    file: ScenarioFile,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of the sweep.", show_default="results/NAME")
    ] = None,
    settings: Settings = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of threads on this machine; 0: all cores.")] = 0,
    scheduler: Scheduler = None,
    tls: Tls = None,
    slurm: Annotated[str | None, typer.Option(help='Run as Slurm jobs with these options: "--partition=cpu".')] = None,
    pbs: Annotated[str | None, typer.Option(help='Run as PBS jobs: "-q cpu -l walltime=2:00:00".')] = None,
    htcondor: Annotated[str | None, typer.Option(help='Run as HTCondor jobs: "request_cpus=4".')] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of these jobs.")] = 1,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed runs.")] = False,
    until: Annotated[str | None, typer.Option(help='Add repeats until a condition holds: "ci(fairness) < 5%".')] = None,
    max_repeat: Annotated[int | None, typer.Option(help="Maximum number of repeats with --until.")] = None,
    isolate: Isolate = False,
    large: Large = False,
) -> None:
    """Run all points of a scenario's sweep that its folder does not have yet."""
    scenario = load(file, assignments(settings), large=large)
    folder = folder or default(scenario.name)
    systems = [
        (kind, text) for kind, text in (("slurm", slurm), ("pbs", pbs), ("htcondor", htcondor)) if text is not None
    ]
    if len(systems) + (scheduler is not None) > 1:
        raise _core.ScenarioError("sweep: expected one of --scheduler, --slurm, --pbs and --htcondor, found more")
    check_tls(tls, scheduler=scheduler, jobs=bool(systems))
    if not systems and scheduler is None:
        announce([scenario], scenario.points * scenario.repeats, workers)
    with ExitStack() as stack:
        where: Any = None if scheduler is None else stack.enter_context(connect(scheduler, tls))
        for kind, text in systems:
            where = _cluster(stack, kind, text, jobs, folder, tls)
        stack.enter_context(given_as(OPTIONS))
        run_sweep(
            sweep(
                scenario,
                folder,
                scheduler=where,
                workers=workers,
                retry_failed=retry_failed,
                until=until,
                max_repeat=max_repeat,
                isolate=isolate,
            )
        )


def _cluster(stack: ExitStack, kind: str, text: str, jobs: int, folder: Path, tls: Path | None) -> Any:
    from elephan.studies.sweeps.cluster import cluster  # noqa: PLC0415 - an extra

    own_or_empty(folder, SWEEP)
    made = stack.enter_context(cluster(kind, text, folder / "jobs", tls))
    made.scale(jobs=jobs)
    client = stack.enter_context(made.get_client())
    err.print(f"waiting for the first of {jobs} jobs")
    client.wait_for_workers(1)
    return client


def run_sweep(one: Sweep, to: Terminal = out) -> None:
    """Run a sweep with a progress bar, and print a summary to a terminal. Raises `typer.Exit` if a run failed."""
    columns = (
        NameColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    failures: list[SweepRun] = []
    try:
        bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        # The sweep is closed first: it writes the finished runs.
        with bar as progress, closing(iter(one)) as runs:
            started = time.monotonic()
            task = progress.add_task(one.scenario.name, total=None, rate="")
            lines = None if err.is_terminal else Lines(one.scenario.name)
            for run in runs:
                tell(named(one.losses, "their runs are repeated"))
                one.losses = []
                if not run.ok and len(failures) < SHOWN_FAILURES:
                    failures.append(run)
                seconds = time.monotonic() - started
                rate = (one.done - one.reused) / seconds if seconds else 0
                text = f"{rate:.3g} runs/s" + (f", {one.failed} failed" if one.failed else "")
                progress.update(task, total=one.total, completed=one.done, rate=text)
                if lines is not None:
                    lines(one.done / one.total, f", {one.done} of {one.total} runs, {text}")
    except KeyboardInterrupt as stopped:
        if one.total:
            # More may have been written than was counted.
            kept = Dataset(one.folder).index().height
            stopped.add_note(f"{kept} of {one.total} runs are in {one.folder}; repeat the command to continue")
        raise
    for run in failures:
        settings = ", ".join(f"{key} = {value}" for key, value in run.settings.items())
        err.message(f"point {run.point}, repeat {run.repeat} ({settings}): {run.error}")
    if one.failed > len(failures):
        more = f'elephan sweep query {one.folder} "select point, repeat, error from runs where error is not null"'
        err.message(f"and {one.failed - len(failures)} more: {more}")
    new = one.done - one.reused
    to.print(f"{one.done} runs in {one.folder}: {new} new, {one.reused} reused, {one.failed} failed", soft_wrap=True)
    if failures:
        raise typer.Exit(FAILED)
