"""What the documentation shows is run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import elephan
from elephan.cli import app

PAGES = [Path("README.md"), *sorted(Path("docs").rglob("*.md")), Path("ARCHITECTURE.md"), Path("CONTRIBUTING.md")]


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [(str(page), text) for page in PAGES for text in pattern.findall(page.read_text())]


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_scenarios_in_the_docs_can_be_run(page: str, text: str, tmp_path: Path):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    assert elephan.load(path).expand(), page


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_python_in_the_docs_runs(page: str, text: str):
    exec(compile(text, page, "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_pages_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def command_lines() -> list[tuple[str, str]]:
    """Every `elephan ...` that a page shows, continued lines joined."""
    pattern = re.compile(r"^(?: {4}|(?=elephan ))elephan (.*?)$", re.MULTILINE)
    return [(str(page), line) for page in PAGES for line in pattern.findall(re.sub(r"\\\n\s*", " ", page.read_text()))]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_commands_in_the_docs_exist(page: str, line: str):  # noqa: ARG001 - the page names the test
    """The command and its options are known; it is not carried out."""
    words = shlex.split(
        line.split("  #", maxsplit=1)[0].split(" | ", maxsplit=1)[0].split(" > ", maxsplit=1)[0], comments=True
    )
    command, context = typer.main.get_command(app), None
    while hasattr(command, "resolve_command"):
        context = command.make_context("elephan", list(words), parent=context, resilient_parsing=True)
        if not words or words[0].startswith("-"):
            return
        _, command, words = command.resolve_command(context, words)
    command.make_context(command.name, list(words), parent=context)


def test_generated_parts_of_the_docs_are_as_they_would_be_written():
    subprocess.run([sys.executable, "scripts/docs/pages.py", "--check"], check=True)


def test_every_algorithm_has_a_page_in_the_site():
    site = Path("mkdocs.yml").read_text()
    for algorithm in elephan.algorithms():
        assert f"algorithms/{algorithm.name}.md" in site
        assert (Path("docs/images") / f"cc-{algorithm.name}.svg").is_file()
