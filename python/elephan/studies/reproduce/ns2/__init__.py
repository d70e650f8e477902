"""Runs scenarios on ns-2, a simulator that shares no code with ours, as a second opinion on an experiment.

What stands for each algorithm:

* Standard TCP, HighSpeed TCP and Scalable TCP in their published form: ns-2's own agents (`Agent/TCP/Sack1`, or the one of the
  recovery that is asked for), with `windowOption_` 1, 8 (the formulas of RFC 3649) and 6 (`k` -1, `l` 1: each ACK adds `a`
  segments, a loss leaves `1 - b` of the window). They count ACKs: where the scenario counts bytes and delays ACKs, an ACK adds
  twice as much. HighSpeed TCP has no such factor. An ACK for each segment in place of it would keep the growth of a window, but not
  the fairness of flows with unequal round-trip times. All halve the window at the first loss.
* The same algorithms with `form = "linux"`, and H-TCP, BIC-TCP and CUBIC: `Agent/TCP/Linux`, which is the code of Linux 2.6.22,
  with rate halving and selective acknowledgments.

ns-2 has neither FAST TCP, Layered TCP nor HighSpeed TCP with fast convergence. `differences` lists what its stack does otherwise.
"""

import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.studies.lab import UnsuitableError
from elephan.studies.reproduce.ns2.results import columns, read, summary
from elephan.studies.reproduce.ns2.script import differences, expressed, flows_of, plan_of, script, unsupported

__all__ = ["express", "run", "unsupported", "version"]

# How often a run looks whether it is to stop.
POLL_S = 0.05


def express(scenario: Scenario, engine: str = "ns2") -> tuple[Scenario, list[str]]:
    """The scenario as ns-2 can run it, and what its stack does otherwise. Raises `UnsuitableError` with the reasons if it cannot."""
    assert engine == "ns2"
    if wrong := unsupported(scenario):
        raise UnsuitableError("\n".join(wrong))
    return expressed(scenario), differences(scenario)


@cache
def version() -> str:
    """The version of ns-2. Raises `OSError` if it is not installed."""
    if shutil.which("ns") is None:
        raise OSError("ns: expected ns-2 (the Debian package ns2), found none")
    done = subprocess.run(["ns"], input="puts [ns-version]\n", capture_output=True, text=True, check=True)
    return done.stdout.replace("%", "").strip()


def run(scenario: Scenario, cancel: _core.Cancel | None = None) -> Run:
    """Run a scenario on ns-2, and return its results. A flow starts when it does in our simulator, with the same seed.

    `cancel` lets another thread stop the run, which then raises `KeyboardInterrupt`. Raises `UnsuitableError` for what ns-2 cannot
    do, `OSError` if it is not installed or fails.
    """
    express(scenario)
    found, started = version(), time.perf_counter()
    plan = plan_of(scenario)
    flows = flows_of(scenario, plan)
    with tempfile.TemporaryDirectory(prefix="elephan-ns2-") as place:
        folder = Path(place)
        (folder / "scenario.tcl").write_text(script(scenario, plan, flows), encoding="ascii")
        _carry_out(folder, cancel)
        samples = read(folder, len(flows))
    return Run(
        scenario=scenario,
        summary=summary(plan, flows, samples),
        columns=columns(plan, flows, samples),
        links=(plan["link"],),
        labels=tuple(flow.label for flow in flows),
        provenance={
            "elephan": _core.__version__,
            "engine": "ns2",
            "ns2": found,
            "wall_time_s": time.perf_counter() - started,
            "segments_delivered": int(sum(max(samples.flow("w", i)[-1, 4], 0) for i in range(len(flows)))),
            "events_handled": 0,
        },
    )


def _carry_out(folder: Path, cancel: _core.Cancel | None) -> None:
    """Run the script in `folder`, until it ends or is cancelled."""
    with (
        (folder / "errors").open("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(["ns", "scenario.tcl"], cwd=folder, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        try:
            while True:
                try:
                    process.wait(POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    if cancel is not None and cancel.is_set():
                        raise KeyboardInterrupt from None
        except BaseException:
            process.kill()
            raise
        errors.seek(0)
        if process.returncode != 0:
            told = [line.strip() for line in errors if line.strip()]
            raise OSError(f"ns: expected a run without errors, found status {process.returncode}: {' '.join(told[:3])}")
