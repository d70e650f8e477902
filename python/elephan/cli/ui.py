"""`elephan ui`."""

import html
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
import uvicorn

from elephan import _core
from elephan.base.text import Terminal
from elephan.cli.options import command_line, is_loopback
from elephan.ui.connections import uvicorn_options
from elephan.ui.server import application

app = command_line()


@app.command()
def ui(
    results: Annotated[Path, typer.Option(help="Folder to read results from and write results to.")] = Path("results"),
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines can reach any but a loopback address.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Open a local web page: start runs, watch and change them live, view results. Needs the extra `ui`."""
    if results.exists() and not results.is_dir():
        raise _core.ScenarioError(f"--results: expected a folder, found the file {results}")
    # Other users of this machine can reach the loopback interface.
    token = secrets.token_urlsafe(24)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # From here on the kernel accepts connections, so that the address can be opened as soon as it is printed.
        listener.listen()
    except (OSError, OverflowError) as error:
        raise _core.ScenarioError(f"--host {host} --port {port}: expected a free address, found: {error}") from error
    port = listener.getsockname()[1]
    # Names that a request on the loopback interface may have.
    is_local = is_loopback(host)
    names = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")) if is_local else frozenset()
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/?token={token}"
    Terminal().message(f"Elephan is at {url}\nresults in {results}; press Ctrl-C to stop")
    app = application(results, token=token, hosts=names)
    with tempfile.NamedTemporaryFile("w", prefix="elephan-", suffix=".html", encoding="utf-8") as door:
        # All users can read the browser's command line; only this user can read this file.
        door.write(
            f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}"><title>Elephan</title>'
        )
        door.flush()
        if not no_browser and is_local:
            threading.Thread(target=_open, args=(door.name,), daemon=True).start()
        server = uvicorn.Server(uvicorn.Config(app, **uvicorn_options()))
        try:
            _ends_at_logout(server).run(sockets=[listener])
        except KeyboardInterrupt as stopped:
            stopped.add_note(f"the page is closed, results are in {results}")
            raise


def _open(page: str) -> None:
    """Open a file in a browser, which outlives this process; print one line if that fails."""
    null = subprocess.DEVNULL
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        subprocess.run([opener, page], check=True, start_new_session=True, stdin=null, stdout=null, stderr=null)
    except (OSError, subprocess.CalledProcessError):
        Terminal(stderr=True).message("no browser was opened: open this address in one")


def _ends_at_logout(server: uvicorn.Server) -> uvicorn.Server:
    """Let SIGHUP also shut down the server cleanly; then restore its previous handler."""
    handled = signal.getsignal(signal.SIGHUP)

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGHUP, handled)
        server.handle_exit(number, frame)

    if handled is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, stop)
    return server
