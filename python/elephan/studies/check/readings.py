"""What an expectation reads from a run: metrics of its summary, signals of its samples, and conditions on these."""

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from elephan import _core
from elephan.api.derived import DERIVED, OF_TRANSFERS
from elephan.api.metrics import declared_columns, declared_fields
from elephan.api.registry import Variable, algorithms, slow_starts
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.studies.check.quantities import NUMBER, Quantity, quantity
from elephan.studies.judge import Sample, Time
from elephan.studies.sweeps.names import UNITS, short_metric

Numbers = npt.NDArray[np.float64]
# Columns of the samples that identify a row.
KEYS = ("time_s", "flow", "link", "label", "kind")
# The queue of a link by the name that people give it.
QUEUE = "queue"
# The table of what algorithms keep.
VARIABLES = "variables"
STATISTICS: Mapping[str, Callable[[Numbers], float]] = {
    "min": np.min,
    "max": np.max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    **{f"p{percent}": partial(np.percentile, q=percent) for percent in (5, 50, 95, 99)},
}
COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "is not": operator.ne,
    "is": operator.eq,
}
KINDS = {"web": "crowds", "arrivals": "crowds", "sessions": "crowds", "cbr": "streams", "on_off": "streams"}
PARTS = {"crowds": "CrowdSummary", "streams": "StreamSummary"}


class NotKeptError(_core.ScenarioError):
    """A signal is a variable of other algorithms than a flow's, or of runs on the simulator alone; `reason` says which."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(f"{message}: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Window:
    """The part of a run that is read; none where a bound is that of the measuring window or of the run."""

    from_s: float | None = None
    to_s: float | None = None

    def of(self, time_s: Numbers) -> npt.NDArray[np.bool_]:
        """Which samples are within it."""
        return (time_s >= (self.from_s or 0.0)) & (time_s <= (math.inf if self.to_s is None else self.to_s))


@dataclass(frozen=True)
class Reading:
    """What is read from a run: a value in `unit` (of SI, segments or packets; `1` for none), or a time that may not come."""

    text: str
    unit: str
    read: Callable[[Run], Sample]
    is_time: bool = False
    # The least and the greatest possible value.
    bounds: tuple[float, float] = (-math.inf, math.inf)
    # Whether tables show it in percent.
    is_percentage: bool = False
    # Which values are better: higher, lower or neither.
    better: str = "neither"
    # Whether it needs nothing but samples.
    is_of_samples: bool = False


@dataclass(frozen=True)
class Signal:
    """A column of the samples of a flow or a link, or a variable of a flow's algorithm, whose values may have `names`."""

    text: str
    table: str
    column: str
    which: Any
    unit: str
    names: tuple[str, ...] = ()

    def of(self, run: Run) -> tuple[Numbers, Numbers]:
        """The times of the samples, in s, and their values; unknown ones are NaN."""
        key = "link" if self.table == "queues" else "flow"
        wanted = ["variable", "value"] if self.table == VARIABLES else [self.column]
        samples = run.table(self.table, ["time_s", key, *wanted])
        if wanted[-1] not in samples.column_names:
            return np.array([]), np.array([])
        of_it = np.asarray(samples[key].to_pylist()) == self.which
        if self.table == VARIABLES:
            of_it &= np.asarray(samples["variable"].to_pylist()) == self.column
        return _floats(samples["time_s"])[of_it], _floats(samples[wanted[-1]])[of_it]


def _floats(column: Any) -> Numbers:
    return np.asarray(column.to_numpy(), float)


def unit_of(column: str) -> str:
    """The unit of a column, by its name."""
    if column == "packets" or column.endswith("_packets"):
        return "packets"
    if column == "bytes" or column.endswith("_bytes"):
        return "B"
    return next((unit for end, unit in UNITS.items() if column.endswith(end) and unit != "s/bit"), "1")


@cache
def _columns(table: str) -> Mapping[str, str]:
    """The columns of a table of samples, by their short names."""
    found = {short_metric(name): name for of, name in declared_columns() if of == table and name not in KEYS}
    return {QUEUE: "packets", **found} if table == "queues" else found


