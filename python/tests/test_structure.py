"""The structure of the package: each subpackage imports only from earlier ones, and no subpackage has an import cycle."""

import ast
import subprocess
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from command_line import call

import elephan

ROOMS = ("base", "foreign", "cc", "api", "kernel", "guest", "engines", "gym", "studies", "paths", "report", "ui", "cli")
PACKAGE = Path(elephan.__file__).parent


# What is shown for users to copy is no part of the package.
FILES = sorted(set(PACKAGE.rglob("*.py")) - set((PACKAGE / "examples").rglob("*.py")))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports() -> dict[str, set[str]]:
    """The modules of the package that each module imports, including imports in functions."""
    known = {name_of(path) for path in FILES}
    found: dict[str, set[str]] = {}
    for path in FILES:
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


def test_one_version_everywhere():
    def tables(file: str) -> dict:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))

    workspace = tables("Cargo.toml")["workspace"]
    version = tables("pyproject.toml")["project"]["version"]
    ours = [one for one in workspace["dependencies"].values() if isinstance(one, dict) and "path" in one]
    assert {workspace["package"]["version"], *(one["version"] for one in ours)} == {version}
    citation = yaml.safe_load(Path("CITATION.cff").read_text())
    assert citation["version"] == version
    entry = call("cite").stdout
    for key in ("title", "version", "repository-code"):
        assert f"{{{citation[key]}}}" in entry
    assert all(f"{{{author['name']}}}" in entry for author in citation["authors"])
    assert f"year = {{{citation['date-released'].year}}}" in entry
    assert yaml.safe_load(Path("recipe/recipe.yaml").read_text())["context"]["version"] == version
    # What is promised of older compilers is what the pinned one has tested.
    assert workspace["package"]["rust-version"] in tables("rust-toolchain.toml")["toolchain"]["channel"]


def test_the_recipe_has_the_dependencies_of_the_package():
    conda = {"matplotlib": "matplotlib-base"}
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    run = yaml.safe_load(Path("recipe/recipe.yaml").read_text())["requirements"]["run"]
    needed = [f"python {project['requires-python']}"]
    for one in project["dependencies"]:
        name, _, least = one.partition(">=")
        needed.append(f"{conda.get(name, name)} >={least}")
    assert sorted(run) == sorted(needed)


def test_generated_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend("scripts")
    files = {
        "docs/one.md": "*(table: in the built documentation, `make docs`)* <!-- facts -->\n",
        "docs/reproduction.md": "text\n",
        "docs/picture.svg": "<svg/>",
        "docs/reproduction/one.md": "text\n",
        "docs/two.md": "<!-- facts -->\n| a |\n<!-- /facts -->\n",
        "large.csv": "0" * 300_001,
        "one.down": "1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    found = [line.partition(": ")[0] for line in import_module("generated").refused(tmp_path)]
    assert found == list(files)[2:]
