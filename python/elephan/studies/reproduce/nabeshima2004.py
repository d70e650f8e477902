"""Nabeshima and Yata 2004: convergence of HighSpeed TCP."""

import json
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.plots import STYLE
from elephan.studies.reproduce.lab import Lab, Report, Row, exactly, experiment, figures, mean
from elephan.studies.statistics import Estimate
from elephan.studies.theory import Model

OLD, NEW = "hstcp", "hstcp-fc"
# The time from the start of the last flow to the end of a run.
HORIZON_S = 300.0
CHOICES = (
    "length: 400 s (a flow that has not converged by then counts 300 s).",
    "access links: infinitely fast.",
)
BACKGROUND = (
    "background: 20 flows of Standard TCP with windows of 8 packets in each direction, and 50 web users (Kelly's model) in the forward direction; "
    "the paper gives neither numbers nor its web model. Halving both changes no ordering (see the quick and full runs)."
)


def _scenario(lab: Lab, cc: str, n: int, rate: int, seed: int, *, background: bool = False) -> Scenario:
    document: dict[str, Any] = json.loads(lab.scenario("nabeshima2004/convergence").to_json())
    first, last = document["flow"]
    first |= {"cc": cc, "count": n - 1}
    document |= {"flow": [first, last | {"cc": cc}], "seed": seed, "duration": "400 s"}
    document["path"] = document["path"] | {"rate": f"{rate} Mbit/s"}
    if background:
        few = lab.pick(20, 10)
        small = {"cc": "reno", "count": few, "tcp": {"send_buffer": "11680 B"}, "label": "background"}
        document["flow"] = [first, last | {"cc": cc}, small, small | {"reverse": True}]
        document["web"] = [{"users": lab.pick(50, 25)}]
    return Scenario(json.loads(_core.load_scenario(json.dumps(document), "scenario", [], True)))


def convergence_s(run: Run, flow: int, share_bit_s: float) -> float:
    """The time from 100 s until the 5 s throughput of the flow exceeds its share; the rest of the run if it never does."""
    frame = run.flows.filter(pl.col("flow") == flow).filter(pl.col("time_s") > 100)
    above = frame.filter(pl.col("goodput_bit_s") > share_bit_s)["time_s"]
    end = float(run.summary.to_s)
    return (float(above[0]) if len(above) else end) - 100


def _times(
    lab: Lab, what: str, cases: Sequence[tuple[str, int, int]], *, background: bool = False
) -> dict[tuple[str, int, int], Estimate]:
    # The packets of the web users make the runs with background traffic the expensive ones.
    repeats = lab.pick(5 if background else 15, 2)
    scenarios = [
        _scenario(lab, cc, n, rate, seed, background=background)
        for cc, n, rate in cases
        for seed in range(1, repeats + 1)
    ]
    runs = lab.run(what, scenarios)
    result = {}
    for i, (cc, n, rate) in enumerate(cases):
        part = runs[i * repeats : (i + 1) * repeats]
        result[cc, n, rate] = Estimate.of([convergence_s(run, n - 1, rate * 1e6 * 1448 / 1500 / n) for run in part])
    return result


def _text(times: dict[tuple[str, int, int], Estimate], by: int) -> str:
    return "; ".join(f"{cc} {key[by - 1]}: {e.text(0)} s" for (cc, *key), e in times.items())


def _draw(times: dict[tuple[str, int, int], Estimate], by: int, label: str, title: str) -> Any:
    def draw() -> Figure:

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(5.5, 3))
            axes = figure.subplots()
            for cc in (OLD, NEW):
                mine = [(key[by], e) for key, e in times.items() if key[0] == cc]
                errors = [e.half_width or 0 for _, e in mine]
                axes.errorbar(
                    [x for x, _ in mine],
                    [mean(e) for _, e in mine],
                    errors,
                    fmt="o-",
                    markersize=4,
                    capsize=2,
                    label=cc,
                )
            axes.set_xlabel(label)
            axes.set_ylabel("convergence time (s)")
            axes.set_ylim(bottom=0)
            axes.set_title(title)
            axes.legend()
            return figure

    return draw


