"""The command line in this process: to start Python and import the package for each command takes most of a second."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from elephan import cli
from elephan.cli import signals


@dataclass
class Done:
    """The results of a command."""

    returncode: int
    stdout: str
    stderr: str


def elephan(*arguments: str | Path, cwd: Path | None = None) -> Done:
    """Carry out a command as `elephan` does, with files in place of a terminal. Signals stay those of the tests."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with (
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.argv", ["elephan", *map(str, arguments)]),
        mock.patch.object(signals, "heed"),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Done(code, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()
