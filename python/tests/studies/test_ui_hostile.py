"""The server of `elephan ui` against malicious documents, requests, results folders and connections."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
import uvicorn
from command_line import ELEPHAN, call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_client import DOCUMENT, HOST, client_of, results_in
from starlette.testclient import TestClient

import elephan
from elephan.ui import connections
from elephan.ui.library import Library
from elephan.ui.limits import Limits
from elephan.ui.server import application

# No test of the gate ends by it.
PATIENCE_S = 1e6
HEAD = 'duration = "1 s"\npath = { rate = "5 Mbit/s", rtt = "20 ms" }\n'
JSON = {"content-type": "application/json"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path / "results") as client:
        yield client


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results_in(tmp_path_factory.mktemp("made") / "results")


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


# ---- Documents ----


@pytest.mark.parametrize(
    "form",
    [
        'size = {{ csv = "{file}" }}',
        'name = "\\e"\nsize = {{ csv = "{file}" }}',
        'size = {{\n csv = "{file}",\n}}',
        'size = {{ "\\x63sv" = "{file}" }}',
        'size.csv = "{file}"',
        'size = {{ file = "{file}" }}',
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_no_file_is_read_whatever_the_form(client: TestClient, tmp_path: Path, form: str, mark: str) -> None:
    (tmp_path / "secret").write_text("root:x:0:0\n")
    arrivals = '[[arrivals]]\ncc = "reno"\nper_second = 1.0\n' + form.format(file=tmp_path / "secret")
    answer = client.post("/api/open", json={"text": f"{mark}{HEAD}{arrivals}"})
    assert answer.status_code == 422
    assert "root" not in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize("key", ["csv", "file"])
def test_no_file_is_read_for_a_document(client: TestClient, key: str) -> None:
    flow = {"cc": "reno", "size": {key: "/etc/passwd"}}
    answer = client.post("/api/runs", json={"document": {**DOCUMENT, "flow": [flow]}})
    assert answer.status_code == 422
    assert answer.json()["mistakes"][0]["key"].startswith("flow.0.size")
    assert "root:" not in answer.text


def _crowded(kind: str, key: str) -> list[str]:
    """Scenarios of three million flows, or what looks like them."""
    return [
        f"\ufeff{HEAD}[[{kind}]]\n{key} = 3_000_000\n",
        f'name = "\\e"\n{HEAD}[[{kind}]]\n{key} = 0x2dc6c0\n',
        f"{HEAD}{kind} = [{{\n {key} = 3_000_000,\n}}]\n",
        f"{HEAD}{kind} = [{{ {key} = 3_000_000 }}, {{ {key} = -3_000_000 }}]\n",
        f'{HEAD}{kind} = [{{ "{key}" = 3_000_000, "c\u03bfunt" = 1 }}]\n',
    ]


KINDS = [(kind, key) for kind in ("flow", "web", "arrivals", "cbr", "on_off") for key in ("count", "users")]


@pytest.mark.parametrize(("kind", "key"), KINDS)
def test_three_million_flows_are_not_made(client: TestClient, kind: str, key: str) -> None:
    for text in _crowded(kind, key):
        answer = client.post("/api/open", json={"text": text})
        assert answer.status_code == 422
        assert kind in {mistake["key"] for mistake in answer.json()["mistakes"]}, answer.text
    # Also as a document. The last of duplicate keys counts, for the check and the loader alike.
    text = json.dumps({"document": {**DOCUMENT, kind: [{"cc": "reno"}]}})
    text = text.replace('"cc": "reno"', f'"{key}": 1, "{key}": 3000000')
    for path in ("/api/check", "/api/runs", "/api/file"):
        assert client.post(path, content=text, headers=JSON).status_code == 422


BOMBS: list[str] = [
    *(json.dumps({"text": _crowded(kind, key)[1]}) for kind, key in KINDS),
    json.dumps({"text": HEAD + "a." * 100_000 + "a = 1"}),
    json.dumps({"text": HEAD + "x = " + "[" * 100_000}),
    json.dumps({"text": "x = " + "{a=" * 60_000 + "1" + "}" * 60_000}),
    json.dumps({"text": HEAD + '[[flow]]\ncc = "reno"\n' * 8_000}),
    json.dumps({"text": HEAD + '[[flow]]\ncc="reno"\n[[flow.x]]\n' * 7_000}),
    json.dumps({"text": HEAD + "[[link]]\nname='a'\nfrom='a'\nto='b'\ndelay='1 s'\n" * 3_000}),
    json.dumps({"text": HEAD + '[[flow]]\ncc="reno"\n' + "[[event]]\nat='1 s'\nlink='bottleneck'\n" * 5_000}),
    json.dumps({"text": HEAD + '[[flow]]\ncc="reno"\n[sweep]\n"seed"=[' + "1," * 60_000 + "]\nrepeat=9999999999"}),
    json.dumps({"text": HEAD + "".join(f"[sweep.zip]\n'{k}'=[1]\n" for k in range(5))}),
    json.dumps({"text": HEAD + "x = " + "9" * 200_000}),
    json.dumps({"text": HEAD + "x = 1e" + "9" * 200_000}),
    json.dumps({"text": HEAD + "".join(f"x{k} = 1\n" for k in range(20_000))}),
    json.dumps({"text": '{"duration": ' + "[" * 100_000}),
    '{"document": {"flow": ' + "[" * 120 + "]" * 120 + "}}",
    '{"document": {"flow": ' + '[{"a":' * 450 + "1" + "}]" * 450 + "}}",
    '{"document": ' + "[" * 200_000,
    '{"document": {"seed": ' + "9" * 200_000 + "}}",
    '{"document": {"seed": 1e400}}',
    '{"document": {"flow": [{"count": 1e18}]}}',
    '{"document": {"flow": [{"count": NaN}]}}',
    '{"document": {"flow": [{"count": Infinity}]}, "speed": -Infinity}',
    '{"document": {"name": "\\ud800"}}',
    '{"text": "\\udcff"}',
    '{"document": ' + json.dumps({**DOCUMENT, "arrivals": [{"size": {"list": ["1 kB"] * 25_000}}]}) + "}",
    '{"document": ' + json.dumps({**DOCUMENT, "flow": [{"cc": "reno", "tcp": {"x" * 200: 1}}] * 450}) + "}",
    '{"document": ' + json.dumps({**DOCUMENT, "measure": {"to": "9" * 100_000 + " s"}}) + "}",
]
CHECKING = """
import json, resource, sys, time
from pathlib import Path
from page_client import DOCUMENT, client_of
from test_ui_hostile import BOMBS, JSON
with client_of(Path(sys.argv[1])) as client:
    assert client.post("/api/check", json={"document": DOCUMENT}).status_code == 200
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest, codes = 0.0, set()
    for bomb in BOMBS:
        for path in ("/api/open", "/api/check", "/api/runs", "/api/file"):
            start = time.process_time()
            answer = client.post(path, content=bomb, headers=JSON)
            slowest = max(slowest, time.process_time() - start)
            codes.add(answer.status_code)
            assert answer.json()["mistakes"], bomb[:100]
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"codes": sorted(codes), "slowest_s": slowest, "grown_mb": (after - before) / 1024}))
"""


@pytest.fixture
def checked(tmp_path: Path) -> dict[str, Any]:
    """What checking all of them took, in a process of its own."""
    command = [sys.executable, "-c", CHECKING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    costs: dict[str, Any] = json.loads(ran.stdout)
    return costs


def test_checking_what_is_hostile_takes_little_memory(checked: dict[str, Any]) -> None:
    """Ten times what it takes."""
    assert set(checked["codes"]) <= {413, 422}, checked
    assert checked["grown_mb"] < 300, checked


@pytest.mark.realtime
def test_checking_what_is_hostile_takes_little_time(checked: dict[str, Any], deviation: Callable[..., None]) -> None:
    """Many times what it takes: 0.2 s of processor time for the slowest."""
    deviation("processor time of the slowest, s", checked["slowest_s"], below=5)


# ---- Requests ----


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/content?name=" + "x" * 5_000, {}, 404),
        ("GET", "/api/content?name=" + "x/" * 2_500, {}, 404),
        ("GET", "/api/report?name=" + "x" * 5_000, {}, 404),
        ("GET", "/api/content?name=run&name=run", {}, 422),
        ("GET", "/api/content?name=run&name=./run", {}, 422),
        ("GET", "/api/content?name=run&name=reproduction", {}, 422),
        ("GET", "/api/content?name=%00", {}, 404),
        ("GET", "/api/content?name=%ed%a0%80", {}, 404),
        ("GET", "/api/content", {}, 404),
        ("GET", "/api/report", {}, 404),
        ("GET", "/api/about", {"origin": "null"}, 403),
        ("GET", "/api/about", {"origin": "http://["}, 403),
        ("GET", "/api/about", {"origin": "http://127.0.0.1:8765@evil"}, 403),
        ("GET", "/api/about", {"origin": ""}, 403),
        ("GET", "/api/about", {"host": "[", "origin": "http://["}, 421),
        ("GET", "/api/about", {"host": ""}, 421),
        ("GET", "/api/about", {"cookie": 'elephan-8765="\\400'}, 401),
        ("GET", "/api/about", {"cookie": "=;;==;elephan-8765=\u00ff"}, 401),
        ("GET", "/api/runs/no/messages", {}, 404),
        ("GET", "/static/%00", {}, 404),
        ("GET", "/static/" + "x" * 5_000, {}, 404),
        ("GET", "/static", {}, 404),
        ("GET", "/nothing", {}, 404),
        ("DELETE", "/api/runs", {}, 405),
        ("POST", "/api/about", JSON, 405),
        ("POST", "/api/check", {**JSON, "origin": "http://evil.example"}, 403),
        ("POST", "/api/check", {**JSON, "origin": f"http://{HOST}"}, 422),
        ("POST", "/api/check", {**JSON, "host": "evil.example:8765"}, 421),
        ("POST", "/api/check", {**JSON, "sec-fetch-site": "cross-site"}, 403),
        ("POST", "/api/check", {"content-type": "text/plain"}, 415),
        ("POST", "/api/check", {**JSON, "content-length": "999999"}, 413),
        ("POST", "/api/check", {**JSON, "content-length": "\u00b2"}, 411),
        ("POST", "/api/check", {**JSON, "content-length": "9" * 5_000}, 411),
        ("POST", "/api/check", {**JSON, "content-length": "-1"}, 411),
        ("POST", "/api/runs/no/control", JSON, 404),
        ("POST", "/api/runs/no/change", JSON, 404),
    ],
)
def test_odd_requests_are_refused(results: Path, method: str, path: str, headers: dict[str, str], status: int) -> None:
    with client_of(results) as client:
        plain = [(name, value.encode("latin-1")) for name, value in headers.items()]
        content = b"{}" if method == "POST" else None
        answer = client.request(method, path, headers=plain, content=content)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text
    (mistake,) = answer.json()["mistakes"]
    assert "\n" not in mistake["problem"]
    assert len(mistake["problem"]) < 400


@pytest.mark.parametrize("last", ["\u00b2", "1" * 401, "1" * 5_000, "-1", "1.5", "999", "x", "\u00bd"])
def test_an_odd_last_event_is_refused(client: TestClient, last: str) -> None:
    key = client.post("/api/runs", json={"document": DOCUMENT}).json()["id"]
    headers = [("last-event-id", last.encode("latin-1"))]
    assert client.get(f"/api/runs/{key}/messages", headers=headers).status_code == 400  # type: ignore[arg-type]
    assert client.get(f"/api/runs/{key}/messages").text.endswith("event: end\ndata: {}\n\n")


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe{}",
        b'{"text": "\xed\xa0\x80"}',
        b'{"speed": NaN, "document": {}}',
        b'{"stop": 7}',
        b'{"stop": true}',
        b'{"stop": 1e400}',
        b'{"flow": []}',
        b'{"event": null}',
        b'{"flow": {"cc": "reno", "count": 1000000}}',
        b'{"pause": 1}',
        b'{"cancel": "yes"}',
        b'{"speed": 1e300}',
        b'{"speed": true}',
        b'{"speed": [' + b"9" * 5_000 + b"]}",
        b"null",
        b"3",
        b'"text"',
        b"",
        b"[]",
        b"{",
        b'{"document": 3}',
        b'{"document": {"flow": {"a": []}}}',
        b"[" * 10_000,
    ],
)
def test_odd_bodies_are_refused(client: TestClient, body: bytes) -> None:
    web = {"web": [{"users": 1, "start": "0 s"}], "flow": []}
    long = {**DOCUMENT, **web, "duration": "100 s"}
    key = client.post("/api/runs", json={"document": long, "speed": 1}).json()["id"]
    for path in ("/api/check", "/api/file", "/api/open", "/api/runs", f"/api/runs/{key}/change"):
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code == 422, (path, answer.text)
        assert "expected" in answer.json()["mistakes"][0]["problem"]
    answer = client.post(f"/api/runs/{key}/control", content=body, headers=JSON)
    assert answer.status_code in (200, 422)
    client.post(f"/api/runs/{key}/control", json={"cancel": True})


texts = st.text(max_size=20) | st.sampled_from(["run", "sweep", "../run", "reno", "1 s", "count", "csv", "x" * 5_000])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
KEYS = [
    "name",
    "duration",
    "path",
    "flow",
    "link",
    "web",
    "arrivals",
    "cbr",
    "on_off",
    "event",
    "trace",
    "tcp",
    "engine",
]
documents = st.dictionaries(st.sampled_from(KEYS), values, max_size=3).map(lambda more: {**DOCUMENT, **more})
bodies = st.fixed_dictionaries(
    {},
    optional={
        "document": documents | values,
        "text": texts | documents.map(json.dumps),
        "speed": values,
        "stop": values,
        "flow": values,
        "event": values,
        "pause": values,
    },
)
paths = st.sampled_from(["/api/check", "/api/file", "/api/open", "/api/runs/KEY/control", "/api/runs/KEY/change"])
names = st.sampled_from(
    ["Host", "Origin", "Cookie", "Last-Event-ID", "Content-Type", "Content-Length", "Sec-Fetch-Site"]
)
headers = st.dictionaries(names, st.binary(max_size=30).filter(lambda text: not set(text) & {0, 10, 13}), max_size=2)
QUICKLY = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@pytest.fixture(scope="module")
def fuzzed(results: Path) -> Iterator[tuple[TestClient, str]]:
    with client_of(results) as client:
        long = {**DOCUMENT, "duration": "50 s"}
        yield client, client.post("/api/runs", json={"document": long, "speed": 0.001}).json()["id"]


@QUICKLY
@given(path=paths, body=bodies.map(json.dumps).map(str.encode) | st.binary(max_size=200), headers=headers)
def test_no_body_breaks_the_server(
    fuzzed: tuple[TestClient, str], path: str, body: bytes, headers: dict[str, bytes]
) -> None:
    client, key = fuzzed
    asked = {**{name: value.encode() for name, value in JSON.items()}, **headers}
    # The client raises the exceptions of the server, which would otherwise be a response with status 500.
    answer = client.post(path.replace("KEY", key), content=body, headers=asked)  # type: ignore[arg-type]
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert answer.json()["mistakes"]


@QUICKLY
@given(
    path=st.sampled_from(["/", "/static/", "/api/about", "/api/runs", "/api/results", "/api/content", "/api/report"]),
    more=st.lists(
        st.binary(max_size=12).map(quote) | texts.map(lambda text: quote(text, errors="replace")), max_size=3
    ),
    headers=headers,
)
def test_no_address_breaks_the_server(
    fuzzed: tuple[TestClient, str], path: str, more: list[str], headers: dict[str, bytes]
) -> None:
    client, key = fuzzed
    for address in (
        path + "/".join(more),
        path + "?" + "&".join(f"name={one}" for one in more),
        path + "?token=" + "&".join(more),
        f"/api/runs/{key}/{'/'.join(more)}",
    ):
        answer = client.get(address, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code < 500
        if answer.status_code >= 400:
            assert answer.json()["mistakes"]


# ---- Damaged results ----


def _cut(name: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return cut


def _put(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def _set(name: str, key: str, value: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        inner = document = json.loads((folder / name).read_text())
        *before, last = key.split(".")
        for one in before:
            inner = inner[int(one) if one.isdigit() else one]
        inner[last] = value
        _write(folder / name, document)

    return change


def _gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _link(name: str) -> Callable[[Path], None]:
    """A link to a valid file of the same kind elsewhere."""

    def link(folder: Path) -> None:
        away = folder.parent.parent / "away" / Path(name).name
        away.parent.mkdir()
        (folder / name).rename(away)
        (folder / name).symlink_to(away)

    return link


def _pipe(name: str) -> Callable[[Path], None]:
    def pipe(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return pipe


NO_DOCUMENTS = ("", "{", "[]", "{}", "3", "null", '"x"', "\x00", "[" * 100_000)
DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    *(("run", _cut(name)) for name in ("run.json", "summary.json", "flows.parquet", "queues.parquet")),
    *(("run", _put(name, text)) for name in ("run.json", "summary.json") for text in NO_DOCUMENTS),
    ("run", _put("flows.parquet", "PAR1")),
    ("run", _gone("summary.json")),
    ("run", _set("run.json", "scenario", [])),
    ("run", _set("run.json", "scenario.duration", None)),
    ("run", _set("run.json", "scenario.flow", 3)),
    ("run", _set("run.json", "scenario.flow", [{"count": "x"}])),
    ("run", _set("run.json", "scenario.path", [1])),
    ("run", _set("run.json", "labels", 3)),
    ("run", _set("run.json", "wall_time_s", "long")),
    ("run", _set("run.json", "segments_delivered", None)),
    ("run", _set("summary.json", "flows", [[]])),
    ("run", _set("summary.json", "links", [{"name": 1}])),
    ("run", _set("summary.json", "from_s", "x")),
    ("run", _set("summary.json", "goodput_bit_s", {"a": []})),
    ("run", _link("run.json")),
    ("run", _link("summary.json")),
    ("run", _link("flows.parquet")),
    ("run", _link("queues.parquet")),
    ("run", _pipe("summary.json")),
    ("run", _pipe("queues.parquet")),
    ("comparison", _put("comparison.json", "[]")),
    ("comparison", _set("comparison.json", "runs", [])),
    ("comparison", _set("comparison.json", "runs", {})),
    ("comparison", _set("comparison.json", "runs", {"../../../run": [1]})),
    ("comparison", _set("comparison.json", "runs", {"reno": 5})),
    ("comparison", _cut("runs/reno-0/run.json")),
    ("comparison", _link("runs/reno-0")),
    ("sweep", _put("sweep.json", "[]")),
    ("sweep", _put("sweep.json", "")),
    ("sweep", _gone("sweep.json")),
    ("sweep", _link("sweep.json")),
    ("sweep", _link("index.parquet")),
    ("sweep", _set("sweep.json", "settings", {})),
    ("sweep", _set("sweep.json", "settings", [{}])),
    ("sweep", _set("sweep.json", "scenario", {"flow": None})),
    ("sweep", _cut("index.parquet")),
    ("reproduction", _set("source/x.json", "comparisons", [3])),
    ("reproduction", _set("source/x.json", "claims", {"one": 3})),
    ("reproduction", _set("source/x.json", "picture", "../run/run.json")),
    ("reproduction", _set("source/x.json", "picture", "/etc/passwd")),
    ("reproduction", _set("source/x.json", "picture", 3)),
    ("reproduction", _link("source/x.png")),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_damaged_result_is_said_and_takes_no_other_with_it(
    results: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    damage(folder / name)
    listed = {entry["name"]: entry for entry in Library(folder).all()}
    assert {key for key, entry in listed.items() if entry["problem"]} <= {name}
    assert set(listed) >= {"run", "comparison", "sweep", "reproduction"} - {name}
    with client_of(folder) as client:
        assert client.get("/api/results").status_code == 200
        for path in ("/api/content", "/api/report"):
            answer = client.get(path, params={"name": name})
            assert answer.status_code in (404, 422), answer.text
            (mistake,) = answer.json()["mistakes"]
            assert "expected" in mistake["problem"]
            others = ["run", "comparison", "sweep", "reproduction"]
            others.remove(name)
            assert client.get(path, params={"name": others[0]}).status_code == 200
    for form in ("html", "md"):
        done = call("report", folder / name, "--out", tmp_path / f"out.{form}")
        assert done.returncode in (1, 2), done.stdout
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not list(tmp_path.glob("out.*"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_put("run.json", "[]"), "expected a JSON object, found a list"),
        (_put("run.json", '{"sce'), "run.json: expected JSON, found: Unterminated string"),
        (_put("run.json", "{}"), "run.json: expected scenario as a run writes it, found None"),
    ],
)
def test_the_list_says_why(results: Path, tmp_path: Path, damage: Callable[[Path], None], problem: str) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    damage(folder / "run")
    (told,) = (entry["problem"] for entry in Library(folder).all() if entry["problem"])
    assert problem in told
    assert str(tmp_path) not in told


def test_a_foreign_part_is_no_part(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(results / "sweep", folder)
    (folder / "flows" / "part-abc.parquet").write_text("nonsense")
    (folder / "index").mkdir()
    (folder / "index" / "part-\u0662.parquet").write_text("nonsense")
    assert elephan.Dataset(folder).index().height == 2
    assert len(elephan.Dataset(folder).samples("flows")) == 1
    assert call("report", folder).returncode == 0
    assert call("sweep", "query", folder).returncode == 0


def test_results_of_the_command_line_are_listed_opened_and_stand_beside_each_other(results: Path) -> None:
    with client_of(results) as client:
        listed = {entry["name"]: entry["kind"] for entry in client.get("/api/results").json()}
        assert listed == {name: name for name in ("run", "comparison", "sweep", "reproduction")}
        sweep = client.get("/api/content", params={"name": "sweep"}).json()
        assert [row[0] for row in sweep["tables"][0]["rows"]] == ["10 ms", "20 ms"]
        content = client.get("/api/content", params={"name": ["run", "comparison", "sweep"]}).json()
        assert client.get("/api/content", params={"name": ["run", "reproduction"]}).status_code == 422
    runs = content["runs"]
    assert [key["name"] for key in runs["keys"]] == ["result", "cc", "seed", "path.rtt"]
    assert [row[0] for row in runs["settings"]] == ["run", "comparison", "comparison", "sweep", "sweep"]
    assert [table["title"] for table in content["tables"]] == [
        f"{name}: Metrics" for name in ("run", "comparison", "sweep")
    ]


def test_two_runs_of_one_name_stand_beside_each_other(results: Path, tmp_path: Path) -> None:
    for group in ("a", "b"):
        shutil.copytree(results / "run", tmp_path / "results" / group / "run")
    with client_of(tmp_path / "results") as client:
        content = client.get("/api/content", params={"name": ["a/run", "b/run"]}).json()
    assert [row[0] for row in content["tables"][0]["rows"]] == ["a/run", "b/run"]
    assert [line["name"] for line in content["groups"][0]["charts"][0]["lines"]] == [
        "a/run: flow 1: htcp",
        "b/run: flow 1: htcp",
    ]


# ---- Connections ----


@contextlib.contextmanager
def served(results: Path) -> Iterator[int]:
    """A server of this test in a thread, on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = application(results, hosts=frozenset(), token="secret", limits=Limits(request_s=0.5))
    server = uvicorn.Server(uvicorn.Config(app, **connections.uvicorn_options()))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()


