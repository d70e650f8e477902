"""The effect of choices that Kelly, Tekala and Szabó, Nabeshima and Yata, and the authors of Layered TCP leave open.

Each choice is changed alone, for one point of the publication. The choices for the thesis are with its tables.
"""

from collections.abc import Mapping

from elephan.api.metrics import Metric, declared
from elephan.studies.reproduce.lab import Lab, Report, changed_alone, experiment

GOODPUT, LOSS = declared("Summary", "goodput_bit_s"), declared("Summary", "loss_rate")
DELAYED = ("an ACK for every second packet", {"tcp.delayed_ack.segments": "2"})
TEN = ("initial window of 10 segments", {"tcp.initial_window": "10"})


def _same(
    system: str, base: Mapping[str, str], changes: tuple[tuple[str, dict[str, str]], ...]
) -> list[tuple[str, str, Mapping[str, str], Mapping[str, str]]]:
    return [(what, system, base, change) for what, change in changes]


@experiment(
    "kelly2003/sensitivity",
    "What the unpublished choices change: two connections with 2 GB transfers, 2.4 Gbit/s, 120 ms",
    "kelly2003/bulk",
    quick=False,
)
def kelly2003(lab: Lab) -> Report:
    """The point of Table 3 with two flows."""
    base = {"flow.count": "2", "duration": lab.pick("1200 s", "120 s")}
    changes = (
        TEN,
        ("ACKs count what they acknowledge", {"tcp.byte_counting": "{ abc = { L = 2 } }"}),
        ("windows rounded down instead of up", {"tcp.quantisation": '"round_down"'}),
        ("2 GiB instead of 2 GB", {"flow.size": "2 GiB"}),
    )
    return changed_alone(
        lab,
        "kelly2003/bulk",
        [
            *_same("Standard TCP", base | {"flow.cc": "reno"}, changes),
            *_same("Scalable TCP", base | {"flow.cc": '{ name = "scalable", a = 0.02 }'}, changes),
            (
                "a = 0.01 instead of 0.02",
                "Scalable TCP",
                base | {"flow.cc": '{ name = "scalable", a = 0.02 }'},
                {"flow.cc": "scalable"},
            ),
        ],
        [GOODPUT, LOSS],
        lab.pick(2, 1),
    )


@experiment(
    "ltcp2003/sensitivity", "What the unpublished choices change: one flow, 100 Mbit/s, 100 ms", "ltcp2003/single"
)
def ltcp2003(lab: Lab) -> Report:
    """The point of Figure 5 at 100 Mbit/s."""
    base = {"path.rate": "100 Mbit/s", "duration": lab.pick("1200 s", "300 s"), "measure.from": "100 s"}
    changes = (
        TEN,
        DELAYED,
        ("packets of 1500 bytes", {"tcp.packet": "1500 B"}),
        ("limited slow start", {"flow.slow_start": "limited"}),
        ("a queue of the product instead of 50 packets", {"path.buffer": "100% bdp"}),
    )
    systems = {"Standard TCP": "reno", "LTCP": "ltcp", "HighSpeed TCP": "hstcp"}
    points = [one for name, cc in systems.items() for one in _same(name, base | {"flow.cc": cc}, changes)]
    return changed_alone(lab, "ltcp2003/single", points, [GOODPUT, LOSS], 1)


@experiment(
    "nabeshima2004/sensitivity",
    "What the unpublished choices change: two flows, 100 Mbit/s, 100 ms",
    "nabeshima2004/convergence",
)
def nabeshima2004(lab: Lab) -> Report:
    """The point of Figure 7 at 100 Mbit/s."""
    base = {"path.rate": "100 Mbit/s", "duration": "400 s"}
    changes = (
        TEN,
        DELAYED,
        ("bursts of any length, instead of three", {"tcp.burst_limit": "1000000"}),
        ("slow start without a limit", {"flow.slow_start": "standard"}),
        ("access links of 1 Gbit/s", {"path.access_rate": "1 Gbit/s"}),
    )
    points = [
        one
        for name, cc in (("HighSpeed TCP", "hstcp"), ("with the mechanism", "hstcp-fc"))
        for one in _same(name, base | {"flow.cc": cc}, changes)
    ]
    share = declared("Summary", "fair_share_s")
    return changed_alone(lab, "nabeshima2004/convergence", points, [share, GOODPUT], lab.pick(15, 2))


@experiment(
    "tekala2006/sensitivity",
    "What the unpublished choices change: three flows, T_base 30 ms, 1 Gbit/s",
    "tekala2006/fairness",
)
def tekala2006(lab: Lab) -> Report:
    """The first point of Tables 1 and 2."""
    jain = Metric("Jain's index", "", column="jain")
    together = '{ uniform = ["0 s", "10 ms"] }'
    base = {"flow.start": together}
    changes = (
        TEN,
        DELAYED,
        ("starts within 1 s instead of 10 ms", {"flow.start": '{ uniform = ["0 s", "1 s"] }'}),
        ("initial ssthresh of 500 segments", {"tcp.initial_ssthresh": "500"}),
        ("half of the buffer", {"path.buffer": "50% bdp"}),
        ("without the legacy window", {"flow.cc": '{ name = "scalable", lwnd = 1.0 }'}),
    )
    points = [
        *_same("DropTail", base | {"path.queue": "droptail"}, changes),
        *_same("adaptive RED", base | {"path.queue": "adaptive-red"}, changes),
    ]
    return changed_alone(lab, "tekala2006/fairness", points, [jain, GOODPUT], lab.pick(5, 1))
