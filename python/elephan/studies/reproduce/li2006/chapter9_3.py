"""Li 2006, section 9.3, Internet paths as models."""

from functools import partial

from elephan import _core
from elephan.api.run import Run
from elephan.studies.judge import Arm, Time
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares, reached
from elephan.studies.reproduce.li2006.systems import NEW, SYSTEMS, published

STANDARD = "Standard TCP"
ATLANTIC, AMERICA, EUROPE = "a trans-Atlantic path", "that and the width of America", "Europe"
PATHS = {ATLANTIC: "120 ms", AMERICA: "180 ms", EUROPE: "25 ms"}
# Loss rates of the models, one set each.
LOSSES = {f"a loss rate of {loss}": loss for loss in ("1e-7", "1e-6", "1e-5")}
RATE_BIT_S = 622e6
ORACLE = "The paths themselves are not published, so no other engine could say more of them."


def _arm(chosen: str, at: Point) -> Arm:
    loss = {**LOSSES, "more losses": "1e-5"}.get(chosen, "1e-6")
    settings = {"flow.cc": SYSTEMS[at["system"]], "path.rtt": PATHS[at["path"]], "path.loss.probability": loss}
    return Arm("li2006/internet").set(settings)


def _goodput(run: Run) -> float:
    return run.summary.flows[0].goodput_bit_s / 1e6


def opened(run: Run) -> Time:
    """When the window was first as large as the bandwidth-delay product of the path, if it was."""
    return reached(RATE_BIT_S * _core.seconds(run.scenario.document["path"]["rtt"]) / 12e3, run)


def overhead(run: Run) -> float:
    """Retransmitted bytes over goodput. A run without retransmissions counts as one with a single packet."""
    flow = run.summary.flows[0]
    return max(flow.retransmitted_bytes, 1500) / flow.goodput_bit_s


# The thesis has 28 measurements at least.
READINGS = {"goodput": Reading(_goodput, "Mbit/s")}
models = partial(Chapter, arm=_arm, readings=READINGS, looks=(5, 10, 20), shared={"oracle": ORACLE})


@declares(
    models,
    "li2006",
    "figure-9.27",
    "Models of Internet paths (figures 9.27 to 9.39)",
    "internet",
    choices=(
        "all properties of the paths: round-trip times, bottleneck, losses and traffic. These are models, with web traffic of 400 users and "
        "three round-trip times; a claim is tested with each of three loss rates.",
        "overhead: a run without retransmissions counts as one with a single packet.",
        "bands: 10 % for a measured number, beside a printed range where there is one.",
        "budget: at most 7.5 CPU minutes at the first look.",
    ),
)
def figure_9_27(report: Chapter) -> None:
    """Five minutes without slow start."""
    losses = Sets(report.lab.pick(tuple(LOSSES), tuple(LOSSES)[1:2]))
    paths = [(n, path) for path in PATHS for n in NEW if (n, path) != ("Scalable TCP", EUROPE)]
    report.claim(
        "L66",
        "All new algorithms have a higher goodput than Standard TCP, except Scalable TCP on a path within Europe (sections 9.3.5 and "
        "9.3.6).",
        "five algorithms on models of three paths, without the exception",
        "goodput less that of Standard TCP",
        "no difference (0)",
        Points("{a}, {path}", "goodput, less").at({"a path": paths}, b=STANDARD),
        tried="three round-trip times and three loss rates, of which none is printed.",
        means="Whether a new algorithm is ahead depends on the path's losses and round-trip time, so print holds for its paths only.",
        sets=losses,
    )
    report.untestable(
        "L67",
        "which algorithm is first on which path: the round-trip times, bottlenecks and loads of the paths are not published",
    )
    share = published("Sec 9.3.4", "share of 5 min test")
    slow = {"system": ("HighSpeed TCP", "Scalable TCP"), "path": AMERICA}
    report.claim(
        "L68",
        "Without slow start HighSpeed TCP and Scalable TCP need half of a test of five minutes to open their window enough to fill "
        "the path (section 9.3.4, figure 9.34).",
        "both algorithms on the model of a path across the Atlantic and America",
        "median time until the window is the path's bandwidth-delay product",
        f"nearer to the printed {share:g} % of 300 s than to none or all of it",
        Points("{system}", opened, how="median", unit="s", above=75, below=225).at(slow),
        tried="three loss rates, of which none is printed.",
        means="The time depends on the losses of the path, which may keep the window from ever filling it.",
        sets=losses,
        looks=(10, 20),
    )
    report.untestable("L69", "the ranking by stability and overhead on each real path: these paths are not published")
    report.notes.append(
        "The goodputs of 100 and 200 Mbit/s to Stanford and of 160 Mbit/s to RAL (sections 9.3.2 and 9.3.5) are those of unpublished paths, and "
        "have no row."
    )
    # The printed ratios of goodput and overhead, on one model of both paths to America.
    fast = published("Sec 9.3.4", "median goodput ratio", system="FAST vs Standard TCP")
    low, high = (
        published(locator, metric, system="HighSpeed TCP vs Standard TCP")
        for locator, metric in (("Sec 9.3.2", "goodput ratio"), ("Sec 9.3.4", "goodput ratio (worst"))
    )
    both = f"HighSpeed TCP (Stanford {low:g}, LBL {high:g})"
    rows = (("FAST (LBL)", "FAST", fast, None), (both, "HighSpeed TCP", (low + high) / 2, (high - low) / 2))
    report.rows(
        "goodput over that of Standard TCP, a path across the Atlantic and America",
        "1",
        Points("{name}", "goodput, over").at({"name a printed error": rows}, b=STANDARD, path=AMERICA),
        variants={"more losses": "the loss rate is 1e-5, not 1e-6"},
    )
    decade = published("Sec 9.3.2", "overhead ratio", system="New-TCP vs Standard TCP")
    report.rows(
        "overhead over that of Standard TCP, the same path",
        "decades",
        Points("{a}", overhead, how="decades").at(a=NEW, b=STANDARD, path=AMERICA, printed=decade),
    )
