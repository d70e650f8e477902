"""The structure of the package: each subpackage imports only from earlier ones, and no subpackage has an import cycle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import elephan

ROOMS = ("base", "foreign", "cc", "api", "kernel", "engines", "gym", "studies", "report", "ui", "cli")
PACKAGE = Path(elephan.__file__).parent


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports() -> dict[str, set[str]]:
    """The modules of the package that each module imports, including imports in functions."""
    known = {name_of(path) for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        modules = found.setdefault(name_of(path), set())
        for line in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("elephan."):
                module = (line.module or "").removeprefix("elephan.")
                for alias in line.names:
                    modules.add(f"{module}.{alias.name}" if f"{module}.{alias.name}" in known else module)
    return found


def test_rooms_import_from_those_before_them():
    order = {room: number for number, room in enumerate(ROOMS)}
    for module, others in imports().items():
        for other in others - {"_core"}:
            rooms = [name.partition(".")[0] for name in (other, module)]
            if module != "__init__":
                assert order[rooms[0]] <= order[rooms[1]], f"{module} imports {other}"


def test_no_circle_of_files():
    # A package and its own modules count as one.
    TopologicalSorter({module: others - {module} for module, others in imports().items()}).prepare()