@cache
def _figures(part: str) -> Mapping[str, str]:
    """The numbers of a part of a summary by their short names; a mean also by its name alone, as in sweeps."""
    found = {
        short_metric(name): name for (of, name), told in declared_fields().items() if of == part and _is_number(told)
    }
    return {**{name.removesuffix("_mean"): column for name, column in found.items()}, **found}


def _is_number(told: Mapping[str, Any]) -> bool:
    return told["name"] not in (
        "label",
        "name",
        "flows",
        "links",
        "crowds",
        "streams",
        "classes",
        "host",
        "transfers",
        "pages",
    )


def _named(name: str, known: Mapping[str, str], key: str) -> str:
    """The column of a short name. Raises `ScenarioError` with what is nearest."""
    if name not in known:
        raise _core.ScenarioError(f"{key}: expected {_core.one_of(list(known), name)}, found {name!r}")
    return known[name]


def _flow(where: str, scenario: Scenario, key: str) -> int:
    """The index of the flow that a number, from 1 on as in tables, or a label means; -1 if it means none."""
    labels: Sequence[str] = scenario.plan["labels"]
    if where.isdecimal():
        if not 1 <= int(where) <= len(labels):
            raise _core.ScenarioError(f"{key}: expected a flow from 1 to {len(labels)}, found {where}")
        return int(where) - 1
    if (count := labels.count(where)) > 1:
        raise _core.ScenarioError(
            f"{key}: expected the label of one flow, found {count} flows {where!r}; use their numbers"
        )
    return labels.index(where) if count else -1


def _link(where: str, scenario: Scenario) -> bool:
    return any(link["name"] == where for link in scenario.plan["links"])


def _unknown(where: str, scenario: Scenario, key: str) -> _core.ScenarioError:
    known = [*scenario.plan["labels"], *(link["name"] for link in scenario.plan["links"])]
    numbers = f"the number of a flow, 1 to {len(scenario.plan['labels'])}"
    return _core.ScenarioError(f"{key}: expected {numbers}, or {_core.one_of(known, where)}; found {where!r}")


def signal(text: str, scenario: Scenario, key: str) -> Signal:
    """The signal `NAME.WHERE` of samples. Raises `ScenarioError`, which names `key`, if there is none."""
    name, dot, where = text.partition(".")
    if not dot:
        raise _core.ScenarioError(f"{key}: expected a signal and its flow or link, such as cwnd.1, found {text!r}")
    if (flow := _flow(where, scenario, key)) >= 0:
        kept = variables(flow, scenario)
        known = {**_columns("flows"), **{one: one for one in kept}}
        if name not in known and name in _core.VARIABLES:
            raise NotKeptError(
                f"{key}: expected {_core.one_of(list(known), name)}, found {name!r}",
                f"{_algorithm(flow, scenario)} does not keep {name}"
                if name not in _kept(flow, scenario)
                else f"the engine {scenario.document['engine']} does not record {name}",
            )
        column = _named(name, known, key)
        if name in kept:
            return Signal(text, VARIABLES, name, flow, kept[name].unit or "1", kept[name].values)
        return Signal(text, "flows", column, flow, unit_of(column))
    if _link(where, scenario):
        column = _named(name, _columns("queues"), key)
        return Signal(text, "queues", column, where, unit_of(column))
    raise _unknown(where, scenario, key)


@cache
def _variables(algorithm: str, start: str) -> Mapping[str, Variable]:
    known = [one for one in algorithms() if one.name == algorithm] + [one for one in slow_starts() if one.name == start]
    return {kept.name: kept for one in known for kept in one.variables}


def _algorithm(flow: int, scenario: Scenario) -> str:
    """The name of the algorithm of a flow."""
    counted = itertools.chain.from_iterable([one["cc"]] * one.get("count", 1) for one in scenario.document["flow"])
    cc = next(itertools.islice(counted, flow, None))
    return cc if isinstance(cc, str) else str(cc["name"])


def variables(flow: int, scenario: Scenario) -> Mapping[str, Variable]:
    """The variables of the algorithm and the slow start of a flow that a run records, by their names."""
    engine, kept = scenario.document["engine"], _kept(flow, scenario)
    return {name: one for name, one in kept.items() if engine == "sim" or (one.on_kernels and engine != "model")}


