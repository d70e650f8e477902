"""`elephan packetdrill`: scripts of packetdrill, on the simulator's TCP or the running kernel's."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.base.text import Terminal
from elephan.cli import BAD_INPUT, FAILED
from elephan.cli.options import assignments, command_line
from elephan.engines.packetdrill import Report, check, run

app = command_line()
out = Terminal()
err = Terminal(stderr=True)


@app.command()
def packetdrill(
    scripts: Annotated[list[Path], typer.Argument(help="Scripts, or folders with scripts (*.pkt).")],
    on_kernel: Annotated[
        bool, typer.Option("--kernel", help="Run them on this kernel's TCP, in real time; needs root.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set the simulated stack: KEY=VALUE, such as tcp.recovery=newreno or cc=cubic."),
    ] = None,
) -> None:
    """Run packetdrill scripts on the simulator's TCP, or on the running kernel's.

    A script that fails is shown with its line, what the line expects and what was seen. The exit status is 0 if none fails,
    also where some are skipped. Scripts contain Python code, which is executed.
    """
    keys = assignments(settings)
    if keys and on_kernel:
        raise _core.ScenarioError("--set: expected no settings with --kernel, whose stack only scripts set, found some")
    check(keys)
    count: Counter[str] = Counter()
    for path in list(_files(scripts)):
        try:
            report = run(path, keys, on_kernel=on_kernel)
        except _core.ScenarioError as error:
            err.message(str(error))
            count["unreadable"] += 1
            continue
        _show(report)
        count[report.outcome] += 1
    names = [name for name in ("passed", "failed", "skipped", "unreadable") if count[name]]
    out.message(", ".join(f"{count[name]} {name}" for name in names))
    if count["unreadable"]:
        raise typer.Exit(BAD_INPUT)
    if count["failed"]:
        raise typer.Exit(FAILED)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(path.rglob("*.pkt"))
        if not found:
            raise _core.ScenarioError(f"{path}: expected scripts (*.pkt) in this folder, found none")
        yield from found


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
