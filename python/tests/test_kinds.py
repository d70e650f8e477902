"""The kinds of results: each folder that commands write is recognised, opened, and known file by file."""

import ast
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name

import pytest
from command_line import call
from stacks.test_host import made_up
from stacks.test_image import entry
from sweep_scenarios import small

import elephan
from elephan.api.pictures.kinds import KINDS as PICTURES
from elephan.api.run import TABLES, Run
from elephan.base import folders, kinds
from elephan.base.kinds import RESULTS, Kind, documented, kind_of
from elephan.paths import estimates, host
from elephan.paths.scenario import write
from elephan.report import write as report
from elephan.report.read import read
from elephan.studies.side_by_side import Pair
from elephan.ui.library import Library

PACKAGE = Path(elephan.__file__).parent
# Files that are not in results folders: sources, caches, documentation, templates, and the parts of a sweep or a reproduction.
ELSEWHERE = {
    *(
        "source.json",
        "iperf3.json",
        "costs.csv",
        "figures.csv",
        "claims.csv",
        "README.md",
        "template.md",
        "template.toml",
    ),
    *(
        "index.parquet",
        "superseded.parquet",
        "overview.svg",
        "overview.png",
        "index.html",
        "trace.pcap",
        "elephan.json",
    ),
}
# Names of files in the text of the package.
FILE = re.compile(r"\w[\w-]*\.(json|toml|parquet|png|csv|md|svg|html|pdf|pcap)")


def a_run(**settings: object) -> Run:
    given = {"rate": "5 Mbit/s", "rtt": "20 ms", "flows": [elephan.flow("reno")], "duration": "2 s"}
    return elephan.run(elephan.dumbbell(**{**given, **settings}))


def of_run(folder: Path) -> None:
    a_run(name="mine", trace={"events": True}).save(folder)
    (folder / "bottleneck.pcap").write_bytes(b"")


def of_comparison(folder: Path) -> None:
    path = {"rate": "5 Mbit/s", "rtt": "20 ms"}
    elephan.compare(cc=["reno", "htcp"], **path, duration="4 s", repeat=1, start_within="1 s").save(folder)


def of_difference(folder: Path) -> None:
    sim = Run.load(a_run().save(folder.with_name("sim")))
    quality = {"valid": True, "invalid_because": [], "lateness_p99_s": 0.0, "lateness_max_s": 0.0}
    provenance = {**sim.provenance, "engine": "kernel", "kernel": "6.1.0", "quality": quality}
    kernel = Run(sim.scenario, sim.summary, sim.links, sim.labels, provenance, folder=sim.folder)
    pair = Pair("mine", "kernel", sim, (kernel,))
    with folders.new_folder(folder) as place:
        pair.write_into(place)
    pair.draw(folder)
    shutil.rmtree(folder.with_name("sim"))


def of_sweep(folder: Path) -> None:
    elephan.sweep(small(), folder, workers=1).run()


def of_path(folder: Path) -> None:
    folder.mkdir()
    rate, rtt = estimates.Value(unit="bit/s", value=1e7), estimates.Value(unit="s", value=0.02)
    buffer = estimates.Value(unit="B", value=3e4)
    made = estimates.Estimates(made_by="fit", source="mine", rate_bit_s=rate, base_rtt_s=rtt, buffer_bytes=buffer)
    write(folder, made)
    a_run().save(folder / "transfer")


def of_host(folder: Path) -> None:
    folder.mkdir()
    made = made_up()
    (folder / "host.json").write_text(json.dumps(host.document(made, 2, None)))
    (folder / "host.toml").write_text(host.snippet(made))


def of_image(folder: Path) -> None:
    entry(folder.parent / "images", "6.1.1", guest="0" * 64).rename(folder)


def of_check(folder: Path) -> None:
    file = folder.parent.parent / "x.json"
    one = {"says": "it is full", "metric": "utilisation", "at_least": 0.9}
    file.write_text(json.dumps({**a_run().scenario.document, "expect": [one]}))
    assert call("check", file, "--out", folder).returncode == 0


def of_reproduction(folder: Path) -> None:
    (folder / "full" / "li2006").mkdir(parents=True)
    found = {"name": "li2006/table", "title": "mine", "quick": False, "comparisons": [], "claims": [], "notes": []}
    (folder / "full" / "li2006" / "table.json").write_text(json.dumps(found))


WRITERS: dict[str, Callable[[Path], None]] = {
    name.removeprefix("of_"): made for name, made in list(globals().items()) if name.startswith("of_")
}


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.name)
def test_a_folder_of_each_kind_is_recognised_opened_and_replaced(kind: Kind, tmp_path: Path):
    folder = tmp_path / "results" / "mine"
    folder.parent.mkdir()
    WRITERS[kind.name](folder)
    assert kind_of(folder) is kind
    (listed,) = Library(folder.parent).all()
    assert (listed["kind"], listed["problem"]) == (kind.name, "")
    assert listed["title"] == ("small" if kind is kinds.SWEEP else "mine")
    if kind.report:
        assert read(folder).kind == kind.name
    else:
        with pytest.raises(elephan.ScenarioError, match=f"found {kind.what}"):
            read(folder)
    if documented(folder) is None or not kind.replaced:
        with pytest.raises(FileExistsError, match="found"):
            folders.check_new(folder, force=True)
        return
    for name in (*(f"{picture}.png" for picture in PICTURES), *(f"report.{form}" for form in report.FORMATS)):
        (folder / name).write_text("")
    folders.check_new(folder, force=True)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"notes\.txt in it, which Elephan did not write"):
        folders.check_new(folder, force=True)


def test_every_kind_is_in_the_list_and_what_reads_it_exists():
    assert [kind for kind in vars(kinds).values() if isinstance(kind, Kind)] == list(RESULTS)
    assert all(callable(resolve_name(name)) for kind in RESULTS for name in (kind.report, kind.recognised) if name)


def test_every_file_that_the_package_names_is_declared():
    written = [kind.written({"links": []}) for kind in RESULTS]
    texts = {
        text.value: path.name
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(PACKAGE / "examples")
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and FILE.fullmatch(text.value)
    }
    assert {"summary.json", "path.toml", "table.csv"} <= texts.keys()
    unknown = {name for name in texts if not any(names.fullmatch(name) for names in written)}
    assert unknown == ELSEWHERE
    assert all(kinds.RUN.written({"links": []}).fullmatch(f"{table}.parquet") for table in TABLES)


def test_a_host_that_was_written_has_the_same_tables(tmp_path: Path):
    of_host(tmp_path / "host")
    content = read(tmp_path / "host")
    assert [table.rows for table in content.tables] == [table.rows for table in host.tables(made_up())]
    assert content.subtitle == made_up().conclusion


def test_a_comparison_of_engines_has_both_in_its_table(tmp_path: Path):
    of_difference(tmp_path / "mine")
    content = read(tmp_path / "mine")
    assert content.tables[0].rows[0][0] == "mine"
    assert "(+0.0 %)" in str(content.tables[0].rows[0][1])
    assert [row[0] for row in content.tables[1].rows] == ["sim", "kernel"]


@pytest.mark.parametrize("form", ["png", "svg"])
def test_results_without_figures_make_no_picture(form: str, tmp_path: Path):
    of_reproduction(tmp_path / "mine")
    out = tmp_path / f"mine.{form}"
    with pytest.raises(elephan.ScenarioError, match=f"mine.{form}: expected results with figures, found none"):
        report.write(read(tmp_path / "mine"), out, form)
    assert not out.exists()
