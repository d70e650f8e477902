"""Numbers as text in table cells, on the terminal and in reports."""

import math
from collections.abc import Sequence

# Significant digits of a number, and of its uncertainty.
DIGITS, UNCERTAIN = 4, 2
# Heights of a sparkline.
BARS = "▁▂▃▄▅▆▇█"


def number(value: float | None, factor: float = 1, digits: int = 2) -> str:
    """A number in another unit; `-` if it is undefined."""
    return "-" if value is None else f"{value * factor:.{digits}f}"


def significant(value: float, digits: int = DIGITS) -> str:
    """A number of any size: as an integer from 1000 on, otherwise with its significant digits; small ones as 5.4e-09."""
    if abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    text = f"{value:,.{_decimals(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def measured(value: float, uncertainty: float | None) -> str:
    """A number of any size with its uncertainty, `207.6 ± 1.3`, both to the same digit."""
    if not uncertainty:
        return significant(value)
    if max(abs(value), uncertainty) < 1e-4:
        return f"{significant(value)} ± {significant(uncertainty, UNCERTAIN)}"
    decimals = (
        min(_decimals(uncertainty, UNCERTAIN), _decimals(value, DIGITS)) if value else _decimals(uncertainty, UNCERTAIN)
    )
    return f"{value:,.{decimals}f} ± {uncertainty:,.{decimals}f}"


def sparkline(places: Sequence[int], values: Sequence[float], room: int, most: float) -> str:
    """A line of `room` characters whose heights are the means of the values at each place, as shares of `most`.

    A place without a value is empty.
    """
    sums, counts = [0.0] * room, [0] * room
    for place, value in zip(places, values, strict=True):
        sums[place] += value
        counts[place] += 1
    means = [None if not count else total / count for total, count in zip(sums, counts, strict=True)]
    return "".join(" " if mean is None else BARS[min(int(mean / most * len(BARS)), len(BARS) - 1)] for mean in means)


def _decimals(value: float, digits: int) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def deviation(share: float | None) -> str:
    """A deviation in %, with its sign; `-` if it is undefined."""
    # A value that rounds to zero has no sign: -0.0 + 0.0 is 0.0.
    return "-" if share is None else f"{round(100 * share, 1) + 0.0:+.1f}"
