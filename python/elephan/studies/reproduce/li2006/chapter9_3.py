"""Li 2006, section 9.3, Internet paths as models, and appendix A, hardware."""

import polars as pl

from elephan.studies.reproduce.lab import Lab, Report, estimate, experiment, mean
from elephan.studies.reproduce.li2006.systems import NEW, SYSTEMS, listed

PATHS = {
    "a trans-Atlantic path": ("120 ms", "1e-6"),
    "that and the width of America": ("180 ms", "1e-6"),
    "Europe": ("25 ms", "1e-5"),
}


@experiment(
    "li2006/figure-9.27",
    "Models of Internet paths",
    "li2006/internet",
    choices=(
        "all properties of the paths: round-trip times, bottleneck, losses and traffic. These are models, with web traffic of 400 users and three combinations of round-trip time and loss.",
    ),
)
def figure_9_27(lab: Lab) -> Report:
    """Five minutes without slow start."""
    report, names = Report(), tuple(SYSTEMS)
    paths = dict(list(PATHS.items())[: lab.pick(3, 1)])
    cases = [(n, p) for n in names for p in paths]
    points = [{"flow.cc": SYSTEMS[n], "path.rtt": paths[p][0], "path.loss.probability": paths[p][1]} for n, p in cases]
    found = dict(zip(cases, lab.runs("li2006/internet", points, lab.pick(5, 1)), strict=True))
    good = {case: mean(estimate(runs, lambda s: s.flows[0].goodput_bit_s / 1e6)) for case, runs in found.items()}
    text = "; ".join(f"{p}: {listed({n: good[n, p] for n in names}, 0)}" for p in paths)
    report.check("L66", all(good[n, p] > good["Standard TCP", p] for n in NEW for p in paths), f"Mbit/s, {text}")
    report.check("L67", None, f"the paths cannot be identified; in these models, Mbit/s, {text}")
    p = next(iter(paths))
    times = {}
    for n in ("HighSpeed TCP", "Scalable TCP"):
        run = found[n, p][0]
        frame = run.flows.filter(pl.col("flow") == 0)
        high = frame.filter(pl.col("cwnd_segments") > 0.8 * float(frame["cwnd_segments"].to_numpy().max()))["time_s"]
        times[n] = float(high[0])
    report.check(
        "L68", all(100 < t < 220 for t in times.values()), f"80 % of the largest window after, s: {listed(times, 0)}"
    )
    stable = {n: mean(estimate(found[n, p], lambda s: s.flows[0].stability)) for n in names}
    report.check("L69", None, f"real paths; in the first model the deviation over mean is {listed(stable)}")
    return report


@experiment("li2006/appendix-a", "Disks and network cards")
def appendix_a(lab: Lab) -> Report:
    """Hardware."""
    del lab
    report = Report()
    report.check("L72", None, "a benchmark of disks")
    report.check("L73", None, "a benchmark of network cards")
    return report
