"""What a check reports: tables, Markdown for a pull request, JUnit XML for a build server, and the document of its folder."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from elephan.base.table import Cell, Head, Table, text_heads
from elephan.studies.check.decisions import Decided, Decision
from elephan.studies.check.expectations import Expectation


def counted(decided: Sequence[Decided]) -> str:
    """`3 held, 1 failed`."""
    counts = Counter(one.decision for one in decided)
    return ", ".join(f"{counts[decision]} {decision}" for decision in Decision if counts[decision])


def overview(decided: Sequence[Decided], *, compared: bool) -> Table:
    """A row for each expectation on each engine."""
    engines = len({one.engine for one in decided}) > 1
    heads = text_heads("verdict", "expectation", *(["engine"] if engines else []), "found", "bound")
    change = text_heads("against the base") if compared else []
    rows: list[list[Cell]] = [
        [
            str(one.decision),
            one.expectation.says,
            *([one.engine] if engines else []),
            _found(one),
            one.expectation.bound or one.expectation.text,
            one.repeats,
            *([one.change] if compared else []),
        ]
        for one in decided
    ]
    return Table("", [*heads, Head("repeats"), *change], rows)


def _found(one: Decided) -> str:
    """The value at the point that speaks most against it, or why there is none."""
    if one.decision == Decision.NOT_EVALUATED:
        return one.reason
    worst = one.worst
    at = f" at {place}" if (place := _name(one, worst)) and len(one.places) > 1 else ""
    what = f"{one.expectation.text} " if one.expectation.bound else ""
    return f"{what}{worst.found}{at}"


def _name(one: Decided, at: Any) -> str:
    return one.expectation.question.sets[""][one.places.index(at)].name


def remarks(one: Decided) -> list[str]:
    """What is said of an expectation that did not hold: what was found at each such point, and the commands that repeat it."""
    lines = []
    for at in one.places:
        if at.decision == Decision.HELD or (at.decision != one.decision and one.decision == Decision.FAILED):
            continue
        name = _name(one, at)
        lines += [
            f"{f'{name}: ' if name else ''}{at.found}, seed {at.seed}",
            *(f"  {command}" for command in at.commands),
        ]
    if one.reason and one.decision == Decision.UNDECIDED:
        lines.append(one.reason)
    return lines


def markdown(decided: Sequence[Decided], *, compared: bool) -> str:
    """The table, and what is said of what did not hold, for a pull request."""
    parts = [f"**{counted(decided)}**", "", overview(decided, compared=compared).written("md").rstrip()]
    for one in decided:
        if one.decision != Decision.HELD and (lines := remarks(one)):
            parts += ["", f"`{one.expectation.name}` {one.expectation.says}: {one.decision}", "", "```", *lines, "```"]
    return "\n".join(parts) + "\n"


def junit(decided: Sequence[Decided]) -> bytes:
    """JUnit XML: a suite for each file, a case for each expectation. Undecided is an error, not evaluated is skipped."""
    suites = Xml.Element("testsuites", name="elephan check")
    for file in dict.fromkeys(str(one.expectation.file) for one in decided):
        ones = [one for one in decided if str(one.expectation.file) == file]
        counts = Counter(one.decision for one in ones)
        suite = Xml.SubElement(
            suites,
            "testsuite",
            name=file,
            tests=str(len(ones)),
            failures=str(counts[Decision.FAILED]),
            errors=str(counts[Decision.UNDECIDED]),
            skipped=str(counts[Decision.NOT_EVALUATED]),
        )
        for one in ones:
            case = Xml.SubElement(suite, "testcase", classname=f"{file}.{one.engine}", name=one.expectation.says)
            tag = {Decision.FAILED: "failure", Decision.UNDECIDED: "error", Decision.NOT_EVALUATED: "skipped"}
            if one.decision in tag:
                told = Xml.SubElement(case, tag[one.decision], message=_found(one) or one.reason)
                told.text = "\n".join(remarks(one))
    Xml.indent(suites)
    written: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def records(decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """The decisions as documents."""
    return [_record(one) for one in decided]


def _record(one: Decided) -> dict[str, Any]:
    told: Expectation = one.expectation
    return {
        "file": str(told.file),
        "number": told.number,
        "says": told.says,
        "engine": one.engine,
        "verdict": str(one.decision),
        "reads": told.text,
        "bound": told.bound,
        "reason": one.reason,
        "change": one.change,
        "points": [
            {
                "settings": dict(at.point.settings),
                "verdict": str(at.decision),
                "value": _finite(at.finding.found.value),
                "low": _finite(at.finding.found.low),
                "high": _finite(at.finding.found.high),
                "unit": at.finding.unit,
                "repeats": at.finding.found.repeats,
                "why": at.why or at.finding.unusable,
                "seed": at.seed,
                "commands": list(at.commands),
            }
            for at in one.places
        ],
    }


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
