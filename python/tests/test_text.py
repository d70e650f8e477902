"""Names and labels are shown as text everywhere, and a completed run is kept, whatever its names are."""

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import command_line
import polars as pl
import pytest
from command_line import Done

import elephan
from elephan import _core
from elephan.base import plots, text
from elephan.cli.reproduce import _keep
from elephan.report import write
from elephan.studies import compare
from elephan.studies.sweeps.dataset import Dataset

# Text that a terminal, a picture, Markdown, LaTeX, HTML, a spreadsheet or a format string would not treat as text.
HOSTILE = [
    "[/foo]",
    "[red]loud[/red] :elephant:",
    "[link=https://evil.example]here[/link]",
    r"$\frac$ and $x^2",
    "_hidden_ {name} {0} %s %(x)s",
    "<script>alert(1)</script><img src=x onerror=alert(1)> &lt;",
    "|cells| `code` ![a](https://evil.example/a.png) [b](javascript:alert(1)) https://evil.example www.evil.example *x* ~~y~~",
    r"\input{/etc/passwd} & % # ^ ~ \\ [3em] *",
    '=cmd|"/c calc"!A1',
    "```",
    "\u202etxt.exe\u202c \u2066x\u2069 \u200b\ufeff",
    "\N{ELEPHANT} \u6f22\u5b57 e\u0301 \u05d0\u05d1",
    "../../escaped",
    "long " + 60 * "name ",
]
COMPARE = ["compare", "--cc", "reno", "--duration", "2s", "--repeat", "2", "--start-within", "1s", "--rate", "5Mbit/s"]
# Characters that neither a terminal nor a picture may receive: controls except the line end, and controls of text direction.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# A small and quick scenario.
SMALL = {
    "duration": "1 s",
    "path": {"rate": "5 Mbit/s", "rtt": "20 ms", "buffer": "20 packets"},
    "flow": [{"cc": "reno"}],
}
# The formats of a report that `reported` does not cover.
DRAWN = [kind for kind in write.FORMATS if kind != "md"]
CONTROLS = ["a\x1b[31mb", "bell\a", "back\rwards", "two\nlines", "nul\x00", "c1\x9b31m", "tab\tbed"]


