"""Cells of chapter 8: two flows on a path with a given capacity and round-trip time, as arms; and what is read from them."""

from functools import cache

import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Time
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, SETS, cc_of
from elephan.studies.theory import SETTLED_S, epoch_s

RATES, RTTS, LONG_MS = (10, 100, 250), (16, 22, 42, 82, 162, 324), 162
# What remains of the capacity for application bytes.
PAYLOAD = 1448 / 1500
# The numbers of repeats of a cell: the thesis had five.
REPEATS = (5, 10)
# The scenarios, as the published numbers name them.
SYMMETRIC, SMALL, LARGE, FRIENDLY = (
    "li-8.3.1-symmetric",
    "li-8.3.2-asym-small",
    "li-8.3.2-asym-large",
    "li-8.3.3-friendliness",
)
# A FAST flow that is alone loses nothing after its start, so it has congestion epochs only there.
EARLY = ("0 s", "20 s")
SETTLED = ("100 s", "120 s")


def _timing(lab: Lab, first: str, second: str, rate: int, rtt: int) -> dict[str, str]:
    """The length of a test, and the start of its second flow, which meets any phase of an epoch of the first (section 8.1.3).

    A test takes at least ten minutes, and with Standard TCP, whose epochs are long, ten epochs, up to an hour. Beside
    another algorithm that causes losses its epochs are short, and such a test ends ten minutes after the range of starts begins.
    """
    if first == "FAST":
        return {"duration": lab.pick("600 s", "150 s"), "flow.1.start": _uniform(*lab.pick(EARLY, ("0 s", "10 s")))}
    packets_s, rtt_s = rate * 1e6 / 12e3, rtt * 1e-3
    epoch = epoch_s(cc_of(first), packets_s, rtt_s, 0.2 * packets_s * rtt_s)
    begin, last = SETTLED_S, SETTLED_S + epoch
    if lab.quick:
        begin, last = 30.0, 30.0 + min(epoch, 30.0)
    duration = 600.0
    if first == "Standard TCP":
        epochs = 10 if second in ("Standard TCP", "FAST") else 1
        duration = min(max(600.0, begin + epochs * epoch + (0 if epochs > 1 else 500.0)), 3600.0)
    return {
        "duration": f"{lab.pick(duration, 150.0):.0f} s",
        "flow.1.start": _uniform(f"{begin:g} s", f"{last:.3f} s"),
    }


def _uniform(earliest: str, latest: str) -> str:
    return f'{{ uniform = ["{earliest}", "{latest}"] }}'


def cell(lab: Lab, scenario: str, system: str, rate: int, rtt: int, chosen: str = AS_PRINTED) -> Arm:
    """Two flows of an algorithm, or one beside Standard TCP if `scenario` is `FRIENDLY`, at `rate` Mbit/s and `rtt` ms.

    With unequal round-trip times the first flow has 162 ms; the second has `rtt`, and the buffer is that of the
    shorter path (`SMALL`) or the longer (`LARGE`). With 162 ms both are the symmetric cell.
    """
    cc, tcp = SETS[chosen].cc[system], SETS[chosen].tcp
    path = {"path.rate": f"{rate} Mbit/s", "path.rtt": f"{rtt} ms", **tcp}
    if scenario == FRIENDLY and system != "Standard TCP":
        arm = Arm("li2006/friendliness").set({"flow.1.cc": cc, **path})
        return arm.set(_timing(lab, "Standard TCP", system, rate, rtt))
    if scenario in (SMALL, LARGE) and rtt != LONG_MS:
        arm = Arm("li2006/asymmetric").set({"flow.cc": cc, **path, "flow.1.rtt": f"{rtt} ms"})
        if scenario == LARGE:
            arm = arm.set({"path.rtt": f"{LONG_MS} ms"})
        return arm.set(_timing(lab, system, system, rate, LONG_MS))
    arm = Arm("li2006/symmetric").set({"flow.cc": cc, **path})
    return arm.set(_timing(lab, system, system, rate, rtt))


def rtts(lab: Lab, scenario: str) -> tuple[int, ...]:
    """The round-trip times of a scenario, in ms: those of the second flow where they differ."""
    return lab.pick(tuple(r for r in RTTS if r <= LONG_MS or scenario in (SYMMETRIC, FRIENDLY)), (22, 82, 162))
