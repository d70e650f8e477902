"""Generates the parts of Python that follow from declarations in Rust: `make declared`.

- `python/elephan/api/summary.py`: the parts of a summary as typed classes.
- `python/elephan/_core.pyi`: the docstrings of the classes of the extension module, whose names and types are written by
  hand. Those of functions are in `crates/python` and in the module.
"""

import ast
import inspect
import json
import subprocess
import sys
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

from elephan import _core

ROOT = Path(__file__).parent.parent
# Maximum width of a docstring's line, without its indentation and quotes.
WIDTH = 112
HEAD = '''"""The summary of a run, with types. Made by `make declared` from crates/metrics/src/summary.rs; change it there."""

from elephan.api.part import Part
'''


def python_type(schema: dict[str, Any]) -> tuple[str, str]:
    """The type of a property of a JSON Schema, and its default if it has one."""
    if "anyOf" in schema:
        inner = next(one for one in schema["anyOf"] if one != {"type": "null"})
        return f"{python_type(inner)[0]} | None", " = None"
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[-1], ""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "array" in kinds:
        return f"tuple[{python_type(schema['items'])[0]}, ...]", " = ()"
    plain = {"number": "float", "integer": "int", "string": "str"}[kinds[0]]
    return (f"{plain} | None", " = None") if "null" in kinds else (plain, "")


def fields() -> dict[str, list[dict[str, Any]]]:
    """The declared metrics of each part."""
    declared = json.loads(_core.declared_fields())
    return {part: list(group) for part, group in groupby(declared, key=lambda field: str(field["part"]))}


def explained(field: dict[str, Any]) -> str:
    """Meaning, unit and source of a metric, in a sentence."""
    unit = f" Unit: {field['unit']}." if field["unit"] else ""
    source = f" Source: {field['source']}." if field["source"] else ""
    return f"{field['meaning']}{unit}{source}"


def summary_classes() -> str:
    """The text of python/elephan/api/summary.py."""
    schema = json.loads(_core.summary_schema())
    parts = {**schema["$defs"], "Summary": schema}
    text = HEAD
    done: set[str] = set()

    def write(part: str) -> None:
        nonlocal text
        if part in done:
            return
        done.add(part)
        lines = [f"class {part}(Part, frozen=True, kw_only=True):", f'    """{parts[part]["description"]}"""', ""]
        for field in fields()[part]:
            kind, default = python_type(parts[part]["properties"][field["name"]])
            for other in parts:
                if other in kind and other != part:
                    write(other)
            lines += [f"    {field['name']}: {kind}{default}", f'    """{explained(field)}"""']
        text += "\n\n" + "\n".join(lines) + "\n"

    write("Summary")
    return text


def documented(body: list[ast.stmt], owner: Any) -> None:
    """Replace the docstrings of the classes in a stub by those of the module."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            own = [one for one in node.body if not isinstance(one, ast.Expr)]
            one = getattr(owner, node.name)
            documented(own, one)
            node.body = [docstring(one)]
            for part in own:
                node.body += (
                    [part, docstring(getattr(one, part.target.id))] if isinstance(part, ast.AnnAssign) else [part]
                )
        elif isinstance(node, ast.FunctionDef):
            node.body = [ast.Expr(ast.Constant(...))]


def docstring(one: Any) -> ast.Expr:
    """A docstring as a statement. Exits if there is none."""
    if not one.__doc__:
        sys.exit(f"_core: expected every name to be documented in crates/python, found none of {one}")
    first, *others = inspect.cleandoc(one.__doc__).split("\n\n")
    summary, _, rest = " ".join(first.split()).partition(". ")
    if not rest:
        summary = summary.removesuffix(".")
    texts = [f"{summary}.", *filter(None, [rest, *others])]
    lines = "\n\n".join("\n".join(textwrap.wrap(text, WIDTH)) for text in texts)
    return ast.Expr(ast.Constant(f"{lines}\n" if "\n" in lines else lines))


def stub() -> str:
    """The text of python/elephan/_core.pyi."""
    tree = ast.parse((ROOT / "python" / "elephan" / "_core.pyi").read_text(encoding="utf-8"))
    documented(tree.body, _core)
    return ast.unparse(tree)


def formatted(path: Path, text: str) -> str:
    """Python source as `ruff format` formats it."""
    ruff = Path(sys.executable).with_name("ruff")
    words = [ruff, "format", "--quiet", "--stdin-filename", path, "-"]
    return subprocess.run(words, input=text, check=True, capture_output=True, text=True).stdout


def made() -> dict[Path, str]:
    """Every generated file, and its text."""
    package = ROOT / "python" / "elephan"
    python = {package / "api" / "summary.py": summary_classes(), package / "_core.pyi": stub()}
    return {path: formatted(path, text) for path, text in python.items()}


if __name__ == "__main__":
    stale = [path for path, text in made().items() if path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: expected what `make declared` makes, found something else")
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(made()[path], encoding="utf-8")
        print(path.relative_to(ROOT))
