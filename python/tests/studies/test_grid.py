"""The grid of cells on both engines: verdicts, and what the folders of two sweeps give."""

import pytest
from typer.testing import CliRunner

from elephan._core import ScenarioError
from elephan.api.scenario import dumbbell, flow
from elephan.cli import app
from elephan.studies import grid
from elephan.studies.side_by_side import EPOCH, RESENT, WINDOW
from elephan.studies.sweeps import loop


def cell(quantity, sim, kernel):
    values = {quantity: {"sim": dict(enumerate(sim)), "kernel": dict(enumerate(kernel))}}
    return grid.Cell("one", "20 ms", "reno", values)


@pytest.mark.parametrize(
    ("sim", "kernel", "verdict"),
    [
        # Equal in all seeds: an interval without width, on either side of the bound of 2 %.
        ([102.0] * 3, [100.0] * 3, "agrees"),
        ([102.1] * 3, [100.0] * 3, "differs"),
        ([97.9] * 3, [100.0] * 3, "differs"),
        # The differences of pairs have no spread, however different the seeds are.
        ([51.0, 101.0, 151.0], [50.0, 100.0, 150.0], "agrees"),
        # Student's interval of -1, 0 and 1 is ±2.48; around 10 it is wholly beyond 2.
        ([99.0, 100.0, 101.0], [100.0] * 3, "undecided"),
        ([109.0, 110.0, 111.0], [100.0] * 3, "differs"),
        ([99.9, 100.0, 100.1], [100.0] * 3, "agrees"),
    ],
)
def test_a_verdict_is_that_of_the_interval(sim, kernel, verdict):
    assert cell(grid.TOTAL, sim, kernel).verdict(grid.TOTAL) == verdict


def test_each_quantity_has_its_bound():
    apart = {grid.TOTAL: 2, grid.COMPLETION: 2, WINDOW: 5, EPOCH: 10, RESENT: 25}
    for quantity, percent in apart.items():
        assert cell(quantity, [100.0 + percent - 0.1] * 2, [100.0] * 2).verdict(quantity) == "agrees"
        assert cell(quantity, [100.0 + percent + 0.1] * 2, [100.0] * 2).verdict(quantity) == "differs"


def test_a_figure_that_a_run_lacks_is_not_zero():
    for sim, kernel in (([None, None], [1.0, 1.0]), ([1.0, None], [1.0, 1.0]), ([1.0, 1.0], [None, 1.0]), ([], [])):
        found = cell(EPOCH, sim, kernel)
        assert found.verdict(EPOCH) is None
        assert found.text == "no verdict"
    # One seed has no interval.
    assert cell(grid.TOTAL, [100.0], [100.0]).text == "no verdict"
    assert cell(RESENT, [1.0, 1.0], [0.0, 0.0]).verdict(RESENT) is None


def test_a_cell_says_what_differs_and_what_is_open():
    assert cell(grid.TOTAL, [90.0] * 3, [100.0] * 3).text == "goodput -10.0 %!"
    assert cell(WINDOW, [90.0, 100.0, 110.0], [100.0] * 3).text == "mean cwnd +0.0 ± 24.8 %?"


def test_of_several_flows_the_share_of_the_first_is_told():
    assert cell(grid.SHARE, [50.0, 60.0], [50.0, 50.0]).share == "55.0 / 50.0 (5.0 ± 63.5)"
    assert cell(grid.SHARE, [None], [None]).share == ""


CELLS = {
    "flow.cc": ["reno", "linux:scalable"],
    "repeat": 2,
    "zip": {"name": ["short", "long"], "path.rtt": ["10 ms", "20 ms"]},
}


def small(**keys):
    flows = [flow("reno", start={"uniform": ["0 s", "100 ms"]})]
    path = {"rate": "5 Mbit/s", "rtt": "20 ms", "buffer": "200% bdp", "duration": "6 s"}
    tcp = {"profile": "linux-6"}
    return dumbbell(**{**path, "flows": flows, "name": "small", "engine": "kernel", "tcp": tcp, "sweep": CELLS, **keys})


def test_the_simulator_runs_its_algorithms_at_each_point():
    found = grid.planned(small())
    assert found["sim"].document["sweep"]["flow.cc"] == ["reno", {"name": "scalable", "form": "linux"}]
    assert found["kernel"].document["sweep"]["flow.cc"] == ["reno", "linux:scalable"]
    assert [found[engine].document["engine"] for engine in grid.ENGINES] == ["sim", "kernel"]
    points = [{"flow.0.cc": "linux:scalable"}, {"flow.0.cc": "reno"}]
    found = grid.planned(small(sweep={"points": points}))["sim"].document["sweep"]["points"]
    assert found == [{"flow.0.cc": {"name": "scalable", "form": "linux"}}, {"flow.0.cc": "reno"}]


