"""Li 2006, section 9.1: MB-NG and DataTAG."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from elephan.api.run import Run
from elephan.studies.reproduce.judge import Arm, Claim, Kind, Place, Quantity
from elephan.studies.reproduce.lab import Lab, Report, experiment, printed
from elephan.studies.reproduce.li2006.systems import SYSTEMS

STANDARD, HIGH, SCALABLE, H_TCP = FOUR = ("Standard TCP", "HighSpeed TCP", "Scalable TCP", "H-TCP")
NEW = FOUR[1:]
DATATAG = Arm("li2006/testbed")
# Table B.2: 2.0 GHz instead of 2.2.
MB_NG = DATATAG.set(
    {
        "path.rtt": "6.2 ms",
        "path.buffer": "1000 packets",
        "host.data": "4 us",
        "host.ack": "4 us",
        "host.txqueuelen": "2000",
    }
)
NETWORKS = {"MB-NG": MB_NG, "DataTAG": DATATAG}
# The tests with several flows, for which a few minutes of processor time are the budget.
SHORTER = {"duration": "80 s", "measure.from": "20 s"}
# The thesis has three repeats at least.
LOOKS, ONCE = (3, 6, 10), (2,)

ROUTER = (
    "the routers' queues: 20 % of the product on DataTAG, or 100 ms, the most that its Juniper M10 has, where it may decide a claim; 1000 "
    "packets on MB-NG (called relatively large)."
)
# What the queue of DataTAG's router may be, as settings.
QUEUES: dict[str, dict[str, str]] = {
    "a router's queue of 20 %": {},
    "a router's queue of 100 ms": {"path.buffer": "8333 packets"},
}
OWN_HOSTS, SHARED_HOSTS = "a host for each flow", "machines shared by flows"
# Differences of the measured from the printed goodputs of a tenth are small beside those of a repeated test on a real network.
# What may decide a claim about several flows on DataTAG: who has a host, and the router's queue.
SETS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (OWN_HOSTS, OWN_HOSTS, {}),
    (SHARED_HOSTS, SHARED_HOSTS, {}),
    ("a router's queue of 100 ms", OWN_HOSTS, QUEUES["a router's queue of 100 ms"]),
)
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


def hosted(network: Arm, count: int, hosts: str) -> Arm:
    """A network with `OWN_HOSTS` or `SHARED_HOSTS` of `count` flows."""
    return shared(network, count) if hosts == SHARED_HOSTS else network


def cbr(rate_mbit_s: int) -> dict[str, str]:
    """The setting of a stream of datagrams. Their phase to the bottleneck's packets drifts, as that of two real clocks."""
    return {"cbr": f'[{{ rate = "{1.003 * rate_mbit_s:g} Mbit/s" }}]'} if rate_mbit_s else {}


def goodputs(run: Run) -> list[float]:
    """The goodput of each flow, in Mbit/s."""
    return [flow.goodput_bit_s / 1e6 for flow in run.summary.flows]


def total(run: Run) -> float:
    """The goodput of all flows, in Mbit/s."""
    return sum(goodputs(run))


def ratio(first: Run, second: Run) -> float:
    """The goodput of a run over that of another one."""
    return total(first) / total(second)


def stray(run: Run) -> float | None:
    """The largest goodput over the mean of the others; none if they have nothing."""
    *others, largest = sorted(goodputs(run))
    return largest / float(np.mean(others)) if any(others) else None


def spread(run: Run) -> float:
    """Standard deviation of the flows' goodputs over their mean."""
    return float(np.std(goodputs(run)) / np.mean(goodputs(run)))


