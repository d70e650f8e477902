"""`elephan packetdrill`: scripts of packetdrill, on the simulator's TCP or that of a kernel in virtual time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.scenario import EXAMPLES
from elephan.base.table import Head, Table, text_heads
from elephan.cli import BAD_INPUT, FAILED, complete
from elephan.cli.entries import purposes, table_of_names
from elephan.cli.options import assignments, command_line
from elephan.cli.output import Form, err, out, show
from elephan.engines.packetdrill import Report, check, kernel, run

app = command_line()

ENGINES = ("sim", "kernel")


@app.command()
def packetdrill(
    scripts: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Scripts, folders with scripts (*.pkt), or names of scripts that come with Elephan; `list` lists these.",
            show_default="all that come with Elephan",
            autocompletion=complete.files(".pkt", lambda: ["list", *_ours()]),
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Whose TCP: sim, or kernel (a kernel's in virtual time; needs an image).")
    ] = "sim",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set the simulated stack, KEY=VALUE, such as tcp.recovery=newreno or cc=cubic; or select the kernel, "
            "kernel.version=6.12.",
        ),
    ] = None,
    form: Form = "table",
) -> None:
    """Run packetdrill scripts on the simulator's TCP, or on that of a kernel in virtual time.

    A script that fails is shown with its line, what the line expects and what was seen. The exit status is 0 if none fails,
    also where some are skipped. Scripts contain Python code, which is executed.
    """
    if scripts == [Path("list")]:
        show([table_of_names("", purposes(_ours()))], form)
        return
    keys = assignments(settings)
    guest = None
    if engine not in ENGINES:
        raise _core.ScenarioError(f"--engine: expected {_core.one_of(ENGINES, engine)}, found {engine!r}")
    if engine == "kernel":
        guest = kernel(keys.pop("kernel.version", None))
        if keys:
            raise _core.ScenarioError(
                "--set: expected kernel.version alone with --engine kernel, whose stack only scripts set, "
                f"found {next(iter(keys))}"
            )
    check(keys)
    count: Counter[str] = Counter()
    reports: list[Report] = []
    for path in list(_files(scripts or list(_ours().values()))):
        try:
            report = run(path, keys, guest=guest)
        except _core.ScenarioError as error:
            err.message(str(error))
            count["unreadable"] += 1
            continue
        if form == "table":
            _show(report)
        reports.append(report)
        count[report.outcome] += 1
    if form != "table":
        show([_table(reports)], form)
    names = [name for name in ("passed", "failed", "skipped", "unreadable") if count[name]]
    (out if form == "table" else err).message(", ".join(f"{count[name]} {name}" for name in names))
    if count["unreadable"]:
        raise typer.Exit(BAD_INPUT)
    if count["failed"]:
        raise typer.Exit(FAILED)


def _ours() -> dict[str, Path]:
    """The scripts that come with Elephan: their names and files."""
    return {file.stem: file for file in sorted((EXAMPLES / "packetdrill").glob("*.pkt"))}


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists() and path.name == str(path) and not path.suffix:
            known = _ours()
            if path.name not in known:
                ours = _core.one_of(list(known), path.name)
                raise _core.ScenarioError(
                    f"{path}: expected a script, a folder, or a script that comes with Elephan: {ours}; found neither"
                )
            yield known[path.name]
            continue
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.pkt"))
        if not found:
            raise _core.ScenarioError(f"{path}: expected scripts (*.pkt) in this folder, found none")
        yield from found


def _table(reports: Sequence[Report]) -> Table:
    heads = [*text_heads("script", "outcome"), Head("line"), *text_heads("what", "expected", "seen")]
    return Table(
        "",
        heads,
        [[one.file, one.outcome, one.line or None, one.text or one.reason, one.expected, one.seen] for one in reports],
    )


def _show(report: Report) -> None:
    place = f"{report.file}:{report.line}" if report.line else report.file
    if report.outcome == "skipped":
        out.message(f"skipped {place}: {report.reason}")
    elif report.outcome == "failed":
        out.message(f"failed  {place}: {report.text}")
        out.message(f"    expected {report.expected}")
        out.message(f"    seen     {report.seen}")
    else:
        out.message(f"passed  {place}")
    if report.ignored:
        out.message(f"    without {', '.join(report.ignored)}, which this TCP does not know")
