"""What a comparison runs: the scenarios of each algorithm, on a dumbbell or as a file has it."""

from collections.abc import Mapping, Sequence
from typing import Any

from elephan import _core
from elephan.api.scenario import Scenario, Source, dumbbell, flow, load
from elephan.base.errors import given_as
from elephan.base.text import listed

# The arguments of `compare` that give the keys of its scenarios.
ARGUMENTS = {f"path.{key}": key for key in ("rate", "rtt", "buffer")} | {"flow.cc": "cc", "flow.start": "start_within"}
# What it compares on without a scenario.
PATH = {"rate": "250 Mbit/s", "rtt": "82 ms", "buffer": "20% bdp", "duration": "300 s"}
FLOWS, START_WITHIN = 2, "20 s"


@given_as(ARGUMENTS)
def planned(
    scenario: Source | None = None,
    *,
    cc: Sequence[str] | str | Mapping[str, str],
    rate: str | None = None,
    rtt: str | None = None,
    buffer: str | None = None,
    flows: int | None = None,
    duration: str | None = None,
    repeat: int = 5,
    seed: int | None = None,
    start_within: str | None = None,
    settings: Mapping[str, str] | None = None,
    large: bool = False,
    against: str | None = None,
    **keys: Any,
) -> dict[str, list[Scenario]]:
    """The scenarios that `compare` runs with these arguments: those of each algorithm by its name."""
    rules = dict(cc) if isinstance(cc, Mapping) else {name: name for name in listed(cc)}
    if not rules:
        raise _core.ScenarioError("cc: expected one or more algorithms, found none")
    for argument, value, least in (("repeat", repeat, 1), ("flows", flows, 1 if against is None else 2)):
        if value is not None and value < least:
            raise _core.ScenarioError(f"{argument}: expected {least} or more, found {value}")
    path = {"rate": rate, "rtt": rtt, "buffer": buffer}
    given: dict[str, Any] = {key: value for key, value in {**path, "duration": duration}.items() if value is not None}
    changes = dict(settings or {})
    if scenario is not None:
        of_dumbbells = {"flows": flows, "start_within": start_within, **keys}
        for name, value in of_dumbbells.items():
            if value is not None:
                raise _core.ScenarioError(f"{name}: expected none with a scenario, which has it; found {value!r}")
        changes |= {key if key == "duration" else f"path.{key}": value for key, value in given.items()}
    flows, start_within = flows or FLOWS, start_within or START_WITHIN
    later = {"uniform": ["0 s", start_within]}

    def made(name: str, rule: str) -> Scenario:
        if scenario is not None:
            of_cc = {"flow.cc": rule} if against is None else {"flow.cc": against, "flow.0.cc": rule}
            return load(scenario, {**changes, **of_cc}, large=large)
        of_path = {**PATH, **given}
        flows_ = [flow(rule), *(flow(against or rule, start=later) for _ in range(flows - 1))]
        name = f"{name} {of_path['rate']} {of_path['rtt']}"
        one = dumbbell(name=name, flows=flows_, large=large, **of_path, **keys)
        return one.with_settings(changes, large=large) if changes else one

    if against is not None:
        with given_as({**ARGUMENTS, "flow.cc": "against", "flow.0.cc": "against"}):
            made(against, against)
        rules.setdefault(against, against)
    every = {}
    for name, rule in rules.items():
        one = made(name, rule)
        first = one.document["seed"] if seed is None else seed
        every[name] = [one.with_settings({"seed": f"{first + k}"}, large=large) for k in range(repeat)]
    return every
