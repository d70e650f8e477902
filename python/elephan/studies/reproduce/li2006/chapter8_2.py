"""Li 2006, sections 8.2.1 and 8.2.2: windows under random loss, and the size of the queue."""

from functools import partial
from statistics import fmean

import matplotlib as mpl
from matplotlib.figure import Figure

from elephan import _core
from elephan.base.plots import STYLE
from elephan.studies.reproduce.lab import Lab, Report, Row, estimate, experiment, mean
from elephan.studies.reproduce.li2006.cells import CHOICES, LATE, late_fairness, timing
from elephan.studies.reproduce.li2006.systems import METRICS, NEW, SYSTEMS, cc_of, listed
from elephan.studies.theory import FIGURES, Model, plot_response


@experiment(
    "li2006/figure-8.1",
    "Response functions, 250 Mbit/s, 162 ms, random loss",
    "li2006/response",
    choices=(*CHOICES[:1], "the grid of loss rates.", "initial slow start: unchanged; the first 60 s do not count."),
)
def figure_8_1(lab: Lab) -> Report:
    """Mean windows under random loss compared with theory, and at the switch between modes."""
    report = Report()
    losses, names = lab.pick((1e-5, 1e-4, 1e-3, 1e-2), (1e-4, 1e-3)), tuple(SYSTEMS)[:5]
    points = [
        {"flow.cc": SYSTEMS[n], "path.loss.probability": f"{p}", "duration": lab.pick("1200 s", "300 s")}
        for n in names
        for p in losses
    ]
    flat = iter(lab.runs("li2006/response", points, lab.pick(5, 2)))
    off = {}
    for name in names:
        model = Model(cc_of(name))
        for p in losses:
            found = estimate(next(flat), lambda s: s.flows[0].cwnd_mean_segments)
            theory = model.response(p, 0.162).window
            pipe = 250e6 * 0.162 / 12e3 * 1.1
            if theory < pipe:
                report.rows.append(
                    Row(f"mean window at p = {p:g}, theory", name, "segments", theory, None, found, 0.25)
                )
                off[name, p] = mean(found) / theory - 1
    worst = max(off, key=lambda k: abs(off[k]))
    report.check(
        "L08",
        abs(off[worst]) < 0.25,
        f"largest deviation from theory: {worst[0]} at p = {worst[1]:g}, {100 * off[worst]:+.0f} %",
    )
    report.reasons = {
        r.group: "random losses widen the sawtooth: time-driven growth (H-TCP) and the search of BIC gain from long gaps, and whole windows round up"
        for r in report.rows
    }
    switch = {"HighSpeed TCP": (0.001, 65.0, 38.0), "Scalable TCP": (0.005, 24.3, 16.0)}
    points = [
        {"flow.cc": SYSTEMS[n], "path.loss.probability": f"{p}", "duration": lab.pick("1200 s", "300 s")}
        for n, (p, *_) in switch.items()
    ]
    above = []
    for (name, (_, value, theory)), runs in zip(
        switch.items(), lab.runs("li2006/response", points, lab.pick(5, 2)), strict=True
    ):
        found = estimate(runs, lambda s: s.flows[0].cwnd_mean_segments)
        report.rows.append(Row("mean window at the switch of modes", name, "segments", value, None, found, 0.25))
        above.append(mean(found) > theory)
    report.reasons["mean window at the switch of modes"] = (
        "the test bed's mean window is an average over its kernel's samples, and its rounding was not published in full"
    )
    report.check(
        "L09",
        all(above),
        "; ".join(f"{r.system}: {mean(r.ours):.1f}, theory {switch[r.system][2]:g}" for r in report.rows[-2:]),
    )
    rounded = lab.runs(
        "li2006/response",
        [
            {
                "flow.cc": "reno",
                "path.loss.probability": "0.02",
                "tcp.quantisation": q,
                "duration": lab.pick("1200 s", "300 s"),
            }
            for q in ("round_up", "round_down", "none")
        ],
        lab.pick(5, 2),
    )
    up, down, real = (mean(estimate(runs, lambda s: s.flows[0].cwnd_mean_segments)) for runs in rounded)
    report.check(
        "L10",
        up > down,
        f"Standard TCP at p = 0.02: {up:.2f} rounded up, {down:.2f} rounded down, {real:.2f} unrounded",
    )
    htcp = [off["H-TCP", p] for p in losses if ("H-TCP", p) in off]
    others = {n: [off[n, p] for p in losses if (n, p) in off] for n in names}
    report.check(
        "L11",
        min(htcp) > -0.1 and max(htcp) >= max(max(v) for n, v in others.items() if n == "Standard TCP"),
        f"H-TCP's windows over theory: {', '.join(f'{100 * x:+.0f} %' for x in htcp)}",
    )
    points_of_figure = lab.pick(9, 0)
    report.draw = lambda: plot_response(
        FIGURES["li-8.1"], list(FIGURES["li-8.1"].cc), points_of_figure, most_s=300, run=partial(lab.run, "figure 8.1")
    )
    return report


