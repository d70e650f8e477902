"""What the documentation shows: in the gate that it exists and is of this version, in `make slow` that all of it runs."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from command_line import ELEPHAN, call, typed

import elephan
from elephan.cli import parse
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.page import commands, page_of

# The pages of notebooks are made by the site's build, which runs them, and those of reproduced experiments from their archive.
NOTEBOOKS = {path.with_suffix(".md") for path in Path("docs/notebooks").glob("*.py")}
ARCHIVE = sorted(Path("docs/reproduction").glob("*.json"))
OF_EXPERIMENTS = {path.stem for path in ARCHIVE} | {page_of(name) for name in EXPERIMENTS}
BUILT = NOTEBOOKS | {Path("docs/reproduction", f"{page}.md") for page in OF_EXPERIMENTS}
WRITTEN = sorted({*Path("docs").rglob("*.md")} - BUILT)
PAGES = [Path("README.md"), *WRITTEN, Path("ARCHITECTURE.md"), Path("CONTRIBUTING.md")]
# The commands of the examples that the site has on the pages of metrics, each once.
MEASURED = json.loads(Path("docs/measured.json").read_text())
EXAMPLES = list(dict.fromkeys(one["command"].removeprefix("elephan ") for one in MEASURED["examples"].values()))
EXAMPLES.remove("")


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [(str(page), text) for page in PAGES for text in pattern.findall(page.read_text())]


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_scenarios_in_the_docs_can_be_run(page: str, text: str, tmp_path: Path):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    assert elephan.load(path).expand(), page


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_python_in_the_docs_runs(page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "examples").symlink_to(Path("python/elephan/examples").resolve())
    monkeypatch.chdir(tmp_path)
    exec(compile(text, page, "exec"), {})


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch):
    """The modules that write pages and their navigation."""
    monkeypatch.syspath_prepend("scripts/docs")
    return SimpleNamespace(pages=import_module("pages"), navigation=import_module("navigation"))


def test_links_between_pages_lead_somewhere(writer: SimpleNamespace):
    """In the repository, and in the site: the picture of an algorithm that is not measured yet is only in the former."""
    written = [(page, re.sub(r".*<!-- declared -->", "", page.read_text())) for page in PAGES]
    filled = [(page.relative_to(Path.cwd()), text) for page, text in writer.pages.filled().items()]
    assert filled
    for page, text in [*written, *filled]:
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            found = Path(os.path.normpath(page.parent / target))
            assert found.exists() or found in BUILT, f"{page}: {target}"


def test_links_of_readme_lead_somewhere_from_any_site():
    """A package index shows README, and resolves no relative link."""
    repository = tomllib.loads(Path("pyproject.toml").read_text())["project"]["urls"]["Repository"]
    raw = repository.replace("//github.com", "//raw.githubusercontent.com")
    targets = re.findall(r"\]\((.*?)\)", Path("README.md").read_text())
    assert len(targets) == 4
    for target in targets:
        path = re.fullmatch(rf"(?:{repository}/blob|{raw})/main/(.*)", target)
        assert path, target
        assert Path(path[1]).is_file(), target


def command_lines(page: Path) -> list[str]:
    """Every `elephan ...` that a page shows, with continued lines joined."""
    pattern = re.compile(r"^(?: {4}|(?=elephan ))elephan (.*?)$", re.MULTILINE)
    return pattern.findall(re.sub(r"\\\n\s*", " ", page.read_text()))


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)], ids=str)
def test_commands_in_the_docs_exist(page: Path):
    """Each command and its options exist; it is not carried out."""
    for line in command_lines(page):
        parse(f"elephan {line}")


def test_commands_of_the_examples_exist():
    for line in EXAMPLES:
        parse(f"elephan {line}")


@pytest.mark.slow
def test_pages_of_reproduced_experiments_are_those_of_their_archive(tmp_path: Path):
    """Without new reports the committed files stay as they are; what is built from them has what links and squares lead to."""
    shutil.copytree("docs/reproduction", tmp_path / "reproduction", ignore=shutil.ignore_patterns("*.md", "*.svg"))
    page = tmp_path / "reproduction.md"
    done = call("reproduce", "page", "--out", tmp_path / "none", "--page", page)
    assert done.returncode == 0, done.stderr
    assert page.read_text() == Path("docs/reproduction.md").read_text()
    for path in ARCHIVE:
        assert (tmp_path / "reproduction" / path.name).read_text() == path.read_text()
    sources = {path.stem: path.read_text() for path in (tmp_path / "reproduction").glob("*.md")}
    assert sources.keys() == OF_EXPERIMENTS
    assert all(len(text) < 130_000 for text in sources.values())
    anchors = {f"{source}#{name}" for source, text in sources.items() for name in re.findall(r'<a id="(.*?)">', text)}
    squares = re.findall(r'xlink:href="(.*?)/(#.*?)"', (tmp_path / "reproduction/overview.svg").read_text())
    assert squares
    assert {f"{source}{name}" for source, name in squares if source} <= anchors
    for written in [Path("README.md"), *WRITTEN]:
        links = re.findall(r"\]\((?:\S*/)?reproduction/([\w-]+)\.md(#\S+)\)", written.read_text())
        assert {f"{source}{name}" for source, name in links} <= anchors, written
    for text in sources.values():
        for picture in re.findall(r"!\[.*\]\((.*?)\)", text):
            assert (tmp_path / "reproduction" / picture).is_file()
    lines = {line for source in sources for line in command_lines(tmp_path / f"reproduction/{source}.md")}
    assert lines
    for line in sorted(lines):
        parse(f"elephan {line}")


def test_a_new_page_of_verdicts_has_commands_of_this_version(tmp_path: Path):
    comparison = {"cause_of": "", "command": "elephan run two-flows --sett duration=1s"}
    report = {"name": "kelly2003/table-1", "looks": 2, "comparisons": [comparison]}
    for folder in ("full", "quick"):
        place = tmp_path / folder / "kelly2003/table-1.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(report | {"quick": folder == "quick"}))
    assert list(commands(tmp_path)) == [
        "elephan reproduce kelly2003/table-1 --looks 2",
        "elephan reproduce kelly2003/table-1 --quick --looks 2",
    ]
    comparison["cause_of"] = "windows"
    place.write_text(json.dumps(report | {"quick": True}))
    done = call("reproduce", "page", "--out", tmp_path, "--page", tmp_path / "page.md")
    assert done.returncode == 2
    assert done.stderr == (
        "expected a command line of this version, found 'elephan run two-flows --sett duration=1s': "
        "No such option: --sett (Possible options: --seed, --set)\n"
    )
    assert not (tmp_path / "page.md").exists()


# Commands that are not carried out here, with the reason.
NOT_RUN = (
    (r"\bFILE\b", "stands for any file"),
    (r"^--install-completion", "changes the settings of the shell; test_cli.py completes"),
    (r"^ui\b", "goes on until it is stopped; test_ui.py starts it"),
    (r"^check bbr --engine kernel", "takes half an hour; test_check.py checks one case on a kernel"),
    (r"^kernel\b|--engines? (sim,)?linux", "needs root and this kernel; test_kernel.py runs it"),
    (r"^path emulate\b", "needs root; test_emulate.py runs it"),
    (r"^path probe\b", "needs two hosts; test_probe.py runs both on one"),
    (r"^path transfer\b", "needs two hosts; test_transfer.py runs both on one"),
    (r"^path watch\b", "needs another host; test_watch.py watches programs on this one"),
    (r"\bSCRIPT\b", "stands for any script"),
    (r"^reproduce (?!list)", "takes minutes; CI repeats one, test_reproduce.py others"),
    (
        r"^run python/elephan/studies/reproduce/",
        "one run of an experiment, in a checkout; its command comes from the laboratory",
    ),
    (r"^new\b", "changes a checkout; test_new.py runs it"),
    (r"\bbbr-interval\b", "takes ten minutes, and a shorter run has no measuring window"),
    (r"\bscenarios/engines/grid/", "takes minutes; test_grid.py compares a small sweep"),
    (r"\blinux:|^cc import", "needs a source of Linux; test_foreign_linux.py runs its modules"),
    (r"^path host (?!--quick)", "takes minutes; test_host.py has a short one"),
    (
        r"^path recommend\b|^model (rank|agreement)\b",
        "takes a minute or more; test_recommend.py and test_fluid.py have shorter ones",
    ),
)
# The other commands run as shown, but shorter: fewer seconds, fewer repeats, and shorter runs of a sweep.
SHORTER = (
    (r"--duration \S+", "--duration 22s"),
    (r"--repeat \S+", "--repeat 1"),
    (r"^sweep (?!table|paired|query)(.*)", r"sweep \1 --set duration=11s"),
)
# Pages that are carried out as a whole: the first needs two hosts, so test_paths.py runs it; the second has a test below.
PATHS, TUTORIAL = "docs/paths.md", "docs/tutorial.md"
# A scenario that a page asks to save under a name.
SAVED = re.compile(r"`([\w-]+\.toml)`\)?:\n\n```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Files that a page assumes to exist.
BEFORE = {
    "docs/see.md": ["run two-flows"],
    "docs/recommend.md": ["run lossy-link --out measured", "path fit measured --out path"],
}


# Commands that run in a kernel as a process.
IN_GUEST = re.compile(r"--engines? (sim,)?kernel\b")


def runnable(*, in_guest: bool) -> dict[str, list[str]]:
    """The commands of each page that are run, in order. Those of all pages of metrics are joined, each command once."""
    pages: dict[str, list[str]] = {}
    for page, found in [("docs/metrics", EXAMPLES), *((str(page), command_lines(page)) for page in PAGES)]:
        if page in (PATHS, TUTORIAL):
            continue
        name = "docs/metrics" if page.startswith("docs/metrics/") else page
        for line in found:
            is_run = not any(re.search(pattern, line) for pattern, _ in NOT_RUN)
            if is_run and bool(IN_GUEST.search(line)) == in_guest:
                lines = pages.setdefault(name, list(BEFORE.get(name, [])))
                if line not in lines:
                    lines.append(line)
    return pages


def prepare(page: str, folder: Path):
    """Give a folder the scenarios of a checkout, and those that the page asks to save."""
    for name in ("scenarios", "kernel"):
        (folder / name).symlink_to(Path(name).resolve())
    if Path(page).is_file():
        for name, text in SAVED.findall(Path(page).read_text()):
            (folder / name).write_text(text)


def carry_out(page: str, lines: list[str], folder: Path):
    """Run commands of a page in a folder, each as a process, as its reader does."""
    prepare(page, folder)
    for line in lines:
        words = shlex.split(line, comments=True)
        ran = subprocess.run([ELEPHAN, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"elephan {line}\n{ran.stderr}"


def shortened(line: str) -> str:
    for pattern, shorter in SHORTER:
        line = re.sub(pattern, shorter, line)
    return line


def test_the_first_commands_of_a_reader_run(tmp_path: Path):
    """README's and the tutorial's. The other commands are carried out by `make slow`."""
    first = re.sub(r"--rate \S+", "--rate 10Mbit/s", shortened(command_lines(Path("README.md"))[0]))
    done = typed(first, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hstcp-fc" in done.stdout
    prepare(TUTORIAL, tmp_path)
    run, plot, *_ = command_lines(Path(TUTORIAL))
    for line in (run, plot):
        done = typed(line, tmp_path)
        assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "results/first/summary.json").read_text())
    assert f"- **goodput** is {summary['goodput_bit_s'] / 1e6:.1f} Mbit/s" in Path(TUTORIAL).read_text()
    assert (tmp_path / "first.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(("page", "lines"), runnable(in_guest=False).items())
def test_commands_in_the_docs_run(page: str, lines: list[str], tmp_path: Path):
    carry_out(page, [shortened(line) for line in lines], tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(("page", "lines"), runnable(in_guest=True).items())
def test_commands_in_the_docs_run_in_a_guest(page: str, lines: list[str], tmp_path: Path):
    carry_out(page, [shortened(line) for line in lines], tmp_path)


@pytest.mark.slow
def test_the_tutorial_leads_to_its_finding(tmp_path: Path):
    """Its commands as they are shown, and the numbers that its reader is told to see."""
    carry_out(TUTORIAL, command_lines(Path(TUTORIAL)), tmp_path)
    text, results = Path(TUTORIAL).read_text(), tmp_path / "results"
    runs = [json.loads((results / name / "summary.json").read_text()) for name in ("first", "near", "scalable", "pie")]
    told = re.findall(r"airness(?:\*\*)? (?:is |rises from [\d.]+ to )?(\d\.\d+)", text)
    assert told == [f"{run['fairness']:.2f}" for run in runs]
    table = re.findall(r"^\| (\w+)" + r" \| ([\d.]+)" * 4 + r" \|$", text, re.MULTILINE)
    assert [row[0] for row in table] == ["DropTail", "RED", "CoDel", "PIE"]
    sweep = elephan.Dataset(results / "question").runs().filter(pl.col("cc") == "scalable")
    for queue, *numbers in table:
        means = sweep.filter(pl.col("queue") == queue.lower()).select(
            pl.col("fairness"), pl.col("utilisation") * 100, pl.col("synchronisation"), pl.col("queue_delay_mean") * 1e3
        )
        found = [
            f"{mean:.{len(number.partition('.')[2])}f}"
            for mean, number in zip(means.mean().row(0), numbers, strict=True)
        ]
        assert found == numbers, queue


@pytest.mark.slow
def test_the_page_of_bbr_has_what_its_sweeps_find(tmp_path: Path):
    page = "docs/algorithms/bbr.md"
    carry_out(page, [line for line in command_lines(Path(page)) if line.startswith("sweep bbr")], tmp_path)

    def intervals(text: str) -> list[list[str]]:
        rows = (re.findall(r"[\d.]+ ± [\d.]+", line) for line in text.splitlines() if line.startswith("|"))
        return [row for row in rows if row]

    def found(folder: str, rows: str, metric: str, cols: str = "--cols flow.cc") -> list[list[str]]:
        line = f"sweep table results/{folder} --rows {rows} {cols} --metric {metric} --format md"
        return intervals(typed(line, tmp_path).stdout)

    short, long = (found(folder, "path.rtt", "fairness") for folder in ("bbr-two", "long"))
    told = intervals(Path(page).read_text())
    assert [row[:2] for row in told[:4]] == found("bbr-loss", "path.loss.probability", "goodput")
    assert told[4:7] == [[*row, *later] for row, later in zip(short, long, strict=True)]
    one, other = (found("bbr-beside", "path.buffer", f"goodput.{flow}", "") for flow in (1, 2))
    assert told[7:] == [[*row, *beside] for row, beside in zip(one, other, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(Path("docs/coming-from").glob("*.md")), ids=lambda page: page.stem)
def test_both_tools_find_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch):
    """Elephan wherever the page has a table of both, and ns-2 where it is installed. The others take long, or real time."""
    monkeypatch.syspath_prepend("scripts")
    script, text, table = import_module("coming_from"), page.read_text(), Path("docs/measured", page.name)
    if table.is_file():
        assert script.ours(text) in table.read_text()
    if page.stem == "ns-2" and shutil.which("ns"):
        assert script.theirs(page, text) in table.read_text()


def test_each_picture_of_the_gallery_has_its_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend("scripts/docs")
    gallery = import_module("gallery")
    text = gallery.PAGE.read_text()
    shown = re.findall(r"\(images/gallery/(\S+)\)", text)
    assert set(shown) == gallery.made(text) == {path.name for path in gallery.PICTURES.iterdir()}


def test_every_page_of_what_is_declared_is_there_and_in_the_site(writer: SimpleNamespace):
    docs, text = Path("docs"), Path("mkdocs.yml").read_text()
    for page in writer.navigation.declared():
        assert (docs / page).is_file()
    for folder in ("algorithms", "queues", "metrics"):
        assert f"- {folder}/*.md\n" in text
        nav = writer.navigation.expanded([f"{folder}/index.md", f"{folder}/*.md"], docs, {f"{folder}/index.md"})
        found = [page for item in nav[1:] for page in item.values()]
        pages = {page.as_posix() for page in docs.glob(f"{folder}/*.md")}
        assert set(found) == {page.removeprefix("docs/") for page in pages} - {
            f"{folder}/index.md",
            f"{folder}/template.md",
        }
        assert len(found) == len(set(found))
        declared = [page for page in writer.navigation.declared() if page.startswith(folder)]
        assert found[: len(declared)] == declared


def test_sites_of_several_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend("scripts/docs")
    versions = import_module("versions")
    for version in ("0.9.0", "0.10.0", "0.9.1"):
        site = tmp_path / f"site-{version}"
        site.mkdir()
        (site / "index.html").write_text(version)
        versions.add(site, tmp_path, version)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [one["version"] for one in listed] == ["0.10.0", "0.9.1", "0.9.0"]
    assert [one["aliases"] for one in listed] == [["latest"], [], []]
    assert (tmp_path / "latest/index.html").read_text() == "0.10.0"
    assert (tmp_path / "0.9.1/index.html").read_text() == "0.9.1"


@pytest.fixture
def docs(writer: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of docs/ from which the site is made."""
    shutil.copytree("docs", tmp_path / "docs")
    monkeypatch.setattr(writer.pages, "DOCS", tmp_path / "docs")
    return tmp_path / "docs"


