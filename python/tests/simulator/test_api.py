"""The Python interface: scenarios, runs, results."""

import itertools
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

import elephan
from elephan.api.metrics import METRICS
from elephan.api.registry import cc_groups, cc_text, modelled
from elephan.studies.recommend import PUBLISHED


def small(**keys):
    flows = keys.pop("flows", [elephan.flow("htcp"), elephan.flow("reno", start="1 s")])
    defaults = {"rate": "20 Mbit/s", "rtt": "20 ms", "buffer": "50% bdp", "duration": "5 s", "seed": 1}
    return elephan.dumbbell(flows=flows, **{**defaults, **keys})


@pytest.fixture(scope="module")
def run():
    return elephan.run(small())


def test_a_run_has_a_summary_with_types(run):
    assert isinstance(run.summary, elephan.Summary)
    assert 0.5 < run.summary.utilisation <= 1.0
    assert [flow.label for flow in run.summary.flows] == ["htcp", "reno"]
    assert run.summary.from_s == 1.0


def test_frames_have_the_columns_of_the_field(run):
    assert {
        "time_s",
        "flow",
        "label",
        "cwnd_segments",
        "ssthresh_segments",
        "srtt_s",
        "goodput_bit_s",
        "retransmits",
    } <= set(run.flows.columns)
    late = run.flows.filter(pl.col("flow") == 1)
    assert late["time_s"].min() >= 1.0
    assert set(run.queues["link"].unique()) == {"bottleneck", "bottleneck.reverse"}


def test_timeouts_that_a_kernel_does_not_report_are_null(run):
    flows = run.columns["flows"]
    unknown = {**run.columns, "flows": {**flows, "timeouts": np.full_like(flows["timeouts"], 2**32 - 1)}}
    assert run.flows["timeouts"].null_count() == 0
    frame = replace(run, columns=unknown).flows
    assert frame["timeouts"].null_count() == len(frame)
    assert frame["timeouts"].dtype == pl.UInt32


def test_what_is_not_known_yet_is_null_and_enters_no_mean():
    # A connection for each transfer: nothing is measured in its first round trip.
    flows = [{"cc": "reno", "size": "20 kB", "transfers": "repeat"}]
    keys = {"rtt": "100 ms", "duration": "10 s", "cbr": [{"rate": "1 Mbit/s"}], "trace": {"events": True}}
    short = elephan.run(small(flows=flows, **keys))
    srtt_s = short.flows["srtt_s"]
    assert 0 < srtt_s.null_count() < len(srtt_s)
    assert 0.1 <= srtt_s.min() <= short.summary.flows[0].srtt_mean_s < 0.11
    assert np.isnan(srtt_s.to_numpy()).sum() == srtt_s.null_count()
    of_stream = short.events["flow"] == 1
    assert short.events.filter(of_stream)["cwnd_segments"].null_count() == of_stream.sum() > 0
    assert short.events.filter(~of_stream)["cwnd_segments"].null_count() == 0
    unfinished = short.transfers["end_s"].null_count()
    assert unfinished == (short.transfers["index"] > short.summary.transfers.count - 1).sum()


def test_a_link_that_nothing_crossed_has_no_delay():
    idle = elephan.run(small(flows=[{"cc": "reno", "start": "4 s"}], measure={"from": "1 s", "to": "3 s"}))
    assert idle.summary.queue_delay_mean_s is None
    assert idle.summary.links[0].queue_delay_p99_s is None


def test_goodput_in_the_frame_adds_up_to_the_bytes_delivered(run):
    first = run.flows.filter(pl.col("flow") == 0)
    total = first["goodput_bit_s"].sum() * 0.1 / 8
    assert total == pytest.approx(first["delivered_bytes"].max(), rel=1e-6)


def test_one_seed_gives_one_result_on_any_number_of_threads():
    lossy = [small(path={"loss": {"name": "random", "probability": 1e-3}}, seed=seed) for seed in (3, 4, 3)]
    one, two = elephan.run_many(lossy, threads=1), elephan.run_many(lossy, threads=2)
    assert [run.summary for run in one] == [run.summary for run in two]
    assert one[0].summary == one[2].summary != one[1].summary
    assert one[0].flows.equals(elephan.run(lossy[0]).flows)


def test_a_run_on_two_threads_has_the_results_of_one():
    one, two = (elephan.run(small(path={"access_rate": "100 Mbit/s"}), threads=threads) for threads in (1, 2))
    assert one.summary == two.summary
    assert one.flows.equals(two.flows)
    assert one.queues.equals(two.queues)
    with pytest.raises(elephan.ScenarioError, match="threads: expected 1 with the engine model, found 2"):
        elephan.run(small(engine="model"), threads=2)