@experiment(
    "li2006/figure-9.1",
    "Goodput under periodic loss on MB-NG and DataTAG (figures 9.1 and 9.2)",
    "li2006/testbed",
    choices=(
        ROUTER,
        *HOSTS,
        "the grid of losses.",
        f"{BAND} For formulas 2 %.",
        "budget: about half a CPU minute at the first look.",
    ),
)
def figure_9_1(lab: Lab) -> Report:
    """One packet in n is lost; the window of Scalable TCP at one packet in 50."""
    report, places = Report(lab), []
    for name, network in NETWORKS.items():
        for every in lab.pick((100, 1000, 10_000, 100_000), (1000, 30_000)):
            lossy = network.set({"path.loss": f'{{ name = "periodic", every = {every} }}'})
            scalable, *others = (lossy.set({"flow": flows((n, 1))}) for n in (SCALABLE, HIGH, H_TCP))
            places += [
                Place(f"{name}, 1/{every}: over {n}", (scalable, other), ratio, above=0.98)
                for n, other in zip((HIGH, H_TCP), others, strict=True)
            ]
    report.test(
        Claim(
            "L49",
            sentence="Scalable TCP always has at least the throughput of HighSpeed TCP and H-TCP (section 9.1.2, figure 9.1).",
            population="both networks, losses from 1 in 100 to 1 in 100,000 packets",
            statistic="goodput of Scalable TCP over that of the other",
            bound="1, less 2 %, within which they are called equivalent here: the source has no tolerance",
            tried="all loss rates of the figure on both networks; each is a place.",
            means="Figure 9.1's order holds in the simulator only at the places that hold here.",
            oracle=ORACLE,
        ),
        places,
        looks=LOOKS,
    )
    published = {
        "largest window": printed("li2006", "Sec 9.1.2 text", "maximum cwnd")[SCALABLE][0],
        "window after a loss": printed("li2006", "Sec 9.1.2 text", "cwnd after loss, integer")[SCALABLE][0],
    }
    columns = {"largest window": "cwnd_segments", "window after a loss": "ssthresh_segments"}

    def largest(column: str) -> Callable[[Run], float]:
        return lambda run: float(run.flows.filter(pl.col("time_s") > run.summary.from_s)[column].to_numpy().max())

    def rows(every: int) -> list[Quantity]:
        loss = f'{{ name = "periodic", every = {every} }}'
        arm = MB_NG.set({"flow": flows((SCALABLE, 1)), "path.loss": loss, "trace.interval": "10 ms"})
        return [Quantity(name, value, None, (arm,), largest(columns[name])) for name, value in published.items()]

    (kept,) = printed("li2006", "Sec 9.1.2 text", "cwnd after loss without").values()
    report.compare(
        "Scalable TCP's window after a loss, not rounded",
        "packets",
        [Quantity.exact(SCALABLE, kept[0], 7 / 8 * published["largest window"])],
        kind=Kind.FORMULA,
        band=0.02,
    )
    flight, acks = (
        printed("li2006", "Sec 9.1.8", metric)["path DataTAG"][0] for metric in ("packets in flight", "acks per RTT")
    )
    report.compare(
        "packets of a round trip on DataTAG",
        "packets",
        [Quantity.exact("in flight", flight, 1e9 * 0.12 / 12e3), Quantity.exact("ACKs", acks, 1e9 * 0.12 / 24e3)],
        kind=Kind.FORMULA,
        band=0.02,
    )
    group = "Scalable TCP on MB-NG, one packet in 50 lost"
    report.compare(group, "packets", rows(50), looks=ONCE)
    report.compare(
        f"{group}: in 60",
        "packets",
        rows(60),
        looks=ONCE,
        cause_of=group,
        changed="one packet in 60 is lost, a rate at which the flow is above the switch of 16 packets; the thesis has about 0.02",
    )
    return report


