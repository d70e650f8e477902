"""What the choices that the sources leave open change: each changed alone, for one point of a publication.

The choices for the thesis are with its tables.
"""

from collections.abc import Mapping, Sequence

from elephan.api.metrics import Metric, declared
from elephan.base.table import Head, of_markdown, text_heads
from elephan.studies.judge import Arm
from elephan.studies.lab import UnsuitableError
from elephan.studies.reproduce.kelly2003 import bulk
from elephan.studies.reproduce.lab import Lab, Report, experiment
from elephan.studies.reproduce.tekala2006 import arm_of
from elephan.studies.statistics import Estimate

# What is changed, the system, its arm, and the settings that are changed.
Change = tuple[str, str, Arm, Mapping[str, str]]

GOODPUT, LOSS = declared("Summary", "goodput_bit_s"), declared("Summary", "loss_rate")
DELAYED = ("an ACK for every second packet", {"tcp.delayed_ack.segments": "2"})
TEN = ("initial window of 10 segments", {"tcp.initial_window": "10"})


def changed_alone(lab: Lab, changes: Sequence[Change], metrics: Sequence[Metric], repeats: int) -> Report:
    """The metrics before and after each change, with 95 % intervals over `repeats`, as a table in a note of the report.

    What the engine of the laboratory cannot run is left out.
    """
    report, suitable, refused = Report(lab), [], []
    for what, system, arm, change in changes:
        pair = (arm, arm.set(dict(change)))
        try:
            for one in pair:
                lab.scenario(one)
            suitable.append((what, system, pair))
        except UnsuitableError:
            refused.append(f"{what} ({system})")
    found = lab.runs([arm for *_, pair in suitable for arm in pair], repeats)
    rows = []
    for (what, system, _), *both in zip(suitable, found[::2], found[1::2], strict=True):
        read = ([Estimate.of([metric.read(run.summary) for run in runs]).text() for runs in both] for metric in metrics)
        rows.append([what, system, *map(" → ".join, read)])
    heads = [*text_heads("choice", "system"), *(Head(metric.name, metric.short_unit) for metric in metrics)]
    report.notes.append(of_markdown(heads, rows).to_markdown().rstrip())
    if refused:
        report.notes.append(f"Not on this engine: {', '.join(refused)}.")
    return report


def _each(systems: Mapping[str, Arm], changes: Sequence[tuple[str, dict[str, str]]]) -> list[Change]:
    return [(what, system, arm, change) for system, arm in systems.items() for what, change in changes]


@experiment(
    "kelly2003/sensitivity",
    "What the unpublished choices change: two connections with 2 GB transfers, 2.4 Gbit/s, 120 ms",
    "kelly2003/bulk",
    quick=False,
)
def kelly2003(lab: Lab) -> Report:
    """The point of Table 3 with two flows, for half of its time."""
    base = bulk(2).set({"duration": lab.pick("600 s", "60 s")})
    scalable = base.set({"flow.cc": '{ name = "scalable", a = 0.02 }'})
    changes = (
        TEN,
        ("the stack of today's RFCs, but ACKs of one segment", {"tcp.profile": "rfc", "tcp.byte_counting": "per_ack"}),
        ("ACKs count what they acknowledge", {"tcp.byte_counting": "{ abc = { L = 2 } }"}),
        ("windows rounded up instead of down", {"tcp.quantisation": "round_up"}),
        ("2 GiB instead of 2 GB", {"flow.size": "2 GiB"}),
        ("device queues without a limit", {"host": "{}"}),
    )
    systems = {"Standard TCP": base.set({"flow.cc": "reno"}), "Scalable TCP": scalable}
    less: Change = ("a = 0.01 instead of 0.02", "Scalable TCP", scalable, {"flow.cc": "scalable"})
    return changed_alone(lab, [*_each(systems, changes), less], [GOODPUT, LOSS], 2)


@experiment(
    "ltcp2003/sensitivity", "What the unpublished choices change: one flow, 100 Mbit/s, 100 ms", "ltcp2003/single"
)
def ltcp2003(lab: Lab) -> Report:
    """The point of Figure 5 at 100 Mbit/s."""
    base = Arm("ltcp2003/single").set(
        {"path.rate": "100 Mbit/s", "duration": lab.pick("1200 s", "300 s"), "measure.from": "100 s"}
    )
    changes = (
        TEN,
        DELAYED,
        ("packets of 1500 bytes", {"tcp.packet": "1500 B"}),
        ("limited slow start", {"flow.slow_start": "limited"}),
        ("a queue of the product", {"path.buffer": "100% bdp"}),
    )
    names = {"Standard TCP": "reno", "LTCP": "ltcp", "HighSpeed TCP": "hstcp"}
    systems = {name: base.set({"flow.cc": cc}) for name, cc in names.items()}
    return changed_alone(lab, _each(systems, changes), [GOODPUT, LOSS], 1)


@experiment(
    "nabeshima2004/sensitivity",
    "What the unpublished choices change: two flows, 100 Mbit/s, 100 ms",
    "nabeshima2004/convergence",
)
def nabeshima2004(lab: Lab) -> Report:
    """The point of Figure 7 at 100 Mbit/s."""
    base = Arm("nabeshima2004/convergence").set({"path.rate": "100 Mbit/s", "duration": "400 s"})
    changes = (
        TEN,
        DELAYED,
        ("bursts of any length, instead of three", {"tcp.burst_limit": "1000000"}),
        ("slow start without a limit", {"flow.slow_start": "standard"}),
        ("access links of 1 Gbit/s", {"path.access_rate": "1 Gbit/s"}),
    )
    names = {"HighSpeed TCP": "hstcp", "with the mechanism": "hstcp-fc"}
    systems = {name: base.set({"flow.cc": cc}) for name, cc in names.items()}
    share = declared("Summary", "fair_share_s")
    return changed_alone(lab, _each(systems, changes), [share, GOODPUT], lab.pick(15, 2))


@experiment(
    "tekala2006/sensitivity",
    "What the unpublished choices change: three flows, T_base 30 ms, 1 Gbit/s",
    "tekala2006/fairness",
)
def tekala2006(lab: Lab) -> Report:
    """The first point of Tables 1 and 2, with limited slow start."""
    jain = Metric("Jain's index", "", column="jain")
    changes = (
        ("unlimited slow start", {"flow.slow_start": "standard"}),
        TEN,
        DELAYED,
        ("starts within 1 s instead of 10 ms", {"flow.start": '{ uniform = ["0 s", "1 s"] }'}),
        ("initial ssthresh of 500 segments", {"tcp.initial_ssthresh": "500"}),
        ("half of the buffer", {"path.buffer": "50% bdp"}),
        ("without the legacy window", {"flow.cc": '{ name = "scalable", lwnd = 1.0 }'}),
        ("a least timeout of 1 s instead of 200 ms", {"tcp.rto_min": "1 s"}),
    )
    queues = {"DropTail": "droptail", "adaptive RED": "adaptive-red"}
    systems = {name: arm_of(30, 3, queue, "limited") for name, queue in queues.items()}
    return changed_alone(lab, _each(systems, changes), [jain, GOODPUT], lab.pick(5, 2))
