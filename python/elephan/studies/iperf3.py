"""iperf3 in place of the linux engine's own traffic, over the same links: an independent check of the engine's measurements."""

import json
import math
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from elephan import _core, kernel
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.engines import linux

# The client waits so long for its server,
START_S = 0.5
# and they get so long to connect, and again to tell each other what they found.
SETTLING_S = 0.5


@dataclass(frozen=True)
class Check:
    """The same scenario twice: with the engine's own traffic, and with iperf3's."""

    own: Run
    # The links while iperf3 used them.
    links: Run
    # What iperf3's server says that it received, bit/s, and what its client says of segments retransmitted.
    goodput_bit_s: float
    retransmits: int

    @property
    def own_retransmits(self) -> int:
        """Segments that the engine's own flows retransmitted in the measuring window."""
        frame, summary = self.own.flows, self.own.summary
        within = frame.filter((frame["time_s"] >= summary.from_s) & (frame["time_s"] <= summary.to_s))
        each = within.group_by("flow").agg(pl.col("retransmits").max() - pl.col("retransmits").min())
        return int(each["retransmits"].sum())


def check(scenario: Scenario) -> Check:
    """Run a scenario on the kernel, and again with iperf3 for its flows, all at once from the start.

    Raises `ScenarioError` if iperf3 cannot generate the flows, `KernelError` if it is missing or fails, and otherwise as
    `linux.run`.
    """
    program = shutil.which("iperf3")
    if program is None:
        raise kernel.KernelError("iperf3: expected it to be installed (apt-get install iperf3), found none")
    flows = scenario.document.get("flow", [])
    names = {json.dumps(flow["cc"], sort_keys=True) for flow in flows}
    if len(names) != 1 or any("size" in flow for flow in flows):
        raise _core.ScenarioError(
            f"flow: expected endless flows of one algorithm, for which iperf3 can stand, found {len(flows)} entries with "
            f"{len(names)} algorithms"
        )
    own = linux.run(scenario)
    omitted, counted = math.ceil(own.summary.from_s), max(math.floor(own.summary.to_s - own.summary.from_s), 1)
    from_s, to_s = START_S + SETTLING_S + omitted, START_S + omitted + counted
    end_s = to_s + 2 * SETTLING_S
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "iperf3.json"
        client = [
            program,
            "-c",
            "10.0.0.2",
            "-C",
            "{cc}",
            "-P",
            str(len(own.summary.flows)),
            "-J",
            "--logfile",
            str(said),
        ]
        links = linux.run(
            # The flows stay, for their algorithm and their routes, and start when iperf3 has ended.
            scenario.with_settings(
                {
                    "duration": f"{end_s} s",
                    "flow.start": f"{end_s - 0.001} s",
                    "measure": f'{{ from = "{from_s} s", to = "{to_s} s" }}',
                }
            ),
            listener_commands=[[program, "-s", "-1"]],
            sender_commands=[
                ["sh", "-c", f'sleep {START_S}; exec "$@"', "sh", *client, "-O", str(omitted), "-t", str(counted)]
            ],
        )
        text = said.read_text(encoding="utf-8") if said.exists() else ""
    found: dict[str, Any] = json.loads(text) if text else {"error": "it did not end"}
    if "error" in found:
        raise kernel.KernelError(f"iperf3: {found['error']}")
    sent, received = found["end"]["sum_sent"], found["end"]["sum_received"]
    return Check(own, links, received["bits_per_second"], sent["retransmits"])