def test_an_algorithm_that_the_simulator_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(grid.side_by_side.source, "current", lambda: None)
    with pytest.raises(ScenarioError, match="small: expected algorithms that the simulator has"):
        grid.planned(small(sweep={"flow.cc": ["reno", "linux:lp"]}))


@pytest.fixture
def run_folders(tmp_path):
    """The sweep of the simulator, and in place of the kernel's the same with the half of the rate."""
    scenario = small()
    simulated = grid.planned(scenario)["sim"]
    loop.sweep(simulated, tmp_path / "sim").run(lambda _: None)
    loop.sweep(simulated.with_settings({"path.rate": "2.5 Mbit/s"}), tmp_path / "kernel").run(lambda _: None)
    return scenario, tmp_path


def test_cells_are_read_from_two_sweeps(run_folders):
    scenario, folder = run_folders
    cells = grid.read(scenario, folder)
    assert [(one.cc, one.place) for one in cells] == [
        ("reno", "short"),
        ("reno", "long"),
        ("linux:scalable", "short"),
        ("linux:scalable", "long"),
    ]
    for one in cells:
        assert one.error is None
        assert one.apart(grid.TOTAL).mean == pytest.approx(1, abs=0.1)
        assert one.verdict(grid.TOTAL) == "differs"
    counts, of_file = grid.tables(cells)
    assert counts.rows[0][:4] == ["small", "4", "0", "0 / 4 / 0"]
    assert [row[0] for row in of_file.rows] == ["reno", "linux:scalable"]
    found = [one for one in grid.records(cells) if one["quantity"] == "goodput"]
    assert len(found) == 4
    assert all(one["verdict"] == "differs" and one["low"] <= one["apart"] <= one["high"] for one in found)


def test_runs_are_kept_whatever_code_made_them(run_folders, monkeypatch):
    scenario, folder = run_folders
    simulated = grid.planned(scenario)["sim"]
    monkeypatch.setattr(loop, "code_version", lambda: "other")
    assert "0 of 8 runs done" in repr(loop.sweep(simulated, folder / "sim"))
    kept = loop.sweep(simulated, folder / "sim", kept=True)
    kept.run(lambda _: None)
    assert (kept.done, kept.reused) == (8, 8)
    # Of another scenario there are none.
    assert "0 of 8 runs done" in repr(
        loop.sweep(simulated.with_settings({"duration": "7 s"}), folder / "sim", kept=True)
    )


def test_a_run_that_failed_is_a_failed_cell():
    found = grid.Cell("one", "20 ms", "reno", {}, "the guest ended")
    assert found.text == "failed"
    assert [found.verdict(quantity) for quantity in found.quantities] == [None] * 4


def test_the_command_refuses_what_it_cannot_compare(tmp_path):
    file, single = tmp_path / "sweep.toml", tmp_path / "single.toml"
    text = 'duration = "1 s"\npath = { rate = "9 Mbit/s", rtt = "20 ms" }\nflow = [{ cc = "reno" }]\n'
    single.write_text(f'name = "single"\n{text}')
    file.write_text(f'name = "swept"\n{text}[sweep]\n"path.rtt" = ["10 ms", "20 ms"]\n')
    for arguments, message in (
        (["--engines", "sim,kernel", str(file), str(single)], "expected sweeps alone"),
        (["--engines", "sim,linux", str(file)], "expected sweeps alone"),
        (["--engines", "sim,kernel", str(single), "--kept"], "--kept: expected sweeps"),
        ([str(single), "--kept"], "expected one scenario, or --engines, found --kept"),
    ):
        result = CliRunner().invoke(app, ["compare", *arguments])
        assert isinstance(result.exception, ScenarioError), arguments
        assert message in str(result.exception)


@pytest.mark.slow
@pytest.mark.usefixtures("guest")
def test_a_sweep_is_compared_with_a_guest(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(small(sweep={"repeat": 2}).toml)
    arguments = ["compare", "--engines", "sim,kernel", str(file), "--out", str(tmp_path / "found"), "--format", "csv"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "2 runs in" in done.stderr
    assert "\nreno,agrees\n" in done.stdout
