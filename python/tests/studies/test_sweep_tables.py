"""Tables, comparisons and queries of a sweep, as users request them."""

import csv
import io
import shlex
from pathlib import Path

import polars as pl
import pytest
from command_line import call
from sweep_scenarios import SMALL, fail_at, small

import elephan
from elephan.studies.statistics import Estimate
from elephan.studies.sweeps.query import query
from elephan.studies.sweeps.tables import records


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return elephan.sweep(small(sweep__repeat="4"), tmp_path_factory.mktemp("grid") / "out").run().folder


def fairness(folder: Path, rtt: str, cc: str) -> list[float]:
    return elephan.Dataset(folder).runs().filter(rtt=rtt, cc=cc)["fairness"].to_list()


def test_rows_and_columns_in_the_order_of_the_file(grid: Path):
    (made,) = elephan.studies.sweeps.table(grid, rows=["path.rtt"], cols=["flow.cc"], metrics=["fairness"])
    assert [head.line for head in made.head] == ["path.rtt", "reno", "htcp"]
    assert [line[0] for line in made.rows] == ["10 ms", "20 ms", "40 ms"]
    assert made.rows[1][2] == Estimate.of(fairness(grid, "20 ms", "htcp"), within=(0, 1)).text(2)
    # Short names are accepted as well.
    assert elephan.studies.sweeps.table(grid, rows=["rtt"], cols=["cc"], metrics=["fairness"]) == [made]


def test_metrics_are_columns_where_there_are_none(grid: Path):
    (made,) = elephan.studies.sweeps.table(grid, metrics=["goodput", "queueing"])
    assert [head.line for head in made.head] == [
        "path.rtt",
        "flow.cc",
        "goodput (Mbit/s, application bytes)",
        "queueing (ms, mean)",
    ]
    assert len(made.rows) == 6


def test_a_flow_has_metrics_of_its_own(grid: Path):
    wanted = ["goodput.1", "goodput.2", "share.2", "cwnd.1"]
    (made,) = elephan.studies.sweeps.table(grid, metrics=wanted)
    heads = ("goodput, flow 1 (Mbit/s)", "goodput, flow 2 (Mbit/s)", "share, flow 2 (% of goodput)")
    assert [head.line for head in made.head][2:] == [*heads, "mean cwnd, flow 1 (segments)"]
    found = {(one["path.rtt"], one["flow.cc"], one["metric"]): one for one in records(grid, metrics=wanted)}
    flows = elephan.Dataset(grid).flow_summaries().filter(pl.col("path.rtt") == "20 ms", pl.col("flow.cc") == "htcp")
    goodput = [flows.filter(flow=flow)["goodput_bit_s"] for flow in (0, 1)]
    assert found["20 ms", "htcp", "goodput.2"]["mean"] == pytest.approx(goodput[1].mean())
    assert found["20 ms", "htcp", "share.2"]["mean"] == pytest.approx((goodput[1] / (goodput[0] + goodput[1])).mean())
    assert {found["20 ms", "htcp", one]["unit"] for one in wanted} == {"bit/s", "1", "segments"}
    shown = query(grid, "select max(goodput_bit_s) from flow_summaries")
    assert shown.schema.field(0).metadata == {b"unit": b"bit/s"}
    with pytest.raises(elephan.ScenarioError, match=r"^goodput\.3: expected a flow: a number from 1 to 2, or one of"):
        elephan.studies.sweeps.table(grid, metrics=["goodput.3"])


def test_settings_are_not_mixed_in_a_cell(grid: Path):
    with pytest.raises(
        elephan.ScenarioError, match=r"^flow\.cc: expected it in rows, cols or where, found several values"
    ):
        elephan.studies.sweeps.table(grid, rows=["path.rtt"], metrics=["fairness"])
    (made,) = elephan.studies.sweeps.table(grid, rows=["path.rtt"], metrics=["fairness"], where={"flow.cc": "htcp"})
    assert len(made.rows) == 3


def test_zipped_keys_may_be_left_out(tmp_path: Path):
    text = SMALL.split("[sweep]")[0] + (
        '[sweep.zip]\n"path.rate" = ["5 Mbit/s", "10 Mbit/s"]\n"path.buffer" = ["10 packets", "20 packets"]\n'
    )
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    elephan.sweep(path, tmp_path / "out").run()
    (made,) = elephan.studies.sweeps.table(tmp_path / "out", rows=["path.rate"], metrics=["goodput"])
    assert [line[0] for line in made.rows] == ["5 Mbit/s", "10 Mbit/s"]


