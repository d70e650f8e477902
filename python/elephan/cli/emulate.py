"""`elephan path emulate`: the links of a scenario between two namespaces, for programs of one's own."""

import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer

from elephan import _core
from elephan.api.scenario import load
from elephan.cli.options import Settings, assignments, command_line
from elephan.cli.output import err, out
from elephan.engines.emulate import FAR, NEAR, Links, links

app = command_line()

# Time between looks for signals.
WAIT_S = 0.2


@app.command()
def emulate(
    file: Annotated[Path, typer.Argument(help="Scenario file with the links.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After --: a command to run at the near host. $FAR before a command runs it at the far host."
        ),
    ] = None,
    settings: Settings = None,
) -> None:
    """Connect two namespaces by a scenario's links, without its traffic, for programs of your own. Needs root.

    Packets take the route of the first flow. The links last until Ctrl-C, or as long as a command runs; its exit code is then
    that of this command.
    """
    scenario = load(file, assignments(settings))
    code = 0
    with links(scenario) as held:
        if command:
            code = _run(held, command)
        else:
            try:
                for name, address, enter in (("near", NEAR, held.near), ("far", FAR, held.far)):
                    out.print(f"{name} host, {address}: {shlex.join(enter)} COMMAND", highlight=False)
                out.print("until Ctrl-C", highlight=False)
                # `signal.pause` would sleep through a signal that comes just before it.
                while True:
                    time.sleep(WAIT_S)
            except KeyboardInterrupt as stop:
                stop.add_note("the links are gone")
                raise
    for reason in held.quality["invalid_because"]:
        err.message(f"the links did not keep to their schedule: {reason}")
    raise typer.Exit(code)


def _run(held: Links, command: list[str]) -> int:
    """Run a command at the near host; its exit code."""
    environment = {**os.environ, "NEAR": shlex.join(held.near), "FAR": shlex.join(held.far)}
    try:
        process = subprocess.Popen([*held.near, *command], env=environment)
    except FileNotFoundError as error:
        raise _core.ScenarioError(f"{error.filename}: expected a program (of util-linux), found none") from error
    try:
        return process.wait()
    finally:
        # Ctrl-C reached it, too; another signal did not.
        if process.poll() is None:
            process.terminate()
            process.wait()