def test_the_site_has_each_generated_part_in_place_of_its_marker(writer: SimpleNamespace, docs: Path):
    site = docs.parent / "site"
    (site / "algorithms").mkdir(parents=True)
    (site / "algorithms/gone.md").touch()
    writer.pages.main(site)
    for page, part in (
        ("reference", "## FlowFile\n\n"),
        ("results", "### `flows.parquet`\n\n| column | unit |"),
        ("algorithms/htcp", "](../images/cc-htcp.png)\n\n*One flow on 100 Mbit/s"),
        ("algorithms/slow-start", "### limited\n\n**Limited slow start.** Source: RFC 3742."),
        ("metrics/fairness", "    elephan run two-flows\n"),
        ("kernel-internals", f"\n\n{(docs / 'measured/suite.md').read_text()}\n"),
        ("own-algorithm-c", f"\n{Path('python/elephan/examples/own/scalable.c').read_text()}```\n"),
    ):
        assert part in (site / f"{page}.md").read_text()
    marker = re.compile(r"<!-- [\w-]+ -->$", re.MULTILINE)
    assert not [page for page in site.rglob("*.md") if marker.search(page.read_text())]
    pages = {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    known = {path.relative_to(docs) for path in docs.rglob("*") if path.is_file()}
    kept = {path for path in known if not path.parts[0].startswith("measured") and path.suffix != ".py"}
    assert pages == {path for path in kept if path.name != "template.md"}


def test_what_nobody_has_measured_yet_is_shown_as_that(writer: SimpleNamespace, docs: Path):
    file = docs / "measured.json"
    measured = json.loads(file.read_text())
    del measured["algorithms"]["htcp"], measured["queues"]["pie"], measured["examples"]["stability"]
    file.write_text(json.dumps(measured))
    (docs / "images/cc-htcp.png").unlink()
    pages = {path.relative_to(docs).as_posix(): text for path, text in writer.pages.filled().items()}
    for page, name in (("algorithms/htcp", "htcp"), ("queues/pie", "pie"), ("metrics/stability", "stability")):
        assert f"Not measured yet: `make measured ONLY={name}`." in pages[f"{page}.md"]
    for page in ("algorithms/index", "queues/index", "metrics/fairness"):
        assert "| not measured yet |" in pages[f"{page}.md"]
    assert "cc-htcp.png" not in pages["algorithms/htcp.md"]


def test_every_notebook_is_in_the_site_and_in_its_list():
    navigation, index = Path("mkdocs.yml").read_text(), Path("docs/notebooks/index.md").read_text()
    for page in NOTEBOOKS:
        assert f": notebooks/{page.name}\n" in navigation
        assert f"]({page.name})" in index


def test_a_page_that_is_missing_is_named(writer: SimpleNamespace, docs: Path):
    (docs / "algorithms/bic.md").unlink()
    with pytest.raises(SystemExit, match=r"docs/algorithms/bic\.md: expected the page of `bic`, found none"):
        writer.pages.filled()


@pytest.mark.parametrize(
    ("page", "name", "expected"),
    [
        ("queues/pie", "facts", "docs/queues/pie.md: expected one line that ends with <!-- facts -->, found 0"),
        ("speed", "peers", "docs/measured/peers.md: expected one page with <!-- peers -->, found 0"),
    ],
)
def test_a_marker_that_is_missing_is_named(page: str, name: str, expected: str, writer: SimpleNamespace, docs: Path):
    file = docs / f"{page}.md"
    file.write_text(file.read_text().replace(f" <!-- {name} -->", ""))
    with pytest.raises(SystemExit, match=f"^{re.escape(expected)}$"):
        writer.pages.filled()