def test_names_that_are_none_are_refused(grid: Path):
    with pytest.raises(elephan.ScenarioError, match=r"^metrics: expected fairness, .*, found 'fairnes'"):
        elephan.studies.sweeps.table(grid, metrics=["fairnes"])
    with pytest.raises(elephan.ScenarioError, match=r"^where: flow\.cc: expected one of reno, htcp, found 'bic'"):
        elephan.studies.sweeps.table(grid, where={"flow.cc": "bic"})
    with pytest.raises(elephan.SweepError, match="expected the folder of a sweep"):
        elephan.studies.sweeps.table(grid / "flows")
    # A command names its own options.
    for words in (("table", grid, "--where", "flow.cc=bic"), ("paired", grid, "--between", "flow.cc=bic,reno")):
        assert call("sweep", *words).stderr == f"{words[2]}: flow.cc: expected one of reno, htcp, found 'bic'\n"


def test_a_text_alone_is_one_item_and_quantities_are_compared_as_such(grid: Path):
    (listed,) = elephan.studies.sweeps.table(grid, rows=["flow.cc"], metrics=["goodput"], where={"path.rtt": "20 ms"})
    (alone,) = elephan.studies.sweeps.table(grid, rows="flow.cc", metrics="goodput", where={"path.rtt": "0.02s"})
    assert alone == listed
    (numbers,) = elephan.studies.sweeps.table(grid, cols="flow.cc", metrics="goodput", where={"rtt_s": 0.02})
    assert [head.line for head in numbers.head] == ["path.rtt", "reno", "htcp"]
    pairs = [
        elephan.studies.sweeps.paired(grid, key="path.rtt", first="10 ms", second=second, metric="goodput")
        for second in ("20 ms", "0.02 s")
    ]
    assert pairs[0] == pairs[1]


def test_a_query_is_of_all_runs(grid: Path):
    done = call("sweep", "query", grid, "select cc, rtt, avg(goodput) from runs group by all", "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = {
        (row["cc"], row["rtt"]): float(row["avg(goodput) (bit/s)"]) for row in csv.DictReader(io.StringIO(done.stdout))
    }
    frame = elephan.Dataset(grid).runs().group_by("cc", "rtt").agg(pl.col("goodput").mean())
    assert rows == {(cc, rtt): pytest.approx(goodput) for cc, rtt, goodput in frame.iter_rows()}


def test_samples_can_be_joined(grid: Path):
    from elephan.studies.sweeps.query import query

    sql = "select cc, max(cwnd_segments) as most from flows join runs using (run) where rtt_s > 0.03 group by all order by cc"
    rows = query(grid, sql).to_pylist()
    assert [row["cc"] for row in rows] == ["htcp", "reno"]
    assert all(row["most"] > 20 for row in rows)
    sql = "select json_extract(summary, '$.flows[0].label') as label from summaries limit 1"
    assert query(grid, sql).to_pylist()[0]["label"] in ('"reno"', '"htcp"')


def test_without_a_query_columns_have_units_and_meanings(grid: Path):
    rows = query(grid).to_pylist()
    assert [row for row in rows if not row["meaning"].endswith(".")] == []
    known = {(row["table_name"], row["column_name"]): (row["unit"], row["meaning"]) for row in rows}
    assert known["flow_summaries", "retransmitted_bytes"] == ("B", "Payload bytes retransmitted.")
    assert known["runs", "jain"] == ("1", "Jain's index of the flows' goodputs.")
    assert known["runs", "rtt"] == (None, "path.rtt of the scenario.")
    assert known["runs", "rtt_s"] == ("s", "path.rtt of the scenario, as a number.")
    # The query at the end can be carried out.
    line = call("query", grid).stdout.splitlines()[-1]
    words = shlex.split(line.removeprefix("for example: elephan "))
    assert len(call(*words, "--format", "csv").stdout.splitlines()) == 1 + 6


def test_a_query_that_is_none_is_one_line_with_code_2(grid: Path):
    done = call("sweep", "query", grid, "select speed from runs")
    assert done.returncode == 2
    assert 'query: Binder Error: Referenced column "speed" not found' in done.stderr
    assert "Traceback" not in done.stderr


