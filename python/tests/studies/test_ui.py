"""The server of `elephan ui`: which requests it accepts, what they do, and which it refuses."""

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_client import DOCUMENT, HOST, client_of
from starlette.testclient import TestClient

import elephan
from elephan.ui.library import Library
from elephan.ui.limits import Limits
from elephan.ui.live import LiveRun, LiveRuns, TooManyError
from elephan.ui.server import application

LIMITS = Limits(runs=2, request_bytes=20_000, flows=10, samples=10_000, events=1_000_000)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path / "results", LIMITS) as client:
        yield client


def _messages(client: TestClient, key: str, **headers: str) -> list[dict[str, Any]]:
    text = client.get(f"/api/runs/{key}/messages", headers=headers).text
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {") and line != "data: {}"]


class Pausing(LiveRun):
    """A run at full speed that pauses itself at these samples, and keeps what it would save."""

    def __init__(self, document: dict[str, Any], *times_s: float) -> None:
        self._pauses = deque(times_s)
        self.saved: list[elephan.Run] = []
        super().__init__(document, LIMITS, self._keep, 0.0)

    def _keep(self, run: elephan.Run) -> str:
        self.saved.append(run)
        return "saved"

    def look(self, time_s: float, flows: Any, queues: Any) -> bool:
        goes_on = super().look(time_s, flows, queues)
        if self._pauses and time_s > self._pauses[0] - 1e-9:
            self._pauses.popleft()
            self.control(pause=True)
        return goes_on


def _add_flow(run: LiveRun) -> None:
    run.change(lambda document, now: document["flow"].append({"cc": "scalable", "start": now}))


def _to_the_end(run: LiveRun) -> list[dict[str, Any]]:
    """Let a run go on, and return all its messages."""
    run.control(pause=False)
    _wait(run)
    return [json.loads(text) for text in run.messages]


def _wait(run: LiveRun) -> None:
    while not run.is_over:
        time.sleep(0.01)


def _paused(run: LiveRun) -> None:
    while run.state != "paused":
        assert not run.is_over, run.messages[-1]
        time.sleep(0.005)


def test_a_run_is_told_of_saved_and_the_same_as_on_the_command_line(client: TestClient, tmp_path: Path) -> None:
    started = client.post("/api/runs", json={"document": DOCUMENT, "speed": 0})
    assert started.status_code == 201
    messages = _messages(client, started.json()["id"])
    assert messages[0]["type"] == "start"
    assert messages[0]["labels"] == ["htcp"]
    assert messages[-1]["type"] == "done"
    folder = messages[-1]["folder"]
    told = [value for m in messages if m["type"] == "samples" for value in m["flows"]["cwnd_segments"]]
    saved = elephan.Run.load(tmp_path / "results" / folder)
    assert told == pytest.approx(saved.flows["cwnd_segments"].to_list(), rel=1e-5)
    path, flows = DOCUMENT["path"], DOCUMENT["flow"]
    plain = elephan.run(elephan.dumbbell(**path, flows=flows, duration="4 s", name="tried"))
    assert plain.summary == saved.summary
    # A page that reconnects continues reading where it stopped.
    again = _messages(client, started.json()["id"], **{"last-event-id": str(len(messages) - 2)})
    assert again == messages[-1:]
    assert [entry["name"] for entry in client.get("/api/results").json()] == [folder]
    assert client.get("/api/content", params={"name": folder}).json()["kind"] == "run"
    report = client.get("/api/report", params={"name": folder})
    assert "attachment" in report.headers["content-disposition"]
    assert report.text.startswith("<!doctype html>")


@pytest.mark.parametrize("engine", ["sim", pytest.param("kernel", marks=pytest.mark.slow)])
def test_a_change_in_mid_run_keeps_what_was_drawn_and_is_in_the_scenario(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if engine == "kernel":
        request.getfixturevalue("guest")
    run = Pausing({**DOCUMENT, "engine": engine, "duration": "6 s"}, 1.0)
    _paused(run)
    _add_flow(run)
    messages = _to_the_end(run)
    assert [m["type"] for m in messages if m["type"] not in ("samples", "state")] == ["start", "changed", "done"]
    changed = next(m for m in messages if m["type"] == "changed")
    start = changed["document"]["flow"][1]["start"]
    # At the sample after the one at which it paused.
    assert float(start.removesuffix(" s")) == pytest.approx(1.1)
    assert changed["labels"] == ["htcp", "scalable"]
    # All messages together contain the result of the exported scenario, up to the digits that are sent.
    file = tmp_path / "exported.toml"
    file.write_text(elephan.Scenario(changed["document"]).toml)
    repeat = elephan.run(elephan.load(file))
    assert repeat.flows["time_s"].max() == pytest.approx(6.0)
    assert repeat.summary == run.saved[0].summary
    assert repeat.provenance["engine"] == run.saved[0].provenance["engine"] == engine
    assert repeat.flows.equals(run.saved[0].flows)
    for column in ("time_s", "cwnd_segments", "goodput_bit_s"):
        told = [value for m in messages if m["type"] == "samples" and "flows" in m for value in m["flows"][column]]
        assert told == pytest.approx(repeat.flows[column].to_list(), rel=1e-5)
    assert f'start = "{start}"' in file.read_text()


def test_changes_at_any_moment_keep_the_past_and_the_scenario_true() -> None:
    for time_s in (None, 0.0, 0.1, 0.5, 2.0, 3.8, 3.9):
        run = Pausing(DOCUMENT, *([] if time_s is None else [time_s]))
        if time_s is not None:
            _paused(run)
        with contextlib.suppress(elephan.ScenarioError):  # the run may have ended, or be too close to its end
            _add_flow(run)
        assert "restart" not in [m["type"] for m in _to_the_end(run)]
        assert len(run.saved[0].labels) == len(run.document["flow"])


def test_a_link_is_changed_in_mid_run() -> None:
    run = Pausing({**DOCUMENT, "duration": "6 s"}, 1.0)
    _paused(run)
    with pytest.raises(elephan.ScenarioError, match=r"event\.0\.link: expected one of the links"):
        run.change(
            lambda document, now: document.setdefault("event", []).append({"at": now, "link": "x", "rate": "1 Mbit/s"})
        )
    link = {"link": "bottleneck", "rate": "1 Mbit/s"}
    run.change(lambda document, now: document.setdefault("event", []).append({"at": now, **link}))
    assert "restart" not in [m["type"] for m in _to_the_end(run)]
    at = float(run.document["event"][0]["at"].split()[0])
    flows = run.saved[0].flows
    late = flows.filter(flows["time_s"] > at + 1.0)["goodput_bit_s"].mean()
    early = flows.filter((flows["time_s"] > 0.5) & (flows["time_s"] < at))["goodput_bit_s"].mean()
    assert early > 3e6
    assert late < 1e6


@pytest.mark.parametrize("measure", [{}, {"from": "2 s", "to": "5 s"}])
def test_a_new_flow_does_not_move_the_measuring_window(measure: dict[str, str]) -> None:
    document = {**DOCUMENT, "duration": "6 s", **({"measure": measure} if measure else {})}
    run = Pausing(document, 0.5, 1.0)
    # Two flows, because the second change must not start from what the first one has moved.
    for _ in range(2):
        _paused(run)
        _add_flow(run)
        run.control(pause=False)
    told = [m for m in _to_the_end(run) if m["type"] in ("start", "changed")]
    window = (told[0]["from_s"], told[0]["to_s"])
    assert [(m["from_s"], m["to_s"]) for m in told] == [window] * 3
    summary = run.saved[0].summary
    assert (summary.from_s, summary.to_s) == window
    # A file with the same flows, and without a window, is measured from the last start on.
    silent = {key: value for key, value in run.document.items() if key != "measure"}
    assert elephan.Scenario(silent).plan["from_s"] != window[0]


def test_a_change_that_reaches_back_makes_the_run_anew_and_says_so() -> None:
    run = Pausing(DOCUMENT, 0.5)
    _paused(run)
    run.change(lambda document, now: document["flow"].append({"cc": "reno", "start": now, "rtt": "10 ms"}))
    kinds = [m["type"] for m in _to_the_end(run)]
    assert "restart" in kinds
    assert kinds[-1] == "done"


def test_cancelling_writes_nothing(client: TestClient, tmp_path: Path) -> None:
    key = client.post("/api/runs", json={"document": DOCUMENT, "speed": 1}).json()["id"]
    client.post(f"/api/runs/{key}/control", json={"cancel": True})
    assert _messages(client, key)[-1]["type"] == "cancelled"
    assert not (tmp_path / "results").exists()


def test_mistakes_come_by_key_in_the_words_of_the_command_line(client: TestClient) -> None:
    wrong = {**DOCUMENT, "path": {**DOCUMENT["path"], "rate": "fast"}}
    answer = client.post("/api/check", json={"document": wrong})
    assert answer.status_code == 422
    assert answer.json() == {
        "mistakes": [{"key": "path.rate", "problem": 'expected a rate such as "250 Mbit/s", found "fast"'}]
    }
    with pytest.raises(elephan.ScenarioError) as error:
        elephan.dumbbell(**wrong["path"], flows=wrong["flow"], duration="4 s")
    (mistake,) = answer.json()["mistakes"]
    assert str(error.value) == f"scenario: {mistake['key']}: {mistake['problem']}"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"duration": "10 h"}, "path.rate"),
        ({"flow": [{"cc": "reno", "count": 11}]}, "flow"),
        ({"flow": [{"cc": "reno", "count": 10**7}]}, "flow"),
        ({"web": [{"cc": "reno", "users": 10**7}]}, "web"),
        ({"sweep": {"repeat": 10**12}}, "sweep"),
        ({"arrivals": [{"cc": "reno", "per_second": 1e9, "size": "1 kB"}]}, "arrivals.0.per_second"),
        ({"trace": {"interval": "10 us"}}, "trace.interval"),
        ({"measure": {"interval": "1 ps"}}, "measure.interval"),
        ({"measure": {"interval": "10 ns"}}, "measure.interval"),
        ({"trace": {"pcap": ["bottleneck"]}}, "trace.pcap"),
        ({"trace": {"events": True}}, "trace.events"),
        ({"trace": {"variables": True}}, "trace.variables"),
        ({"sweep": {"path.rtt": ["40 ms", "80 ms"]}}, "sweep"),
        # No code is loaded for a page.
        ({"flow": [{"cc": "lib:./mine.so"}]}, "flow.0.cc"),
        ({"flow": [{"cc": {"name": "python:os:system"}}]}, "flow.0.cc"),
        ({"flow": [{"cc": "linux:bbr"}]}, "flow.0.cc"),
        ({"arrivals": [{"cc": "bpf:/x.bpf.c", "per_second": 1, "size": "1 kB"}]}, "arrivals.0.cc"),
    ],
)
def test_what_is_too_much_for_a_page_is_refused_with_the_limit(
    client: TestClient, change: dict[str, Any], key: str
) -> None:
    answer = client.post("/api/runs", json={"document": {**DOCUMENT, **change}})
    assert answer.status_code == 422
    assert key in [mistake["key"] for mistake in answer.json()["mistakes"]]


