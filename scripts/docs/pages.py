"""Copy the documentation to a folder, with its generated parts: `pages.py FOLDER`, run by `make docs`.

A line of a page that ends with `<!-- NAME -->` is what a reader of the repository sees in place of a part. Parts come from the
registries, the scenario's JSON Schema, docs/measured.json, and the tables of docs/measured.
"""

import ast
import inspect
import json
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import metrics
from measures import MEASURES, QUEUE_MEASURES

import elephan
from elephan import _core
from elephan.api.metrics import Metric
from elephan.api.registry import queues
from elephan.base.table import of_markdown, text_heads
from elephan.studies.sweeps.names import unit

DOCS = Path(__file__).parents[2] / "docs"

CAPTION = (
    "*One flow on 100 Mbit/s and 82 ms with a buffer of half the bandwidth-delay product, simulated for 120 s. Dotted: the "
    "slow-start threshold. Below: the queue at the bottleneck.*"
)
SET = 'Set them in a scenario: `cc = {{ name = "{name}", ... }}`, or see them with `elephan cc show {name}`.'
AMONG = (
    '[How it was measured](index.md#how-it-was-measured). "Among the best" means within 15 % of the range from the best of all '
    'algorithms, "among the worst" within 25 % from the worst.'
)
# The examples that pages show in whole.
SHOWN = {
    "check.md": ["expectations.toml"],
    "own-algorithm-c.md": ["own/scalable.c"],
    "own-algorithm-python.md": ["own/delay.py", "own/compiled.py"],
    "train.md": ["own/learned.py", "own/train.py"],
}
LANGUAGES = {".c": "c", ".py": "python", ".toml": "toml"}


def generated() -> Iterator[tuple[Path, str, str]]:
    """Every generated part: its file, its name, its text. Entries that have not been measured yet are marked."""
    measured = json.loads((DOCS / "measured.json").read_text(encoding="utf-8"))
    algorithms, repeats = elephan.algorithms(), measured["repeats"]
    measured["algorithms"] = {one.name: measured["algorithms"].get(one.name) for one in algorithms}
    yield DOCS / "algorithms" / "index.md", "measured", overview(measured["algorithms"], repeats)
    for algorithm in algorithms:
        page = DOCS / "algorithms" / f"{algorithm.name}.md"
        parts = [
            picture(algorithm.name),
            "## Parameters",
            facts(algorithm),
            SET.format(name=algorithm.name),
            "## Measured",
            AMONG,
        ]
        yield page, "declared", "\n\n".join([*parts, measures(algorithm.name, measured["algorithms"], repeats)])
    yield from metrics.generated(DOCS / "metrics", measured, table)
    schema = elephan.schema()
    # None: a scheduler, which has no effect without classes.
    disciplines = {one.name: measured["queues"].get(one.name, {}) for one in queues()}
    disciplines = {name: found for name, found in disciplines.items() if found is not None}
    yield DOCS / "queues" / "index.md", "measured", queue_table(disciplines)
    for queue in queues():
        page = DOCS / "queues" / f"{queue.name}.md"
        yield page, "facts", facts(queue)
        if queue.name in disciplines:
            yield page, "measured", f"## Comparison\n\n{queue_measures(queue.name, disciplines)}"
    yield DOCS / "reference.md", "reference", reference(schema)
    starts = "\n\n".join(f"### {start.name}\n\n{facts(start)}" for start in elephan.slow_starts())
    yield DOCS / "algorithms" / "slow-start.md", "starts", starts
    yield DOCS / "results.md", "declared", columns()
    yield DOCS / "own-algorithm-python.md", "fields", fields_of_classes()
    for page, files in SHOWN.items():
        for file in files:
            path = Path(elephan.__file__).parent / "examples" / file
            yield DOCS / page, path.stem, f"```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```"
    yield from tables()


