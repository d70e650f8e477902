"""Pictures of a sweep: what they show, and that they fit into the column of a paper."""

import json
import re
import shutil
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from command_line import call
from matplotlib.text import Text
from sweep_scenarios import small

import elephan
from elephan.api.metrics import METRICS
from elephan.api.pictures import draw
from elephan.api.pictures.data import Cells, LackingError, Runs
from elephan.base.errors import FailedError
from elephan.base.plots import Figure
from elephan.report.read import read
from elephan.studies.sweeps import plots
from elephan.studies.sweeps.tables import Selection


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> elephan.Sweep:
    made = elephan.sweep(small(sweep__repeat="2"), tmp_path_factory.mktemp("grid") / "out")
    made.run()
    return made


def fits(figure: Figure) -> bool:
    """Whether all texts are within the figure, and none overlaps another."""
    texts: list[Text] = []
    # Labels of ticks beyond the axes are there, and not drawn.
    with mock.patch.object(Text, "draw", lambda text, _: texts.append(text)):
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts if text.get_visible() and text.get_text()]
    inside = all(figure.bbox.count_contains(box.get_points()) == 2 for box in boxes)
    return inside and not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize("width", [3.3, 3.5, 7.16])
@pytest.mark.parametrize("title", [True, False])
def test_texts_fit_at_any_width(width: float, title: bool, grid: elephan.Sweep):
    figure = grid.plot("fairness", over="path.rtt", by="cc", width=width, title=title)
    assert figure.get_figwidth() == width
    assert fits(figure)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("round-trip time (ms)", "fairness (least/most)")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["10", "20", "40"]
    lines = [bars.lines[0] for bars in axes.containers]
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 2
    assert fits(grid.plot("fairness", over=["rtt", "cc"], width=width, title=title))
    assert fits(grid.plot("overhead", over="cc", by="rtt", width=width, title=title))
    assert fits(grid.plot("utilisation", cdf=True, width=width, title=title))


def test_a_map_has_the_means_of_each_pair(grid: elephan.Sweep):
    figure = grid.plot("utilisation", over=["rtt", "cc"])
    axes, bar = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == (
        *("round-trip time (ms)", "algorithm"),
        "utilisation (%)",
    )
    runs = grid.to_polars()
    means = {
        (column, row): runs.filter(rtt=f"{column} ms", cc=row)["utilisation"].mean() * 100
        for column, row in product(["10", "20", "40"], ["reno", "htcp"])
    }
    places = {
        (column.get_text(), row.get_text()): value
        for row, values in zip(axes.get_yticklabels(), axes.collections[0].get_array().tolist(), strict=True)
        for column, value in zip(axes.get_xticklabels(), values, strict=True)
    }
    assert places == pytest.approx(means)
    # Words stand from the top, numbers ascend.
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts] == [f"{value:.0f}" for value in places.values()]
    (panels, *_) = grid.plot("utilisation", over=["cc", "rtt"], where={"cc": "reno"}).axes
    assert [text.get_text() for text in panels.get_yticklabels()] == ["40", "20", "10"]


def test_numbers_are_left_out_of_cells_that_are_too_small():
    def texts(rows: int, columns: int) -> int:
        values = [[k + 0.123 for k in range(columns)] for _ in range(rows)]
        names = [[str(k) for k in range(count)] for count in (columns, rows)]
        cells = Cells("map", "map", "x", names[0], "y", names[1], values, "z")
        figure = draw.figure([("", cells)], "", draw.COLUMN)
        assert fits(figure)
        return len(figure.axes[0].texts)

    assert (texts(3, 8), texts(3, 40)) == (24, 0)


def test_a_third_key_has_a_map_for_each_value(tmp_path: Path):
    keys = {"path.rtt": ["10 ms", "20 ms"], "path.buffer": ["10 packets", "20 packets"], "flow.cc": ["reno", "htcp"]}
    scenario = elephan.dumbbell(rate="5 Mbit/s", rtt="20 ms", flows=[elephan.flow("reno")], duration="2 s", sweep=keys)
    swept = elephan.sweep(scenario, tmp_path / "out").run()
    *panels, _ = swept.plot("goodput", over=["rtt", "buffer"]).axes
    assert [axes.get_title(loc="left") for axes in panels] == ["algorithm reno", "algorithm htcp"]
    assert len({axes.collections[0].get_clim() for axes in panels}) == 1
    assert all(axes.yaxis_inverted() for axes in panels)
    with pytest.raises(elephan.ScenarioError, match=r"^flow\.cc: expected it in over, by or where"):
        swept.plot("goodput", over=["rtt", "buffer"], by=[])


