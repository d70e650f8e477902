"""Li 2006, section 9.3, Internet paths as models, and appendix A, hardware."""

import math

import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Place, Quantity, Time
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.systems import NEW, SYSTEMS, listed

STANDARD = "Standard TCP"
ATLANTIC, AMERICA, EUROPE = "a trans-Atlantic path", "that and the width of America", "Europe"
PATHS = {ATLANTIC: ("120 ms", "1e-6"), AMERICA: ("180 ms", "1e-6"), EUROPE: ("25 ms", "1e-5")}
# The thesis has 28 measurements at least.
LOOKS = (5, 10, 20)


def _arm(name: str, path: str) -> Arm:
    rtt, loss = PATHS[path]
    return Arm("li2006/internet").set({"flow.cc": SYSTEMS[name], "path.rtt": rtt, "path.loss.probability": loss})


def _goodput(run: Run) -> float:
    return run.summary.flows[0].goodput_bit_s / 1e6


def _opened(run: Run) -> Time:
    """When the window was first at 80 % of its largest value."""
    frame = run.flows.filter(pl.col("flow") == 0)
    large = frame.filter(pl.col("cwnd_segments") > 0.8 * float(frame["cwnd_segments"].to_numpy().max()))
    return Time(float(large["time_s"][0]), seen=True)


def _overhead(run: Run) -> float:
    """Bytes retransmitted for each byte of goodput, of the flow."""
    flow = run.summary.flows[0]
    return flow.retransmitted_bytes / flow.goodput_bit_s


@experiment(
    "li2006/figure-9.27",
    "Models of Internet paths (figures 9.27 to 9.39)",
    "li2006/internet",
    choices=(
        "all properties of the paths: round-trip times, bottleneck, losses and traffic. These are models, with web traffic of 400 users and "
        "three combinations of round-trip time and loss.",
    ),
)
def figure_9_27(lab: Lab) -> Report:
    """Five minutes without slow start."""
    report = Report(lab)
    report.test(
        Claim(
            "L66",
            sentence="All new algorithms have a higher goodput than Standard TCP, except Scalable TCP on a path within Europe (sections 9.3.5 and "
            "9.3.6).",
            population="five algorithms on models of three paths, without the exception",
            statistic="goodput less that of Standard TCP",
            bound="no difference (0)",
        ),
        [
            Place(
                f"{n}, {path}",
                (_arm(n, path), _arm(STANDARD, path)),
                lambda new, standard: _goodput(new) - _goodput(standard),
                above=0,
                unit="Mbit/s",
            )
            for path in PATHS
            for n in NEW
            if (n, path) != ("Scalable TCP", EUROPE)
        ],
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
            sentence="Without slow start HighSpeed TCP and Scalable TCP need half of a test of five minutes to open their window (section "
            "9.3.4, figure 9.34).",
            population="both algorithms on the model of a path across the Atlantic and America",
            statistic="median time until the window is at 80 % of its largest value",
            bound=f"nearer to the printed {share:g} % of 300 s than to none or all of it",
        ),
        [
            Place(n, (_arm(n, AMERICA),), _opened, above=75, below=225, unit="s", statistic="median")
            for n in ("HighSpeed TCP", "Scalable TCP")
        ],
        looks=(10, 20),
    )
    report.untestable("L69", "the ranking by stability and overhead on each real path: these paths are not published")

    def over(new: Run, standard: Run) -> float:
        return _goodput(new) / _goodput(standard)

    def decades(new: Run, standard: Run) -> float | None:
        retransmits = _overhead(new) and _overhead(standard)
        return math.log10(_overhead(new) / _overhead(standard)) if retransmits else None

    def published(locator: str, metric: str, system: str) -> float:
        return printed("li2006", locator, metric)[system][0]

    high, fast, standard = _arm("HighSpeed TCP", AMERICA), _arm("FAST", AMERICA), _arm(STANDARD, AMERICA)
    report.compare(
        "goodput over that of Standard TCP, Atlantic and America",
        "1",
        [
            Quantity(
                "FAST, LBL",
                published("Sec 9.3.4", "median goodput ratio", "FAST vs Standard TCP"),
                None,
                (fast, standard),
                over,
            ),
            Quantity(
                "HighSpeed TCP, LBL",
                published("Sec 9.3.4", "goodput ratio (worst", "HighSpeed TCP vs Standard TCP"),
                None,
                (high, standard),
                over,
            ),
            Quantity(
                "HighSpeed TCP, Stanford",
                published("Sec 9.3.2", "goodput ratio", "HighSpeed TCP vs Standard TCP"),
                None,
                (high, standard),
                over,
            ),
        ],
        looks=LOOKS,
    )
    decade = published("Sec 9.3.2", "overhead ratio", "New-TCP vs Standard TCP")
    report.compare(
        "overhead over that of Standard TCP, Stanford",
        "decades",
        [Quantity(n, decade, None, (_arm(n, AMERICA), standard), decades) for n in NEW],
        looks=LOOKS,
    )
    stability = {
        n: sum(run.summary.flows[0].stability or 0.0 for run in runs) / len(runs)
        for n, runs in zip(SYSTEMS, lab.runs([_arm(n, ATLANTIC) for n in SYSTEMS], lab.pick(LOOKS[0], 2)), strict=True)
    }
    report.notes.append(f"Deviation over mean of the goodput on the model of {ATLANTIC}: {listed(stability)}.")
    return report


@experiment("li2006/appendix-a", "Disks and network cards")
def appendix_a(lab: Lab) -> Report:
    """Hardware."""
    report = Report(lab)
    report.untestable("L72", "a benchmark of disks")
    report.untestable("L73", "a benchmark of network cards")
    return report
