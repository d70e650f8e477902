"""The page that shows all experiments, and pages for each source, made from the archive of their reports."""

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.base.folders import new_file
from elephan.base.plots import Figure, save
from elephan.base.table import Head, Table, text_heads
from elephan.base.text import Markdown, markdown
from elephan.studies.judge import KINDS, Kind, Verdict
from elephan.studies.lab import Engine
from elephan.studies.reproduce.archive import Archive, Reports, read_archive, with_results, write_archive
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import OTHERS, SOURCES, claims
from elephan.studies.reproduce.pictures import beside_print, overview
from elephan.studies.reproduce.stored import (
    NAMES,
    bound_text,
    ours_text,
    places_of,
    read_reports,
    tables_of,
    verdicts_of,
)

# A longer table of places is folded.
MOST_SHOWN = 8
# Places that a sentence names.
MOST_NAMED = 3
# The engines whose numbers are those of a kernel.
KERNELS: tuple[Engine, ...] = ("kernel", "linux")
OF_COMPARISONS = (Verdict.AGREES, Verdict.ORDERING, Verdict.DIFFERS, Verdict.UNDECIDED, Verdict.UNTESTABLE)
OF_CLAIMS = (Verdict.CONFIRMED, Verdict.REFUTED, Verdict.DEPENDENT, Verdict.UNDECIDED, Verdict.UNTESTABLE)
MEANINGS = {
    Verdict.AGREES: "our interval lies within the stated band of the printed number",
    Verdict.ORDERING: "some values differ, but all pairs that differ in print have the same order here, with intervals apart",
    Verdict.DIFFERS: "an interval of ours lies outside the band",
    Verdict.CONFIRMED: "the claim holds at every place of its population (or at one, where that is what it says)",
    Verdict.REFUTED: "it fails at a place, with the error rate of all places together below 5 %",
    Verdict.DEPENDENT: "it holds under one plausible set of choices that the source leaves open, and fails under another",
    Verdict.UNDECIDED: "the intervals did not decide within the stated number of repeats",
    Verdict.UNTESTABLE: "no engine of Elephan can run what it takes",
}


def write_page(folder: Path, page: Path) -> Path:
    """Add the reports of a results folder to the archive beside the page, and write the page and the pages of the sources.

    Without new reports it writes what the archive has.
    """
    pages = page.with_suffix("")
    archive, pictures = with_results(read_archive(pages), folder)
    reports, full, beside = archive["sim"], _full(archive), _beside(archive)
    if not reports:
        raise ScenarioError(f"{folder}: expected reports of experiments, found none")
    # Everything is made before anything is written: a damaged report changes nothing.
    text = "\n".join(_head(full, reports, beside, pages.name)) + "\n"
    sources = _Sources(archive)
    write_archive(archive, pages)
    for name, picture in pictures.items():
        with new_file(pages / name) as new:
            shutil.copyfile(picture, new)
    save(_overview(archive), pages / "overview.png")
    with new_file(page) as new:
        new.write_text(text, encoding="utf-8")
    sources.write(pages)
    return page


def write_sources(folder: Path) -> None:
    """Write from the archive in a folder what it has no copy of: the pages of the sources, and the pictures that need no runs."""
    _Sources(read_archive(folder)).write(folder)


class _Sources:
    """The pages of the sources, and the pictures that are made from an archive."""

    def __init__(self, archive: Archive):
        self.pictures = {"overview.svg": _overview(archive)}
        of_pages: dict[str, list[str]] = {source: [] for source in SOURCES}
        for name in archive["sim"]:
            of_pages.setdefault(page_of(name), []).append(name)
        made = {page: _page(page, names, archive, self.pictures) for page, names in of_pages.items()}
        self.pages = {f"{page}.md": "\n".join(lines) + "\n" for page, lines in made.items()}

    def write(self, folder: Path) -> None:
        for name, picture in self.pictures.items():
            save(picture, folder / name)
        # Links of an SVG open in the page that shows it, which matplotlib cannot say.
        drawn = (folder / "overview.svg").read_text(encoding="utf-8")
        linked = drawn.replace("<a xlink:href=", '<a target="_top" xlink:href=')
        for name, text in {"overview.svg": linked, **self.pages}.items():
            with new_file(folder / name) as new:
                new.write_text(text, encoding="utf-8")


