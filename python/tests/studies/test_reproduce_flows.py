"""What is read from the runs of Layered TCP and of the convergence of HighSpeed TCP."""

from types import SimpleNamespace

import polars as pl
import pytest

from elephan import _core
from elephan.studies.judge import Time, Verdict
from elephan.studies.reproduce import ltcp2003, nabeshima2004
from elephan.studies.reproduce.declare import reached
from elephan.studies.reproduce.lab import Lab


def flows(**series):
    """A run of one sample for each second after 100 s, of these columns; a list for each flow."""
    frames = []
    for flow in range(len(next(iter(series.values())))):
        columns = {name: values[flow] for name, values in series.items()}
        n = len(next(iter(columns.values())))
        frames.append(pl.DataFrame({"flow": [flow] * n, "time_s": [101.0 + i for i in range(n)], **columns}))
    document = {"path": {"rate": "1 Gbit/s"}, "flow": [{"count": len(frames) - 1}, {}]}
    summary = SimpleNamespace(to_s=100.0 + max(len(one) for one in frames), flows=())
    return SimpleNamespace(flows=pl.concat(frames), scenario=SimpleNamespace(document=document), summary=summary)


def test_convergence_is_of_the_throughput_over_five_seconds():
    share = 1e9 * 1448 / 1500 / 2
    last = [0.0] * 5 + [2.4 * share] * 2 + [0.0] * 3 + [1.1 * share] * 5
    # One second, or two, above the share are not five.
    assert nabeshima2004.convergence(flows(goodput_bit_s=[[0.0] * 15, last])) == Time(15.0, seen=True)
    assert nabeshima2004.convergence(flows(goodput_bit_s=[[0.0] * 10, last[:10]])) == Time(10.0, seen=False)
    assert nabeshima2004.convergence(flows(goodput_bit_s=[[0.0] * 15, last]), within_s=10) == Time(10.0, seen=False)


def test_times_of_which_hardly_any_converged_can_be_drawn():
    never, once = ([[0.0] * 10, [rate] * 10] for rate in (0.0, 2.4 * 1e9 * 1448 / 1500 / 2))
    repeats = [flows(goodput_bit_s=goodputs) for goodputs in [once] + [never] * 14]
    figure = nabeshima2004._curves({name: [repeats] for name in nabeshima2004.SYSTEMS}, [2], "flows")
    assert [label.get_text() for label in figure.axes[0].get_legend().get_texts()] == list(nabeshima2004.SYSTEMS)


def test_convergence_by_slow_start_is_before_the_second_reduction():
    share = 1e9 * 1448 / 1500 / 2
    last = [0.0] * 5 + [1.1 * share] * 5
    for events, by_slow_start in (([0] * 5 + [1] * 5, True), ([0] * 5 + [2] * 5, False)):
        run = flows(goodput_bit_s=[[0.0] * 10, last], congestion_events=[[9] * 10, events])
        assert nabeshima2004._at_once(run) is by_slow_start


def test_a_halving_is_told_from_several_reductions_of_high_speed_tcp():
    # 0.78 of 0.78 in one second, then one half, then 0.75 and one half in one second.
    windows, events = [7000.0, 4259.0, 2200.0, 2200.0, 840.0], [0, 2, 3, 3, 5]
    assert nabeshima2004._halvings(flows(cwnd_segments=[windows], congestion_events=[events])) == [3.0, 5.0]


def test_synchronisation_is_the_share_of_the_flows_that_fall_together():
    steady, falls = [100.0] * 12, [100.0] * 5 + [70.0] * 7
    both = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, falls]))
    alone = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, steady]))
    apart = nabeshima2004.synchronisation(flows(cwnd_segments=[falls, [100.0] * 9 + [70.0] * 3]))
    assert (both, alone, apart) == (1.0, 0.5, 0.5)
    assert nabeshima2004.synchronisation(flows(cwnd_segments=[steady, steady])) is None
    # Falls a second apart do not make one epoch of ten seconds.
    chain = [[100.0 * 0.7 ** (i // 2) for i in range(10)], [100.0] + [100.0 * 0.7 ** (i // 2) for i in range(9)]]
    assert nabeshima2004.synchronisation(flows(cwnd_segments=chain)) == 1.0
    # What is beyond the time of the runs with background does not count.
    late = [[100.0] * 301 + [70.0]] * 2
    assert nabeshima2004.synchronisation(flows(cwnd_segments=late)) is None


def test_the_inferred_queue_follows_from_the_printed_utilisation():
    top, product = 1e3 / 1.04, 1e9 * 0.1 / 8320
    used = _core.utilisation_of(0.5, ltcp2003.INFERRED / product) * top
    assert used == pytest.approx(836.71, abs=0.1)


def test_utilisation_and_loss_are_those_of_whole_epochs():
    run = flows(cwnd_segments=[[9.0] * 8], congestion_events=[[0, 1, 1, 1, 2, 2, 2, 2]])
    run.queues = pl.DataFrame(
        {
            "link": ["bottleneck"] * 8,
            "time_s": [101.0 + i for i in range(8)],
            "utilisation": [0.0, 1.0, 0.5, 0.7, 0.9, 0.0, 0.0, 0.0],
            "offered": [0, 500, 600, 700, 1000, 1100, 1200, 1300],
            "dropped": [0, 50, 50, 50, 51, 51, 51, 51],
        }
    )
    assert ltcp2003.steady_mbit_s(run) == pytest.approx(0.7e3 / 1.04)
    assert ltcp2003.steady_loss_percent(run) == pytest.approx(100 / 500)
    run.flows = run.flows.with_columns(congestion_events=pl.lit(1))
    assert ltcp2003.steady_mbit_s(run) is None
    assert ltcp2003.steady_loss_percent(run) is None


def climbs(windows, to_s=10.0):
    return SimpleNamespace(
        flows=pl.DataFrame({"time_s": [0.1 * i for i in range(len(windows))], "cwnd_segments": windows}),
        summary=SimpleNamespace(to_s=to_s),
    )


def test_a_flow_that_never_reaches_the_optimal_window_is_later():
    quick, slow = climbs([10.0, ltcp2003.OPTIMAL]), climbs([10.0, 20.0])
    assert reached(ltcp2003.OPTIMAL, slow) == Time(10.0, seen=False)
    assert ltcp2003._first(quick, slow) == 1.0
    assert ltcp2003._first(slow, quick) == -1.0
    assert ltcp2003._first(slow, slow) is None


def test_a_window_that_is_not_regained_counts_at_its_pace():
    whole, half = [1000.0, 800.0, 900.0, 1000.0], [1000.0, 800.0, 850.0, 900.0]
    assert ltcp2003._recovered(climbs(whole)) == pytest.approx(1000 / 2 / 2)
    assert ltcp2003._recovered(climbs(half)) == pytest.approx(1000 / 2 / 4)


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
    points = ({"system": nabeshima2004.NEW, "flows": 6, "rate": 250, "scenario": place} for place in places)
    first, second = (lab.scenario(nabeshima2004.arm("", at)).document for at in points)
    assert first["flow"] == second["flow"][:2]
    assert first["path"] == second["path"]
