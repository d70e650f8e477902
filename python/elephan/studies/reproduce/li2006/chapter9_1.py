"""Li 2006, section 9.1: MB-NG and DataTAG."""

from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from elephan.api.run import Run
from elephan.studies.judge import Arm
from elephan.studies.reproduce.declare import Chapter, Point, Points, Reading, Sets, declares
from elephan.studies.reproduce.lab import ONCE
from elephan.studies.reproduce.li2006.systems import SYSTEMS, published

STANDARD, HIGH, SCALABLE, H_TCP = FOUR = ("Standard TCP", "HighSpeed TCP", "Scalable TCP", "H-TCP")
NEW = FOUR[1:]
DATATAG = Arm("li2006/testbed")
# Table B.2: 2.0 GHz instead of 2.2.
SLOWER = {"host.data": "4 us", "host.ack": "4 us", "host.txqueuelen": "2000"}
MB_NG = DATATAG.set({"path.rtt": "6.2 ms", "path.buffer": "1000 packets", **SLOWER})
NETWORKS = {"MB-NG": MB_NG, "DataTAG": DATATAG}
# The tests with several flows, for which a few minutes of processor time are the budget.
SHORTER = {"duration": "80 s", "measure.from": "20 s"}
# The thesis has three repeats at least.
LOOKS = (3, 6, 10)

ROUTER = (
    "the routers' queues: 20 % of the product on DataTAG, or 100 ms, the most that its Juniper M10 has, where it may decide a claim; 1000 "
    "packets on MB-NG (called relatively large)."
)
OWN_HOSTS, SHARED_HOSTS = "a host for each flow", "machines shared by flows"
# What may decide a claim, as settings: the queue of DataTAG's router, and receivers. Which flows share a host is the other part of that.
SETTINGS: dict[str, dict[str, str]] = {
    "a router's queue of 20 %": {},
    "a router's queue of 100 ms": {"path.buffer": "8333 packets"},
    "an ACK for four packets": {"tcp.delayed_ack.segments": "4"},
}
ROUTER_20, ROUTER_100, FOUR_PACKETS = SETTINGS
QUEUES = Sets((ROUTER_20, ROUTER_100), "another queue of the router.")
HOSTED = Sets((OWN_HOSTS, SHARED_HOSTS), "a host for each flow, and machines shared by flows.")
SEVERAL = Sets((*HOSTED.names, ROUTER_100), HOSTED.tried.replace(".", f"; {QUEUES.tried}"))
# Differences of the measured from the printed goodputs of a tenth are small beside those of a repeated test on a real network.
BAND = "band: 10 % for measured numbers; the source has no standard errors here."
HOSTS = (
    "the hosts' processor: 3.6 us for a packet or an ACK at 2.2 GHz (1 GHz for 1 Gbit/s, section 5.1.3), 5.4 ns for each packet that a SACK "
    "block makes Linux 2.4 traverse (ten times an ACK at 2000 packets, figure 9.18).",
    "the hosts' backlog: 3000 packets, as on the same test bed in Kelly 2003; once full, it accepts no packet until it is empty (Linux 2.4).",
    "the hosts' devices: 975 Mbit/s, what Gigabit Ethernet carries in packets of 1500 bytes.",
    "ACKs: one for two packets. Figure 9.16 shows that some covered more, without numbers; figures 9.3 and 9.16 have one for four as well.",
)
# Table B.2: the machines at each end, over which flows are spread evenly.
SHARING = (
    "hosts of several flows: Table B.2 has six machines at each end of DataTAG and three on MB-NG. One set of runs has a host for each flow, "
    "the other gives each a fixed share of a machine: of its processor, backlog, device and device queue."
)
TEST = (
    ROUTER,
    *HOSTS,
    "length of a test: 120 s, of which the first 30 s do not count; with several flows 80 s and 20 s.",
)
PAYLOAD = 1448 / 1500
# What a second opinion can say of these experiments.
ORACLE = "ns-2 has no hosts that take processor time, and the kernels of today no longer traverse their list for SACK blocks, so neither can answer."


