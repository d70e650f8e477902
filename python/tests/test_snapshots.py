"""What commands print: their help, and their tables as a file gets them.

`pytest --snapshot-update` writes it to `__snapshots__`, where the difference is reviewed.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import call, shown, typed
from sweep_scenarios import SMALL
from typer import rich_utils
from typer.core import TyperGroup

from elephan.cli import BELOW, GROUPS, app

# Carried out once, before the tables are shown. Each table has a command, which changes nothing.
FIRST = (
    "run two-flows --set duration=30s",
    "compare --cc reno,htcp --rate 10Mbit/s --rtt 20ms --duration 25s --repeat 3 --out compared",
    "sweep small.toml --set sweep.repeat=3 --out swept",
    "run priority --set duration=20s",
    "run two-flows --engine model --set duration=30s --out fluid",
)
TABLES = (
    "sweep table swept --rows path.rtt --cols flow.cc --metric goodput",
    "sweep table swept --rows path.rtt --cols flow.cc --metric goodput,fairness --format csv",
    "sweep table swept --rows path.rtt --cols flow.cc --metric goodput --format md",
    "sweep table swept --rows path.rtt --cols flow.cc --metric goodput --format latex",
    "sweep paired swept --between flow.cc=reno,htcp",
    'sweep query swept "select cc, rtt, avg(goodput) as goodput from runs group by all order by all"',
    "sweep query swept",
    "cc list",
    "cc show scalable",
    "queue list",
    "queue show pie",
    "queue show red",
    "model response --cc reno,scalable --loss 1e-4",
    "model response --rate 1Gbit/s --rtt 120ms",
    "model recovery --rate 1Gbit/s --rtt 200ms",
    "model fairness --loss 1e-5",
    "model utilisation --beta 0.5,0.8 --buffer 0,0.2,1",
    "model stability --buffer 50,100,200",
    "cite",
    "reproduce list",
    "scenario list",
    "packetdrill list",
    "model list",
    "plot list",
    "scenario check small.toml",
    "scenario show small.toml",
    "packetdrill slow-start",
)


def commands(command: Any, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group."""
    yield words
    if isinstance(command, TyperGroup):
        for name in command.list_commands(None):
            _, below, _ = command.resolve_command(typer.Context(command), [name])
            yield from commands(below, *words, name)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of 80 columns without colours, whatever the terminal and the CI service are."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(rich_utils, "FORCE_TERMINAL", False)
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 80)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("words", [*commands(typer.main.get_command(app))], ids=" ".join)
def test_help(words: tuple[str, ...], tmp_path: Path, snapshot):
    done = call(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert call(*words, "-h").stdout == done.stdout
    # Nothing is cut off.
    assert "…" not in done.stdout
    if not words:
        assert re.findall(r"─ ([A-Z][\w ,]+) ─", done.stdout) == ["Options", *GROUPS]
    else:
        panels = GROUPS.values() if len(words) == 1 else [BELOW.get(words[0], {})]
        texts = {name: text for panel in panels for name, text in panel.items()}
        assert texts.get(words[-1], "") in " ".join(done.stdout.split())
    assert shown(done.stdout, tmp_path) == snapshot


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The folder of the results, and what the first commands printed."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "small.toml").write_text(SMALL)
    printed = {"folder": str(folder)}
    for line in FIRST:
        done = typed(line, folder)
        assert done.returncode == 0, done.stderr
        printed[line] = done.stdout
    return printed


@pytest.mark.parametrize("line", FIRST)
def test_results(line: str, first: dict[str, str], snapshot):
    assert shown(first[line], Path(first["folder"])) == snapshot


@pytest.mark.parametrize("line", TABLES)
def test_tables(line: str, first: dict[str, str], snapshot, monkeypatch: pytest.MonkeyPatch):
    folder = Path(first["folder"])
    # `cc list` shows the modules that this user has imported.
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    done = typed(line, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown(done.stdout, folder) == snapshot
