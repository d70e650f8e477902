"""Li 2006: formulas of chapter 5, the dummynet measurements of chapter 8."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elephan import _core
from elephan.reproduce.lab import Lab, Report, Row, estimate, exactly, experiment, figures, mean, printed
from elephan.results import Run
from elephan.summary import Summary
from elephan.theory import FIGURES, Model, plot_response

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The thesis' names, and what a scenario calls them. It ran HighSpeed TCP by the table of RFC 3649.
SYSTEMS = {
    "Standard TCP": "reno",
    "HighSpeed TCP": '{ name = "hstcp", form = "table" }',
    "Scalable TCP": "scalable",
    "H-TCP": "htcp",
    "BicTCP": "bic",
    "FAST": "fast",
}
NEW = tuple(SYSTEMS)[1:]
RATES, RTTS = (10, 100, 250), (16, 22, 42, 82, 162, 324)
CHOICES = (
    "initial window: 2 segments; quick ACKs: the first 16 segments; least RTO: 200 ms, all as in Linux 2.6.6.",
    "start of the second flow: uniform within 20 s of the first.",
    "BIC's S_max = 32 and smooth_part = 20 (Xu 2004); H-TCP's increase scaled by T_min/100 ms (its authors' code).",
    "The kernel's cap of cwnd at what is in flight, and the hosts' cost of ACKs, are left out.",
)
Read = Callable[[Summary], float | None]
METRICS: dict[str, tuple[str, Read]] = {
    "goodput": ("Mbit/s", lambda s: s.goodput_bit_s / 1e6),
    "fairness": ("least/most", lambda s: s.fairness),
    "overhead": ("1e-7/(Mbit/s)", lambda s: None if s.overhead_s_bit is None else s.overhead_s_bit * 1e13),
    "convergence": ("s", lambda s: s.convergence_s),
}
Cells = dict[tuple[str, int, int], list[Run]]


def _repeats(lab: Lab) -> int:
    return lab.pick(5, 2)


def _duration(lab: Lab, cc: str) -> str:
    """Standard TCP was watched for up to an hour, the others for at least ten minutes."""
    return lab.pick("3600 s" if cc == "reno" else "600 s", "60 s")


def _grid(lab: Lab, scenario: str, cells: Sequence[tuple[str, int, int]], make: Any, repeats: int) -> Cells:
    points = [make(SYSTEMS[name], rate, rtt) | {"duration": _duration(lab, SYSTEMS[name])} for name, rate, rtt in cells]
    return dict(zip(cells, lab.runs(scenario, points, repeats), strict=True))


def _symmetric(cc: str, rate: int, rtt: int) -> dict[str, str]:
    return {"flow.cc": cc, "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms"}


def _asymmetric(large: bool) -> Callable[[str, int, int], dict[str, str]]:
    def point(cc: str, rate: int, rtt: int) -> dict[str, str]:
        return {
            "flow.cc": cc,
            "path.rate": f"{rate} Mbit/s",
            "path.rtt": f"{162 if large else rtt} ms",
            "flow.1.rtt": f"{rtt} ms",
        }

    return point


def _friendly(cc: str, rate: int, rtt: int) -> dict[str, str]:
    return {"flow.1.cc": cc, "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms"}


SCENARIOS: dict[str, tuple[str, Any]] = {
    "li-8.3.1-symmetric": ("li2006/symmetric", _symmetric),
    "li-8.3.2-asym-small": ("li2006/asymmetric", _asymmetric(large=False)),
    "li-8.3.2-asym-large": ("li2006/asymmetric", _asymmetric(large=True)),
    "li-8.3.3-friendliness": ("li2006/friendliness", _friendly),
}


def all_cells(lab: Lab, key: str, systems: Sequence[str] = tuple(SYSTEMS)) -> Cells:
    """The grid of rates and round-trip times of a scenario of chapter 8."""
    scenario, make = SCENARIOS[key]
    full = [r for r in RTTS if r <= 162 or "asym" not in key]
    rtts = lab.pick(tuple(full), (22, 82, 162))
    cells = [(name, rate, rtt) for name in systems for rate in RATES for rtt in rtts]
    return _grid(lab, scenario, cells, make, lab.pick(5, 1))


def of(cells: Cells, metric: str, name: str, where: Callable[[int, int], bool] = lambda *_: True) -> float:
    """The mean of a metric over the cells of an algorithm (over all their repeats)."""
    found = [
        e.mean
        for (system, rate, rtt), runs in cells.items()
        if system == name and where(rate, rtt) and (e := estimate(runs, METRICS[metric][1])).mean is not None
    ]
    return sum(found) / len(found) if found else math.nan


def at(rate: int | None, rtt: int | None) -> Callable[[int, int], bool]:
    """Cells of this rate and this round-trip time; any where none."""
    return lambda c, r: rate in (None, c) and rtt in (None, r)


def by_system(cells: Cells, metric: str, where: Callable[[int, int], bool] = lambda *_: True) -> dict[str, float]:
    """The mean of a metric for each algorithm."""
    return {name: of(cells, metric, name, where) for name in dict.fromkeys(name for name, *_ in cells)}


def listed(values: Mapping[str, float], digits: int = 2) -> str:
    """Numbers as text."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


