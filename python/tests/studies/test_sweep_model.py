"""A sweep's folder compared with a simple model: after any operations, all complete runs are known, and nothing else is."""

import shutil
import tempfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from kills import killed_at

import elephan
from elephan.studies.sweeps import batches, loop
from elephan.studies.sweeps.dataset import INDEX, SUPERSEDED
from elephan.studies.sweeps.worker import code_version, identity

RTTS = ("10 ms", "20 ms", "40 ms")
points = st.fixed_dictionaries(
    {
        "path.rtt": st.lists(st.sampled_from(RTTS), min_size=1, unique=True),
        "path.buffer": st.lists(st.sampled_from(["20 packets", "30 packets"]), min_size=1, unique=True),
    }
)


def sweep_of(keys: dict[str, list[str]]) -> elephan.Scenario:
    flows = [elephan.flow("reno")]
    return elephan.dumbbell(rate="10 Mbit/s", rtt="20 ms", flows=flows, duration="200 ms", sweep=keys)


def identities(keys: dict[str, list[str]]) -> set[str]:
    sweep = sweep_of(keys)
    return {identity(sweep.canonical(point, 0), code_version()) for point in range(sweep.points)}


def rows(folder: Path) -> dict[str, int]:
    """The part of every run in any file of the index."""
    found: dict[str, int] = {}
    for path in [folder / SUPERSEDED, folder / INDEX, *sorted((folder / "index").glob("*.parquet"))]:
        if path.exists():
            frame = pl.read_parquet(path, glob=False)
            found |= {} if frame.is_empty() else dict(frame.select("run", "part").iter_rows())
    return found


def whole(folder: Path) -> set[str]:
    """The runs that have a row and all samples, read without Elephan's code."""
    kept: dict[tuple[str, int], set[str]] = {}

    def runs_in(name: str, part: int) -> set[str]:
        if (name, part) not in kept:
            try:
                table = pq.read_table(folder / name / f"part-{part:06}.parquet")
                kept[name, part] = set(table["run"].unique().to_pylist())
            except (OSError, pa.ArrowInvalid):
                kept[name, part] = set()
        return kept[name, part]

    return {run for run, part in rows(folder).items() if all(run in runs_in(n, part) for n in ("flows", "queues"))}


class Folder(RuleBasedStateMachine):
    """Sweeps, kills and accidents in one folder."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="elephan-test-"))
        self.out = self.place / "out"
        self.known: set[str] = set()
        self.current: set[str] = set()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(loop, "FLUSH_S", 0.0)
        self.patch.setattr(batches, "BATCH_S", 0.0)

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.place)

    @rule(keys=points)
    def sweep(self, keys: dict[str, list[str]]) -> None:
        """After any history, complete runs are known, and the rest is run."""
        asked = identities(keys)
        done = elephan.sweep(sweep_of(keys), self.out, workers=1).run()
        assert (done.done, done.reused, done.failed) == (len(asked), len(asked & self.known), 0)
        self.known |= asked
        self.current = asked
        assert set(elephan.Dataset(self.out).index()["run"]) == asked
        assert elephan.Dataset(self.out).losses() == []
        assert elephan.sweep(sweep_of(keys), self.out, workers=1).run().reused == len(asked)

    @rule(keys=points, step=st.integers(1, 60))
    def sweep_that_is_killed(self, keys: dict[str, list[str]], step: int) -> None:
        """A kill at any disk operation loses nothing."""
        killed_at(step, lambda: elephan.sweep(sweep_of(keys), self.out, workers=1).run(), self.patch)
        now = whole(self.out)
        assert self.known <= now <= self.known | identities(keys)
        self.known = now

    # Which files a killed sweep leaves depends on how far its threads were, so no rule has a precondition: what is drawn would
    # depend on it.
    @rule(name=st.sampled_from(["flows", "queues"]), which=st.integers(0, 9), cut=st.booleans())
    def accident(self, name: str, which: int, *, cut: bool) -> None:
        """Samples are removed or truncated."""
        paths = sorted((self.out / name).glob("part-*.parquet"))
        if not paths:
            return
        path = paths[which % len(paths)]
        lost = {run for run, part in rows(self.out).items() if path.name == f"part-{part:06}.parquet"}
        path.write_bytes(path.read_bytes()[:-7]) if cut else path.unlink()
        self.known -= lost
        index = elephan.Dataset(self.out).index()
        if index.height and lost & set(index["run"]):
            assert path in [loss.path for loss in elephan.Dataset(self.out).losses()]

    @rule()
    def loss_of_the_index(self) -> None:
        """`index.parquet` is removed, if it is there."""
        (self.out / INDEX).unlink(missing_ok=True)
        self.known = whole(self.out)

    @invariant()
    def what_is_whole_is_known(self) -> None:
        """The folder agrees with the model."""
        assert whole(self.out) == self.known


TestFolder = Folder.TestCase
TestFolder.settings = settings(
    max_examples=12, stateful_step_count=8, deadline=None, database=None, print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
