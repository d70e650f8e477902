import pytest

from elephan.base.numbers import deviation, measured, significant
from elephan.studies.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (16666.7, "16,667"), (1.7e4, "17,000"), (5e9, "5,000,000,000"), (1000, "1,000"), (999.96, "1,000"), (122.47, "122.5"),
        (200.0, "200"), (38.73, "38.73"), (0.94512, "0.9451"), (0.00015, "0.00015"), (5.4e-9, "5.4e-09"), (0.0, "0"),
        (-1234.5, "-1,234"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_numbers_of_any_size(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (207.6, 1.3, "207.6 ± 1.3"), (220.91, 130.4, "221 ± 130"), (149.2, 92, "149 ± 92"), (42.26, 2.1, "42.3 ± 2.1"),
        (12345.6, 1234.5, "12,346 ± 1,234"), (0.9451, 0.00003, "0.9451 ± 0.0000"), (0.0, 0.5, "0.00 ± 0.50"),
        (5.41e-9, 1.2e-10, "5.41e-09 ± 1.2e-10"), (135.51, None, "135.5"), (80.0, 0.0, "80"),
    ],
)  # fmt: skip
def test_numbers_are_shown_to_the_digit_they_are_known_to(value, uncertainty, text):
    assert measured(value, uncertainty) == text


def test_an_estimate_has_digits_of_its_own_or_those_asked_for():
    assert Estimate.of([10000.0, 20000.0]).text() == "15,000 ± 63,531"
    assert Estimate.of([0.5, 0.52]).text() == "0.51 ± 0.13"
    assert Estimate.of([0.5, None]).text() == "0.5 (1/2)"
    assert Estimate.of([0.5, 0.52]).text(3) == "0.510 ± 0.127"


def test_an_uncertainty_has_the_decimals_of_its_value():
    assert Estimate.of([48.0, 48.001]).text(1) == "48.0 ± 0.0"
    assert Estimate.of([4e-4, 4.001e-4]).text(4) == "0.0004 ± 0.0000"


@pytest.mark.parametrize(
    ("share", "text"), [(0.1234, "+12.3"), (-0.1234, "-12.3"), (-0.0004, "+0.0"), (0.0, "+0.0"), (None, "-")]
)
def test_what_is_hardly_off_is_not_below(share, text):
    assert deviation(share) == text