def page_of(name: str) -> str:
    """The page of an experiment, without its suffix: that of its source, or of the chapter whose module declares it."""
    one = EXPERIMENTS[name]
    source, chapter = one.source, one.function.__module__.partition(f".{one.source}.")[2]
    return f"{source}-{chapter.replace('_', '-')}" if chapter else source


def _full(archive: Archive) -> Reports:
    """The reports whose verdicts count."""
    return {name: report for name, report in archive["sim"].items() if not report["quick"]}


def _beside(archive: Archive) -> Archive:
    return {engine: archive[engine] for engine in OTHERS}


def _overview(archive: Archive) -> Figure:
    """For each source a square for each comparison and claim: verdict and address, seen from the folder of the picture."""
    squares: dict[str, list[tuple[str, str]]] = {source: [] for source in SOURCES}
    for name, report in _full(archive).items():
        source = name.split("/")[0]
        of_groups = ((one, f"{name} {one['group']}") for one in report["comparisons"] if not one["cause_of"])
        of_claims = ((one, one["claim"]) for one in report["claims"])
        squares[source] += ((one["verdict"], f"{page_of(name)}/#{anchor(to)}") for one, to in (*of_groups, *of_claims))
    return overview(list(squares.values()), list(SOURCES.values()))


def commands(folder: Path) -> Iterator[str]:
    """Every command line that the pages of these reports show."""
    for quick in (False, True):
        for report in read_reports(folder, quick=quick).values():
            yield _command(report)
            yield from filter(None, map(_command_of_cause, report["comparisons"]))


def _command(report: dict[str, Any]) -> str:
    """The command that makes a report."""
    looks = ["--looks", str(report["looks"])] if report.get("looks") else []
    return shlex.join(["elephan", "reproduce", report["name"], *(["--quick"] if report["quick"] else []), *looks])


def _command_of_cause(comparison: dict[str, Any]) -> str:
    """The command that runs the first scenario of a comparison that explains another, and otherwise nothing."""
    return str(comparison["command"]) if comparison["cause_of"] else ""


def coloured(verdict: str) -> Markdown:
    """A verdict in words, with a class that gives it its colour."""
    return Markdown(f'<span class="verdict {verdict.split(maxsplit=1)[0]}">{verdict}</span>')


