"""Measures the cost of a sweep besides its simulations: 10,000 short runs, and queries on their index. Prints Markdown.

`--dask 2` runs the same on two worker processes of a Dask cluster, without the queries.

The work is the time of the extension module for the same runs, measured on a sample of them. All other time of the sweep is
overhead: planning, batches, summaries, samples, Parquet. Both are CPU time, which is less affected by a busy machine than
wall time.
"""

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import elephan
from elephan import _core
from elephan.base.table import Head, of_markdown, text_heads
from elephan.studies.sweeps.query import query

SCENARIO = """
name = "bench-sweep"
duration = "10 s"
path = { rate = "100 Mbit/s", rtt = "20 ms", buffer = "50% bdp" }
flow = [{ cc = "reno" }, { cc = "reno", start = { uniform = ["0 s", "1 s"] } }]
[sweep]
"path.rtt" = ["10 ms", "20 ms", "40 ms", "80 ms", "160 ms"]
"flow.cc" = ["reno", "hstcp", "scalable", "htcp", "bic"]
"""
# The number of runs from which the work is estimated, evenly distributed over all points.
SAMPLE = 300
# The number of runs of a short sweep.
SHORT = 500
# How long an idle cluster is observed.
REST_S = 15.0


def cpu_s() -> float:
    """CPU seconds of this process and its children so far."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def work_s(scenario: elephan.Scenario) -> float:
    """CPU seconds of one run: the mean over a sample, with as many parallel runs as in the sweep: cores share resources."""
    scenarios = [scenario.point(k % scenario.points, k // scenario.points)[0] for k in range(SAMPLE)]
    before = time.process_time()
    _core.run_many(scenarios, 0)
    return (time.process_time() - before) / SAMPLE


def at_rest() -> float:
    """CPU usage of an idle cluster (heartbeats, monitors, profiles) as a share of a core."""
    import psutil  # noqa: PLC0415 - Dask depends on it

    def taken() -> float:
        own = psutil.Process()
        times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
        return sum(time.user + time.system for time in times)

    time.sleep(2)
    before = taken()
    time.sleep(REST_S)
    return (taken() - before) / REST_S


def seconds(ask: Callable[[], object]) -> float:
    """The median of five."""
    taken = []
    for _ in range(5):
        before = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - before)
    return statistics.median(taken)


def speedup(place: Path) -> float:
    """Wall time of a short sweep on one worker over that on two: the median of five pairs."""
    path = place / "short.toml"
    path.write_text(SCENARIO + f"repeat = {SHORT // 25}\n")
    scenario = elephan.load(path)
    ratios = []
    for pair in range(5):
        wall = []
        for workers in (1, 2):
            before = time.perf_counter()
            elephan.sweep(scenario, place / f"{pair}-{workers}", workers=workers).run()
            wall.append(time.perf_counter() - before)
        ratios.append(wall[0] / wall[1])
    return statistics.median(ratios)


def main() -> None:
    """Run the benchmark, and print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--dask", type=int, help="run on so many worker processes of a Dask cluster on this machine")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="elephan-bench-"))
    try:
        path = place / "scenario.toml"
        path.write_text(SCENARIO + f"repeat = {options.runs // 25}\n")
        scenario = elephan.load(path)
        before = work_s(scenario)
        rest = 0.0
        cpu, wall = cpu_s(), time.perf_counter()
        with ExitStack() as stack:
            client = None
            if options.dask:
                from distributed import Client, LocalCluster  # noqa: PLC0415 - the `cluster` extra

                made = LocalCluster(n_workers=options.dask, threads_per_worker=1, dashboard_address=None)
                client = stack.enter_context(Client(stack.enter_context(made)))
                rest = at_rest()
            sweep = elephan.sweep(scenario, place / "out", scheduler=client).run()
        cpu, wall = cpu_s() - cpu, time.perf_counter() - wall
        one = (before + work_s(scenario)) / 2
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        # The cost of an idle cluster grows with the wall time, which is longer on a busy machine.
        each = (cpu - rest * wall) / sweep.done
        dask = [
            ("Dask's idle processes, not included above", f"{100 * rest:.0f} % of a core"),
            ("overhead including these, at this wall time", f"{100 * (cpu / sweep.done / one - 1):.1f} %"),
        ]
        cost = [
            ("runs, each of 10 s on 100 Mbit/s with two flows", f"{sweep.done:,}"),
            ("simulation, CPU for each run", f"{1e3 * one:.2f} ms"),
            ("everything else, CPU for each run", f"{1e3 * (each - one):.2f} ms"),
            ("overhead", f"{100 * (each / one - 1):.1f} %"),
            *(dask if options.dask else []),
            (f"wall time on {len(os.sched_getaffinity(0))} cores", f"{wall:.0f} s"),
            ("peak memory of the client" if options.dask else "peak memory", f"{peak:.0f} MB"),
        ]
        if not options.dask:
            cost += [(f"{SHORT} runs, speed of two workers against one", f"{speedup(place):.2f}")]
            cost += questions(scenario, place / "out")
        table(cost)
    finally:
        shutil.rmtree(place)


def questions(scenario: elephan.Scenario, folder: Path) -> list[tuple[str, str]]:
    """The time to find that all runs are known, and the time of queries."""
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    known = time.perf_counter()
    elephan.sweep(scenario, folder).run()
    known = time.perf_counter() - known
    by_cc = "select cc, rtt, avg(goodput) from runs group by all"
    flows = "select label, avg(cwnd_segments) from flows group by all"
    return [
        ("samples of flows and queues, index", f"{size / 1e6:.0f} MB"),
        ("the same sweep again, all runs reused", f"{known:.2f} s"),
        (f"`{by_cc}`", f"{seconds(lambda: query(folder, by_cc)):.2f} s"),
        ("`elephan sweep table` of five metrics", f"{seconds(lambda: elephan.studies.sweeps.table(folder)):.2f} s"),
        (f"`{flows}`", f"{seconds(lambda: query(folder, flows)):.2f} s"),
    ]


def table(lines: list[tuple[str, str]]) -> None:
    """Print Markdown."""
    print(of_markdown([*text_heads("what"), Head("figure")], lines).to_markdown())


if __name__ == "__main__":
    main()
