"""What the documentation shows is run."""

import re
from pathlib import Path

import pytest

import elephan

PAGES = [Path("README.md"), *sorted(Path("docs").glob("*.md")), Path("ARCHITECTURE.md"), Path("CONTRIBUTING.md")]


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