def anchor(text: str) -> str:
    """The name of a place on a page: of an experiment, a group of numbers or a claim."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


# In the site the address of a page is a folder of its name, where the picture is; elsewhere the PNG within the object is shown.
OVERVIEW = """<object type="image/svg+xml" data="overview.svg" aria-label="Every verdict of every source">
<img src="{pages}/overview.png" alt="Every verdict of every source, as a coloured square">
</object>"""


def _head(full: Reports, reports: Reports, beside: Archive, pages: str) -> list[str]:
    return [
        "# Published experiments, reproduced",
        "",
        "Every table, figure and claim of five publications on high-speed transport protocols, run again and judged by intervals over repeats (without the",
        "disks and network cards of Li 2006, appendix A). Made by `elephan reproduce all` and `elephan reproduce page`. Parameters come from the sources;",
        "where a source does not give one, the choice is listed, and a verdict that depends on the choice is marked. Nothing was tuned.",
        "",
        _versions(reports),
        "",
        *_counts(full, beside),
        OVERVIEW.format(pages=pages),
        "",
        "Each square is a comparison or a claim; it leads to its place.",
        "",
        *_sources(full, pages),
        *_refuted(full, beside, pages),
        *_open(full, pages),
        *_contents(reports, pages),
        *_untested(reports),
    ]


def _counts(full: Reports, beside: Archive) -> list[str]:
    """The verdicts by their kind: comparisons of numbers, and claims."""
    kernels = [report for engine in KERNELS for report in beside[engine].values()]
    lines = []
    for what, key, verdicts in (("numbers", "comparisons", OF_COMPARISONS), ("claims", "claims", OF_CLAIMS)):
        rows = []
        for kind, text in KINDS.items():
            reports = kernels if kind == Kind.KERNEL else list(full.values())
            found = Counter(one["verdict"] for report in reports for one in report[key] if _is_of_kind(one, kind))
            if any(found[verdict] for verdict in verdicts):
                rows.append([text, *(str(found[verdict]) for verdict in verdicts)])
        lines += _table([*text_heads(f"{what}, by kind"), *map(Head, verdicts)], rows)
    meanings = [f"- {coloured(verdict)}: {text}." for verdict, text in MEANINGS.items()]
    return [*lines, *meanings, ""]


def _is_of_kind(one: dict[str, Any], kind: Kind) -> bool:
    """Whether a comparison or a claim counts as one of a kind. Of a kernel, only what it can run counts."""
    if one.get("cause_of"):
        return False
    if kind != Kind.KERNEL:
        return bool(one["kind"] == kind)
    # On a kernel a claim has the kind that it has in the simulator.
    return one["kind"] in (Kind.KERNEL, Kind.SIMULATION) and one["verdict"] != Verdict.UNTESTABLE


def _versions(reports: Reports) -> str:
    """The code versions of the reports."""
    made = Counter(report["code"] for report in reports.values())
    usual = made.most_common(1)[0][0]
    text = f"made by Elephan {usual} (package version, and a hash of the code that makes results)"
    quick = sum(report["quick"] for report in reports.values())
    lead = (
        f"All {len(reports)} reports were {text}"
        if len(made) == 1
        else (
            f"{made[usual]} of {len(reports)} reports were {text}; "
            + ", ".join(f"{count} by {version}" for version, count in sorted(made.items()) if version != usual)
        )
    )
    cut = Counter(report["looks"] for report in reports.values() if report.get("looks"))
    lead += "".join(f"; {count} with `--looks {looks}`, so with fewer repeats" for looks, count in sorted(cut.items()))
    return lead + (f"; {quick} by `--quick`, whose verdicts are marked and not counted." if quick else ", in full.")


def _table(head: Sequence[Head], rows: Sequence[Sequence[str]]) -> list[str]:
    return [Table("", head, rows).to_markdown().rstrip(), ""]


def _sources(full: Reports, pages: str) -> list[str]:
    verdicts = list(dict.fromkeys([*OF_COMPARISONS[:3], *OF_CLAIMS]))
    found: dict[str, Counter[str]] = {source: Counter() for source in SOURCES}
    for name, report in full.items():
        found[name.split("/")[0]].update(verdicts_of(report))
    rows = [
        [Markdown(f"[{markdown(SOURCES[source])}]({pages}/{source}.md)"), *(str(counts[one]) for one in verdicts)]
        for source, counts in found.items()
    ]
    return _table([*text_heads("source"), *map(Head, verdicts)], rows)


def _claims(full: Reports, *verdicts: Verdict) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of the experiment and the claim, for each with one of these verdicts."""
    for name, report in full.items():
        for claim in report["claims"]:
            if claim["verdict"] in verdicts:
                yield name, claim


def _elsewhere(name: str, claim: str, beside: Archive) -> dict[Engine, dict[str, Any]]:
    """What other engines found of a claim of this experiment, if they ran it."""
    return {
        engine: found
        for engine, reports in beside.items()
        if name in reports
        for found in reports[name]["claims"]
        if found["claim"] == claim
    }


def _link(name: str, claim: dict[str, Any], pages: str) -> Markdown:
    return Markdown(f"[{claim['claim']}]({pages}/{page_of(name)}.md#{anchor(claim['claim'])})")


def _refuted(full: Reports, beside: Archive, pages: str) -> list[str]:
    """The refuted claims, each with its three lines."""
    lines = [
        "## Refuted",
        "",
        "Where each fails, what was tried to make it hold, what a second opinion says, and what follows for a reader of the source.",
        "",
    ]
    for name, claim in _claims(full, Verdict.REFUTED):
        source = name.split("/")[0]
        lines += [f"- **{_link(name, claim, pages)}** ({source}, {claim['where']}): {markdown(claim['sentence'])}"]
        lines += [f"    - {line}" for line in _three(claim, _elsewhere(name, claim["claim"], beside))]
    return [*lines, ""]


