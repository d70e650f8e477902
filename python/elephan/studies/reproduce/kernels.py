"""Runs the scenarios of experiments on a kernel's own TCP: the running one in real time (`linux`), or an image in virtual time (`kernel`).

A kernel decides much of its stack itself. `express` leaves out what it cannot be told and names it; what would make another
experiment of a scenario, such as another slow start, is refused.
"""

import json
from collections.abc import Mapping
from typing import Any

from elephan import _core, kernel
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.engines.run import run as run_on_engine
from elephan.kernel.names import STOCK, of_flows
from elephan.studies.lab import UnsuitableError

# The keys of a stack that a kernel can be told.
TOLD = (
    "packet", "initial_window", "rto_min", "timestamps", "dsack", "ecn", "send_buffer", "receive_buffer", "auto_tuning", "pacing",
)  # fmt: skip
# Other keys that would make another experiment; the engine refuses them.
KEPT = ("recovery", "initial_ssthresh")
# Linux's own algorithms, for `form = "linux"`.
OWN = {"hstcp": "highspeed", "scalable": "scalable", "htcp": "htcp", "bic": "bic", "cubic": "cubic"}
# A run in real time that the machine disturbed is repeated, so often.
TRIES = 2


def express(scenario: Scenario, engine: str) -> tuple[Scenario, list[str]]:
    """The scenario as a kernel can run it, and what the kernel decides itself, with what the scenario asked for.

    Raises `UnsuitableError` with a line for each thing that a kernel cannot do.
    """
    document, notes = json.loads(scenario.to_json()), list[str]()
    table = scenario.shown.document["tcp"]
    document["tcp"] = _told(document.get("tcp", {}), table, notes)
    for flow in document["flow"]:
        if own := flow.get("tcp"):
            flow["tcp"] = _told(own, own, notes)
        if isinstance(cc := flow["cc"], dict) and cc.get("form") == "linux" and cc["name"] in OWN:
            flow["cc"] = f"linux:{OWN[cc['name']]}"
    try:
        expressed = Scenario(document).with_settings({"engine": engine}, large=True)
        wrong = _core.linux_unsupported(expressed, guest=engine == "kernel")
        there = STOCK if engine == "kernel" else kernel.available()
        of_flows(expressed.congestion_controls, there, _with_its_parameters)
    except _core.ScenarioError as error:
        raise UnsuitableError(str(error)) from error
    if wrong:
        raise UnsuitableError("\n".join(wrong))
    return expressed, list(dict.fromkeys(notes))


def _told(own: Mapping[str, Any], table: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The keys of a stack that a kernel can be told; each other key that `own` sets is noted."""
    left_out = [key for key in own if key not in (*TOLD, *KEPT) and own[key] not in (None, "per_ack")]
    notes += [f"tcp.{key}: the kernel's own, not {json.dumps(own[key])}" for key in left_out]
    told = {key: table[key] for key in (*TOLD, *KEPT) if table.get(key) is not None}
    # A kernel counts what an ACK acknowledges. To count ACKs would be another experiment.
    return told | ({"byte_counting": "per_ack"} if own.get("byte_counting") == "per_ack" else {})


def _with_its_parameters(name: str, settings: str) -> str:
    """The name of an algorithm of kernel/. Raises `ScenarioError` for a parameter that its file does not have."""
    _core.kernel_values(name, settings)
    return name


def run(scenario: Scenario, cancel: _core.Cancel | None = None) -> Run:
    """Run an expressed scenario. One in real time that the machine disturbed is repeated; the last is returned in any case.

    `cancel` lets another thread stop the run, which then raises `KeyboardInterrupt`. Raises as the engine does.
    """
    for _ in range(TRIES):
        made: Run = run_on_engine(scenario, cancel=cancel)
        if made.provenance["quality"]["valid"]:
            break
    return made
