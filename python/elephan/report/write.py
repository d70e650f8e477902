"""A report as a file: a page that opens anywhere, or what a paper takes."""

import contextlib
import html
import os
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from elephan import _core
from elephan.report.content import Content, Table

# Nothing is fetched from anywhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def write(content: Content, out: Path, kind: str) -> None:
    """Write a report as `kind`, one of `FORMATS`; `out` is there as a whole or not at all."""
    if kind not in FORMATS:
        raise _core.ScenarioError(f"--format: expected one of {', '.join(FORMATS)}, found {kind!r}")
    out.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{out.stem}.", suffix=out.suffix, dir=out.parent)
    os.close(handle)
    place = Path(name)
    try:
        FORMATS[kind](content, place, out)
        place.chmod(0o644)
        place.replace(out)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
        raise


def page(content: Content) -> str:
    """The report as one page of HTML: script, style and data are in it."""
    static = resources.files("elephan.ui") / "static"
    style, script = ((static / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # Nothing in the data or the script may end its element.
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


def _html(content: Content, place: Path, _: Path) -> None:
    place.write_text(page(content), encoding="utf-8")


def _markdown(content: Content, place: Path, out: Path) -> None:
    """Tables as text, and each figure in a file beside it."""
    from elephan import plots  # noqa: PLC0415 - matplotlib takes a second to import

    lines = [f"# {content.title}", "", f"{content.subtitle}.", ""]
    if content.command:
        lines += [f"    {content.command}", ""]
    if content.tiles:
        lines += ["| metric | value | unit |", "| --- | --- | --- |"]
        lines += [f"| {tile.name} | {tile.value} | {tile.unit} |" for tile in content.tiles] + [""]
    for table in content.tables:
        lines += [f"## {table.title}", "", *_table(table), ""]
        if table.note:
            lines += [table.note, ""]
    for number, figure in enumerate(plots.of_content(content)):
        picture = out.with_name(f"{out.stem}-{number + 1}.png")
        figure.savefig(picture)
        lines += [f"![{figure.get_suptitle() or content.title}]({picture.name})", ""]
    lines += ["## What was run", "", *(f"- {fact}: {value}" for fact, value in content.facts)]
    lines += ["", *content.notes, "", "```toml", content.scenario.rstrip(), "```", ""]
    place.write_text("\n".join(lines), encoding="utf-8")


def _table(table: Table) -> list[str]:
    heads = [f"{head.text} ({head.unit})" if head.unit else head.text for head in table.head]
    rows = [heads, ["---:" if head.numeric else "---" for head in table.head], *table.rows]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _pdf(content: Content, place: Path, _: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages  # noqa: PLC0415

    from elephan import plots  # noqa: PLC0415

    with PdfPages(place, metadata={"Title": content.title, "Creator": f"Elephan {_core.__version__}"}) as pages:
        for figure in [*plots.of_tables(content), *plots.of_content(content)]:
            pages.savefig(figure)


def _picture(content: Content, place: Path, out: Path) -> None:
    from elephan import plots  # noqa: PLC0415

    figures = plots.of_content(content)
    figures[0].savefig(place, format=out.suffix.lstrip("."))
    # Further figures of a report with several stand beside the first.
    for number, figure in enumerate(figures[1:], start=2):
        figure.savefig(out.with_name(f"{out.stem}-{number}{out.suffix}"))


FORMATS: dict[str, Callable[[Content, Path, Path], None]] = {
    "html": _html,
    "pdf": _pdf,
    "png": _picture,
    "svg": _picture,
    "md": _markdown,
}