def test_so_many_runs_and_no_more(client: TestClient) -> None:
    keys = [client.post("/api/runs", json={"document": DOCUMENT, "speed": 0.1}).json()["id"] for _ in range(2)]
    refused = client.post("/api/runs", json={"document": DOCUMENT, "speed": 0.1})
    assert refused.status_code == 429
    assert refused.json()["mistakes"][0]["problem"].startswith("expected at most 2 runs at a time, found 2")
    for key in keys:
        client.post(f"/api/runs/{key}/control", json={"cancel": True})


# There is no sample between the beginning and the end, which is an hour of computing later.
SILENT = {
    **DOCUMENT,
    "duration": "100000 s",
    "path": {"rate": "1 Gbit/s", "rtt": "20 ms", "buffer": "50% bdp"},
    "measure": {"interval": "10000 s"},
    "trace": {"interval": "100000 s"},
}


def test_cancelling_acts_at_once_and_frees_the_slot_when_the_run_has_ended(tmp_path: Path) -> None:
    runs = LiveRuns(Limits(runs=1, events=10**12), tmp_path)
    run = runs.start(SILENT, 0.0)
    while not run._has_begun:
        time.sleep(0.01)
    run.control(cancel=True)
    # The thread may have ended already.
    assert run.state in ("cancelling", "cancelled")
    assert run.is_over == (run.state == "cancelled")
    _wait(run)
    assert run.state == "cancelled"
    told = [m for m in map(json.loads, run.messages) if m["type"] != "samples"]
    assert [(m["type"], m.get("state")) for m in told] == [
        ("start", "running"),
        ("state", "cancelling"),
        ("cancelled", None),
    ]
    again = runs.start(SILENT, 0.0)
    # Stops between cancelling and the end, as on a slow machine.
    again.state = "cancelling"
    with pytest.raises(TooManyError):
        runs.start(SILENT, 0.0)
    again.state = "running"
    runs.cancel_all()
    runs.join()
    assert again.is_over
    assert again._samples == {"flows": [], "queues": []}


