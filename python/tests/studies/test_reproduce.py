import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import polars as pl
import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.studies.judge import Arm, Claim, Kind, Place, Quantity, Verdict
from elephan.studies.reproduce.catalogue import EXPERIMENTS
from elephan.studies.reproduce.lab import SCENARIOS, SOURCES, Experiment, Lab, Report, claims, figures
from elephan.studies.reproduce.page import page_of, write_page
from elephan.studies.reproduce.stored import report_of, report_place, tables_of
from elephan.studies.sweeps.worker import VersionMismatchError, code_version

# Two flows for five seconds, with a random start.
ARM = Arm("li2006/symmetric").set(
    {
        "path.rate": "5 Mbit/s",
        "path.rtt": "40 ms",
        "duration": "8 s",
        "flow.1.start": '{ uniform = ["0 s", "1 s"] }',
        "measure.from": "2 s",
    }
)


def goodput(run):
    return run.summary.goodput_bit_s / 1e6


def claim(**more):
    return Claim("L17", "goodput is high", "one path", "aggregate goodput", "a number of this test", **more)


def test_the_published_data_is_whole():
    sources = ("kelly2003", "li2006", "tekala2006", "nabeshima2004", "ltcp2003")
    assert set(sources) <= set(SOURCES)
    assert sum(len(figures(source)) for source in sources) == 590
    assert sum(len(claims(source)) for source in sources) == 116
    for one in EXPERIMENTS.values():
        if one.scenario:
            assert elephan.load(SCENARIOS / f"{one.scenario}.toml").name


def test_every_claim_is_tested_or_said_to_be_untestable():
    """The ids in the code, so that no claim is lost; what each comes to is for the page."""
    text = "".join(path.read_text() for path in SCENARIOS.parent.rglob("*.py"))
    missing = [key for source in SOURCES for key in claims(source) if f'"{key}"' not in text]
    assert missing == []


def test_repeats_are_added_only_where_they_decide(tmp_path):
    lab = Lab(tmp_path)
    report = Report(lab)
    sure = Place("sure", (ARM,), goodput, above=1.0, unit="Mbit/s")
    # The bound is the mean of the first runs: no interval lies on one side of it.
    mean = sum(goodput(run) for run in lab.runs([ARM], 8)[0]) / 8
    open_ = Place("open", (ARM,), goodput, above=mean, unit="Mbit/s")
    judged = report.test(claim(), [sure, open_], looks=(4, 8))
    found = {one.name: one for one in judged.findings[""]}
    assert found["sure"].holds
    assert found["sure"].found.repeats == 4
    assert found["open"].holds is None
    assert found["open"].found.repeats == 8
    assert judged.verdict == Verdict.UNDECIDED
    assert lab.made == 8


def test_fewer_looks_leave_the_level_of_all(tmp_path):
    mean = goodput(Lab(tmp_path).runs([ARM], 1)[0][0])
    places = [Place("open", (ARM,), goodput, above=mean, unit="Mbit/s")]
    one, two = (Report(Lab(tmp_path, most_looks=most)).test(claim(), places, looks=(4, 8)) for most in (1, 2))
    short = one.findings[""][0].found
    assert (short.repeats, two.findings[""][0].found.repeats) == (4, 8)
    alone = Report(Lab(tmp_path)).test(claim(), places, looks=(4,)).findings[""][0].found
    assert short.high - short.low > alone.high - alone.low


def test_a_laboratory_asked_for_a_claim_runs_nothing_else(tmp_path):
    report = Report(Lab(tmp_path, claims=frozenset({"X2"})))
    place = Place("one", (ARM,), goodput, above=0.0)
    report.compare("goodput", "Mbit/s", [Quantity("one", 1.0, None, (ARM,), goodput)])
    report.untestable("X1", "nothing can run it")
    report.test(claim(), [place])
    assert (report.lab.asked, report.comparisons, report.judgements) == (0, [], [])
    report.test(replace(claim(), id="X2"), [place], looks=(2,))
    assert (report.lab.asked, len(report.judgements)) == (2, 1)


