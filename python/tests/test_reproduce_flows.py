"""What is read from the runs of Layered TCP and of the convergence of HighSpeed TCP."""

from types import SimpleNamespace

import polars as pl
import pytest

from elephan import _core
from elephan.studies.reproduce import ltcp2003, nabeshima2004
from elephan.studies.reproduce.judge import Time, Verdict
from elephan.studies.reproduce.lab import Lab


def flows(**series):
    """A run of one sample for each second after 100 s, of these columns; a list for each flow."""
    frames = []
    for flow in range(len(next(iter(series.values())))):
        columns = {name: values[flow] for name, values in series.items()}
        n = len(next(iter(columns.values())))
        frames.append(pl.DataFrame({"flow": [flow] * n, "time_s": [101.0 + i for i in range(n)], **columns}))
    document = {"path": {"rate": "1 Gbit/s"}}
    summary = SimpleNamespace(to_s=100.0 + max(len(one) for one in frames), flows=())
    return SimpleNamespace(flows=pl.concat(frames), scenario=SimpleNamespace(document=document), summary=summary)


def test_convergence_is_of_the_throughput_over_five_seconds():
    share = 1e9 * 1448 / 1500 / 2
    last = [0.0] * 5 + [2.4 * share] * 2 + [0.0] * 3 + [1.1 * share] * 5
    # One second, or two, above the share are not five.
    assert nabeshima2004.convergence(flows(goodput_bit_s=[[0.0] * 15, last]), 2) == Time(15.0, seen=True)
    assert nabeshima2004.convergence(flows(goodput_bit_s=[[0.0] * 10, last[:10]]), 2) == Time(10.0, seen=False)


def test_synchronisation_is_the_share_of_the_flows_that_fall_together():
    steady, falls = [100.0] * 12, [100.0] * 5 + [70.0] * 7
    both = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, falls]), 2)
    alone = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, steady]), 2)
    apart = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, [100.0] * 9 + [70.0] * 3]), 2)
    assert (both, alone, apart) == (1.0, 0.5, 0.5)
    assert nabeshima2004.synchronisation(flows(cwnd_segments=[steady, steady]), 2) is None


def test_the_inferred_queue_follows_from_the_printed_utilisation():
    top, product = 1e3 / 1.04, 1e9 * 0.1 / 8320
    used = _core.utilisation_of(0.5, ltcp2003.INFERRED / product) * top
    assert used == pytest.approx(836.71, abs=0.1)


def test_shares_are_read_from_the_second_flow_on():
    run = flows(goodput_bit_s=[[8e8] * 20 + [5.2e8] * 40, [2e8] * 20 + [4.8e8] * 40])
    run.summary.flows = (None, SimpleNamespace(start_s=100.0))
    time = ltcp2003._rounds(run)
    # The mean over 10 s is within 55/45 after nine of its seconds are.
    assert time == Time(290.0, seen=True)
    assert ltcp2003._closer(run) < -0.1


def test_formulas_agree_with_print_except_for_the_supporting_loss_rate(tmp_path):
    lab = Lab(tmp_path, quick=True)
    told = {one.group: one.verdict for one in ltcp2003.section_2(lab).comparisons}
    assert [group for group, verdict in told.items() if verdict != Verdict.AGREES] == [
        "supporting loss rate over Standard TCP's, over K - 1"
    ]
    assert {one.verdict for one in nabeshima2004.section_2(lab).comparisons} == {Verdict.AGREES}
    assert lab.made == 0


def test_background_leaves_the_starts_of_the_flows_as_they_are(tmp_path):
    lab, places = Lab(tmp_path), (nabeshima2004.ALONE, nabeshima2004.BACKGROUND)
    first, second = (lab.scenario(nabeshima2004._arm("hstcp-fc", 6, 250, one)).document for one in places)
    assert first["flow"] == second["flow"][:2]
    assert first["path"] == second["path"]