def flows(*groups: tuple[str, int]) -> str:
    """The value of `flow` for groups of flows of an algorithm, with random starts in the first 5 s.

    The back-off of H-TCP rounds its window down, that of the others up (section 9.1.2).
    """
    made = []
    for system, count in groups:
        cc = SYSTEMS[system] if SYSTEMS[system].startswith("{") else f'"{SYSTEMS[system]}"'
        own = ', tcp = { quantisation = "round_down" }' if system == H_TCP else ""
        made.append(f'{{ cc = {cc}, count = {count}, start = {{ uniform = ["0 s", "5 s"] }}{own} }}')
    return f"[{', '.join(made)}]"


def shared(network: Arm, count: int) -> Arm:
    """A network on which each of `count` flows has a fixed share of one of the machines of Table B.2."""
    machines, packet_us, txqueuelen = (3, 4.0, 2000) if network == MB_NG else (6, 3.6, 50000)
    on_each = count / machines
    if on_each <= 1:
        return network
    return network.set(
        {
            "host.data": f"{packet_us * on_each:g} us",
            "host.ack": f"{packet_us * on_each:g} us",
            "host.sack_in_flight": f"{5.4 * on_each:g} ns",
            "host.max_backlog": f"{3000 / on_each:.0f}",
            "host.txqueuelen": f"{txqueuelen / on_each:.0f}",
            "path.access_rate": f"{975 / on_each:g} Mbit/s",
        }
    )


def cbr(rate_mbit_s: int) -> dict[str, str]:
    """The setting of a stream of datagrams. Their phase to the bottleneck's packets drifts, as that of two real clocks."""
    return {"cbr": f'[{{ rate = "{1.003 * rate_mbit_s:g} Mbit/s" }}]'} if rate_mbit_s else {}


def goodputs(run: Run) -> list[float]:
    """The goodput of each flow, in Mbit/s."""
    return [flow.goodput_bit_s / 1e6 for flow in run.summary.flows]


def total(run: Run) -> float:
    """The goodput of all flows, in Mbit/s."""
    return sum(goodputs(run))


def stray(run: Run) -> float | None:
    """The largest goodput over the mean of the others; none if they have nothing."""
    *others, largest = sorted(goodputs(run))
    return largest / float(np.mean(others)) if any(others) else None


def spread(run: Run) -> float:
    """Standard deviation of the flows' goodputs over their mean."""
    return float(np.std(goodputs(run)) / np.mean(goodputs(run)))


def others(run: Run) -> float | None:
    """The goodput of the first group of flows, in Mbit/s; none if they have nothing."""
    return sum(goodputs(run)[: run.scenario.document["flow"][0].get("count", 1)]) or None


READINGS = {"goodput": Reading(total, "Mbit/s"), "spread": Reading(spread), "others": Reading(others)}


def arm(chosen: str, at: Point) -> Arm:
    """A flow of `system` on `network`, or `count` of them, or `new` of `all` beside Standard TCP, whose impact is equation 9.1.

    They are beside datagrams at `rate`; one packet in `every` is lost; `set` has further settings.
    """
    network: Arm = at.get("network", DATATAG)
    if chosen == SHARED_HOSTS:
        network = shared(network, at.get("count") or at["all"])
    if "every" in at:
        network = network.set({"path.loss": f'{{ name = "periodic", every = {at["every"]} }}'})
    if "new" in at:
        return network.set({**SHORTER, "flow": flows((STANDARD, at["all"] - at["new"]), (at["system"], at["new"]))})
    shorter = SHORTER if "count" in at else {}
    settings = {"flow": flows((at["system"], at.get("count", 1))), **shorter, **cbr(at.get("rate", 0))}
    return network.set({**settings, **at.get("set", {}), **SETTINGS.get(chosen, {})})


chapter = partial(Chapter, looks=LOOKS, shared={"oracle": ORACLE})
testbed = partial(chapter, arm=arm, readings=READINGS)
one_flow, several = (partial(declares, make, "li2006") for make in (testbed, partial(testbed, under=lambda: HOSTED)))


