"""The experiments on Scalable TCP: Kelly 2003, Tekala and Szabó 2006, and what their unpublished choices change."""

from types import SimpleNamespace

import polars as pl
import pytest

from elephan.studies.judge import Arm, Verdict, dead
from elephan.studies.reproduce import kelly2003, tekala2006
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.sensitivity import GOODPUT, TEN, changed_alone


def course(*windows):
    return SimpleNamespace(flows=pl.DataFrame({"cwnd_segments": [float(w) for w in windows]}))


def test_a_recovery_begins_after_the_round_trip_of_its_repair():
    def after(round_trips, *windows):
        return kelly2003._after_loss(lambda _: round_trips, course(*windows))

    windows = (10, 20, 15, 15, 18, 21)
    assert [after(n, *windows) for n in (0, 1, 2)] == pytest.approx([15 / 20, 18 / 20, 21 / 20])
    assert after(3, *windows) is None
    assert after(0, 10, 11, 12, 13) is None
    assert kelly2003._after_loss(lambda before: 0.1 * before, course(*windows)) == pytest.approx(21 / 20)
    assert kelly2003._growth(course(10, 15, 20), 2) == 2.0


@pytest.mark.parametrize(("flows", "of_machines"), [(1, [1]), (2, [1, 1]), (4, [1] * 4), (8, [2] * 4), (16, [4] * 4)])
def test_connections_are_distributed_evenly_over_four_machines(tmp_path, flows, of_machines):
    column = kelly2003.COLUMNS[kelly2003.SCALABLE]
    document = Lab(tmp_path).scenario(kelly2003.bulk(flows).set(column)).document
    assert [flow["count"] for flow in document["flow"]] == of_machines
    assert [flow["from"] for flow in document["flow"]] == [f"server {k + 1}" for k in range(len(of_machines))]
    assert all(flow["cc"]["name"] == "scalable" and flow["cc"]["a"] == 0.02 for flow in document["flow"])


def test_the_formulas_of_kelly_agree_but_for_its_misprints(tmp_path):
    report = kelly2003.table_1(Lab(tmp_path, quick=True))
    assert {one.verdict for one in report.comparisons} == {Verdict.AGREES}


def test_a_device_queue_limits_a_flow_and_does_not_make_it_dead(tmp_path):
    """One flow on a link of 2.4 Gbit/s has a machine of 1 Gbit/s, and with 100 packets in its device's queue 60 Mbit/s."""
    lab = Lab(tmp_path)
    short = {"duration": "120 s"}
    arms = [
        Arm(kelly2003.BULK).set({**kelly2003.COLUMNS[system], **short})
        for system in (kelly2003.UNMODIFIED, kelly2003.MODIFIED)
    ]
    done = []
    for (run,) in lab.runs(arms, 1):
        assert dead(run) == ""
        done.append(kelly2003.carried(run)[0])
    assert 3 < done[0] < done[1]


def test_round_trip_times_and_slopes():
    assert tekala2006.rtts_ms(30, 3) == [30, 56, 82]
    rtts = tekala2006.rtts_ms(60, 5)
    flows = [SimpleNamespace(goodput_bit_s=1e9 / rtt, srtt_mean_s=rtt / 1e3, cwnd_mean_segments=7.0) for rtt in rtts]
    run = SimpleNamespace(summary=SimpleNamespace(flows=flows))

    def slope(of):
        return tekala2006._slope(of, {"base": 60, "n": 5}, run)

    assert slope(lambda flow, rtt: (rtt, flow.goodput_bit_s)) == pytest.approx(-1)
    assert slope(lambda flow, rtt: (rtt, flow.cwnd_mean_segments)) == pytest.approx(0)
    assert tekala2006._first(run) == pytest.approx(flows[0].goodput_bit_s / sum(1e9 / rtt for rtt in rtts))
    # A flow with nothing is left out, and a single one has no slope.
    flows[1].goodput_bit_s, flows[2].srtt_mean_s = 0.0, None
    assert slope(lambda flow, _: (flow.srtt_mean_s, flow.goodput_bit_s)) == pytest.approx(-1)
    for flow in flows[1:]:
        flow.goodput_bit_s = 0.0
    assert slope(lambda flow, rtt: (rtt, flow.goodput_bit_s)) is None


def test_the_sets_differ_by_slow_start_or_by_the_buffer(tmp_path):
    lab = Lab(tmp_path)
    limited, unlimited, long = (
        lab.scenario(tekala2006.arm_of(30, 3, "adaptive-red", *choices)).document
        for choices in tekala2006.SETS.values()
    )
    assert (limited["path"].pop("buffer"), long["path"].pop("buffer")) == ("100% bdp", "6833 packets")
    assert limited == long
    unlimited["path"].pop("buffer")
    kinds = [{flow.pop("slow_start") for flow in document["flow"]} for document in (limited, unlimited)]
    assert kinds == [{"limited"}, {"standard"}]
    assert limited == unlimited


def test_each_choice_is_changed_alone(tmp_path):
    arm = Arm("tekala2006/window").set({"path.rate": "10 Mbit/s", "path.rtt": "20 ms", "duration": "5 s"})
    report = changed_alone(Lab(tmp_path), [(TEN[0], "Scalable TCP", arm, TEN[1])], [GOODPUT], 2)
    (note,) = report.notes
    assert "| choice | system | goodput (Mbit/s) |" in note
    assert "| initial window of 10 segments | Scalable TCP | 9." in note
    assert report.judgements == []
