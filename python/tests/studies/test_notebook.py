"""What a notebook shows: figures, tables and progress."""

import math
import re
import struct
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import elephan
from elephan.api.metrics import METRICS
from elephan.api.own import MetricError
from elephan.base.errors import FailedError
from elephan.base.notebook import watched
from elephan.base.table import Head, Table
from elephan.report.read import load_comparison, read
from elephan.studies.statistics import Estimate


@pytest.fixture(scope="module")
def run() -> elephan.Run:
    flows = [elephan.flow("htcp"), elephan.flow("reno", start="1 s")]
    return elephan.run(elephan.dumbbell(rate="20 Mbit/s", rtt="20 ms", buffer="50% bdp", flows=flows, duration="5 s"))


def test_a_figure_shows_itself_without_a_backend(run: elephan.Run):
    picture, shown = run.plot()._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">2I", picture[16:24]) == pytest.approx((2 * shown["width"], 2 * shown["height"]), abs=1)


def test_each_object_is_told_on_one_line(run: elephan.Run):
    objects = [
        run,
        run.scenario,
        run.summary,
        *run.summary.flows,
        *run.summary.links,
        *elephan.algorithms(),
        METRICS[0],
    ]
    for one in objects:
        line = repr(one)
        assert line.startswith(f"<{type(one).__name__} ")
        assert len(line) < 300
        assert "\n" not in line
    assert "htcp" in repr(run)
    assert "20 Mbit/s" in repr(run.scenario)


def test_each_object_shows_itself_as_html(run: elephan.Run, comparison: elephan.Comparison, grid: elephan.Sweep):
    for one in (run, run.scenario, comparison, grid):
        html = one._repr_html_()
        assert "<table>" in html
        assert "<img" in html or "<svg" in html
        assert len(html) < 100_000


def test_a_change_of_a_link_is_a_line_in_html(run: elephan.Run):
    change = {"at": "1 s", "link": "bottleneck", "rate": "10 Mbit/s"}
    changes = elephan.Scenario({**run.scenario.document, "event": [change]})
    assert "stroke-dasharray" in changes._repr_html_()
    assert "stroke-dasharray" not in run.scenario._repr_html_()


def test_a_marked_cell_is_bold_in_html():
    table = Table("", [Head("a"), Head("b")], [[1.0, 2.0]], marked=frozenset({(0, 1)}), mark="the best")
    html = table.to_html()
    assert re.findall("<strong>(.*?)</strong>", html) == ["2"]
    assert "bold: the best" in html


def test_names_in_html_are_text():
    flows = [elephan.flow("reno", label="<script>alert(1)</script>")]
    name = '"><img src=x onerror=alert(1)>'
    scenario = elephan.dumbbell(name=name, rate="20 Mbit/s", rtt="20 ms", flows=flows, duration="2 s")
    for html in (scenario._repr_html_(), elephan.run(scenario)._repr_html_()):
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        assert "<img src=x" not in html


def delay(run: elephan.Run) -> float:
    """Largest delay of a sample."""
    return run.flows["srtt_s"].max()


@elephan.metric(unit="segments", digits=1, better="higher", within=(0, math.inf))
def least_window(run: elephan.Run) -> float | None:
    return run.flows["cwnd_segments"].min()


@pytest.fixture(scope="module")
def comparison() -> elephan.Comparison:
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "6 s", "start_within": "2 s"}
    return elephan.compare(cc=["reno", "htcp"], repeat=3, **path, metrics=[delay, least_window])


def test_metrics_of_the_user_stand_beside_ours(comparison: elephan.Comparison):
    runs = comparison.runs["htcp"]
    expected = Estimate.of([one.flows["srtt_s"].max() for one in runs])
    assert comparison.estimates()["htcp"]["delay"] == expected
    frame = comparison.to_polars()
    assert frame.filter(cc="htcp")["delay"].to_list() == [one.flows["srtt_s"].max() for one in runs]
    assert frame["goodput_bit_s"].to_list()[:3] == [one.summary.goodput_bit_s for one in comparison.runs["reno"]]
    heads = [head.line for head in comparison.table().head]
    assert heads[-2:] == ["delay", "least_window (segments)"]
    titles = [axes.get_title(loc="left") for axes in comparison.plot("metrics").axes if axes.get_visible()]
    assert titles[-2:] == ["delay", "least_window (segments)"]
    assert least_window(runs[0]) == runs[0].flows["cwnd_segments"].min()


def test_metrics_of_the_user_are_kept_with_the_comparison(comparison: elephan.Comparison, tmp_path: Path):
    comparison.save(tmp_path / "kept")
    again = load_comparison(tmp_path / "kept")
    assert again.table() == comparison.table()
    assert again.to_polars("estimates").equals(comparison.to_polars("estimates"))
    assert read(tmp_path / "kept").tables[0].head[-1].line == "least_window (segments)"