def test_a_claim_that_no_other_engine_can_answer_is_not_run_there(tmp_path):
    report = Report(Lab(tmp_path, engine="ns2"))
    judged = report.test(claim(oracle="ns-2 has no such flow"), [Place("one", (ARM,), goodput, above=0.0)])
    assert (judged.verdict, report.lab.asked) == (Verdict.UNTESTABLE, 0)
    assert report.judgements == [judged]


def test_a_claim_tested_anew_leaves_the_rest_of_its_report(tmp_path):
    """The stored report keeps what was not asked for."""
    name, options = "li2006/figure-5.1", ["--out", str(tmp_path), "--quick"]
    assert CliRunner().invoke(app, ["reproduce", name, *options]).exit_code == 0
    place = report_place(tmp_path, name, quick=True)
    whole = json.loads(place.read_text())
    one = whole["claims"][-1]["claim"]
    altered = whole | {"claims": [claim | {"tried": "nothing"} for claim in whole["claims"]]}
    place.write_text(json.dumps(altered))
    assert CliRunner().invoke(app, ["reproduce", name, *options, "--claim", one]).exit_code == 0
    assert json.loads(place.read_text()) == altered | {"claims": [*altered["claims"][:-1], whole["claims"][-1]]}
    # Without a stored report the claim is shown only.
    place.unlink()
    shown = CliRunner().invoke(app, ["reproduce", name, *options, "--claim", one])
    assert shown.exit_code == 0
    assert one in shown.output
    assert not place.exists()
    # A claim of another experiment is refused.
    with pytest.raises(elephan.ScenarioError, match=f"--claim: expected a claim that {name} tests, found L16"):
        CliRunner().invoke(app, ["reproduce", name, *options, "--claim", "L16"], catch_exceptions=False)
    assert not place.exists()


def test_sets_of_choices_that_contradict_each_other_are_a_finding(tmp_path):
    slow = ARM.set({"path.rate": "1 Mbit/s", "path.buffer": "10 packets"})
    sets = {name: [Place("one", (arm,), goodput, above=2.0)] for name, arm in (("fast", ARM), ("slow", slow))}
    judged = Report(Lab(tmp_path)).test(claim(), sets, looks=(3,))
    assert judged.verdicts == {"fast": Verdict.CONFIRMED, "slow": Verdict.REFUTED}
    assert judged.verdict == Verdict.DEPENDENT


def test_a_dead_run_gives_no_verdict(tmp_path):
    """Every fifth packet is lost: timeouts more than anything else, which is no evidence against a claim on goodput."""
    lossy = ARM.set({"path.loss": '{ name = "random", probability = 0.2 }', "duration": "60 s"})
    report = Report(Lab(tmp_path, quick=True))
    judged = report.test(claim(), [Place("lossy", (lossy,), goodput, above=2.0)])
    assert judged.verdict == Verdict.UNTESTABLE
    assert "timeouts" in judged.findings[""][0].unusable
    made = report.compare("goodput", "Mbit/s", [Quantity("Standard TCP", 4.0, None, (lossy,), goodput)])
    assert made.verdict == Verdict.UNTESTABLE
    # The collapse itself may be the claim.
    collapse = Place("collapse", (lossy, ARM), lambda a, b: goodput(a) / goodput(b), below=0.5, may_collapse=(0,))
    assert report.test(claim(), [collapse], looks=(3,)).verdict == Verdict.CONFIRMED


def made_up(lab):
    report = Report(lab)
    report.compare("goodput", "Mbit/s", [Quantity("Standard TCP", 4.7, 0.1, (ARM,), goodput)], band=0.9)
    report.compare("windows", "packets", [Quantity.exact("Standard TCP", 10, 30)], kind=Kind.THEORY, reason="doubled")
    report.compare("windows", "packets", [Quantity.exact("Standard TCP", 10, 10)], cause_of="windows", changed="halved")
    report.test(claim(tried="twice", means="less"), [Place("<b> | place", (), lambda: 1.0, above=2.0)])
    report.untestable("L69", "paths that are not published")
    return report


