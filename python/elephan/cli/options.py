"""Parsing of option values: `--set KEY=VALUE`, lists separated by commas, and addresses."""

import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from elephan import _core
from elephan.base.text import Terminal
from elephan.cli import complete

# Quantities are counted in integers of 64 bits.
MOST = 2**62
# Options of several commands.
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a key: KEY=VALUE, such as path.rtt=162ms.", autocompletion=complete.setting),
]
ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Scenario file, or the name of an example.",
        autocompletion=complete.files(".toml", complete.scenario_names),
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing results folder.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler: tls://host:8786.")]
Tls = Annotated[Path | None, typer.Option(help="TLS for a cluster: folder with ca.pem, cert.pem and key.pem.")]
Isolate = Annotated[
    bool, typer.Option("--isolate", help="A process for each run: code from outside that crashes ends no other.")
]
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


def rate_of(text: str, option: str, *, least_bit_s: float = 0.0) -> float:
    """A rate such as `500 Mbit/s`, in bit/s. Raises `ScenarioError`."""
    least = f"of {least_bit_s:g} bit/s or more" if least_bit_s else "above zero"
    return _quantity(text, option, "bit_s", f"a rate {least} such as 500Mbit/s", least_bit_s)


def seconds_of(text: str, option: str, *, least_s: float = 0.0) -> float:
    """A time such as `100 ms`, in s. Raises `ScenarioError`."""
    least = f"of {least_s:g} s or more" if least_s else "above zero"
    return _quantity(text, option, "s", f"a time {least} such as 100ms", least_s)


def bytes_of(text: str, option: str) -> int:
    """A number of bytes such as `10 GB`. Raises `ScenarioError`."""
    return int(_quantity(text, option, "bytes", "a number of bytes above zero such as 10GB"))


def _quantity(text: str, option: str, unit: str, example: str, least: float = 0.0) -> float:
    """A value above zero, and not below the least one, as a scenario file writes it."""
    found = _core.quantity(text)
    if found is None or found[1] != unit or found[0] < least or not 0 < found[0] < MOST:
        raise _core.ScenarioError(f'{option}: expected {example}, found "{text}"')
    return found[0]


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


def check_tls(tls: Path | None, *, scheduler: str | None, jobs: bool = False) -> None:
    """Warn if a cluster takes commands from anyone who can reach it: that of an open scheduler, or of batch `jobs`.

    Raises `ScenarioError` for certificates without a cluster.
    """
    if tls is not None and not jobs and scheduler is None:
        raise _core.ScenarioError("--tls: expected a cluster with it, found none")
    if tls is None and (jobs or (scheduler is not None and _is_open(scheduler))):
        Terminal(stderr=True).message(
            "warning: without --tls, anyone who can reach the cluster's scheduler can run code as you; see SECURITY.md"
        )


def _is_open(scheduler: str) -> bool:
    """Whether a scheduler's connection is unencrypted and crosses a network."""
    address = urlsplit(scheduler if "://" in scheduler else f"tcp://{scheduler}")
    return address.scheme == "tcp" and not is_loopback(address.hostname or "")
