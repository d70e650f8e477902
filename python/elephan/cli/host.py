"""The command `elephan path host`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.scenario import load
from elephan.base.folders import check_new, new_folder
from elephan.base.kinds import HOST
from elephan.cli.options import Force, command_line, rate_of, seconds_of
from elephan.cli.output import Form, err, out, show
from elephan.cli.progress import progress_bar
from elephan.paths import host as hosts
from elephan.paths.settings import Demand
from elephan.paths.survey import Plan, survey

app = command_line()


@app.command()
def host(
    rate: Annotated[str | None, typer.Option(help="Rate of the path that this host is to fill.")] = None,
    rtt: Annotated[str | None, typer.Option(help="Round-trip time of that path.")] = None,
    path: Annotated[Path | None, typer.Option(help="The same from the table `path` of a scenario file.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure for a shorter time, with fewer repeats.")] = False,
    out_dir: Annotated[Path | None, typer.Option("--out", help="Folder for host.json and host.toml.")] = None,
    force: Force = False,
    form: Form = "table",
) -> None:
    """Measure what this host can send, and what of it limits that.

    The processor, the kernel's TCP, devices and settings are measured.

    No setting is changed and nothing is overwritten. What needs namespaces is left out, and said, where there can be none.
    """
    demand = _demand(rate, rtt, path)
    if out_dir is not None:
        check_new(out_dir, force=force)
    plan = Plan.of(quick=quick, demand=demand)
    err.message(plan.budget)
    with progress_bar("this host") as progress:
        found = survey(plan, progress)
    document = hosts.document(found, plan.cores, demand)
    if out_dir is not None:
        with new_folder(out_dir, force=force) as new:
            (new / HOST.document).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            (new / "host.toml").write_text(hosts.snippet(found), encoding="utf-8")
    show(hosts.tables(found), form, document)
    if form != "table":
        return
    for line in hosts.advice(found):
        out.message(line)
    for reason in found.left_out:
        out.message(f"left out: {reason}")
    for note in found.notes:
        out.message(f"note: {note}")
    if out_dir is not None:
        out.message(f"{out_dir}: host.json, host.toml")
        if path is not None:
            out.message(
                f"`cat {out_dir / 'host.toml'} >> {path}` gives the senders of this scenario the costs of this host"
            )
    out.message(found.conclusion)


def _demand(rate: str | None, rtt: str | None, path: Path | None) -> Demand | None:
    """What the host is to fill, from the options or the file."""
    if path is not None:
        if rate is not None or rtt is not None:
            raise _core.ScenarioError("--path: expected it instead of --rate and --rtt, found both")
        document = load(path).document
        if "path" not in document:
            raise _core.ScenarioError(f"{path}: path: expected a table with rate and rtt, found none")
        rate, rtt = document["path"]["rate"], document["path"]["rtt"]
    if rate is None and rtt is None:
        return None
    if rate is None or rtt is None:
        missing = "--rate" if rate is None else "--rtt"
        raise _core.ScenarioError(f"{missing}: expected both --rate and --rtt, found one of them")
    return Demand(rate_of(rate, "--rate"), seconds_of(rtt, "--rtt"))
