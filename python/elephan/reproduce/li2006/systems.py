"""What the chapters of the thesis share: its algorithms, its metrics, and numbers as text."""

from collections.abc import Callable, Mapping

from elephan.summary import Summary

# The thesis' names, and what a scenario calls them. It ran HighSpeed TCP by the table of RFC 3649.
SYSTEMS = {
    "Standard TCP": "reno",
    "HighSpeed TCP": '{ name = "hstcp", form = "table" }',
    "Scalable TCP": "scalable",
    "H-TCP": "htcp",
    "BicTCP": "bic",
    "FAST": "fast",
}
NEW = tuple(SYSTEMS)[1:]
Read = Callable[[Summary], float | None]
METRICS: dict[str, tuple[str, Read]] = {
    "goodput": ("Mbit/s", lambda s: s.goodput_bit_s / 1e6),
    "fairness": ("least/most", lambda s: s.fairness),
    "overhead": ("1e-7/(Mbit/s)", lambda s: None if s.overhead_s_bit is None else s.overhead_s_bit * 1e13),
    "convergence": ("s", lambda s: s.convergence_s),
}


def listed(values: Mapping[str, float], digits: int = 2) -> str:
    """Numbers as text."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())
