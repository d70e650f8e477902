"""Damaged results of any kind are read, or refused in one line. `make fuzz` tests more kinds of damage."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elephan
from elephan import ScenarioError
from elephan.api.run import TABLES, Run
from elephan.base.documents import damage
from elephan.report.read import read
from elephan.studies.sweeps import Dataset, SweepError

SCENARIO = """
name = "small"
duration = "1 s"
path = { rate = "2 Mbit/s", rtt = "20 ms", buffer = "10 packets" }
cbr = [{ rate = "100 kbit/s" }]
flow = [{ cc = "reno", size = "20 kB", transfers = 3 }]
trace = { events = true }
sweep = { "flow.0.cc" = ["reno", "htcp"] }
"""
# Values that can replace an expected value.
ODD = [None, True, -1, 1e308, 2**70, "", "../..", "\x1b[31m\n", [], [[]], {}, {"scenario": None}, "NaN"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run and of a sweep."""
    folder = tmp_path_factory.mktemp("whole")
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    assert all(one.ok for one in elephan.sweep(scenario, out=folder / "sweep", workers=1))
    scenario.write_text(SCENARIO.partition("sweep =")[0], encoding="utf-8")
    elephan.run(elephan.load(scenario)).save(folder / "run")
    return folder


def look_at_run(folder: Path) -> None:
    """Run everything that reads a run's folder."""
    run = Run.load(folder)
    for name in TABLES:
        getattr(run, name)
    read(folder)


def look_at_sweep(folder: Path) -> None:
    """Run everything that reads a sweep's folder."""
    data = Dataset(folder)
    data.runs()
    data.samples("flows")
    read(folder)


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


@pytest.mark.parametrize(("what", "look"), [("run", look_at_run), ("sweep", look_at_sweep)])
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
    tmp_path: Path,
    what: str,
    look: Callable[[Path], None],
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
    said = "read"
    try:
        look(folder)
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
