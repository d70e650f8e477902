"""A client of the server of `elephan ui` for tests, and a scenario and results for it."""

import json
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import elephan
from elephan.ui.limits import Limits
from elephan.ui.server import application

HOST = "127.0.0.1:8765"
PATH = {"rate": "5 Mbit/s", "rtt": "20 ms", "buffer": "50% bdp"}
DOCUMENT: dict[str, Any] = {"name": "tried", "duration": "4 s", "path": PATH, "flow": [{"cc": "htcp"}]}


def client_of(results: Path, limits: Limits | None = None) -> TestClient:
    """A client that has the token."""
    app = application(results, hosts=frozenset({HOST}), token="secret", limits=limits)
    return TestClient(app, base_url=f"http://{HOST}", cookies={"elephan-8765": "secret"})


def results_in(folder: Path) -> Path:
    """Write a run with every table but those of crowds, a comparison, a sweep and a reproduction, each named after its kind."""
    traffic = {"flow": [{"cc": "htcp", "size": "20 kB", "transfers": 3}], "cbr": [{"rate": "100 kbit/s"}]}
    document = {**DOCUMENT, "duration": "1 s", **traffic, "trace": {"events": True}}
    elephan.run(elephan.Scenario(document).with_settings({})).save(folder / "run")
    keys: dict[str, Any] = {**PATH, "flows": 1, "duration": "2 s", "repeat": 1, "seed": 1, "start_within": "1 s"}
    elephan.compare(cc=["reno", "htcp"], **keys).save(folder / "comparison")
    swept = elephan.Scenario({**document, "sweep": {"path.rtt": ["10 ms", "20 ms"]}}).with_settings({})
    elephan.sweep(swept, folder / "sweep", workers=1).run()
    claim = {"claim": "one", "verdict": "confirmed", "sentence": "", "sets": []}
    report = {"name": "x", "title": "t", "quick": True, "comparisons": [], "claims": [claim]}
    (folder / "reproduction" / "source").mkdir(parents=True)
    (folder / "reproduction" / "source" / "x.png").write_bytes(b"PNG")
    document = {**report, "notes": [], "picture": "source/x.png"}
    (folder / "reproduction" / "source" / "x.json").write_text(json.dumps(document))
    return folder
