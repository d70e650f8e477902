"""Parsing of option values: `--set KEY=VALUE`, lists separated by commas, and addresses."""

import ipaddress
import json
from collections.abc import Sequence
from typing import Annotated

import typer

from elephan import _core

# Options of several commands.
Settings = Annotated[list[str] | None, typer.Option("--set", help="Set a key: KEY=VALUE, such as path.rtt=162ms.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing results folder.")]
Large = Annotated[
    bool,
    typer.Option("--large", help="Allow scenarios beyond the limits of events, rows and memory (docs/scenario.md)."),
]


def command_line(*, group: bool = False, help: str | None = None) -> typer.Typer:  # noqa: A002 - as typer calls it
    """Make the application of a command, or of a group of commands."""
    return typer.Typer(help=help, no_args_is_help=group, add_completion=False)


def assignments(texts: Sequence[str] | None, option: str = "--set", form: str = "KEY=VALUE") -> dict[str, str]:
    """The keys and values of a repeatable option. Raises `ScenarioError` if one has no `=`."""
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise _core.ScenarioError(f"{option}: expected {form}, found {text!r}")
        found[key.strip()] = value.strip()
    return found


def words(text: str | None) -> list[str]:
    """The items of a list separated by commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def parameter(text: str) -> float | bool | str:
    """A parameter's value: a number, true or false, or otherwise text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, bool | float | int | str) else text


def is_loopback(host: str) -> bool:
    """Whether a host name or address is on the loopback interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
