"""What the page shows of each report, beside the page: a JSON document for each source.

The runs of all experiments take days of processor time, and their results folder does not outlive its machine. These documents, and the
pictures that were drawn from runs, are what a repository has of it, and what all pages are made from. A new report takes the place of that of the same
experiment and engine; the others stay.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elephan.base.documents import read_json
from elephan.base.folders import new_file
from elephan.studies.lab import Engine
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import OTHERS, SOURCES
from elephan.studies.reproduce.stored import read_reports

# The reports of an engine, by the names of their experiments.
Reports = Mapping[str, dict[str, Any]]
Archive = Mapping[Engine, Reports]
# The keys that are kept of a document, with those of the documents within it.
Keys = Mapping[str, "Keys | None"]
# A number keeps more digits than any page shows, and not those of its binary form.
DIGITS = 6
# A number from here on is shown as an integer of any length.
WHOLE_FROM = 10**DIGITS


def _keys(*plain: str, **documents: "Keys") -> "Keys":
    return {**dict.fromkeys(plain), **documents}


SHOWN = _keys(
    *("name", "engine", "title", "scenario", "choices", "quick", "looks", "code", "picture", "notes"),
    comparisons=_keys(
        *("group", "unit", "kind", "band", "verdict", "reason", "cause_of", "changed", "command"),
        rows=_keys(
            *("system", "published", "uncertainty", "deviation", "agrees", "unusable"),
            ours=_keys("value", "low", "high", "text"),
        ),
    ),
    claims=_keys(
        *("claim", "where", "verdict", "kind", "sentence", "population", "statistic", "bound", "rule", "tried", "oracle", "means"),
        sets=_keys(
            *("name", "verdict"),
            findings=_keys(
                *("place", "unit", "above", "below", "holds", "unusable"),
                ours=_keys("text", "repeats"),
            ),
        ),
    ),
)  # fmt: skip
# Of an engine beside the simulator, which is shown in a column.
SHOWN_BESIDE = _keys(
    *("name", "engine", "quick", "code", "differences"),
    comparisons=_keys(*("group", "kind", "verdict", "cause_of"), rows=_keys("system", "unusable", ours=_keys("text"))),
    claims=_keys(
        *("claim", "verdict", "kind"),
        sets=_keys("name", findings=_keys("place", "holds", "unusable", ours=_keys("text"))),
    ),
)


def read_archive(folder: Path) -> Archive:
    """The reports in a folder, of the experiments that exist. One of the simulator may be of `--quick`, if there is no other."""
    found: dict[Engine, dict[str, dict[str, Any]]] = {engine: {} for engine in ("sim", *OTHERS)}
    for source in SOURCES:
        if (folder / f"{source}.json").is_file():
            for report in read_json(folder, f"{source}.json")["reports"]:
                if report["name"] not in EXPERIMENTS:
                    continue
                found[report["engine"]][report["name"]] = report
    return dict(found)


def with_results(archive: Archive, results: Path) -> tuple[Archive, dict[str, Path]]:
    """The archive with the reports of a results folder, and the pictures of these by the names that they have in an archive.

    A report of `--quick` never replaces a full one. Experiments that do not exist any more are left out.
    """
    names = [name for source in SOURCES for name, one in EXPERIMENTS.items() if one.source == source]
    merged = {engine: dict(old) for engine, old in archive.items()}
    pictures: dict[str, Path] = {}
    # Verdicts of `--quick` do not count, so there is no second opinion on them.
    quick = {
        name: one for name, one in read_reports(results, quick=True).items() if archive["sim"].get(name, one)["quick"]
    }
    for name, report in (quick | read_reports(results, quick=False)).items():
        new = _only(report | {"engine": "sim"}, SHOWN)
        if new.get("picture"):
            new["picture"] = f"{name.replace('/', '-')}.png"
            pictures[new["picture"]] = results / report["picture"]
        merged["sim"][name] = new
    for engine in OTHERS:
        for name, report in read_reports(results, quick=False, engine=engine).items():
            new = _only(report | {"engine": engine}, SHOWN_BESIDE)
            if report.get("part") and name in merged[engine]:
                # A second opinion on some claims, in its place within that on the whole experiment.
                whole = merged[engine][name]
                opinions = {one["claim"]: one for one in (*whole["claims"], *new["claims"])}
                told = dict.fromkeys((*whole.get("differences", ()), *new.get("differences", ())))
                new = whole | {"claims": list(opinions.values()), "differences": list(told)}
            merged[engine][name] = new
    return {
        engine: {name: found[name] for name in names if name in found} for engine, found in merged.items()
    }, pictures


def write_archive(archive: Archive, folder: Path) -> None:
    """Write the document of each source that has reports: a line for each row and each finding, in the order of the experiments."""
    for source in SOURCES:
        reports = [found[name] for name in EXPERIMENTS for found in archive.values() if name in found]
        reports = [report for report in reports if report["name"].startswith(f"{source}/")]
        if reports:
            with new_file(folder / f"{source}.json") as new:
                new.write_text(_lines({"reports": reports}) + "\n", encoding="utf-8")


def _only(value: Any, keys: "Keys | None") -> Any:
    """A document with these keys only, where it has them, and with rounded numbers."""
    if isinstance(value, list):
        return [_only(one, keys) for one in value]
    if isinstance(value, dict) and keys is not None:
        return {key: _only(value[key], inner) for key, inner in keys.items() if key in value}
    if isinstance(value, float) and abs(value) < WHOLE_FROM:
        return float(f"{value:.{DIGITS}g}")
    return value


def _lines(value: Any, indent: str = "") -> str:
    """JSON with a line for each element of each list."""
    inner = f"{indent} "
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _lines(one, inner) for one in value) + f"\n{indent}]"
    if isinstance(value, dict):
        plain = ", ".join(f"{_text(key)}: {_text(one)}" for key, one in value.items() if not isinstance(one, list))
        lists = [f"{_text(key)}: {_lines(one, inner)}" for key, one in value.items() if isinstance(one, list)]
        return "{" + f",\n{inner}".join([*([plain] if plain else []), *lists]) + "}"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