def test_a_change_takes_effect_where_no_sample_comes() -> None:
    run = LiveRun(SILENT, Limits(events=10**12), lambda _: "saved", 0.0)
    while not run._has_begun:
        time.sleep(0.01)
    run.change(lambda document, _: document.update(duration="2 s", trace={"interval": "1 s"}, measure={}))
    _wait(run)
    assert run.state == "done"


@pytest.mark.parametrize(("document", "limit_s"), [(DOCUMENT, 0), (SILENT, 0.3)])
def test_the_time_limit_acts_also_where_simulated_time_does_not_advance(
    document: dict[str, Any], limit_s: float
) -> None:
    run = LiveRun(document, Limits(events=10**12, computing_s=limit_s), lambda _: "saved", 0.0)
    _wait(run)
    assert json.loads(run.messages[-1])["text"].startswith(f"expected at most {limit_s} s of computing")


def test_a_hostile_scenario_stays_within_the_results_folder(client: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.json").write_text("{}")
    results = tmp_path / "results"
    key = client.post("/api/runs", json={"document": {**DOCUMENT, "name": "../../outside/<b>"}}).json()["id"]
    folder = _messages(client, key)[-1]["folder"]
    assert [path.name for path in results.iterdir()] == [folder]
    (results / "link").symlink_to(outside)
    for name in ("../outside", str(outside), "link", "..", ".", "", f"{folder}/../../outside", "\x00"):
        assert client.get("/api/content", params={"name": name}).status_code == 404, name
        assert client.get("/api/report", params={"name": name}).status_code == 404, name
    assert [entry["name"] for entry in Library(results).all()] == [folder]
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("hosts", [frozenset({HOST}), frozenset()])
def test_a_token_is_needed_here_and_elsewhere(tmp_path: Path, hosts: frozenset[str]) -> None:
    app = application(tmp_path, hosts=hosts, token="secret")
    with TestClient(app, base_url=f"http://{HOST}") as client:
        for path in ("/", "/?token=guess", "/?token=%FF", "/?token=", "/api/about?token=secret", "/static/app.js"):
            assert client.get(path).status_code == 401, path
        assert client.get("/", headers={"cookie": "elephan-8765=guess; elephan-token=secret"}).status_code == 401
        # The headers that a browser sends for a visit that began in a file or another program.
        first = client.get("/", params={"token": "secret"}, headers={"sec-fetch-site": "cross-site"})
        assert first.status_code == 200
        assert "secret" not in first.text
        cookie = first.headers["set-cookie"]
        assert cookie == "elephan-8765=secret; HttpOnly; Path=/; SameSite=strict"
        assert client.get("/api/about").status_code == 200
        assert "secret" not in client.get("/").text


def test_every_answer_has_the_headers_that_browsers_heed(client: TestClient) -> None:
    for path in ("/", "/?token=secret", "/?token=guess", "/static/app.js", "/api/about", "/api/content?name=no", "/no"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_file_is_opened_and_exported_again(client: TestClient) -> None:
    text = client.post("/api/file", json={"document": DOCUMENT}).text
    document = client.post("/api/open", json={"text": text}).json()["document"]
    assert document["path"]["rate"] == "5 Mbit/s"
    assert client.post("/api/check", json={"document": document}).status_code == 200
