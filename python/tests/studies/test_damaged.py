"""Damaged results of any kind are read, or refused in one line. `make fuzz` tests more kinds of damage."""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_client import client_of, results_in
from starlette.testclient import TestClient

from elephan import ScenarioError
from elephan.api.run import TABLES, Run
from elephan.base.documents import damage
from elephan.studies.sweeps import Dataset, SweepError

# Values that can replace an expected value.
ODD = [None, True, -1, 1e308, 2**70, "", "../..", "\x1b[31m\n", [], [[]], {}, {"scenario": None}, "NaN"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results_in(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path) as client:
        yield client


def look_at_tables(folder: Path) -> None:
    """Read all tables of a run, or of a sweep."""
    if folder.name == "run":
        run = Run.load(folder)
        for name in TABLES:
            getattr(run, name)
    if folder.name == "sweep":
        data = Dataset(folder)
        data.runs()
        data.samples("flows")


def look_at_page(client: TestClient, name: str) -> None:
    """Request results, and the list that has them."""
    assert client.get("/api/results").status_code == 200
    for path in ("/api/content", "/api/report"):
        answer = client.get(path, params={"name": name})
        assert answer.status_code in (200, 404, 422)
        assert answer.status_code == 200 or len(answer.json()["mistakes"]) == 1


def replaced(value: Any, steps: list[int], odd: Any) -> Any:
    """A document in which one value, found by `steps`, is replaced."""
    if not steps or not isinstance(value, dict | list) or not value:
        return odd
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[steps[0] % len(keys)]
    inner = replaced(value[key], steps[1:], odd)
    if isinstance(value, dict):
        return {**value, key: inner}
    return [*value[:key], inner, *value[key + 1 :]]


def damaged(data: bytes, kind: str, place: float, odd: int, more: bytes, steps: list[int]) -> bytes:
    """Damage to the content of a file."""
    at = int(place * len(data))
    if kind == "value":
        try:
            document = json.loads(data)
        except ValueError:
            return data[:at]
        return json.dumps(replaced(document, steps, ODD[odd])).encode()
    return {
        "cut": data[:at],
        "change": data[:at] + more + data[at + len(more) :],
        "insert": data[:at] + more + data[at:],
        "remove": data[:at] + data[at + len(more) :],
        "empty": b"",
    }[kind]


@pytest.mark.parametrize("what", ["run", "comparison", "sweep", "reproduction"])
@given(
    which=st.integers(0, 1000),
    kind=st.sampled_from(["value", "cut", "change", "insert", "remove", "empty", "absent", "folder"]),
    place=st.floats(0, 1),
    odd=st.integers(0, len(ODD) - 1),
    more=st.binary(min_size=1, max_size=8),
    steps=st.lists(st.integers(0, 30), max_size=5),
)
@settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_damaged_results_are_read_or_refused_in_one_line(
    whole: Path,
    client: TestClient,
    tmp_path: Path,
    what: str,
    which: int,
    kind: str,
    place: float,
    odd: int,
    more: bytes,
    steps: list[int],
) -> None:
    folder = tmp_path / what
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole / what, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = files[which % len(files)]
    if kind in ("absent", "folder"):
        file.unlink()
        if kind == "folder":
            file.mkdir()
    else:
        file.write_bytes(damaged(file.read_bytes(), kind, place, odd, more, steps))
    look_at_page(client, what)
    said = "read"
    try:
        look_at_tables(folder)
    except (ScenarioError, SweepError, OSError) as error:
        said = str(error)
    assert len(said.splitlines()) == 1, said


def test_only_exceptions_and_panics_are_damage(tmp_path: Path):
    for error in (ValueError("x"), pl.exceptions.PanicException("x"), SweepError("x")):
        with pytest.raises(ScenarioError, match="x"), damage(tmp_path):
            raise error
    for stopped in (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        with pytest.raises(stopped), damage(tmp_path):
            raise stopped
    with pytest.raises(FileNotFoundError), damage(tmp_path):
        (tmp_path / "none").read_text()