@experiment(
    "li2006/figure-9.3",
    "One flow beside UDP on MB-NG and DataTAG",
    "li2006/testbed",
    choices=(*TEST, "budget: about 2.5 CPU minutes at the first look."),
)
def figure_9_3(lab: Lab) -> Report:
    """CBR from 0 to 800 Mbit/s, with the hosts of the test beds."""
    report, rates = Report(lab), (0, 100, 200, 400, 600)

    def arm(network: Arm, name: str, rate: int) -> Arm:
        return network.set({"flow": flows((name, 1)), **cbr(rate)})

    report.test(
        Claim(
            "L50",
            sentence="At 6.2 ms all algorithms have roughly the same throughput; only Scalable TCP and HighSpeed TCP have less beside few "
            "datagrams (section 9.1.3, figure 9.3a).",
            population="H-TCP on MB-NG beside 0 to 800 Mbit/s; HighSpeed TCP and Scalable TCP beside 400 to 800 Mbit/s, without the exception",
            statistic="goodput over that of Standard TCP",
            bound="1 within 10 %: the source has no number for roughly",
            tried="background rates from 0 to 800 Mbit/s, without those that the source itself excepts.",
            means="The algorithms differ at 6.2 ms by more than a tenth at the places that fail, which roughly may not cover.",
            oracle=ORACLE,
        ),
        [
            Place(f"{n}, {rate} Mbit/s", (arm(MB_NG, n, rate), arm(MB_NG, STANDARD, rate)), ratio, above=0.9, below=1.1)
            for n in NEW
            for rate in lab.pick((0, 200, 400, 600, 800), (0, 200, 600))
            if n == H_TCP or rate >= 400
        ],
        looks=LOOKS,
    )
    dips = tuple(r for r in rates if 100 <= r <= 400)

    def dip(*runs: Run) -> float:
        """What the flow takes of what the CBR leaves, at the last rate, less the mean at the others."""
        shares = [total(run) / ((1000 - _cbr(run)) * PAYLOAD) for run in runs]
        return shares[-1] - float(np.mean(shares[:-1]))

    def places(more: dict[str, str]) -> list[Place]:
        deep = [
            Place(
                f"{n}: at {live} Mbit/s less the mean at 100 to 400 Mbit/s",
                tuple(arm(DATATAG, n, rate).set(more) for rate in (*dips, live)),
                dip,
                above=0,
                may_collapse=tuple(range(len(dips))),
            )
            for n in NEW
            for live in (0, 600)
        ]
        ahead = Place(
            "H-TCP less Scalable TCP beside 200 Mbit/s",
            (arm(DATATAG, H_TCP, 200).set(more), arm(DATATAG, SCALABLE, 200).set(more)),
            lambda h, s: total(h) - total(s),
            above=0,
            unit="Mbit/s",
            may_collapse=(1,),
        )
        return [*deep, ahead]

    report.test(
        Claim(
            "L51",
            sentence="At 120 ms the new algorithms differ, H-TCP being ahead of Scalable TCP, and all of them have a large dip beside 100 to "
            "400 Mbit/s, which the thesis traces to the hosts (sections 9.1.3 and 9.1.7, figures 9.3b and 9.13).",
            population="HighSpeed TCP, Scalable TCP and H-TCP on DataTAG, with the hosts' cost of ACKs and SACK blocks",
            statistic="the share of what the datagrams leave, less its mean beside 100, 200 and 400 Mbit/s; goodputs",
            bound="no difference (0)",
            tried="another queue of the router, and receivers that stretch their ACKs.",
            means="The dips of figure 9.3b are of hosts, and with these hosts some algorithm or rate has none.",
            oracle=ORACLE,
        ),
        {
            **{name: places(more) for name, more in QUEUES.items()},
            "an ACK for four packets": places({"tcp.delayed_ack.segments": "4"}),
        },
        looks=LOOKS,
    )
    least = printed("li2006", "Sec 9.1.7", "CBR above which")[STANDARD][0]
    below = [r for r in rates if r < least]
    report.test(
        Claim(
            "L52",
            sentence=f"At 120 ms the goodput of Standard TCP hardly depends on the datagrams below {least:g} Mbit/s; where slow start ended "
            "determines it (section 9.1.7, figure 9.14).",
            population="Standard TCP on DataTAG beside 100 to 600 Mbit/s",
            statistic="goodput over that without datagrams",
            bound="1 within 20 %: the source has no number for almost independent",
            tried="another queue of the router.",
            means="Where slow start ends depends here on the datagrams and the queue, so the goodput of figure 9.14 is one of several outcomes.",
            oracle=ORACLE,
        ),
        {
            name: [
                Place(
                    f"{rate} Mbit/s",
                    (arm(DATATAG, STANDARD, rate).set(more), arm(DATATAG, STANDARD, 0).set(more)),
                    ratio,
                    above=0.8,
                    below=1.2,
                )
                for rate in below[1:]
            ]
            for name, more in QUEUES.items()
        },
        looks=LOOKS,
    )
    return report


def _cbr(run: Run) -> float:
    return sum(float(one["rate"].split()[0]) for one in run.scenario.document.get("cbr", ()))


