"""The links of a scenario between two network namespaces, in real time, for programs of one's own.

This needs root. The near host is 10.0.0.1, the far one 10.0.0.2. The scenario's own traffic does not run; the route of its
first flow carries all packets. Namespaces, devices and links end with the process, in whatever way it ends.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from elephan import _core
from elephan.api.scenario import Scenario
from elephan.kernel.loader import need_namespaces

NEAR, FAR = "10.0.0.1", "10.0.0.2"


@dataclass
class Links:
    """Two hosts that links connect.

    `near` and `far` are the beginnings of command lines, as words: what follows runs in the namespace of that host. `quality`,
    after the end, tells how well the links kept to their schedule, as `run.provenance["quality"]` of a run.
    """

    near: tuple[str, ...]
    far: tuple[str, ...]
    quality: dict[str, Any] = field(default_factory=dict)


@contextmanager
def links(scenario: Scenario) -> Iterator[Links]:
    """Connect two namespaces by the links of a scenario, for as long as the block lasts.

    Raises `ScenarioError` for a scenario that cannot be run, `KernelError` without root, `OSError` where the system refuses.
    """
    if scenario.document.get("sweep"):
        raise _core.ScenarioError("scenario: sweep: expected none for an emulated path, found one")
    need_namespaces()
    over, ready = _core.Cancel(), threading.Event()
    entered: list[Links] = []
    quality: list[dict[str, Any]] = []
    failed: list[BaseException] = []

    def enter(near: int, far: int) -> None:
        prefix = f"--net=/proc/{os.getpid()}/fd/"
        entered.append(Links(("nsenter", f"{prefix}{near}"), ("nsenter", f"{prefix}{far}")))
        ready.set()

    def hold() -> None:
        try:
            quality.append(json.loads(_core.hold_links(scenario, over, enter)))
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=hold, name="links")
    thread.start()
    try:
        ready.wait()
        if entered:
            yield entered[0]
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]
    entered[0].quality = quality[0]
