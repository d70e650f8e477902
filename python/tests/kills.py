"""Work that is killed before one of its disk operations: none of the later ones reaches the disk."""

import functools
import os
from collections.abc import Callable
from contextlib import suppress

import pytest


class Killed(BaseException):
    """The process is dead."""


def any_step(_name: str, _path: object) -> bool:
    return True


def killed_at(
    stop: int,
    work: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    counts: Callable[[str, object], bool] = any_step,
) -> int:
    """Do some work that is killed before a disk operation, the `stop`-th that counts; returns how many of them it began."""
    count = 0

    def step(name, good, path, *arguments, **keys):
        nonlocal count
        count += counts(name, path)
        if count >= stop:
            raise Killed
        return good(path, *arguments, **keys)

    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "unlink", "rmdir", "fsync"):
            patch.setattr(os, name, functools.partial(step, name, getattr(os, name)))
        with suppress(Killed):
            work()
    return count
