"""The commands `elephan sweep`, `table`, `paired` and `query`."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from elephan import _core
from elephan.folders import default, own_or_empty
from elephan.progress import NameColumn
from elephan.reading import damage
from elephan.scenario import load
from elephan.settings import Large, assignments, is_loopback, words
from elephan.sweeps import tables
from elephan.sweeps.dataset import DESCRIPTION, Dataset, SweepError, named
from elephan.sweeps.loop import Sweep, SweepRun, sweep
from elephan.sweeps.schedulers import connect
from elephan.text import Terminal, echo

BAD_INPUT, FAILED = 2, 1
SHOWN_FAILURES = 5

out = Terminal(least_width=132)
err = Terminal(stderr=True)

Folder = Annotated[Path, typer.Argument(help="The folder of a sweep.")]
Where = Annotated[list[str] | None, typer.Option("--where", help="KEY=VALUE: only runs with this setting.")]
Form = Annotated[str, typer.Option("--format", help="text, csv, markdown or latex.")]


@contextmanager
def _mistakes(read: Path | None = None) -> Iterator[None]:
    """One line for what a sweep stopped at, and for what is damaged in the folder that is read."""
    stopped: SweepError | None = None
    with nullcontext() if read is None else damage(read):
        try:
            yield
        except SweepError as error:
            stopped = error
    if stopped is not None:
        err.message(str(stopped))
        raise typer.Exit(FAILED) from stopped


def sweep_command(
    file: Annotated[Path, typer.Argument(help="The scenario file.")],
    folder: Annotated[Path | None, typer.Option("--out", help="The sweep's folder. [default: results/NAME]")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, such as path.rtt=162ms.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Threads of this machine. [default: all cores]")] = 0,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler: tls://host:8786.")] = None,
    tls: Annotated[Path | None, typer.Option(help="Of a cluster: folder with ca.pem, cert.pem and key.pem.")] = None,
    slurm: Annotated[str | None, typer.Option(help='Run as Slurm jobs with these options: "--partition=cpu".')] = None,
    pbs: Annotated[str | None, typer.Option(help='Run as PBS jobs: "-q cpu -l walltime=2:00:00".')] = None,
    htcondor: Annotated[str | None, typer.Option(help='Run as HTCondor jobs: "request_cpus=4".')] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many such jobs.")] = 1,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what failed.")] = False,
    until: Annotated[str | None, typer.Option(help='Add repeats until "ci(fairness) < 5%".')] = None,
    max_repeat: Annotated[int | None, typer.Option(help="With --until: at most so many repeats.")] = None,
    large: Large = False,
) -> None:
    """Run every point of a scenario's sweep that its folder does not have yet."""
    scenario = load(file, assignments(settings), large=large)
    folder = folder or default(scenario.name)
    systems = [
        (kind, text) for kind, text in (("slurm", slurm), ("pbs", pbs), ("htcondor", htcondor)) if text is not None
    ]
    if len(systems) + (scheduler is not None) > 1:
        raise _core.ScenarioError("sweep: expected one of --scheduler, --slurm, --pbs and --htcondor, found more")
    if tls is not None and not systems and scheduler is None:
        raise _core.ScenarioError("--tls: expected a cluster with it, found none")
    if tls is None and (systems or (scheduler is not None and _is_open(scheduler))):
        err.message("warning: without --tls, whoever reaches the cluster's scheduler runs code as you; see SECURITY.md")
    with _mistakes(), ExitStack() as stack:
        where: Any = None if scheduler is None else stack.enter_context(connect(scheduler, tls))
        for kind, text in systems:
            where = _cluster(stack, kind, text, jobs, folder, tls)
        run_sweep(
            sweep(
                scenario,
                folder,
                scheduler=where,
                workers=workers,
                retry_failed=retry_failed,
                until=until,
                max_repeat=max_repeat,
            )
        )


def _is_open(scheduler: str) -> bool:
    """Whether a scheduler's protocol is in the clear, and crosses a network."""
    address = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
    return address.scheme == "tcp" and not is_loopback(address.hostname or "")


def _cluster(stack: ExitStack, kind: str, text: str, jobs: int, folder: Path, tls: Path | None) -> Any:
    from elephan.sweeps.cluster import cluster  # noqa: PLC0415 - an extra

    own_or_empty(folder, DESCRIPTION)
    made = stack.enter_context(cluster(kind, text, folder / "jobs", tls))
    made.scale(jobs=jobs)
    client = stack.enter_context(made.get_client())
    err.print(f"waiting for the first of {jobs} jobs")
    client.wait_for_workers(1)
    return client


