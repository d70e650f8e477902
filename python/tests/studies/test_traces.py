"""Traces of a run for other tools: qlog as the drafts define it, read again as it was written, and Perfetto's."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import call

import elephan
from elephan.paths import fit, qlog
from elephan.paths.infer import infer
from elephan.report import perfetto
from elephan.report import qlog as of_log


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(record) for record in text.split("\x1e")[1:]]


# The definitions of draft-ietf-quic-qlog-main-schema-14 (sections 3, 5 to 8 and 10) and draft-ietf-quic-qlog-quic-events-13
# (sections 5, 7 and 8) that a run uses: of each map its fields with their types, `?` before those that may be absent, and `*`
# where others may be there. A list has one type, `+` before it if it may not be empty. A tuple has the texts that are allowed.
U64, FLOAT, TEXT, ANY = "uint64", "float", "text", "any"
TIME_FORMAT = ("relative_to_epoch", "relative_to_previous_event")
REFERENCE_TIME = {"clock_type": TEXT, "epoch": TEXT, "?wall_clock_time": TEXT}
TRACE_SEQ = {
    "?title": TEXT,
    "?description": TEXT,
    "?common_fields": {
        "?tuple": TEXT,
        "?time_format": TIME_FORMAT,
        "?reference_time": REFERENCE_TIME,
        "?group_id": TEXT,
        "*": ANY,
    },
    "?vantage_point": {
        "?name": TEXT,
        "type": ("client", "server", "network", "unknown"),
        "?flow": ("client", "server", "unknown"),
    },
    "event_schemas": ["+", TEXT],
}
FILE_SEQ = {"file_schema": TEXT, "serialization_format": TEXT, "?title": TEXT, "?description": TEXT, "trace": TRACE_SEQ}
EVENT = {
    "time": FLOAT,
    "name": TEXT,
    "data": ANY,
    "?tuple": TEXT,
    "?time_format": TIME_FORMAT,
    "?group_id": TEXT,
    "*": ANY,
}
RAW = {"?length": U64, "?payload_length": U64, "?data": TEXT}
PACKET_TYPES = ("initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "stateless_reset", "unknown")
PACKET_HEADER = {"packet_type": PACKET_TYPES, "?packet_number_length": U64, "?packet_number": U64}
STREAM_FRAME = {"frame_type": ("stream",), "stream_id": U64, "?offset": U64, "?fin": "bool", "?raw": RAW}
RTTS = {f"?{key}": FLOAT for key in ("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance")}
COUNTS = ("pto_count", "congestion_window", "bytes_in_flight", "ssthresh", "packets_in_flight", "pacing_rate")
DATA = {
    "quic:recovery_metrics_updated": RTTS | {f"?{key}": U64 for key in COUNTS},
    "quic:congestion_state_updated": {"?old": TEXT, "new": TEXT, "?trigger": TEXT},
    "quic:packet_sent": {"header": PACKET_HEADER, "?frames": ["*", STREAM_FRAME], "?raw": RAW},
    "quic:packet_received": {"header": PACKET_HEADER, "?frames": ["*", STREAM_FRAME], "?raw": RAW},
    "quic:packets_acked": {"?packet_number_space": TEXT, "?packet_numbers": ["+", U64]},
    "quic:packet_lost": {"?header": PACKET_HEADER, "?frames": ["*", STREAM_FRAME]},
}


def check(value: Any, form: Any, where: str = "") -> None:
    """That a value has a form."""
    if isinstance(form, dict):
        assert isinstance(value, dict), where
        for key, found in value.items():
            assert key == key.lower(), key
            known = form.get(key, form.get(f"?{key}", form.get("*")))
            assert known is not None, f"{where}.{key} is not defined"
            check(found, known, f"{where}.{key}")
        assert {key for key in form if key[0] not in "?*"} <= value.keys(), where
    elif isinstance(form, list):
        assert isinstance(value, list), where
        assert value or form[0] == "*", where
        for one in value:
            check(one, form[1], where)
    elif isinstance(form, tuple):
        assert value in form, where
    elif form == U64:
        assert type(value) is int, f"{where}: {value!r}"
        assert 0 <= value < 2**64, f"{where}: {value!r}"
    elif form != ANY:
        assert type(value) in {TEXT: [str], FLOAT: [int, float], "bool": [bool]}[form], f"{where}: {value!r}"


def a_run(*, events: bool = True, duration: str = "10 s", **keys: Any) -> elephan.Run:
    made = {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "20 packets", "flows": [elephan.flow("reno")], **keys}
    return elephan.run(elephan.dumbbell(**made, duration=duration, trace={"events": events}))


LOSSY = {"loss": {"name": "random", "probability": 0.01}}
OUTAGE = [{"at": f"{at} s", "link": "bottleneck", "up": up} for at, up in ((3, False), (4, True))]
RUNS: dict[str, dict[str, Any]] = {
    "reno": {},
    "lossy": {"flows": [elephan.flow("cubic")], "tcp": {"profile": "linux-6"}, "path": LOSSY},
    "outage": {"event": OUTAGE},
    "transfers": {"flows": [elephan.flow("reno", size="300 kB", transfers="repeat")], "path": LOSSY},
    "bbr": {"flows": [elephan.flow("bbr")], "path": LOSSY},
    "bursts": {"tcp": {"profile": "linux-6", "burst": "tso"}, "path": LOSSY},
    "small packets": {"flows": [elephan.flow("reno", tcp={"packet": "500 B"})]},
}


@pytest.fixture(scope="module", params=RUNS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[elephan.Run, Path]:
    run = a_run(**RUNS[request.param])
    (path,) = of_log.write(run, tmp_path_factory.mktemp("log") / "run.sqlog")
    return run, path


def test_what_is_written_has_the_form_of_the_drafts(written: tuple[elephan.Run, Path]):
    text = written[1].read_text()
    # RFC 7464: a separator before, and a line feed after each record.
    assert all(record.endswith("}\n") for record in text.split("\x1e")[1:])
    head, *events = records(text)
    check(head, FILE_SEQ)
    # Main schema, section 3: both are within the first 256 characters.
    assert text.index('"serialization_format": "application/qlog+json-seq"') < 200
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    trace = head["trace"]
    assert trace["event_schemas"] == ["urn:ietf:params:qlog:events:quic-13"]
    # Main schema, section 7.1: the epoch of a monotonic clock is unknown.
    assert trace["common_fields"]["reference_time"] == {"clock_type": "monotonic", "epoch": "unknown"}
    assert trace["common_fields"]["protocol_type"] == "TCP"
    for event in events:
        check(event, EVENT)
        check(event["data"], DATA[event["name"]], event["name"])
        assert event["data"]
    times = [event["time"] for event in events]
    assert times == sorted(times)


def test_the_check_of_the_form_refuses_what_the_drafts_do_not_have():
    for wrong in (
        {"congestion_window": 1.5},
        {"congestion_window": -1},
        {"cwnd": 1},
        {"min_rtt": "1"},
        {"min_rtt": None},
    ):
        with pytest.raises(AssertionError):
            check(wrong, DATA["quic:recovery_metrics_updated"])
    with pytest.raises(AssertionError):
        check({"old": "recovery"}, DATA["quic:congestion_state_updated"])
    with pytest.raises(AssertionError):
        check({"packet_numbers": []}, DATA["quic:packets_acked"])


def test_the_samples_come_back(written: tuple[elephan.Run, Path]):
    run, path = written
    mss = 1500 - 52 if "packet" not in run.scenario.document["flow"][0].get("tcp", {}) else 500 - 52
    read, flows = qlog.read(path), run.flows
    assert read.column("time_s") == pytest.approx(flows["time_s"].to_numpy(), abs=1e-12)
    assert read.column("cwnd_bytes") == pytest.approx(mss * flows["cwnd_segments"].to_numpy(), abs=0.5)
    assert read.column("in_flight_bytes") == pytest.approx(flows["pipe_bytes"].to_numpy())
    srtt_s = flows["srtt_s"].cast(float).to_numpy()
    known = np.isfinite(srtt_s)
    assert read.column("srtt_s")[known] == pytest.approx(srtt_s[known], rel=1e-12)
    threshold = flows["ssthresh_segments"].to_numpy()
    known = np.isfinite(threshold)
    assert read.column("ssthresh_bytes")[known] == pytest.approx(mss * threshold[known], abs=0.5)
    assert np.isnan(read.column("min_rtt_s")).all()


def test_every_segment_is_sent_once_and_acknowledged_or_lost(written: tuple[elephan.Run, Path]):
    run, path = written
    events = run.events
    sent = events.filter(events["kind"].is_in(["send", "retransmit"]))
    read = qlog.read(path)
    assert [time for time, _, _ in read.sent.values()] == pytest.approx(sent["time_s"].to_list(), abs=1e-12)
    headers = 52
    assert [size for _, size, _ in read.sent.values()] == [payload + headers for payload in sent["bytes"]]
    assert [payload for _, _, payload in read.sent.values()] == sent["bytes"].to_list()
    # What is neither is in flight, or was when its connection ended.
    assert len(read.acked) + len(read.lost) + len(read.open) == len(sent)
    assert len(read.open) <= 0.05 * len(sent)
    again = [
        one["data"]["header"]["packet_number"]
        for one in records(path.read_text())
        if one.get("name") == "quic:packet_lost"
    ]
    assert len(again) == len(set(again))
    # A super-segment that is retransmitted counts once, whatever was lost of it.
    assert len(again) <= len(sent.filter(sent["kind"] == "retransmit")) <= 2 * len(again) + 1


def test_round_trips_are_those_of_the_path(written: tuple[elephan.Run, Path]):
    """At least the path's; and most at most what queue and delayed acknowledgments add."""
    seen = qlog.observe(written[1])
    rtt_s = seen.rtt_s[np.isfinite(seen.rtt_s)]
    assert 0.04 < rtt_s.min() < 0.0445
    assert np.median(rtt_s) < 0.04 + 22 * 1500 * 8 / 1e7