@experiment(
    "li2006/figure-9.4",
    "Ten flows beside UDP (figures 9.4 to 9.6)",
    "li2006/testbed",
    choices=(*TEST, SHARING, BAND, "budget: about 1.5 CPU minutes at the first look."),
)
def figure_9_4(lab: Lab) -> Report:
    """Aggregate goodput, and its variation among flows."""
    report, rates = Report(lab), lab.pick((0, 200, 500), (200, 500))

    def arm(network: Arm, name: str, rate: int, hosts: str = OWN_HOSTS) -> Arm:
        return hosted(network, 10, hosts).set({"flow": flows((name, 10)), **SHORTER, **cbr(rate)})

    report.test(
        Claim(
            "L53",
            sentence="The aggregate of ten flows is almost the same for all algorithms on both networks, Standard TCP included; the exception "
            "is Scalable TCP beside about 500 Mbit/s on DataTAG, with a little more (section 9.1.4, figure 9.4).",
            population="three algorithms on both networks beside 0, 200 and 500 Mbit/s, without the exception",
            statistic="aggregate goodput over that of Standard TCP",
            bound="1 within 10 %: the source has no number for almost",
            tried="a host for each flow, and machines shared by flows.",
            means="The aggregates of ten flows differ by more than a tenth at the places that fail; print calls them almost the same.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                Place(
                    f"{net}, {n}, {rate} Mbit/s",
                    (arm(network, n, rate, hosts), arm(network, STANDARD, rate, hosts)),
                    ratio,
                    above=0.9,
                    below=1.1,
                )
                for net, network in NETWORKS.items()
                for n in NEW
                for rate in rates
                if (net, n, rate) != ("DataTAG", SCALABLE, 500)
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )

    def wider(scalable: Run, other: Run) -> float:
        return spread(scalable) - spread(other)

    report.test(
        Claim(
            "L54",
            sentence="On DataTAG the goodputs of Scalable TCP's flows vary much more than those of HighSpeed TCP and H-TCP (section 9.1.4, "
            "figure 9.6).",
            population="ten flows beside 0, 200 and 500 Mbit/s",
            statistic="standard deviation over the mean of the flows' goodputs: Scalable TCP's less the other's",
            bound="no difference (0)",
            tried="a host for each flow, and machines shared by flows; another queue of the router.",
            means="The spread of figure 9.6 is from a single test of each kind; over repeats it is not always larger for Scalable TCP.",
            oracle=ORACLE,
        ),
        {
            name: [
                Place(
                    f"{n}, {rate} Mbit/s",
                    (arm(DATATAG, SCALABLE, rate, hosts).set(more), arm(DATATAG, n, rate, hosts).set(more)),
                    wider,
                    above=0,
                )
                for n in (HIGH, H_TCP)
                for rate in rates
            ]
            for name, hosts, more in SETS
        },
        looks=LOOKS,
    )
    low, high = (printed("li2006", "Sec 9.1.4", f"relative to mean, {end}")[SCALABLE][0] for end in ("low", "high"))
    report.compare(
        f"largest goodput over the mean of the others, Scalable TCP ({low:g} to {high:g})",
        "1",
        [
            Quantity(
                f"{rate} Mbit/s",
                (low + high) / 2,
                (high - low) / 2,
                (arm(DATATAG, SCALABLE, rate),),
                stray,
            )
            for rate in rates
        ],
        looks=LOOKS,
    )
    return report


