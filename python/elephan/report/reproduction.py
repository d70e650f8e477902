"""The results of `elephan reproduce` as a report: published numbers, Elephan's numbers, and verdicts on claims."""

import base64
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.base.documents import inside, read_json
from elephan.base.table import Table, text_heads
from elephan.report.content import Content, Picture, Tile
from elephan.studies.reproduce.page import table_of

# Verdicts, best first, and their meaning.
VERDICTS = {
    "agrees": "Within the stated band of the published number, or within both uncertainties.",
    "same ordering": "All pairs of systems that differ in the publication have the same order here.",
    "differs": "Neither of the two above.",
    "confirmed": "A claim that holds here.",
    "refuted": "A claim that does not hold here.",
    "untestable here": "A claim that cannot be tested here.",
}


def experiments(folder: Path) -> dict[str, dict[str, Any]]:
    """The reports of experiments in a folder, by name; empty for a folder of another kind.

    They are SOURCE/EXPERIMENT.json, in `full/` or `quick/`, where `elephan reproduce` wrote them. Full reports come first.
    """
    found = {}
    for path in (path for where in ("*", "quick/*", "full/*") for path in sorted(folder.glob(f"{where}/*.json"))):
        if path.name not in ("run.json", "summary.json", "comparison.json", "sweep.json"):
            try:
                report = read_json(folder, str(path.relative_to(folder)))
            except (_core.ScenarioError, OSError):  # a file that Elephan did not write
                continue
            if {"name", "rows", "verdicts", "checks"} <= report.keys() and isinstance(report["name"], str):
                found[report["name"]] = report
    return dict(sorted(found.items()))


def read(folder: Path) -> Content:
    """All experiments of a folder."""
    reports = experiments(folder)
    counts: Counter[str] = Counter()
    for report in reports.values():
        counts.update(report["verdicts"].values())
        counts.update(check["verdict"] for check in report["checks"])
    made = Counter(report.get("code", "of an unknown version") for report in reports.values())
    quick = any(report["quick"] for report in reports.values())
    return Content(
        kind="reproduction",
        title="Published experiments, reproduced",
        subtitle=f"{len(reports)} experiments" + ("; some with fewer and shorter runs (--quick)" if quick else ""),
        facts=[
            ("report written by", f"Elephan {_core.__version__}"),
            *(("experiments", f"{count} by Elephan {code}") for code, count in sorted(made.items())),
        ],
        command="\n".join(
            f"elephan reproduce {name}{' --quick' if report['quick'] else ''}" for name, report in reports.items()
        ),
        scenario="",
        tiles=[Tile(name, str(counts[name]), "", meaning) for name, meaning in VERDICTS.items()],
        tables=[table for name, report in reports.items() for table in _tables(name, report)],
        pictures=[
            Picture(f"{name}: {report['title']}", _png(folder, report["picture"]), _data(folder, report["picture"]))
            for name, report in reports.items()
            if report.get("picture") and (folder / report["picture"]).is_file()
        ],
    )


def _tables(name: str, report: dict[str, Any]) -> list[Table]:
    tables = []
    if report["rows"]:
        found = [
            f"{group}: {verdict}" + _reason(report, group, verdict) for group, verdict in report["verdicts"].items()
        ]
        tables.append(replace(table_of(report), note="; ".join([*found, *report["notes"]])))
    if report["checks"]:
        head = text_heads("claim", "verdict", "what it says", "what was found")
        rows = [[check["claim"], check["verdict"], check["text"], check["evidence"]] for check in report["checks"]]
        tables.append(Table(f"{name}: claims", head, rows))
    return tables


def _reason(report: dict[str, Any], group: str, verdict: str) -> str:
    reason = report["reasons"].get(group)
    return f" ({reason})" if reason and verdict != "agrees" else ""


def _png(folder: Path, name: str) -> str:
    return "data:image/png;base64," + base64.b64encode(inside(folder, name).read_bytes()).decode()


def _data(folder: Path, name: str) -> str:
    """The data of a picture as CSV; empty if it was not stored."""
    path = inside(folder, str(Path(name).with_suffix(".csv")))
    return path.read_text(encoding="utf-8") if path.is_file() else ""
