"""Chapter 8 of the thesis: the grid as arms of sets of unpublished choices, and what is read from runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from elephan.studies.reproduce.judge import Arm
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.li2006.cells import (
    FRIENDLY,
    LARGE,
    LATER,
    OTHER_FIRST,
    RATES,
    RTTS,
    SEGMENT_BIT,
    SMALL,
    SYMMETRIC,
    WHOLE,
    by_time,
    cell,
    converged,
    fairer,
    fairness,
    late,
    late_retransmits,
    mean_of,
    more_overhead,
    overhead,
    queue_cell,
    share,
    starting,
    until_converged,
    whole,
)
from elephan.studies.reproduce.li2006.chapter8_tables import SCENARIOS, TABLES, _rows
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, SETS, SYSTEMS


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "runs")


def test_sets_share_the_arms_that_their_choices_do_not_concern(lab: Lab) -> None:
    def arms(system: str) -> list[Arm]:
        return [cell(lab, SYMMETRIC, system, 250, 82, chosen) for chosen in SETS]

    # Standard TCP, FAST and Scalable TCP depend only on how ACKs are counted, BicTCP and H-TCP on every choice.
    assert [len(set(arms(name))) for name in ("Standard TCP", "FAST", "Scalable TCP", "BicTCP", "H-TCP")] == [
        2,
        2,
        2,
        4,
        4,
    ]


def test_equal_round_trip_times_are_the_symmetric_cell(lab: Lab) -> None:
    same = {cell(lab, scenario, "BicTCP", 100, 162) for scenario in (SYMMETRIC, SMALL, LARGE)}
    assert len(same) == 1
    assert cell(lab, FRIENDLY, "Standard TCP", 250, 82) == cell(lab, SYMMETRIC, "Standard TCP", 250, 82)


def test_sets_that_differ_in_one_thing(lab: Lab) -> None:
    def start(scenario: str, system: str, chosen: str, flow: int = 1) -> str:
        return dict(cell(lab, scenario, system, 250, 82, chosen).settings)[f"flow.{flow}.start"]

    assert start(SYMMETRIC, "FAST", AS_PRINTED) != start(SYMMETRIC, "FAST", LATER) == start(SMALL, "FAST", LATER)
    # Nothing else starts later.
    assert cell(lab, SYMMETRIC, "BicTCP", 250, 82, LATER) == cell(lab, SYMMETRIC, "BicTCP", 250, 82)
    assert cell(lab, FRIENDLY, "FAST", 250, 82, LATER) == cell(lab, FRIENDLY, "FAST", 250, 82)
    assert queue_cell(lab, "FAST", 5, LATER) != queue_cell(lab, "FAST", 5)
    swapped = cell(lab, FRIENDLY, "BicTCP", 250, 82, OTHER_FIRST)
    assert start(FRIENDLY, "BicTCP", OTHER_FIRST, 0) == start(FRIENDLY, "BicTCP", AS_PRINTED)
    lab.scenario(swapped)
    # Fairness over the whole time is of the same runs.
    read = {name: len(places) for name, places in by_time(lab, lambda _, of: [] if of is late else [None]).items()}  # type: ignore[list-item]
    assert read == dict.fromkeys(SETS, 0) | {WHOLE: 1}


def test_linux_bounds_the_variance_of_the_timeout(lab: Lab) -> None:
    # An ACK delayed by 200 ms at 162 ms is no timeout.
    arms = [cell(lab, scenario, "BicTCP", 10, 22) for scenario in (SYMMETRIC, SMALL, FRIENDLY)]
    for arm in (*arms, queue_cell(lab, "BicTCP", 5), Arm("li2006/response")):
        assert lab.scenario(arm).document["tcp"]["rto_variance_min"] == "200 ms"


def test_tests_take_ten_minutes_to_an_hour(lab: Lab) -> None:
    for scenario in (SYMMETRIC, SMALL, FRIENDLY):
        for system in SYSTEMS:
            for rate in RATES:
                settings = dict(cell(lab, scenario, system, rate, RTTS[3]).settings)
                assert 600 <= float(settings["duration"].removesuffix(" s")) <= 3600
                latest = float(settings["flow.1.start"].split('"')[3].removesuffix(" s"))
                assert latest < float(settings["duration"].removesuffix(" s"))


def test_every_arm_of_the_tables_is_a_scenario(lab: Lab) -> None:
    for chosen in SETS:
        for scenario in SCENARIOS:
            for row in _rows(lab, "8.1", scenario, chosen):
                lab.scenario(row.arms[0])
    lab.scenario(queue_cell(lab, "FAST", 5))


def test_tables_have_every_printed_number(lab: Lab) -> None:
    counts = {
        table: sum(len(_rows(lab, table, s, AS_PRINTED)) for s in (SCENARIOS if table != "8.3" else (SYMMETRIC,)))
        for table in TABLES
    }
    # Scalable TCP has no fairness with equal round-trip times in print, and its convergence is "never".
    assert counts == {"8.1": 24, "8.2": 23, "8.3": 6, "8.4": 24}
    # A printed error is the standard error of five runs.
    standard = next(row for row in _rows(lab, "8.3", SYMMETRIC, AS_PRINTED) if row.system == "Standard TCP")
    assert standard.tolerance == pytest.approx(34, abs=0.5)
    never = next(row for row in _rows(lab, "8.3", SYMMETRIC, AS_PRINTED) if row.system == "Scalable TCP")
    assert never.published is None


def test_readings_of_a_run(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "runs", quick=True)
    arm = starting(cell(lab, SYMMETRIC, "Standard TCP", 10, 22), "5 s", "6 s").set(
        {"duration": "60 s", "trace.interval": "1 s"}
    )
    ((one, other),) = lab.runs([arm], 2)
    first, second = late(one)
    assert fairness(one) == min(first, second) / max(first, second)
    assert share(one) == first / second
    assert late_retransmits(one) > 0
    time = converged(one)
    assert time.seen
    assert 0 < time.seconds < 55
    assert until_converged(one) == time.seconds
    assert mean_of(share, 1)(one, other) == (share(one) + share(other)) / 2
    assert fairness(one, whole) == pytest.approx(one.summary.fairness)
    assert fairer(one, other) == pytest.approx(-fairer(other, one))
    assert more_overhead(overhead)(one, one) == 0


def test_nothing_delivered_counts_as_a_segment() -> None:
    times = [110.0, 160.0, 190.0]
    flows = pl.DataFrame(
        {"time_s": times * 2, "flow": [0] * 3 + [1] * 3, "goodput_bit_s": [9e6, 0.0, 0.0, 1e6, 2e6, 4e6]}
    )
    both = (SimpleNamespace(goodput_bit_s=0.0), SimpleNamespace(goodput_bit_s=1e6))
    run: Any = SimpleNamespace(summary=SimpleNamespace(from_s=100.0, to_s=200.0, flows=both), flows=flows)
    assert late(run) == (SEGMENT_BIT / 50, 3e6)
    assert whole(run) == (SEGMENT_BIT / 100, 1e6)
    assert share(run, whole) == fairness(run, whole) == SEGMENT_BIT / 100 / 1e6