def _faster(times: dict[tuple[str, int, int], Estimate]) -> bool | None:
    """Whether the mechanism is faster in all cases; None if neither converged in any run."""
    pairs = [(mean(times[NEW, n, rate]), mean(e)) for (cc, n, rate), e in times.items() if cc == OLD]
    if any(new == old == HORIZON_S for new, old in pairs):
        return None
    return all(new < old for new, old in pairs)


@experiment(
    "nabeshima2004/section-2", "Loss rate and recovery of Standard TCP at 7.2 Gbit/s; HighSpeed TCP's design point"
)
def section_2(lab: Lab) -> Report:
    """Formulas."""
    del lab
    report, w = Report(), 7.2e9 * 0.1 / 12e3
    standard, high = Model("reno"), Model("hstcp")
    for group, unit, metric, ours in (
        ("required loss rate", "1", "required loss rate", standard.core.loss(w, 0.1)),
        (
            "recovery from one loss, 7.2 Gbit/s on average",
            "RTT",
            "recovery from one loss",
            standard.core.recovery(standard.core.peak(standard.core.loss(w, 0.1), 0.1), 0.1),
        ),
        (
            "throughput at 1e-7",
            "Gbit/s",
            "design throughput",
            (high.response(1e-7, 0.1).published or 0) * 12e3 / 0.1 / 1e9,
        ),
    ):
        row = next(r for r in figures("nabeshima2004") if metric in r["metric"])
        report.rows.append(Row(group, row["system"], unit, float(row["value"]), None, exactly(ours), 0.02))
    return report


@experiment(
    "nabeshima2004/figure-5",
    "Windows of two flows with and without the new mechanism (figures 1 and 5)",
    "nabeshima2004/convergence",
    choices=CHOICES,
)
def figure_5(lab: Lab) -> Report:
    """A flow that starts at 100 s beside an established flow."""
    report = Report()
    old, new = lab.run("figure 5", [_scenario(lab, cc, 2, 1000, 1) for cc in (OLD, NEW)])
    share = 1e9 * 1448 / 1500 / 2
    times = [convergence_s(run, 1, share) for run in (old, new)]
    report.check("N01", times[0] > 60, f"the second flow of HighSpeed TCP reaches its share after {times[0]:.0f} s")
    frame = new.flows.filter(pl.col("flow") == 0).filter(pl.col("time_s") > 100)
    windows, at = frame["cwnd_segments"].to_list(), frame["time_s"].to_list()
    halved = [at[i] for i in range(1, len(windows)) if windows[i] < 0.62 * windows[i - 1]]
    for i, found in enumerate(halved[:3]):
        row = next(r for r in figures("nabeshima2004") if f"time of {('1st', '2nd', '3rd')[i]}" in r["metric"])
        report.rows.append(
            Row("halvings of flow 1", f"number {i + 1}", "s", float(row["value"]), None, exactly(found), 0.15)
        )
    report.reasons["halvings of flow 1"] = (
        "the publication has one run without repeats; the times depend on when flow 2's slow start ends"
    )
    report.check(
        "N02",
        times[1] < times[0] and bool(halved),
        f"flow 1 halves at {', '.join(f'{t:.0f} s' for t in halved) or 'no time'}; share reached after {times[1]:.0f} s, without the mechanism {times[0]:.0f} s",
    )

    def draw() -> Figure:

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(8, 3))
            for axes, run, title in zip(
                figure.subplots(1, 2, sharey=True),
                (old, new),
                ("figure 1: HighSpeed TCP", "figure 5: with the mechanism"),
                strict=True,
            ):
                for flow in (0, 1):
                    one = run.flows.filter(pl.col("flow") == flow)
                    axes.plot(one["time_s"], one["cwnd_segments"], label=f"flow {flow + 1}")
                axes.set_title(title)
                axes.set_xlabel("time (s)")
            figure.axes[0].set_ylabel("cwnd (packets)")
            figure.axes[0].legend()
            return figure

    report.draw = draw
    return report


