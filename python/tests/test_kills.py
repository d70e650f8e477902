"""Commands that are killed at random times, and disks that are full or read-only: nothing is lost, nothing is left behind."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sweep_scenarios import SMALL, assert_same

import elephan
from elephan import kernel
from elephan.api.run import TABLES, Run
from elephan.base import folders

ONE = """
duration = "10 s"
path = { rate = "50 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }]
"""
# Parts are written at once, so that there is something to lose; and the experiment is a quick one.
COMMAND = """
import elephan
from elephan import cli
from elephan.studies.sweeps import batches, loop
from elephan.studies.reproduce import catalogue, lab
loop.FLUSH_S = batches.BATCH_S = 0.02
def few_runs(one):
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "duration": "5 s", "flows": [elephan.flow("reno")]}
    one.run([elephan.dumbbell(**path, seed=seed) for seed in range(1, 31)])
    return lab.Report(one)
lab.experiment("ltcp2003/few-runs", "a few short runs")(few_runs)
cli.main()
"""
KILLS = 3


class Shell:
    """Runs commands, and kills them."""

    def __init__(self, place: Path) -> None:
        self._said = place / "said"
        self.killed: list[int] = []
        # The duration of a process that does nothing.
        self.start_s = self.run("--version")

    def _start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        with self._said.open("wb") as said:
            return subprocess.Popen([sys.executable, "-c", COMMAND, *map(str, words)], stdout=said, stderr=said)

    def run(self, *words: str | Path) -> float:
        """Run a command, which must succeed; returns its duration in seconds."""
        started = time.monotonic()
        assert self._start(*words).wait() == 0, self.said()
        return time.monotonic() - started

    def kill(self, after_s: float, *words: str | Path) -> None:
        """Start a command, and kill it after a delay; it may have succeeded before."""
        process = self._start(*words)
        time.sleep(after_s)
        process.kill()
        self.killed.append(process.pid)
        assert process.wait() in (0, -signal.SIGKILL), self.said()

    def said(self) -> str:
        """The output of the last command."""
        return self._said.read_text()


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("shell"))


@pytest.fixture
def moments() -> random.Random:
    seed = random.SystemRandom().randrange(2**32)
    print(f"moments: random.Random({seed})")
    return random.Random(seed)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with files of the user, which must exist afterwards as well."""
    files = [tmp_path / name for name in ("draft.tmp", ".elephan-notes", "sub/draft.tmp", "results/thesis/draft.tmp")]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    yield tmp_path
    assert all(path.read_text() == "mine" for path in files)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".elephan-*") if path.name not in (folders.LOCK, ".elephan-notes")]


def assert_whole(folder: Path) -> None:
    run = Run.load(folder)
    assert all(run.table(name) is not None for name in TABLES)


@pytest.mark.slow
def test_a_run_is_there_as_a_whole_or_not_at_all(shell: Shell, place: Path, moments: random.Random):
    file, out = write(place / "one.toml", ONE), place / "results" / "out"
    took = shell.run("run", file, "--out", place / "results" / "first")
    for _ in range(KILLS):
        shell.kill(moments.uniform(0.8 * shell.start_s, took), "run", file, "--out", out)
        if out.exists():
            assert_whole(out)
            shell.run("run", file, "--out", out, "--force")
            folders.shutil.rmtree(out)
        assert len(left(place / "results")) < 10
    shell.run("run", file, "--out", out)
    assert_whole(out)
    assert not left(place)


@pytest.mark.slow
def test_results_that_are_replaced_are_there_in_one_form_or_the_other(
    shell: Shell, place: Path, moments: random.Random
):
    file, out = write(place / "one.toml", ONE), place / "results" / "out"
    took = shell.run("run", file, "--out", out)
    for _ in range(KILLS):
        # The end is the critical time.
        shell.kill(moments.uniform(0.7 * took, 1.05 * took), "run", file, "--out", out, "--force")
        # What the next command does that writes beside the results, or into them.
        folders.clear(out.parent)
        folders.clear(out)
        assert_whole(out)
        assert not left(place)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_sweep_loses_no_row(workers: str, shell: Shell, place: Path, moments: random.Random):
    file, out = write(place / "grid.toml", SMALL.replace("3 s", "60 s")), place / "results" / "out"
    words = ("sweep", file, "--out", out, "--workers", workers)
    took = shell.run("sweep", file, "--out", place / "results" / "whole")
    kept: set[str] = set()
    for _ in range(KILLS):
        shell.kill(moments.uniform(shell.start_s, 0.5 * (shell.start_s + took)), *words)
        data = elephan.Dataset(out)
        index = data.index() if (out / "sweep.json").exists() else None
        now = set(index["run"]) if index is not None and index.height else set()
        assert kept <= now
        kept = now
        if now:
            assert data.losses() == []
    shell.run(*words)
    assert f"{len(kept)} reused, 0 failed" in shell.said()
    assert_same(place / "results" / "whole", out)
    assert not left(place)