def states(path: Path) -> list[dict[str, Any]]:
    found = [one for one in records(path.read_text()) if one.get("name") == "quic:congestion_state_updated"]
    return [{"time": one["time"], **one["data"]} for one in found]


def test_states_follow_the_reductions(written: tuple[elephan.Run, Path]):
    run, path = written
    found, events = states(path), run.events
    reductions = sorted({*events.filter(events["kind"].is_in(["congestion", "timeout"]))["time_s"].to_list()})
    begun = [one for one in found if one["new"] == "recovery"]
    assert [1e-3 * one["time"] for one in begun] == pytest.approx(reductions, abs=1e-12)
    is_bbr = run.labels[0] == "bbr"
    others = {one["new"] for one in found} - {"recovery"}
    assert others <= ({"unknown"} if is_bbr else {"slow_start", "congestion_avoidance", "unknown"})
    for one, following in pairwise(found):
        # A new connection begins without a state.
        assert following.get("old") in (one["new"], None)
        # A recovery of a sender that is not limited by its data takes a round trip at least.
        if (
            one["new"] == "recovery"
            and following["new"] != "recovery"
            and "transfers" not in run.scenario.document["flow"][0]
        ):
            assert following["time"] - one["time"] > 38


def test_a_timeout_begins_a_recovery(tmp_path: Path):
    run = a_run(**RUNS["outage"])
    (path,) = of_log.write(run, tmp_path / "run.sqlog")
    timeouts = run.events.filter(run.events["kind"] == "timeout")
    assert len(timeouts)
    found = [one["time"] for one in states(path) if one.get("trigger") == "retransmission_timeout"]
    assert found == pytest.approx(1e3 * timeouts["time_s"].to_numpy())