def test_a_distribution_has_all_runs_of_a_setting(grid: elephan.Sweep):
    (axes,) = grid.plot("goodput", by="cc", cdf=True).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("goodput (Mbit/s)", "share of runs")
    assert [line.get_label() for line in axes.lines] == ["reno", "htcp"]
    assert len({line.get_linestyle() for line in axes.lines}) == 2
    for line in axes.lines:
        runs = np.sort(grid.to_polars().filter(cc=line.get_label())["goodput"]) / 1e6
        x, y = map(np.asarray, line.get_data())
        # Up at each run, level between them: the share of runs that are at most this.
        assert x.tolist() == pytest.approx(np.repeat(runs, 2))
        assert y.tolist() == pytest.approx([0, *np.repeat([1, 2, 3, 4, 5], 2) / 6, 1])
    assert len(grid.plot("goodput", cdf=True).axes[0].lines) == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"over": ["rtt", "rtt"]}, "over: expected a key, a metric, or two keys of a map, found rtt, rtt"),
        ({"over": ["rtt", "goodput"]}, "over: expected a key, a metric, or two keys of a map, found rtt, goodput"),
        (
            {"over": ["rtt", "cc", "rate"]},
            "over: expected a key, a metric, or two keys of a map, found rtt, cc, rate",
        ),
        ({"over": ["cc", "rtt"], "by": "rtt"}, "by: expected keys that are not in over, found path.rtt"),
        ({"over": "rtt", "cdf": True}, "cdf: expected the metric alone, found rtt as well"),
    ],
)
def test_what_is_no_picture_is_told(options: dict[str, Any], said: str, grid: elephan.Sweep):
    with pytest.raises(elephan.ScenarioError, match=f"^{re.escape(said)}$"):
        grid.plot("fairness", **options)


def test_a_comparison_is_drawn_as_a_sweep_over_its_algorithms(tmp_path: Path):
    path = {"rate": "5 Mbit/s", "rtt": "20 ms", "duration": "4 s"}
    compared = elephan.compare(cc=["reno", "htcp"], **path, repeat=2, start_within="1 s")
    (axes,) = compared.plot("queueing", over="utilisation").axes
    assert [bars.get_label() for bars in axes.containers] == ["reno", "htcp"]
    estimates = compared.to_polars("estimates").filter(metric="queueing")["mean"].to_list()
    assert [bars.lines[0].get_ydata()[0] for bars in axes.containers] == pytest.approx(estimates)
    (axes,) = compared.plot("goodput", cdf=True, where={"cc": "htcp"}).axes
    assert len(axes.lines) == 1
    compared.save(tmp_path / "out")
    out = tmp_path / "f.svg"
    assert call("plot", "loss", tmp_path / "out", "--over", "cc", "--out", out).returncode == 0
    assert out.is_file()


def test_a_metric_that_no_run_has_is_told():
    runs = Runs("", ["cc"], [["reno"], ["htcp"]], [[1.0] + [None] * (len(METRICS) - 1)] * 2)
    chosen = Selection.of_runs(runs)
    assert len(plots.pictures(chosen, METRICS[0].column)) == 1
    with pytest.raises(LackingError, match=r"^fairness: expected runs in which it is defined, found none$"):
        plots.pictures(chosen, "fairness")


def test_the_page_has_the_names_of_the_picture(grid: elephan.Sweep):
    runs = json.loads(read(grid.folder).to_json())["runs"]
    rtt, cc, _ = runs["keys"]
    (axes,) = grid.plot("fairness").axes
    assert (rtt["label"], rtt["log"]) == (axes.get_xlabel(), axes.get_xscale() == "log")
    assert list(rtt["texts"].values()) == [tick.get_text() for tick in axes.get_xticklabels()]
    assert sorted({row[0] for row in runs["axis"]}) == axes.get_xticks().tolist()
    assert (cc["label"], cc["numeric"]) == ("algorithm", False)
    (fairness,) = (metric for metric in runs["metrics"] if metric["name"] == "fairness")
    assert fairness["label"] == axes.get_ylabel()


def test_a_metric_over_a_metric_has_both_intervals(grid: elephan.Sweep):
    (axes,) = grid.plot("goodput", over="queueing").axes
    assert axes.get_xlabel() == "queueing (ms)"
    assert all(bars.has_xerr and bars.has_yerr for bars in axes.containers)


