"""The judge of real time: what five deviations come to, and how pytest ends."""

import itertools
import math

import pytest
import realtime
from realtime import Quantity

pytest_plugins = ["pytester"]

INSIDE = [0.010, 0.012, 0.009, 0.011, 0.008]
BEYOND = [0.050, 0.052, 0.049, 0.051, 0.048]
STRADDLING = [0.010, 0.060, 0.020, 0.045, 0.015]
LATE = "the emulator fell behind"


@pytest.mark.parametrize(
    ("deviations", "disturbed", "discrete", "verdict"),
    [
        (INSIDE, set(), False, "within"),
        (INSIDE, {LATE}, False, "within"),
        (BEYOND, set(), False, "outside"),
        (BEYOND, {LATE}, False, "disturbed"),
        (STRADDLING, set(), False, "undecided"),
        (STRADDLING, {LATE}, False, "disturbed"),
        # Equal times are of one measurement; equal counts are certain.
        ([0.01] * 5, set(), False, "undecided"),
        ([0.01] * 5, set(), True, "within"),
        ([0.05] * 5, set(), True, "outside"),
        # A tie with the bound.
        ([0.03] * 5, set(), True, "undecided"),
        # An attempt that failed before it measured, that measured twice, or whose measurement gave no number.
        (INSIDE[:4], set(), False, "undecided"),
        (BEYOND[:4], {LATE}, False, "undecided"),
        ([0.01] * 4, set(), True, "undecided"),
        ([*INSIDE, 0.01], set(), False, "undecided"),
        ([*INSIDE[:4], math.nan], set(), False, "undecided"),
        ([math.nan] * 5, set(), True, "undecided"),
    ],
)
def test_five_deviations_are_within_outside_undecided_or_disturbed(deviations, disturbed, discrete, verdict):
    assert Quantity(-0.03, 0.03, discrete, list(deviations), disturbed).verdict()[0] == verdict


@pytest.mark.parametrize(("least", "verdict"), [(0, "within"), (1, "undecided"), (5, "undecided")])
def test_no_attempt_may_count_what_is_expected_never(least, verdict):
    """A bound of one half is that of none, in any attempt."""
    assert Quantity(None, 0.5, True, [0, 0, 0, 0, least]).verdict()[0] == verdict


# A test with two cases whose names have the separator of parameters.
MEASURES = """
import pytest
VALUES = {"a-b": iter(%r), "a-c": iter(%r)}
@pytest.mark.realtime
@pytest.mark.parametrize("case", VALUES)
def test_measures(case, deviation):
    value = next(VALUES[case])
    assert value != "fails"
    deviation("delay", value, within=0.03)
"""


def ended(pytester, first, second=INSIDE):
    """The exit status of a session, and its verdicts by test."""
    pytester.makepyfile(MEASURES % (first, second))
    result = pytester.runpytest_inprocess("-p", "realtime", "-m", "realtime", "-W", "ignore")
    lines = [line.split(": ") for line in result.stdout.lines if "test_measures[" in line and ": delay: " in line]
    return result.ret, {test.rpartition("::")[2]: verdict for verdict, test, *_ in lines}


@pytest.mark.parametrize(
    ("first", "verdict", "status"),
    [
        (INSIDE, "within", 0),
        (BEYOND, "outside", 1),
        (STRADDLING, "undecided", 1),
        ([*INSIDE[:4], "fails"], "undecided", 1),
    ],
)
def test_a_session_ends_with_1_unless_each_quantity_is_within_its_bound(pytester, monkeypatch, first, verdict, status):
    monkeypatch.setattr(realtime, "stolen_and_passed", lambda: (0, 0))
    assert ended(pytester, first) == (status, {"test_measures[a-b]": verdict, "test_measures[a-c]": "within"})


def test_what_the_host_disturbed_fails_nothing(pytester, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(realtime, "stolen_and_passed", lambda: (20 * next(ticks), 100 * next(ticks)))
    assert ended(pytester, STRADDLING) == (0, {"test_measures[a-b]": "disturbed", "test_measures[a-c]": "within"})


def test_a_deviation_without_a_bound_or_with_another_is_an_error(pytester):
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.realtime
        def test_none(deviation):
            deviation("delay", 0.01)
        @pytest.mark.realtime
        def test_another(deviation, attempt):
            deviation("delay", 0.01 * attempt, within=attempt)
        """
    )
    result = pytester.runpytest_inprocess("-p", "realtime", "-m", "realtime", "-W", "ignore")
    result.assert_outcomes(failed=9, passed=1)
