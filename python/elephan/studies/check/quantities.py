"""The quantities of bounds and conditions: "50 Mbit/s", "4 segments", "90 % path.rate", "2 bdp"."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from elephan import _core
from elephan.api.scenario import Scenario

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
# What a text for each unit is like.
EXAMPLES = {
    "bit/s": "50 Mbit/s",
    "s": "20 ms",
    "B": "64 kB",
    "segments": "4 segments",
    "packets": "10 packets",
    "1": "0.4",
    "segments/s": "5 Mbit/s",
}
UNITS_OF_CORE = {"bit_s": "bit/s", "s": "s", "bytes": "B", "packets": "packets"}
WORDS = {"segment": "segments", "segments": "segments", "%": "1", "": "1", "rounds": "1", "round": "1"}


@dataclass(frozen=True)
class Quantity:
    """A quantity that may depend on the scenario: its value in SI units, and the text that gave it."""

    text: str
    value: Callable[[Scenario], float]


def quantity(text: str, unit: str, key: str) -> Quantity:
    """A quantity of `unit`: `bit/s`, `s`, `B`, `segments`, `packets`, or `1` for what has none.

    Raises `ScenarioError`, which names the `key`, for any other text.
    """
    text = text.strip()
    if unit == "segments/s":
        # A rate of whole segments, in what a path carries of them.
        rate = quantity(text, "bit/s", key)
        return Quantity(text, lambda scenario: rate.value(scenario) / 8 / scenario.packet_bytes)
    if found := re.fullmatch(rf"(?:({NUMBER}) ?(%)? )?([a-z_]+(?:\.[\w-]+)+|duration)", text):
        share, of = (float(found[1]) if found[1] else 1.0) / (100 if found[2] else 1), found[3]
        return Quantity(text, lambda scenario: share * _of_key(of, scenario, unit, key))
    if (found := re.fullmatch(rf"({NUMBER}) ?(% )?bdp", text)) and unit in ("B", "segments", "packets"):
        share = float(found[1]) / (100 if found[2] else 1)
        return Quantity(text, lambda scenario: share * _bdp(scenario, unit, key))
    plain = _plain(text)
    if plain is None or plain[1] != unit:
        raise _core.ScenarioError(f'{key}: expected {_expected(unit)}, found "{text}"')
    return Quantity(text, lambda _: plain[0])


def _expected(unit: str) -> str:
    kind = "a number" if unit == "1" else f"a quantity in {unit}"
    return f'{kind} such as "{EXAMPLES[unit]}", or a share of a key such as "90 % path.rate"'


def _plain(text: str) -> tuple[float, str] | None:
    """The value of a text in SI units, and its unit."""
    if (found := re.fullmatch(rf"({NUMBER}) ?(%|[a-z]*)", text)) and found[2] in WORDS:
        return float(found[1]) / (100 if found[2] == "%" else 1), WORDS[found[2]]
    # A difference may be below zero; what scenarios have may not.
    sign, size = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    of_core = _core.quantity(size)
    if of_core is None or of_core[1] not in UNITS_OF_CORE:
        return None
    return sign * of_core[0], UNITS_OF_CORE[of_core[1]]


def _of_key(key: str, scenario: Scenario, unit: str, where: str) -> float:
    """The value of one of the scenario's keys."""
    value: Any = scenario.document
    for name in key.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise _core.ScenarioError(f"{where}: expected a key of the scenario, found {key}")
    plain = (float(value), unit) if isinstance(value, int | float) else _plain(str(value))
    if plain is None or plain[1] != unit:
        raise _core.ScenarioError(f'{where}: expected a key whose value is in {unit}, found {key} = "{value}"')
    return plain[0]


def _bdp(scenario: Scenario, unit: str, where: str) -> float:
    """The bandwidth-delay product of the path."""
    rate, rtt = (_of_key(f"path.{name}", scenario, of, where) for name, of in (("rate", "bit/s"), ("rtt", "s")))
    return rate * rtt / 8 / (1 if unit == "B" else scenario.packet_bytes)
