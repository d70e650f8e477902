"""`elephan check`: the language of expectations, verdicts, reports, comparisons with a base, and the plugin of pytest."""

import json
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as Xml

import numpy as np
import pyarrow as pa
import pytest
from command_line import call

import elephan
from elephan.api.derived import DERIVED, OF_TRANSFERS, harm
from elephan.api.scenario import EXAMPLES
from elephan.studies.check.decisions import Decision, _decided
from elephan.studies.check.expectations import Point
from elephan.studies.check.properties import Always, Eventually, Order
from elephan.studies.check.quantities import quantity
from elephan.studies.check.readings import Window, conditions, reading
from elephan.studies.judge import Arm, Place, Verdict, judged

RUN = """
duration = "4 s"
path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "100% bdp" }
flow = [{ cc = "cubic" }, { cc = "reno", start = { uniform = ["0 s", "100 ms"] } }]
measure = { from = "1 s" }
"""


# Without anything random.
STILL = RUN.replace('{ uniform = ["0 s", "100 ms"] }', '"100 ms"')


def of_points(count: int) -> SimpleNamespace:
    """An expectation of so many points, as far as a decision looks at it."""
    place = SimpleNamespace(arms=[Arm("x")], statistic="mean")
    points = [Point(number, {}, None) for number in range(count)]
    question = SimpleNamespace(sets={"": [place] * count})
    return SimpleNamespace(points=points, question=question, text="x", properties=(), file=Path("x.toml"), given={})


LABORATORY = SimpleNamespace(
    engine="sim",
    deadline=None,
    scenario=lambda *_: SimpleNamespace(document={"seed": 1}),
    populations={"x": SimpleNamespace(point=lambda *_: (None, {}))},
)


def written(folder: Path, *expectations: str, run: str = RUN) -> Path:
    file = folder / "x.toml"
    file.write_text(
        run + "".join(f'\n[[expect]]\nsays = "{number}"\n{one}\n' for number, one in enumerate(expectations))
    )
    return file


def checked(file: Path, *options: object) -> SimpleNamespace:
    done = call("check", file, "--out", file.parent / "check", *options)
    report = file.parent / "check/check.json"
    document = json.loads(report.read_text()) if report.exists() else {}
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr, document=document)


def test_the_examples_hold():
    file = EXAMPLES / "expectations.toml"
    assert len(elephan.load(file).document["expect"]) == 10
    done = call("check", file, "--out", "results/check-examples")
    assert done.returncode == 0, done.stdout


def test_verdicts_have_reasons_commands_and_codes(tmp_path: Path):
    file = written(
        tmp_path,
        'metric = "utilisation"\nat_least = "90 %"',
        'metric = "goodput.1"\nat_least = "20 Mbit/s"\nset = { "path.rtt" = "30 ms" }',
        'always = "cwnd.1 < 5 segments"\nrepeat = 3',
        'always = "cwnd.1 > 0 segments"\nafter = "cwnd.1 > 1000000 segments"',
    )
    found = checked(file, "--junit", tmp_path / "junit.xml")
    verdicts = [one["verdict"] for one in found.document["expectations"]]
    assert verdicts == ["held", "failed", "failed", "not evaluated"]
    assert found.code == 1
    assert '"cwnd.1 > 1000000 segments" never held' in found.out
    # The command of what failed repeats the run, and the picture is there.
    (command,) = found.document["expectations"][1]["points"][0]["commands"]
    assert "--set 'path.rtt=30 ms'" in command
    again = call(*shlex.split(command)[1:], "--out", tmp_path / "again", "--format", "json")
    assert again.returncode == 0, again.stderr
    value = json.loads(again.stdout)["flows"][0]["goodput_bit_s"]
    at = found.document["expectations"][1]["points"][0]
    assert at["low"] <= value <= at["high"]
    assert (tmp_path / "check/x-2-sim.png").exists()
    suite = Xml.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "2",
        "skipped": "1",
    }
    assert "**1 held, 2 failed, 1 not evaluated**" in checked(file, "--format", "md").out


