"""Runs scenarios on the TCP of the running Linux kernel, in real time.

This needs root. The published algorithms also need a kernel with BTF, clang and libbpf (`elephan kernel status` shows what is
missing).
"""

import platform
import time
from collections.abc import Sequence

from elephan import _core, kernel
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.engines.sim import Progress, from_columns
from elephan.foreign.names import kernel_has
from elephan.kernel.loader import need_loading, need_namespaces
from elephan.kernel.names import LINUX, of_flows


def run(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
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
    wrong = _core.linux_unsupported(scenario)
    if wrong:
        raise _core.ScenarioError("\n".join(wrong))
    need_namespaces()
    started = time.perf_counter()
    with kernel.Held() as held:

        def name_of(name: str, settings: str) -> str:
            need_loading()
            return held.name_of(name, settings)

        controls = scenario.congestion_controls
        # A module that is not loaded is not listed.
        asked = {name.removeprefix(LINUX) for name, _ in controls}
        there = [*kernel.available(), *sorted(filter(kernel_has, asked - {*kernel.available()}))]
        names = of_flows(controls, there, name_of)

        def named(commands: Sequence[Sequence[str]]) -> list[list[str]]:
            return [[names[0] if word == "{cc}" else word for word in command] for command in commands]

        result = _core.run_linux(
            scenario,
            names,
            sender_commands=named(sender_commands),
            listener_commands=named(listener_commands),
            progress=progress,
        )
    return from_columns(scenario, result, time.perf_counter() - started, "linux", platform.release())
