"""Errors that end a command with one line, in addition to `ScenarioError` for bad input, and what their lines say."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from elephan._core import ScenarioError


class FailedError(RuntimeError):
    """A valid request could not be carried out; the message says what was expected."""


@contextmanager
def given_as(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors name the options or arguments that gave a value, in place of its keys: `{"path.rate": "--rate"}`.

    Numbers in keys do not count: `flow.cc` is the key of every flow.
    """

    def named(line: str) -> str:
        key, _, rest = line.removeprefix("scenario: ").partition(": ")
        name = names.get(re.sub(r"\.\d+", "", key))
        return line if name is None else f"{name}: {rest}"

    try:
        yield
    except ScenarioError as error:
        told = "\n".join(map(named, str(error).split("\n")))
        if told == str(error) or type(error) is not ScenarioError:
            raise
        raise ScenarioError(told) from error