def test_a_bound_within_the_interval_is_undecided_and_says_what_would_decide(tmp_path: Path):
    value = checked(written(tmp_path, 'metric = "share.2"\nat_least = 0.0\nrepeat = 5')).document
    mean = value["expectations"][0]["points"][0]["value"]
    found = checked(written(tmp_path, f'metric = "share.2"\nat_least = {mean}\nrepeat = 5'))
    assert (found.code, found.document["expectations"][0]["verdict"]) == (3, "undecided")
    assert "repeats" in found.document["expectations"][0]["reason"]


def test_what_the_engine_cannot_run_is_not_evaluated(tmp_path: Path):
    file = written(tmp_path, 'metric = "utilisation"\nat_least = "10 %"\nset = { "flow.0.size" = "1 MB" }')
    found = checked(file, "--engine", "model,sim")
    assert [one["verdict"] for one in found.document["expectations"]] == ["not evaluated", "held"]
    assert found.code == 3


def test_what_the_algorithm_given_does_not_keep_is_not_evaluated(tmp_path: Path):
    """A mistake of the file is one with any algorithm and engine."""
    run = RUN.replace('cc = "cubic"', 'cc = "bbr"')
    kept = 'eventually = "{}.1 is Drain"'
    file = written(tmp_path, kept.format("state"), 'metric = "goodput.1"\nabove = "1 Mbit/s"', run=run)
    found = checked(file, "--cc", "cubic")
    assert [one["verdict"] for one in found.document["expectations"]] == ["not evaluated", "held"]
    assert found.document["expectations"][0]["reason"] == "cubic does not keep state"
    assert found.code == 3
    again = checked(file, "--cc", "cubic", "--against", tmp_path / "check", "--out", tmp_path / "again")
    assert again.code == 3, again.err
    found = checked(file, "--engine", "model")
    assert found.document["expectations"][0]["reason"] == "the engine model does not record state"
    # So is one whose settings the algorithm does not know.
    own = 'metric = "goodput.1"\nabove = "1 Mbit/s"\nover = { "flow.0.cc.drain_rounds" = [3.0] }'
    found = checked(written(tmp_path, own, run=run), "--cc", "cubic")
    assert "flow.0.cc.drain_rounds: expected" in found.document["expectations"][0]["reason"]
    assert checked(file, "--set", "path.rtt=cubic").code == 2
    wrong = checked(written(tmp_path, kept.format("stat"), run=run), "--cc", "cubic")
    assert "found 'stat'" in wrong.err
    assert "found 'state': cubic does not keep state" in checked(written(tmp_path, kept.format("state"))).err


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ('metric = "gooodput"\nat_least = 1', "expect.0.metric: expected goodput"),
        ('metric = "goodput.3"\nat_least = 1', "expect.0.metric: expected a flow from 1 to 2, found 3"),
        ('metric = "goodput.renoo"\nat_least = 1', "expect.0.metric: expected the number of a flow, 1 to 2, or"),
        ('metric = "goodput.1"\nat_least = 5', 'expect.0.at_least: expected a quantity in bit/s such as "50 Mbit/s"'),
        (
            'metric = "goodput.1"\nat_least = "5 ms"',
            'expect.0.at_least: expected a quantity in bit/s such as "50 Mbit/s"',
        ),
        (
            'metric = "goodput.1"\nat_least = "90 % path.rat"',
            "expect.0.at_least: expected a key of the scenario",
        ),
        (
            'metric = "goodput.1"\nat_least = "90 % path.rtt"',
            "expect.0.at_least: expected a key whose value is in bit/s",
        ),
        (
            'metric = "jain"\nat_least = 0.9\nbelow = 0.5',
            "expect.0.below: expected a bound beyond at_least, 0.9, found 0.5",
        ),
        ('metric = "jain"\nabove = 1.0', "expect.0.above: expected a value that jain can have, at most 1"),
        ('metric = "top of cwnd.1"\nat_least = 1', "expect.0.metric: expected"),
        ('always = "cwnd.1 is big"', 'expect.0.always: expected a quantity in segments such as "4 segments"'),
        ('always = "cwnd.1"', "expect.0.always: expected a signal, one of"),
        (
            'always = "cwnd.1 > 9 segments and cwnd.1 < 8 segments"',
            "expect.0.always: expected a condition that can hold",
        ),
        (
            'always = "cwnd.1 > 5 segments and cwnd.1 < 5 segments"',
            "expect.0.always: expected a condition that can hold",
        ),
        (
            'eventually = "cwnd.1 > 2 segments and cwnd.1 is 1 segments"',
            "expect.0.eventually: expected a condition that can hold",
        ),
        ('always = "cwnd.1 > 2 srtt.1"', "expect.0.always: expected signals of one unit, found segments and s"),
        (
            'metric = "jain"\nat_least = 0.1\nover = { "path.rtt" = [] }',
            "expect.0.over.path.rtt: expected a list of values",
        ),
        ('metric = "jain"\nat_least = 0.1\nstatistic = "median"', "expect.0.statistic: expected mean or every"),
        ('metric = "time until cwnd.1 > 9 segments"\nat_most = "1 s"\nstatistic = "mean"', "expected median or every"),
        ('eventually = "cwnd.1 > 9 segments"\nto = "9 s"', "expect.0.to: expected a time within the duration of 4 s"),
        (
            'metric = "goodput.2"\nratio_to = { flow = [{ cc = "reno" }] }\nat_least = 1',
            "expected a flow from 1 to 1, found 2",
        ),
        ('metric = "jain"\nat_least = 0.1\nover = { "path.rt" = ["1 ms"] }', "path.rt"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line_before_anything_runs(tmp_path: Path, expectation: str, message: str):
    found = checked(written(tmp_path, expectation))
    assert found.code == 2
    assert message in found.err
    assert len(found.err.strip().splitlines()) == 1
    assert not (tmp_path / "check/runs").exists()


def test_a_file_or_a_folder_without_expectations_and_a_budget_that_is_none_are_refused(tmp_path: Path):
    file = written(tmp_path)
    assert "expected [[expect]] in it, found none" in checked(file).err
    assert "expected scenario files with [[expect]] in it, found none" in call("check", tmp_path).stderr
    file = written(tmp_path, 'metric = "jain"\nat_least = 0.1')
    assert "--budget: expected a time such as 30s, 10min or 1h" in checked(file, "--budget", "soon").err


def test_a_budget_that_ends_leaves_what_is_done(tmp_path: Path):
    file = written(tmp_path, 'metric = "utilisation"\nat_least = "90 %"', run=RUN.replace('"4 s"', '"4000 s"'))
    short = checked(file, "--budget", "0.2s")
    assert (short.code, short.document["expectations"][0]["verdict"]) == (3, "undecided")
    assert "the time was over" in short.document["expectations"][0]["reason"]


# An algorithm of one's own, and the same with one rule altered: it halves its window.
SOURCE = (EXAMPLES / "own/scalable.c").read_text()
ALTERED = SOURCE.replace("cwnd * 0.875", "cwnd * 0.5")
OWN = """metric = "goodput.1"
at_least = "1 Mbit/s"
set = { "flow.0.cc" = "lib:./scalable.c" }"""


def test_a_base_is_equal_or_changed_to_the_bit(tmp_path: Path):
    """An algorithm of one's own in two folders, as a branch and its base are."""
    for branch, text in (("base", SOURCE), ("same", SOURCE), ("other", ALTERED)):
        (tmp_path / branch).mkdir()
        (tmp_path / branch / "scalable.c").write_text(text)
        written(tmp_path / branch, OWN)
    base = checked(tmp_path / "base/x.toml")
    assert base.code == 0, base.out + base.err
    same = checked(tmp_path / "same/x.toml", "--against", tmp_path / "base/check")
    assert same.document["expectations"][0]["change"] == "equal"
    other = checked(tmp_path / "other/x.toml", "--against", tmp_path / "base/check")
    assert other.document["expectations"][0]["change"].startswith("changed in 5 of 5 runs: -")


def test_an_algorithm_that_fails_where_the_base_did_not_is_told_so(tmp_path: Path):
    for branch, text in (("base", SOURCE), ("broken", SOURCE.replace("own->a * ack->growth", "1e12"))):
        (tmp_path / branch).mkdir()
        (tmp_path / branch / "scalable.c").write_text(text)
        written(tmp_path / branch, OWN)
    assert checked(tmp_path / "base/x.toml").code == 0
    broken = checked(tmp_path / "broken/x.toml", "--against", tmp_path / "base/check")
    (one,) = broken.document["expectations"]
    assert (one["verdict"], one["change"]) == ("not evaluated", "runs failed that the base has")


def test_a_point_that_is_not_clearly_beyond_the_bound_as_one_of_many_decides_nothing():
    """It fails by itself at a level of 5 %, but one of forty may do that by chance."""
    samples = [0.94, 1.0, 0.97, 1.02, 0.98]
    fails = judged(Place("one", (None,), float, above=1.02), samples, 1, 40)
    assert (fails.holds, fails.alone) == (False, False)
    keeps = judged(Place("two", (None,), float, above=0.5), samples, 1, 40)
    judgement = SimpleNamespace(verdict=Verdict.UNDECIDED, findings={"": [fails, keeps]})
    decided = _decided(of_points(2), judgement, LABORATORY)
    assert (decided.decision, decided.places[0].decision) == (Decision.UNDECIDED, Decision.UNDECIDED)
    assert decided.reason == "a point is beyond the bound, but not clearly enough as one of 2"


def test_a_bound_that_is_exceeded_is_not_kept_by_a_tie(tmp_path: Path):
    """Timeouts are 0, which is no less than 0, and not above it."""
    found = checked(
        written(tmp_path, 'metric = "timeouts.1"\nabove = 0', 'metric = "timeouts.1"\nat_most = 0', run=STILL)
    )
    assert [one["verdict"] for one in found.document["expectations"]] == ["failed", "held"]
    # Nothing in it is random, so the second run decides; also a median.
    found = checked(written(tmp_path, 'metric = "time until cwnd.1 >= 20 segments"\nat_most = "2 s"', run=STILL))
    assert (
        found.document["expectations"][0]["verdict"],
        found.document["expectations"][0]["points"][0]["repeats"],
    ) == ("held", 2)


def test_the_command_of_a_point_of_a_sweep_runs_it(tmp_path: Path):
    run = STILL + '[sweep]\n"path.rtt" = ["10 ms", "30 ms"]\n'
    file = tmp_path / "x.toml"
    file.write_text(
        run + '[[expect]]\nsays = "x"\nmetric = "goodput.1"\nat_least = "20 Mbit/s"\nset = { name = "6.10" }\n'
    )
    (_, point) = checked(file).document["expectations"][0]["points"]
    done = call(*shlex.split(point["commands"][0])[1:], "--out", tmp_path / "again", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["flows"][0]["goodput_bit_s"] == point["value"]


CASES = sorted((EXAMPLES / "bbr").glob("*.toml"))


def test_a_bbr_whose_drain_has_no_end_in_time_fails_its_case(tmp_path: Path):
    (file,) = [case for case in CASES if "drain-time" in case.name]
    kept = call("check", file, "--out", tmp_path / "kept")
    assert kept.returncode == 0, kept.stdout
    without = call("check", file, "--set", "flow.0.cc.drain_rounds=1e9", "--out", tmp_path / "without")
    assert without.returncode == 1, without.stdout
    assert "--set flow.0.cc.drain_rounds=1e9" in without.stdout


@pytest.mark.slow
def test_bbr_holds_the_cases_of_its_draft(tmp_path: Path):
    assert [int(case.name[:2]) for case in CASES] == [*range(1, 23)]
    done = call("check", "bbr", "--out", tmp_path / "bbr")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("guest")
def test_a_kernel_tells_some_of_what_its_bbr_keeps(tmp_path: Path):
    """Its bandwidth is the path's, and the gain of its probes that of version 1."""
    kept = (
        'eventually = "max_bw.1 >= 95 % path.rate and max_bw.1 <= 105 % path.rate"',
        'metric = "max of pacing_gain.1"',
    )
    run = RUN.replace('"cubic"', '"bbr"').replace(', { cc = "reno", start = { uniform = ["0 s", "100 ms"] } }', "")
    bound = "\nat_least = 1.25\nat_most = 1.25\nfrom = '2 s'"
    found = checked(
        written(tmp_path, kept[0], kept[1] + bound, 'always = "state.1 is Startup"', run=run), "--engine", "kernel"
    )
    assert [one["verdict"] for one in found.document["expectations"]] == ["held", "held", "not evaluated"], found.out
    assert found.document["expectations"][2]["reason"] == "the engine kernel does not record state"


# The language, on samples that are written by hand.


def fake(**columns: list[float]) -> SimpleNamespace:
    """A run of one flow whose samples are a second apart."""
    count = len(next(iter(columns.values())))
    table = pa.table({"time_s": np.arange(count, dtype=float), "flow": [0] * count, **columns})
    scenario = elephan.dumbbell(rate="12 Mbit/s", rtt="20 ms", flows=elephan.flow("reno"), duration="10 s")
    summary = SimpleNamespace(from_s=0.0, to_s=float(count - 1), end_s=float(count - 1))

    def samples(_: str, only: list[str]) -> pa.Table:
        return table.select([name for name in only if name in table.column_names])

    return SimpleNamespace(scenario=scenario, summary=summary, table=samples)


def condition(text: str, run: SimpleNamespace):
    return conditions(text, run.scenario, "x")


def test_always_ends_at_until_and_begins_at_after():
    run = fake(cwnd_segments=[1.0, 5.0, 6.0, 2.0, 7.0])
    of = lambda **keys: Always(condition("cwnd.1 >= 5 segments", run), Window(), **keys).of(run)  # noqa: E731
    assert of().holds is False
    assert of().why == "at 0 s: cwnd.1 = 1 segments"
    after, until = condition("cwnd.1 >= 5 segments", run), condition("cwnd.1 < 3 segments and cwnd.1 > 1 segments", run)
    assert of(after=after, until=until).holds is True
    assert of(after=after).holds is False
    assert of(after=condition("cwnd.1 > 100 segments", run)).holds is None
    assert of(after=after, until=condition("cwnd.1 > 100 segments", run)).holds is False


def test_eventually_counts_each_time_and_leaves_out_what_the_end_cut_off():
    run = fake(cwnd_segments=[9.0, 1.0, 2.0, 9.0, 3.0, 4.0])
    after, comes = condition("cwnd.1 >= 9 segments", run), condition("cwnd.1 < 3 segments", run)
    limit = lambda seconds: lambda _, from_s: from_s + seconds  # noqa: E731
    # The second time, it does not come within a second.
    assert Eventually(comes, Window(), after, limit(1.0)).of(run).holds is False
    # Three seconds after the second time are beyond the end.
    assert Eventually(comes, Window(), after, limit(3.0)).of(run).holds is True
    assert Eventually(comes, Window(), condition("cwnd.1 > 100 segments", run), limit(1.0)).of(run).holds is None
    assert Eventually(condition("cwnd.1 > 100 segments", run), Window()).of(run).holds is False


def test_order_is_that_of_the_first_times():
    run = fake(cwnd_segments=[1.0, 5.0, 6.0, 9.0])
    steps = [condition(f"cwnd.1 > {least} segments", run) for least in (4, 8)]
    assert Order(steps, Window()).of(run).holds is True
    assert Order(steps[::-1], Window()).of(run).holds is False
    assert Order(steps, Window(), lambda _, from_s: from_s + 1).of(run).holds is False
    # To hold still is not to come to hold, and what the end cuts off has not failed.
    early, late = condition("cwnd.1 >= 1 segments", run), condition("cwnd.1 > 8 segments", run)
    assert Order([late, early], Window()).of(run).holds is False
    assert Order([early, late], Window()).of(run).holds is True
    assert Order([late, steps[0]], Window(), lambda _, from_s: from_s + 5).of(run).holds is None


def test_what_is_never_known_decides_nothing():
    run = fake(cwnd_segments=[1.0, 5.0], rto_s=[float("nan")] * 2)
    unknown, known = condition("rto.1 >= 1 ms", run), condition("cwnd.1 >= 1 segments", run)
    assert Eventually(unknown, Window()).of(run).holds is None
    assert Order([known, unknown], Window()).of(run).holds is None
    assert Always(unknown, Window()).of(run).holds is None
    assert reading("time until rto.1 >= 1 ms", run.scenario, Window(), "x").read(run) is None


def test_readings_of_samples():
    run = fake(cwnd_segments=[1.0, 5.0, 2.0, 9.0], srtt_s=[float("nan"), 0.1, 0.2, 0.3])
    read = lambda text: reading(text, run.scenario, Window(), "x").read(run)  # noqa: E731
    assert read("max of cwnd.1") == 9
    # A sample stands until the next one; the last is at the end.
    assert read("mean of srtt.1") == pytest.approx(0.15)
    assert read("share of time with cwnd.1 < 4 segments") == pytest.approx(2 / 3)
    # What is unknown is neither below nor above.
    assert read("share of time with srtt.1 < 150 ms") == pytest.approx(1 / 2)
    time = read("time until cwnd.1 > 8 segments")
    assert (time.seconds, time.seen) == (3.0, True)
    assert read("time until cwnd.1 > 9 segments").seen is False
    assert read("share of time with cwnd.1 >= 2 cwnd.1") == 0


def two_flows(**columns: list[list[float]]) -> SimpleNamespace:
    """A run of two flows whose samples are a second apart."""
    count = len(next(iter(columns.values()))[0])
    table = {"time_s": [*range(count)] * 2, "flow": [0] * count + [1] * count}
    run = fake(cwnd_segments=[1.0] * count)
    samples = pa.table({**table, **{name: [*first, *second] for name, (first, second) in columns.items()}})
    run.summary.from_s = -1.0
    run.table = lambda _, only: samples.select([name for name in only if name in samples.column_names])
    return run


def test_a_flow_starves_that_gets_less_than_a_tenth_of_an_equal_part():
    run = two_flows(goodput_bit_s=[[10.0, 10.0, 0.0, 10.0], [1.0, 0.4, 0.0, 30.0]])
    assert DERIVED["starved"].read(run, 1) == 0.25
    # Where nobody gets anything, nobody starves beside another.
    assert DERIVED["starved"].read(run, 0) == 0.0


def test_a_circuit_breaker_opens_at_ten_times_what_tcp_would_send():
    """At a loss rate of 1 % and 100 ms TCP sends 122 segments a second by the simplified equation."""
    resent = [[0, 10, 20, 30], [0, 12, 24, 36]]
    sent = [[0, 1000 * 1500, 2000 * 1500, 3000 * 1500], [0, 1200 * 1500, 2400 * 1500, 3700 * 1500]]
    run = two_flows(srtt_s=[[0.1] * 4] * 2, sent_bytes=sent, retransmits=resent)
    assert DERIVED["circuit_breaker"].read(run, 0) == 0.0
    assert DERIVED["circuit_breaker"].read(run, 1) == pytest.approx(1 / 3)


def test_harm_is_a_loss_or_a_rise():
    assert harm(10.0, 5.0, "higher") == 0.5
    assert harm(10.0, 20.0, "lower") == 0.5
    assert harm(10.0, 12.0, "higher") == pytest.approx(-0.2)
    assert harm(0.0, 5.0, "higher") is None


def test_two_of_a_kind_do_no_harm_to_themselves_against_a_slower_link(tmp_path: Path):
    harmed = 'metric = "{}"\nharm_to = {{ "path.rate" = "20 Mbit/s" }}\nat_least = {}\nat_most = {}'
    found = checked(written(tmp_path, harmed.format("goodput.1", 0.4, 0.6), harmed.format("responsiveness.1", -9, 0.1)))
    assert found.code == 0, found.out + found.err
    wrong = checked(written(tmp_path, harmed.format("max of cwnd.1", '"1 segment"', '"2 segments"')))
    assert "expected a metric of which more or less is better" in wrong.err


def test_quantities_follow_the_scenario():
    scenario = fake(cwnd_segments=[1.0]).scenario
    for text, unit, value in [
        ("90 % path.rate", "bit/s", 10.8e6),
        ("1.5 path.rtt", "s", 0.03),
        ("2 bdp", "segments", 40),
        ("50 % bdp", "B", 15_000),
        ("-2 Mbit/s", "bit/s", -2e6),
        ("40 %", "1", 0.4),
    ]:
        assert quantity(text, unit, "x").value(scenario) == pytest.approx(value), text


def test_the_trace_of_a_stack_is_judged_without_a_run(tmp_path: Path):
    """A run's own qlog stands for a stack's: what holds for the samples of the run holds for those of the log."""
    file = written(
        tmp_path,
        'metric = "max of cwnd.1"\nat_least = "20 segments"',
        'always = "cwnd.1 >= 1 segments"',
        'eventually = "srtt.1 >= 10 path.rtt"',
        'metric = "utilisation"\nat_least = "1 %"',
        'always = "queue.bottleneck <= 1000 packets"',
        run=RUN.replace(', { cc = "reno", start = { uniform = ["0 s", "100 ms"] } }', ""),
    )
    assert call("run", file, "--trace", "events", "--out", tmp_path / "run").returncode == 0
    assert call("report", tmp_path / "run", "--out", tmp_path / "own.sqlog").returncode == 0
    done = call("check", file, "--trace", tmp_path / "own.sqlog", "--format", "json")
    assert done.returncode == 1, done.stderr
    verdicts = [one["verdict"] for one in json.loads(done.stdout)]
    assert verdicts == ["held", "held", "failed", "not evaluated", "not evaluated"]
    assert not (tmp_path / "results").exists()
    both = call("check", file, "--trace", tmp_path / "own.sqlog", "--engine", "sim")
    assert (both.returncode, "--engine: expected none with --trace" in both.stderr) == (2, True)


# pytest.


def test_the_plugin_makes_a_test_of_each_expectation(tmp_path: Path):
    written(tmp_path, 'metric = "utilisation"\nat_least = "90 %"', 'metric = "goodput.1"\nat_least = "20 Mbit/s"')
    (tmp_path / "test_own.py").write_text(
        "import pytest\n\n"
        '@pytest.mark.engines("sim", "model")\n'
        "def test_share(elephan_run):\n"
        '    run = elephan_run("x.toml", {"flow.1.start": "0 s"})\n'
        "    assert run.summary.utilisation > 0.5\n"
    )
    command = [sys.executable, "-m", "pytest", "--quiet", "--strict-markers", "x.toml", "test_own.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "elephan run" in done.stdout


@pytest.mark.slow
def test_the_steps_of_the_action(tmp_path: Path):
    """What a runner of GitHub does with action.yml, for a project with an algorithm of its own."""
    import yaml

    action = yaml.safe_load(Path("action.yml").read_text())
    project, origin, temp = tmp_path / "project", tmp_path / "origin", tmp_path / "temp"
    for folder in (project, temp):
        folder.mkdir()
    git = lambda *words: subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)  # noqa: E731
    (project / "scalable.c").write_text(SOURCE)
    written(project, OWN)
    git("init", "--quiet", "--initial-branch", "main")
    git("-c", "user.name=x", "-c", "user.email=x@example.org", "add", ".")
    git("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "-m", "base")
    shutil.copytree(project, origin)
    git("remote", "add", "origin", str(origin))
    (project / "scalable.c").write_text(ALTERED)
    # The package that is tested stands for what pip would install.
    for name in ("elephan", "elephan-base"):
        (temp / name / "bin").mkdir(parents=True)
        (temp / name / "bin/elephan").symlink_to(Path(sys.executable).parent / "elephan")
    inputs = {"FILES": "x.toml", "BASE": "main", "OPTIONS": "", "INSTALL": "elephan"}
    steps = {step["name"]: step["run"] for step in action["runs"]["steps"]}
    assert set(steps) == {"Install", "Check the base", "Check"}
    for name in ("Check the base", "Check"):
        script = "\n".join(line for line in steps[name].splitlines() if "venv" not in line and "bin/pip" not in line)
        summary = tmp_path / "summary.md"
        environment = {"PATH": "/usr/bin:/bin", "RUNNER_TEMP": str(temp), "GITHUB_STEP_SUMMARY": str(summary), **inputs}
        run = ["bash", "-e", "-c", script]
        done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "changed in 5 of 5 runs: -" in summary.read_text()
    assert Xml.parse(temp / "check.xml").getroot().find("testsuite/testcase") is not None


def transfers_of(*rows: tuple[int, float, float | None, int], crowds: tuple[str, ...] = ("web",)) -> SimpleNamespace:
    """A run of one flow and of crowds with these transfers: flow, start, end in s, and bytes; measured from 1 to 9 s."""
    names = ("flow", "start_s", "end_s", "bytes")
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    summary = SimpleNamespace(
        from_s=1.0, to_s=9.0, flows=["one"], crowds=[SimpleNamespace(label=label) for label in crowds]
    )
    return SimpleNamespace(summary=summary, table=lambda _, only: table.select(only))


def test_quartiles_are_of_the_sizes_of_the_transfers_that_began_in_the_window():
    # Sizes of 1 to 8 kB take 1 to 8 s; the seventh does not end.
    ends = [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, None, 16.0]
    rows = [(1, float(size), end, 1000 * size) for size, end in enumerate(ends, 1)]
    others = [(0, 2.0, 3.0, 50), (1, 0.5, 5.0, 1), (1, 9.0, 10.0, 10**6)]
    run = transfers_of(*rows, *others)

    def read(name: str, members: tuple[int, ...] = (1,)) -> float | None:
        return OF_TRANSFERS[name].read(run, members)

    assert [read(f"completion_q{number}") for number in (1, 2, 3, 4)] == [1.5, 3.5, 5.5, 8.0]
    assert [read(f"finished_q{number}") for number in (1, 2, 3, 4)] == [1.0, 1.0, 1.0, 0.5]
    # 1 and 2 kB in 1 and 2 s.
    assert read("goodput_q1") == 8000.0
    assert read("goodput_q4") == 8000.0
    assert [read(f"{name}_q1", (2,)) for name in ("completion", "finished", "goodput")] == [None] * 3
    # All of one size are in the first quartile.
    same = transfers_of((1, 2.0, 3.0, 10), (1, 3.0, 5.0, 10))
    assert OF_TRANSFERS["completion_q1"].read(same, (1,)) == 1.5
    assert OF_TRANSFERS["completion_q2"].read(same, (1,)) is None


def test_gain_and_loss_by_quartile_are_ratios_to_a_run_of_standard_tcp():
    camps = [
        {"cc": cc, "per_second": 2.0, "size": "5 kB", "label": label} for cc, label in (("reno", "a"), ("cubic", "b"))
    ]
    document = tomllib.loads(RUN)
    scenario = elephan.load({**document, "arrivals": camps})
    base = transfers_of(*((2, 1.0 + n, 2.0 + n, 1000 * n) for n in range(1, 5)), crowds=("x", "a"))
    mixed = transfers_of(*((2, 1.0 + n, 1.0 + 3 * n, 1000 * n) for n in range(1, 5)), crowds=("x", "a"))
    for name, better, expected in (
        ("completion_q1.a", "lower", [2.0, 1.0]),
        ("completion_q4.a", "lower", [8.0, 1.0]),
        ("goodput_q4.a", "higher", [4000.0, 32000.0]),
    ):
        found = reading(name, scenario, Window(), "x")
        assert [found.read(mixed), found.read(base), found.better] == [*expected, better]
    # Ware et al. 2019: the rise of a time as a share of itself.
    assert harm(1.0, 8.0, "lower") == 0.875
    with pytest.raises(elephan.ScenarioError, match="found 'goodput_q5'"):
        reading("goodput_q5.a", scenario, Window(), "x")
    without = elephan.load({**document, "trace": {"transfers": False}})
    with pytest.raises(elephan.ScenarioError, match=r"expected trace\.transfers = true"):
        reading("goodput_q1.1", without, Window(), "x")
