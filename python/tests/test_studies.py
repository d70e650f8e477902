"""Comparisons and sweeps that a page starts."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from elephan.studies.compare import compare
from elephan.ui.limits import Limits
from elephan.ui.server import application

TOKEN = "secret"
PATH = {"rate": "5 Mbit/s", "rtt": "20 ms", "buffer": "100% bdp"}
RUNS = {"flows": 2, "duration": "5 s", "repeat": 2, "seed": 3, "start_within": "1 s"}
COMPARISON: dict[str, Any] = {"kind": "comparison", "cc": ["reno", "htcp"], "path": PATH, **RUNS}
SCENARIO = {"name": "grid", "duration": "3 s", "path": PATH, "flow": [{"cc": "reno"}]}
SWEEP: dict[str, Any] = {
    "kind": "sweep",
    "document": {**SCENARIO, "sweep": {"path.rtt": ["10 ms", "20 ms"], "repeat": 2}},
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    app = application(tmp_path, token=TOKEN, hosts=frozenset({"127.0.0.1:8765"}), limits=Limits(study_runs=20))
    with TestClient(app, base_url="http://127.0.0.1:8765", cookies={"elephan-8765": TOKEN}) as client:
        yield client


def _ended(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/api/studies", json=body)
    assert answer.status_code == 201, answer.text
    until = time.monotonic() + 120
    while time.monotonic() < until:
        told: dict[str, Any] = client.get(f"/api/studies/{answer.json()['id']}").json()
        if told["state"] in ("done", "cancelled", "failed"):
            return told
        time.sleep(0.02)
    raise AssertionError(told)


def test_a_comparison_is_that_of_the_command_line(client: TestClient, tmp_path: Path) -> None:
    told = _ended(client, COMPARISON)
    assert (told["state"], told["done"], told["total"]) == ("done", 4, 4), told
    assert [row[0] for row in told["table"]["rows"]] == ["reno", "htcp"]
    compare(cc=["reno", "htcp"], **PATH, **RUNS).save(tmp_path / "own")
    table = [(tmp_path / name / "table.csv").read_text() for name in (told["folder"], "own")]
    assert table[0] == table[1]
    listed = client.get("/api/results").json()["results"]
    assert (told["folder"], "comparison") in [(entry["name"], entry["kind"]) for entry in listed]


def test_a_sweep_is_run_and_listed(client: TestClient) -> None:
    told = _ended(client, SWEEP)
    assert (told["state"], told["done"], told["total"], told["folder"]) == ("done", 4, 4, "grid-1"), told
    assert len(told["table"]["rows"]) == 4
    content = client.get("/api/content", params={"name": "grid-1"}).json()
    assert [row[0] for row in content["tables"][0]["rows"]] == ["10 ms", "20 ms"]
    assert [study["state"] for study in client.get("/api/studies").json()] == ["done"]


@pytest.mark.parametrize("body", [COMPARISON, SWEEP])
def test_a_study_is_cancelled_and_alone(client: TestClient, body: dict[str, Any]) -> None:
    text = json.dumps(body).replace('"3 s"', '"2000 s"').replace('"5 s"', '"2000 s"')
    key = client.post("/api/studies", json=json.loads(text)).json()["id"]
    assert client.post("/api/studies", json=body).status_code == 429
    client.post(f"/api/studies/{key}/cancel", json={})
    until = time.monotonic() + 120
    while client.get(f"/api/studies/{key}").json()["state"] != "cancelled":
        assert time.monotonic() < until
        time.sleep(0.02)


def _swept(**sweep: object) -> dict[str, Any]:
    return {"kind": "sweep", "document": {**SCENARIO, "sweep": sweep}}


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({**COMPARISON, "cc": ["nonsense"]}, "flow.0.cc"),
        ({**COMPARISON, "cc": ["lib:/tmp/x.so"]}, "flow.0.cc"),
        ({**COMPARISON, "cc": ["python:os:path"]}, "flow.0.cc"),
        ({**COMPARISON, "cc": []}, "cc"),
        ({**COMPARISON, "cc": ["reno"] * 2}, "cc"),
        ({**COMPARISON, "repeat": 11}, "repeat"),
        ({**COMPARISON, "repeat": True}, "repeat"),
        ({**COMPARISON, "flows": 10**9}, "flows"),
        ({**COMPARISON, "duration": "1 s"}, "duration"),
        ({**COMPARISON, "duration": "long"}, "duration"),
        ({**COMPARISON, "start_within": "5"}, "start_within"),
        ({**COMPARISON, "path": {**PATH, "rate": "fast"}}, "path.rate"),
        ({**COMPARISON, "path": {**PATH, "buffer": "much"}}, "path.buffer"),
        ({**COMPARISON, "path": None}, "path.rate"),
        ({**COMPARISON, "duration": "100000 h"}, "duration"),
        (_swept(), "sweep"),
        (_swept(**{"path.rtt": "10 ms"}), "sweep.path.rtt"),
        (_swept(**{"path.rtt": ["10"]}), "path.rtt"),
        (_swept(**{"path.rtt": ["10 ms"] * 21}), "sweep"),
        (_swept(**{"path.rtt": ["10 ms"], "repeat": 21}), "sweep"),
        (_swept(**{"flow.cc": ["lib:/tmp/x.so"]}), "sweep.flow.cc"),
        (_swept(**{"engine": ["linux"]}), "engine"),
        (_swept(**{"trace.events": [True]}), "trace.events"),
        (_swept(zip={}), "sweep.zip"),
        ({"kind": "sweep", "document": []}, "sweep"),
        ({"kind": "other"}, "kind"),
        ({}, "kind"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_at_its_key(client: TestClient, body: dict[str, Any], key: str) -> None:
    answer = client.post("/api/studies", json=body)
    assert answer.status_code == 422, answer.text
    assert key in [mistake["key"] for mistake in answer.json()["mistakes"]], answer.text
    assert client.get("/api/studies").json() == []


def test_no_file_is_read_for_a_sweep(client: TestClient, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s,rate_bit_s\nmarked\n")
    answer = client.post("/api/studies", json=_swept(**{"path.trace": [str(trace)]}))
    assert answer.status_code == 422
    assert "marked" not in answer.text