MADE_UP = Experiment("li2006/table-8.1", "A table", "li2006/symmetric", ("a choice",), made_up, quick=True)


def put(folder, document, *, quick=False, engine="sim"):
    place = report_place(folder, document["name"], quick=quick, engine=engine)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document | {"quick": quick, "engine": engine}))


def stored(folder, *, quick):
    document = report_of(MADE_UP, made_up(Lab(folder / "runs", quick=quick))) | {"code": code_version()}
    put(folder, document, quick=quick)
    return document


def test_the_page_counts_kinds_apart_and_full_runs_only(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, MADE_UP.name, MADE_UP)
    stored(tmp_path, quick=True)
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert "1 by `--quick`, whose verdicts are marked and not counted" in page
    assert "| simulation against printed measurement |" not in page
    stored(tmp_path, quick=False)
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert "| simulation against printed measurement | 1 | 0 | 0 | 0 | 0 |" in page
    assert "| theory against our simulation | 0 | 0 | 1 | 0 | 0 |" in page
    assert "*Where it fails*: at 1 of 1 places: &lt;b&gt; \\| place: 1, bound &gt; 2." in page
    assert "*Tried*: twice" in page
    source = (tmp_path / "page" / "li2006.md").read_text()
    assert "Cause: doubled" in source
    assert "windows, run again with halved" in source
    assert "| &lt;b&gt; \\| place |" in source
    assert '<span class="verdict refuted">refuted</span> **L17**' in source
    # The address of the page in the site is the folder page/, in which its picture is.
    assert 'data="overview.svg"' in page
    assert 'target="_top" xlink:href="li2006/#l17"' in (tmp_path / "page" / "overview.svg").read_text()


def test_a_source_of_several_chapters_has_a_page_for_each(tmp_path, monkeypatch):
    assert [page_of(name) for name in ("kelly2003/table-1", "kelly2003/sensitivity", "li2006/synchronisation")] == [
        "kelly2003", "kelly2003", "li2006-chapter8-3-2",
    ]  # fmt: skip
    tables = EXPERIMENTS["li2006/table-8.1"].function
    both = [replace(MADE_UP, name=name, function=tables) for name in ("li2006/table-8.1", "li2006/table-8.2")]
    report = stored(tmp_path, quick=False)
    for one in both:
        monkeypatch.setitem(EXPERIMENTS, one.name, one)
        put(tmp_path, report | {"name": one.name})
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert "[L17](page/li2006-chapter8-tables.md#l17)" in page
    assert 'xlink:href="li2006-chapter8-tables/#l17"' in (tmp_path / "page/overview.svg").read_text()
    # The place that an experiment had leads to where it is.
    source = (tmp_path / "page/li2006.md").read_text()
    assert (
        '<a id="li2006-table-8-2"></a>[li2006/table-8.2](li2006-chapter8-tables.md#li2006-table-8-2): A table' in source
    )
    # What holds for all is said once.
    chapter = (tmp_path / "page/li2006-chapter8-tables.md").read_text()
    assert chapter.startswith("# Li 2006, Tables 8.1 to 8.4")
    assert "Of all experiments of this page:\n\n- Our choice: a choice\n" in chapter
    assert chapter.count("a choice") == 1


def test_other_sets_of_choices_are_folded_and_have_what_differs_from_the_first(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, MADE_UP.name, MADE_UP)
    report = stored(tmp_path, quick=False)
    (finding,) = report["claims"][0]["sets"][0]["findings"]
    places = [finding | {"place": place, "holds": False} for place in ("same", "other")]
    second = [places[0], places[1] | {"holds": True}]
    sets = [
        {"name": name, "verdict": "refuted", "findings": of} for name, of in (("printed", places), ("code", second))
    ]
    put(tmp_path, report | {"claims": [report["claims"][0] | {"verdict": Verdict.DEPENDENT, "sets": sets}]})
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert (
        "| printed: refuted (0 of 2 hold, 2 fail)<details><summary>other sets: 1</summary>code: refuted (1 of 2" in page
    )
    shown, _, folded = (tmp_path / "page/li2006.md").read_text().partition("other sets of choices: 1;")
    assert folded.startswith(" places that differ: 1, as under the first: 1</summary>")
    assert [text.count("| printed | ") for text in (shown, folded)] == [2, 0]
    assert [text.count("| code | ") for text in (shown, folded)] == [0, 1]