def test_a_run_without_events_has_its_samples(tmp_path: Path):
    flows = [elephan.flow("reno"), elephan.flow("htcp", start="2 s")]
    run = a_run(events=False, flows=flows)
    done = call("report", run.save(tmp_path / "run"), "--format", "sqlog")
    assert done.returncode == 0, done.stderr
    paths = [tmp_path / "run/report.sqlog", tmp_path / "run/report-2.sqlog"]
    assert done.stdout.split() == [*map(str, paths)]
    for number, path in enumerate(paths):
        head, *updates = records(path.read_text())
        assert head["trace"]["vantage_point"] == {"name": f"flow {number + 1}: {run.labels[number]}", "type": "client"}
        assert {one["name"] for one in updates} == {"quic:recovery_metrics_updated"}
        assert len(updates) == len(run.flows.filter(run.flows["flow"] == number))
    # It is in the way of no command that replaces results.
    assert call("report", tmp_path / "run", "--format", "sqlog").returncode == 0
    elephan.Run.load(tmp_path / "run").save(tmp_path / "run", force=True)


def test_what_a_kernel_tells_besides_is_written(tmp_path: Path):
    run = a_run(events=False, duration="2 s")
    rows = len(run.flows)
    told = {"pacing_rate_bit_s": np.linspace(1e6, 2e6, rows), "min_rtt_s": np.full(rows, 0.04)}
    told["pacing_rate_bit_s"][0] = np.inf
    vars(run)["flows"] = run.flows.with_columns(**{key: pl.Series(values) for key, values in told.items()})
    (path,) = of_log.write(run, tmp_path / "run.sqlog")
    read = qlog.read(path)
    assert read.column("pacing_rate_bit_s")[1:] == pytest.approx(told["pacing_rate_bit_s"][1:], abs=0.5)
    assert np.isnan(read.column("pacing_rate_bit_s")[0])
    assert read.column("min_rtt_s") == pytest.approx(told["min_rtt_s"])