@experiment(
    "li2006/figure-8.6",
    "Two flows at 100 Mbit/s, 82 ms by the size of the queue",
    "li2006/queue",
    choices=(*CHOICES, "the grid of queue sizes: 1, 2, 5, 10, 20, 30, 50, 80 and 100 %."),
)
def figure_8_6(lab: Lab) -> Report:
    """Sweep of the queue size."""
    sizes = lab.pick((1, 2, 5, 10, 20, 30, 50, 80, 100), (2, 5, 20, 50, 100))
    names = tuple(SYSTEMS)
    points = [
        {"flow.cc": SYSTEMS[n], "path.buffer": f"{q}% bdp"} | timing(lab, n, 100, 82) for n in names for q in sizes
    ]
    flat = iter(lab.runs("li2006/queue", points, lab.pick(5, 1)))
    found = {(n, q): next(flat) for n in names for q in sizes}
    report = Report()

    def value(metric: str, name: str, size: int) -> float:
        return mean(estimate(found[name, size], METRICS[metric].read))

    payload = 100 * 1448 / 1500
    small = {n: value("goodput", n, sizes[0]) / payload for n in names}
    large = {n: value("goodput", n, 20) / payload for n in names}
    report.check(
        "L12",
        all(small[n] < 0.95 * large[n] for n in names),
        f"share of capacity at {sizes[0]} %: {listed(small)}; at 20 %: {listed(large)}",
    )
    middle = {n: sum(value("goodput", n, q) for q in (5, 20)) / 2 for n in names}
    best = sorted((n for n in middle if n != "FAST"), key=lambda n: -middle[n])[:2]
    beaten = all(middle[n] > middle["Standard TCP"] for n in NEW)
    report.check(
        "L13", beaten and set(best) == {"Scalable TCP", "BicTCP"}, f"mean of 5 and 20 %, Mbit/s: {listed(middle, 1)}"
    )
    standard = found["Standard TCP", 50]
    used, together = (
        mean(estimate(standard, lambda s: s.utilisation)),
        mean(estimate(standard, lambda s: s.synchronisation)),
    )
    report.check(
        "L14",
        used > _core.utilisation_of(0.5, 0.5),
        f"at 50 %: utilisation {used:.3f}, one flow by equation 5.6 {_core.utilisation_of(0.5, 0.5):.3f}, share of flows that back off in an epoch {together:.2f}",
    )
    fair = {n: min(fmean(map(late_fairness, found[n, q])) for q in sizes if q >= 5) for n in names}
    report.check(
        "L15",
        min(fair, key=lambda n: fair[n]) == "Scalable TCP" and sorted(fair.values())[1] > 0.6,
        f"{LATE}, smallest over the queue sizes: {listed(fair)}",
    )
    over = {n: [value("overhead", n, q) for q in sizes if q >= 5] for n in names}
    above = all(x > y for n in NEW if n != "FAST" for x, y in zip(over[n], over["Standard TCP"], strict=True))
    report.check(
        "L16",
        above and value("overhead", "FAST", 50) < value("overhead", "Standard TCP", 50),
        f"at 50 %, 1e-7/(Mbit/s): {listed({n: value('overhead', n, 50) for n in names})}",
    )

    def draw() -> Figure:

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 3))
            for axes, metric in zip(figure.subplots(1, 3), ("goodput", "fairness", "overhead"), strict=True):
                for n in names:
                    axes.plot(sizes, [value(metric, n, q) for q in sizes], "o-", markersize=3, label=n)
                axes.set_xscale("log")
                axes.set_xlabel("queue (% of the product)")
                axes.set_title(METRICS[metric].label)
            figure.axes[0].legend(fontsize=7)
            figure.axes[2].set_yscale("symlog", linthresh=0.1)
            return figure

    report.draw = draw
    return report
