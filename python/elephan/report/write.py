"""Results as a file: a report (a self-contained HTML page, or formats for papers), or a run's trace, which other tools read."""

import html
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import matplotlib as mpl
from matplotlib.backends.backend_pdf import PdfPages

from elephan import _core
from elephan.api.run import Run
from elephan.base import plots
from elephan.base.folders import new_file
from elephan.base.kinds import RUN, kind_of
from elephan.base.text import markdown, visible
from elephan.report import perfetto, pictures, qlog
from elephan.report.content import Content
from elephan.report.read import read

# Nothing is loaded from the network.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def write_results(folder: Path, out: Path, kind: str) -> list[Path]:
    """Write the results of a folder as `kind`, one of `FORMATS` or `TRACES`, and return the files that were asked for.

    Raises `ScenarioError` for another format, for a trace of what is no run, and for damaged results.
    """
    if kind not in TRACES:
        write(read(folder), out, kind)
        return [out]
    found = kind_of(folder)
    if found is not RUN:
        what = found.what if found else "none of it"
        raise _core.ScenarioError(f"{folder}: expected the results of a run for --format {kind}, found {what}")
    return TRACES[kind](Run.load(folder), out)


def write(content: Content, out: Path, kind: str) -> None:
    """Write a report as `kind`, one of `FORMATS`; `out` appears complete or not at all."""
    if kind not in FORMATS:
        raise _core.ScenarioError(f"--format: expected one of {', '.join([*FORMATS, *TRACES])}, found {kind!r}")
    with new_file(out) as place:
        FORMATS[kind](content, place, out)


def page(content: Content) -> str:
    """The report as one page of HTML, which contains script, style and data."""
    static = resources.files("elephan.ui") / "static"
    style, script = ((static / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # Nothing in the data or the script may close its element.
    data = content.to_json().replace("<", "\\u003c")
    script = script.replace("</script", "<\\/script")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{html.escape(content.title)} - Elephan</title>
<style>{style}</style>
</head>
<body>
<noscript>This report draws its tables and figures with a script, which is in this file.</noscript>
<script type="application/json" id="content">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _markdown(content: Content, place: Path, out: Path) -> None:
    """Tables as text, and each figure in a file beside it."""
    lines = [f"# {markdown(content.title)}", "", f"{markdown(content.subtitle)}.", ""]
    if content.command:
        lines += [f"    {visible(content.command)}", ""]
    if content.tiles:
        lines += [content.headlines().to_markdown()]
    for table in content.tables:
        lines += [f"## {markdown(table.title)}", "", table.to_markdown()]
        if table.note:
            lines += [markdown(table.note), ""]
    for number, figure in enumerate(pictures.of_content(content)):
        picture = out.with_name(f"{out.stem}-{number + 1}.png")
        plots.save(figure, picture)
        lines += [f"![{markdown(str(figure.get_label()) or content.title)}]({quote(picture.name)})", ""]
    lines += ["## Run details", "", *(f"- {fact}: {markdown(value)}" for fact, value in content.facts)]
    # The fence is longer than any fence in the text.
    fence = max(["``", *re.findall("`+", content.scenario)], key=len) + "`"
    lines += ["", *map(markdown, content.notes), "", f"{fence}toml", content.scenario.rstrip(), fence, ""]
    place.write_text("\n".join(lines), encoding="utf-8")


def _pdf(content: Content, place: Path, _: Path) -> None:
    metadata = {"Title": visible(content.title), "Creator": f"Elephan {_core.__version__}"}
    embedded = mpl.rc_context(plots.EMBEDDED)
    with plots.any_letters(), embedded, place.open("wb") as file, PdfPages(file, metadata=metadata) as pages:
        for figure in [*pictures.of_tables(content), *pictures.for_paper(content), *pictures.of_scenario(content)]:
            pages.savefig(figure)


def _picture(content: Content, place: Path, out: Path) -> None:
    figures = pictures.of_content(content)
    if not figures:
        raise _core.ScenarioError(f"{out}: expected results with figures, found none; html, md and pdf have the tables")
    plots.write(figures[0], place, out.suffix.lstrip("."))
    # If a report has several figures, the further ones are written beside the first.
    for number, figure in enumerate(figures[1:], start=2):
        plots.save(figure, out.with_name(f"{out.stem}-{number}{out.suffix}"))


FORMATS: dict[str, Callable[[Content, Path, Path], object]] = {
    "html": lambda content, place, _: place.write_text(page(content), encoding="utf-8"),
    "pdf": _pdf,
    "png": _picture,
    "svg": _picture,
    "md": _markdown,
}
# Of runs alone, by the suffix of their files.
TRACES: dict[str, Callable[[Run, Path], list[Path]]] = {"sqlog": qlog.write, "perfetto": perfetto.write}
