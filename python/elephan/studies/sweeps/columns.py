"""The columns that distinguish the runs of a sweep: its settings, and the usual keys of its scenario."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from elephan import _core

# The keys of a scenario that are recorded in addition to the keys of its sweep.
USUAL = ("path.rate", "path.rtt", "path.buffer", "flow.cc")


def values_of(sweep: Mapping[str, Any], key: str) -> list[Any]:
    """All values of a key in the table `sweep` of a scenario."""
    listed = [point[key] for point in sweep.get("points", []) if key in point]
    return [*sweep.get(key, []), *sweep.get("zip", {}).get(key, []), *listed]


def kind_of(values: list[Any]) -> Callable[[Any], Any]:
    """How the values of a key are stored: one type for the whole sweep."""
    if all(isinstance(value, bool) for value in values):
        return bool
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return int
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return float
    return _as_text


def _as_text(value: Any) -> str:
    if isinstance(value, dict) and "source" in value:
        # A trace of a link, with all that its file has.
        return str(value["source"]) + ("" if value.get("loop", True) else " once")
    return value if isinstance(value, str) else json.dumps(value)


def described(
    settings: Mapping[str, Any], kinds: Mapping[str, Callable[[Any], Any]], document: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a point and the usual keys of its scenario; those that are quantities are numbers."""
    columns = {"seed": document["seed"], "engine": document["engine"]}
    columns |= {key: kinds[key](value) for key, value in settings.items()}
    algorithms = [
        cc if isinstance(cc, str) else cc["name"] for cc in (flow.get("cc") for flow in document["flow"]) if cc
    ]
    usual = {f"path.{key}": (document.get("path") or {}).get(key) for key in ("rate", "rtt", "buffer")}
    usual["flow.cc"] = "+".join(dict.fromkeys(algorithms)) or None
    for key in USUAL:
        columns.setdefault(key, usual[key])
    for key, value in list(columns.items()):
        quantity = _core.quantity(value) if isinstance(value, str) else None
        if quantity is not None:
            columns[f"{key}_{quantity[1]}"] = quantity[0]
    return columns