@experiment(
    "nabeshima2004/figure-6", "Convergence time by number of flows", "nabeshima2004/convergence", choices=CHOICES
)
def figure_6(lab: Lab) -> Report:
    """N = 2 to 10 flows at 1 Gbit/s."""
    counts = lab.pick(tuple(range(2, 11)), (2, 6))
    times = _times(lab, "figure 6", [(cc, n, 1000) for cc in (OLD, NEW) for n in counts])
    report, text = Report(), _text(times, 1)
    report.check("N03", _faster(times), text)
    few, many = (mean(times[OLD, n, 1000]) for n in (counts[0], counts[-1]))
    report.check("N04", None if few == many == HORIZON_S else few > many, text)
    report.check("N05", min(counts, key=lambda n: mean(times[NEW, n, 1000])) == 2, text)
    report.draw = _draw(times, 1, "flows", "Nabeshima and Yata 2004, figure 6")
    return report


@experiment(
    "nabeshima2004/figure-7",
    "Convergence time of two flows by bandwidth",
    "nabeshima2004/convergence",
    choices=(*CHOICES, "the grid of bandwidths."),
)
def figure_7(lab: Lab) -> Report:
    """100 Mbit/s to 1 Gbit/s."""
    rates = lab.pick((100, 200, 400, 600, 800, 1000), (100, 400))
    times = _times(lab, "figure 7", [(cc, 2, rate) for cc in (OLD, NEW) for rate in rates])
    report = Report()
    report.check("N06", _faster(times), _text(times, 2))
    report.draw = _draw(times, 2, "bandwidth (Mbit/s)", "Nabeshima and Yata 2004, figure 7")
    return report


@experiment(
    "nabeshima2004/figure-8",
    "Convergence time by number of flows, with background traffic",
    "nabeshima2004/convergence",
    choices=(*CHOICES, BACKGROUND),
    quick=False,
)
def figure_8(lab: Lab) -> Report:
    """Web traffic and window-limited flows in both directions."""
    counts = lab.pick((2, 4, 6, 8, 10), (2,))
    cases = [(cc, n, 1000) for cc in (OLD, NEW) for n in counts]
    times, without = _times(lab, "figure 8", cases, background=True), _times(lab, "figure 8 without", cases)
    report = Report()
    report.check("N07", _faster(times), _text(times, 1))
    pairs = [(mean(times[key]), mean(without[key])) for key in cases if key[0] == OLD]
    quicker = None if any(a == b == HORIZON_S for a, b in pairs) else all(a < b for a, b in pairs)
    report.check("N08", quicker, f"with: {_text(times, 1)}; without: {_text(without, 1)}")
    report.draw = _draw(times, 1, "flows", "Nabeshima and Yata 2004, figure 8")
    return report


@experiment(
    "nabeshima2004/figure-9",
    "Convergence time of two flows by bandwidth, with background traffic",
    "nabeshima2004/convergence",
    choices=(*CHOICES, BACKGROUND),
    quick=False,
)
def figure_9(lab: Lab) -> Report:
    """100 Mbit/s to 1 Gbit/s with background."""
    rates = lab.pick((100, 200, 400, 600, 800, 1000), (100, 400))
    times = _times(lab, "figure 9", [(cc, 2, rate) for cc in (OLD, NEW) for rate in rates], background=True)
    report = Report()
    report.check("N09", _faster(times), _text(times, 2))
    report.draw = _draw(times, 2, "bandwidth (Mbit/s)", "Nabeshima and Yata 2004, figure 9")
    return report
