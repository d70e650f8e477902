"""Chapter 8 of the thesis: the grid as arms of sets of unpublished choices, and what is read from runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from elephan.studies.judge import Arm, Quantity
from elephan.studies.reproduce.declare import Points, mean_of, reader
from elephan.studies.reproduce.lab import Lab
from elephan.studies.reproduce.li2006.cells import (
    FRIENDLY,
    LARGE,
    LATER,
    OTHER_FIRST,
    RATES,
    READINGS,
    RTTS,
    SEGMENT_BIT,
    SMALL,
    SYMMETRIC,
    WHOLE,
    cell,
    cells,
    converged,
    fairness,
    late,
    late_retransmits,
    share,
    under,
    until_converged,
    whole,
)
from elephan.studies.reproduce.li2006.chapter8_tables import SCENARIOS, TABLES, numbers
from elephan.studies.reproduce.li2006.systems import AS_PRINTED, SETS, SYSTEMS


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "runs")


def by_queue(lab: Lab, system: str, chosen: str = AS_PRINTED) -> Arm:
    return cells(lab).arm(chosen, {"system": system, "percent": 5})


def test_sets_share_the_arms_that_their_choices_do_not_concern(lab: Lab) -> None:
    # Standard TCP, FAST and Scalable TCP depend only on how ACKs are counted, BicTCP and H-TCP on every choice.
    counts = {"Standard TCP": 2, "FAST": 2, "Scalable TCP": 2, "BicTCP": 4, "H-TCP": 4}
    assert {n: len({cell(lab, SYMMETRIC, n, 250, 82, chosen) for chosen in SETS}) for n in counts} == counts


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
    assert by_queue(lab, "FAST", LATER) != by_queue(lab, "FAST")
    swapped = cell(lab, FRIENDLY, "BicTCP", 250, 82, OTHER_FIRST)
    assert start(FRIENDLY, "BicTCP", OTHER_FIRST, 0) == start(FRIENDLY, "BicTCP", AS_PRINTED)
    lab.scenario(swapped)
    # Fairness over the whole time is of the same runs.
    assert under(lab, "whole").names == (*SETS, WHOLE)
    assert cell(lab, SYMMETRIC, "FAST", 250, 82, WHOLE) == cell(lab, SYMMETRIC, "FAST", 250, 82)
    assert reader(READINGS["fairness"], chosen=WHOLE)(UNEQUAL) == fairness(UNEQUAL, whole) != fairness(UNEQUAL)


def test_linux_bounds_the_variance_of_the_timeout(lab: Lab) -> None:
    # An ACK delayed by 200 ms at 162 ms is no timeout.
    arms = [cell(lab, scenario, "BicTCP", 10, 22) for scenario in (SYMMETRIC, SMALL, FRIENDLY)]
    for arm in (*arms, by_queue(lab, "BicTCP"), Arm("li2006/response")):
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
            for row in rows(lab, "8.1", scenario, chosen):
                lab.scenario(row.arms[0])
    lab.scenario(by_queue(lab, "FAST"))


def rows(lab: Lab, number: str, scenario: str, chosen: str = AS_PRINTED) -> list[Quantity]:
    return [row for one in numbers(number, scenario) for row in cells(lab).quantities(one, chosen)]


def test_tables_have_every_printed_number(lab: Lab) -> None:
    counts = {n: sum(len(rows(lab, n, s)) for s in table.scenarios) for n, table in TABLES.items()}
    # Scalable TCP has no fairness with equal round-trip times in print, and its convergence is "never".
    assert counts == {"8.1": 24, "8.2": 23, "8.3": 6, "8.4": 24}
    # A printed error is the standard error of five runs.
    of_time = {row.system: row for row in rows(lab, "8.3", SYMMETRIC)}
    assert of_time["Standard TCP"].tolerance == pytest.approx(34, abs=0.5)
    assert of_time["Scalable TCP"].published is None


def test_readings_of_a_run(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "runs", quick=True)
    arm = cell(lab, SYMMETRIC, "Standard TCP", 10, 22).set(
        {"flow.1.start": '{ uniform = ["5 s", "6 s"] }', "duration": "60 s", "trace.interval": "1 s"}
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
    fairer = reader(READINGS["fairness"], "decades")
    assert fairer(one, other) == pytest.approx(-fairer(other, one))
    assert reader(READINGS["some overhead"], "decades")(one, one) == 0


TWO = pl.DataFrame(
    {"time_s": [110.0, 160.0, 190.0] * 2, "flow": [0] * 3 + [1] * 3, "goodput_bit_s": [9e6, 0.0, 0.0, 1e6, 2e6, 4e6]}
)
UNEQUAL: Any = SimpleNamespace(
    summary=SimpleNamespace(
        from_s=100.0, to_s=200.0, flows=(SimpleNamespace(goodput_bit_s=0.0), SimpleNamespace(goodput_bit_s=1e6))
    ),
    flows=TWO,
)


def test_nothing_delivered_counts_as_a_segment() -> None:
    assert late(UNEQUAL) == (SEGMENT_BIT / 50, 3e6)
    assert whole(UNEQUAL) == (SEGMENT_BIT / 100, 1e6)
    assert share(UNEQUAL, whole) == fairness(UNEQUAL, whole) == SEGMENT_BIT / 100 / 1e6


def test_points_of_a_grid(lab: Lab) -> None:
    """A place for each point in the order of the keys, with the runs of all cells over which the mean is taken."""
    report = cells(lab)
    grid = {"rate above": ((10, -1), (100, -2)), "a": ("H-TCP", "FAST"), "b": "Standard TCP"}
    places = report.places(Points("{a} over {b}, {rate}", "goodput, less").at(grid).mean(rtt=(22, 82)))
    assert [(one.name, one.above, one.unit) for one in places] == [
        (f"{n} over Standard TCP, {rate}", above, "Mbit/s")
        for rate, above in ((10, -1), (100, -2))
        for n in ("H-TCP", "FAST")
    ]
    systems = ("FAST", "Standard TCP")
    assert places[1].arms == tuple(cell(lab, SYMMETRIC, n, 10, rtt) for rtt in (22, 82) for n in systems)
