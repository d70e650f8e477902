"""Li 2006, section 8.3.1: two flows of one algorithm and one round-trip time."""

import math

from elephan.base.numbers import significant
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.li2006.cells import (
    CHOICES,
    LATE,
    SCENARIOS,
    all_cells,
    at,
    by_system,
    grid,
    late_fairness,
    lines,
    of,
    repeats_of,
    settled,
    symmetric,
    timing,
)
from elephan.studies.reproduce.li2006.systems import SYSTEMS, listed

SYM = next(iter(SCENARIOS))


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
    report.draw = lines(cells, "goodput", "Li 2006, figure 8.10: aggregate goodput of two flows")
    return report


@experiment(
    "li2006/figure-8.12", "Fairness of two flows by capacity and round-trip time", "li2006/symmetric", choices=CHOICES
)
def figure_8_12(lab: Lab) -> Report:
    """Symmetric grid: fairness."""
    cells, report = all_cells(lab, SYM), Report()
    names = dict.fromkeys(name for name, *_ in cells)
    long = {n: settled(cells, n, lambda _, rtt: rtt >= 162) for n in names}
    report.check(
        "L20", min(long, key=lambda n: long[n]) == "Scalable TCP", f"{LATE}, at 162 ms and more: {listed(long)}"
    )
    slow = settled(cells, "Scalable TCP", lambda c, r: c == 10 and r in (22, 42))
    report.check("L21", slow < 0.8, f"{LATE}, Scalable TCP at 10 Mbit/s, 22 and 42 ms: {slow:.2f}")
    bic = settled(cells, "BicTCP", lambda c, r: c == 10 and r >= 162)
    report.check("L23", bic < 0.8, f"{LATE}, BicTCP at 10 Mbit/s, 162 ms and more: {bic:.2f}")
    htcp = {key: settled(cells, "H-TCP", at(*key)) for key in dict.fromkeys(k[1:] for k in cells)}
    least = min(htcp, key=lambda k: htcp[k])
    means = {n: settled(cells, n) for n in names}
    report.check(
        "L24",
        htcp[least] > 0.8 and means["H-TCP"] > means["Standard TCP"],
        f"{LATE}, H-TCP's least: {htcp[least]:.2f} at {least[0]} Mbit/s, {least[1]} ms; means: {listed(means)}",
    )
    steps = grid(
        lab, "li2006/symmetric", [("HighSpeed TCP", 100, 42), ("HighSpeed TCP", 250, 42)], symmetric, repeats_of(lab)
    )
    smooth = lab.runs(
        "li2006/symmetric",
        [symmetric("hstcp", r, 42) | timing(lab, "HighSpeed TCP", r, 42) for r in (100, 250)],
        repeats_of(lab),
    )
    table = settled(steps, "HighSpeed TCP")
    continuous = sum(late_fairness(run) for runs in smooth for run in runs) / (2 * repeats_of(lab))
    report.check(
        "L22",
        table < continuous - 0.05,
        f"{LATE}, 42 ms, 100 and 250 Mbit/s: {table:.2f} by the table, {continuous:.2f} by the continuous functions",
    )
    report.draw = lines(cells, "fairness", "Li 2006, figure 8.12: fairness of two flows")
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
        f"{c} Mbit/s {r} ms: buffer {'holds' if e else 'is below'} both alphas, overhead {significant(x, 2)}"
        for c, r, e, _, x in rule
    )
    report.check("L26", fits, text)
    long, short = (of(cells, "overhead", "H-TCP", at(None, k)) for k in (lab.pick(324, 162), 22))
    report.check(
        "L27",
        long > of(cells, "overhead", "Scalable TCP", lambda c, r: r == lab.pick(324, 162) and c < 250),
        f"H-TCP at the longest {long:.2f}, at 22 ms {short:.2f}; Scalable TCP at 10 and 100 Mbit/s, longest: {of(cells, 'overhead', 'Scalable TCP', lambda c, r: r == lab.pick(324, 162) and c < 250):.2f}",
    )
    report.draw = lines(cells, "overhead", "Li 2006, figure 8.18: overhead of two flows", log=True)
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
    best = sorted(SYSTEMS, key=lambda n: -(of(cells, "goodput", n) / 120 + settled(cells, n)))[:4]
    report.check(
        "L71",
        {"H-TCP", "BicTCP"} <= set(best),
        f"best by goodput and fairness together on this grid: {', '.join(best)}; see also `elephan recommend`",
    )
    report.draw = lines(cells, "convergence", "Li 2006, figure 8.21: 80 % convergence time")
    return report
