"""The same dumbbell on Elephan, ns-2 and ns-3 in turn: speed, and goodput, fairness and retransmissions side by side.

Standard TCP with SACK, delayed acknowledgments, packets of 1500 bytes, an initial window of 10, DropTail. Prints a table
in Markdown.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Rate (Mbit/s), RTT (ms), buffer (packets), flows, simulated seconds for Elephan and ns-2, and for ns-3, which is slower.
CASES = [(100, 40, 66, 2, 100, 20), (250, 82, 341, 2, 100, 10)]
REPEATS = 3


def measured(command: list[str]) -> tuple[float, str]:
    """Run a command; return the CPU time of it and its children in seconds, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def flows_of(text: str) -> list[tuple[int, int]]:
    """Read the delivered and retransmitted segments of each flow."""
    return [(int(a), int(b)) for a, b in (line.split() for line in text.splitlines() if line[:1].isdigit())]


def main() -> None:
    """Measure and print."""
    if shutil.which("ns") is None or (
        not Path("/usr/include/ns3").exists() and not list(Path("/usr/include").glob("ns3*"))
    ):
        sys.exit("ns-2 or ns-3: expected the Debian packages ns2 and libns3-dev, found none")
    with tempfile.TemporaryDirectory() as folder:
        ns3 = Path(folder) / "dumbbell"
        modules = (
            "applications",
            "point-to-point",
            "internet",
            "traffic-control",
            "bridge",
            "mobility",
            "network",
            "stats",
            "core",
        )
        libraries = [f"-lns3-{module}" for module in modules]
        build = ["g++", "-std=c++17", "-O3", "-DNDEBUG", str(HERE / "dumbbell.cc"), "-o", str(ns3), *libraries]
        subprocess.run(build, check=True)
        elephan = ROOT / "target" / "release" / "examples" / "dumbbell"
        cargo = ["cargo", "build", "--release", "--quiet", "-p", "elephan-sim", "--example", "dumbbell"]
        subprocess.run(cargo, check=True, cwd=ROOT)
        target = os.environ.get("CARGO_TARGET_DIR")
        if target:
            elephan = Path(target) / "release" / "examples" / "dumbbell"
        rows = []
        for rate, rtt, buffer, flows, seconds, short in CASES:
            for hops in (1, 3):
                base = None
                for name, command, time in (
                    ("Elephan", [str(elephan)], seconds),
                    ("ns-2.35", ["ns", str(HERE / "dumbbell.tcl")], seconds),
                    ("ns-3.37", [str(ns3)], short),
                ):
                    arguments = [str(x) for x in (rate, rtt, buffer, flows, time, hops)]
                    runs = [measured(command + arguments) for _ in range(REPEATS if name != "ns-3.37" else 1)]
                    results = flows_of(runs[0][1])
                    delivered = [segments for segments, _ in results]
                    speed = sum(delivered) / statistics.median(cpu for cpu, _ in runs)
                    base = base or speed
                    last = [d / (time - i * time / 10) for i, d in enumerate(delivered)]
                    rows.append(
                        [
                            f"{rate} Mbit/s, {rtt} ms, {buffer} packets, {hops} hop{'s' * (hops > 1)}, {time} s",
                            name,
                            f"{speed / 1e3:,.0f}",
                            f"{base / speed:,.1f}",
                            f"{sum(delivered) * 1448 * 8 / time / 1e6:.1f}",
                            f"{min(last) / max(last):.2f}",
                            str(sum(again for _, again in results)),
                        ]
                    )
                    print(json.dumps(rows[-1]), file=sys.stderr)
    head = [
        "two flows of Standard TCP, SACK", "simulator", "segments for each CPU second (thousands)", "Elephan is faster by",
        "goodput (Mbit/s, application bytes)", "fairness (least/most)", "segments retransmitted",
    ]  # fmt: skip
    table = "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])
    print(table)


if __name__ == "__main__":
    main()