def test_a_comparison_has_a_row_for_each_flow_and_for_each_estimate(comparison: elephan.Comparison):
    flows = comparison.to_polars("flows")
    assert flows.height == 2 * 3 * 2
    assert flows["flow"].to_list()[:2] == [0, 1]
    assert flows["goodput_bit_s"][0] == comparison.runs["reno"][0].summary.flows[0].goodput_bit_s
    estimates = comparison.to_polars("estimates")
    assert estimates.filter(cc="reno", metric="least_window")["unit"].to_list() == ["segments"]


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("goodput", "metrics: expected functions of a run, found 'goodput'"),
        (METRICS[0], "expected functions of a run"),
        (replace(METRICS[0], reading=delay), "expected a name that no other metric has, found 'goodput'"),
    ],
)
def test_other_metrics_are_refused(metric: object, said: str):
    with pytest.raises(elephan.ScenarioError, match=re.escape(said)):
        elephan.compare(cc=["reno"], metrics=[metric])


def test_a_metric_that_fails_names_itself_and_the_run():
    def broken(run: elephan.Run) -> float:
        return 1 / (run.scenario.document["seed"] - 8)

    def words(_: elephan.Run) -> str:
        return "much"

    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "2 s", "flows": 1}
    with pytest.raises(MetricError, match=r"metric broken: reno .*, seed 8: ZeroDivisionError"):
        elephan.compare(cc=["reno"], seed=7, repeat=2, **path, metrics=[broken])
    with pytest.raises(MetricError, match=r"metric words: .* expected a number or None, found 'much'"):
        elephan.compare(cc=["reno"], repeat=1, **path, metrics=[words])


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> elephan.Sweep:
    flows = [elephan.flow("reno"), elephan.flow("reno", start={"uniform": ["0 s", "1 s"]})]
    keys = {"flow.cc": ["reno", "htcp"], "path.rtt": ["10 ms", "500 ms"], "repeat": 2}
    scenario = elephan.dumbbell(rate="5 Mbit/s", rtt="20 ms", flows=flows, duration="4 s", sweep=keys)
    return elephan.sweep(scenario, tmp_path_factory.mktemp("sweep") / "grid").run()


def test_a_sweep_is_drawn_over_its_first_key_of_numbers(grid: elephan.Sweep):
    figure = grid.plot("fairness")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "round-trip time (ms)"
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["reno", "htcp"]
    line = axes.get_lines()[0]
    means = grid.to_polars().filter(cc="reno").group_by("rtt", maintain_order=True).agg(pl.col("fairness").mean())
    assert line.get_ydata().tolist() == pytest.approx(means["fairness"].to_list())
    assert grid.plot("fairness", over="cc").axes[0].get_xlabel() == "algorithm"
    with pytest.raises(elephan.ScenarioError, match="found 'colour'"):
        grid.plot("colour")


def test_a_sweep_has_a_row_for_each_flow(grid: elephan.Sweep):
    flows, runs = grid.to_polars("flows"), grid.to_polars()
    assert flows.height == 2 * runs.height
    assert flows.group_by("run", maintain_order=True).agg(pl.col("goodput_bit_s").sum())["goodput_bit_s"].to_list() == (
        pytest.approx(runs["goodput"].to_list())
    )


def test_without_pandas_its_absence_is_said_in_one_line(
    comparison: elephan.Comparison, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("elephan.base.frames.find_spec", lambda _: None)
    with pytest.raises(FailedError, match="to_pandas: expected pandas to be installed"):
        comparison.to_pandas()


class Cells:
    """Stands for IPython's display in a notebook: the texts that were shown, in order."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, data: dict[str, str], **_: object) -> "Cells":
        self.shown.append(data["text/html"])
        return self

    def update(self, data: dict[str, str], **_: object) -> None:
        self.shown.append(data["text/html"])


def test_a_notebook_shows_a_bar_while_a_run_lasts(monkeypatch: pytest.MonkeyPatch):
    cells = Cells()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=True)))
    monkeypatch.setitem(sys.modules, "IPython.display", cells)
    clock = iter([0.0, 0.5, 1.0, 1.1, 1.5])
    monkeypatch.setattr("elephan.base.notebook.time.monotonic", lambda: next(clock))
    with watched("<b>run") as told:
        assert told is not None
        for share in (0.1, 0.25, 0.3, 0.5):
            told(share)
    # Nothing in the first second and in quick succession; gone at the end.
    assert [re.sub("<[^>]*>", "", text).strip() for text in cells.shown] == [
        "&lt;b&gt;run: 25%, 3 s left",
        "&lt;b&gt;run: 50%, 2 s left",
        "",
    ]


def test_no_bar_where_nobody_watches_or_the_caller_does(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    with watched("run") as told:
        assert told is None
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with watched("run", print) as told:
        assert told is print
