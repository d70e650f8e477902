"""The picture of the variables of congestion control: a panel for each, with a line for each flow that keeps it."""

import numpy as np

from elephan.api.pictures.data import Axis, LackingError, Numbers, Panels, Points, Series, label, sentences
from elephan.api.pictures.samples import MOST_LINES, Recorded, names
from elephan.api.registry import algorithms, slow_starts


def variables(run: Recorded) -> Panels:
    """What the algorithms of the flows keep, over time. Raises `LackingError` for a run that did not record it."""
    table = run.table("variables")
    if not table.num_rows:
        raise LackingError(
            "variables: expected a run with trace.variables = true, of algorithms that have some, found none"
        )
    time_s, flow, value = (table[name].to_numpy() for name in ("time_s", "flow", "value"))
    variable, value_name = (np.array(table[name].to_pylist(), object) for name in ("variable", "value_name"))
    called, units = names(run), _units()
    flows = np.unique(flow)[:MOST_LINES]
    panels, still = [], []
    for name in dict.fromkeys(variable[np.isin(flow, flows)].tolist()):
        of_it = variable == name
        seen = dict(zip(value[of_it].tolist(), value_name[of_it].tolist(), strict=True))
        ticks = tuple((number, text) for number, text in sorted(seen.items()) if text is not None)
        if len(ticks) == 1:
            still.append(f"{name} is always {ticks[0][1]}")
            continue
        rows = {one: np.flatnonzero(of_it & (flow == one)) for one in flows.tolist()}
        shown = {one: at for one, at in rows.items() if np.isfinite(value[at]).any()}
        lines = [_steps(called[one], one, time_s[at], value[at]) for one, at in shown.items()]
        if lines:
            y = Axis(label(name, units.get(name, "")), zero=not ticks, ticks=ticks)
            panels.append(Points(name, name, Axis("time (s)"), y, lines))
        else:
            still.append(f"{name} has no value")
    more = f"The first {len(flows)} of {len(np.unique(flow))} flows." if len(np.unique(flow)) > len(flows) else ""
    return Panels(
        "variables", "State of congestion control", panels, sentences(more, f"{', '.join(still)}." if still else "")
    )


def _units() -> dict[str, str]:
    """The unit of each variable, where all algorithms and slow starts that have one of this name agree on it."""
    every: dict[str, set[str]] = {}
    for one in (one for known in [*algorithms(), *slow_starts()] for one in known.variables):
        every.setdefault(one.name, set()).add(one.unit)
    return {name: next(iter(units)) for name, units in every.items() if len(units) == 1}


def _steps(name: str, flow: int, time_s: Numbers, value: Numbers) -> Series:
    """A line on which each value holds until the next; with gaps where none is known, or a bound is not set."""
    known = np.where(np.isfinite(value), value, np.nan)
    same = (known[1:] == known[:-1]) | (np.isnan(known[1:]) & np.isnan(known[:-1]))
    kept = np.unique(np.concatenate([[0], np.flatnonzero(~same) + 1, [len(known) - 1]]))
    x, y = np.repeat(time_s[kept], 2)[1:], np.repeat(known[kept], 2)[:-1]
    return Series(name, flow, x.tolist(), y.tolist(), points=False)
