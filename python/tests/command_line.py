"""The command line in this process: to start Python and import the package for each command takes most of a second."""

import contextlib
import io
import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from matplotlib import pyplot

from elephan import cli
from elephan._core import __version__
from elephan.cli import progress, signals

# The program, for what needs a process of its own.
ELEPHAN = Path(sys.executable).with_name("elephan")
# A beginning of such a process: it gets SIGINT when something is put into `begun`. The thread that sends it gets the
# interpreter's lock when the extension module has released it, and not before, so the extension has to notice the signal.
INTERRUPTED = """
import queue, signal, sys, threading

sys.setswitchinterval(1000)
begun = queue.SimpleQueue()
send = lambda: (begun.get(), signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
threading.Thread(target=send, daemon=True).start()
"""


@dataclass
class Done:
    """The results of a command."""

    returncode: int
    stdout: str
    stderr: str


def call(*arguments: str | Path, cwd: Path | None = None, encoding: str = "utf-8") -> Done:
    """Carry out a command as `elephan` does, with files in place of a terminal. Signals stay those of the tests.

    Lines on progress, which come after some time, are left out.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.argv", ["elephan", *map(str, arguments)]),
        # Its name in the usage is `elephan`, however the tests were started.
        mock.patch("__main__.__package__", None),
        mock.patch.object(signals, "heed"),
        mock.patch.object(progress, "LINES_S", math.inf),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            pyplot.close("all")
    return Done(code, *(_written(stream) for stream in (out, err)))


def typed(line: str, cwd: Path | None = None) -> Done:
    """Carry out a command that is written as in a shell."""
    return call(*shlex.split(line), cwd=cwd)


def shown(text: str, folder: Path) -> str:
    """A text for a snapshot: without what another machine has otherwise, and without the spaces at the ends of its lines."""
    for place, name in ((folder, "FOLDER"), (Path(cli.__file__).parents[1], "PACKAGE"), (__version__, "VERSION")):
        text = text.replace(str(place), name)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)
