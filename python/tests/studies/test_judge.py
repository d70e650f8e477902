import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from elephan.studies.judge import (
    Finding,
    Interval,
    Place,
    Quantity,
    Row,
    Time,
    Verdict,
    agreement,
    compared,
    decided,
    interval,
    judged,
    over_sets,
)

NUMBERS = st.floats(-1e6, 1e6)


def place(**bounds):
    return Place("one", (None,), float, **bounds)


def row(published, low, high, uncertainty=None, band=0.1):
    found = Interval((low + high) / 2, low, high, 5)
    quantity = Quantity("system", published, uncertainty, (None,), float)
    agrees = compared(quantity, [low, high], band, 1, same=True).agrees if low == high else None
    return Row("system", published, uncertainty, found, agrees)


@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_an_interval_holds_its_mean_and_is_wider_at_a_higher_level(samples):
    wide, narrow = interval(samples, "mean", 0.01), interval(samples, "mean", 0.2)
    assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


def test_intervals_cover_the_truth_as_often_as_they_say():
    generator = stats.norm.rvs(size=(2000, 6), random_state=1)
    inside = sum(one.low <= 0 <= one.high for one in (interval(list(row), "mean", 0.05) for row in generator))
    assert (
        stats.binomtest(inside, 2000).proportion_ci(0.999).low
        <= 0.95
        <= stats.binomtest(inside, 2000).proportion_ci(0.999).high
    )


def test_a_single_run_has_no_interval_and_decides_nothing():
    assert judged(place(above=0.0), [5.0], 1, 1).holds is None
    assert judged(place(above=0.0), [5.0, 5.0], 1, 1, same=True).holds is True
    # Equal numbers of runs that differ: a rare event may hide.
    assert judged(place(above=0.0), [5.0] * 9, 1, 1).holds is None
    assert judged(place(above=0.0), [5.0] * 10, 1, 1).holds is True


def test_a_tie_with_the_bound_decides_nothing():
    assert judged(place(above=0.0), [0.0, 0.0], 1, 1, same=True).holds is None
    assert judged(place(below=0.0), [0.0, 0.0], 1, 1, same=True).holds is None


def test_an_undefined_sample_decides_nothing():
    assert judged(place(above=0.0), [5.0, None, 5.0], 1, 1).holds is None
    assert judged(place(above=0.0), [5.0, math.nan, 5.0], 1, 1).holds is None


@given(st.lists(NUMBERS, min_size=2, max_size=8), NUMBERS)
def test_no_samples_lie_on_both_sides_of_a_bound(samples, bound):
    over, under = judged(place(above=bound), samples, 3, 1), judged(place(below=bound), samples, 3, 1)
    assert (over.holds, under.holds) != (True, True)
    # To decide for all places together is harder than to decide at one.
    assert not (over.alone and over.holds is None)


def test_equality_needs_the_whole_interval_within_the_band():
    assert judged(place(above=0.9, below=1.1), [1.0, 1.01, 0.99], 1, 1).holds is True
    assert judged(place(above=0.9, below=1.1), [0.8, 1.01, 1.2], 1, 1).holds is None
    assert judged(place(above=0.9, below=1.1), [2.0, 2.01, 1.99], 1, 1).holds is False


def times(*seconds, until=math.inf):
    return [Time(min(s, until), s < until) for s in seconds]


def test_a_test_that_ended_first_is_no_time():
    """The median of times of which some were cut off is that of the whole set, where at least half were seen."""
    whole = interval(times(*range(1, 16)), "median", 0.05)
    cut = interval(times(*range(1, 16), until=10.5), "median", 0.05)
    assert whole.value == cut.value == 8
    assert cut.low > 0
    never = interval(times(*range(11, 26), until=10.5), "median", 0.05)
    assert math.isinf(never.value)
    assert never.low == 10.5
    assert interval([*times(11, until=10.5), *times(*[9] * 9, until=8)], "median", 0.05).low == 8
    # Three tests tell little of a median, whatever they show.
    assert interval(times(11, 12, 13, until=10.5), "median", 0.05).low == 0
    # The largest of all bounds a median from above, also where every repeat gives the same.
    assert interval(times(*[42] * 10), "median", 0.025).high == 42


def test_earlier_is_decided_by_ranks_with_censored_times():
    early, late = times(*range(1, 11)), times(*range(11, 21), until=15)
    faster = judged(place(above=0.5, statistic="earlier"), list(zip(early, late, strict=True)), 1, 1)
    slower = judged(place(above=0.5, statistic="earlier"), list(zip(late, early, strict=True)), 1, 1)
    same = judged(place(above=0.5, statistic="earlier"), list(zip(early, early, strict=True)), 1, 1)
    assert (faster.holds, slower.holds, same.holds) == (True, False, None)
    assert faster.found.value == 1.0
    below = judged(place(below=0.5, statistic="earlier"), list(zip(late, early, strict=True)), 1, 1)
    assert below.holds is True
    # Three against three in the clearest order happen by chance once in ten.
    few = list(zip(early[:3], late[:3], strict=True))
    assert judged(place(above=0.5, statistic="earlier"), few, 1, 1).holds is None