def test_an_axis_has_the_unit_of_all_its_values():
    axis, places, _ = plots.axis("path.buffer", ["25% bdp", "100% bdp"])
    assert (axis.label, axis.ticks, places["25% bdp"]) == ("buffer (% bdp)", ((25, "25"), (100, "100")), 25)
    axis, *_ = plots.axis("path.buffer", ["10 packets", "1 MB"])
    assert (axis.label, axis.ticks) == ("buffer", ((10, "10 packets"), (1e6, "1 MB")))


def test_a_key_in_no_option_is_told(grid: elephan.Sweep):
    with pytest.raises(elephan.ScenarioError, match=r"^flow\.cc: expected it in over, by or where"):
        grid.plot("goodput", over="rtt", by=[])
    (axes,) = grid.plot("goodput", over="rtt", by=[], where={"rtt": "0.01 s", "cc": "reno"}).axes
    assert len(axes.containers) == 1


# Answers as LaTeX does when it is asked for the size of a text; it knows no Chinese.
LATEX = rf"""#!{sys.executable}
import sys
for line in sys.stdin:
    if "pgf_backend_query_start" in line:
        print("*pgf_backend_query_start\n*", end="", flush=True)
    elif "sbox0" in line and "\u6d41" in line:
        print("! LaTeX Error: Unicode character")
        break
    elif "sbox0" in line:
        print("20.0pt,6.0pt,1.0pt\n\n*", end="", flush=True)
"""
NO_PACKAGE = """#!/bin/sh
while read -r line; do :; done
echo "! LaTeX Error: File 'underscore.sty' not found."
exit 1
"""
APT = "to be installed (apt-get install texlive-latex-extra), found"


@pytest.mark.parametrize(
    ("name", "program", "said"),
    [
        ("none", "", f"pgf: expected pdflatex, xelatex or lualatex {APT} none"),
        (
            "pdflatex",
            NO_PACKAGE,
            f"pgf: expected LaTeX's packages {APT}: ! LaTeX Error: File 'underscore.sty' not found.",
        ),
        ("xelatex", LATEX, ""),
    ],
    ids=["none", "incomplete", "complete"],
)
def test_pgf_needs_latex(
    name: str, program: str, said: str, grid: elephan.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "bin").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "bin" / name).write_text(program)
    (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    out = tmp_path / "out" / "f.pgf"
    done = call("plot", "fairness", grid.folder, "--over", "rtt,cc", "--out", out)
    assert done.stderr.strip() == said
    # A map, too, is one file.
    assert [path.name for path in out.parent.iterdir()] == ([] if said else ["f.pgf"])
    if said:
        return
    figure = Figure()
    figure.suptitle("A&B_#1")
    figure.savefig(out)
    assert r"A\&B\_\#1" in out.read_text()
    figure.suptitle("\u6d41")
    with pytest.raises(FailedError, match=r"^pgf: expected texts that LaTeX can set, found: ! LaTeX Error: Unicode"):
        figure.savefig(out)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex: expected it to be installed, found none")
def test_a_paper_includes_pgf(grid: elephan.Sweep, tmp_path: Path):
    for number, options in enumerate(({"over": "rtt"}, {"over": ["rtt", "cc"]}, {"cdf": True})):
        figure = grid.plot("fairness", width=3.5, **options)
        figure.suptitle(r"A&B_$5 100% #{1} \x~^")
        figure.savefig(tmp_path / f"{number}.pgf")
    included = "".join(rf"\input{{{number}.pgf}}" for number in range(3))
    paper = rf"\documentclass{{article}}\usepackage{{lmodern,pgf}}\begin{{document}}{included}\end{{document}}"
    (tmp_path / "paper.tex").write_text(paper)
    subprocess.run(["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "paper.pdf").is_file()


def test_the_command_writes_fonts_that_journals_accept(grid: elephan.Sweep, tmp_path: Path):
    options = ("--over", "rtt", "--width", "88mm", "--no-title", "--out", tmp_path / "f.pdf")
    assert call("plot", "fairness", grid.folder, *options).returncode == 0
    grid.plot("fairness").savefig(tmp_path / "g.pdf")
    for file in ("f.pdf", "g.pdf"):
        assert b"/Type3" not in (tmp_path / file).read_bytes().replace(b" ", b"")
