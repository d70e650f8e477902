"""Scenarios and helpers for the tests of sweeps."""

from pathlib import Path
from typing import Any

import polars as pl

import elephan

SMALL = """
name = "small"
duration = "3 s"
path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }, { cc = "reno", start = { uniform = ["0 s", "1 s"] } }]
[sweep]
"path.rtt" = ["10 ms", "20 ms", "40 ms"]
"flow.cc" = ["reno", "htcp"]
repeat = 2
"""

# The command line in a process of its own. Every run is written at once, and the signal comes when the third part of the
# index is written.
STOPPED = """
import signal
from elephan.cli import main
from elephan.studies.sweeps import batches, loop, writer

loop.FLUSH_S = batches.BATCH_S = 0.0
flush, flushed = writer.Writer.flush, []
def stopped(self):
    flush(self)
    flushed.append(len(list(self.folder.glob("index/part-*.parquet"))))
    if flushed[-1] == 3 and flushed.count(3) == 1:
        signal.raise_signal({number})
writer.Writer.flush = stopped
main()
"""

# Columns that differ between two runs of the same scenario.
CLOCKS = ("wall_s", "cpu_s", "part")


def small(**changes: str) -> elephan.Scenario:
    """The small sweep, with some keys set."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(SMALL)
        file.flush()
        return elephan.load(file.name, {key.replace("__", "."): value for key, value in changes.items()})


def file_of(folder: Path, text: str) -> Path:
    """A file with this scenario."""
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def results(folder: Path) -> dict[str, pl.DataFrame]:
    """Everything that two sweeps of the same scenario must have in common, to the bit."""
    data = elephan.Dataset(folder)
    index = data.index(long=True)
    found: dict[str, pl.DataFrame] = {"index": index.drop(c for c in CLOCKS if c in index.columns)}
    for name in ("flows", "queues", "transfers"):
        parts = [pl.read_parquet(path).with_columns(pl.col("run").cast(pl.String)) for path in data.samples(name)]
        found[name] = pl.concat(parts).sort("run", maintain_order=True)
    return found


def assert_same(one: Path, other: Path) -> None:
    """Compare two folders, to the bit."""
    first, second = results(one), results(other)
    for name, frame in first.items():
        other_frame = second[name].select(frame.columns)
        assert frame.height > 0 or name == "transfers"
        assert frame.equals(other_frame), name


def fail_at(monkeypatch: Any, where: Any) -> None:
    """Let those runs fail whose scenario document satisfies `where`."""
    from elephan.studies.sweeps import worker

    good = worker.simulate

    def simulate(scenario: elephan.Scenario, **keys: Any) -> elephan.Run:
        if where(scenario.document):
            raise RuntimeError("the link is on fire")
        return good(scenario, **keys)

    monkeypatch.setattr(worker, "simulate", simulate)
