"""`elephan path transfer`: moves memory, a file or a stream of bytes to another host, and watches the connections."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from elephan import _core
from elephan.api.scenario import load as load_scenario
from elephan.base.folders import new_folder
from elephan.base.text import visible
from elephan.cli.options import bytes_of, command_line, given_as, rate_of
from elephan.cli.output import err, out
from elephan.cli.progress import NameColumn
from elephan.paths import transfer

app = command_line(group=True, help="Move memory, a file or a stream of bytes to another host, and watch its TCP.")

# Where there is no terminal, a line of progress comes this often.
LINES_S = 5.0

Token = Annotated[str, typer.Option(envvar="ELEPHAN_TOKEN", help="The receiver's token, as it printed it.")]
Patience = Annotated[float, typer.Option(help="A peer that says nothing for so many seconds is gone.")]


@app.command()
def receive(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder for files, which exists; -: standard output; without it, memory alone is received."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = _core.TRANSFER_PORT,
    address: Annotated[str, typer.Option(help="Address to listen at.")] = "0.0.0.0",
    once: Annotated[bool, typer.Option("--once", help="End when a transfer is complete.")] = False,
    patience: Patience = transfer.PATIENCE_S,
) -> None:
    """Receive from anyone who has the token, until Ctrl-C.

    Prints one line with the port and the token, and the sender's command. With -, it prints them on standard error, and ends
    after what the sender's standard input yields: elephan path transfer receive - | tar xf -
    """
    piped = folder == transfer.PIPE
    say = err if piped else out
    if piped and sys.stdout.isatty():
        raise _core.ScenarioError("-: expected standard output to be a pipe or a file, found a terminal")

    def started(port: int, token: str) -> None:
        where = "memory" if folder is None else "into standard output" if piped else f"into {visible(str(folder))}"
        say.message(f"receiving {where}; port {port}, token {token}")
        option = "" if port == _core.TRANSFER_PORT else f" --port {port}"
        host = gethostname()
        arguments = f"{host} --memory 10GB" if folder is None else f"- {host}" if piped else f"FILE {host}"
        say.message(f"at the sender: ELEPHAN_TOKEN={token} elephan path transfer send {arguments}{option}")

    def told(events: list[dict[str, Any]]) -> None:
        for event in events:
            match event["event"]:
                case "began":
                    say.message(f"{event['peer']}: sends {visible(event['what'])}")
                case "ended" if event["done"]["there"]:
                    say.message(f"{event['peer']}: complete: it was there")
                case "ended":
                    count = _bytes(event["done"]["bytes"])
                    say.message(f"{event['peer']}: complete: {count} in {event['took_s']:.1f} s")
                case _:
                    err.message(f"{event['peer']}: {event['why']}")

    try:
        transfer.receive(folder, started, told, address=address, port=port, once=once, patience_s=patience)
    except KeyboardInterrupt as stop:
        if folder is not None and not piped:
            stop.add_note("a file that is not complete is kept, and the sender's next attempt goes on with it")
        raise


@app.command()
def send(
    path: Annotated[str, typer.Argument(help="File; -: standard input. With --memory, the host stands here.")],
    host: Annotated[str | None, typer.Argument(help="Host of the receiver.")] = None,
    token: Token = "",
    memory: Annotated[
        str | None, typer.Option(help="Send so many bytes of memory, such as 10GB, in place of a file.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the receiver.")] = _core.TRANSFER_PORT,
    streams: Annotated[int, typer.Option(min=1, max=256, help="TCP connections for data.")] = transfer.STREAMS,
    cc: Annotated[
        str | None, typer.Option(help="Congestion control of this kernel; with --load, one of `elephan kernel list`.")
    ] = None,
    load: Annotated[bool, typer.Option("--load", help="Load Elephan's --cc for this transfer; needs root.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Do not encrypt data; they are still authenticated.")] = False,
    pace: Annotated[str | None, typer.Option(help="Highest rate of each stream, such as 500Mbit/s.")] = None,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Results folder with the series of the streams.")
    ] = None,
    on_path: Annotated[
        Path | None, typer.Option("--path", help="Scenario of the path, such as path.toml, for the results folder.")
    ] = None,
    patience: Patience = transfer.PATIENCE_S,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace a file at the receiver that differs, and an existing results folder."),
    ] = False,
) -> None:
    """Send a file, a stream of bytes, or memory to a receiver.

    A file that was interrupted goes on where it was when the same command is run again. Standard input cannot be resumed:
    start both sides again. A folder is a stream of bytes: tar cf - DIR | elephan path transfer send - HOST
    """
    where, source = _ends(path, host, memory)
    piped = source == transfer.PIPE
    if piped and sys.stdin.isatty():
        raise _core.ScenarioError("-: expected standard input to be a pipe or a file, found a terminal")
    if not token:
        raise _core.ScenarioError("--token: expected the token that the receiver printed, or ELEPHAN_TOKEN; found none")
    scenario = load_scenario(on_path, large=True) if on_path is not None else None
    with (
        given_as({"token": "--token"}),
        nullcontext() if out_dir is None else new_folder(out_dir, force=force) as place,
    ):
        name = "memory" if source is None else "standard input" if piped else source.name
        with _progress(name) as progress:
            try:
                sent = transfer.send(
                    where,
                    token,
                    path=source,
                    memory=None if memory is None else bytes_of(memory, "--memory"),
                    port=port,
                    streams=streams,
                    cc=cc,
                    load=load,
                    plain=plain,
                    force=force,
                    pace_bit_s=None if pace is None else rate_of(pace, "--pace", least_bit_s=8),
                    patience_s=patience,
                    scenario=scenario,
                    progress=progress,
                )
            except (KeyboardInterrupt, OSError) as error:
                if piped:
                    error.add_note("standard input cannot be resumed")
                elif progress.total is not None and source is not None:
                    error.add_note("the receiver keeps what has arrived; run the same command again to go on")
                raise
        if place is not None:
            sent.run.write_into(place)
    _show(sent, out_dir)


def _ends(path: str, host: str | None, memory: str | None) -> tuple[str, Path | None]:
    if memory is None and host is not None:
        return host, Path(path)
    if memory is not None and host is None:
        return path, None
    if memory is None:
        raise _core.ScenarioError(
            "path transfer send: expected a path and a host, or a host and --memory; found one of them"
        )
    raise _core.ScenarioError("--memory: expected a host alone, found a path, too")


class _Shown:
    """What is called with the progress of a transfer: a bar on a terminal, otherwise lines."""

    def __init__(self, name: str, bars: Bars) -> None:
        self.total: int | None = None
        self._bars = bars
        self._task = bars.add_task(visible(name), total=None, rate="", limit="")
        self._next = time.monotonic() + LINES_S

    def __call__(self, total: int | None, stored: int, rate_bit_s: float, limit: str | None) -> None:
        self.total = total
        rate = f"{rate_bit_s / 1e6:,.0f} Mbit/s" if rate_bit_s else ""
        by = f"limited by {limit}" if limit else ""
        if err.is_terminal:
            # Nothing else of a stream shows how far it is.
            rate = rate if total is not None or not stored else f"{_bytes(stored)} {rate}"
            self._bars.update(self._task, total=total, completed=stored, rate=rate, limit=by)
        elif (total is not None or stored) and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINES_S
            parts = [_bytes(stored) if total is None else f"{_bytes(stored)} of {_bytes(total)}", rate or "0 Mbit/s"]
            if total is not None and rate_bit_s:
                parts.append(f"{(total - stored) * 8 / rate_bit_s:.0f} s left")
            err.message(", ".join([*parts, *filter(None, [by])]))


@contextmanager
def _progress(name: str) -> Iterator[_Shown]:
    columns = (
        NameColumn(),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[limit]}"),
    )
    with Bars(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        yield _Shown(name, bars)


def _bytes(count: float) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count:.0f} B"


def _show(sent: transfer.Sent, folder: Path | None) -> None:
    rate = sent.bytes * 8 / sent.seconds / 1e6
    there = "; the receiver had the file, with its size and time of modification" if sent.there else ""
    out.message(f"{_bytes(sent.bytes)} in {sent.seconds:.2f} s, {rate:,.0f} Mbit/s{there}")
    if sent.blake3 is not None:
        out.message(f"BLAKE3 {sent.blake3}")
    if folder is not None:
        out.message(f"results in {visible(str(folder))}; `elephan report {visible(str(folder))}` shows them")
