"""The page that shows all experiments, made from stored reports."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.base.documents import read_json
from elephan.base.folders import new_file
from elephan.base.numbers import deviation, measured
from elephan.base.table import Head, Table, of_markdown, text_heads
from elephan.studies.reproduce.lab import EXPERIMENTS, SOURCES, Experiment, Report, claims


def report_place(folder: Path, name: str, *, quick: bool) -> Path:
    """Where the report of an experiment is stored: separately for full runs and for `--quick`."""
    return folder / ("quick" if quick else "full") / f"{name}.json"


def report_of(one: Experiment, report: Report, *, quick: bool) -> dict[str, Any]:
    """A report in its stored form: text and numbers, and the data of its figure if it has one."""
    texts = claims(one.source)
    return {
        "name": one.name,
        "title": one.title,
        "scenario": one.scenario,
        "choices": list(one.choices),
        "quick": quick,
        "rows": [
            {
                "group": r.group,
                "system": r.system,
                "unit": r.unit,
                "published": "never" if r.published is None else measured(r.published, r.uncertainty),
                "ours": r.ours.text(),
                "deviation": r.deviation,
                "band": r.band,
                "agrees": r.agrees,
            }
            for r in report.rows
        ],
        "verdicts": report.verdicts(),
        "reasons": report.reasons,
        "checks": [
            {"claim": c.claim, "verdict": c.verdict, "text": texts[c.claim]["claim"], "evidence": c.evidence}
            for c in report.checks
        ],
        "notes": report.notes,
        "draw": report.draw,
    }


def table_of(report: dict[str, Any]) -> Table:
    """The published numbers of a stored report, beside ours."""
    head = [
        *text_heads("quantity", "system", "unit"),
        Head("published"),
        Head("ours"),
        Head("deviation", "%"),
        Head("band", "%"),
        *text_heads("within"),
    ]
    rows = [
        [
            row["group"],
            row["system"],
            row["unit"],
            row["published"],
            row["ours"],
            deviation(row["deviation"]),
            f"{100 * row['band']:g}",
            "agrees" if row["agrees"] else "",
        ]
        for row in report["rows"]
    ]
    return Table(f"{report['name']}: {report['title']}", head, rows)


def write_page(folder: Path, page: Path) -> Path:
    """Write the page, and copy its pictures to the same place."""
    reports: dict[str, dict[str, Any]] = {}
    for name in EXPERIMENTS:
        # The full report is preferred.
        for quick in (True, False):
            if (place := report_place(folder, name, quick=quick)).is_file():
                reports[name] = read_json(place.parent, place.name)
    if not reports:
        raise ScenarioError(f"{folder}: expected reports of experiments, found none")
    pictures = page.with_suffix("")
    lines = [
        "# Published experiments, reproduced",
        "",
        "Made by `elephan reproduce all` and `elephan reproduce page`. Each section is one table or figure: the published values,",
        "Elephan's values with 95 % confidence intervals over repeats, and a verdict: *agrees* within the stated band (or within both",
        "uncertainties), *same ordering* if all pairs of systems that differ in the publication have the same order, otherwise *differs*.",
        "Claims are *confirmed*, *refuted* or *untestable here*. Parameters come from the sources; if a source does not give one, the choice is",
        "listed. Nothing was tuned.",
        "",
        _versions(reports),
        "",
        _overview(reports),
        *_contents(reports),
    ]
    for source in SOURCES:
        lines += ["", f"## {SOURCES[source]}", ""]
        for name, report in reports.items():
            if name.startswith(f"{source}/"):
                lines += _section(report, _usual(reports), folder, pictures)
    lines += _untested(reports)
    with new_file(page) as new:
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


# Early reports do not record the code version.
UNKNOWN = "an unknown version"


def made_by(report: dict[str, Any]) -> str:
    """The version of the package and of the code that made a report."""
    return str(report.get("code", UNKNOWN))


def _usual(reports: dict[str, dict[str, Any]]) -> str:
    """The code version of most of the reports that record one."""
    told = Counter(made_by(report) for report in reports.values() if "code" in report)
    return told.most_common(1)[0][0] if told else UNKNOWN


def _versions(reports: dict[str, dict[str, Any]]) -> str:
    """The code versions of the reports."""
    usual = _usual(reports)
    others = Counter(made_by(report) for report in reports.values() if made_by(report) != usual)
    text = f"made by Elephan {usual} (package version, and a hash of the code that makes results)"
    if not others:
        return f"All reports were {text}."
    told = ", ".join(f"{count} by {version}" for version, count in sorted(others.items()))
    return f"{len(reports) - others.total()} of {len(reports)} reports were {text}; {told}: marked *other code*."


def _overview(reports: dict[str, dict[str, Any]]) -> str:
    kinds = ("agrees", "same ordering", "differs", "confirmed", "refuted", "untestable here")
    rows = []
    for source in SOURCES:
        found = [r for name, r in reports.items() if name.startswith(f"{source}/")]
        all_of = [v for r in found for v in r["verdicts"].values()] + [c["verdict"] for r in found for c in r["checks"]]
        rows.append([SOURCES[source], *(str(all_of.count(kind)) for kind in kinds)])
    return of_markdown([*text_heads("source"), *map(Head, kinds)], rows).to_markdown()


def _contents(reports: dict[str, dict[str, Any]]) -> list[str]:
    """The experiments that were run in full, with `--quick`, or not yet."""
    usual = _usual(reports)
    rows = []
    for name, one in EXPERIMENTS.items():
        report = reports.get(name)
        if report is None:
            rows.append([name, one.title, "not yet", ""])
            continue
        verdicts = Counter([*report["verdicts"].values(), *(c["verdict"] for c in report["checks"])])
        text = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        how = ("--quick" if report["quick"] else "in full") + ("" if made_by(report) == usual else ", *other code*")
        rows.append([name, one.title, how, text])
    kinds = Counter("not yet" if n not in reports else "quick" if reports[n]["quick"] else "full" for n in EXPERIMENTS)
    head = f"Of {len(EXPERIMENTS)} experiments {kinds['full']} were run in full, {kinds['quick']} by `--quick`, {kinds['not yet']} not yet:"
    table = of_markdown(text_heads("experiment", "what", "run", "verdicts"), rows)
    return [head, "", table.to_markdown().rstrip()]


def _section(report: dict[str, Any], usual: str, folder: Path, pictures: Path) -> list[str]:
    name = report["name"]
    lines = [
        f"### {name}: {report['title']}",
        "",
        f"    elephan reproduce {name}{' --quick' if report['quick'] else ''}",
        "",
    ]
    if made_by(report) != usual:
        lines += [f"*Other code*: made by Elephan {made_by(report)}.", ""]
    if report["scenario"]:
        lines += [f"Scenario: `python/elephan/studies/reproduce/scenarios/{report['scenario']}.toml`.", ""]
    for choice in report["choices"]:
        lines.append(f"- Not published: {choice}")
    if report["choices"]:
        lines.append("")
    if report.get("picture"):
        place = pictures / f"{name.replace('/', '-')}.png"
        with new_file(place) as new:
            shutil.copyfile(folder / report["picture"], new)
        lines += [f"![{report['title']}]({pictures.name}/{place.name})", ""]
    if report["rows"]:
        rows = [[f"{group}, {unit}", system, *numbers] for group, system, unit, *numbers, _ in table_of(report).texts]
        head = [*text_heads("quantity", "system"), *map(Head, ("published", "ours", "deviation, %", "band, %"))]
        lines.append(of_markdown(head, rows).to_markdown())
        for group, verdict in report["verdicts"].items():
            reason = report["reasons"].get(group)
            lines.append(f"- **{verdict}**: {group}{': ' + reason if reason and verdict != 'agrees' else ''}")
        lines.append("")
    for check in report["checks"]:
        lines.append(f"- **{check['claim']} {check['verdict']}**: {check['text']} *{check['evidence']}*")
    if report["checks"]:
        lines.append("")
    for note in report["notes"]:
        lines += [note, ""]
    return lines


def _untested(reports: dict[str, dict[str, Any]]) -> list[str]:
    """The claims that no stored report covers."""
    tested = {check["claim"] for report in reports.values() for check in report["checks"]}
    left = [row for source in SOURCES for key, row in claims(source).items() if key not in tested]
    if not left:
        return []
    rows = [[row["id"], f"{row['source']}, {row['locator']}", row["claim"]] for row in left]
    table = of_markdown(text_heads("claim", "source", "what it says"), rows)
    return ["", "## Claims that are not tested yet", "", table.to_markdown().rstrip()]