def test_a_scenario_is_its_document():
    made = small()
    for again in (elephan.Scenario(made.document), elephan.Scenario(made.to_json()), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert again.plan == made.plan
        assert elephan.run(again).summary == elephan.run(made).summary
    assert made != small(seed=2)
    # What cannot be run has a document, too.
    wrong = elephan.Scenario({**made.document, "x": 1})
    assert wrong.document["x"] == 1
    with pytest.raises(elephan.ScenarioError, match="scenario: x: expected one of the keys"):
        elephan.run(wrong)


def test_results_are_read_as_they_were_written(run, tmp_path: Path):
    folder = run.save(tmp_path / "results")
    again = elephan.Run.load(folder)
    assert again.summary == run.summary
    assert again.flows.equals(run.flows)
    assert again.scenario == run.scenario
    assert sorted(path.name for path in folder.iterdir()) == [
        "flows.parquet", "queues.parquet", "run.json", "summary.json", "transfers.parquet",
    ]  # fmt: skip
    field = pq.read_schema(folder / "flows.parquet").field("cwnd_segments")
    assert field.metadata[b"unit"] == b"segments"


def test_mistakes_name_key_found_and_expected():
    with pytest.raises(elephan.ScenarioError) as error:
        small(rtt="20")
    assert str(error.value) == 'scenario: path.rtt: expected a time such as "82 ms", found "20"'
    with pytest.raises(elephan.ScenarioError, match=r'flow\.0\.cc: expected fast, or another of \d+, found "fastest"'):
        small(flows=[elephan.flow("fastest")])


def test_a_scenario_is_a_file_a_document_or_itself(tmp_path: Path):
    made = small(duration="2 s")
    file = tmp_path / "first.json"
    file.write_text(made.to_json())
    document = {**made.document, "seed": np.int64(1)}
    for source in (made, file, str(file), document):
        assert elephan.run(source).summary == elephan.run(made).summary
        assert [run.scenario for run in elephan.run_many(source)] == [made]
        assert elephan.load(source, {"seed": "2"}) == small(duration="2 s", seed=2)
        swept = {**elephan.load(source).document, "sweep": {"path.rtt": ["10 ms", "20 ms"]}}
        assert elephan.sweep(swept, tmp_path).points == 2
    with pytest.raises(elephan.ScenarioError, match=r"^scenario: x: expected one of the keys"):
        elephan.run({**document, "x": 1})
    with pytest.raises(elephan.ScenarioError, match=r"^scenario: expected numbers, texts, .*, found \{1\}$"):
        elephan.run({**document, "seed": {1}})
    with pytest.raises(elephan.ScenarioError, match=r"^scenario: expected a file, .*, found 3$"):
        elephan.run(3)  # type: ignore[arg-type]
    assert small(flows=elephan.flow("reno")) == small(flows=[elephan.flow("reno")])


def test_progress_rises_to_the_end():
    seen = []
    elephan.run_many([small(duration="1000 s", seed=seed) for seed in range(4)], progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == 1.0


def test_an_exception_in_a_callback_stops_the_runs_and_is_raised():
    def stop(_share):
        raise ZeroDivisionError

    # Hours of computing.
    long = small(duration="100000 s", rate="1 Gbit/s", trace={"interval": "1000 s"}, measure={"interval": "1000 s"})
    for run in (lambda: elephan.run(long, progress=stop), lambda: elephan.run_many([long] * 3, progress=stop)):
        with pytest.raises(ZeroDivisionError):
            run()


def test_many_flows_are_sampled_less_often_and_measured_as_before(tmp_path: Path):
    flows = [elephan.flow("reno", count=1001, start={"uniform": ["0 s", "1 s"]})]
    made = {
        name: elephan.run(small(flows=flows, duration="3 s", rate="100 Mbit/s", **keys))
        for name, keys in {"default": {}, "often": {"trace": {"interval": "100 ms"}}}.items()
    }
    assert made["default"].summary == made["often"].summary
    for name, interval_s in {"default": 0.2, "often": 0.1}.items():
        times = made[name].flows["time_s"].unique().sort()
        assert times.diff()[1:].to_list() == pytest.approx([interval_s] * (len(times) - 1))
        folder = made[name].save(tmp_path / name)
        assert json.loads((folder / "run.json").read_text())["trace_interval"] == f"{1000 * interval_s:g} ms"


def test_plots_are_figures(run):
    for what in ("cwnd", "goodput", "srtt", "queue"):
        assert isinstance(run.plot(what), Figure)
    with pytest.raises(ValueError, match="expected one of cwnd"):
        run.plot("colour")


def test_transfers_are_listed():
    run = elephan.run(small(flows=[elephan.flow("reno", size="50 kB", transfers="repeat")]))
    done = run.transfers.filter(pl.col("end_s").is_not_nan())
    assert len(done) > 5
    assert (done["end_s"] > done["start_s"]).all()
    assert run.summary.transfers.count <= len(done)


def test_a_plan_has_the_links_that_each_flow_crosses():
    link = {"name": "only", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "1 ms"}
    flows = [{"cc": "reno", "from": "a", "to": "b", "count": 2}, {"cc": "reno", "from": "b", "to": "a"}]
    plan = elephan.Scenario({"duration": "1 s", "link": [link], "flow": flows}).plan
    crossed = [[plan["links"][number]["name"] for number in route] for route in plan["routes"]]
    assert crossed == [["only"], ["only"], ["only.reverse"]]


def test_events_are_kept_on_request():
    run = elephan.run(small(duration="2 s", trace={"events": True}))
    assert {"send", "ack", "receive"} <= set(run.events["kind"].unique())
    assert elephan.run(small(duration="2 s")).events.is_empty()


def test_the_state_of_congestion_control_is_kept_on_request_with_names(tmp_path: Path):
    flows = [elephan.flow("bbr"), elephan.flow("cubic"), elephan.flow("reno")]
    made = elephan.run(small(flows=flows, duration="8 s", trace={"variables": True}))
    run = elephan.Run.load(made.save(tmp_path / "kept"))
    assert run.variables.equals(made.variables)
    kept = {one.name: [variable.name for variable in one.variables] for one in elephan.algorithms()}
    for flow, name in enumerate(["bbr", "cubic", "reno"]):
        of_flow = run.variables.filter(pl.col("flow") == flow)
        assert of_flow["variable"].unique(maintain_order=True).to_list() == kept[name]
        assert set(of_flow["label"]) == ({name} if kept[name] else set())
    state = run.variables.filter(pl.col("variable") == "state")
    entered = state.filter(pl.col("value_name") != pl.col("value_name").shift(fill_value=""))
    assert entered["value_name"][:2].to_list() == ["Startup", "Drain"]
    # Times of ACKs, not of samples.
    assert all(abs(time_s * 10 - round(time_s * 10)) > 1e-6 for time_s in entered["time_s"][1:])
    quantities = run.variables.filter(pl.col("variable").is_in(["max_bw", "w_est"]))
    assert quantities["value_name"].null_count() == len(quantities)
    # One row of each at a time, so that they can be put side by side.
    wide = run.variables.pivot("variable", index=["flow", "time_s"], values="value")
    assert wide.height < run.variables.height / 5
    without = elephan.run(small(flows=flows, duration="8 s"))
    assert without.variables.is_empty()
    assert without.flows.equals(made.flows)
    assert without.queues.equals(made.queues)
    assert without.summary == made.summary


def test_the_picture_of_variables_has_a_panel_for_each(tmp_path: Path):
    flows = [elephan.flow("bbr"), elephan.flow("cubic")]
    run = elephan.run(small(flows=flows, duration="8 s", trace={"variables": True}))
    picture = run.picture("variables")
    panels = {panel.id: panel for panel in picture.panels}
    assert {"state", "pacing_gain", "max_bw", "w_max"} <= set(panels)
    assert "Startup" in dict(panels["state"].y.ticks).values()
    assert [line.name for line in panels["w_max"].series] == ["flow 2: cubic"]
    assert panels["max_bw"].y.label == "max_bw (segments/s)"
    # Each value holds until the next.
    assert panels["state"].series[0].y[0] == panels["state"].series[0].y[1]
    bound = np.array(panels["bw_shortterm"].series[0].y)
    assert np.isnan(bound[0])
    assert np.isfinite(bound).any()
    assert not np.isinf(bound).any()
    assert "idle_restart is always false" in picture.note
    run.plot("variables").savefig(tmp_path / "variables.png")
    with pytest.raises(elephan.ScenarioError, match=r"^variables: expected a run with trace.variables = true"):
        elephan.run(small(flows=[elephan.flow("reno")], trace={"variables": True})).plot("variables")


def test_every_algorithm_runs():
    for algorithm in elephan.algorithms():
        run = elephan.run(small(flows=[elephan.flow(algorithm.name)], duration="10 s"))
        assert run.summary.utilisation > 0.5, algorithm.name


def test_what_a_scenario_names_is_described():
    kinds = (
        elephan.algorithms,
        elephan.linux_algorithms,
        elephan.slow_starts,
        elephan.recoveries,
        elephan.queues,
        elephan.traffic,
    )
    for entries in (kind() for kind in kinds):
        assert len({entry.name for entry in entries}) == len(entries)
        assert all(entry.title and entry.source for entry in entries)
        assert all(parameter.meaning and parameter.range for entry in entries for parameter in entry.parameters)
    implied = {entry.name: dict(entry.implies) for entry in elephan.algorithms() if entry.implies}
    assert implied == {name: {"recovery": name} for name in ("tahoe", "newreno", "sack")}
    assert {name for found in implied.values() for name in found.values()} <= {e.name for e in elephan.recoveries()}


def test_every_name_of_an_algorithm_has_a_group():
    groups = {title: [entry.name for entry in entries] for title, entries in cc_groups().items()}
    choice, tables = elephan.schema()["$defs"]["Algorithm"]["anyOf"][:2]
    # A kernel's own algorithms can be named without a prefix where Elephan has none of that name.
    plain = [
        name for name in choice["enum"] if f"linux:{name}" in choice["enum"] and name not in groups["Elephan's own"]
    ]
    assert sorted([*plain, *itertools.chain(*groups.values())]) == sorted(choice["enum"])
    keys = {table["properties"]["name"]["const"]: set(table["properties"]) - {"name"} for table in tables["oneOf"]}
    assert all(
        {p.name for p in one.parameters} == keys[one.name] for entries in cc_groups().values() for one in entries
    )


def test_chunks_of_applications_are_transfers():
    run = elephan.run(elephan.load("application-limited", {"duration": "20 s"}))
    chunks = run.transfers.filter(pl.col("end_s").is_not_null())
    of_video = chunks.filter(pl.col("flow").is_between(1, 4))
    # 30 frames a second; of 8 kB at least, and each 60th of 80 kB.
    assert 4 * 595 <= len(of_video) <= 4 * 601
    assert of_video.filter(pl.col("index") % 60 == 0)["bytes"].unique().to_list() == [80_000]
    assert of_video.filter(pl.col("index") % 60 != 0)["bytes"].is_between(8_000, 16_000).all()
    # A round trip at least, and its own queue beside the bulk transfer.
    delays = of_video["end_s"] - of_video["start_s"]
    assert (delays > 0.04).all()
    assert (delays < 0.1).sum() > len(delays) / 2
    assert set(chunks["flow"].unique()) == {1, 2, 3, 4, 5, 6}
    assert run.summary.transfers is not None
    assert run.summary.transfers.count == len(chunks)
    assert run.summary.flows[1].goodput_bit_s < 5e6 < run.summary.flows[0].goodput_bit_s


def test_models_are_those_of_the_simplest_algorithm_that_responds_alike():
    models = {entry.name: entry.model for entry in elephan.algorithms()}
    assert models["sack"] == models["tahoe"] == "reno"
    assert models["hstcp-fc"] == "hstcp"
    assert models["vegas"] is None
    assert modelled() == ("reno", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp", "cubic")
    assert {name for names in PUBLISHED.values() for name in names} <= set(models)


def test_the_schema_accepts_what_the_parser_accepts():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(elephan.schema())
    for path in Path("python/elephan/examples").glob("*.toml"):
        validator.validate(elephan.load(path).document)
    document = json.loads(small().to_json())
    for key, value in (("duration", "5"), ("colour", "red"), ("flow", [{"cc": "fastest"}])):
        assert not validator.is_valid({**document, key: value}), key


def test_a_comparison_draws_the_same_numbers_for_all(tmp_path: Path):
    result = elephan.compare(
        cc=["reno", "htcp"], rate="20 Mbit/s", rtt="20 ms", duration="10 s", repeat=2, start_within="5 s"
    )
    starts = {name: [run.summary.flows[1].start_s for run in runs] for name, runs in result.runs.items()}
    assert starts["reno"] == starts["htcp"]
    assert starts["reno"][0] != starts["reno"][1]
    folder = result.save(tmp_path / "comparison")
    assert (folder / "cwnd.png").stat().st_size > 10_000
    assert len(pl.read_csv(folder / "table.csv")) == 2 * len(METRICS)


def test_a_comparison_of_one_algorithm_and_its_mistakes():
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "2 s", "repeat": 1, "start_within": "1 s"}
    assert list(elephan.compare(cc="htcp", metrics=lambda _: 1.0, **path).runs) == ["htcp"]
    for argument, wrong in (
        ("cc", "htpc"),
        ("cc", []),
        ("rate", "x"),
        ("rtt", 20),
        ("repeat", 0),
        ("flows", 0),
        ("against", "x"),
    ):
        with pytest.raises(elephan.ScenarioError, match=f"^{argument}: expected .*, found"):
            elephan.compare(**{**path, "cc": "reno", argument: wrong})
    with pytest.raises(elephan.ScenarioError, match=r"^flows: expected 2 or more, found 1"):
        elephan.compare(cc="reno", against="htcp", flows=1, **path)


def test_a_comparison_on_a_scenario_changes_its_algorithm_and_single_keys(tmp_path: Path):
    (tmp_path / "two.toml").write_text(
        'name = "two"\nduration = "6 s"\nseed = 4\npath = { rate = "20 Mbit/s", rtt = "20 ms" }\n'
        'flow = [{ cc = "reno" }, { cc = "bic", start = "1 s" }]\n'
    )
    keys = {"repeat": 2, "settings": {"path.queue": "codel"}, "rtt": "30 ms"}
    result = elephan.compare(tmp_path / "two.toml", cc={"mine": "htcp", "reno": "reno"}, **keys)
    assert [*result.runs] == ["mine", "reno"]
    assert {row[0] for row in result.table().rows} == {"mine", "reno"}
    for name, cc in (("mine", "htcp"), ("reno", "reno")):
        documents = [run.scenario.document for run in result.runs[name]]
        assert [document["seed"] for document in documents] == [4, 5]
        assert {one["cc"] for one in documents[0]["flow"]} == {cc}
        assert (documents[0]["path"]["queue"]["name"], documents[0]["path"]["rtt"]) == ("codel", "30 ms")
    rival = elephan.compare(tmp_path / "two.toml", cc="htcp", against="reno", repeat=1)
    assert [flow["cc"] for flow in rival.runs["htcp"][0].scenario.document["flow"]] == ["htcp", "reno"]
    with pytest.raises(elephan.ScenarioError, match=r"^flows: expected none with a scenario, which has it; found 2$"):
        elephan.compare(tmp_path / "two.toml", cc="reno", flows=2)


def test_algorithms_have_a_version_and_no_folder_in_tables():
    assert [*map(cc_text, ("bbr", "linux:bbr", "reno"))] == ["bbr (v3)", "linux:bbr (v1)", "reno"]
    assert cc_text("lib:/home/me/elastic.c") == "lib:elastic.c"


def test_a_comparison_against_a_rival_has_shares_and_harm():
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "10 s", "repeat": 2, "start_within": "1 s"}
    result = elephan.compare(cc=["scalable"], against="reno", **path)
    assert [one.summary.flows[1].label for one in result.runs["scalable"]] == ["reno"] * 2
    goodput = [[flow.goodput_bit_s for flow in run.summary.flows] for run in result.runs["scalable"]]
    alone = [run.summary.flows[1].goodput_bit_s for run in result.runs["reno"]]
    values = result.values["scalable"]
    assert values["share"] == pytest.approx([100 * own / (own + other) for own, other in goodput])
    assert values["others' share"] == pytest.approx([100 - share for share in values["share"]])
    assert values["harm"] == pytest.approx(
        [100 * (1 - pair[1] / free) for pair, free in zip(goodput, alone, strict=True)]
    )
    assert result.values["reno"]["harm"] == [0.0, 0.0]


def test_summaries_are_read_by_several_threads_at_once() -> None:
    """msgspec prepares a class and its parts at first use; a thread that came meanwhile ended the process by SIGSEGV."""
    script = """
import threading, time
from elephan.api.part import Part

def slow():
    # msgspec evaluates this type while it prepares the class around it: now comes another thread.
    if not others:
        others.append(threading.Thread(target=lambda: read.append(Outer.from_dict({"inner": {"x": 2.0}}))))
        others[0].start()
        for _ in range(1000):
            time.sleep(0)
    return float

class Inner(Part):
    x: "slow()"

class Outer(Part):
    inner: Inner

others, read = [], []
read.append(Outer.from_dict({"inner": {"x": 1.0}}))
others[0].join()
assert sorted(part.inner.x for part in read) == [1.0, 2.0]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