@one_flow(
    "figure-9.1",
    "Goodput under periodic loss on MB-NG and DataTAG (figures 9.1 and 9.2)",
    "testbed",
    choices=(
        ROUTER,
        *HOSTS,
        "the grid of losses.",
        f"{BAND} For formulas 2 %.",
        "budget: about half a CPU minute at the first look.",
    ),
)
def figure_9_1(report: Chapter) -> None:
    """One packet in n is lost; the window of Scalable TCP at one packet in 50."""
    losses = report.lab.pick((100, 1000, 10_000, 100_000), (1000, 30_000))
    report.claim(
        "L49",
        "Scalable TCP always has at least the throughput of HighSpeed TCP and H-TCP (section 9.1.2, figure 9.1).",
        "both networks, losses from 1 in 100 to 1 in 100,000 packets",
        "goodput of Scalable TCP over that of the other",
        "1, less 2 %, within which they are called equivalent here: the source has no tolerance",
        Points("{name}, 1/{every}: over {b}", "goodput, over", above=0.98).at(
            {"name network": NETWORKS.items()}, every=losses, a=SCALABLE, b=(HIGH, H_TCP)
        ),
        tried="all loss rates of the figure on both networks; each is a place.",
        means="Figure 9.1's order holds in the simulator only at the places that hold here.",
    )
    largest, after = (
        published("Sec 9.1.2 text", metric, system=SCALABLE) for metric in ("maximum cwnd", "cwnd after loss, integer")
    )

    def most(at: Point, run: Run) -> float:
        return float(run.flows.filter(pl.col("time_s") > run.summary.from_s)[at["column"]].to_numpy().max())

    def windows(every: int) -> Points:
        rows = (("largest window", largest, "cwnd_segments"), ("window after a loss", after, "ssthresh_segments"))
        more = {"path.loss": f'{{ name = "periodic", every = {every} }}', "trace.interval": "10 ms"}
        grid = {"name printed column": rows, "system": SCALABLE, "network": MB_NG, "set": more}
        return Points("{name}", most, how="point").at(grid)

    kept = published("Sec 9.1.2 text", "cwnd after loss without")
    group = "Scalable TCP's window after a loss, not rounded"
    report.formula(group, "packets", 0.02, (SCALABLE, kept, 7 / 8 * largest))
    flight, acks = (published("Sec 9.1.8", metric) for metric in ("packets in flight", "acks per RTT"))
    rows = (("in flight", flight, 1e9 * 0.12 / 12e3), ("ACKs", acks, 1e9 * 0.12 / 24e3))
    report.formula("packets of a round trip on DataTAG", "packets", 0.02, *rows)
    group = "Scalable TCP on MB-NG, one packet in 50 lost"
    report.rows(group, "packets", windows(50), looks=ONCE)
    report.rows(
        f"{group}: in 60",
        "packets",
        windows(60),
        looks=ONCE,
        cause_of=group,
        changed="one packet in 60 is lost, a rate at which the flow is above the switch of 16 packets; the thesis has about 0.02",
    )