@experiment(
    "li2006/figure-9.7",
    "Aggregate goodput and spread by number of flows (figures 9.7 to 9.9)",
    "li2006/testbed",
    choices=(*TEST, SHARING, "the numbers of flows.", BAND, "budget: about 2 CPU minutes at the first look."),
)
def figure_9_7(lab: Lab) -> Report:
    """N flows of one algorithm."""
    report, counts = Report(lab), lab.pick((1, 2, 5, 10, 33), (1, 10, 33))

    def arm(name: str, count: int, hosts: str = OWN_HOSTS, network: Arm = DATATAG) -> Arm:
        return hosted(network, count, hosts).set({"flow": flows((name, count)), **SHORTER})

    def places(hosts: str, more: dict[str, str]) -> list[Place]:
        few = [k for k in counts if k <= 10]
        grows = [
            Place(
                f"Standard TCP: {many} flows over {k}",
                (arm(STANDARD, many, hosts).set(more), arm(STANDARD, k, hosts).set(more)),
                ratio,
                above=1,
            )
            for k, many in pairwise(few)
        ]
        most = arm(STANDARD, counts[-1], hosts).set(more)
        near = [
            Place(
                f"{counts[-1]} flows: {n} over Standard TCP",
                (arm(n, counts[-1], hosts).set(more), most),
                ratio,
                above=0.9,
                below=1.1,
            )
            for n in (HIGH, H_TCP)
        ]
        return grows + near

    report.test(
        Claim(
            "L55",
            sentence="At 120 ms the aggregate of Standard TCP grows, almost in proportion, up to about ten flows; beyond, HighSpeed TCP, H-TCP "
            "and Standard TCP hardly differ (section 9.1.5, figure 9.7).",
            population="Standard TCP with up to 10 flows; the three algorithms with 33 flows",
            statistic="aggregate over that of fewer flows; aggregate over that of Standard TCP",
            bound="1: with more flows it is more. Proportion is not asked for, as ten flows of 80 % need one of 8 %, which slow start alone "
            "exceeds; 1 within 10 % for hardly, which is ours",
            tried="a host for each flow, and machines shared by flows; another queue of the router.",
            means="With these hosts and queues more flows of Standard TCP do not always carry more, or the algorithms differ with 33.",
            oracle=ORACLE,
        ),
        {name: places(hosts, more) for name, hosts, more in SETS},
        looks=LOOKS,
    )
    most, _ = printed("li2006", "Sec 9.1.5", "maximum utilisation")["HSTCP, H-TCP, Standard TCP"]
    large = [k for k in counts if k >= 10]
    report.compare(
        "largest aggregate goodput of ten flows or more (about 80 %)",
        "% of 1 Gbit/s",
        [
            Quantity(n, most, None, tuple(arm(n, k) for k in large), lambda *runs: max(map(total, runs)) / 10)
            for n in (STANDARD, HIGH, H_TCP)
        ],
        looks=LOOKS,
    )

    def wider(first: Run, second: Run) -> float:
        return spread(first) - spread(second)

    report.test(
        Claim(
            "L56",
            sentence="At 120 ms H-TCP has the smallest spread of the flows' goodputs for all numbers of flows, and Scalable TCP the largest "
            "(section 9.1.5, figure 9.9).",
            population="2, 5, 10 and 33 flows of each algorithm",
            statistic="standard deviation over the mean of the flows' goodputs: the difference of two algorithms",
            bound="no difference (0)",
            tried="2, 5, 10 and 33 flows; a host for each flow, and machines shared by flows.",
            means="That Scalable TCP shares worst and H-TCP best at 120 ms is so only for the numbers of flows at which the places hold.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                Place(f"{k} flows: {a} less {b}", (arm(a, k, hosts), arm(b, k, hosts)), wider, above=0)
                for k in counts[1:]
                for a, b in (
                    (STANDARD, H_TCP),
                    (HIGH, H_TCP),
                    (SCALABLE, H_TCP),
                    (SCALABLE, HIGH),
                    (SCALABLE, STANDARD),
                )
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )
    some, many = 5, counts[-1]

    def near_by(hosts: str) -> list[Place]:
        def runs(name: str, *numbers: int) -> tuple[Arm, ...]:
            return tuple(arm(name, k, hosts, MB_NG) for k in numbers)

        poor = Place(f"{SCALABLE}: {some} flows less 2", runs(SCALABLE, some, 2), wider, above=0)
        severe = [Place(f"{n}: {many} flows less {some}", runs(n, many, some), wider, above=0) for n in FOUR]
        rises = [
            Place(f"{n}: aggregate of {many} flows over that of one", runs(n, many, 1), ratio, above=1) for n in FOUR
        ]
        return [poor, *severe, *rises]

    report.test(
        Claim(
            "L76",
            sentence="On MB-NG Scalable TCP is unfair from five flows on and all algorithms severely with 33; the aggregate rises slightly with "
            "the number of flows (section 9.1.5, figures 9.7 and 9.8).",
            population="1, 2, 5 and 33 flows of each algorithm on MB-NG",
            statistic="standard deviation over the mean of the flows' goodputs, with more flows less with fewer; aggregate over that of one",
            bound="no difference (0); 1",
            tried="a host for each flow, and machines shared by flows.",
            means="At 6.2 ms the spread of the goodputs does not follow the number of flows for each algorithm.",
            oracle=ORACLE,
        ),
        {hosts: near_by(hosts) for hosts in (OWN_HOSTS, SHARED_HOSTS)},
        looks=LOOKS,
    )
    return report


@dataclass(frozen=True)
class Mixed:
    """Flows of which some are of another algorithm, and the same number of Standard TCP."""

    network: Arm
    system: str
    new: int
    all: int
    hosts: str = OWN_HOSTS

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """With Standard TCP alone, and with the other algorithm."""
        rest = (STANDARD, self.all - self.new)
        standard, mixed = (flows(rest, (name, self.new)) for name in (STANDARD, self.system))
        both = hosted(self.network, self.all, self.hosts).set(SHORTER)
        return both.set({"flow": standard}), both.set({"flow": mixed})

    def impact(self, standard: Run, mixed: Run) -> float | None:
        """Logarithm of equation 9.1: what the others have beside Standard TCP, over what they have beside the new algorithm.

        None if they have nothing in one of the runs.
        """
        rest = self.all - self.new
        beside, left = sum(goodputs(standard)[:rest]), sum(goodputs(mixed)[:rest])
        return math.log(beside / left) if beside and left else None


def _between(name: str, first: Mixed, second: Mixed, of: Callable[[float], float] = lambda impact: impact) -> Place:
    """A place where `of` the first mixture's impact, a logarithm, is more than that of the second one's."""

    def read(*runs: Run) -> float | None:
        one, other = first.impact(*runs[:2]), second.impact(*runs[2:])
        return None if one is None or other is None else of(one) - of(other)

    return Place(name, (*first.arms, *second.arms), read, above=0)


@experiment(
    "li2006/figure-9.10",
    "Impact on Standard TCP of one and of ten flows (equation 9.1, figures 9.10 and 9.11)",
    "li2006/testbed",
    choices=(*TEST, SHARING, "the numbers of flows.", "budget: about 2 CPU minutes at the first look."),
    quick=False,
)
def figure_9_10(lab: Lab) -> Report:
    """N flows of Standard TCP, i of which are replaced by another algorithm."""
    report = Report(lab)
    totals = {1: (2, 10), 10: (12, 40)}
    cells = [(i, k) for i, many in totals.items() for k in many]
    report.test(
        Claim(
            "L57",
            sentence="On both networks the impact tends to one as the number of flows grows (section 9.1.6, figures 9.10 and 9.11).",
            population="one and ten flows of each new algorithm, the smallest and the largest number of flows",
            statistic="distance of the impact's logarithm from 0: with the fewest flows less with the most",
            bound="no difference (0)",
            tried="a host for each flow, and machines shared by flows.",
            means="The tendency of figures 9.10 and 9.11 does not hold for each algorithm on each network.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                _between(
                    f"{net}, {n}, {i} of {few} less {i} of {many}",
                    Mixed(network, n, i, few, hosts),
                    Mixed(network, n, i, many, hosts),
                    of=abs,
                )
                for net, network in NETWORKS.items()
                for n in NEW
                for i, (few, many) in totals.items()
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )
    report.test(
        Claim(
            "L58",
            sentence="The impact is larger at 120 ms than at 6.2 ms (section 9.1.6).",
            population="one and ten flows of each new algorithm among several numbers of flows",
            statistic="logarithm of the impact on DataTAG over that on MB-NG",
            bound="no difference (0)",
            tried="a host for each flow, and machines shared by flows.",
            means="The impact is not larger at 120 ms for each algorithm and number of flows.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                _between(f"{n}, {i} of {k}", Mixed(DATATAG, n, i, k, hosts), Mixed(MB_NG, n, i, k, hosts))
                for n in NEW
                for i, k in cells
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )
    first = {10: SCALABLE, 1: H_TCP}
    report.test(
        Claim(
            "L59",
            sentence="On DataTAG ten flows of Scalable TCP have the largest impact; of single flows that of H-TCP is the largest, because the "
            "hosts slow down the others (section 9.1.6, figure 9.11).",
            population="one and ten flows of each new algorithm among several numbers of flows",
            statistic="logarithm of the impact over that of each other algorithm",
            bound="no difference (0)",
            tried="a host for each flow, and machines shared by flows.",
            means="Which algorithm has the largest impact at 120 ms is a matter of the hosts, as the source says of its own result.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                _between(
                    f"{i} of {k}: {first[i]} over {n}",
                    Mixed(DATATAG, first[i], i, k, hosts),
                    Mixed(DATATAG, n, i, k, hosts),
                )
                for i, k in cells
                for n in NEW
                if n != first[i]
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )
    report.test(
        Claim(
            "L75",
            sentence="On MB-NG H-TCP is too fair: the others have more beside it than beside Standard TCP (section 9.1.6, figure 9.10).",
            population="one and ten flows of H-TCP among several numbers of flows",
            statistic="logarithm of the impact",
            bound="0: an impact of one",
            tried="a host for each flow, and machines shared by flows.",
            means="The rounding of H-TCP's window, which the source names as a cause, is not enough to make it too fair here.",
            oracle=ORACLE,
        ),
        {
            hosts: [
                Place(f"{i} of {k}", one.arms, one.impact, below=0)
                for i, k in cells
                for one in (Mixed(MB_NG, H_TCP, i, k, hosts),)
            ]
            for hosts in (OWN_HOSTS, SHARED_HOSTS)
        },
        looks=LOOKS,
    )
    return report
