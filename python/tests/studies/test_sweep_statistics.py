"""Statistics over repeats: compared with calculations by hand, and with textbooks."""

import math

import numpy as np
import pytest
from scipy import stats

from elephan.api.metrics import METRICS, bounds
from elephan.studies.statistics import Estimate, Paired, Tight, holm, mser5, notable


def test_student_by_hand():
    # Mean 2, standard error 1/sqrt(3), Student's t for 2 degrees of freedom 4.303: 2.484.
    estimate = Estimate.of([1.0, 2.0, 3.0])
    assert (estimate.mean, estimate.median, estimate.values) == (2.0, 2.0, 3)
    assert estimate.standard_error == pytest.approx(1 / math.sqrt(3))
    assert estimate.half_width == pytest.approx(2.484, abs=1e-3)
    assert (estimate.low, estimate.high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert estimate.text(1) == "2.0 ± 2.5"


def test_what_is_undefined_does_not_count_and_is_shown():
    assert Estimate.of([None, math.nan]).text(1) == "never"
    assert Estimate.of([1.0, 3.0, None]).half_width == pytest.approx(12.706, abs=1e-3)


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_intervals_cover_the_mean_as_often_as_they_say(interval: str):
    draws = np.random.default_rng(7)
    covered = 0
    for _ in range(100):
        estimate = Estimate.of(draws.normal(5.0, 2.0, 20).tolist(), interval)
        covered += estimate.low <= 5.0 <= estimate.high
    # Binomial(100, 0.95): below 88 with a probability of one in a thousand. The bootstrap of 20 values covers slightly less.
    assert covered >= 88


def test_the_bootstrap_of_a_median_is_not_symmetric_and_not_random():
    values = [1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 4.0, 9.0, 30.0]
    estimate = Estimate.of(values, "bootstrap", "median")
    assert estimate.low <= estimate.median == 1.5 <= estimate.high
    assert estimate.high - 1.5 > 1.5 - estimate.low
    assert estimate == Estimate.of(values, "bootstrap", "median")
    assert estimate.text(1, "median").startswith("1.5 [")
    assert Estimate.of([2.0, 2.0, 2.0], "bootstrap").half_width == 0


def test_pairs_by_hand_and_by_scipy():
    first, second = {1: 3.0, 2: 5.0, 3: 4.0, 9: 1.0}, {1: 1.0, 2: 2.0, 3: 3.0, 4: 8.0}
    paired = Paired.of(first, second)
    # Differences 2, 3, 1: mean 2, standard deviation 1.
    assert (paired.pairs, paired.first, paired.second) == (3, 4.0, 2.0)
    assert paired.difference.mean == pytest.approx(2.0)
    assert paired.effect == pytest.approx(2.0)
    assert paired.p_t == pytest.approx(stats.ttest_1samp([2, 3, 1], 0).pvalue)
    assert paired.p_t == pytest.approx(0.0742, abs=1e-4)
    assert paired.p_wilcoxon == pytest.approx(0.25)


def test_common_random_numbers_find_what_the_noise_hides():
    draws = np.random.default_rng(3)
    noise = draws.normal(0, 10, 12)
    first = {k: value + 1 + draws.normal(0, 0.3) for k, value in enumerate(noise)}
    second = dict(enumerate(noise))
    assert Paired.of(first, second).p_t < 1e-5
    assert stats.ttest_ind(list(first.values()), list(second.values())).pvalue > 0.1


def test_pairs_that_say_nothing():
    assert Paired.of({1: 1.0}, {2: 1.0}).pairs == 0
    assert Paired.of({1: 1.0}, {1: None}).first is None
    same = Paired.of({1: 1.0, 2: 3.0}, {1: 0.0, 2: 2.0})
    assert (same.pairs, same.difference.mean, same.p_t, same.effect) == (2, 1.0, None, None)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1: 0.03, 0.04, 0.04.
    assert holm([0.04, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_conditions():
    relative, absolute = Tight.parse("ci(fairness) < 5% and ci(goodput)<=2e6")
    assert (relative, absolute) == (Tight("fairness", 0.05, True), Tight("goodput", 2e6, False))
    tight, loose = Estimate.of([1.0, 1.01, 0.99]), Estimate.of([1.0, 1.2, 0.8])
    assert relative.holds(tight)
    assert not relative.holds(loose)
    assert not relative.holds(Estimate.of([1.0]))
    # Half the width needs four times as many repeats, but at most twice as many are requested at once.
    assert relative.repeats(loose) == 6
    assert relative.repeats(Estimate.of([1.0, 1.0, 1.0, 1.06])) == 5


def test_mser5_finds_where_the_warm_up_ends():
    draws = np.random.default_rng(1)
    steady = draws.normal(100, 5, 400)
    rising = np.concatenate([np.linspace(0, 100, 60), steady])
    cut = mser5(rising)
    assert cut % 5 == 0
    assert 45 <= cut <= 75
    assert mser5(steady) <= 100


def test_mser5_is_the_published_formula():
    series = np.concatenate([np.linspace(10, 50, 25), np.random.default_rng(5).normal(50, 3, 100)])
    means = series.reshape(-1, 5).mean(axis=1)
    n = len(means)
    by_definition = [((means[d:] - means[d:].mean()) ** 2).sum() / (n - d) ** 2 for d in range(n - 5)]
    assert mser5(series) == 5 * int(np.argmin(by_definition))


def test_a_series_that_never_settles_has_no_steady_part():
    assert mser5(np.concatenate([np.zeros(300), np.full(50, 100.0)])) is None
    assert mser5(np.arange(10.0)) is None
    assert mser5(np.full(100, 3.0)) == 0


def test_an_interval_stays_within_what_is_possible():
    estimate = Estimate.of([0.7, 0.9], within=(0, 1))
    assert (estimate.low, estimate.high) == (0.0, 1.0)
    assert estimate.text(2) == "0.80 [0.00, 1.00]"
    # Inside it is Student's, and so it is for what has no bounds.
    assert Estimate.of([0.50, 0.51, 0.52], within=(0, 1)) == Estimate.of([0.50, 0.51, 0.52])
    assert Estimate.of([-1.0, 1.0]).text(0) == "0 ± 13"


def test_a_share_has_bounds_and_a_time_has_a_least_value():
    assert [metric.within for metric in METRICS if metric.column in ("utilisation", "fairness")] == [(0, 100), (0, 1)]
    assert bounds("loss_rate") == (0, 1)
    assert bounds("convergence_s") == (0, math.inf)
    assert bounds("path.rtt_s") == (-math.inf, math.inf)


def test_values_that_are_all_the_same_have_no_interval():
    same = Estimate.of([0.25, 0.25, 0.25])
    assert (same.identical, same.text(2)) == (True, "0.25")
    assert Estimate.of([0.25, 0.25, None]).text(2) == "0.25 (2/3)"
    assert not Estimate.of([0.25]).identical


def test_a_best_is_notable_only_where_it_is_apart_from_every_other():
    apart = {
        "a": dict(enumerate([10.0, 10.3, 9.8, 10.1, 10.2])),
        "b": dict(enumerate([8.0, 8.1, 7.9, 8.2, 8.1])),
        "c": dict(enumerate([7.0, 7.3, 6.8, 7.0, 7.2])),
    }
    assert notable(apart, "higher") == "a"
    assert notable(apart, "lower") == "c"
    assert notable(apart, "neither") is None
    near = {**apart, "d": dict(enumerate([9.9, 10.4, 9.9, 10.0, 10.1]))}
    assert notable(near, "higher") is None
    # Neither a value that is missing, nor one repeat, nor repeats without any chance, make a best.
    assert notable({**apart, "d": dict(enumerate([1.0, None, 1.0, 1.0, 1.0]))}, "higher") is None
    assert notable({name: {0: one[0]} for name, one in apart.items()}, "higher") is None
    assert notable({"a": {0: 2.0, 1: 2.0}, "b": {0: 1.0, 1: 1.0}}, "higher") is None
    # Each of three comparisons has a p of 0.03: not enough after the correction for their number.
    shifted = {0: 0.6, 1: 1.0, 2: 1.4, 3: 0.2, 4: 0.3}
    first = dict.fromkeys(range(5), 10.0)
    one = {"a": first, "b": {seed: 10 - by for seed, by in shifted.items()}}
    assert notable(one, "higher") == "a"
    assert notable({**one, "c": one["b"], "d": one["b"]}, "higher") is None
