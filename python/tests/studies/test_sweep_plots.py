"""Pictures of a sweep: what they show, and that they fit into the column of a paper."""

from itertools import combinations
from pathlib import Path
from unittest import mock

import pytest
from command_line import call
from matplotlib.text import Text
from sweep_scenarios import small

import elephan
from elephan.base.plots import Figure
from elephan.studies.sweeps import plots


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
    assert fits(grid.plot("fairness-map", width=width, title=title))


def test_a_metric_over_a_metric_has_both_intervals(grid: elephan.Sweep):
    (axes,) = grid.plot("goodput", over="queueing").axes
    assert axes.get_xlabel() == "queueing (ms)"
    assert all(bars.has_xerr and bars.has_yerr for bars in axes.containers)


def test_an_axis_has_the_unit_of_all_its_values():
    axis, places = plots._axis("path.buffer", ["25% bdp", "100% bdp"])
    assert (axis.label, axis.ticks, places["25% bdp"]) == ("buffer (% bdp)", ((25, "25"), (100, "100")), 25)
    axis, _ = plots._axis("path.buffer", ["10 packets", "1 MB"])
    assert (axis.label, axis.ticks) == ("buffer", ((10, "10 packets"), (1e6, "1 MB")))


def test_a_key_in_no_option_is_told(grid: elephan.Sweep):
    with pytest.raises(elephan.ScenarioError, match=r"^flow\.cc: expected it in over, by or where"):
        grid.plot("goodput", over="rtt", by=[])
    (axes,) = grid.plot("goodput", over="rtt", by=[], where={"rtt": "0.01 s", "cc": "reno"}).axes
    assert len(axes.containers) == 1


def test_the_command_writes_fonts_that_journals_accept(grid: elephan.Sweep, tmp_path: Path):
    options = ("--over", "rtt", "--width", "88mm", "--no-title", "--out", tmp_path / "f.pdf")
    assert call("plot", "fairness", grid.folder, *options).returncode == 0
    grid.plot("fairness").savefig(tmp_path / "g.pdf")
    for file in ("f.pdf", "g.pdf"):
        assert b"/Type3" not in (tmp_path / file).read_bytes().replace(b" ", b"")