def _kept(flow: int, scenario: Scenario) -> Mapping[str, Variable]:
    return _variables(_algorithm(flow, scenario), scenario.plan["slow_starts"][flow])


def mentions_variables(text: str) -> bool:
    """Whether a text needs what algorithms keep: `state.1`, or a number of rounds."""
    names = {*_core.VARIABLES} - _columns("flows").keys()
    return text.endswith("rounds") or any(name in names for name in re.findall(r"([a-z_0-9]+)\.", text))


def reading(text: str, scenario: Scenario, window: Window, key: str) -> Reading:
    """What a text such as "goodput.2", "max of cwnd.1" or "time until cwnd.1 >= 500 segments" reads from a run.

    Raises `ScenarioError`, which names `key`, for a text that means nothing.
    """
    for begin, read in (("share of time with ", _share_of_time), ("time until ", _time_until)):
        if text.startswith(begin):
            condition = conditions(text.removeprefix(begin), scenario, key)
            is_time = read is _time_until
            least, most = (0.0, math.inf) if is_time else (0.0, 1.0)
            unit = "s" if is_time else "1"
            return Reading(text, unit, partial(read, condition, window), is_time, (least, most), is_of_samples=True)
    statistic, of, of_what = text.partition(" of ")
    if of:
        if statistic not in (*STATISTICS, "mean"):
            known = _core.one_of([*STATISTICS, "mean"], statistic)
            raise _core.ScenarioError(f"{key}: expected {known} before of, found {statistic!r}")
        of_it = signal(of_what, scenario, key)
        return Reading(text, of_it.unit, partial(_statistic, statistic, of_it, window), is_of_samples=True)
    return _metric(text, scenario, key)


def _metric(text: str, scenario: Scenario, key: str) -> Reading:
    """A figure of the summary of a run, or of one of its parts."""
    name, dot, where = text.partition(".")
    part, of = _place(where, scenario, key) if dot else ("Summary", lambda run: run.summary)
    derived = DERIVED if part == "FlowSummary" else {}
    of_transfers = OF_TRANSFERS if part in ("FlowSummary", "CrowdSummary", "TransferSummary") else {}
    column = _named(name, {**_figures(part), **{one: one for one in (*derived, *of_transfers)}}, key)
    if quartile := of_transfers.get(column):
        if not scenario.document["trace"].get("transfers", True):
            raise _core.ScenarioError(f"{key}: expected trace.transfers = true for {text}, found false")
        least, most = 0.0, 1.0 if quartile.unit == "1" else math.inf
        members = partial(_members, where, scenario, key)
        return Reading(
            text,
            quartile.unit,
            lambda run: quartile.read(run, members(run)),
            bounds=(least, most),
            better=quartile.better,
        )
    if figure := derived.get(column):
        flow = _flow(where, scenario, key)
        return Reading(text, "1", lambda run: figure.read(run, flow), bounds=(0.0, figure.most), better=figure.better)
    told = declared_fields()[part, column]
    shown = told["shown"] or {}

    def read(run: Run) -> Sample:
        found = of(run)
        value = None if found is None else getattr(found, column)
        return None if value is None else float(value)

    bounds = (0.0, math.inf if told["most"] is None else told["most"])
    is_percentage, better = shown.get("unit", "").startswith("%"), shown.get("better", "neither")
    return Reading(text, unit_of(column), read, bounds=bounds, is_percentage=is_percentage, better=better)


def _place(where: str, scenario: Scenario, key: str) -> tuple[str, Callable[[Run], Any]]:
    """The part of a summary that the name after the dot means, and how it is had from a run."""
    if where == "transfers":
        return "TransferSummary", lambda run: run.summary.transfers
    if (flow := _flow(where, scenario, key)) >= 0:
        return "FlowSummary", lambda run: run.summary.flows[flow]
    if _link(where, scenario):
        return "LinkSummary", partial(_part, "links", "name", where)
    for kind, part in KINDS.items():
        if any(one.get("label", kind) == where for one in scenario.document.get(kind, ())):
            return PARTS[part], partial(_part, part, "label", where)
    raise _unknown(where, scenario, key)


