"""`elephan new` creates code that compiles. Tested here: the files and lines of each, and that a refusal writes nothing."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from elephan.cli import app
from elephan.cli.new import NAME

PARTS = ("crates/cc/src", "crates/net/src", "crates/metrics/src", "python/elephan/studies/reproduce")
PAGES = ("algorithms", "queues", "metrics")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for part in (
        *PARTS,
        *(f"docs/{page}" for page in PAGES),
        "rustfmt.toml",
        "pyproject.toml",
        "python/elephan/__init__.py",
    ):
        (shutil.copytree if Path(part).is_dir() else shutil.copy)(part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def texts(folder: Path) -> dict[str, str]:
    """Every file below a folder."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}


def added(checkout: Path, *words: str) -> dict[str, list[str]]:
    """Run `elephan new`; returns the lines that it adds to each file. It removes none."""
    before = texts(checkout)
    done = CliRunner().invoke(app, ["new", *words])
    assert done.exit_code == 0, done.exception
    found = {}
    for file, text in texts(checkout).items():
        if text != before.get(file):
            lines = text.splitlines()
            for line in before.get(file, "").splitlines():
                assert line in lines or "import" in line
                if line in lines:
                    lines.remove(line)
            found[file] = lines
    return found


def formatted(*files: Path) -> None:
    subprocess.run(["rustfmt", "--edition", "2024", "--check", *files], check=True)


def in_order(file: Path, name: str) -> bool:
    """Whether a module is among the others of its crate in alphabetical order."""
    runs = [run.split("\n") for run in file.read_text().split("\n\n") if f"mod {name};" in run]
    names = [line.rpartition(" ")[2] for line in runs[0] if "mod " in line]
    return names == sorted(names)


@pytest.mark.parametrize(
    ("words", "files", "line", "module"),
    [
        (
            "cc illinois-test",
            ("cc/src/illinois_test.rs", "cc/src/registry.rs", "algorithms/illinois-test.md"),
            '    illinois_test::IllinoisTest { "illinois-test", "IllinoisTest", "Author Year"; }',
            "pub mod illinois_test;",
        ),
        (
            "queue blue",
            ("net/src/blue.rs", "net/src/queue.rs", "queues/blue.md"),
            '    blue::Blue { "blue", "Blue", "Author Year", judges BlueState }',
            "mod blue;",
        ),
    ],
)
def test_an_algorithm_or_a_queue_discipline_is_a_file_and_a_line(
    checkout: Path, words: str, files: tuple[str, ...], line: str, module: str
):
    found = added(checkout, *words.split())
    source, registry, page = f"crates/{files[0]}", f"crates/{files[1]}", f"docs/{files[2]}"
    crate = str(Path(source).with_name("lib.rs"))
    assert set(found) == {source, registry, page, crate}
    assert found[registry] == [line]
    # As listed: after the others.
    text = (checkout / registry).read_text()
    assert re.search(r"^(registry|disciplines)! \{\n(.*?)\n\}\n", text, re.DOTALL | re.MULTILINE)[2].endswith(line)
    assert found[crate] == [module]
    assert in_order(checkout / crate, Path(source).stem)
    formatted(checkout / crate)
    assert "emplate" not in "".join([*found[source], *found[page]])


def test_a_metric_is_a_line_and_its_formula(checkout: Path):
    found = added(checkout, "metric", "top-share")
    crate = "crates/metrics/src"
    assert set(found) == {
        *(f"{crate}/{file}.rs" for file in ("summary", "collector", "formula")),
        "docs/metrics/top-share.md",
    }
    assert len(found[f"{crate}/summary.rs"]) == 2
    assert found[f"{crate}/collector.rs"] == ["            top_share: finite(formula::top_share(&goodputs)),"]
    assert "pub fn top_share(goodputs: &[f64]) -> f64 {" in found[f"{crate}/formula.rs"]
    assert "    fn top_share_by_hand() {" in found[f"{crate}/formula.rs"]
    formatted(checkout / crate / "lib.rs")


def test_an_experiment_is_a_function_and_a_scenario(checkout: Path):
    folder = "python/elephan/studies/reproduce"
    found = added(checkout, "experiment", "kelly2003/figure-9.1")
    assert set(found) == {f"{folder}/kelly2003.py", f"{folder}/scenarios/kelly2003/figure-9.1.toml"}
    assert '@experiment("kelly2003/figure-9.1", "What the table or figure shows", "kelly2003/figure-9.1")' in "".join(
        found[f"{folder}/kelly2003.py"]
    )
    new = added(checkout, "experiment", "liu2006/table-1")
    assert f"{folder}/liu2006.py" in new
    assert new[f"{folder}/lab.py"] == ['    "liu2006": "What it is about (Author Year)",']
    scenarios = checkout / folder / "scenarios" / "liu2006"
    assert {file.name for file in scenarios.iterdir()} == {"README.md", "claims.csv", "figures.csv", "table-1.toml"}
    assert tomllib.loads((scenarios / "table-1.toml").read_text())["name"] == "liu2006-table-1"
    for file in ("kelly2003.py", "liu2006.py"):
        path = checkout / folder / file
        compile(path.read_text(), file, "exec")
        subprocess.run(
            [Path(sys.executable).with_name("ruff"), "check", "--quiet", "--isolated", "--select", "E9,F", path],
            check=True,
        )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("cc reno", "expected a name that crates/cc/src/registry.rs does not have, found 'reno'"),
        ("cc registry", "expected no crates/cc/src/registry.rs, found one"),
        ("cc governor", "expected a name that crates/cc/src/registry.rs does not have, found 'governor'"),
        ("cc Illinois", "expected a name such as hybla or hstcp-fc, found 'Illinois'"),
        ("cc match", "expected a name such as hybla or hstcp-fc, found 'match'"),
        ("cc hybla", "expected no docs/algorithms/hybla.md, found one"),
        ("cc ../x", "expected a name such as hybla or hstcp-fc, found '../x'"),
        ("queue pie", "expected a name that crates/net/src/queue.rs does not have, found 'pie'"),
        ("metric jain", "expected a name that crates/metrics/src/summary.rs does not have, found 'jain'"),
        ("metric short-term", "expected a name that crates/metrics/src/formula.rs does not have, found 'short-term'"),
        ("experiment kelly2003", "expected a name such as hybla or hstcp-fc, found ''"),
        ("experiment kelly2003/table-1", "kelly2003.py does not have, found 'kelly2003/table-1'"),
        ("experiment li2006/table-99", "expected a source in one file, found the folder"),
    ],
)
def test_what_is_refused_writes_nothing(checkout: Path, words: str, what: str):
    (checkout / "docs/algorithms/hybla.md").write_text("mine")
    before = texts(checkout)
    done = CliRunner().invoke(app, ["new", *words.split()])
    assert what in str(done.exception)
    assert texts(checkout) == before


def test_outside_of_a_checkout_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["new", "cc", "hybla"])
    assert "expected a checkout of Elephan" in str(done.exception)
    assert "\n" not in str(done.exception)


def test_every_name_that_there_is_could_be_new():
    from elephan import algorithms
    from elephan.api.registry import queues

    assert all(NAME.fullmatch(one.name) for one in (*algorithms(), *queues()))