@pytest.mark.slow
def test_a_reproduction_goes_on(shell: Shell, place: Path, moments: random.Random):
    out = place / "results" / "reproduce"
    took = shell.run("reproduce", "ltcp2003/few-runs", "--out", place / "results" / "whole")
    kept: set[Path] = set()
    for _ in range(KILLS):
        shell.kill(
            moments.uniform(shell.start_s, 0.5 * (shell.start_s + took)), "reproduce", "ltcp2003/few-runs", "--out", out
        )
        now = set((out / "runs").glob("[!.]*"))
        assert kept <= now
        assert all(Run.load(path).summary for path in now)
        kept = now
    shell.run("reproduce", "ltcp2003/few-runs", "--out", out)
    report = json.loads((out / "full" / "ltcp2003" / "few-runs.json").read_text())
    assert (report["runs"], report["made"]) == (30, 30 - len(kept))
    assert not left(place)


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_a_run_on_the_kernel_is_there_as_a_whole_or_not_at_all(shell: Shell, place: Path, moments: random.Random):
    file = write(place / "one.toml", ONE.replace("10 s", "1 s").replace("50 Mbit/s", "10 Mbit/s"))
    words = ("run", file, "--engine", "linux", "--out", place / "results" / "out")
    for _ in range(KILLS):
        shell.kill(moments.uniform(shell.start_s, shell.start_s + 2), *words, "--force")
        if (place / "results" / "out").exists():
            assert_whole(place / "results" / "out")
    shell.run(*words, "--force")
    assert_whole(place / "results" / "out")
    assert not left(place)
    # The kernel removes the resources of a process in the background.
    while [one for one in kernel.loaded() if any(one.registered.startswith(f"el_{pid}_") for pid in shell.killed)]:
        time.sleep(0.05)


# Disks. They are in a mount namespace of their own, so that nothing stays mounted.

ON_A_DISK = """
import os, subprocess, sys
from pathlib import Path
import elephan
from elephan.cli import main
from elephan.studies.sweeps import batches, loop
disk = Path(sys.argv[1])
def mount(*options):
    subprocess.run(["mount", *options, str(disk)], check=True)
def call(*words):
    sys.argv = ["elephan", *map(str, words)]
    try:
        main()
    except SystemExit as stop:
        return stop.code
def tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
mount("-t", "tmpfs", "-o", "size=" + sys.argv[2], "elephan-test")
"""


def on_a_disk(tmp_path: Path, size: str, script: str) -> str:
    """Run a script on a small disk; returns its standard error."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "elephan-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root, which may mount a disk in a namespace of its own")
    command = ["unshare", "-m", sys.executable, "-c", ON_A_DISK + script, str(disk), size]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(disk.iterdir())
    return done.stderr


def test_a_full_disk_names_the_points_and_keeps_what_was_written(tmp_path: Path):
    write(tmp_path / "grid.toml", SMALL)
    script = """
loop.FLUSH_S = batches.BATCH_S = 0.0
out = disk / "out"
assert call("sweep", "grid.toml", "--workers", 1, "--out", out) == 1
known = elephan.Dataset(out).index().height
assert 0 < known < 12, known
assert not [path for path in out.rglob(".elephan-*") if path.name != ".elephan-lock"]
mount("-o", "remount,size=16m")
sweep = elephan.sweep("grid.toml", out).run()
assert (sweep.done, sweep.reused, sweep.losses) == (12, known, [])
assert len(elephan.Dataset(out).samples("flows")) > 1
"""
    said = on_a_disk(tmp_path, "300k", script)
    assert "disk/out: No space left on device, while writing point" in said
    assert "everything before is safe" in said
    assert len(said.splitlines()) == 1


def test_a_full_disk_leaves_the_old_results(tmp_path: Path):
    write(tmp_path / "one.toml", ONE)
    script = """
out = disk / "out"
assert call("run", "one.toml", "--out", out) == 0
before = tree(disk)
used = sum(map(len, before.values()))
mount("-o", f"remount,size={used // 1024 + 40}k")
assert call("run", "one.toml", "--out", out, "--force") == 1
assert call("run", "one.toml", "--out", disk / "other") == 1
assert tree(disk) == before
"""
    said = on_a_disk(tmp_path, "8m", script)
    assert said.count("No space left on device; nothing was written to ") == 2, said
    assert len(said.splitlines()) == 2


def test_a_read_only_disk_is_one_line(tmp_path: Path):
    write(tmp_path / "one.toml", ONE)
    write(tmp_path / "grid.toml", SMALL)
    script = """
assert call("run", "one.toml", "--out", disk / "out") == 0
assert call("sweep", "grid.toml", "--out", disk / "sweep") == 0
before = tree(disk)
mount("-o", "remount,ro")
for words in (
    ("run", "one.toml", "--out", disk / "out", "--force"),
    ("run", "one.toml", "--out", disk / "new" / "out"),
    ("sweep", "grid.toml", "--out", disk / "sweep"),
    ("sweep", "grid.toml", "--out", disk / "new"),
    ("report", disk / "out"),
    ("plot", "cwnd", disk / "out"),
    ("reproduce", "ltcp2003/section-2", "--out", disk / "new"),
):
    assert call(*words) == 1, words
assert call("sweep", "table", disk / "sweep", "--metric", "goodput") == 0
assert tree(disk) == before
"""
    said = on_a_disk(tmp_path, "8m", script)
    lines = said.splitlines()
    assert len(lines) == 7, said
    for line in lines:
        assert "Read-only file system" in line
        assert folders.LOCK in line or ".elephan-" not in line