def _members(where: str, scenario: Scenario, key: str, run: Run) -> list[int]:
    """The numbers in tables of the flows and crowds that the name after the dot means: crowds are numbered after flows."""
    flows = len(run.summary.flows)
    if where == "transfers":
        return list(range(flows))
    if (flow := _flow(where, scenario, key)) >= 0:
        return [flow]
    return [flows + number for number, crowd in enumerate(run.summary.crowds) if crowd.label == where]


def _part(part: str, by: str, name: str, run: Run) -> Any:
    return next((one for one in getattr(run.summary, part) if getattr(one, by) == name), None)


def end_s(run: Any) -> float:
    """The end of a run, or of what was recorded in place of one, in s."""
    if (recorded := getattr(run.summary, "end_s", None)) is not None:
        return float(recorded)
    return _core.seconds(run.scenario.document["duration"])


def _measured(run: Run, window: Window) -> Window:
    """The window of a statistic: by default the measuring window."""
    summary = run.summary
    from_s = summary.from_s if window.from_s is None else window.from_s
    return Window(from_s, summary.to_s if window.to_s is None else window.to_s)


def _lasting(time_s: Numbers, window: Window) -> Numbers:
    """How long each sample of a window stands, in s: until the next one, or the end."""
    lasting = np.diff(np.append(time_s, window.to_s or math.inf))
    return lasting if lasting.sum() > 0 else np.ones(len(time_s))


def _statistic(statistic: str, of_it: Signal, window: Window, run: Run) -> Sample:
    time_s, values = of_it.of(run)
    within = _measured(run, window)
    known = within.of(time_s) & ~np.isnan(values)
    if not known.any():
        return None
    if statistic == "mean":
        return float(np.average(values[known], weights=_lasting(time_s[known], within)))
    return float(STATISTICS[statistic](values[known]))


def _share_of_time(condition: "Conditions", window: Window, run: Run) -> Sample:
    time_s, holds = condition.of(run)
    measured = _measured(run, window)
    within = measured.of(time_s)
    return float(np.average(holds[within], weights=_lasting(time_s[within], measured))) if within.any() else None


def _time_until(condition: "Conditions", window: Window, run: Run) -> Sample:
    """The time from the start of the window until the condition holds."""
    time_s, holds = condition.of(run)
    from_s = window.from_s or 0.0
    to_s = end_s(run) if window.to_s is None else window.to_s
    within = Window(from_s, to_s).of(time_s)
    if not within.any():
        return None
    seen = time_s[holds & within]
    return Time(float(seen[0]) - from_s, seen=True) if len(seen) else Time(to_s - from_s, seen=False)


@dataclass(frozen=True)
class Compared:
    """A signal, and what it is compared with: a quantity, or a multiple of another signal."""

    left: Signal
    sign: str
    right: Quantity | tuple[float, Signal]

    def of(self, run: Run) -> tuple[Numbers, Numbers, Numbers]:
        """Times in s, the values on the left, and those on the right, carried on from the last sample."""
        time_s, left = self.left.of(run)
        if isinstance(self.right, Quantity):
            return time_s, left, np.full(len(time_s), self.right.value(run.scenario))
        factor, other = self.right
        other_s, values = other.of(run)
        times = np.union1d(time_s, other_s)
        return times, carried(times, time_s, left), factor * carried(times, other_s, values)


