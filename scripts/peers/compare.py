"""The same dumbbells on Elephan, ns-2 and ns-3 in turn: speed, and goodput, fairness and retransmissions side by side.

Standard TCP with SACK, delayed acknowledgments, packets of 1500 bytes, an initial window of 10, DropTail. The flows start
evenly over the first tenth of the time. Prints a table in Markdown, and how the targets are met.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REPEATS = 5
# How many times as fast as a lean ns-2 Elephan is to be, by the numbers of flows and hops.
TARGETS = {(2, 1): 10, (2, 3): 10, (100, 1): 15}
HEAD = [
    "flows of Standard TCP, SACK", "simulator", "segments for each CPU second (thousands)", "Elephan is faster by",
    "wall time for each simulated second (s)", "goodput (Mbit/s, application bytes)", "fairness (least/most)",
    "segments retransmitted",
]  # fmt: skip


class Case(NamedTuple):
    """A dumbbell, and the seconds that each simulator simulates; without any it does not take part."""

    mbit_s: int
    rtt_ms: int
    buffer_packets: int
    flows: int
    hops: int
    elephan_s: int
    ns2_s: int = 0
    ns3_s: int = 0


CASES = [
    Case(100, 40, 66, 2, 1, 100, 100, 20),
    Case(100, 40, 66, 2, 3, 100, 100, 20),
    Case(250, 82, 341, 2, 1, 100, 100, 10),
    Case(250, 82, 341, 2, 3, 100, 100, 10),
    Case(1000, 40, 3333, 100, 1, 20, 20),
    Case(10000, 40, 33333, 1000, 1, 5, 5),
    # ns-2 did not end within five minutes.
    Case(10000, 200, 166666, 2, 1, 20),
]


class Run(NamedTuple):
    """Times of a command and its children, and the delivered and retransmitted segments of each flow."""

    cpu_s: float
    wall_s: float
    flows: list[tuple[int, int]]


def measured(command: list[str]) -> Run:
    """Run a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    flows = [(int(a), int(b)) for a, b in (line.split() for line in done.stdout.splitlines() if line[:1].isdigit())]
    return Run(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, flows)


def row(case: Case, name: str, seconds: int, runs: list[Run], speed: float, faster: float) -> list[str]:
    """Write a row of the table."""
    flows = runs[0].flows
    delivered = [segments for segments, _ in flows]
    # Each flow's rate while it runs.
    rates = [count / (seconds - start(case, flow) * seconds) for flow, count in enumerate(delivered)]
    return [
        f"{case.flows:,} at {case.mbit_s} Mbit/s, {case.rtt_ms} ms, {case.buffer_packets} packets, "
        f"{case.hops} hop{'s' * (case.hops > 1)}, {seconds} s",
        name,
        f"{speed / 1e3:,.0f}",
        f"{faster:,.1f}",
        f"{statistics.median(run.wall_s for run in runs) / seconds:.3g}",
        f"{sum(delivered) * 1448 * 8 / seconds / 1e6:.1f}",
        f"{min(rates) / max(rates):.2f}",
        str(sum(again for _, again in flows)),
    ]


def start(case: Case, flow: int) -> float:
    """Compute the start of a flow as a share of the simulated time."""
    return 0.1 * flow / max(case.flows - 1, 1)


def main() -> None:
    """Measure and print."""
    if shutil.which("ns") is None or not list(Path("/usr/include").glob("ns3*")):
        sys.exit("ns-2 or ns-3: expected the Debian packages ns2 and libns3-dev, found none")
    with tempfile.TemporaryDirectory() as folder:
        ns3 = Path(folder) / "dumbbell"
        modules = ["applications", "point-to-point", "internet", "traffic-control", "bridge", "mobility", "network"]
        libraries = [f"-lns3-{module}" for module in [*modules, "stats", "core"]]
        build = ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(HERE / "dumbbell.cc"), "-o", str(ns3), *libraries]
        subprocess.run(build, check=True)
        cargo = ["cargo", "build", "--release", "--quiet", "-p", "elephan-sim", "--example", "dumbbell"]
        subprocess.run(cargo, check=True, cwd=ROOT)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        elephan = target / "release" / "examples" / "dumbbell"
        print("| " + " | ".join(HEAD) + " |")
        print("| " + " | ".join(["---"] * len(HEAD)) + " |")
        reached: dict[tuple[int, int], list[float]] = {dumbbell: [] for dumbbell in TARGETS}
        for case in CASES:
            programs = {
                "Elephan": ([str(elephan)], case.elephan_s),
                "ns-2.35": (["ns", str(HERE / "dumbbell.tcl"), "lean"], case.ns2_s),
                "ns-2.35, all headers": (["ns", str(HERE / "dumbbell.tcl"), "all"], case.ns2_s),
                "ns-3.37": ([str(ns3)], case.ns3_s),
            }
            programs = {name: program for name, program in programs.items() if program[1]}
            runs: dict[str, list[Run]] = {name: [] for name in programs}
            for _ in range(REPEATS):
                for name, (command, seconds) in programs.items():
                    numbers = (case.mbit_s, case.rtt_ms, case.buffer_packets, case.flows, seconds, case.hops)
                    runs[name].append(measured(command + [str(number) for number in numbers]))
            speeds = {
                name: sum(segments for segments, _ in repeated[0].flows)
                / statistics.median(run.cpu_s for run in repeated)
                for name, repeated in runs.items()
            }
            for name, (_, seconds) in programs.items():
                cells = row(case, name, seconds, runs[name], speeds[name], speeds["Elephan"] / speeds[name])
                print("| " + " | ".join(cells) + " |", flush=True)
            if (case.flows, case.hops) in reached and case.ns2_s:
                reached[case.flows, case.hops].append(speeds["Elephan"] / speeds["ns-2.35"])
        print()
        for (flows, hops), aim in TARGETS.items():
            factors = " and ".join(f"{factor:.1f}" for factor in reached[flows, hops])
            print(
                f"- {flows} flows, {hops} hop{'s' * (hops > 1)}: target {aim} times ns-2's speed, measured {factors}."
            )


if __name__ == "__main__":
    main()