def test_sequence_numbers_may_wrap(tmp_path: Path):
    run = a_run(duration="3 s")
    (path,) = of_log.write(run, tmp_path / "run.sqlog")
    events = run.events
    first = events.filter(events["bytes"] > 0)["seq"][0]
    # Half of the data is beyond the largest number. The handshake keeps its own.
    seq = events["seq"].cast(pl.Int64)
    is_sent = (seq - first) % 2**32 < 2**31
    moved = ((seq - first - 1_000_000) % 2**32).zip_with(is_sent, pl.zeros(len(seq), pl.Int64, eager=True))
    vars(run)["events"] = events.with_columns(seq=moved.cast(pl.UInt32))
    assert run.events["seq"].max() - run.events.filter(run.events["bytes"] > 0)["seq"].min() > 2**31
    (again,) = of_log.write(run, tmp_path / "again.sqlog")
    assert records(again.read_text()) == records(path.read_text())


def test_a_path_comes_back_from_the_log_of_a_run(tmp_path: Path):
    run = a_run(duration="20 s", rate="20 Mbit/s", buffer="50 packets", flows=[elephan.flow("cubic")])
    (path,) = of_log.write(run, tmp_path / "run.sqlog")
    found = infer(fit.observe([path]))
    for value, truth in ((found.rate_bit_s, 20e6), (found.base_rtt_s, 0.04), (found.buffer_bytes, 50 * 1500)):
        assert value.value == pytest.approx(truth, rel=0.05)


def test_only_a_run_has_a_trace(tmp_path: Path):
    (tmp_path / "none").mkdir()
    done = call("report", tmp_path / "none", "--format", "sqlog")
    assert (done.returncode, done.stderr) == (
        2,
        f"{tmp_path / 'none'}: expected the results of a run for --format sqlog, found none of it\n",
    )