def tables() -> Iterator[tuple[Path, str, str]]:
    """The tables of docs/measured, which commands of the Makefile write: each is in one page, at the marker of its name."""
    pages = {page: page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")}
    for file in sorted((DOCS / "measured").glob("*.md")):
        mark = f"<!-- {file.stem} -->"
        found = [page for page, text in pages.items() if mark in text]
        if len(found) != 1:
            raise SystemExit(f"{file.relative_to(DOCS.parent)}: expected one page with {mark}, found {len(found)}")
        yield found[0], file.stem, pages[file].strip()


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table whose cells are Markdown."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return of_markdown(text_heads(*head), cells).to_markdown().rstrip("\n")


def facts(entry: elephan.Entry) -> str:
    """Title, source and parameters."""
    rows = [[f"`{p.name}`", f"`{json.dumps(p.default)}`", p.unit, p.range, p.meaning] for p in entry.parameters]
    parameters = table(["parameter", "default", "unit", "range", "meaning"], rows) if rows else "It has no parameters."
    implies = "".join(
        f' Implies `tcp.{k} = "{word}"`, unless the scenario sets it.' for k, word in entry.implies.items()
    )
    return f"**{entry.title}.** Source: {entry.source}.{implies}\n\n{parameters}"


def picture(name: str) -> str:
    """The picture of an algorithm's window, if it has been drawn."""
    file = f"images/cc-{name}.png"
    if not (DOCS / file).is_file():
        return metrics.not_measured(name)
    return f"![The window of one flow of {name}, and the queue at its bottleneck](../{file})\n\n{CAPTION}"


def lower(title: str) -> str:
    """A title within a sentence."""
    return title[0].lower() + title[1:]


def uncertain(metric: Metric, estimate: dict[str, Any]) -> str:
    """A mean, and half of its interval; equal repeats have none."""
    half = f" ± {estimate['half']:,.{metric.digits}f}" if estimate["half"] else ""
    return metric.text(estimate["mean"]) + half


def mean(measured: dict[str, Any], name: str, experiment: str, number: str) -> float | None:
    """A number of an algorithm."""
    found = measured[name]
    value: float | None = found[experiment][number]["mean"] if found else None
    return value


def measures(name: str, measured: dict[str, Any], repeats: int) -> str:
    """Strengths and weaknesses of an algorithm compared with the others, and the numbers."""
    if measured[name] is None:
        return metrics.not_measured(name)
    rows, well, badly = [], [], []
    for (experiment, number), metric in MEASURES.items():
        title, unit, more = metric.name, metric.unit, metric.better == "higher"
        estimate = measured[name][experiment][number]
        values = [value for other in measured if (value := mean(measured, other, experiment, number)) is not None]
        best, worst = (max(values), min(values)) if more else (min(values), max(values))
        own = estimate["mean"]
        if own is None:
            rows.append([title, unit, "never", metric.text(best), metric.text(worst), "-"])
            badly.append(f"{lower(title)}: never reached")
            continue
        text = uncertain(metric, estimate)
        if estimate["defined"] < repeats:
            text += f" (in {estimate['defined']} of {repeats} runs)"
        rank = 1 + sum(value > own if more else value < own for value in values)
        rows.append([title, unit, text, metric.text(best), metric.text(worst), f"{rank} of {len(values)}"])
        # Close to the best or the worst, if these differ enough to matter.
        span = abs(best - worst)
        if span > 0.05 * max(abs(best), abs(worst)):
            if abs(own - best) <= 0.15 * span:
                well.append(f"{lower(title)} ({text} {unit})")
            elif abs(own - worst) <= 0.25 * span:
                badly.append(f"{lower(title)} ({text} {unit})")
    sentences = [
        f"**Among the best:** {'; '.join(well)}." if well else "",
        f"**Among the worst:** {'; '.join(badly)}." if badly else "",
    ]
    head = ["measured", "unit", name, "best of all", "worst of all", "rank"]
    return "\n\n".join([*filter(None, sentences), table(head, rows)])


def overview(measured: dict[str, Any], repeats: int) -> str:
    """All algorithms side by side."""
    rows = []
    for name, found in measured.items():
        if found is None:
            rows.append([f"[{name}]({name}.md)", "not measured yet", *[""] * (len(MEASURES) - 1)])
            continue
        texts = []
        for (experiment, number), metric in MEASURES.items():
            value = mean(measured, name, experiment, number)
            some = "*" if found[experiment][number]["defined"] < repeats else ""
            texts.append("never" if value is None else metric.text(value) + some)
        rows.append([f"[{name}]({name}.md)", *texts])
    note = f"\\* reached in some of the {repeats} runs only; the mean is over these."
    return table(["cc", *(metric.head.line for metric in MEASURES.values())], rows) + f"\n\n{note}"


def queue_table(measured: dict[str, Any]) -> str:
    """All queue disciplines side by side."""
    rows = []
    for name, one in measured.items():
        cells = [metric.text(one[key]["mean"]) for key, metric in QUEUE_MEASURES.items()] if one else []
        rows.append([f"[{name}]({name}.md)", *(cells or ["not measured yet", *[""] * (len(QUEUE_MEASURES) - 1)])])
    return table(["queue", *(metric.head.line for metric in QUEUE_MEASURES.values())], rows)


def queue_measures(name: str, measured: dict[str, Any]) -> str:
    """Measurements of a queue discipline, compared with the others."""
    if not measured[name]:
        return metrics.not_measured(name)
    rows = []
    for key, metric in QUEUE_MEASURES.items():
        own, more = measured[name][key]["mean"], metric.better == "higher"
        values = [one[key]["mean"] for one in measured.values() if one]
        best, worst = (max(values), min(values)) if more else (min(values), max(values))
        text = uncertain(metric, measured[name][key])
        rank = 1 + sum(value > own if more else value < own for value in values)
        rows.append([metric.head.line, text, metric.text(best), metric.text(worst), f"{rank} of {len(values)}"])
    note = "The path and the flows are those of [the table of all](index.md#side-by-side)."
    return table(["measured", name, "best of all", "worst of all", "rank"], rows) + f"\n\n{note}"


def resolve(schema: dict[str, Any], value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A schema with its reference resolved, and the name of the referenced definition."""
    for one in value.get("anyOf", []):
        if "$ref" in one:
            value = {**value, "$ref": one["$ref"]}
    if "$ref" not in value:
        return "", value
    name = value["$ref"].rsplit("/", 1)[1]
    return name, schema["$defs"][name]


def kind(schema: dict[str, Any], value: dict[str, Any]) -> str:
    """The type of a value in a word or two, with a link to its description."""
    name, target = resolve(schema, value)
    if "enum" in target:
        return " or ".join(f'`"{word}"`' for word in target["enum"])
    if name in LINKED:
        return f"[{name.lower()}]({LINKED[name]})"
    if "properties" in target and name:
        return f"[table](#{name.lower()})"
    if target.get("type") == "array":
        return f"list of {kind(schema, target['items'])}"
    if "pattern" in target:
        return name.lower()
    words = {"integer": "whole number", "string": "text", "boolean": "`true` or `false`", "object": "table"}
    types = target.get("type", "")
    types = [types] if isinstance(types, str) else [one for one in types if one != "null"]
    return " or ".join(words.get(one, one) for one in types) or name.lower() or "see description"


LINKED = {"Queue": "queues/index.md", "Algorithm": "algorithms/index.md", "SlowStart": "algorithms/slow-start.md"}


def fields(schema: dict[str, Any], target: dict[str, Any], but: str = "") -> str:
    """The keys of a table."""
    required = target.get("required", [])
    rows = []
    for key, value in target["properties"].items():
        if key != but:
            default = (
                "required"
                if key in required
                else f"`{json.dumps(value['default'])}`"
                if value.get("default") is not None
                else "none"
            )
            unit = f" ({value['unit']})" if "unit" in value else ""
            rows.append([f"`{key}`", kind(schema, value) + unit, default, value.get("description", "")])
    return table(["key", "value", "default", "meaning"], rows) if rows else "It has no parameters."


def reference(schema: dict[str, Any]) -> str:
    """Every table of the scenario file."""
    parts = [f"## The file\n\n{schema['description']}\n\n{fields(schema, schema)}"]
    for name, target in schema["$defs"].items():
        if "properties" in target:
            parts.append(f"## {name}\n\n{target.get('description', '')}\n\n{fields(schema, target)}")
        elif name not in LINKED and any("properties" in one for one in target.get("oneOf", [])):
            variants = [
                f"### {name}: {one['properties']['name']['const']}\n\n"
                f"{one.get('description', one.get('title', ''))}\n\n{fields(schema, one, but='name')}"
                for one in target["oneOf"]
                if "name" in one.get("properties", {})
            ]
            parts.append("\n\n".join([f"## {name}\n\n{target.get('description', '')}", *variants]))
    return "\n\n".join(parts)


def columns() -> str:
    """The columns of each table of results, and the figures of each part of a summary."""
    text = []
    for name, group in groupby(json.loads(_core.declared_columns()), key=lambda column: str(column["table"])):
        rows = [[f"`{c['name']}`", c["unit"], c["type"], c["meaning"]] for c in group]
        text.append(f"### `{name}.parquet`\n\n{table(['column', 'unit', 'type', 'meaning'], rows)}")
    for part, group in groupby(json.loads(_core.declared_fields()), key=lambda field: str(field["part"])):
        rows = [[f"`{f['name']}`", f["unit"], f["meaning"], f["source"]] for f in group]
        text.append(f"### {part}\n\n{table(['key', 'unit', 'meaning', 'source'], rows)}")
    return "\n\n".join(text)


def fields_of_classes() -> str:
    """What an algorithm in Python is told, and what it decides: types as in the stub of the extension module."""
    stub = ast.parse((Path(__file__).parents[2] / "python/elephan/_core.pyi").read_text(encoding="utf-8"))
    text = []
    for made in (elephan.cc.Report, elephan.cc.Loss, elephan.cc.Decision):
        (node,) = (one for one in stub.body if isinstance(one, ast.ClassDef) and one.name == made.__name__)
        rows = [
            [f"`{one.target.id}`", f"`{kind}`", "" if kind in ("str", "bool") else unit(one.target.id), meaning]
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            for kind, meaning in [(ast.unparse(one.annotation), inspect.getdoc(getattr(made, one.target.id)))]
        ]
        heads = ["field", "type", "unit", "meaning"]
        text.append(f"**`{made.__name__}`.** {inspect.getdoc(made)}\n\n{table(heads, rows)}")
    return "\n\n".join(text)


def filled() -> dict[Path, str]:
    """Every page that has generated parts, with these. Exits if a page or its marker is missing."""
    pages: dict[Path, str] = {}
    for page, name, part in generated():
        where = page.relative_to(DOCS.parent)
        if not page.is_file():
            raise SystemExit(
                f"{where}: expected the page of `{page.stem}`, found none; docs/add.md says how to lay it out"
            )
        lines = pages.get(page, page.read_text(encoding="utf-8")).split("\n")
        marked = [number for number, line in enumerate(lines) if line.endswith(f"<!-- {name} -->")]
        if len(marked) != 1:
            raise SystemExit(f"{where}: expected one line that ends with <!-- {name} -->, found {len(marked)}")
        lines[marked[0]] = part
        pages[page] = "\n".join(lines)
    return pages


def main(folder: Path) -> None:
    """Write the site's source: all that is written by hand, and the filled pages."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("measured*", "template.md", "*.py"))
    for page, text in filled().items():
        (folder / page.relative_to(DOCS)).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
