"""Li 2006, section 9.3, Internet paths as models."""

import math

import polars as pl

from elephan import _core
from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Place, Quantity, Time
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.systems import NEW, SYSTEMS

STANDARD = "Standard TCP"
ATLANTIC, AMERICA, EUROPE = "a trans-Atlantic path", "that and the width of America", "Europe"
PATHS = {ATLANTIC: "120 ms", AMERICA: "180 ms", EUROPE: "25 ms"}
# Loss rates of the models, one set each.
LOSSES = ("1e-7", "1e-6", "1e-5")
# The thesis has 28 measurements at least.
LOOKS = (5, 10, 20)
RATE_BIT_S = 622e6
ORACLE = "The paths themselves are not published, so no other engine could say more of them."


def _arm(name: str, path: str, loss: str = "1e-6") -> Arm:
    return Arm("li2006/internet").set(
        {"flow.cc": SYSTEMS[name], "path.rtt": PATHS[path], "path.loss.probability": loss}
    )


def _goodput(run: Run) -> float:
    return run.summary.flows[0].goodput_bit_s / 1e6


def opened(run: Run) -> Time:
    """When the window was first as large as the bandwidth-delay product of the path, if it was."""
    rtt_s = _core.seconds(run.scenario.document["path"]["rtt"])
    frame = run.flows.filter(pl.col("flow") == 0)
    large = frame.filter(pl.col("cwnd_segments") >= RATE_BIT_S * rtt_s / 12e3)
    return Time(float(large["time_s"][0]), seen=True) if len(large) else Time(run.summary.to_s, seen=False)


def decades(new: Run, standard: Run) -> float:
    """Overhead of a flow over that of another one, as a power of ten. A run without retransmissions counts as one with a single packet."""

    def overhead(run: Run) -> float:
        flow = run.summary.flows[0]
        return max(flow.retransmitted_bytes, 1500) / flow.goodput_bit_s

    return math.log10(overhead(new) / overhead(standard))


@experiment(
    "li2006/figure-9.27",
    "Models of Internet paths (figures 9.27 to 9.39)",
    "li2006/internet",
    choices=(
        "all properties of the paths: round-trip times, bottleneck, losses and traffic. These are models, with web traffic of 400 users and "
        "three round-trip times; a claim is tested with each of three loss rates.",
        "overhead: a run without retransmissions counts as one with a single packet.",
        "bands: 10 % for a measured number, beside a printed range where there is one.",
        "budget: at most 7.5 CPU minutes at the first look.",
    ),
)
def figure_9_27(lab: Lab) -> Report:
    """Five minutes without slow start."""
    report, losses = Report(lab), lab.pick(LOSSES, LOSSES[1:2])
    report.test(
        Claim(
            "L66",
            sentence="All new algorithms have a higher goodput than Standard TCP, except Scalable TCP on a path within Europe (sections 9.3.5 and "
            "9.3.6).",
            population="five algorithms on models of three paths, without the exception",
            statistic="goodput less that of Standard TCP",
            bound="no difference (0)",
            tried="three round-trip times and three loss rates, of which none is printed.",
            oracle=ORACLE,
            means="Whether a new algorithm is ahead depends on the path's losses and round-trip time, so print holds for its paths only.",
        ),
        {
            f"a loss rate of {loss}": [
                Place(
                    f"{n}, {path}",
                    (_arm(n, path, loss), _arm(STANDARD, path, loss)),
                    lambda new, standard: _goodput(new) - _goodput(standard),
                    above=0,
                    unit="Mbit/s",
                )
                for path in PATHS
                for n in NEW
                if (n, path) != ("Scalable TCP", EUROPE)
            ]
            for loss in losses
        },
        looks=LOOKS,
    )
    report.untestable(
        "L67",
        "which algorithm is first on which path: the round-trip times, bottlenecks and loads of the paths are not published",
    )
    share, _ = printed("li2006", "Sec 9.3.4", "share of 5 min test")["HSTCP, Scalable TCP"]
    report.test(
        Claim(
            "L68",
            sentence="Without slow start HighSpeed TCP and Scalable TCP need half of a test of five minutes to open their window enough to fill "
            "the path (section 9.3.4, figure 9.34).",
            population="both algorithms on the model of a path across the Atlantic and America",
            statistic="median time until the window is the path's bandwidth-delay product",
            bound=f"nearer to the printed {share:g} % of 300 s than to none or all of it",
            tried="three loss rates, of which none is printed.",
            oracle=ORACLE,
            means="The time depends on the losses of the path, which may keep the window from ever filling it.",
        ),
        {
            f"a loss rate of {loss}": [
                Place(n, (_arm(n, AMERICA, loss),), opened, above=75, below=225, unit="s", statistic="median")
                for n in ("HighSpeed TCP", "Scalable TCP")
            ]
            for loss in losses
        },
        looks=(10, 20),
    )
    report.untestable("L69", "the ranking by stability and overhead on each real path: these paths are not published")
    _ratios(report)
    report.notes.append(
        "The goodputs of 100 and 200 Mbit/s to Stanford and of 160 Mbit/s to RAL (sections 9.3.2 and 9.3.5) are those of unpublished paths, and "
        "have no row."
    )
    return report


def _ratios(report: Report) -> None:
    """The printed ratios of goodput and overhead, on one model of both paths to America."""

    def over(new: Run, standard: Run) -> float:
        return _goodput(new) / _goodput(standard)

    def published(locator: str, metric: str, system: str) -> float:
        return printed("li2006", locator, metric)[system][0]

    fast = published("Sec 9.3.4", "median goodput ratio", "FAST vs Standard TCP")
    low, high = (
        published(locator, metric, "HighSpeed TCP vs Standard TCP")
        for locator, metric in (("Sec 9.3.2", "goodput ratio"), ("Sec 9.3.4", "goodput ratio (worst"))
    )

    def rows(loss: str) -> list[Quantity]:
        def arms(name: str) -> tuple[Arm, Arm]:
            return _arm(name, AMERICA, loss), _arm(STANDARD, AMERICA, loss)

        return [
            Quantity("FAST (LBL)", fast, None, arms("FAST"), over),
            Quantity(
                f"HighSpeed TCP (Stanford {low:g}, LBL {high:g})",
                (low + high) / 2,
                (high - low) / 2,
                arms("HighSpeed TCP"),
                over,
            ),
        ]

    group = "goodput over that of Standard TCP, a path across the Atlantic and America"
    report.compare(group, "1", rows("1e-6"), looks=LOOKS)
    report.compare(
        f"{group}, more losses",
        "1",
        rows("1e-5"),
        looks=LOOKS,
        cause_of=group,
        changed="the loss rate is 1e-5, not 1e-6",
    )
    decade = published("Sec 9.3.2", "overhead ratio", "New-TCP vs Standard TCP")
    report.compare(
        "overhead over that of Standard TCP, the same path",
        "decades",
        [Quantity(n, decade, None, (_arm(n, AMERICA), _arm(STANDARD, AMERICA)), decades) for n in NEW],
        looks=LOOKS,
    )
