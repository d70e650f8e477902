"""Names of columns: long names with units in the files, and short names for users to type."""

from collections.abc import Iterable, Sequence
from typing import Any

from elephan._core import ScenarioError, one_of, quantity
from elephan.api.metrics import METRICS
from elephan.api.registry import cc_text

# The suffix of a column's name, and its unit.
UNITS = {"_bit_s": "bit/s", "_s_bit": "s/bit", "_segments": "segments", "_packets": "packets", "_bytes": "B", "_s": "s"}
# Columns of the index that are not metrics of a run, and their meanings.
OF_A_RUN = {
    "run": "Identity of the run: a digest of its scenario and of the code.",
    "point": "Number of the setting among those of the sweep, from 0 on.",
    "repeat": "Number of the repeat of a setting, from 0 on.",
    "seed": "Seed of the run.",
    "engine": "Engine of the run.",
    "code": "Version of the code that ran it.",
    "status": "ok or failed.",
    "error": "Why it failed.",
    "wall_s": "Duration of the run on a clock.",
    "cpu_s": "Processor time of the run.",
    "part": "Number of the files with its samples.",
    "summary": "Its figures as JSON.",
    "scenario": "Its scenario as JSON.",
}


def unit(column: str) -> str:
    """The unit of a column, from the suffix of its name; `1` if it has none."""
    return next((text for end, text in UNITS.items() if column.endswith(end)), "1")


def short_metric(column: str) -> str:
    """The short name of a metric: `goodput_bit_s` becomes `goodput`. `from_s` stays, because FROM is a word of SQL."""
    if column in ("from_s", "to_s"):
        return column
    return next((column.removesuffix(end) for end in UNITS if column.endswith(end)), column)


# The names of metrics in tables.
ALIASES = {metric.name: short_metric(metric.column) for metric in METRICS}


def short_names(columns: Iterable[str], settings: Sequence[str], described: Sequence[str]) -> dict[str, str]:
    """Short names of the columns of an index.

    The short name of a key of the sweep is its last part: `path.rtt` becomes `rtt`. Names that would clash, such as
    `flow.0.cc` and `flow.1.cc`, keep all parts, joined by underscores. `described` are the other keys of the scenario in the
    index; they come second.
    """
    names: dict[str, str] = {}
    taken = set(OF_A_RUN)

    def name(column: str, wanted: str, other: str) -> None:
        names[column] = wanted if wanted not in taken else other
        taken.add(names[column])

    last = [key.rsplit(".", 1)[-1] for key in settings]
    for key, end in zip(settings, last, strict=True):
        name(key, end if last.count(end) == 1 else key.replace(".", "_"), key.replace(".", "_"))
    for key in described:
        if key not in names:
            name(key, key.rsplit(".", 1)[-1], key.replace(".", "_"))
    for column in columns:
        if column not in names and column not in OF_A_RUN:
            name(column, short_metric(column), column)
    return names


def find(wanted: str, names: dict[str, str], what: str) -> str:
    """The column with this short name, long name or other name."""
    for candidate in (wanted, ALIASES.get(wanted, wanted)):
        if candidate in names:
            return candidate
        for column, name in names.items():
            if name == candidate:
                return column
    raise ScenarioError(f"{what}: expected {one_of(list(names.values()), wanted)}, found {wanted!r}")


def same(one: str, other: str) -> bool:
    """Whether two settings are the same: as texts, or as quantities, such as `100 Mbit/s` and `0.1Gbit/s`."""
    return one == other or ((number := quantity(one)) is not None and number == quantity(other))


def titled(value: Any) -> str:
    """A setting as tables and legends show it: an algorithm with its version, without the folder of its file."""
    return cc_text(shown(value))


def shown(value: Any) -> str:
    """A setting as text."""
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