@pytest.fixture
def elephan_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Done]]:
    """The command line in `tmp_path`. What would be a warning on the terminal is an error here."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield command_line.call


def hostile(*names: str) -> dict[str, Any]:
    """A scenario in which everything that has a name gets each of `names`."""
    shared: dict[str, Any] = {"rate": "10 Mbit/s", "delay": "5 ms", "buffer": "20 packets"}
    ends = {name: {"from": f"{name} from", "to": f"{name} to"} for name in names}
    queue = {
        "name": "wrr",
        "class": [*({"name": name, "dscp": [8 + k]} for k, name in enumerate(names)), {"name": "rest"}],
    }
    return {
        "name": names[0],
        "duration": "1 s",
        "link": [
            {"name": name, **ends[name], **shared, **({} if k else {"queue": queue})} for k, name in enumerate(names)
        ],
        "flow": [{"cc": "reno", "label": name, **ends[name], "dscp": 8} for name in names],
        "cbr": [{"rate": "1 Mbit/s", "label": name, **ends[name]} for name in names],
        "web": [{"users": 2, "label": name, **ends[name], "start": "0 s"} for name in names],
        "host": {"ack": "1 us"},
        "event": [
            {"at": "500 ms", "link": names[0], "weights": dict.fromkeys(names, 2)},
            *({"at": "500 ms", "link": name, "rate": "9 Mbit/s"} for name in names[1:]),
        ],
        "trace": {"pcap": [*names]},
    }


def reported(call: Callable[..., Done], folder: Path) -> str:
    """A report in Markdown. Its pictures are not drawn: those of the format `png` are the same."""
    with mock.patch.object(plots, "save", lambda _, path: path.touch()):
        quiet(call("report", folder, "--format", "md"))
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert_markdown(page)
    return page


def quiet(done: Done, code: int = 0) -> str:
    """The output of a command that succeeded and wrote only text to the terminal."""
    assert done.returncode == code, done.stderr
    for stream in (done.stdout, done.stderr):
        found = RAW.search(stream)
        assert found is None, ascii(stream[max(found.start() - 40, 0) : found.end() + 40])
    return done.stdout


@pytest.mark.parametrize("half", [0, 1])
def test_hostile_names_are_text_in_every_command(half: int, tmp_path: Path, elephan_: Callable[..., Done]) -> None:
    names = HOSTILE[half::2]
    file = tmp_path / "s.json"
    file.write_text(json.dumps(hostile(*names)))
    quiet(elephan_("scenario", "check", file))
    shown = quiet(elephan_("run", file, "--out", "out"))
    for name in names:
        assert text.visible(name)[:8] in shown
    folder = tmp_path / "out"
    # Stored data are unchanged.
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert document["scenario"]["name"] == names[0]
    assert document["labels"] == [*names, *names, *names]
    assert set(pl.read_parquet(folder / "flows.parquet")["label"]) == {*names}
    assert set(pl.read_parquet(folder / "queues.parquet")["link"]) >= {*names}
    quiet(elephan_("plot", "queue", "out"))
    for kind in DRAWN:
        quiet(elephan_("report", "out", "--format", kind))
        assert (folder / f"report.{kind}").stat().st_size > 1000
    assert (folder / "report.html").read_text(encoding="utf-8").count("<script>alert") == 0
    assert len(reported(elephan_, folder)) > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s.json"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_of_a_scenario(name: str, tmp_path: Path, elephan_: Callable[..., Done]) -> None:
    document = {**SMALL, "name": name}
    (tmp_path / "s.json").write_text(json.dumps(document))
    quiet(elephan_("run", "s.json", "--set", "duration=100ms"))
    (folder,) = (tmp_path / "results").iterdir()
    quiet(elephan_("plot", "cwnd", folder))
    assert (folder / "cwnd.png").exists()
    assert json.loads((folder / "run.json").read_text())["scenario"]["name"] == name
    reported(elephan_, folder)
    assert [path.name for path in tmp_path.rglob("*.toml")] == []


def assert_markdown(page: str) -> None:
    """The rendered page has its own tables, code and pictures, and nothing that was made by a name."""
    markdown_it = pytest.importorskip("markdown_it")
    found = markdown_it.MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(page)
    inner = [token for block in found for token in [block, *(block.children or ())]]
    kinds = {token.type for token in inner}
    assert not kinds & {"html_inline", "html_block", "link_open", "em_open", "strong_open", "s_open", "code_inline"}, (
        kinds
    )
    assert all(str(token.attrs["src"]).startswith("report-") for token in inner if token.type == "image")
    columns, rows = 0, 0
    for token in found:
        if token.type == "thead_open":
            columns = 0
        elif token.type == "th_open":
            columns += 1
        elif token.type == "tr_open":
            rows = 0
        elif token.type == "td_open":
            rows += 1
        elif token.type == "tr_close" and rows:
            assert rows == columns
    # The scenario is complete: no name ended its fence.
    assert [token.type for token in found][-1] == "fence"


def test_hostile_values_of_a_sweep_in_every_format(tmp_path: Path, elephan_: Callable[..., Done]) -> None:
    document = {
        **SMALL,
        "name": "[/sweep] $x$ {task}",
        "sweep": {"flow.0.label": HOSTILE, "flow.cc": ["reno", "htcp"], "repeat": 2},
    }
    (tmp_path / "s.json").write_text(json.dumps(document))
    quiet(elephan_("sweep", "s.json", "--out", "out"))
    assert set(Dataset(tmp_path / "out").index()["flow.0.label"]) == set(HOSTILE)
    sql = "select label, goodput from runs"
    for form in ("table", "csv", "md", "latex"):
        table = elephan_(
            "sweep", "table", "out", "--rows", "label", "--cols", "cc", "--metric", "goodput", "--format", form
        )
        paired = elephan_("sweep", "paired", "out", "--between", "cc=reno,htcp", "--format", form)
        query = elephan_("sweep", "query", "out", sql, "--format", form)
        for done in (table, paired, query):
            if form == "csv":
                assert done.returncode == 0
                rows = list(csv.reader(io.StringIO(done.stdout)))
                assert len({len(row) for row in rows}) == 1
                labels = {row[0] for row in rows[1:]}
                assert labels <= {*HOSTILE, '\'=cmd|"/c calc"!A1'}
                assert not [cell for row in rows for cell in row if cell.startswith(("=", "@"))]
            else:
                quiet(done)
            if form == "md":
                cells = {
                    len(re.findall(r"(?<!\\)\|", line)) for line in done.stdout.splitlines() if line.startswith("|")
                }
                assert len(cells) == 1
            if form == "latex":
                body = done.stdout.split(r"\midrule")[1].split(r"\bottomrule")[0]
                assert not re.search(r"\\\\\s*[\[*]|^[\[*]", body.strip(), re.MULTILINE)
                assert r"\input" not in body
    for kind in DRAWN:
        quiet(elephan_("report", "out", "--format", kind))
    reported(elephan_, tmp_path / "out")
    between = elephan_("sweep", "paired", "out", "--between", "label=[/foo],```", "--format", "table")
    assert "[/foo]" in quiet(between)


@pytest.mark.parametrize("name", CONTROLS, ids=range(len(CONTROLS)))
@pytest.mark.parametrize("place", ["name", "flow.0.label", "link.0.name", "link.0.from", "cbr.0.label", "sweep"])
def test_controls_in_a_scenario_are_refused_in_one_line(name: str, place: str) -> None:
    document = hostile("good")
    if place == "sweep":
        document["sweep"] = {"flow.0.label": [name]}
    else:
        *way, last = place.split(".")
        where: Any = document
        for step in way:
            where = where[int(step) if step.isdigit() else step]
        where[last] = name
    with pytest.raises(elephan.ScenarioError, match="expected text without control characters") as caught:
        _core.load_scenario(json.dumps(document), "s.json", [], True)
    assert RAW.search(str(caught.value)) is None
    assert "\n" not in str(caught.value)
    assert place in str(caught.value)


def test_messages_reach_the_terminal_as_text(tmp_path: Path, elephan_: Callable[..., Done]) -> None:
    evil = "x\x1b[31m\a\u202e"
    (tmp_path / f"{evil}.toml").write_text('duration = "\\u001b[31m"\nname = "[/x]"\n')
    for arguments in (
        ("run", f"{evil}.toml"),
        ("run", f"missing {evil}[/x].toml"),
        ("plot", "cwnd", f"{evil}[/x]"),
        ("plot", f"{evil}[/x]", "x"),
        ("scenario", "check", f"{evil}.toml", "--set", f"{evil}=1"),
        ("scenario", "check", f"{evil}.toml", "--set", f"name={evil}"),
        ("cc", "show", f"{evil}[/x]"),
        ("report", evil),
        ("model", "response", "--loss", f"[/x]{evil}"),
        (f"[/x]{evil}",),
        ("run", f"--{evil}"),
    ):
        done = elephan_(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        quiet(done, 2)
        assert done.stderr


def test_results_with_controls_from_elsewhere_are_shown_as_text(tmp_path: Path, elephan_: Callable[..., Done]) -> None:
    """A folder that was written by hand, or before names were checked."""
    run = elephan.run(elephan.dumbbell(rate="10 Mbit/s", rtt="20 ms", flows=[elephan.flow("reno")], duration="1 s"))
    folder = run.save(tmp_path / "out")
    for file in ("run.json", "summary.json"):
        path = folder / file
        path.write_text(
            path.read_text().replace('"reno"', r'"re\u001b[31m\nno\u0007|"').replace('"run"', r'"r\u001bn"')
        )
    for what in ("cwnd", "queue"):
        quiet(elephan_("plot", what, "out"))
    for kind in DRAWN:
        quiet(elephan_("report", "out", "--format", kind))
    assert RAW.search(reported(elephan_, folder)) is None


def test_a_plot_that_fails_is_one_line_and_the_results_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elephan_: Callable[..., Done]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("out of \x1b[31mink\nand paper")

    monkeypatch.setattr(compare, "figure", broken)
    (tmp_path / "s.json").write_text(json.dumps(SMALL))
    done = elephan_(*COMPARE, "--out", "compared")
    assert done.returncode == 0
    assert (tmp_path / "compared" / "comparison.json").is_file()
    assert "goodput" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2, lines
    assert all("png: expected a picture, found: out of \\x1b[31mink\\nand paper" in line for line in lines)
    assert not list((tmp_path / "compared").glob("*.png"))
    assert not list(tmp_path.rglob(".elephan-*"))


def test_a_report_of_an_experiment_stands_without_its_picture(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("no ink")

    for draw, picture in ((broken, None), (plots.Figure, "full/source/x.png")):
        _keep(tmp_path, {"name": "source/x", "quick": False, "engine": "sim"}, draw)
        kept = json.loads((tmp_path / "full" / "source" / "x.json").read_text())
        assert kept.get("picture") == picture
        assert picture is None or (tmp_path / picture).is_file()
    assert capfd.readouterr().err.splitlines() == [f"{tmp_path}/full/source/x.png: expected a picture, found: no ink"]


def test_a_terminal_that_lacks_letters_shows_escapes(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({**SMALL, "flow": [{"cc": "reno", "label": "\N{ELEPHANT} ±"}]}))
    for arguments, shown in ((["run", "s.json"], r"\U0001f418 \xb1"), (COMPARE, r"\xb1")):
        done = command_line.call(*arguments, cwd=tmp_path, encoding="ascii")
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout


def test_captures_of_links_with_alike_names_have_files_of_their_own(
    tmp_path: Path, elephan_: Callable[..., Done]
) -> None:
    document = hostile("a/b")
    other = {**document["link"][0], "name": "a:b", "from": "c", "to": "d"}
    document["link"].append(other)
    document["trace"] = {"pcap": ["a/b", "a:b"]}
    (tmp_path / "s.json").write_text(json.dumps(document))
    quiet(elephan_("run", "s.json", "--out", "out"))
    assert {path.name for path in (tmp_path / "out").glob("*.pcap")} == {"a-b.pcap", "a-b-2.pcap"}


def test_only_one_module_prints() -> None:
    """rich treats strings as markup, and passes escape sequences through. Pictures are written completely or not at all."""
    package = Path(elephan.__file__).parent
    others = "|".join(
        (
            r"rich\.console(?! import Group)|\bConsole\(|from_markup|^\s*print\(|(?<!pages)\.savefig\(",
            r"TextColumn\((?!\"\{task\.fields)|echo\((?!\s*json|table|title)",
        )
    )
    for path in set(package.rglob("*.py")) - set((package / "examples").rglob("*.py")):
        if path.name not in ("text.py", "plots.py"):
            found = re.search(others, path.read_text(encoding="utf-8"), re.MULTILINE)
            assert found is None, f"{path}: {found[0]}: expected what elephan.base.text and elephan.base.plots have"


def test_escapes() -> None:
    assert text.visible("a\x1b[1m\u202eb\n\t\x00\ud800") == r"a\x1b[1m\u202eb\n\t\x00\ud800"
    assert text.visible("caf\u00e9 \N{ELEPHANT}\u200d \u05d0") == "caf\u00e9 \N{ELEPHANT}\u200d \u05d0"
    assert text.drawn("$x$ _") == r"\$x\$ _"
    assert text.drawn("_x") == " _x"
    assert text.markdown("a|b *c* [d](e) <f> `g` h_i") == r"a\|b \*c\* \[d\](e) &lt;f&gt; \`g\` h\_i"
    assert text.spreadsheet("=1+1") == "'=1+1"
    assert [text.spreadsheet(cell) for cell in ("-1.5", "-", "+3e-5", "-inf", "a=b", "")] == [
        "-1.5",
        "-",
        "+3e-5",
        "-inf",
        "a=b",
        "",
    ]
    assert text.file_name("../../a b") == "a-b"
    assert text.file_name("///") == "run"
    assert len(text.file_name("x" * 5000)) == 180
    assert len(text.file_name("\u6f22" * 5000).encode()) == 180