def test_the_page_names_what_another_engine_does_otherwise(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, MADE_UP.name, MADE_UP)
    report = stored(tmp_path, quick=False)
    assert (
        "*Second opinion*: None: it was run on the simulator only."
        in write_page(tmp_path, tmp_path / "page.md").read_text()
    )
    put(tmp_path, report | {"differences": ["reno: it counts ACKs"]}, engine="ns2")
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert "- In the column *ns-2*: reno: it counts ACKs" in (tmp_path / "page" / "li2006.md").read_text()
    assert "*Second opinion*: ns-2: refuted. Of the 1 places that fail here, 1 fail there too." in page


def test_a_new_report_replaces_that_of_the_same_experiment_and_engine_only(tmp_path, monkeypatch):
    """Each results folder is from another machine, and none has the reports of the others."""
    second = replace(MADE_UP, name="li2006/table-8.2")
    for one in (MADE_UP, second):
        monkeypatch.setitem(EXPERIMENTS, one.name, one)
    report = stored(tmp_path / "first", quick=False) | {"code": "first"}
    page, archive = tmp_path / "page.md", tmp_path / "page" / "li2006.json"

    def written(machine):
        write_page(tmp_path / machine, page)
        return {(one["name"], one["engine"]): one for one in json.loads(archive.read_text())["reports"]}

    def codes(reports):
        return {place: one["code"] for place, one in reports.items()}

    first, other = (MADE_UP.name, "sim"), (second.name, "sim")
    put(tmp_path / "first", report | {"wall_s": 3.2, "picture": "full/drawn.png"})
    (tmp_path / "first/full/drawn.png").write_bytes(b"a drawing of runs")
    kept = written("first")
    assert codes(kept) == {first: "first"}
    assert "wall_s" not in kept[first]
    assert (page.with_suffix("") / kept[first]["picture"]).read_bytes() == b"a drawing of runs"
    # Another experiment, and a quick one of the first.
    put(tmp_path / "second", report | {"name": second.name, "code": "second"})
    put(tmp_path / "second", report | {"code": "second"}, quick=True)
    assert codes(written("second")) == {first: "first", other: "second"}
    # A second opinion; then the whole experiment again, and a second opinion on one claim.
    put(tmp_path / "third", report | {"differences": ["reno: it counts ACKs"]}, engine="ns2")
    assert written("third")[MADE_UP.name, "ns2"]["differences"] == ["reno: it counts ACKs"]
    put(tmp_path / "fourth", report | {"code": "fourth", "looks": 1})
    claims = [report["claims"][0] | {"verdict": "undecided"}]
    part = report | {"part": True, "comparisons": [], "claims": claims, "differences": ["reno: it has no SACK"]}
    put(tmp_path / "fourth", part, engine="ns2")
    last = written("fourth")
    assert codes(last) == {first: "fourth", other: "second", (MADE_UP.name, "ns2"): "first"}
    opinion = last[MADE_UP.name, "ns2"]
    assert [one["verdict"] for one in opinion["claims"]] == ["undecided", "untestable here"]
    assert len(opinion["comparisons"]) == 3
    assert opinion["differences"] == ["reno: it counts ACKs", "reno: it has no SACK"]
    # Without results the pages are made from the archive alone, which stays as it is.
    before = page.read_text(), archive.read_text()
    assert written("none") == last
    assert (page.read_text(), archive.read_text()) == before


