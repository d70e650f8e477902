"""Reports of experiments as stored: JSON documents in a folder, one for each experiment, engine and thoroughness."""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.base.documents import read_json
from elephan.base.numbers import deviation, measured, significant
from elephan.base.table import Head, Table, text_heads
from elephan.studies.judge import Finding, Interval, Kind, Row
from elephan.studies.lab import Engine, Judgement
from elephan.studies.reproduce.lab import EXPERIMENTS, Experiment, Report, claims

# What the engines are called in tables.
NAMES: Mapping[Engine, str] = {"sim": "simulator", "ns2": "ns-2", "linux": "Linux here", "kernel": "Linux in a guest"}
HOLDS = {True: "holds", False: "fails", None: "undecided"}
# What is stored of a comparison, besides its rows.
COMPARED = ("group", "unit", "kind", "band", "verdict", "reason", "cause_of", "changed", "command")
AGREES = {True: "agrees", False: "differs", None: "undecided"}


def report_place(folder: Path, name: str, *, quick: bool, engine: Engine = "sim") -> Path:
    """Where the report of an experiment is stored: apart for full runs and `--quick`, and for each engine."""
    kind = "quick" if quick else "full"
    return folder / (kind if engine == "sim" else f"{kind}-{engine}") / f"{name}.json"


def report_of(one: Experiment, report: Report) -> dict[str, Any]:
    """A report in its stored form: text and numbers."""
    return {
        **_these(one, "name", "title", "scenario", "choices"),
        "quick": report.lab.quick,
        "engine": report.lab.engine,
        "looks": report.lab.most_looks,
        "comparisons": [
            _these(made, *COMPARED) | {"rows": [_row(row) for row in made.rows]} for made in report.comparisons
        ],
        "claims": [_judgement(one.source, made) for made in report.judgements],
        "notes": report.notes,
    }


def _these(one: object, *names: str) -> dict[str, Any]:
    """Attributes by their names."""
    return {name: getattr(one, name) for name in names}


def _row(row: Row) -> dict[str, Any]:
    told = _these(row, "system", "published", "uncertainty", "deviation", "agrees", "unusable")
    return told | {"ours": _interval(row.found)}


def _judgement(source: str, made: Judgement) -> dict[str, Any]:
    claim, told = made.claim, claims(source)[made.claim.id]
    return {
        "claim": claim.id,
        "where": told["locator"],
        "verdict": made.verdict,
        "sentence": claim.sentence or told["claim"],
        **_these(claim, "kind", "population", "statistic", "bound", "rule", "tried", "oracle", "means"),
        "sets": [
            {"name": name, "verdict": made.verdicts[name], "findings": [_finding(finding) for finding in findings]}
            for name, findings in made.findings.items()
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    told = _these(finding, "unit", "above", "below", "holds", "unusable")
    return told | {"place": finding.name, "ours": _interval(finding.found)}


def _interval(found: Interval) -> dict[str, Any]:
    ends = {
        end: value if math.isfinite(value) else None for end, value in _these(found, "value", "low", "high").items()
    }
    return ends | _these(found, "repeats", "text")


def read_reports(folder: Path, *, quick: bool, engine: Engine = "sim") -> dict[str, dict[str, Any]]:
    """The stored reports of an engine, by the names of their experiments."""
    found = {}
    for name in EXPERIMENTS:
        if (place := report_place(folder, name, quick=quick, engine=engine)).is_file():
            found[name] = read_json(place.parent, place.name)
    return found


def bound_text(finding: Mapping[str, Any]) -> str:
    """The bound of a place: `> 0`, or `0.9 to 1.1`."""
    above, below = finding["above"], finding["below"]
    if above is not None and below is not None:
        return f"{significant(above)} to {significant(below)}"
    if above is not None:
        return f"> {significant(above)}"
    return "" if below is None else f"< {significant(below)}"


def ours_text(one: Mapping[str, Any]) -> str:
    """Our value of a row or a place with its interval, or why there is none."""
    return f"none: {one['unusable']}" if one["unusable"] else str(one["ours"]["text"])


def _beside(one: Mapping[str, Any]) -> str:
    """The number of another engine beside ours; a dash if it has none."""
    return "-" if one["unusable"] else str(one["ours"]["text"])


def tables_of(report: dict[str, Any], others: Mapping[Engine, dict[str, Any]] | None = None) -> list[Table]:
    """The comparisons of a report as tables, with a column for each of the `others`, reports of the same experiment elsewhere."""
    beside = {
        engine: {(one["group"], row["system"]): _beside(row) for one in other["comparisons"] for row in one["rows"]}
        for engine, other in (others or {}).items()
    }
    tables = []
    for comparison in report["comparisons"]:
        # A number without a unit has none in its head.
        unit = "" if comparison["unit"] == "1" else comparison["unit"]
        # Our own theory is never called published, nor a formula a simulation, which needs no engine.
        theirs = "theory" if comparison["kind"] == Kind.THEORY else "published"
        ours, elsewhere = NAMES[report.get("engine", "sim")], beside
        if comparison["kind"] == Kind.FORMULA:
            ours, elsewhere = "formula", {}
        head = [
            *text_heads("system"),
            *(Head(name, unit) for name in (theirs, ours, *(NAMES[engine] for engine in elsewhere))),
            Head("deviation", "%"),
            *text_heads("verdict"),
        ]
        rows = [
            [
                row["system"],
                "never" if row["published"] is None else measured(row["published"], row["uncertainty"]),
                ours_text(row),
                *(rows_of.get((comparison["group"], row["system"]), "-") for rows_of in elsewhere.values()),
                deviation(row["deviation"]),
                AGREES[row["agrees"]],
            ]
            for row in comparison["rows"]
        ]
        title = comparison["group"]
        if comparison["cause_of"]:
            title = f"{comparison['cause_of']}, run again with {comparison['changed']}"
        note = f"verdict: {comparison['verdict']}; band {100 * comparison['band']:g} %"
        if comparison["reason"] and comparison["verdict"] != "agrees":
            note += f"; {comparison['reason']}"
        tables.append(Table(title, head, rows, note))
    return tables


def places_of(claim: dict[str, Any], others: Mapping[Engine, dict[str, Any]] | None = None) -> Table | None:
    """What was found at the places of a claim, as a table; None if it was not tested."""
    if not claim["sets"]:
        return None
    beside = {
        engine: {
            (one["name"], finding["place"]): _beside(finding) for one in other["sets"] for finding in one["findings"]
        }
        for engine, other in (others or {}).items()
    }
    named = any(one["name"] for one in claim["sets"])
    head = [
        *text_heads(*(["set of choices"] if named else []), "place"),
        Head("here"),
        *(Head(NAMES[engine]) for engine in beside),
        *text_heads("unit", "bound", "claim"),
        Head("repeats"),
    ]
    rows = [
        [
            *([one["name"]] if named else []),
            finding["place"],
            ours_text(finding),
            *(found.get((one["name"], finding["place"]), "-") for found in beside.values()),
            "" if finding["unit"] == "1" else finding["unit"],
            bound_text(finding),
            HOLDS[finding["holds"]],
            str(finding["ours"]["repeats"]),
        ]
        for one in claim["sets"]
        for finding in one["findings"]
    ]
    return Table(f"{claim['claim']}: {claim['verdict']}", head, rows)


def verdicts_of(report: dict[str, Any]) -> Counter[str]:
    """The verdicts of a report, counted. Comparisons that show a cause have none."""
    counts = Counter(one["verdict"] for one in report["comparisons"] if not one["cause_of"])
    counts.update(one["verdict"] for one in report["claims"])
    return counts
