"""Shared by the chapters of the thesis: its algorithms, its metrics, and numbers as text."""

import tomllib
from collections.abc import Mapping
from typing import Any

from elephan.api.metrics import declared

# The thesis' names of algorithms, and their names in a scenario. The thesis used HighSpeed TCP with the table of RFC 3649,
# and H-TCP with an increase that is multiplied by T_min in seconds, as its equation 6.9 prints. The authors' own code has
# T_min/100 ms there.
SYSTEMS = {
    "Standard TCP": "reno",
    "HighSpeed TCP": '{ name = "hstcp", response = "table" }',
    "Scalable TCP": "scalable",
    "H-TCP": '{ name = "htcp", rtt_scaling = "seconds" }',
    "BicTCP": "bic",
    "FAST": "fast",
}
NEW = tuple(SYSTEMS)[1:]
METRICS = {
    metric.name: metric
    for metric in (
        declared("Summary", "goodput_bit_s"),
        declared("Summary", "fairness"),
        declared("Summary", "overhead_s_bit"),
        declared("Summary", "convergence_s", unit="s"),
    )
}


def cc_of(system: str) -> Any:
    """The value of `cc` in a scenario for an algorithm of the thesis."""
    text = SYSTEMS[system]
    return tomllib.loads(f"cc = {text}")["cc"] if text.startswith("{") else text


def listed(values: Mapping[str, float], digits: int = 2) -> str:
    """Numbers as text."""
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())
