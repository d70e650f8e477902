"""Runs scenarios on the TCP of a stock Linux kernel that runs as a process (user-mode Linux), in virtual time.

This needs an image of a kernel (`elephan kernel build`), and no root.
"""

from collections.abc import Callable

from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.kernel import KernelError, image

Progress = Callable[[float], object]


def run(scenario: Scenario, *, progress: Progress | None = None) -> Run:  # noqa: ARG001
    """Run a scenario on the image of its `kernel.version`, and return the outcome. Raises `KernelError` without an image."""
    found = image.find(scenario.document.get("kernel", {}).get("version"))
    raise KernelError(
        f"engine: expected one that this version of Elephan can run, found kernel (Linux {found.version})"
    )