# Perfetto.


def traced(run: elephan.Run, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of a trace by the name of their process."""
    (path,) = perfetto.write(run, folder / "run.perfetto")
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ms"
    records = document["traceEvents"]
    called = {one["pid"]: one["args"]["name"] for one in records if one["name"] == "process_name"}
    assert len(called) == len({*called.values()})
    parts: dict[str, list[dict[str, Any]]] = {name: [] for name in called.values()}
    for one in records:
        # What the format needs of each phase.
        assert {"M": {"args"}, "C": {"ts", "args"}, "i": {"ts", "s", "tid"}}[one["ph"]] <= one.keys()
        parts[called[one["pid"]]].append(one)
    return parts


def counter(records: list[dict[str, Any]], name: str, unit: str) -> list[tuple[float, float]]:
    return [(one["ts"], one["args"][unit]) for one in records if one["ph"] == "C" and one["name"] == name]


def instants(records: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in records if one["ph"] == "i" and one["name"] == name]


@pytest.mark.parametrize("events", [True, False])
def test_perfetto_has_a_track_for_each_flow_and_link(events: bool, tmp_path: Path):
    run = a_run(
        events=events, flows=[elephan.flow("reno"), elephan.flow("htcp", start="2 s")], event=OUTAGE, path=LOSSY
    )
    parts = traced(run, tmp_path)
    assert [*parts] == ["flow 1: reno", "flow 2: htcp", "link bottleneck", "link bottleneck.reverse"]
    for number, name in enumerate([*parts][:2]):
        rows = run.flows.filter(run.flows["flow"] == number)
        at = np.array(counter(parts[name], "cwnd", "segments"))
        assert at[:, 0] == pytest.approx(1e6 * rows["time_s"].to_numpy(), abs=1e-6)
        assert at[:, 1] == pytest.approx(rows["cwnd_segments"].to_numpy())
        # What is unknown or infinite has no value.
        assert (
            len(counter(parts[name], "ssthresh", "segments")) == np.isfinite(rows["ssthresh_segments"].to_numpy()).sum()
        )
        known = rows["srtt_s"].drop_nulls()
        assert [value for _, value in counter(parts[name], "smoothed RTT", "ms")] == pytest.approx(
            (1e3 * known).to_list()
        )
        for what, column, kind in (("timeout", "timeouts", "timeout"), ("retransmission", "retransmits", "retransmit")):
            found = instants(parts[name], what)
            assert found
            if events:
                happened = run.events.filter((run.events["kind"] == kind) & (run.events["flow"] == number))
                assert [one["ts"] for one in found] == pytest.approx((1e6 * happened["time_s"]).to_list(), abs=1e-6)
            else:
                assert sum(one["args"]["count"] for one in found) == rows[column][-1]
    queue = run.queues.filter(run.queues["link"] == "bottleneck")
    assert [value for _, value in counter(parts["link bottleneck"], "queue", "packets")] == queue["packets"].to_list()
    assert (
        sum(one["args"]["count"] for one in instants(parts["link bottleneck"], "loss on the wire"))
        == queue["lost"][-1]
        > 0
    )
    drops = instants(parts["link bottleneck"], "drop")
    assert (len(drops) if events else sum(one["args"]["count"] for one in drops)) == queue["dropped"][-1] > 0


def test_perfetto_is_a_form_of_the_report(tmp_path: Path):
    folder = a_run(events=False, duration="2 s").save(tmp_path / "run")
    done = call("report", folder, "--out", tmp_path / "mine.perfetto")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'mine.perfetto'}\n")
    assert json.loads((tmp_path / "mine.perfetto").read_text())["traceEvents"]
    done = call("report", folder, "--format", "json")
    assert (done.returncode, done.stderr) == (
        2,
        "--format: expected one of html, pdf, png, svg, md, sqlog, perfetto, found 'json'\n",
    )
