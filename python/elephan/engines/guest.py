"""Runs scenarios on the TCP of a stock Linux kernel that runs as a process (user-mode Linux), in virtual time.

This needs an image of a kernel (`elephan kernel build`), and no root.
"""

import time

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.engines.sim import Progress, from_columns
from elephan.guest import image
from elephan.kernel.errors import KernelError
from elephan.kernel.names import STOCK, Registered, of_flows


def run(scenario: Scenario, *, progress: Progress | None = None) -> Run:
    """Run a scenario on the image of its `kernel.version`, and return the outcome.

    Raises `ScenarioError` for unsupported settings, `KernelError` without an image, `OSError` if the guest fails.
    """
    wrong = _core.linux_unsupported(scenario, guest=True)
    if wrong:
        raise _core.ScenarioError("\n".join(wrong))
    lacks = image.missing_files()
    if lacks:
        raise KernelError("\n".join(lacks))
    found = image.find(scenario.document.get("kernel", {}).get("version"))
    started = time.perf_counter()
    guest = Registered()
    names = of_flows(scenario.congestion_controls, STOCK, guest.name_of)
    result = _core.run_guest(
        scenario, names, guest.loads, image=found.path, files=(image.INIT, image.LINKS), progress=progress
    )
    return from_columns(scenario, result, time.perf_counter() - started, "kernel", found.identity)
