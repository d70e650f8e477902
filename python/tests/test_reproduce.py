import json
import math

import polars as pl
import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.studies.reproduce import kelly2003
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import SCENARIOS, SOURCES, Lab, Row, claims, exactly, figures, verdict
from elephan.studies.reproduce.li2006.systems import SYSTEMS
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps.worker import code_version


def row(published, ours, uncertainty=None, band=0.1):
    return Row("g", "s", "1", published, uncertainty, exactly(ours), band)


def test_verdicts_are_computed():
    assert verdict([row(100, 105), row(10, 10.5)]) == "agrees"
    assert verdict([row(100, 300), row(10, 20)]) == "same ordering"
    assert verdict([row(100, 20), row(10, 300)]) == "differs"
    # The printed values are equal within their uncertainty, so there is no order to keep.
    assert verdict([row(100, 200, 30), row(90, 300, 30), row(10, 20)]) == "same ordering"
    # A single wrong number has no order.
    assert verdict([row(100, 300)]) == "differs"
    # "Never", as printed.
    assert row(None, None).agrees
    assert not row(None, 5.0).agrees


def test_wide_intervals_are_no_agreement():
    wide = Row("g", "s", "1", 100.0, None, Estimate.of([0.0, 400.0]), 0.1)
    assert not wide.agrees


def test_the_published_data_is_whole():
    sources = ("kelly2003", "li2006", "tekala2006", "nabeshima2004", "ltcp2003")
    assert set(sources) <= set(SOURCES)
    assert sum(len(figures(source)) for source in sources) == 682
    assert sum(len(claims(source)) for source in sources) == 115
    for one in EXPERIMENTS.values():
        if one.scenario:
            assert elephan.load(SCENARIOS / f"{one.scenario}.toml").name


def test_a_reproduction_from_formulas_is_kept_and_put_on_the_page(tmp_path):
    runner = CliRunner()
    for name in ("ltcp2003/section-2", "kelly2003/table-1"):
        result = runner.invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output
        report = json.loads((tmp_path / "quick" / f"{name}.json").read_text())
        assert set(report["verdicts"].values()) == {"agrees"}
    result = runner.invoke(app, ["reproduce", "page", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.md").read_text()
    assert "kelly2003/table-1" in page
    assert "Claims that are not tested yet" in page
    assert (
        f"Of {len(EXPERIMENTS)} experiments 0 were run in full, 2 by `--quick`, {len(EXPERIMENTS) - 2} not yet:" in page
    )
    assert "| kelly2003/table-3 | 2 GB transfers completed in 20 minutes, by number of flows | not yet |  |" in page


def test_the_page_says_which_code_made_its_reports(tmp_path):
    runner = CliRunner()
    names = ("ltcp2003/section-2", "kelly2003/table-1", "li2006/section-5.4")
    for name in names:
        assert runner.invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path)]).exit_code == 0
    arguments = ["reproduce", "page", "--out", str(tmp_path), "--page", str(tmp_path / "page.md")]
    assert runner.invoke(app, arguments).exit_code == 0
    page = (tmp_path / "page.md").read_text()
    assert f"All reports were made by Elephan {code_version()}" in page
    assert "other code" not in page.lower()
    place = tmp_path / "quick" / f"{names[0]}.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "code": "0.0.9+abc"}))
    assert runner.invoke(app, arguments).exit_code == 0
    page = (tmp_path / "page.md").read_text()
    assert f"2 of 3 reports were made by Elephan {code_version()}" in page
    assert "; 1 by 0.0.9+abc: marked *other code*." in page
    assert "| --quick, *other code* |" in page
    assert page.count("*Other code*: made by Elephan 0.0.9+abc.") == 1