@one_flow(
    "figure-9.3",
    "One flow beside UDP on MB-NG and DataTAG",
    "testbed",
    choices=(*TEST, "budget: about 2.5 CPU minutes at the first look."),
)
def figure_9_3(report: Chapter) -> None:
    """CBR from 0 to 800 Mbit/s, with the hosts of the test beds."""
    dips = (100, 200, 400)
    rates = report.lab.pick((0, 200, 400, 600, 800), (0, 200, 600))
    alike = [(n, rate) for n in NEW for rate in rates if n == H_TCP or rate >= 400]
    report.claim(
        "L50",
        "At 6.2 ms all algorithms have roughly the same throughput; only Scalable TCP and HighSpeed TCP have less beside few "
        "datagrams (section 9.1.3, figure 9.3a).",
        "H-TCP on MB-NG beside 0 to 800 Mbit/s; HighSpeed TCP and Scalable TCP beside 400 to 800 Mbit/s, without the exception",
        "goodput over that of Standard TCP",
        "1 within 10 %: the source has no number for roughly",
        Points("{a}, {rate} Mbit/s", "goodput, over", above=0.9, below=1.1).at(
            {"a rate": alike}, b=STANDARD, network=MB_NG
        ),
        tried="background rates from 0 to 800 Mbit/s, without those that the source itself excepts.",
        means="The algorithms differ at 6.2 ms by more than a tenth at the places that fail, which roughly may not cover.",
    )

    def dip(*runs: Run) -> float:
        """What the flow takes of what the CBR leaves, at the last rate, less the mean at the others."""
        shares = [total(run) / ((1000 - _cbr(run)) * PAYLOAD) for run in runs]
        return shares[-1] - float(np.mean(shares[:-1]))

    report.claim(
        "L51",
        "At 120 ms the new algorithms differ, H-TCP being ahead of Scalable TCP, and all of them have a large dip beside 100 to "
        "400 Mbit/s, which the thesis traces to the hosts (sections 9.1.3 and 9.1.7, figures 9.3b and 9.13).",
        "HighSpeed TCP, Scalable TCP and H-TCP on DataTAG, with the hosts' cost of ACKs and SACK blocks",
        "the share of what the datagrams leave, less its mean beside 100, 200 and 400 Mbit/s; goodputs",
        "no difference (0)",
        Points("{system}: at {live} Mbit/s less the mean at 100 to 400 Mbit/s", dip, may_collapse=(0, 1, 2))
        .at(system=NEW, live=(0, 600))
        .of(rate=(*dips, "live")),
        Points("{a} less {b} beside {rate} Mbit/s", "goodput, less", may_collapse=(1,)).at(
            a=H_TCP, b=SCALABLE, rate=200
        ),
        tried="another queue of the router, and receivers that stretch their ACKs.",
        means="The dips of figure 9.3b are of hosts, and with these hosts some algorithm or rate has none.",
        sets=Sets((*QUEUES.names, FOUR_PACKETS)),
    )
    least = published("Sec 9.1.7", "CBR above which")
    below = [r for r in (*dips, 600) if r < least]
    report.claim(
        "L52",
        f"At 120 ms the goodput of Standard TCP hardly depends on the datagrams below {least:g} Mbit/s; where slow start ended "
        "determines it (section 9.1.7, figure 9.14).",
        "Standard TCP on DataTAG beside 100 to 600 Mbit/s",
        "goodput over that without datagrams",
        "1 within 20 %: the source has no number for almost independent",
        Points("{rate} Mbit/s", "goodput, over", above=0.8, below=1.2)
        .at(rate=below, system=STANDARD)
        .of(rate=("rate", 0)),
        means="Where slow start ends depends here on the datagrams and the queue, so the goodput of figure 9.14 is one of several outcomes.",
        sets=QUEUES,
    )


def _cbr(run: Run) -> float:
    return sum(float(one["rate"].split()[0]) for one in run.scenario.document.get("cbr", ()))


@several(
    "figure-9.4",
    "Ten flows beside UDP (figures 9.4 to 9.6)",
    "testbed",
    choices=(*TEST, SHARING, BAND, "budget: about 1.5 CPU minutes at the first look."),
)
def figure_9_4(report: Chapter) -> None:
    """Aggregate goodput, and its variation among flows."""
    rates = report.lab.pick((0, 200, 500), (200, 500))
    alike = [
        (name, network, n, rate)
        for name, network in NETWORKS.items()
        for n in NEW
        for rate in rates
        if (name, n, rate) != ("DataTAG", SCALABLE, 500)
    ]
    report.claim(
        "L53",
        "The aggregate of ten flows is almost the same for all algorithms on both networks, Standard TCP included; the exception "
        "is Scalable TCP beside about 500 Mbit/s on DataTAG, with a little more (section 9.1.4, figure 9.4).",
        "three algorithms on both networks beside 0, 200 and 500 Mbit/s, without the exception",
        "aggregate goodput over that of Standard TCP",
        "1 within 10 %: the source has no number for almost",
        Points("{name}, {a}, {rate} Mbit/s", "goodput, over", above=0.9, below=1.1).at(
            {"name network a rate": alike}, b=STANDARD, count=10
        ),
        means="The aggregates of ten flows differ by more than a tenth at the places that fail; print calls them almost the same.",
    )
    grid = {"a": SCALABLE, "b": (HIGH, H_TCP), "rate": rates, "count": 10}
    report.claim(
        "L54",
        "On DataTAG the goodputs of Scalable TCP's flows vary much more than those of HighSpeed TCP and H-TCP (section 9.1.4, "
        "figure 9.6).",
        "ten flows beside 0, 200 and 500 Mbit/s",
        "standard deviation over the mean of the flows' goodputs: Scalable TCP's less the other's",
        "no difference (0)",
        Points("{b}, {rate} Mbit/s", "spread, less").at(grid),
        means="The spread of figure 9.6 is from a single test of each kind; over repeats it is not always larger for Scalable TCP.",
        sets=SEVERAL,
    )
    low, high = (published("Sec 9.1.4", f"relative to mean, {end}", system=SCALABLE) for end in ("low", "high"))
    grid = {"system": SCALABLE, "rate": rates, "count": 10, "printed": (low + high) / 2, "error": (high - low) / 2}
    group = f"largest goodput over the mean of the others, Scalable TCP ({low:g} to {high:g})"
    report.rows(group, "1", Points("{rate} Mbit/s", stray).at(grid))