def test_shares_stay_between_zero_and_one():
    found = interval([1, 1, 1, 1, 1], "share", 0.05)
    assert found.value == found.high == 1
    assert 0.4 < found.low < 0.6


def found(holds, *, alone=False, unusable=""):
    return Finding("one", "", Interval(0, 0, 0, 5), holds, alone, unusable)


@pytest.mark.parametrize(
    ("findings", "every", "some"),
    [
        ([found(True), found(True)], Verdict.CONFIRMED, Verdict.UNDECIDED),
        ([found(True, alone=True), found(None)], Verdict.UNDECIDED, Verdict.CONFIRMED),
        ([found(True), found(False)], Verdict.UNDECIDED, Verdict.UNDECIDED),
        ([found(True, alone=True), found(False, alone=True)], Verdict.REFUTED, Verdict.CONFIRMED),
        ([found(False), found(False)], Verdict.UNDECIDED, Verdict.REFUTED),
        ([found(True, alone=True), found(None, unusable="dead")], Verdict.UNDECIDED, Verdict.CONFIRMED),
        ([found(None, unusable="dead")], Verdict.UNTESTABLE, Verdict.UNTESTABLE),
    ],
)
def test_a_claim_is_decided_by_its_rule(findings, every, some):
    assert decided(findings, "every") == every
    assert decided(findings, "some") == some


def test_the_error_rate_of_a_claim_about_many_places_is_controlled():
    """Twenty places of which every one is at its bound: at most 5 % of such claims are refuted by chance."""
    generator = stats.norm.rvs(size=(400, 20, 5), random_state=2)
    wrong = sum(
        decided([judged(place(above=0.0), list(one), 1, 20) for one in places], "every") == Verdict.REFUTED
        for places in generator
    )
    assert stats.binomtest(wrong, 400).proportion_ci(0.999).low <= 0.05


def test_sets_of_choices_agree_contradict_or_leave_it_open():
    yes, no, open_ = Verdict.CONFIRMED, Verdict.REFUTED, Verdict.UNDECIDED
    assert over_sets([yes, yes]) == yes
    assert over_sets([yes, no, open_]) == Verdict.DEPENDENT
    assert over_sets([yes, open_]) == open_
    assert over_sets([Verdict.UNTESTABLE]) == Verdict.UNTESTABLE
    assert over_sets([yes, Verdict.UNTESTABLE]) == yes


def test_numbers_agree_by_their_intervals():
    quantity = Quantity("system", 100.0, None, (None,), float)
    assert compared(quantity, [99, 100, 101], 0.1, 1).agrees is True
    # A wide interval from few repeats is no agreement, and no deviation either.
    assert compared(quantity, [0, 400], 0.1, 1).agrees is None
    assert compared(quantity, [200, 201, 202], 0.1, 1).agrees is False
    # A printed standard error of five runs stands for an interval 2.8 times as wide.
    assert compared(Quantity("system", 100.0, 10.0, (None,), float, of_repeats=5), [80, 81, 82], 0.0, 1).agrees is True
    assert compared(Quantity("system", 100.0, 10.0, (None,), float), [80, 81, 82], 0.0, 1).agrees is False
    never = Quantity("system", None, None, (None,), float, "median")
    assert compared(never, [Time(600, False)] * 3, 0.1, 1).agrees is True
    assert compared(never, [Time(60, True)] * 3, 0.1, 1).agrees is False
    assert compared(never, [Time(60, True), Time(600, False)], 0.1, 1).agrees is None


def test_an_order_is_kept_only_by_intervals_that_are_apart():
    def rows(*ours):
        made = []
        for published, (low, high) in zip((30.0, 20.0, 10.0), ours, strict=True):
            made.append(Row("s", published, None, Interval((low + high) / 2, low, high, 5), agrees=False))
        return made

    assert agreement(rows((300, 310), (200, 210), (100, 110))) == Verdict.ORDERING
    assert agreement(rows((300, 310), (200, 310), (100, 110))) == Verdict.DIFFERS
    assert agreement(rows((100, 110), (200, 210), (300, 310))) == Verdict.DIFFERS
    assert agreement([row(100.0, 100, 100)]) == Verdict.AGREES
    dead = Row("s", 100.0, None, Interval(math.nan, -math.inf, math.inf, 0), None, "dead")
    assert agreement([row(100.0, 100, 100), dead]) == Verdict.UNDECIDED
    assert agreement([row(100.0, 50, 150)]) == Verdict.UNDECIDED
