import json

import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.recommend import recommend, weights_of
from elephan.reproduce.catalogue import EXPERIMENTS
from elephan.reproduce.lab import SOURCES, Row, claims, data_folder, exactly, figures, verdict
from elephan.sweeps.statistics import Estimate


def row(published, ours, uncertainty=None, band=0.1):
    return Row("g", "s", "1", published, uncertainty, exactly(ours), band)


def test_verdicts_are_computed():
    assert verdict([row(100, 105), row(10, 10.5)]) == "agrees"
    assert verdict([row(100, 300), row(10, 20)]) == "same ordering"
    assert verdict([row(100, 20), row(10, 300)]) == "differs"
    # Equal in print within their uncertainty: no order to keep.
    assert verdict([row(100, 200, 30), row(90, 300, 30), row(10, 20)]) == "same ordering"
    # A single number that is off has no order.
    assert verdict([row(100, 300)]) == "differs"
    # Never, as printed.
    assert row(None, None).agrees
    assert not row(None, 5.0).agrees


def test_wide_intervals_are_no_agreement():
    wide = Row("g", "s", "1", 100.0, None, Estimate.of([0.0, 400.0]), 0.1)
    assert not wide.agrees


def test_the_published_data_is_whole():
    assert sum(len(figures(source)) for source in SOURCES) == 682
    assert sum(len(claims(source)) for source in SOURCES) == 115
    for one in EXPERIMENTS.values():
        if one.scenario:
            assert elephan.load(data_folder() / f"{one.scenario}.toml").name


def test_a_reproduction_from_formulas_is_kept_and_put_on_the_page(tmp_path):
    runner = CliRunner()
    for name in ("ltcp2003/section-2", "kelly2003/table-1"):
        result = runner.invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output
        report = json.loads((tmp_path / f"{name}.json").read_text())
        assert set(report["verdicts"].values()) == {"agrees"}
    result = runner.invoke(app, ["reproduce", "page", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.md").read_text()
    assert "kelly2003/table-1" in page
    assert "Claims that are not tested yet" in page


def test_an_unknown_experiment_is_named():
    with pytest.raises(elephan.ScenarioError, match="expected list, all, page, or one of"):
        CliRunner().invoke(app, ["reproduce", "li2006/table-99"], catch_exceptions=False)


def test_weights_follow_the_order_of_the_thesis_and_can_be_set():
    assert weights_of("internet", {}) == {"fairness": 3, "throughput": 2, "overhead": 1}
    assert weights_of("dedicated", {"convergence": 2}) == {"throughput": 3, "overhead": 2, "convergence": 2}
    with pytest.raises(elephan.ScenarioError, match="expected one of internet, dedicated, dedicated-shared"):
        weights_of("mars", {})


def test_a_recommendation_ranks_by_evidence():
    ranked = recommend(
        rate="50 Mbit/s", rtt="40 ms", buffer="20% bdp", shared="dedicated", cc=("reno", "scalable"), duration="40 s", repeats=1
    )  # fmt: skip
    assert {r.cc for r in ranked} == {"reno", "scalable"}
    assert ranked[0].score >= ranked[1].score
    by_name = {r.cc: r for r in ranked}
    assert by_name["scalable"].scores["throughput"] > by_name["reno"].scores["throughput"]
    assert by_name["reno"].scores["overhead"] > by_name["scalable"].scores["overhead"]
