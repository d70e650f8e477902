"""The experiments of the thesis' chapters 3, 5, 6 and 9: their readers and their set-ups."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.li2006 import chapter5, chapter6, chapter9_1, chapter9_2
from elephan.studies.reproduce.li2006.chapter9_1 import DATATAG, FOUR, H_TCP, MB_NG, SCALABLE, STANDARD, Mixed


def run_of(*goodputs_mbit_s: float, **more: object) -> SimpleNamespace:
    flows = [SimpleNamespace(goodput_bit_s=rate * 1e6) for rate in goodputs_mbit_s]
    return SimpleNamespace(summary=SimpleNamespace(flows=flows, **more))


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
    mixed = Mixed(DATATAG, H_TCP, new=1, all=3)
    assert mixed.impact(run_of(300, 300, 300), run_of(150, 150, 600)) == 2.0
    standard, other = mixed.arms
    assert standard != other
    assert dict(standard.settings)["flow"].count("reno") == 2


def test_the_loss_rate_of_a_run_refers_its_goodput() -> None:
    """Four times the losses halve the goodput of equation 5.8, so that goodput stands for twice as much."""
    link = SimpleNamespace(lost=3, dropped=1, offered=10_000_000)
    assert chapter5.referred(run_of(225, links=[link])) == pytest.approx(450)


def test_an_epoch_goes_from_one_reduction_to_the_next() -> None:
    frame = pl.DataFrame(
        {
            "congestion_events": [0, 0, 1, 1, 1, 2],
            "cwnd_segments": [90.0, 100.0, 80.0, 90.0, 100.0, 50.0],
            "ssthresh_segments": [1e6, 1e6, 80.0, 80.0, 80.0, 50.0],
        }
    )
    run = SimpleNamespace(flows=frame)
    assert [chapter6.back_off(run, epoch) for epoch in (1, 2)] == [0.8, 0.5]


def test_classes_are_assured_what_they_are_asked_for(tmp_path: Path) -> None:
    document = Lab(tmp_path).scenario(chapter9_2.assured(SCALABLE, 90, moderate=False)).document
    first, second = document["path"]["queue"]["class"]
    assert (first["weight"], first["buffer_share"], second["weight"]) == (90, 0.9, 10)
    assert document["tcp"]["initial_ssthresh"] == 9000