def run_sweep(one: Sweep) -> None:
    """Run a sweep with a progress bar, and say what came of it. Raises `typer.Exit` where it was not all good."""
    columns = (
        NameColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    failures: list[SweepRun] = []
    code = 0
    try:
        bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
        # The sweep's own end comes first: it writes what has finished.
        with bar as progress, closing(iter(one)) as runs:
            task = progress.add_task(one.scenario.name, total=None, rate="")
            for run in runs:
                _tell(named(one.losses, "they are run again"))
                one.losses = []
                if not run.ok and len(failures) < SHOWN_FAILURES:
                    failures.append(run)
                seconds = progress.tasks[0].elapsed or 0
                rate = (one.done - one.reused) / seconds if seconds else 0
                text = f"{rate:.3g} runs/s" + (f", {one.failed} failed" if one.failed else "")
                progress.update(task, total=one.total, completed=one.done, rate=text)
    except KeyboardInterrupt as stopped:
        if one.total:
            # More may have been written than was counted.
            kept = Dataset(one.folder).index().height
            stopped.add_note(f"{kept} of {one.total} runs are in {one.folder}; sweep again to go on")
        raise
    for run in failures:
        settings = ", ".join(f"{key} = {value}" for key, value in run.settings.items())
        err.message(f"point {run.point}, repeat {run.repeat} ({settings}): {run.error}")
        code = FAILED
    if one.failed > len(failures):
        more = f'elephan query {one.folder} "select point, repeat, error from runs where error is not null"'
        err.message(f"and {one.failed - len(failures)} more: {more}")
    new = one.done - one.reused
    out.print(
        f"{one.done} runs in {one.folder}: {new} new, {one.reused} known before, {one.failed} failed", soft_wrap=True
    )
    if code:
        raise typer.Exit(code)


def _tell(lines: list[str]) -> None:
    for line in lines:
        err.message(line)


def _missing(folder: Path) -> None:
    """Say what a folder no longer has: figures of the index stand without it."""
    _tell(named(Dataset(folder).losses(), "sweep again to run them"))


def _print(grids: list[tables.Grid], form: str) -> None:
    for grid in grids:
        if form == "csv":
            echo(grid.to_csv())
        elif form == "markdown":
            echo(grid.to_markdown() + "\n")
        elif form == "latex":
            echo(grid.to_latex() + "\n")
        else:
            shown = Table(title=grid.title or None, title_justify="left")
            for number, head in enumerate(grid.heads):
                shown.add_column(head, justify="left" if number < grid.left else "right")
            for line in grid.lines:
                shown.add_row(*line)
            out.print(shown)


def _form(form: str) -> str:
    if form not in tables.FORMATS:
        raise _core.ScenarioError(f"--format: expected one of {', '.join(tables.FORMATS)}, found {form!r}")
    return form


def table_command(
    folder: Folder,
    rows: Annotated[
        str | None, typer.Option(help="Keys of the sweep, with commas. [default: all that are no column]")
    ] = None,
    cols: Annotated[str | None, typer.Option(help="Keys of the sweep; without any, the columns are metrics.")] = None,
    metric: Annotated[str | None, typer.Option(help="Metrics, with commas.")] = None,
    where: Where = None,
    stat: Annotated[str, typer.Option(help="mean or median; a median has a bootstrap interval.")] = "mean",
    interval: Annotated[str | None, typer.Option(help="t (Student) or bootstrap. [default: t]")] = None,
    form: Form = "text",
) -> None:
    """Show metrics by settings, with 95 % confidence intervals over repeats."""
    if stat not in ("mean", "median"):
        raise _core.ScenarioError(f"--stat: expected mean or median, found {stat!r}")
    interval = interval or ("t" if stat == "mean" else "bootstrap")
    if interval not in ("t", "bootstrap"):
        raise _core.ScenarioError(f"--interval: expected t or bootstrap, found {interval!r}")
    options: Any = {
        "rows": words(rows),
        "cols": words(cols),
        "metrics": words(metric),
        "where": assignments(where, "--where"),
        "interval": interval,
        "centre": stat,
    }
    with _mistakes(folder):
        if _form(form) == "csv":
            echo(tables.long_csv(folder, **options))
        else:
            _print(tables.table(folder, **options), form)
        failed = tables.Selection.of(folder, options["where"]).failed
        _missing(folder)
    if failed:
        err.print(f"{failed} runs failed and do not count")


def paired_command(
    folder: Folder,
    between: Annotated[str, typer.Option(help="Two values of a key: flow.cc=htcp,scalable.")],
    metric: Annotated[str, typer.Option(help="The metric.")] = "goodput",
    where: Where = None,
    form: Form = "text",
) -> None:
    """Compare two settings on common random numbers: difference, effect size and p-values."""
    key, equals, values = between.partition("=")
    both = words(values)
    if not equals or len(both) != 2:
        raise _core.ScenarioError(f"--between: expected KEY=FIRST,SECOND, found {between!r}")
    with _mistakes(folder):
        grid = tables.paired(
            folder, key=key, first=both[0], second=both[1], metric=metric, where=assignments(where, "--where")
        )
        _print([grid], _form(form))
        _missing(folder)


def query_command(
    folder: Folder,
    sql: Annotated[str | None, typer.Argument(help="SQL over runs, flows, queues, transfers and summaries.")] = None,
    form: Form = "text",
) -> None:
    """Ask a sweep in SQL; without any, show its tables and columns."""
    from elephan.sweeps.query import query  # noqa: PLC0415 - DuckDB takes a moment to import

    with _mistakes(folder):
        found = query(folder, sql)
        _missing(folder)
    lines = [["" if value is None else f"{value:.6g}" if isinstance(value, float) and form == "text" else str(value)
              for value in row.values()] for row in found.to_pylist()]  # fmt: skip
    _print([tables.Grid("", found.column_names, lines, 0)], _form(form))


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("sweep")(sweep_command)
    app.command("table")(table_command)
    app.command("paired")(paired_command)
    app.command("query")(query_command)