def _three(claim: dict[str, Any], elsewhere: Mapping[Engine, dict[str, Any]]) -> list[str]:
    return [
        f"*Where it fails*: {markdown(_failures(claim))}",
        f"*Tried*: {markdown(claim['tried'] or 'nothing further.')}",
        f"*Second opinion*: {markdown(_second_opinion(claim, elsewhere))}",
        f"*For a reader*: {markdown(claim['means'] or 'the sentence does not hold in the set-up that the source gives.')}",
    ]


def _failures(claim: dict[str, Any]) -> str:
    """The first places at which a refuted claim fails, under the first set of choices that refutes it: what is there, and the bound."""
    refuted = next(one for one in claim["sets"] if one["verdict"] == Verdict.REFUTED)
    fails = [one for one in refuted["findings"] if one["holds"] is False]
    units = ["" if one["unit"] == "1" else one["unit"] for one in fails]
    texts = [
        f"{one['place']}: {ours_text(one)} {unit}".rstrip() + f", bound {bound_text(one)}"
        for one, unit in zip(fails, units, strict=True)
    ]
    more = f"; and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    under = f" ({refuted['name']})" if refuted["name"] else ""
    return f"at {len(fails)} of {len(refuted['findings'])} places{under}: {'; '.join(texts[:MOST_NAMED])}{more}."


def _second_opinion(claim: dict[str, Any], elsewhere: Mapping[Engine, dict[str, Any]]) -> str:
    """What the engines beside the simulator say of a refuted claim: their verdicts, and what they found where it fails here."""
    said = [claim["oracle"]] if claim["oracle"] else []
    fails = [(name, place) for name, place, one in _found(claim) if one["holds"] is False]
    for engine, other in elsewhere.items():
        there = {(name, place): one["holds"] for name, place, one in _found(other) if not one["unusable"]}
        if there:
            too = sum(there.get(place) is False for place in fails)
            missing = sum(place not in there for place in fails)
            cannot = f", and {missing} cannot be run" if missing else ""
            said.append(
                f"{NAMES[engine]}: {other['verdict']}. Of the {len(fails)} places that fail here, {too} fail there too{cannot}."
            )
    return " ".join(said) or "None: it was run on the simulator only."