def test_a_page_of_nothing_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("what was there")
    arguments = ["reproduce", "page", "--out", str(tmp_path / "none"), "--page", str(page)]
    with pytest.raises(elephan.ScenarioError, match="expected reports of experiments, found none"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert page.read_text() == "what was there"


def test_web_traffic_is_what_users_received():
    users = elephan.dumbbell(
        rate="20 Mbit/s", rtt="40 ms", flows=[elephan.flow("reno", size="1 MB")], duration="60 s", web=[{"users": 20}],
        measure={"from": "0 s"},
    )  # fmt: skip
    transfers, web = kelly2003.carried(elephan.run(users))
    # 1 MB in 60 s is 20 MB in 1200 s.
    assert abs(transfers / 0.01 - 1) < 0.01
    assert web > 0.02


def small(seed):
    return elephan.dumbbell(
        rate="5 Mbit/s",
        rtt="40 ms",
        flows=[elephan.flow("reno", start={"uniform": ["0 s", "1 s"]})],
        duration="5 s",
        seed=seed,
    )


def test_a_laboratory_runs_each_scenario_once_and_keeps_it(tmp_path):
    first = Lab(tmp_path)
    runs = first.run("a few", [small(1), small(2), small(1)])
    assert (first.asked, first.made) == (3, 2)
    assert runs[0].summary == runs[2].summary != runs[1].summary
    assert runs[0].summary == elephan.run(small(1)).summary
    second = Lab(tmp_path)
    again = second.run("the same and one more", [small(2), small(3)])
    assert (second.asked, second.made) == (2, 1)
    assert again[0].summary == runs[1].summary
    assert again[0].flows.equals(runs[1].flows)


def test_an_interruption_costs_only_what_it_meets(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    scenarios = [small(seed) for seed in range(1, 30)]
    with pytest.raises(KeyboardInterrupt):
        Lab(tmp_path, progress=interrupt).run("interrupted", scenarios)
    kept = len(list(tmp_path.glob("*/run.json")))
    assert kept >= 1
    after = Lab(tmp_path)
    after.run("again", scenarios)
    assert after.made == len(scenarios) - kept


def test_an_unknown_experiment_is_named():
    with pytest.raises(elephan.ScenarioError, match="expected list, all, page, or one of"):
        CliRunner().invoke(app, ["reproduce", "li2006/table-99"], catch_exceptions=False)


def test_metrics_of_a_published_point_by_hand_from_its_events():
    """Table 8.4's overhead, 8.1's goodput and 8.3's convergence of two H-TCP flows, on a tenth of the link's rate."""
    settings = {
        "path.rate": "25 Mbit/s",
        "flow.cc": SYSTEMS["H-TCP"],
        "flow.1.start": "10 s",
        "duration": "40 s",
        "trace.events": "true",
        "measure.interval": "1 s",
    }
    run = elephan.run(elephan.load(SCENARIOS / "li2006" / "symmetric.toml", settings))
    events, summary = run.events, run.summary
    assert (summary.from_s, summary.to_s) == (10.0, 40.0)
    inside = events.filter((pl.col("time_s") > 10) & (pl.col("time_s") <= 40))
    shares, goodputs = [], []
    for flow in (0, 1):
        mine = inside.filter(pl.col("flow") == flow)
        again = mine.filter(pl.col("kind") == "retransmit")["bytes"].sum()
        sent = mine.filter(pl.col("kind") == "send")["bytes"].sum() + again
        # Every dropped packet is retransmitted once, and nothing else is.
        lost = events.filter((pl.col("flow") == flow) & (pl.col("kind") == "drop"))
        assert abs(len(lost) - len(events.filter((pl.col("flow") == flow) & (pl.col("kind") == "retransmit")))) <= 1
        shares.append(again / sent)
        # The receiver acknowledges what it has delivered, except for a delayed acknowledgment.
        acknowledged = mine.filter(pl.col("kind") == "ack")
        first, last = int(acknowledged["seq"][0]), int(acknowledged["seq"][-1])
        span = 30.0
        goodputs.append(((last - first) % 2**32) * 8 / span)
        assert abs(goodputs[-1] / summary.flows[flow].goodput_bit_s - 1) < 0.003
    assert sum(shares) / summary.goodput_bit_s == pytest.approx(summary.overhead_s_bit, rel=0.01)
    # The same from the start of the run: its goodput is what was sent once, less what is in flight at the end.
    shares, once = [], 0
    for flow in (0, 1):
        mine = events.filter((pl.col("flow") == flow) & (pl.col("time_s") <= 40))
        new, again = (mine.filter(pl.col("kind") == kind)["bytes"].sum() for kind in ("send", "retransmit"))
        shares.append(again / (new + again))
        once += new
    assert sum(shares) / (8 * once / 40.0) == pytest.approx(summary.overhead_whole_s_bit, rel=0.01)
    assert min(goodputs) / max(goodputs) == pytest.approx(summary.fairness, rel=0.005)
    # One second at a time, an exponential mean until it is within 80 % of the flow's own goodput.
    interval = 1.0
    late = events.filter((pl.col("flow") == 1) & (pl.col("kind") == "ack") & (pl.col("seq") > 0))
    start, average, step = int(late["seq"][0]), 0.0, 0
    tau = 25 * 0.082
    while not 0.8 <= average / summary.flows[1].goodput_bit_s <= 1.25:
        step += 1
        ends = [late.filter(pl.col("time_s") <= 10 + (step - k) * interval)["seq"] for k in (1, 0)]
        before, after = ((int(e[-1]) if len(e) else start) for e in ends)
        rate = ((after - before) % 2**32) * 8 / interval
        average += (1 - math.exp(-interval / tau)) * (rate - average)
    assert step * interval == summary.convergence_s
