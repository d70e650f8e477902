"""qlog: the forms of several stacks tell the same of a connection."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call

import elephan
from elephan import ScenarioError
from elephan.paths import fit, qlog
from elephan.report import qlog as of_log

# A connection on a path of 10 Mbit/s and 40 ms: a packet of 1250 B and its headers take 1.0224 ms. Packet 40 is lost.
PACKETS, SIZE, STREAM, LOST = 120, 1250, 1210, 40
STEP_MS, RTT_MS = (SIZE + qlog.UDP_HEADERS) * 8 / 1e4, 40.0

# What happened, as (time in ms, what, numbers).
Happened = list[tuple[float, str, list[int]]]


def happened(lost: int | None = LOST) -> Happened:
    """Each packet leaves as the one before it has left the link. Each second one is acknowledged."""
    found: Happened = [(STEP_MS * number, "sent", [number]) for number in range(PACKETS)]
    for last in range(1, PACKETS, 2):
        acked = [number for number in (last - 1, last) if number != lost]
        found.append((STEP_MS * (last + 1) + RTT_MS, "acked", acked))
        if lost is not None and last == lost + 5:
            found.append((STEP_MS * (last + 1) + RTT_MS, "lost", [lost]))
    return sorted(found, key=lambda one: one[0])


def metrics(time_ms: float) -> dict[str, float]:
    return {
        "congestion_window": 50_000 + int(time_ms),
        "smoothed_rtt": 41.5,
        "min_rtt": 41.0,
        "bytes_in_flight": 20_000,
    }


def sequence(head: dict[str, Any], events: list[dict[str, Any]], before: str = "\x1e") -> str:
    return "".join(f"{before}{json.dumps(one)}\n" for one in [head, *events])


def objects(
    of: Happened, prefixes: tuple[str, str, str], frame: Callable[[], dict[str, Any]], ack: str
) -> list[dict[str, Any]]:
    """Events as objects; names have these prefixes: of packets, of metrics, and of losses."""
    packets, updates, losses = prefixes
    largest, events = 0, []
    for time_ms, what, numbers in of:
        header = {"packet_type": "1RTT", "packet_number": numbers[0]}
        if what == "sent":
            data = {"header": header, "raw": {"length": SIZE}, "frames": [frame()]}
            events.append({"time": time_ms, "name": f"{packets}packet_sent", "data": data})
        elif what == "lost":
            lost = {"header": header, "trigger": "reordering_threshold"}
            events.append({"time": time_ms, "name": f"{losses}packet_lost", "data": lost})
        else:
            # The range of all that arrived, with a hole, again and again.
            largest = max(largest, *numbers)
            ranges = (
                [[LOST + 1, largest], [0, LOST - 1]]
                if largest > LOST
                else [[largest]]
                if not largest
                else [[0, largest]]
            )
            found = {"frame_type": "ack", "ack_delay": 0.5, "acked_ranges": ranges}
            data = {"header": {"packet_type": "1RTT", "packet_number": largest}, "frames": [found]}
            events.append({"time": time_ms, "name": f"{packets}packet_received", "data": data})
            events.append({"time": time_ms, "name": f"{updates}{ack}", "data": metrics(time_ms)})
    return events


def quic_go(of: Happened) -> str:
    """JSON-SEQ; categories; of the metrics only those that have changed; lengths of frames without `raw`."""
    head = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": "quic-go qlog",
        "trace": {"vantage_point": {"type": "server"}, "common_fields": {"group_id": "ab"}, "event_schemas": []},
        "qlog_version": "0.3",
    }
    names = ("transport:", "recovery:", "recovery:")
    events = objects(of, names, lambda: {"frame_type": "stream", "length": STREAM}, "metrics_updated")
    told: dict[str, float] = {}
    for event in events:
        if event["name"] == "recovery:metrics_updated":
            event["data"] = {key: value for key, value in event["data"].items() if told.get(key) != value}
            told |= event["data"]
    # The handshake has numbers of its own.
    hello = {"header": {"packet_type": "initial", "packet_number": 0}, "raw": {"length": 1280}, "frames": []}
    return sequence(head, [{"time": 0, "name": "transport:packet_sent", "data": hello}, *events])


def quic_go_before(of: Happened) -> str:
    """Its earlier form: a record a line, without separators."""
    lines = quic_go(of).replace("\x1e", "").splitlines()
    head = {
        "qlog_format": "NDJSON",
        "qlog_version": "draft-02",
        "trace": {"common_fields": {"time_format": "relative"}},
    }
    return "\n".join([json.dumps(head), *lines[1:]]) + "\n"


def quiche(of: Happened) -> str:
    """JSON-SEQ, all names with `quic:`."""
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"vantage_point": {"type": "client"}}}
    stream = {"frame_type": "stream", "stream_id": 0, "raw": {"length": STREAM + 4, "payload_length": STREAM}}
    return sequence(head, objects(of, ("quic:", "quic:", "quic:"), lambda: stream, "recovery_metrics_updated"))


def deltas(of: Happened) -> str:
    """One document whose times are differences."""
    stream = {"frame_type": "stream", "raw": {"payload_length": STREAM}}
    events = objects(of, ("quic:",) * 3, lambda: stream, "recovery_metrics_updated")
    times = [event["time"] for event in events]
    for event, before in zip(events, [0.0, *times], strict=False):
        event["time"] -= before
    trace = {"common_fields": {"time_format": "relative_to_previous_event"}, "event_schemas": [], "events": events}
    return json.dumps({"file_schema": "urn:ietf:params:qlog:file:contained", "traces": [trace]}, indent=1)


def picoquic(of: Happened) -> str:
    """Events as lists, times in us, numbers of packets as texts."""
    events: list[list[Any]] = []
    for time_ms, what, numbers in of:
        header = {"packet_number": str(numbers[0]), "packet_size": SIZE}
        if what == "sent":
            frames = [{"frame_type": "stream", "id": 0, "length": STREAM}]
            data = {"packet_type": "1RTT", "header": header, "frames": frames}
            events.append([1e3 * time_ms, "transport", "packet_sent", data])
        elif what == "lost":
            events.append([1e3 * time_ms, "recovery", "packet_lost", {"packet_type": "1RTT", "header": header}])
        else:
            frames = [{"frame_type": "ack", "acked_ranges": [[min(numbers), max(numbers)]]}]
            data = {"packet_type": "1RTT", "header": header, "frames": frames}
            events.append([1e3 * time_ms, "transport", "packet_received", data])
            told = metrics(time_ms)
            data = {"cwnd": told["congestion_window"], "bytes_in_flight": told["bytes_in_flight"]}
            data |= {key: 1e3 * told[key] for key in ("smoothed_rtt", "min_rtt")}
            events.append([1e3 * time_ms, "recovery", "metrics_updated", data])
    trace = {
        "vantage_point": {"name": "backend-67", "type": "server"},
        "event_fields": ["relative_time", "CATEGORY", "EVENT_TYPE", "DATA"],
        "configuration": {"time_units": "us"},
        "events": events,
    }
    return json.dumps({"qlog_version": "draft-00", "traces": [trace]})


def mvfst(of: Happened) -> str:
    """Events as lists of texts in capitals, an event for each acknowledged packet, and metrics in two events."""
    events: list[list[Any]] = []
    for time_ms, what, numbers in of:
        time = str(1e3 * time_ms)
        if what == "sent":
            frames = [{"frame_type": "STREAM", "length": STREAM}]
            data = {"packet_type": "KeyPhaseZero", "packet_num": numbers[0], "packet_size": SIZE, "frames": frames}
            events.append([time, "TRANSPORT", "PACKET_SENT", "DEFAULT", data])
        elif what == "lost":
            data = {"largest_lost_packet_num": numbers[0], "lost_bytes": SIZE, "lost_packets": 1}
            events.append([time, "LOSS", "PACKETS_LOST", "DEFAULT", data])
        else:
            for number in numbers:
                data = {"packet_num_space": "AppData", "packet_num": number}
                events.append([time, "TRANSPORT", "PACKET_ACK", "DEFAULT", data])
            told = metrics(time_ms)
            rtts = {key: 1e3 * told[key] for key in ("smoothed_rtt", "min_rtt")}
            windows = {"current_cwnd": told["congestion_window"], "bytes_in_flight": told["bytes_in_flight"]}
            events.append([time, "METRIC_UPDATE", "METRIC_UPDATE", "DEFAULT", rtts])
            events.append([time, "METRIC_UPDATE", "CONGESTION_METRIC_UPDATE", "DEFAULT", windows])
    fields = ["relative_time", "CATEGORY", "EVENT_TYPE", "TRIGGER", "DATA"]
    trace = {"configuration": {"time_offset": 0, "time_units": "us"}, "event_fields": fields, "events": events}
    return json.dumps({"qlog_version": "draft-00", "traces": [trace]})


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(record) for record in text.split("\x1e")[1:]]


FORMS = [quic_go, quic_go_before, quiche, deltas, picoquic, mvfst]


@pytest.fixture
def log(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "log.sqlog"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("form", FORMS)
def test_each_form_tells_the_same_connection(form: Callable[[Happened], str], log: Callable[[str], Path]):
    path = log(form(happened()))
    assert qlog.is_qlog(path)
    read = qlog.read(path)
    assert read.lost == [LOST]
    assert [*read.sent] == [*range(PACKETS)]
    assert sorted(read.acked) == [number for number in range(PACKETS) if number != LOST]
    # mvfst has two updates at a time: its rows are those of the second.
    last = {time: row for row, time in enumerate(read.samples["time_s"])}
    rows = [*last.values()]
    times_s = 1e-3 * np.array([time for time, what, _ in happened() if what == "acked"])
    assert read.column("time_s")[rows] == pytest.approx(times_s)
    assert read.column("cwnd_bytes")[rows] == pytest.approx([50_000 + int(1e3 * time + 1e-6) for time in times_s])
    assert read.column("in_flight_bytes")[rows] == pytest.approx([20_000] * len(rows))
    assert read.column("srtt_s")[rows] == pytest.approx([0.0415] * len(rows))
    assert read.column("min_rtt_s")[rows] == pytest.approx([0.041] * len(rows))
    assert np.isnan(read.column("ssthresh_bytes")).all()

    seen = fit.observe([path])
    assert len(seen.time_s) == PACKETS // 2
    assert (seen.packet_bytes, seen.payload_bytes) == (SIZE + qlog.UDP_HEADERS, STREAM)
    assert seen.sent.sum() == PACKETS
    # The row whose packet left last before the lost one.
    assert (seen.lost.sum(), seen.lost[LOST // 2 - 1]) == (1, 1)
    assert seen.rtt_s == pytest.approx([1e-3 * (RTT_MS + STEP_MS)] * len(seen.rtt_s))
    # What arrived after the first acknowledgment, without the lost packet.
    assert seen.delivered_bytes[-1] == (PACKETS - 3) * (SIZE + qlog.UDP_HEADERS)
    assert seen.window_bytes[-1] == pytest.approx(50_000 + int(1e3 * times_s[-1] + 1e-6))


def test_a_packet_that_is_acknowledged_after_its_loss_was_late(log: Callable[[str], Path]):
    late = [*happened(), (STEP_MS * PACKETS + RTT_MS + 1, "acked", [LOST])]
    read = qlog.read(log(picoquic(late)))
    assert (read.lost, read.reordered, LOST in read.acked) == ([], 1, True)


def test_a_loss_of_several_packets_in_one_event(log: Callable[[str], Path]):
    """mvfst tells the last of them, and how many there were."""
    two = [
        (time, what, [one for one in numbers if one != LOST - 2])
        for time, what, numbers in happened()
        if what != "sent"
    ]
    sent = [one for one in happened() if one[1] == "sent"]
    text = mvfst(sorted([*sent, *two], key=lambda one: one[0])).replace('"lost_packets": 1', '"lost_packets": 2')
    assert qlog.read(log(text)).lost == [LOST - 2, LOST]


def test_headers_are_those_of_the_network(log: Callable[[str], Path]):
    head, *events = records(quiche(happened()))
    started = {"time": 0, "name": "quic:connection_started", "data": {"local": {"ip_v6": "2001:db8::1"}, "remote": {}}}
    assert qlog.observe(log(sequence(head, [started, *events]))).packet_bytes == SIZE + 48
    # The length of a segment of TCP has them.
    head["trace"]["common_fields"] = {"protocol_type": "TCP"}
    assert qlog.observe(log(sequence(head, events))).packet_bytes == SIZE


def test_of_several_connections_that_which_sent_most_counts(log: Callable[[str], Path]):
    _, *events = records(quiche(happened()))
    small = [{**event, "group_id": "other"} for event in events[:5]]
    read = qlog.read(log(sequence({"trace": {}}, [*small, *events])))
    assert len(read.sent) == PACKETS
    assert read.notes == ["of 2 connections, the one that sent most"]


def test_a_path_is_fitted_from_a_log(log: Callable[[str], Path], tmp_path: Path):
    path = log(quic_go(happened()))
    done = call("path", "fit", path, "--out", tmp_path / "path", "--draws", "1")
    assert done.returncode == 0, done.stderr
    assert "the source does not tell the algorithm" in done.stdout
    made = json.loads((tmp_path / "path/path.json").read_text())
    assert made["source"] == "log.sqlog"
    assert made["base_rtt_s"]["value"] == pytest.approx(1e-3 * RTT_MS, rel=0.03)


# Damage.


def test_a_record_that_was_cut_is_left_out(log: Callable[[str], Path]):
    whole = quiche(happened())
    read = qlog.read(log(whole[:-20]))
    line = whole.count("\n")
    assert read.notes == [f"the file ends within a record, at line {line}, which is left out"]
    assert len(read.acked) == PACKETS - 1


def read_or_told(path: Path) -> int | str:
    """How many packets were sent, or what is wrong."""
    try:
        return len(qlog.read(path).sent)
    except ScenarioError as error:
        return str(error)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_may_end_anywhere(form: Callable[[Happened], str], log: Callable[[str], Path]):
    """One line says what is wrong until a first event is whole. Then each longer file tells more, or as much."""
    whole = form(happened()[:30])
    found = [read_or_told(log(whole[:end])) for end in [*range(0, len(whole), 7), len(whole)]]
    wrong = [one for one in found if isinstance(one, str)]
    assert not any("\n" in one for one in wrong)
    assert found[: len(wrong)] == wrong
    sent = [one for one in found if isinstance(one, int)]
    assert sent == sorted(sent)
    assert sent[-1] - sent[-20] <= 3 < len(set(sent))


SEQUENCE = ['{"trace": {}}', '{"time": 1, "name": "quic:packet_sent", "data": {"header": {"packet_number": 1}}}']


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"time": 1, "na', """line 3: expected a record of JSON, found '{"time": 1, "na'"""),
        ("17", "line 3: expected an event, an object, found '17'"),
        ('{"name": "a:b", "data": {}}', "line 3: expected a number in time, found 'null'"),
        ('{"time": "soon", "name": "a:b", "data": {}}', "line 3: expected a number in time, found 'soon'"),
        ('{"time": true, "name": "a:b", "data": {}}', "line 3: expected a number in time, found 'true'"),
        ('{"time": 1, "name": 2, "data": {}}', "line 3: expected a text in name, found '2'"),
        ('{"time": 1, "name": "a:b", "data": []}', "line 3: expected an object in data, found '[]'"),
        (
            '{"time": 1, "name": "quic:recovery_metrics_updated", "data": {"smoothed_rtt": {}}}',
            "line 3: expected a number in smoothed_rtt, found '{}'",
        ),
        (
            '{"time": 1, "name": "quic:packets_acked", "data": {"packet_numbers": ["x"]}}',
            "line 3: expected a number in acked_ranges, found 'x'",
        ),
        (
            '{"time": 1, "name": "quic:packets_acked", "data": {}}',
            "line 3: expected ranges of numbers in acked_ranges, found 'null'",
        ),
    ],
)
def test_a_damaged_record_is_told_with_its_line(record: str, reason: str, log: Callable[[str], Path]):
    path = log("".join(f"\x1e{one}\n" for one in [*SEQUENCE, record, SEQUENCE[1]]))
    with pytest.raises(ScenarioError, match=f"^{re.escape(f'{path}: {reason}')}$"):
        qlog.read(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "expected traces, a list, as qlog has it, found 'null'"),
        ('{"traces": [3]}', "trace 1: expected an object with events, found '3'"),
        ('{"traces": [{"error_description": "gone"}]}', "expected events of qlog, found none"),
        ('{"traces": [{"events": [[1, 2]]}]}', "event 1: expected a number in time, found 'null'"),
        ('{"traces":\n [}, {}', "line 2: expected JSON, found '}, {}'"),
        ('{"traces": ' + "[" * 100_000, "line 1: expected JSON, found: maximum recursion depth exceeded"),
        ('{"traces": [' + "1" * 5000 + "]}", "line 1: expected JSON, found: Exceeds the limit"),
        ("\x1e" + "[" * 100_000 + "\n", "line 1: expected a record of JSON, found '[[["),
        ('\x1e{"time": 1}\n\x1e{}\n', "line 1: expected the head of a sequence with trace, found '{\"time\": 1}'"),
    ],
)
def test_a_file_of_another_form_is_told(text: str, reason: str, log: Callable[[str], Path]):
    path = log(text)
    with pytest.raises(ScenarioError, match=f"^{re.escape(f'{path}: {reason}')}"):
        qlog.read(path)


def test_a_log_without_packets_has_no_path(log: Callable[[str], Path]):
    update = {"time": 1, "name": "recovery:metrics_updated", "data": metrics(1)}
    path = log(sequence({"trace": {}}, [update] * 20))
    with pytest.raises(
        ScenarioError, match=r"log\.sqlog: expected packet_sent with the bytes .* found 0 packets and 0"
    ):
        fit.observe([path])
    with pytest.raises(ScenarioError, match="expected several captures, or one qlog or log of ss"):
        fit.observe([path, path])


# Pictures.


def test_a_log_is_drawn_over_time(log: Callable[[str], Path]):
    """Its windows are bytes; times count from its first update, because a log may count from the start of its machine."""
    later = [(time + 1e9, what, numbers) for time, what, numbers in happened()]
    for form, begin_ms in ((quiche(happened()), 0.0), (quiche(later), 1e9)):
        path = log(form)
        cwnd = of_log.chart(path, "cwnd")
        assert [(line.name, line.minor) for line in cwnd.lines] == [("log.sqlog", False)]
        assert (cwnd.unit, cwnd.time_s[0], cwnd.until_s) == ("kB", 0.0, cwnd.time_s[-1])
        assert cwnd.time_s[-1] == pytest.approx(1e-3 * STEP_MS * (PACKETS - 2), abs=1e-6)
        assert cwnd.lines[0].values[0] == pytest.approx(1e-3 * (50_000 + int(begin_ms + 2 * STEP_MS + RTT_MS)))
        assert of_log.chart(path, "srtt").lines[0].values[-1] == pytest.approx(41.5)
        assert of_log.chart(path, "in-flight").lines[0].values[-1] == pytest.approx(20.0)
    done = call("plot", "srtt", path)
    assert (done.returncode, done.stdout) == (0, f"{path.with_name('log-srtt.png')}\n")
    assert path.with_name("log-srtt.png").read_bytes().startswith(b"\x89PNG")


def test_a_threshold_is_a_line_of_its_own(log: Callable[[str], Path]):
    updates = [{"time": time, "name": "quic:recovery_metrics_updated", "data": {"ssthresh": 1e4}} for time in (1, 2)]
    path = log(sequence({"trace": {}}, updates))
    with pytest.raises(
        ScenarioError, match=r"expected congestion_window, cwnd, current_cwnd in updates of the metrics"
    ):
        of_log.chart(path, "cwnd")
    updates[0]["data"] = {"ssthresh": 1e4, "congestion_window": 2e4}
    cwnd = of_log.chart(log(sequence({"trace": {}}, updates)), "cwnd")
    assert [(line.minor, line.values.tolist()) for line in cwnd.lines] == [(False, [20.0, 20.0]), (True, [10.0, 10.0])]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["goodput"], "plot: expected one of cwnd, srtt, in-flight of a qlog, found 'goodput'"),
        (
            ["cwnd", "--over", "rtt"],
            "expected a sweep or a comparison for --over, --by, --where and --cdf, found a file",
        ),
    ],
)
def test_a_picture_that_a_log_does_not_have(words: list[str], reason: str, log: Callable[[str], Path]):
    path = log(quiche(happened()))
    done = call("plot", words[0], path, *words[1:])
    assert done.returncode == 2
    assert reason in done.stderr
    assert not path.with_name("log-goodput.png").exists()


def test_bytes_in_flight_of_a_run_are_drawn():
    flows = [elephan.flow("reno")]
    run = elephan.run(elephan.dumbbell(rate="5 Mbit/s", rtt="20 ms", flows=flows, duration="3 s"))
    (line,) = run.picture("in-flight").lines
    assert line.values == pytest.approx(1e-3 * run.flows["pipe_bytes"].to_numpy())
    assert line.values.max() > 10
