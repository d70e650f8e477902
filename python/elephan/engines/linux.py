"""Runs scenarios on the TCP of the running Linux kernel, in real time.

This needs root. The published algorithms also need a kernel with BTF, clang and libbpf (`elephan kernel status` shows what is
missing).
"""

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

from elephan import _core, kernel
from elephan.api.run import TABLES, Run
from elephan.api.scenario import Scenario
from elephan.api.summary import Summary

Progress = Callable[[float], object]

# Names of Standard TCP for which the kernel's own reno is used. Its recovery is selective, whatever the name.
STANDARD = ("reno", "sack")
PREFIX = "kernel:"


def run(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    large_segments: bool = False,
    sender_commands: Sequence[Sequence[str]] = (),
    listener_commands: Sequence[Sequence[str]] = (),
) -> Run:
    """Run a scenario on the kernel, in real time, and return the outcome.

    A run that did not keep to its schedule is marked: `run.provenance["quality"]["valid"]` is false, and `invalid_because` has
    the reasons. During the run, commands (lists of words) run in the namespaces of the two hosts, 10.0.0.1 and 10.0.0.2. The
    word `{cc}` stands for the name of the first flow's algorithm in the kernel.

    Raises `ScenarioError` for unsupported settings, `KernelError` if something is missing.
    """
    if scenario.document.get("sweep"):
        raise _core.ScenarioError(
            "scenario: sweep: expected none with the linux engine, found one; run its points one by one"
        )
    text = scenario.to_json()
    wrong = _core.linux_unsupported(text)
    if wrong:
        raise _core.ScenarioError("\n".join(wrong))
    if os.geteuid() != 0:
        raise kernel.KernelError("user: expected root, which may make namespaces, found another user; try sudo")
    started = time.perf_counter()
    with kernel.Held() as held:
        names = [_name(held, name, settings) for name, settings in _core.congestion_controls(text)]

        def named(commands: Sequence[Sequence[str]]) -> list[list[str]]:
            return [[names[0] if word == "{cc}" else word for word in command] for command in commands]

        result = _core.run_linux(
            text,
            names,
            large_segments=large_segments,
            sender_commands=named(sender_commands),
            listener_commands=named(listener_commands),
            progress=progress,
        )
    return from_columns(scenario, result, "linux", platform.release(), time.perf_counter() - started)


def _name(held: kernel.Held, name: str, settings: str) -> str:
    """The name that a socket requests: an algorithm of Elephan that was loaded for this run, or one of the kernel's own."""
    plain = name.removeprefix(PREFIX)
    plain = "reno" if plain in STANDARD else plain
    if plain in kernel.algorithms():
        lines = kernel.missing()
        if lines:
            raise kernel.KernelError("\n".join(lines))
        return held.name_of(plain, settings)
    there = kernel.available()
    if plain not in there or settings != "{}":
        ours = ", ".join(kernel.algorithms())
        raise _core.ScenarioError(
            f"flow.cc: expected one of {ours}, or of the kernel's own, {', '.join(there)}, without parameters, found {name!r}"
        )
    return plain


def from_columns(scenario: Scenario, result: dict[str, Any], engine: str, system: str, wall_s: float) -> Run:
    """Make a run from the data of the extension module. `system` names the kernel on which the engine ran it."""
    columns = {name: result[name] for name in TABLES}
    columns["flows"] = {**columns["flows"], **result["kernel"]}
    return Run(
        scenario=scenario,
        summary=Summary.from_dict(json.loads(result["summary"])),
        columns=columns,
        links=tuple(result["links"]),
        labels=tuple(result["labels"]),
        provenance={
            "elephan": _core.__version__,
            "engine": engine,
            "kernel": system,
            "wall_time_s": wall_s,
            "segments_delivered": result["segments_delivered"],
            "events_handled": result["events_handled"],
            "quality": json.loads(result["quality"]),
        },
    )
