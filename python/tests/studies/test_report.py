"""Reports are complete, self-contained, and agree with the samples."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import call
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import elephan
from elephan.api.pictures import draw
from elephan.api.pictures.data import Chart, Line
from elephan.api.pictures.kinds import KINDS
from elephan.api.pictures.samples import edges, means
from elephan.api.pictures.thin import thinned
from elephan.base import plots
from elephan.report import pictures as for_paper
from elephan.report.read import read
from elephan.report.write import write


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("results")
    path = {"rate": "5 Mbit/s", "rtt": "20 ms"}
    scenario = elephan.dumbbell(**path, flows=[elephan.flow("htcp", count=2)], duration="6 s", name="</script><b>two")
    run = elephan.run(scenario).save(place / "run")
    comparison = elephan.compare(cc=["reno", "htcp"], **path, duration="4 s", repeat=2, start_within="1 s")
    return {"run": run, "comparison": comparison.save(place / "comparison")}


def _data(page: str) -> dict[str, object]:
    found = re.search(r'id="content">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def _numbers(packed: dict[str, str]) -> np.ndarray:
    ((kind, text),) = packed.items()
    return np.frombuffer(base64.b64decode(text), {"f32": "<f4", "f64": "<f8"}[kind])


def test_a_page_has_everything_in_it_and_fetches_nothing(folders: dict[str, Path], tmp_path: Path) -> None:
    for kind, folder in folders.items():
        out = tmp_path / f"{kind}.html"
        write(read(folder), out, "html")
        page = out.read_text(encoding="utf-8")
        assert not re.search(r'(src|href)="|@import|url\((?!data:)', page.split('id="content">')[0])
        assert "default-src 'none'" in page
        assert page.count("</script") == 2
        data = _data(page)
        assert data["kind"] == kind
        assert data["command"]
        assert 'rate = "5 Mbit/s"' in str(data["scenario"])


def test_lines_are_the_samples(folders: dict[str, Path]) -> None:
    run = elephan.Run.load(folders["run"])
    (group,) = json.loads(read(folders["run"]).to_json())["groups"]
    charts = {chart["id"]: chart for chart in group["charts"]}
    over_time = {"cwnd", "goodput", "receive-rate", "srtt", "in-flight", "queue", "drops", "utilisation", "sequence"}
    assert set(charts) == over_time
    second = run.flows.filter(run.flows["flow"] == 1)
    np.testing.assert_array_equal(_numbers(charts["cwnd"]["time_s"]), second["time_s"].to_numpy())
    np.testing.assert_allclose(
        _numbers(charts["cwnd"]["lines"][1]["values"]), second["cwnd_segments"].to_numpy(), rtol=1e-6
    )
    # Means over a tenth of this run, which is shorter than ten seconds.
    assert "Means over 0.6 s;" in charts["goodput"]["note"]
    for kind, total in (
        ("drops", run.queues.filter(run.queues["link"] == "bottleneck")["dropped"].max()),
        ("goodput", run.flows.filter(run.flows["flow"] == 0)["delivered_bytes"].max() * 8e-6),
    ):
        values = _numbers(charts[kind]["lines"][0]["values"])
        assert values.sum() * 0.6 == pytest.approx(total, rel=1e-5)


def test_results_without_a_receive_rate_have_the_other_pictures(folders: dict[str, Path], tmp_path: Path) -> None:
    """Results of older versions lack the column, and not every engine tells it."""
    shutil.copytree(folders["run"], tmp_path / "older")
    file = tmp_path / "older" / "flows.parquet"
    samples = pq.read_table(file)
    place = samples.column_names.index("receive_rate_bit_s")
    untold = pa.array([np.nan] * samples.num_rows)
    for without in (samples.remove_column(place), samples.set_column(place, "receive_rate_bit_s", untold)):
        pq.write_table(without, file)
        assert "receive-rate" not in {chart.id for chart in read(file.parent).groups[0].charts}
        run = elephan.Run.load(file.parent)
        assert run.plot("goodput").axes[0].get_ylabel() == "Goodput (Mbit/s,\napplication bytes)"
        with pytest.raises(
            elephan.ScenarioError, match=r"receive-rate: .* receive_rate_bit_s of flows.parquet, found none"
        ):
            run.plot("receive-rate")


def test_the_lines_of_theory_differ(folders: dict[str, Path]) -> None:
    lines = elephan.Run.load(folders["run"]).plot("phase").axes[0].lines
    broken = {str(line.get_label()): line.get_linestyle() for line in lines if line.get_linestyle() in ("--", ":")}
    assert broken == {"fairness": "--", "efficiency: both fill the path": ":"}


def test_what_else_is_on_the_network_has_its_tables_and_its_goodput(tmp_path: Path) -> None:
    scenario = elephan.dumbbell(
        rate="10 Mbit/s",
        rtt="20 ms",
        flows=[elephan.flow("reno")],
        duration="8 s",
        web=[{"users": 3, "cc": "reno", "start": "0 s"}],
        cbr=[{"rate": "1 Mbit/s"}],
        path={
            "queue": {
                "name": "drr",
                "class": [{"name": "gold", "dscp": ["af11"], "weight": 1}, {"name": "rest", "weight": 1}],
            }
        },
    )
    content = read(elephan.run(scenario).save(tmp_path / "run"))
    titles = [table.title for table in content.tables]
    assert titles[:4] == ["Flows", "Crowds of short flows", "Streams of datagrams", "Links"]
    charts = {chart.id: [line.name for line in chart.lines] for chart in content.groups[0].charts}
    assert charts["goodput"] == charts["receive-rate"] == ["flow 1: reno", "web", "cbr"]
    assert [chart.unit for chart in content.groups[0].charts[1:3]] == [
        "Mbit/s, application bytes",
        "Mbit/s, all payload",
    ]
    # Only TCP flows with samples of their own have a window.
    assert charts["cwnd"] == ["flow 1: reno", "flow 1: reno ssthresh"]


def test_a_metric_that_is_undefined_is_shown_as_such(tmp_path: Path) -> None:
    scenario = elephan.dumbbell(
        rate="5 Mbit/s", rtt="20 ms", flows=[elephan.flow("reno")], duration="1 s", engine="model"
    )
    content = read(elephan.run(scenario).save(tmp_path / "run"))
    tiles = {tile.name: tile for tile in content.tiles}
    assert tiles["convergence"].value == "-"
    assert tiles["convergence"].meaning.endswith("Undefined in this run.")
    assert ("engine", "model, fluid equations") in content.facts
    assert "The fluid model has no packets" in content.notes[0]


def test_a_run_on_a_kernel_says_which_and_how_well(folders: dict[str, Path], tmp_path: Path) -> None:
    run = elephan.Run.load(folders["run"])
    quality = {"valid": False, "invalid_because": ["late"], "lateness_p99_s": 2e-4, "lateness_max_s": 3e-3}
    provenance = {**run.provenance, "engine": "linux", "kernel": "6.1.0", "quality": quality}
    elephan.Run(run.scenario, run.summary, run.links, run.labels, provenance, folder=run.folder).save(tmp_path / "run")
    content = read(tmp_path / "run")
    facts = dict(content.facts)
    assert facts["kernel"] == "Linux 6.1.0"
    assert facts["packets late by"] == "0.20 ms (99th percentile), 3.00 ms (maximum)"
    assert facts["valid"] == "no: late"
    assert content.notes[0] == "Invalid run: late."
    assert "bit-identical" not in " ".join(content.notes)


def test_thinning_keeps_every_peak_and_says_what_it_did() -> None:
    values = np.random.default_rng(1).normal(size=100_000)
    peaks = [17, 50_000, 99_999]
    values[peaks] = [50.0, -50.0, 60.0]
    lines = [Line("a", values, 0), Line("b", np.full(100_000, np.nan), 1)]
    chart = Chart("id", "title", "unit", "meaning", np.arange(100_000) * 0.1, lines)
    found = thinned(chart, most=4000)
    assert sum(len(line.values) for line in found.lines) <= 4000
    assert {50.0, -50.0, 60.0} <= set(found.lines[0].values)
    assert np.isnan(found.lines[1].values).all()
    assert np.all(np.diff(found.time_s) >= 0)
    assert found.note == (
        "Of 100,000 samples of each line this report has the minimum and the maximum of every 100 (2,000 values); "
        "the results folder has all samples."
    )
    assert thinned(chart) is chart


def test_means_are_over_whole_samples_and_keep_the_total() -> None:
    times = np.arange(0, 10.05, 0.1)
    bounds = edges(times, 0.96)
    np.testing.assert_allclose(bounds, np.arange(11.0))
    rates = np.random.default_rng(2).exponential(size=len(times))
    found = means(times, rates, bounds)
    np.testing.assert_allclose(found, [rates[10 * k + 1 : 10 * k + 11].mean() for k in range(10)])
    # A line that begins later has no mean before, and its own mean in the interval in which it begins.
    late = means(times[54:], rates[54:], bounds)
    assert np.isnan(late[:5]).all()
    assert late[5] == pytest.approx(rates[54:61].mean())
    np.testing.assert_allclose(late[6:], found[6:])


@pytest.mark.parametrize("kind", ["pdf", "png", "svg", "md"])
def test_papers_take_it_too(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"report.{kind}"
    write(read(folders["comparison"]), out, kind)
    start = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml", "md": b"# reno, htcp"}[kind]
    assert out.read_bytes().startswith(start)
    if kind == "md":
        text = out.read_text(encoding="utf-8")
        assert "| reno |" in text
        assert all((tmp_path / name).is_file() for name in re.findall(r"\((.*?\.png)\)", text))


def test_a_paper_has_the_scenario_to_which_its_notes_refer(folders: dict[str, Path]) -> None:
    content = read(folders["run"])
    assert "scenario below" in " ".join(content.notes)
    shown = "\n".join(page.texts[-1].get_text() for page in for_paper.of_scenario(content))
    assert shown == content.scenario.rstrip("\n")


def test_a_figure_at_column_width_has_room_for_its_labels_below_a_long_title(folders: dict[str, Path]) -> None:
    for figure in for_paper.for_paper(read(folders["run"])):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        (axes, *_), renderer = figure.axes, canvas.get_renderer()
        label = axes.yaxis.label.get_window_extent(renderer)
        assert label.y0 >= 0
        for legend in figure.legends:
            assert label.y1 <= legend.get_window_extent(renderer).y0, axes.get_ylabel()
        if note := figure.get_supxlabel():
            below = next(text for text in figure.texts if text.get_text() == note).get_window_extent(renderer)
            assert below.y1 <= axes.xaxis.label.get_window_extent(renderer).y0, axes.get_xlabel()


def test_the_flows_of_a_comparison_have_one_entry_each_in_the_legend(folders: dict[str, Path]) -> None:
    run = elephan.Run.load(folders["run"])
    picture = KINDS["delay-cdf"].of_run(run)
    figure = draw.figure([("one", picture), ("other", picture)], "two algorithms")
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["flow 1", "flow 2", "without queueing"]


def test_a_reproduction_shows_what_was_printed_beside_ours(tmp_path: Path) -> None:
    ours = {"value": 215.0, "low": 214.0, "high": 216.0, "repeats": 5, "text": "215 [214, 216]"}
    row = {"system": "htcp", "published": 210.0, "uncertainty": 3.0, "ours": ours, "deviation": 0.0238, "agrees": True}
    comparison = {
        **{"group": "goodput", "unit": "Mbit/s", "kind": "simulation", "band": 0.1, "verdict": "agrees"},
        **{"reason": "", "cause_of": "", "changed": "", "command": "", "rows": [{**row, "unusable": ""}]},
    }
    found = {
        "name": "li2006/table-8.1",
        "code": "0.1.0+abc",
        "title": "Goodput of two flows",
        "quick": False,
        "comparisons": [comparison],
        "claims": [{"claim": "L1", "verdict": "refuted", "sentence": "It is fair.", "sets": []}],
        "notes": [],
    }
    for how, more in (
        ("quick", {"quick": True, "comparisons": []}),
        ("full", {"picture": "full/li2006/table-8.1.png"}),
    ):
        (tmp_path / how / "li2006").mkdir(parents=True)
        (tmp_path / how / "li2006" / "table-8.1.json").write_text(json.dumps({**found, **more}))
    (tmp_path / "full" / "li2006" / "table-8.1.png").write_bytes(b"PNG")
    (tmp_path / "full" / "li2006" / "table-8.1.csv").write_text("panel,line,x,y\n")
    content = read(tmp_path)
    assert content.command == "elephan reproduce li2006/table-8.1"
    assert [picture.csv for picture in content.pictures] == ["panel,line,x,y\n"]
    assert content.kind == "reproduction"
    assert {tile.name: tile.value for tile in content.tiles}["agrees"] == "1"
    assert content.tables[0].rows == [["htcp", "210.0 ± 3.0", "215 [214, 216]", "+2.4", "agrees"]]
    assert content.tables[1].rows[0][:2] == ["L1", "refuted"]
    assert ("experiments", "1 by Elephan 0.1.0+abc") in content.facts


def test_a_picture_gives_its_data() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("windows")
    axes.plot([0, 1], [2, 3], label="sim")
    assert plots.data_of(figure).rows() == [("windows", "sim", 0.0, 2.0), ("windows", "sim", 1.0, 3.0)]


def test_what_is_no_results_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(elephan.ScenarioError, match=r"expected the results of a run, .* found none"):
        read(tmp_path)


def test_quantities_of_an_axis_are_numbers_of_si_units() -> None:
    from elephan import _core

    texts = ["162 ms", "2.5 Gbit/s", "20% bdp", "500 packets", "htcp"]
    assert [_core.quantity(text) for text in texts] == [
        (0.162, "s"), (2.5e9, "bit_s"), (0.2, "bdp"), (500.0, "packets"), None,
    ]  # fmt: skip


def test_a_sweep_of_loss_rates_shows_the_response_functions(tmp_path: Path) -> None:
    scenario = tmp_path / "loss.toml"
    scenario.write_text(
        'name = "loss"\nduration = "5 s"\n[path]\nrate = "20 Mbit/s"\nrtt = "20 ms"\n'
        'loss = { name = "random", probability = 0.01 }\n'
        '[[flow]]\ncc = "reno"\n[sweep]\n"path.loss.probability" = [0.01, 0.03]\n"flow.cc" = ["reno", "scalable"]\nrepeat = 2\n'
    )
    assert call("sweep", scenario, "--out", tmp_path / "sweep").returncode == 0
    content = read(tmp_path / "sweep")
    assert content.runs is not None
    assert len(content.runs.values) == 8
    figure, load = content.figures
    assert (figure.id, load.id) == ("response", "queue_delay_mean_s-utilisation")
    assert [series.name for series in figure.series] == ["reno", "reno, theory", "scalable", "scalable, theory"]
    simulated, theory = figure.series[:2]
    assert simulated.x == [0.01, 0.03]
    # Standard TCP's window is about sqrt(1.5 / p) if timeouts do not count.
    assert theory.y[0] == pytest.approx(12.2, rel=0.15)
    assert simulated.y[0] == pytest.approx(theory.y[0], rel=0.4)
    assert len(json.loads(content.to_json())["runs"]["settings"]) == 8


@pytest.mark.parametrize(("flows", "dashes"), [(2, 2), (6, 6), (7, 1)])
def test_lines_over_time_are_told_apart_in_grey_up_to_six(flows: int, dashes: int) -> None:
    lines = [Line(f"flow {k}", np.arange(3.0), k) for k in range(flows)]
    threshold = Line("flow 0 ssthresh", np.arange(3.0), 0, minor=True)
    chart = Chart("cwnd", "window", "segments", "", np.arange(3.0), [*lines, threshold], until_s=2.0)
    (axes,) = draw.figure([("", chart)], "").axes
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in axes.lines[:flows]}) == dashes


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_figure_has_the_same_bytes(tmp_path, kind):
    def draw(name):
        figure = Figure()
        figure.subplots().plot([1, 2], [2, 3])
        plots.save(figure, tmp_path / f"{name}.{kind}")
        return (tmp_path / f"{name}.{kind}").read_bytes()

    assert draw("one") == draw("two")
