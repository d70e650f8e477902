"""The experiments of the thesis' chapters 3, 5, 6 and 9: their readers and their set-ups."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from elephan.studies.judge import Time, dead
from elephan.studies.reproduce.declare import Reading, reader
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.li2006 import chapter6, chapter9_1, chapter9_2, chapter9_3
from elephan.studies.reproduce.li2006.chapter9_1 import DATATAG, FOUR, H_TCP, MB_NG, SCALABLE, STANDARD, shared


def run_of(*goodputs_mbit_s: float, counts: Sequence[int] = ()) -> SimpleNamespace:
    flows = [SimpleNamespace(goodput_bit_s=rate * 1e6) for rate in goodputs_mbit_s]
    scenario = SimpleNamespace(document={"flow": [{"count": count} for count in counts]})
    return SimpleNamespace(summary=SimpleNamespace(flows=flows), scenario=scenario)


def test_the_hosts_are_those_of_table_b2(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    near, far = (lab.scenario(arm).document["host"] for arm in (MB_NG, DATATAG))
    assert (near["txqueuelen"], far["txqueuelen"]) == (2000, 50000)
    # 1 GHz for 1 Gbit/s: the time of a packet is in inverse proportion to the clock, 2.0 and 2.2 GHz.
    assert float(near["data"].split()[0]) / float(far["data"].split()[0]) == pytest.approx(2.2 / 2.0, rel=0.02)


@pytest.mark.parametrize("system", FOUR)
def test_groups_of_flows_are_those_of_a_scenario(system: str, tmp_path: Path) -> None:
    arm = DATATAG.set({"flow": chapter9_1.flows((STANDARD, 3), (system, 2)), **chapter9_1.cbr(200)})
    document = Lab(tmp_path).scenario(arm, 7).document
    assert [flow.get("count", 1) for flow in document["flow"]] == [3, 2]
    assert [one["rate"] for one in document["cbr"]] == ["200.6 Mbit/s"]
    assert document["seed"] == 7


def test_impact_is_what_the_others_lose() -> None:
    impact = reader(chapter9_1.READINGS["others"], "logarithm")
    alone = run_of(300, 300, 300, counts=(2, 1))
    assert impact(alone, run_of(150, 150, 600, counts=(2, 1))) == math.log(2)
    assert impact(alone, run_of(0, 0, 900, counts=(2, 1))) is None
    standard, other = (chapter9_1.arm("", {"system": name, "new": 1, "all": 3}) for name in (STANDARD, H_TCP))
    assert standard != other
    assert dict(standard.settings)["flow"].count("reno") == 2


def test_flows_share_the_machines_of_table_b2(tmp_path: Path) -> None:
    """33 flows on six machines: each has two elevenths of one."""
    assert shared(DATATAG, 6) == DATATAG
    document = Lab(tmp_path).scenario(shared(DATATAG, 33)).document
    assert document["host"]["data"] == "19.8 us"
    assert document["host"]["max_backlog"] == 545
    assert document["path"]["access_rate"] == "177.273 Mbit/s"
    assert Lab(tmp_path).scenario(shared(MB_NG, 6)).document["host"]["ack"] == "8 us"


def test_a_stray_flow_is_compared_with_the_others() -> None:
    assert chapter9_1.stray(run_of(100, 200, 100, 100)) == 2.0
    assert chapter9_1.stray(run_of(0, 200)) is None


def test_an_epoch_goes_from_one_reduction_to_the_next() -> None:
    frame = pl.DataFrame(
        {
            "congestion_events": [0, 0, 1, 1, 1, 2],
            "cwnd_segments": [90.0, 100.0, 80.0, 90.0, 100.0, 50.0],
            "ssthresh_segments": [1e6, 1e6, 80.0, 80.0, 80.0, 50.0],
        }
    )
    run = SimpleNamespace(flows=frame)
    assert [chapter6.back_off(run, epoch) for epoch in (1, 2, 3, -3)] == [0.8, 0.5, None, None]


def test_growth_is_that_of_the_last_whole_epoch() -> None:
    """A window of 10 segments that grows by 1, 2 and 3 segments a round trip in three thirds."""
    grown = [10.0, 11, 12, 13, 15, 17, 19, 22, 25, 28]
    frame = pl.DataFrame(
        {
            "time_s": [float(time) for time in range(15)],
            "srtt_s": [1.0] * 15,
            "congestion_events": [0] + [1] * 13 + [2],
            "cwnd_segments": [20.0, 10, 10, 10, *grown, 14],
        }
    )
    run = SimpleNamespace(flows=frame)
    assert chapter6.grown(run) == pytest.approx([1, 2, 3])
    assert chapter6.grown(SimpleNamespace(flows=frame.head(13))) is None


def test_the_smallest_window_is_over_a_known_threshold() -> None:
    frame = pl.DataFrame(
        {
            "flow": [0, 0, 0],
            "time_s": [1.0, 2.0, 3.0],
            "cwnd_segments": [1.0, 50.0, 80.0],
            "ssthresh_segments": [None, 100.0, 100.0],
        }
    )
    run = SimpleNamespace(flows=frame, summary=SimpleNamespace(from_s=0.0))
    assert chapter9_2._least(run) == 0.5
    deeper = reader(Reading(chapter9_2._least), "less")
    assert deeper(run, run) == 0
    run.flows = frame.head(1)
    assert chapter9_2._least(run) is None
    assert deeper(run, run) is None


def test_a_window_that_never_fills_the_path_is_censored() -> None:
    """622 Mbit/s times 180 ms are 9330 packets."""
    frame = pl.DataFrame({"flow": [0, 0], "time_s": [100.0, 200.0], "cwnd_segments": [9000.0, 9400.0]})
    scenario = SimpleNamespace(document={"path": {"rtt": "180 ms"}})
    run = SimpleNamespace(flows=frame, scenario=scenario, summary=SimpleNamespace(to_s=300.0))
    assert chapter9_3.opened(run) == Time(200.0, seen=True)
    run.flows = frame.head(1)
    assert chapter9_3.opened(run) == Time(300.0, seen=False)


def test_a_run_without_retransmissions_counts_as_one_with_a_packet() -> None:
    def run(retransmitted: int) -> SimpleNamespace:
        flow = SimpleNamespace(retransmitted_bytes=retransmitted, goodput_bit_s=1e8)
        return SimpleNamespace(summary=SimpleNamespace(flows=[flow]))

    assert reader(Reading(chapter9_3.overhead), "decades")(run(15000), run(0)) == pytest.approx(1)


def test_classes_are_assured_what_they_are_asked_for(tmp_path: Path) -> None:
    beside = {"system": SCALABLE, "share": 90}
    document = Lab(tmp_path).scenario(chapter9_2.assured("", {**beside, "how": "without"})).document
    first, second = document["path"]["queue"]["class"]
    assert (first["weight"], first["buffer_share"], second["weight"]) == (90, 0.9, 10)
    assert document["tcp"]["initial_ssthresh"] == 9000
    free = Lab(tmp_path).scenario(chapter9_2.assured(chapter9_2.UNLIMITED, beside)).document
    assert "initial_ssthresh" not in free["tcp"]


def test_a_flow_with_a_class_of_its_own_is_dead_beside_full_datagrams(tmp_path: Path) -> None:
    """The datagrams fill the link, but a tenth of it at least is the flow's."""
    scenario = Lab(tmp_path).scenario(chapter9_2.assured("", {"system": STANDARD, "share": 90}))

    def run(goodput_bit_s: float) -> SimpleNamespace:
        summary = SimpleNamespace(flows=[SimpleNamespace(goodput_bit_s=goodput_bit_s, timeouts=1)], from_s=30, to_s=90)
        return SimpleNamespace(scenario=scenario, summary=summary, provenance={})

    assert "carried 1 Mbit/s" in dead(run(1e6))
    assert not dead(run(1e8))
