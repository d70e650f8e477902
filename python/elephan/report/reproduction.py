"""The results of `elephan reproduce` as a report: published numbers, Elephan's numbers, and verdicts on claims."""

import base64
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.base.documents import inside, read_json
from elephan.base.kinds import documented
from elephan.base.table import Table, text_heads
from elephan.report.content import Content, Picture, Tile
from elephan.studies.reproduce.page import MEANINGS
from elephan.studies.reproduce.stored import places_of, tables_of, verdicts_of


def experiments(folder: Path) -> dict[str, dict[str, Any]]:
    """The reports of experiments in a folder, by name; empty for a folder of another kind.

    They are SOURCE/EXPERIMENT.json, in `full/` or `quick/`, where `elephan reproduce` wrote them. Full reports come first.
    """
    found = {}
    for path in (path for where in ("*", "quick/*", "full/*") for path in sorted(folder.glob(f"{where}/*.json"))):
        if documented(path.parent) is None:
            try:
                report = read_json(folder, str(path.relative_to(folder)))
            except (_core.ScenarioError, OSError):  # a file that Elephan did not write
                continue
            if {"name", "comparisons", "claims"} <= report.keys() and isinstance(report["name"], str):
                found[report["name"]] = report
    return dict(sorted(found.items()))


def read(folder: Path) -> Content:
    """All experiments of a folder."""
    reports = experiments(folder)
    counts: Counter[str] = Counter()
    quick = [name for name, report in reports.items() if report["quick"]]
    for name, report in reports.items():
        # Verdicts of `--quick` are not counted with others.
        if name not in quick or len(quick) == len(reports):
            counts.update(verdicts_of(report))
    made = Counter(report.get("code", "of an unknown version") for report in reports.values())
    return Content(
        kind="reproduction",
        title="Published experiments, reproduced",
        subtitle=f"{len(reports)} experiments"
        + (f"; {len(quick)} with fewer and shorter runs (--quick)" if quick else ""),
        facts=[
            ("report written by", f"Elephan {_core.__version__}"),
            *(("experiments", f"{count} by Elephan {code}") for code, count in sorted(made.items())),
        ],
        command="\n".join(
            f"elephan reproduce {name}{' --quick' if report['quick'] else ''}" for name, report in reports.items()
        ),
        scenario="",
        tiles=[Tile(name, str(counts[name]), "", meaning) for name, meaning in MEANINGS.items() if counts[name]],
        tables=[table for name, report in reports.items() for table in _tables(name, report)],
        pictures=[
            Picture(f"{name}: {report['title']}", _png(folder, report["picture"]), _data(folder, report["picture"]))
            for name, report in reports.items()
            if report.get("picture") and (folder / report["picture"]).is_file()
        ],
    )


def _tables(name: str, report: dict[str, Any]) -> list[Table]:
    tables = [replace(table, title=f"{name}: {table.title}") for table in tables_of(report)]
    if report["claims"]:
        head = text_heads("claim", "verdict", "what the source says")
        rows = [[claim["claim"], claim["verdict"], claim["sentence"]] for claim in report["claims"]]
        tables.append(Table(f"{name}: claims", head, rows))
    places = (places_of(claim) for claim in report["claims"])
    tables.extend(replace(table, title=f"{name}, {table.title}") for table in places if table is not None)
    return tables


def _png(folder: Path, name: str) -> str:
    return "data:image/png;base64," + base64.b64encode(inside(folder, name).read_bytes()).decode()


def _data(folder: Path, name: str) -> str:
    """The data of a picture as CSV; empty if it was not stored."""
    path = inside(folder, str(Path(name).with_suffix(".csv")))
    return path.read_text(encoding="utf-8") if path.is_file() else ""