@dataclass(frozen=True)
class Conditions:
    """Comparisons that hold together."""

    text: str
    parts: tuple[Compared, ...]

    def of(self, run: Run) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The times of samples, in s, and whether it holds then. Times at which a value is unknown are left out."""
        found = [part.of(run) for part in self.parts]
        times = found[0][0]
        for time_s, *_ in found[1:]:
            times = np.union1d(times, time_s)
        known, holds = np.ones(len(times), bool), np.ones(len(times), bool)
        for part, (time_s, left, right) in zip(self.parts, found, strict=True):
            here, there = carried(times, time_s, left), carried(times, time_s, right)
            known &= ~np.isnan(here) & ~np.isnan(there)
            holds &= COMPARED[part.sign](here, there)
        return times[known], holds[known]

    def values(self, run: Run, time_s: float) -> str:
        """What the signals are at a time, for people: `cwnd.1 = 3.2`."""
        shown = []
        for part in self.parts:
            times, left, _ = part.of(run)
            value = carried(np.array([time_s]), times, left)[0]
            known = part.left.names and not math.isnan(value)
            text = part.left.names[int(value)] if known else f"{value:.6g}"
            shown.append(f"{part.left.text} = {text}{'' if part.left.unit == '1' else f' {part.left.unit}'}")
        return ", ".join(shown)


def carried(times: Numbers, own: Numbers, values: Numbers) -> Numbers:
    """The last value at each of some times; unknown before the first, and when the next one after the last would have come."""
    if len(own) == 0:
        return np.full(len(times), math.nan)
    place = np.searchsorted(own, times, side="right") - 1
    last_s = own[-1] + (np.diff(own).max() if len(own) > 1 else 0.0)
    return np.where((place >= 0) & (times <= last_s), values[place], math.nan)


def conditions(text: str, scenario: Scenario, key: str) -> Conditions:
    """The conditions of a text such as "cwnd.1 >= 4 segments and queue.bottleneck < 10 packets".

    Raises `ScenarioError`, which names `key`, for a text that means nothing, or that no sample can fulfil.
    """
    parts = tuple(_compared(part, scenario, key) for part in text.split(" and "))
    for name in dict.fromkeys(part.left.text for part in parts):
        least = max(_ends(parts, name, (">=", ">", "is"), math.inf, scenario), default=-math.inf)
        most = min(_ends(parts, name, ("<=", "<", "is"), -math.inf, scenario), default=math.inf)
        if least > most or most < 0:
            raise _core.ScenarioError(f"{key}: expected a condition that can hold, found {text!r}")
    return Conditions(text, parts)


def _ends(
    parts: Sequence[Compared], name: str, signs: Sequence[str], towards: float, scenario: Scenario
) -> Iterator[float]:
    """The values that bound a signal from one side; the next one `towards` the inside, where the bound itself is excluded."""
    for part in parts:
        if part.left.text == name and part.sign in signs and isinstance(part.right, Quantity):
            value = part.right.value(scenario)
            yield math.nextafter(value, towards) if part.sign in ("<", ">") else value


def _is_signal(name: str, where: str, scenario: Scenario, key: str) -> bool:
    """Whether a name with a dot means a signal, and not a key of the scenario."""
    if _link(where, scenario):
        return name in _columns("queues")
    is_flow = where.isdecimal() or where in scenario.plan["labels"]
    return is_flow and (name in _columns("flows") or name in variables(_flow(where, scenario, key), scenario))


def _compared(text: str, scenario: Scenario, key: str) -> Compared:
    signs = "|".join(COMPARED)
    found = re.fullmatch(rf"(.+?) ({signs}) (.+)", text.strip())
    if found is None:
        expected = f"a signal, one of {', '.join(COMPARED)}, and a quantity, such as cwnd.1 >= 4 segments"
        raise _core.ScenarioError(f"{key}: expected {expected}; found {text.strip()!r}")
    left = signal(found[1], scenario, key)
    if left.names:
        if found[3] not in left.names or not found[2].startswith("is"):
            raise _core.ScenarioError(
                f"{key}: expected is, or is not, and {_core.one_of(left.names, found[3])}; found {text!r}"
            )
        value = float(left.names.index(found[3]))
        return Compared(left, found[2], Quantity(found[3], lambda _: value))
    other = re.fullmatch(rf"(?:({NUMBER}) )?(([a-z][a-z_0-9]*)\.(\S+))", found[3])
    if other and _is_signal(other[3], other[4], scenario, key):
        right = signal(other[2], scenario, key)
        if right.unit != left.unit:
            raise _core.ScenarioError(f"{key}: expected signals of one unit, found {left.unit} and {right.unit}")
        return Compared(left, found[2], (float(other[1] or 1), right))
    return Compared(left, found[2], quantity(found[3], left.unit, key))