def test_a_second_opinion_on_one_claim_is_stored_as_a_part(tmp_path):
    # A claim that no other engine can answer needs no run.
    name, options = "li2006/figure-5.7", ["--out", str(tmp_path), "--engine", "ns2", "--claim", "L05"]
    assert CliRunner().invoke(app, ["reproduce", name, *options]).exit_code == 0
    assert json.loads(report_place(tmp_path, name, quick=False, engine="ns2").read_text())["part"]


def test_theory_is_not_called_published_and_a_formula_is_no_simulation(tmp_path):
    def heads(document, **others):
        return [[head.text for head in table.head[1:-2]] for table in tables_of(document, others)]

    document = stored(tmp_path, quick=True)
    assert heads(document) == [["published", "simulator"], ["theory", "simulator"], ["published", "simulator"]]
    report = Report(Lab(tmp_path))
    report.compare("windows", "packets", [Quantity.exact("Standard TCP", 10, 10)], kind=Kind.FORMULA)
    document = report_of(MADE_UP, report)
    assert heads(document, ns2=document) == [["published", "formula"]]


def test_the_page_counts_what_a_kernel_could_run(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, MADE_UP.name, MADE_UP)
    put(tmp_path, stored(tmp_path, quick=False), engine="kernel")
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    # Neither its theory nor the claim that it cannot test.
    assert "| kernel against printed measurement | 1 | 0 | 0 | 0 | 0 |" in page
    assert "| kernel against printed measurement | 0 | 1 | 0 | 0 | 0 |" in page


def test_a_page_of_nothing_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("what was there")
    arguments = ["reproduce", "page", "--out", str(tmp_path / "none"), "--page", str(page)]
    with pytest.raises(elephan.ScenarioError, match="expected reports of experiments, found none"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert page.read_text() == "what was there"


def test_an_executor_elsewhere_runs_the_simulations(tmp_path, monkeypatch):
    """As the workers of a cluster do: each checks that it has the same code."""
    with ThreadPoolExecutor(1) as elsewhere:
        lab = Lab(tmp_path, executor=elsewhere)
        there = lab.run([small(1)])[0]
        assert there.summary == elephan.run(small(1)).summary
        monkeypatch.setattr("elephan.studies.lab.code_version", iter(["a", "a", "b", "b"]).__next__)
        with pytest.raises(VersionMismatchError):
            lab.run([small(2)])


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
    runs = first.run([small(1), small(2), small(1)])
    assert (first.asked, first.made) == (3, 2)
    # What is read again costs nothing more.
    cost_s = first.cost_s
    first.run([small(1)])
    assert first.cost_s == cost_s > 0
    assert runs[0].summary == runs[2].summary != runs[1].summary
    assert runs[0].summary == elephan.run(small(1)).summary
    second = Lab(tmp_path)
    again = second.run([small(2), small(3)])
    assert (second.asked, second.made) == (2, 1)
    assert again[0].summary == runs[1].summary
    assert again[0].flows.equals(runs[1].flows)


def test_an_interruption_costs_only_what_it_meets(tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    scenarios = [small(seed) for seed in range(1, 30)]
    with pytest.raises(KeyboardInterrupt):
        Lab(tmp_path, progress=interrupt).run(scenarios)
    kept = len(list(tmp_path.glob("*/run.json")))
    assert kept >= 1
    after = Lab(tmp_path)
    after.run(scenarios)
    assert after.made == len(scenarios) - kept


def test_an_unknown_experiment_is_named():
    with pytest.raises(elephan.ScenarioError, match="an experiment such as li2006/table"):
        CliRunner().invoke(app, ["reproduce", "li2006/table-99"], catch_exceptions=False)


def test_metrics_of_a_published_point_by_hand_from_its_events():
    """Table 8.4's overhead, 8.1's goodput and 8.3's convergence of two H-TCP flows, on a tenth of the link's rate."""
    settings = {
        "path.rate": "25 Mbit/s",
        "flow.cc": '{ name = "htcp", rtt_scaling = "seconds" }',
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
