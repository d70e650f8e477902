"""`elephan path watch`: runs any program, and records its TCP connections."""

from pathlib import Path
from typing import Annotated

import typer

from elephan.base.folders import check_new, new_folder
from elephan.base.text import visible
from elephan.cli.options import Force, command_line, seconds_of
from elephan.cli.output import err
from elephan.paths import watch as watching

app = command_line()
# The program has the output of this process.


@app.command(context_settings={"allow_interspersed_args": False})
def watch(
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, after --.")],
    folder: Annotated[
        Path | None, typer.Option("--out", help="Results folder with the series of the connections.")
    ] = None,
    interval: Annotated[str, typer.Option(help="Time between samples.")] = "100ms",
    force: Force = False,
) -> None:
    """Run any program (rsync, scp, iperf3), and record its TCP connections as a transfer is recorded.

    Programs that it starts are included. This needs no root, and does not change the program: input, outputs, exit code and
    SIGINT, SIGQUIT, SIGTERM and SIGHUP pass through. A connection that is shorter than the interval may be missed.
    """
    interval_s = seconds_of(interval, "--interval", least_s=watching.LEAST_S)
    if folder is not None:
        check_new(folder, force=force)
    name = visible(command[0])
    try:
        seen = watching.watch(command, interval_s=interval_s)
    except watching.NotStartedError as error:
        err.message(str(error))
        raise typer.Exit(error.code) from error
    if seen.problem is not None:
        err.message(f"{name}: nothing was recorded: {seen.problem}")
    elif seen.run is None:
        err.message(f"{name}: no TCP connection was seen" + ("; nothing was written" if folder is not None else ""))
    else:
        err.show(watching.of_connections(seen))
        if (more := seen.connections - min(len(seen.run.labels), watching.MOST_ROWS)) > 0:
            err.message(f"connections that are not shown: {more}")
        if sum(seen.received) > seen.run.transfers["bytes"].sum():
            err.message("note: most was received; a record of the host that sent it has its windows and losses")
    if seen.without_info:
        err.message(f"note: connections without TCP_INFO, which are not in the record: {seen.without_info}")
    if seen.foreign:
        err.message(f"note: processes of another user, whose connections cannot be seen: {seen.foreign}")
    if seen.run is not None and folder is not None:
        with new_folder(folder, force=force) as place:
            seen.run.write_into(place)
        err.message(
            f"results in {visible(str(folder))}; `elephan path fit {visible(str(folder))} --out PATH` estimates the path"
        )
    raise typer.Exit(seen.code)
