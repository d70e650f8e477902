"""The stub of the extension module agrees with the module."""

import ast
import inspect
from pathlib import Path

import pytest

from elephan import _core

STUB = ast.parse(Path("python/elephan/_core.pyi").read_text(encoding="utf-8"))


def names(body: list[ast.stmt]) -> set[str]:
    """The declarations of a module or a class in the stub."""
    found = {node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return found | {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def public(one: object) -> set[str]:
    """The public names of the module."""
    return {name for name in dir(one) if not name.startswith("_")}


def definitions() -> list[tuple[str, ast.FunctionDef | ast.ClassDef, object]]:
    """Every function, class and method of the stub, and the object that it describes."""
    found = []
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            one = getattr(_core, node.name)
            found.append((node.name, node, one))
            inner = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            found += [
                (f"{node.name}.{part.name}", part, getattr(one, part.name)) for part in inner if part.name != "__new__"
            ]
    return found


def test_the_stub_has_the_names_of_the_module():
    assert names(STUB.body) == public(_core) | {"__version__"}
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            one = getattr(_core, node.name)
            assert names(node.body) - {"__new__"} == public(one) - public(one.__base__), node.name


@pytest.mark.parametrize(("name", "node", "one"), definitions(), ids=lambda one: one if isinstance(one, str) else "")
def test_every_name_is_documented(name: str, node: ast.FunctionDef | ast.ClassDef, one: object):
    text = inspect.getdoc(one) or ""
    assert len(text) >= 15, name
    if isinstance(node, ast.ClassDef):
        assert (ast.get_docstring(node) or "").split() == text.split(), name
    if isinstance(node, ast.FunctionDef) and not inspect.isdatadescriptor(one):
        parameters = [one.arg for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "self"]
        assert parameters == [one for one in inspect.signature(one).parameters if one != "self"], name