OVERHEAD = (
    "a full DropTail queue drops about as many packets of a flow as its window grows by in the round trip until it hears of "
    "the loss, a(w); the printed values mean 1 to 2 losses in an epoch for every algorithm, so the test bed's hosts must have "
    "held windows down (its kernel caps cwnd at what is in flight)"
)
REASONS = {
    "goodput": "ours is higher by a few per cent: simulated hosts and router lose no time of their own",
    "overhead": OVERHEAD,
    "convergence": "the second flow's slow start takes its share at once here, by making the first one lose",
    "fairness": "FAST's second flow takes the first one's queue for delay of the path and keeps more; Scalable TCP's ratio is "
    "that of where it began",
}


def _table(lab: Lab, table: str, metric: str, band: float, keys: Sequence[str]) -> Report:
    report = Report()
    unit, read = METRICS[metric]
    for key in keys:
        scenario, make = SCENARIOS[key]
        numbers = printed("li2006", f"Table {table}", metric if metric != "fairness" else "fairness", key)
        names = [n for n in numbers if not (key.endswith("friendliness") and n == "Standard TCP")]
        if metric == "convergence":
            names = list(SYSTEMS)
        cells = _grid(lab, scenario, [(name, 250, 82) for name in names], make, _repeats(lab))
        group = f"{metric}, {key.removeprefix('li-')}"
        for (name, *_), runs in cells.items():
            value, uncertainty = numbers.get(name, (None, None))
            report.rows.append(Row(group, name, unit, value, uncertainty, estimate(runs, read), band))
        report.reasons[group] = REASONS[metric]
    return report


@experiment(
    "li2006/table-8.1", "Aggregate goodput of two flows, 250 Mbit/s, 82 ms", "li2006/symmetric", choices=CHOICES
)
def table_8_1(lab: Lab) -> Report:
    """Goodput in all four scenarios."""
    return _table(lab, "8.1", "goodput", 0.1, list(SCENARIOS))


@experiment(
    "li2006/table-8.2", "Fairness and friendliness of two flows, 250 Mbit/s, 82 ms", "li2006/symmetric", choices=CHOICES
)
def table_8_2(lab: Lab) -> Report:
    """Fairness in all four scenarios."""
    report = _table(lab, "8.2", "fairness", 0.15, list(SCENARIOS))
    goodput = {r.system: mean(r.ours) for r in table_8_1(lab).rows if r.group.endswith("asym-small")}
    fair = {r.system: mean(r.ours) for r in report.rows if r.group.endswith("asym-small")}
    best, worst = sorted(goodput, key=lambda n: -goodput[n])[:2], sorted(fair, key=lambda n: fair[n])[:3]
    report.check("L47", set(best) <= set(worst), f"most goodput: {', '.join(best)}; least fair: {', '.join(worst)}")
    return report


@experiment("li2006/table-8.3", "80 % convergence time, 250 Mbit/s, 82 ms", "li2006/symmetric", choices=CHOICES)
def table_8_3(lab: Lab) -> Report:
    """Convergence of the second flow."""
    report = _table(lab, "8.3", "convergence", 0.3, ["li-8.3.1-symmetric"])
    scalable = next(r.ours for r in report.rows if r.system == "Scalable TCP")
    report.check("L28", scalable.values == 0, f"Scalable TCP converged in {scalable.values} of {scalable.repeats} runs")
    return report


@experiment("li2006/table-8.4", "Overhead, 250 Mbit/s, 82 ms", "li2006/symmetric", choices=CHOICES)
def table_8_4(lab: Lab) -> Report:
    """Overhead in all four scenarios."""
    report = _table(lab, "8.4", "overhead", 0.3, list(SCENARIOS))
    found = {r.system: mean(r.ours) for r in report.rows if r.group.endswith("symmetric")}
    low = found["BicTCP"] < found["HighSpeed TCP"] or found["BicTCP"] < found["H-TCP"]
    report.check(
        "L48",
        low,
        listed({n: found[n] for n in ("BicTCP", "HighSpeed TCP", "H-TCP")}) + "; so in print too: 5.08, 2.95, 3.11",
    )
    return report


