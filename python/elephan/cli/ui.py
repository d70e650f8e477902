"""`elephan ui`."""

import html
import secrets
import signal
import socket
import tempfile
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
import uvicorn

from elephan import _core
from elephan.base.text import Terminal
from elephan.cli.options import is_loopback
from elephan.ui.connections import uvicorn_options
from elephan.ui.server import application

app = typer.Typer()


@app.command()
def ui(
    results: Annotated[Path, typer.Option(help="The folder that results are read from and written into.")] = Path(
        "results"
    ),
    host: Annotated[
        str, typer.Option(help="The address to listen on; others reach one that is not this machine's own.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Explore on a local page: start runs, watch them live, change them, open results."""
    # On this machine, too, others may have an account.
    token = secrets.token_urlsafe(24)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        raise _core.ScenarioError(f"--host {host} --port {port}: expected a free address, found: {error}") from error
    port = listener.getsockname()[1]
    # Over the loopback only these names are ours.
    is_local = is_loopback(host)
    names = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")) if is_local else frozenset()
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/?token={token}"
    Terminal().message(f"Elephan is at {url}\nresults in {results}; Ctrl-C ends it")
    app = application(results, token=token, hosts=names)
    with tempfile.NamedTemporaryFile("w", prefix="elephan-", suffix=".html", encoding="utf-8") as door:
        # Everybody may read the browser's command line, and only we this file.
        door.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}"><title>Elephan</title>'
        )
        door.flush()
        if not no_browser and is_local:
            typer.launch(door.name)
        server = uvicorn.Server(uvicorn.Config(app, **uvicorn_options()))
        try:
            _ends_at_logout(server).run(sockets=[listener])
        except KeyboardInterrupt as stopped:
            stopped.add_note(f"results are in {results}")
            raise


def _ends_at_logout(server: uvicorn.Server) -> uvicorn.Server:
    """Let SIGHUP end the server in order, too; afterwards it means what it meant before."""
    handled = signal.getsignal(signal.SIGHUP)

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGHUP, handled)
        server.handle_exit(number, frame)

    if handled is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, stop)
    return server
