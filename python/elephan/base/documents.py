"""Reads results folders that may be damaged or untrusted: never outside the folder, and with a one-line error."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.base.errors import FailedError


def inside(folder: Path, name: str) -> Path:
    """The path of `name` in a results folder: a file, a folder, or nothing yet.

    Raises `ScenarioError` if `..` or a link leads out of the folder, and for a pipe, which would block.
    """
    path = folder / name
    root = os.path.realpath(folder)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise ScenarioError(f"{path}: expected a path within {folder}, found one that leads out of it")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ScenarioError(f"{path}: expected a file, found something else")
    return path


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object in a results folder. Raises `ScenarioError` if the file is not one, and `OSError`."""
    try:
        value = json.loads(inside(folder, name).read_bytes())
    except ScenarioError:
        raise
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{folder / name}: expected JSON, found: {error}") from error
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else f"{value!r:.40}"
        raise ScenarioError(f"{folder / name}: expected a JSON object, found {kind}")
    return value


@contextlib.contextmanager
def damage(folder: Path) -> Iterator[None]:
    """Report damaged results of a folder as a one-line `ScenarioError`.

    Damaged files can contain anything, and computations from them can fail in any way. All exceptions are converted, except
    those of the file system, which describe the problem themselves.
    """
    try:
        yield
    except ScenarioError:
        raise
    except FailedError as error:
        raise ScenarioError(str(error)) from error
    except BaseException as error:
        # A panic of Polars is not an `Exception`. It is recognised by its name, because importing Polars takes time.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise
        lines = str(error).strip().splitlines()
        reason = f"{lines[0]:.200}" if lines else type(error).__name__
        # The message of a `KeyError` is only the key, so the type is added.
        reason = f"no key {reason}" if isinstance(error, KeyError) else reason
        raise ScenarioError(f"{folder}: expected whole results, found damaged ones ({reason})") from error