def _found(claim: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The name of the set, the place, and what was found there, for all sets of a claim."""
    for one in claim["sets"]:
        for finding in one["findings"]:
            yield one["name"], finding["place"], finding


def _open(full: Reports, pages: str) -> list[str]:
    lines: list[str] = []
    for verdict, title in ((Verdict.DEPENDENT, "Dependent on an unpublished choice"), (Verdict.UNDECIDED, "Undecided")):
        rows = []
        for name, claim in _claims(full, verdict):
            main, *rest = (markdown(_of_set(one)) for one in claim["sets"])
            folded = f"<details><summary>other sets: {len(rest)}</summary>{'<br>'.join(rest)}</details>" if rest else ""
            rows.append([_link(name, claim, pages), claim["sentence"], Markdown(main + folded)])
        if rows:
            head = text_heads("claim", "what the source says", "what was found")
            lines += [f"## {title}", "", *_table(head, rows)]
    return lines


def _of_set(one: dict[str, Any]) -> str:
    """The verdict under one set of choices, and at how many places the claim holds, fails and is open."""
    held = [finding["holds"] for finding in one["findings"]]
    open_ = [finding["place"] for finding in one["findings"] if finding["holds"] is None]
    counts = [f"{held.count(True)} of {len(held)} hold", *([f"{held.count(False)} fail"] if False in held else [])]
    if open_:
        counts.append(f"{len(open_)} open, the first: {open_[0]}" if len(open_) > 1 else f"open: {open_[0]}")
    return f"{one['name'] + ': ' if one['name'] else ''}{one['verdict']} ({', '.join(counts)})"


def _contents(reports: Reports, pages: str) -> list[str]:
    """The experiments that were run in full, with `--quick`, or not yet."""
    rows: list[list[str]] = []
    for name, one in EXPERIMENTS.items():
        report = reports.get(name)
        if report is None:
            rows.append([name, one.title, "not yet", ""])
            continue
        link = Markdown(f"[{name}]({pages}/{page_of(name)}.md#{anchor(name)})")
        text = ", ".join(f"{count} {verdict}" for verdict, count in verdicts_of(report).items())
        rows.append([link, one.title, "--quick" if report["quick"] else "in full", text])
    kinds = Counter("not yet" if n not in reports else "quick" if reports[n]["quick"] else "full" for n in EXPERIMENTS)
    head = f"Of {len(EXPERIMENTS)} experiments {kinds['full']} were run in full, {kinds['quick']} by `--quick`, {kinds['not yet']} not yet:"
    table = _table(text_heads("experiment", "what", "run", "verdicts"), rows)
    return ["## Experiments", "", head, "", *table]


def _page(page: str, names: Sequence[str], archive: Archive, pictures: dict[str, Figure]) -> Iterator[str]:
    """The page of a source or of a chapter. That of a source with chapters leads to them."""
    if page in SOURCES:
        yield from [f"# {SOURCES[page]}", "", "[All sources](../reproduction.md)", ""]
        yield from _chapters(page, archive)
    else:
        source, title = page.partition("-")[0], _title(names[0])
        yield from [f"# {title}", "", f"[All of this source]({source}.md), [all sources](../reproduction.md)", ""]
    beside = _beside(archive)
    choices = {name: _choices(archive["sim"][name], beside) for name in names}
    shared = (
        [line for line in choices[names[0]] if all(line in of for of in choices.values())] if len(names) > 1 else []
    )
    if shared:
        yield from ["Of all experiments of this page:", "", *shared, ""]
    for name in names:
        own = [line for line in choices[name] if line not in shared]
        yield from _section(archive["sim"][name], own, beside, pictures)


def _title(name: str) -> str:
    """What the module that declares an experiment says of itself."""
    return (sys.modules[EXPERIMENTS[name].function.__module__].__doc__ or name).partition("\n")[0].rstrip(".")


def _chapters(source: str, archive: Archive) -> Iterator[str]:
    """The experiments of a source that have pages of chapters; each has its anchor here, too."""
    chapter = source
    for name, report in archive["sim"].items():
        if name.startswith(f"{source}/") and (page := page_of(name)) != source:
            if page != chapter:
                yield from [*([""] if chapter != source else []), f"**[{markdown(_title(name))}]({page}.md)**", ""]
                chapter = page
            here = anchor(name)
            yield f'- <a id="{here}"></a>[{name}]({page}.md#{here}): {markdown(report["title"])}'
    if chapter != source:
        yield ""


def _choices(report: dict[str, Any], beside: Archive) -> list[str]:
    """What we chose, and what other engines do otherwise, as items of a list."""
    return [
        *(f"- Our choice: {choice}" for choice in report["choices"]),
        *(
            f"- In the column *{NAMES[engine]}*: {markdown(difference)}"
            for engine, found in beside.items()
            for difference in found.get(report["name"], {}).get("differences", ())
        ),
    ]


def _section(
    report: dict[str, Any], choices: Sequence[str], beside: Archive, pictures: dict[str, Figure]
) -> Iterator[str]:
    name = report["name"]
    others = {engine: found[name] for engine, found in beside.items() if name in found}
    yield from [f'## <a id="{anchor(name)}"></a>{name}: {report["title"]}', "", f"    {_command(report)}", ""]
    if report["quick"]:
        yield from ["**Fewer and shorter runs (`--quick`): these verdicts do not count.**", ""]
    if report["scenario"]:
        yield from [f"Scenario: `python/elephan/studies/reproduce/scenarios/{report['scenario']}.toml`.", ""]
    if choices:
        yield from [*choices, ""]
    picture = name.replace("/", "-")
    if (figure := beside_print(report)) is not None:
        pictures[f"{picture}-print.svg"] = figure
        yield from [f"![{report['title']}: print and ours]({picture}-print.svg)", ""]
    if report.get("picture"):
        yield from [f"![{report['title']}]({report['picture']})", ""]
    for comparison, table in zip(report["comparisons"], tables_of(report, others), strict=True):
        has_cause = any(one["cause_of"] == comparison["group"] for one in report["comparisons"])
        yield from _comparison(name, comparison, table, has_cause=has_cause)
    for claim in report["claims"]:
        yield from _claim(claim, _elsewhere(name, claim["claim"], beside))
    for note in report["notes"]:
        yield from [note, ""]


def _comparison(name: str, comparison: dict[str, Any], table: Table, *, has_cause: bool) -> Iterator[str]:
    lead = f'<a id="{anchor(name + " " + comparison["group"])}"></a>'
    written = [table.to_markdown().rstrip(), ""]
    if comparison["cause_of"]:
        yield from _folded(markdown(table.title), [*written, f"    {_command_of_cause(comparison)}", ""])
        return
    yield from [
        f"{lead}{coloured(comparison['verdict'])} **{markdown(comparison['group'])}** ({KINDS[comparison['kind']]})",
        "",
        *written,
    ]
    if comparison["reason"] and comparison["verdict"] != Verdict.AGREES:
        yield from [f"Cause: {markdown(comparison['reason'])}", ""]
    elif comparison["verdict"] in (Verdict.ORDERING, Verdict.DIFFERS) and not has_cause:
        yield from ["Cause: not found.", ""]


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ['<details markdown="1">', f"<summary>{summary}</summary>", "", *lines, "</details>", ""]


def _claim(claim: dict[str, Any], others: Mapping[Engine, dict[str, Any]]) -> Iterator[str]:
    yield (
        f'<a id="{anchor(claim["claim"])}"></a>{coloured(claim["verdict"])} **{claim["claim"]}** {markdown(claim["sentence"])} '
        f"({markdown(claim['where'])})"
    )
    yield ""
    for label, key in (("Population", "population"), ("Statistic", "statistic"), ("Bound", "bound")):
        if claim[key]:
            yield f"- {label}: {markdown(claim[key])}"
    if claim["sets"]:
        yield f"- Rule: it holds if {'every place holds' if claim['rule'] == 'every' else 'some place holds'}."
    for one in claim["sets"]:
        if one["name"]:
            yield f"- {markdown(one['name'])}: {coloured(one['verdict'])}"
    if claim["verdict"] == Verdict.REFUTED:
        for line in _three(claim, others):
            yield f"- {line}"
    yield ""
    places = places_of(claim, others)
    if places is None:
        return
    # With several sets of choices the first column names the set; the first set is the main one.
    main, rest = list(places.rows), []
    if len(claim["sets"]) > 1:
        first = claim["sets"][0]["name"]
        main = [row for row in places.rows if row[0] == first]
        known = [row[1:] for row in main]
        rest = [row for row in places.rows if row[0] != first and row[1:] not in known]
    written = [replace(places, rows=main).to_markdown().rstrip(), ""]
    yield from _folded(f"{len(main)} places", written) if len(main) > MOST_SHOWN else written
    if len(claim["sets"]) > 1:
        same = len(places.rows) - len(main) - len(rest)
        told = f"other sets of choices: {len(claim['sets']) - 1}; places that differ: {len(rest)}, as under the first: {same}"
        yield from _folded(told, [replace(places, rows=rest).to_markdown().rstrip(), ""]) if rest else [told, ""]


def _untested(reports: Reports) -> list[str]:
    """The claims that no stored report covers."""
    tested = {claim["claim"] for report in reports.values() for claim in report["claims"]}
    left = [row for source in SOURCES for key, row in claims(source).items() if key not in tested]
    if not left:
        return []
    rows = [[row["id"], f"{row['source']}, {row['locator']}", row["claim"]] for row in left]
    return ["## Claims that are not tested yet", "", *_table(text_heads("claim", "source", "what it says"), rows)[:1]]
