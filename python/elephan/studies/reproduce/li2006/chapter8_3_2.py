"""Li 2006, sections 8.3.2 and 8.3.3: flows with different round-trip times, and flows beside Standard TCP."""

from collections.abc import Sequence

from elephan import _core
from elephan.studies.reproduce.lab import Lab, Report, estimate, experiment, mean
from elephan.studies.reproduce.li2006.cells import (
    CHOICES,
    LATE,
    RATES,
    SCENARIOS,
    Cells,
    all_cells,
    asymmetric,
    at,
    by_system,
    lines,
    of,
    settled,
    timing,
)
from elephan.studies.reproduce.li2006.systems import NEW, SYSTEMS, listed

_, SMALL, LARGE, FRIENDLY = SCENARIOS


def _late(cells: Cells, name: str, rates: Sequence[int]) -> float:
    """The fairness of an algorithm with unequal round-trip times, in the second half of the tests."""
    return settled(cells, name, lambda c, r: c in rates and r < 162)


@experiment(
    "li2006/figure-8.22", "Two flows of different round-trip times, small buffers", "li2006/asymmetric", choices=CHOICES
)
def figure_8_22(lab: Lab) -> Report:
    """Flow 1 has 162 ms, flow 2 less. The buffer is 20 % of the bandwidth-delay product of the shorter path."""
    cells, report = all_cells(lab, SMALL), Report()
    goodput = by_system(cells, "goodput", lambda _, r: r < 162)
    best = sorted((n for n in goodput if n != "FAST"), key=lambda n: -goodput[n])[:2]
    report.check("L33", set(best) == {"Scalable TCP", "BicTCP"}, f"Mbit/s: {listed(goodput, 1)}")
    slow, quick = ({n: _late(cells, n, rates) for n in SYSTEMS} for rates in ((10,), (100, 250)))
    told = f"at 100 and 250 Mbit/s, {LATE}: {listed(quick, 3)}"
    spread = [max(v.values()) / max(min(v.values()), 1e-9) for v in (slow, quick)]
    report.check(
        "L34",
        spread[1] > 3 * spread[0],
        f"largest over smallest fairness: {spread[0]:.1f} at 10 Mbit/s, {spread[1]:.1f} at 100 and 250; {told}",
    )
    fairer = [n for n in NEW if quick[n] > quick["Standard TCP"]]
    report.check("L35", fairer == ["H-TCP"], f"fairer than Standard TCP: {', '.join(fairer) or 'none'}; {told}")
    ratio = max(
        settled(cells, "Standard TCP", at(c, r)) / max(settled(cells, "Scalable TCP", at(c, r)), 1e-9)
        for c in (100, 250) for r in {r for *_, r in cells if r < 162}
    )  # fmt: skip
    report.check("L36", ratio >= 30, f"Standard over Scalable TCP's fairness, {LATE}, at most {ratio:.0f}")
    locked = {n: quick[n] for n in ("Scalable TCP", "BicTCP", "HighSpeed TCP", "FAST")}
    report.check(
        "L37",
        max(locked.values()) < 0.15,
        f"fairness at 100 and 250 Mbit/s, {LATE}: {listed(locked, 3)}",
    )
    report.draw = lines(cells, "fairness", "Li 2006, figure 8.25: fairness, flow 1 has 162 ms, small buffers", log=True)
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
        asymmetric(large=False)("reno", c, r)
        | timing(lab, "Standard TCP", c, 162)
        | {"duration": lab.pick("3600 s", "600 s")}
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
    """The buffer is 20 % of the bandwidth-delay product of the longer path."""
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
        f"{name}, {key}": _late(c, name, (250,))
        for name in ("Scalable TCP", "Standard TCP")
        for key, c in (("small", small), ("large", cells))
    }
    # If the larger buffer cured it, it would be at least as fair as Standard TCP with the same buffers.
    report.check(
        "L40",
        far["Scalable TCP, large"] < far["Standard TCP, large"],
        f"at 250 Mbit/s, {LATE}: {listed(far, 3)}",
    )
    quick = {n: _late(cells, n, (100, 250)) for n in SYSTEMS}
    fairer = {n for n in NEW if quick[n] >= quick["Standard TCP"]}
    report.check(
        "L70",
        fairer <= {"H-TCP", "FAST"} and "H-TCP" in fairer,
        f"fairness at 100 and 250 Mbit/s, {LATE}: {listed(quick, 3)}",
    )
    report.draw = lines(cells, "fairness", "Li 2006, figure 8.28: fairness, flow 1 has 162 ms, large buffers", log=True)
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
    by = {c: {n: settled(cells, n, at(c, None)) for n in NEW if n != "FAST"} for c in RATES}
    falls = all(by[10][n] > by[250][n] for n in by[10])
    report.check("L41", falls, f"10 Mbit/s: {listed(by[10])}; 250 Mbit/s: {listed(by[250])}")
    slow = {n: settled(cells, n, at(10, None)) for n in ("Scalable TCP", "FAST")}
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
    fast, scalable = (settled(cells, n, at(250, rtt)) for n in ("FAST", "Scalable TCP"))
    report.check("L44", fast < scalable, f"250 Mbit/s, {rtt} ms: FAST {fast:.3f}, Scalable TCP {scalable:.3f}")
    near = {n: settled(cells, n, at(250, 22)) for n in ("H-TCP", "HighSpeed TCP", "BicTCP")}
    far = {n: settled(cells, n, at(250, 162)) for n in near}
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
    report.draw = lines(cells, "fairness", "Li 2006, figure 8.32: friendliness to Standard TCP", log=True)
    return report