def _about(port: int) -> int:
    request = Request(f"http://127.0.0.1:{port}/api/about", headers={"cookie": f"elephan-{port}=secret"})
    with urlopen(request, timeout=PATIENCE_S) as answer:
        status: int = answer.status
    return status


def _closed(one: socket.socket, patience_s: float = PATIENCE_S) -> bool:
    """Whether the other end closes, whatever it sends before."""
    one.settimeout(patience_s)
    try:
        while one.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.realtime
def test_half_open_connections_are_closed_and_shut_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 1.0)
    with served(tmp_path) as port, contextlib.ExitStack() as stack:
        half = [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX: "]
        opened = []
        for number in range(300):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            one.sendall(half[number % len(half)])
            opened.append(one)
        assert _about(port) == 200
        # Sending single bytes slowly does not extend the time limit.
        for _ in range(6):
            with contextlib.suppress(OSError):
                opened[-1].sendall(b"x")
            time.sleep(0.25)
        assert all(_closed(one, 120.0) for one in opened)
        assert _about(port) == 200


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with served(tmp_path) as port, socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as one:
        head = "POST /api/check HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
        one.sendall(f"{head}Cookie: elephan-{port}=secret\r\n\r\n{{".encode())
        assert one.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert _closed(one)


def test_a_second_request_that_never_ends_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as port, socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert one.recv(4096).startswith(b"HTTP/1.1 401 ")
        # The first request had longer, whose head is there.
        monkeypatch.setattr(connections, "HEAD_S", 0.5)
        one.sendall(b"GET / HT")
        assert _closed(one)


def test_a_browser_is_shown_the_token_in_a_private_file_only(tmp_path: Path) -> None:
    told = tmp_path / "told"
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {told}.part; stat -c %a "$1" >> {told}.part\n'
                      f'cat "$1" >> {told}.part; mv {told}.part {told}\n')  # fmt: skip
    opener.chmod(0o755)
    command = [ELEPHAN, "ui", "--results", str(tmp_path / "results"), "--port", "0"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            printed = re.search(r"http://\S+", process.stdout.readline())
            assert printed is not None
            url, token = printed[0].split("?token=")
            while not told.exists():
                assert process.poll() is None
                time.sleep(0.05)
            argument, mode, *page = told.read_text().splitlines()
            assert token not in argument
            assert int(mode, 8) & (stat.S_IRWXG | stat.S_IRWXO) == 0
            assert f"{url}?token={token}" in "\n".join(page)
            while True:
                assert process.poll() is None
                with contextlib.suppress(OSError), urlopen(printed[0], timeout=PATIENCE_S) as answer:
                    assert answer.headers["set-cookie"].startswith(f"elephan-{url.split(':')[2].strip('/')}={token};")
                    break
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert not Path(argument).exists()
