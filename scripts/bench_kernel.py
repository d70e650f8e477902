"""Measure the speed of the kernel engine: one flow of Linux's own Scalable TCP over 82 ms, on an image that is there.

`python scripts/bench_kernel.py` prints a table in Markdown: medians of several runs, one after the other, and on all cores.
"""

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import elephan
from elephan import Scenario
from elephan.base.table import Table, text_heads

# Rate, simulated seconds.
CASES = (("100 Mbit/s", 30), ("1 Gbit/s", 10), ("10 Gbit/s", 5))
RUNS = 5


def scenario(rate: str, duration_s: int) -> Scenario:
    """One flow over a buffer of 20 % of the bandwidth-delay product."""
    path = {"rate": rate, "rtt": "82 ms", "buffer": "20% bdp"}
    return elephan.dumbbell(
        **path,
        flows=[elephan.flow("linux:scalable")],
        duration=f"{duration_s} s",
        engine="kernel",
        measure={"from": "1 s"},
    )


def measure(point: Scenario, at_once: int) -> tuple[float, int]:
    """The wall time of `at_once` runs side by side, s, and the packets of one."""
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        runs = list(pool.map(elephan.run, [point] * at_once))
    return time.perf_counter() - started, runs[0].provenance["quality"]["packets"]


def main() -> None:
    """Print the table."""
    cores = os.cpu_count() or 1
    rows = []
    for rate, duration_s in CASES:
        point = scenario(rate, duration_s)
        alone = [measure(point, 1) for _ in range(RUNS)]
        wall_s = statistics.median(wall for wall, _ in alone)
        together_s = statistics.median(measure(point, cores)[0] for _ in range(RUNS))
        packets = alone[0][1]
        rows.append(
            [
                rate,
                f"{duration_s} s",
                f"{packets:,}",
                f"{wall_s / duration_s:.3f} s",
                f"{1e6 * wall_s / packets:.1f} us",
                f"{together_s / duration_s / cores:.3f} s",
            ]
        )
    heads = ("rate", "simulated", "packets", "wall time a simulated second", "a packet", f"with {cores} guests at once")
    print(Table("", list(text_heads(*heads)), rows).to_markdown())


if __name__ == "__main__":
    main()