def test_csv_has_estimates_as_numbers(grid: Path):
    options = ["--rows", "path.rtt", "--cols", "flow.cc", "--metric", "fairness", "--format", "csv"]
    lines = list(csv.DictReader(io.StringIO(call("sweep", "table", grid, *options).stdout)))
    mine = next(line for line in lines if (line["path.rtt"], line["flow.cc"]) == ("40 ms", "reno"))
    estimate = Estimate.of(fairness(grid, "40 ms", "reno"), within=(0, 1))
    assert (float(mine["mean"]), float(mine["high"])) == (estimate.mean, estimate.high)
    assert (mine["metric"], mine["unit"], mine["values"]) == ("fairness", "1", "4")
    medians = call("sweep", "table", grid, *options, "--stat", "median").stdout
    assert medians.splitlines()[0].endswith("mean,median,standard_error,low,high,values,repeats")


def test_a_paired_comparison(grid: Path):
    done = call("sweep", "paired", grid, "--between", "flow.cc=htcp,reno", "--metric", "fairness", "--format", "csv")
    assert done.returncode == 0, done.stderr
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [line["path.rtt"] for line in lines] == ["10 ms", "20 ms", "40 ms"]
    first, second = fairness(grid, "20 ms", "htcp"), fairness(grid, "20 ms", "reno")
    differences = Estimate.of([a - b for a, b in zip(first, second, strict=True)])
    assert (lines[1]["pairs"], lines[1]["first"], lines[1]["second"]) == ("4", "htcp", "reno")
    told = [float(lines[1][name]) for name in ("first_mean", "difference", "low", "high")]
    assert told == pytest.approx([sum(first) / 4, differences.mean, differences.low, differences.high])
    shown = call("sweep", "paired", grid, "--between", "flow.cc=htcp,reno", "--metric", "fairness").stdout
    assert differences.text(4) in shown
    done = call("sweep", "paired", grid, "--between", "flow.cc=htcp")
    assert done.returncode == 2
    assert "--between: expected KEY=FIRST,SECOND, found 'flow.cc=htcp'" in done.stderr


def test_failed_runs_do_not_count_and_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fail_at(monkeypatch, lambda document: document["seed"] == 2 and document["path"]["rtt"] == "10 ms")
    folder = elephan.sweep(small(), tmp_path / "out").run().folder
    done = call("sweep", "table", folder, "--format", "csv", "--metric", "goodput")
    assert "2 runs failed and are not included" in done.stderr
    assert [line["values"] for line in csv.DictReader(io.StringIO(done.stdout))] == ["1", "1", "2", "2", "2", "2"]


def test_keys_that_end_alike_keep_their_names(tmp_path: Path):
    text = SMALL.split("[sweep]")[0] + '[sweep]\n"flow.0.cc" = ["reno", "htcp"]\n"flow.1.cc" = ["reno", "bic"]\n'
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    frame = elephan.sweep(path, tmp_path / "out").run().to_polars()
    assert frame.select("flow_0_cc", "flow_1_cc", "cc").rows() == [
        ("reno", "reno", "reno"), ("reno", "bic", "reno+bic"), ("htcp", "reno", "htcp+reno"), ("htcp", "bic", "htcp+bic"),
    ]  # fmt: skip


def test_a_query_has_units_only_where_they_are_certain(grid: Path):
    from elephan.studies.sweeps.query import query

    def units(sql: str) -> list[str]:
        return [(one.metadata or {}).get(b"unit", b"").decode() for one in query(grid, sql).schema]

    assert units("select cc, rtt_s, goodput, avg(goodput), count(*) from runs group by all") == [
        "",
        "s",
        "bit/s",
        "bit/s",
        "",
    ]
    assert units("select goodput / 1e6 as goodput from runs") == [""]
    assert units("select goodput from (select goodput / 1e6 as goodput from runs)") == [""]
    assert units("select srtt_s, cwnd_segments from flows limit 1") == ["s", "segments"]


def test_tables_have_the_version_of_an_algorithm_and_records_its_name(tmp_path: Path):
    document = {
        "name": "versions", "duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "10 ms"}, "flow": [{"cc": "reno"}],
        "sweep": {"flow.cc": ["bbr", "reno"]},
    }  # fmt: skip
    done = elephan.sweep(document, tmp_path / "out").run()
    (made,) = elephan.studies.sweeps.table(done.folder, metrics="goodput")
    assert [row[0] for row in made.rows] == ["bbr (v3)", "reno"]
    assert [one["flow.cc"] for one in records(done.folder, metrics=["goodput"])] == ["bbr", "reno"]
    printed = call(
        "run", "two-flows", "--set", "flow.cc=bbr", "--set", "duration=30s", "--out", tmp_path / "run"
    ).stdout
    assert printed.count("bbr (v3)") == 2