def _lines(cells: Cells, metric: str, title: str, *, log: bool = False) -> "Callable[[], Figure]":
    def draw() -> "Figure":
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from elephan.plots import STYLE

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 3))
            for axes, rate in zip(figure.subplots(1, len(RATES)), RATES, strict=True):
                for name in dict.fromkeys(name for name, *_ in cells):
                    rtts = sorted(r for system, c, r in cells if system == name and c == rate)
                    values = [estimate(cells[name, rate, r], METRICS[metric][1]).mean for r in rtts]
                    axes.plot(rtts, [math.nan if v is None else v for v in values], "o-", markersize=3, label=name)
                axes.set_xscale("log")
                if log:
                    axes.set_yscale("log")
                axes.set_title(f"{rate} Mbit/s")
                axes.set_xlabel("round-trip time (ms)")
            figure.axes[0].set_ylabel(f"{metric} ({METRICS[metric][0]})")
            figure.axes[-1].legend(fontsize=7)
            figure.suptitle(title, fontsize=10)
            return figure

    return draw


SYM, SMALL, LARGE, FRIENDLY = SCENARIOS


@experiment(
    "li2006/figure-8.10", "Goodput of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_10(lab: Lab) -> Report:
    """Symmetric grid: goodput."""
    cells, report = all_cells(lab, SYM), Report()
    goodput = by_system(cells, "goodput")
    worse = [
        f"{name} {rate} Mbit/s {rtt} ms"
        for name, rate, rtt in cells
        if name not in ("Standard TCP", "FAST")
        and of(cells, "goodput", name, at(rate, rtt)) < 0.98 * of(cells, "goodput", "Standard TCP", at(rate, rtt))
    ]
    report.check("L17", not worse, f"below Standard TCP by more than 2 %: {', '.join(worse) or 'none'}")
    best = sorted((n for n in goodput if n != "FAST"), key=lambda n: -goodput[n])[:2]
    report.check("L18", set(best) == {"Scalable TCP", "BicTCP"}, f"means over the grid, Mbit/s: {listed(goodput, 1)}")
    share = [
        of(cells, "goodput", "HighSpeed TCP", at(250, k // 250))
        / of(cells, "goodput", "Standard TCP", at(250, k // 250))
        for k in (lab.pick(250 * 16, 250 * 22), 250 * 162)
    ]
    report.check(
        "L19",
        share[1] > share[0],
        f"HighSpeed over Standard TCP at 250 Mbit/s: {share[0]:.3f} at the shortest, {share[1]:.3f} at 162 ms",
    )
    report.draw = _lines(cells, "goodput", "Li 2006, figure 8.10: aggregate goodput of two flows")
    return report


@experiment(
    "li2006/figure-8.12", "Fairness of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_12(lab: Lab) -> Report:
    """Symmetric grid: fairness."""
    cells, report = all_cells(lab, SYM), Report()
    long = by_system(cells, "fairness", lambda _, rtt: rtt >= 162)
    report.check("L20", min(long, key=lambda n: long[n]) == "Scalable TCP", f"at 162 ms and more: {listed(long)}")
    slow = of(cells, "fairness", "Scalable TCP", lambda c, r: c == 10 and r in (22, 42))
    report.check("L21", slow < 0.8, f"Scalable TCP at 10 Mbit/s, 22 and 42 ms: {slow:.2f}")
    bic = of(cells, "fairness", "BicTCP", lambda c, r: c == 10 and r >= 162)
    report.check("L23", bic < 0.8, f"BicTCP at 10 Mbit/s, 162 ms and more: {bic:.2f}")
    htcp = {key: of(cells, "fairness", "H-TCP", at(*key)) for key in dict.fromkeys(k[1:] for k in cells)}
    least = min(htcp, key=lambda k: htcp[k])
    more = of(cells, "fairness", "H-TCP") > of(cells, "fairness", "Standard TCP")
    report.check(
        "L24",
        htcp[least] > 0.8 and more,
        f"H-TCP's least: {htcp[least]:.2f} at {least[0]} Mbit/s, {least[1]} ms; means: {listed(by_system(cells, 'fairness'))}",
    )
    steps = _grid(
        lab, "li2006/symmetric", [("HighSpeed TCP", 100, 42), ("HighSpeed TCP", 250, 42)], _symmetric, _repeats(lab)
    )
    smooth = lab.runs(
        "li2006/symmetric",
        [_symmetric("hstcp", r, 42) | {"duration": _duration(lab, "hstcp")} for r in (100, 250)],
        _repeats(lab),
    )
    table = of(steps, "fairness", "HighSpeed TCP")
    continuous = sum(mean(estimate(runs, METRICS["fairness"][1])) for runs in smooth) / 2
    report.check(
        "L22",
        table < continuous - 0.05,
        f"42 ms, 100 and 250 Mbit/s: {table:.2f} by the table, {continuous:.2f} by the continuous functions",
    )
    report.draw = _lines(cells, "fairness", "Li 2006, figure 8.12: fairness of two flows")
    return report


@experiment(
    "li2006/figure-8.18", "Overhead of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_18(lab: Lab) -> Report:
    """Symmetric grid: overhead."""
    cells, report = all_cells(lab, SYM), Report()
    overhead = by_system(cells, "overhead", lambda _, rtt: rtt >= 82)
    loss_based = {n: v for n, v in overhead.items() if n != "FAST"}
    report.check(
        "L25",
        min(loss_based, key=lambda n: loss_based[n]) == "Standard TCP",
        f"at 82 ms and more, 1e-7/(Mbit/s): {listed(overhead)}",
    )
    rule = []
    for rate, alpha, rtts in ((10, 8, (82, 162)), (100, 20, (22, 82)), (250, 200, (82, 162))):
        for rtt in rtts:
            lost = of(cells, "overhead", "FAST", at(rate, rtt))
            queue = math.floor(0.2 * rate * rtt * 1e3 / 12e3)
            rule.append((rate, rtt, queue >= 2 * alpha, lost < 0.01 * max(overhead["Scalable TCP"], 1), lost))
    fits = all(enough == quiet for *_, enough, quiet, _ in rule)
    text = "; ".join(
        f"{c} Mbit/s {r} ms: buffer {'holds' if e else 'is below'} both alphas, overhead {x:.2g}"
        for c, r, e, _, x in rule
    )
    report.check("L26", fits, text)
    long, short = (of(cells, "overhead", "H-TCP", at(None, k)) for k in (lab.pick(324, 162), 22))
    report.check(
        "L27",
        long > of(cells, "overhead", "Scalable TCP", lambda c, r: r == lab.pick(324, 162) and c < 250),
        f"H-TCP at the longest {long:.2f}, at 22 ms {short:.2f}; Scalable TCP at 10 and 100 Mbit/s, longest: {of(cells, 'overhead', 'Scalable TCP', lambda c, r: r == lab.pick(324, 162) and c < 250):.2f}",
    )
    report.draw = _lines(cells, "overhead", "Li 2006, figure 8.18: overhead of two flows", log=True)
    return report


@experiment(
    "li2006/figure-8.21",
    "Convergence time of the second flow by capacity and round-trip time",
    "li2006/symmetric",
    choices=CHOICES,
)
def figure_8_21(lab: Lab) -> Report:
    """Symmetric grid: convergence."""
    cells, report = all_cells(lab, SYM), Report()
    long = lab.pick(324, 162)
    times = by_system(cells, "convergence", lambda c, r: c == 250 and r == long)
    report.check(
        "L29",
        abs(times["HighSpeed TCP"] / times["BicTCP"] - 1) < 0.5 and 100 < times["BicTCP"] < 300,
        f"250 Mbit/s, {long} ms, s: {listed(times, 1)}",
    )
    htcp = {r: of(cells, "convergence", "H-TCP", at(250, r)) for r in sorted({r for *_, r in cells})}
    slower = min(times["BicTCP"], times["HighSpeed TCP"]) / times["H-TCP"]
    report.check(
        "L30",
        max(htcp.values()) < 60 and slower > 3,
        f"H-TCP at 250 Mbit/s: {', '.join(f'{t:.0f} s at {r} ms' for r, t in htcp.items())}; others {slower:.1f} times slower",
    )
    report.check(
        "L31", times["Standard TCP"] < 20, f"Standard TCP at 250 Mbit/s, {long} ms: {times['Standard TCP']:.1f} s"
    )
    fast = cells["FAST", 250, 82]
    ratio = [run.summary.flows[1].goodput_bit_s / run.summary.flows[0].goodput_bit_s for run in fast]
    report.check(
        "L32",
        min(ratio) > 1,
        f"second over first FAST flow at 250 Mbit/s, 82 ms: {', '.join(f'{r:.2f}' for r in ratio)}",
    )
    best = sorted(SYSTEMS, key=lambda n: -(of(cells, "goodput", n) / 120 + of(cells, "fairness", n)))[:4]
    report.check(
        "L71",
        {"H-TCP", "BicTCP"} <= set(best),
        f"best by goodput and fairness together on this grid: {', '.join(best)}; see also `elephan recommend`",
    )
    report.draw = _lines(cells, "convergence", "Li 2006, figure 8.21: 80 % convergence time")
    return report


def _fair(cells: Cells, name: str, rate: int, where: Callable[[int], bool]) -> float:
    return of(cells, "fairness", name, lambda c, r: c == rate and where(r))


@experiment(
    "li2006/figure-8.22", "Two flows of different round-trip times, small buffers", "li2006/asymmetric", choices=CHOICES
)
def figure_8_22(lab: Lab) -> Report:
    """Flow 1 has 162 ms, flow 2 less; the buffer is 20 % of the shorter one's product."""
    cells, report = all_cells(lab, SMALL), Report()
    goodput = by_system(cells, "goodput", lambda _, r: r < 162)
    best = sorted((n for n in goodput if n != "FAST"), key=lambda n: -goodput[n])[:2]
    report.check("L33", set(best) == {"Scalable TCP", "BicTCP"}, f"Mbit/s: {listed(goodput, 1)}")
    slow = {n: _fair(cells, n, 10, lambda r: r < 162) for n in SYSTEMS}
    quick = {
        n: (_fair(cells, n, 100, lambda r: r < 162) + _fair(cells, n, 250, lambda r: r < 162)) / 2 for n in SYSTEMS
    }
    spread = [max(v.values()) / max(min(v.values()), 1e-9) for v in (slow, quick)]
    report.check(
        "L34",
        spread[1] > 3 * spread[0],
        f"largest over smallest fairness: {spread[0]:.1f} at 10 Mbit/s, {spread[1]:.1f} at 100 and 250; {listed(quick, 3)}",
    )
    fairer = [n for n in NEW if quick[n] > quick["Standard TCP"]]
    report.check(
        "L35", fairer == ["H-TCP"], f"fairer than Standard TCP: {', '.join(fairer) or 'none'}; {listed(quick, 3)}"
    )
    ratio = max(
        _fair(cells, "Standard TCP", c, k.__eq__) / max(_fair(cells, "Scalable TCP", c, k.__eq__), 1e-9)
        for c in (100, 250) for k in {r for *_, r in cells if r < 162}
    )  # fmt: skip
    report.check("L36", ratio >= 30, f"Standard over Scalable TCP's fairness, at most {ratio:.0f}")
    locked = {n: quick[n] for n in ("Scalable TCP", "BicTCP", "HighSpeed TCP", "FAST")}
    report.check("L37", max(locked.values()) < 0.15, f"fairness at 100 and 250 Mbit/s: {listed(locked, 3)}")
    report.draw = _lines(
        cells, "fairness", "Li 2006, figure 8.25: fairness, flow 1 has 162 ms, small buffers", log=True
    )
    return report


@experiment(
    "li2006/synchronisation",
    "Fairness of Standard TCP against round-trip times and synchronisation",
    "li2006/asymmetric",
    choices=CHOICES,
)
def synchronisation(lab: Lab) -> Report:
    """Section 7.1.4: fairness of Standard TCP is (T_j/T_i)^2 lambda_j/lambda_i."""
    rates = [(100, 82), (250, 82)]
    points = [
        _asymmetric(large=False)("reno", c, r) | {"duration": lab.pick("3600 s", "600 s"), "measure.from": "60 s"}
        for c, r in rates
    ]
    report = Report()
    good = []
    for (rate, rtt), runs in zip(rates, lab.runs("li2006/asymmetric", points, lab.pick(5, 3)), strict=True):
        found = mean(estimate(runs, lambda s: s.flows[0].goodput_bit_s / s.flows[1].goodput_bit_s))
        events = mean(estimate(runs, lambda s: s.flows[1].congestion_events / max(s.flows[0].congestion_events, 1)))
        expected = _core.aimd_shares([(1, 0.5, 0.162, 1.0), (1, 0.5, rtt * 1e-3, events)])
        ratio = expected[0] / expected[1]
        good.append(abs(found / ratio - 1) < 0.5)
        report.notes.append(
            f"At {rate} Mbit/s, 162 and {rtt} ms: ratio of goodputs {found:.3f}; the matrix model with {events:.2f} back-offs of flow 2 for each of flow 1 gives {ratio:.3f}."
        )
    report.check("L38", all(good), "within 50 % of (T_2/T_1)^2 lambda_2/lambda_1 in both; " + " ".join(report.notes))
    return report


@experiment(
    "li2006/figure-8.27", "Two flows of different round-trip times, large buffers", "li2006/asymmetric", choices=CHOICES
)
def figure_8_27(lab: Lab) -> Report:
    """The buffer is 20 % of the longer round-trip time's product."""
    cells, small, report = all_cells(lab, LARGE), all_cells(lab, SMALL), Report()
    used = {n: of(cells, "goodput", n) / (sum(RATES) / 3 * 1448 / 1500) for n in SYSTEMS}
    least = min(used, key=lambda n: used[n])
    report.check(
        "L39",
        min(v for n, v in used.items() if n not in ("Standard TCP", "HighSpeed TCP")) > 0.95
        and least == "Standard TCP",
        f"share of the capacity: {listed(used, 3)}",
    )
    far = {
        key: of(c, "fairness", "Scalable TCP", lambda k, r: k == 250 and r < 162)
        for key, c in (("small", small), ("large", cells))
    }
    report.check("L40", far["large"] < 0.1, f"Scalable TCP at 250 Mbit/s: {listed(far, 3)}")
    quick = {n: of(cells, "fairness", n, lambda c, r: c > 10 and r < 162) for n in SYSTEMS}
    fairer = {n for n in NEW if quick[n] >= quick["Standard TCP"]}
    report.check(
        "L70", fairer <= {"H-TCP", "FAST"} and "H-TCP" in fairer, f"fairness at 100 and 250 Mbit/s: {listed(quick, 3)}"
    )
    report.draw = _lines(
        cells, "fairness", "Li 2006, figure 8.28: fairness, flow 1 has 162 ms, large buffers", log=True
    )
    return report


@experiment(
    "li2006/figure-8.31",
    "Friendliness to Standard TCP by capacity and round-trip time",
    "li2006/friendliness",
    choices=CHOICES,
)
def figure_8_31(lab: Lab) -> Report:
    """One flow of another algorithm beside one of Standard TCP."""
    cells, report = all_cells(lab, FRIENDLY, NEW), Report()
    by = {c: {n: _fair(cells, n, c, lambda _: True) for n in NEW if n != "FAST"} for c in RATES}
    falls = all(by[10][n] > by[250][n] for n in by[10])
    report.check("L41", falls, f"10 Mbit/s: {listed(by[10])}; 250 Mbit/s: {listed(by[250])}")
    slow = {n: _fair(cells, n, 10, lambda _: True) for n in ("Scalable TCP", "FAST")}
    report.check("L42", all(0.1 <= v <= 0.4 for v in slow.values()), f"10 Mbit/s: {listed(slow)}")
    share = {
        r: sum(run.summary.flows[0].goodput_bit_s for run in cells["FAST", 100, r])
        / sum(run.summary.flows[1].goodput_bit_s for run in cells["FAST", 100, r])
        for r in (82, 162)
    }
    report.check(
        "L43",
        min(share.values()) > 0.8,
        f"Standard over FAST at 100 Mbit/s, where the buffer holds alpha: {', '.join(f'{v:.2f} at {r} ms' for r, v in share.items())}",
    )
    rtt = lab.pick(42, 22)
    fast, scalable = (_fair(cells, n, 250, lambda r: r == rtt) for n in ("FAST", "Scalable TCP"))
    report.check("L44", fast < scalable, f"250 Mbit/s, {rtt} ms: FAST {fast:.3f}, Scalable TCP {scalable:.3f}")
    near = {n: _fair(cells, n, 250, lambda r: r == 22) for n in ("H-TCP", "HighSpeed TCP", "BicTCP")}
    far = {n: _fair(cells, n, 250, lambda r: r == 162) for n in near}
    report.check(
        "L45",
        near["H-TCP"] > 0.7 and far["H-TCP"] < min(far["HighSpeed TCP"], far["BicTCP"]),
        f"22 ms: {listed(near)}; 162 ms: {listed(far, 3)}",
    )
    report.check(
        "L46",
        far["BicTCP"] > far["HighSpeed TCP"] and near["BicTCP"] < near["HighSpeed TCP"],
        f"22 ms: {listed(near)}; 162 ms: {listed(far, 3)}",
    )
    report.draw = _lines(cells, "fairness", "Li 2006, figure 8.32: friendliness to Standard TCP", log=True)
    return report


@experiment(
    "li2006/figure-8.6",
    "Two flows at 100 Mbit/s, 82 ms by the size of the queue",
    "li2006/queue",
    choices=(*CHOICES, "the grid of queue sizes: 1, 2, 5, 10, 20, 30, 50, 80 and 100 %."),
)
def figure_8_6(lab: Lab) -> Report:
    """Queue sweep."""
    sizes = lab.pick((1, 2, 5, 10, 20, 30, 50, 80, 100), (2, 5, 20, 50, 100))
    names = tuple(SYSTEMS)
    points = [
        {"flow.cc": SYSTEMS[n], "path.buffer": f"{q}% bdp", "duration": lab.pick("600 s", "60 s")}
        for n in names
        for q in sizes
    ]
    flat = iter(lab.runs("li2006/queue", points, lab.pick(5, 1)))
    found = {(n, q): next(flat) for n in names for q in sizes}
    report = Report()

    def value(metric: str, name: str, size: int) -> float:
        return mean(estimate(found[name, size], METRICS[metric][1]))

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
    fair = {n: min(value("fairness", n, q) for q in sizes if q >= 5) for n in names}
    report.check(
        "L15",
        min(fair, key=lambda n: fair[n]) == "Scalable TCP" and sorted(fair.values())[1] > 0.6,
        f"least over the queue sizes: {listed(fair)}",
    )
    over = {n: [value("overhead", n, q) for q in sizes if q >= 5] for n in names}
    above = all(x > y for n in NEW if n != "FAST" for x, y in zip(over[n], over["Standard TCP"], strict=True))
    report.check(
        "L16",
        above and value("overhead", "FAST", 50) < value("overhead", "Standard TCP", 50),
        f"at 50 %, 1e-7/(Mbit/s): {listed({n: value('overhead', n, 50) for n in names})}",
    )

    def draw() -> "Figure":
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from elephan.plots import STYLE

        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(9, 3))
            for axes, metric in zip(figure.subplots(1, 3), ("goodput", "fairness", "overhead"), strict=True):
                for n in names:
                    axes.plot(sizes, [value(metric, n, q) for q in sizes], "o-", markersize=3, label=n)
                axes.set_xscale("log")
                axes.set_xlabel("queue (% of the product)")
                axes.set_title(f"{metric} ({METRICS[metric][0]})")
            figure.axes[0].legend(fontsize=7)
            figure.axes[2].set_yscale("symlog", linthresh=0.1)
            return figure

    report.draw = draw
    return report


@experiment(
    "li2006/figure-8.1",
    "Response functions, 250 Mbit/s, 162 ms, random loss",
    "li2006/response",
    choices=(*CHOICES[:1], "the grid of loss rates.", "initial slow start: as it comes; the first 60 s do not count."),
)
def figure_8_1(lab: Lab) -> Report:
    """Mean windows under random loss against theory, and at the switch of modes."""
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
        model = Model(SYSTEMS[name] if name != "HighSpeed TCP" else "hstcp")
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
        f"furthest from theory: {worst[0]} at p = {worst[1]:g}, {100 * off[worst]:+.0f} %",
    )
    report.reasons = {
        r.group: "random losses widen the sawtooth: time-driven growth (H-TCP) and searches (BIC) gain from long gaps, whole windows round up"
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
        "the test bed's window is averaged by its kernel's samples, and its rounding was not published in full"
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
    report.draw = lambda: plot_response(FIGURES["li-8.1"], list(FIGURES["li-8.1"].cc), points_of_figure, most_s=300)
    return report


@experiment("li2006/section-5.4", "Utilisation by buffer, loss and throughput of Standard TCP")
def section_5_4(lab: Lab) -> Report:
    """Formulas of chapter 5 and 6.2.1."""
    del lab
    report = Report()
    standard, scalable = Model("reno"), Model("scalable")

    def row(group: str, system: str, unit: str, metric: str, value: float, band: float = 0.02) -> None:
        for line in figures("li2006"):
            if line["scenario_id"] == "li-5.4-analytic" and metric in line["metric"] and line["system"] == system:
                report.rows.append(Row(group, system, unit, float(line["value"]), None, exactly(value), band))

    row("utilisation, no buffer", "Standard TCP", "%", "zero buffer", 100 * _core.utilisation_of(0.5, 0))
    row("utilisation, buffer of the product", "Standard TCP", "%", "buffer = BDP", 100 * _core.utilisation_of(0.5, 1))
    row("utilisation, no buffer", "Scalable TCP", "%", "zero buffer", 100 * _core.utilisation_of(0.875, 0))
    row(
        "throughput at p = 1e-7, 100 ms",
        "Standard TCP",
        "Mbit/s",
        "throughput at p=1e-7",
        _core.pftk_bit_s(1e-7, 0.1, 0.2, 1448, 1) / 1e6,
    )
    row("window for 10 Gbit/s, 100 ms", "Standard TCP", "packets", "window for 10 Gbit/s", 1e10 * 0.1 / 12e3)
    packets = 1 / standard.core.loss(1e10 * 0.1 / 12e3, 0.1)
    row("packets from loss to loss at 10 Gbit/s", "Standard TCP", "packets", "packets per congestion", packets, 0.1)
    row(
        "time from loss to loss at 10 Gbit/s",
        "Standard TCP",
        "min",
        "time between congestion",
        packets / (1e10 / 12e3) / 60,
        0.1,
    )
    del scalable
    return report


@experiment(
    "li2006/utilisation",
    "Utilisation of one flow by back-off and buffer (equation 5.6), and Standard TCP under 1e-7",
    "li2006/utilisation",
)
def utilisation(lab: Lab) -> Report:
    """Equation 5.6 against the simulator; capacity and round-trip time must not matter."""
    report = Report()
    cases = [
        (beta, gamma, rate, rtt)
        for beta in (0.5, 0.8)
        for gamma in lab.pick((0.02, 0.1, 0.2, 0.5, 1.0), (0.1, 0.5))
        for rate, rtt in lab.pick(((20, 50), (60, 100), (120, 25)), ((20, 50), (60, 25)))
    ]
    points = [
        {"flow.cc.beta": f"{beta}", "path.buffer": f"{100 * gamma:g}% bdp", "path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms", "tcp.initial_ssthresh": f"{max(int(rate * rtt / 24), 2)}"}
        for beta, gamma, rate, rtt in cases
    ]  # fmt: skip
    off = []
    for (beta, gamma, rate, rtt), runs in zip(cases, lab.runs("li2006/utilisation", points), strict=True):
        found, theory = estimate(runs, lambda s: s.utilisation), _core.utilisation_of(beta, gamma)
        off.append(abs(mean(found) / theory - 1))
        report.rows.append(
            Row(
                f"utilisation, beta {beta:g}, buffer {100 * gamma:g} %, theory",
                f"{rate} Mbit/s, {rtt} ms",
                "share",
                theory,
                None,
                found,
                0.06,
            )
        )
    report.check("L06", max(off) < 0.06, f"{len(off)} points, furthest from equation 5.6 by {100 * max(off):.1f} %")
    lossy = lab.runs(
        "li2006/response",
        [
            {
                "flow.cc": "reno",
                "path.rate": "1 Gbit/s",
                "path.rtt": "100 ms",
                "path.loss.probability": "1e-6",
                "duration": lab.pick("6000 s", "600 s"),
            }
        ],
        lab.pick(5, 2),
    )[0]
    found_rate = mean(estimate(lossy, lambda s: s.goodput_bit_s / 1e6))
    limit = _core.pftk_bit_s(1e-6, 0.1, 0.2, 1448, 1) / 1e6
    report.check(
        "L07",
        found_rate < 1.2 * limit,
        f"at 1e-6, where the limit is {limit:.0f} Mbit/s and losses are frequent enough to be measured: {found_rate:.0f} Mbit/s",
    )
    return report


# What the thesis leaves open: the algorithm that it touches, and another value for it.
ALTERNATIVES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("initial window 10 in place of 2", "H-TCP", "htcp", {"tcp.initial_window": "10"}),
    ("no quick ACKs in place of 16", "Scalable TCP", "scalable", {"tcp.delayed_ack.quick": "0"}),
    ("windows rounded down in place of up", "Scalable TCP", "scalable", {"tcp.quantisation": "round_down"}),
    ("second start within 40 s in place of 20 s", "BicTCP", "bic", {"flow.1.start": '{ uniform = ["0 s", "40 s"] }'}),
    ("S_max 16 in place of 32", "BicTCP", "bic", {"flow.cc": '{ name = "bic", s_max = 16 }'}),
    ("increase scaled by T_min in seconds", "H-TCP", "htcp", {"flow.cc": '{ name = "htcp", rtt_scaling = "seconds" }'}),
    ("continuous a(w) in place of the table", "HighSpeed TCP", "hstcp", {"flow.cc": "hstcp"}),
    ("FAST's gamma 0.25 in place of 0.5", "FAST", "fast", {"flow.cc": '{ name = "fast", gamma = 0.25 }'}),
)


@experiment(
    "li2006/sensitivity", "What the unpublished choices change, 250 Mbit/s, 82 ms", "li2006/symmetric", choices=CHOICES
)
def sensitivity(lab: Lab) -> Report:
    """Each choice changed alone, on the point of Tables 8.1 to 8.4."""
    report, repeats = Report(), _repeats(lab)
    lines = [
        "| choice | system | goodput, Mbit/s | fairness | convergence, s | overhead, 1e-7/(Mbit/s) |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for what, name, cc, change in ALTERNATIVES:
        base = _symmetric(SYSTEMS[name], 250, 82) | {"duration": _duration(lab, cc)}
        pair = lab.runs("li2006/symmetric", [base, base | change], repeats)
        cells = []
        for metric in ("goodput", "fairness", "convergence", "overhead"):
            before, after = (estimate(runs, METRICS[metric][1]) for runs in pair)
            cells.append(f"{before.text(2)} → {after.text(2)}")
        lines.append(f"| {what} | {name} | {' | '.join(cells)} |")
    report.notes.append("\n".join(lines))
    return report