@several(
    "figure-9.7",
    "Aggregate goodput and spread by number of flows (figures 9.7 to 9.9)",
    "testbed",
    choices=(*TEST, SHARING, "the numbers of flows.", BAND, "budget: about 2 CPU minutes at the first look."),
)
def figure_9_7(report: Chapter) -> None:
    """N flows of one algorithm."""
    counts = report.lab.pick((1, 2, 5, 10, 33), (1, 10, 33))
    many = counts[-1]
    report.claim(
        "L55",
        "At 120 ms the aggregate of Standard TCP grows, almost in proportion, up to about ten flows; beyond, HighSpeed TCP, H-TCP "
        "and Standard TCP hardly differ (section 9.1.5, figure 9.7).",
        "Standard TCP with up to 10 flows; the three algorithms with 33 flows",
        "aggregate over that of fewer flows; aggregate over that of Standard TCP",
        "1: with more flows it is more. Proportion is not asked for, as ten flows of 80 % need one of 8 %, which slow start alone "
        "exceeds; 1 within 10 % for hardly, which is ours",
        Points("{system}: {more} flows over {few}", "goodput, over", above=1)
        .at({"few more": list(pairwise(k for k in counts if k <= 10))}, system=STANDARD)
        .of(count=("more", "few")),
        Points("{count} flows: {a} over {b}", "goodput, over", above=0.9, below=1.1).at(
            count=many, a=(HIGH, H_TCP), b=STANDARD
        ),
        means="With these hosts and queues more flows of Standard TCP do not always carry more, or the algorithms differ with 33.",
        sets=SEVERAL,
    )
    most = published("Sec 9.1.5", "maximum utilisation")
    report.rows(
        "largest aggregate goodput of ten flows or more (about 80 %)",
        "% of 1 Gbit/s",
        Points("{system}", lambda *runs: max(map(total, runs)) / 10)
        .at(system=(STANDARD, HIGH, H_TCP), printed=most)
        .of(count=[k for k in counts if k >= 10]),
    )
    pairs = ((STANDARD, H_TCP), (HIGH, H_TCP), (SCALABLE, H_TCP), (SCALABLE, HIGH), (SCALABLE, STANDARD))
    report.claim(
        "L56",
        "At 120 ms H-TCP has the smallest spread of the flows' goodputs for all numbers of flows, and Scalable TCP the largest "
        "(section 9.1.5, figure 9.9).",
        "2, 5, 10 and 33 flows of each algorithm",
        "standard deviation over the mean of the flows' goodputs: the difference of two algorithms",
        "no difference (0)",
        Points("{count} flows: {a} less {b}", "spread, less").at({"count": counts[1:], "a b": pairs}),
        tried=f"2, 5, 10 and 33 flows; {HOSTED.tried}",
        means="That Scalable TCP shares worst and H-TCP best at 120 ms is so only for the numbers of flows at which the places hold.",
    )
    rows = [(SCALABLE, 5, 2), *((n, many, 5) for n in FOUR)]
    report.claim(
        "L76",
        "On MB-NG Scalable TCP is unfair from five flows on and all algorithms severely with 33; the aggregate rises slightly with "
        "the number of flows (section 9.1.5, figures 9.7 and 9.8).",
        "1, 2, 5 and 33 flows of each algorithm on MB-NG",
        "standard deviation over the mean of the flows' goodputs, with more flows less with fewer; aggregate over that of one",
        "no difference (0); 1",
        Points("{system}: {more} flows less {few}", "spread, less")
        .at({"system more few": rows}, network=MB_NG)
        .of(count=("more", "few")),
        Points("{system}: aggregate of {many} flows over that of one", "goodput, over", above=1)
        .at(system=FOUR, many=many, network=MB_NG)
        .of(count=("many", 1)),
        means="At 6.2 ms the spread of the goodputs does not follow the number of flows for each algorithm.",
    )


@several(
    "figure-9.10",
    "Impact on Standard TCP of one and of ten flows (equation 9.1, figures 9.10 and 9.11)",
    "testbed",
    choices=(*TEST, SHARING, "the numbers of flows.", "budget: about 2 CPU minutes at the first look."),
    quick=False,
)
def figure_9_10(report: Chapter) -> None:
    """N flows of Standard TCP, i of which are replaced by another algorithm."""
    totals = {1: (2, 10), 10: (12, 40)}
    cells = [(i, k) for i, many in totals.items() for k in many]
    report.claim(
        "L57",
        "On both networks the impact tends to one as the number of flows grows (section 9.1.6, figures 9.10 and 9.11).",
        "one and ten flows of each new algorithm, the smallest and the largest number of flows",
        "distance of the impact's logarithm from 0: with the fewest flows less with the most",
        "no difference (0)",
        Points("{name}, {n}, {new} of {few} less {new} of {many}", "others, distance, less")
        .at({"name network": NETWORKS.items(), "n": NEW, "new few many": [(i, *many) for i, many in totals.items()]})
        .of(all=("few", "many"), system=(STANDARD, "n")),
        means="The tendency of figures 9.10 and 9.11 does not hold for each algorithm on each network.",
    )
    report.claim(
        "L58",
        "The impact is larger at 120 ms than at 6.2 ms (section 9.1.6).",
        "one and ten flows of each new algorithm among several numbers of flows",
        "logarithm of the impact on DataTAG over that on MB-NG",
        "no difference (0)",
        Points("{n}, {new} of {all}", "others, logarithm, less")
        .at({"n": NEW, "new all": cells})
        .of(network=(DATATAG, MB_NG), system=(STANDARD, "n")),
        means="The impact is not larger at 120 ms for each algorithm and number of flows.",
    )
    first = {10: SCALABLE, 1: H_TCP}
    report.claim(
        "L59",
        "On DataTAG ten flows of Scalable TCP have the largest impact; of single flows that of H-TCP is the largest, because the "
        "hosts slow down the others (section 9.1.6, figure 9.11).",
        "one and ten flows of each new algorithm among several numbers of flows",
        "logarithm of the impact over that of each other algorithm",
        "no difference (0)",
        Points("{new} of {all}: {most} over {n}", "others, logarithm, less")
        .at({"new all most n": [(i, k, first[i], n) for i, k in cells for n in NEW if n != first[i]]})
        .of(system=(STANDARD, "most", STANDARD, "n")),
        means="Which algorithm has the largest impact at 120 ms is a matter of the hosts, as the source says of its own result.",
    )
    report.claim(
        "L75",
        "On MB-NG H-TCP is too fair: the others have more beside it than beside Standard TCP (section 9.1.6, figure 9.10).",
        "one and ten flows of H-TCP among several numbers of flows",
        "logarithm of the impact",
        "0: an impact of one",
        Points("{new} of {all}", "others, logarithm", below=0)
        .at({"new all": cells}, network=MB_NG)
        .of(system=(STANDARD, H_TCP)),
        means="The rounding of H-TCP's window, which the source names as a cause, is not enough to make it too fair here.",
    )
