"""Sweeps on one machine: which runs are done, what is kept, and which messages report errors."""

import ast
import asyncio
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path

import polars as pl
import pytest
from sweep_scenarios import SMALL, STOPPED, assert_same, fail_at, file_of, small

import elephan
from elephan.studies.sweeps import batches, loop, schedulers, worker


def counts(sweep: elephan.Sweep) -> tuple[int, int]:
    """The new and the known runs."""
    sweep.run()
    return sweep.done - sweep.reused, sweep.reused


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> elephan.Sweep:
    return elephan.sweep(small(), tmp_path_factory.mktemp("grid") / "out").run()


def test_every_run_is_given_once_and_kept(tmp_path: Path):
    sweep = elephan.sweep(small(), tmp_path / "out")
    runs = list(sweep)
    assert len({run.run for run in runs}) == len(runs) == 12
    assert {(run.point, run.repeat) for run in runs} == {(p, k) for p in range(1, 7) for k in range(2)}
    assert all(run.ok and not run.reused for run in runs)
    frame = sweep.to_polars()
    assert frame["rtt"].to_list() == ["10 ms"] * 4 + ["20 ms"] * 4 + ["40 ms"] * 4
    assert frame["seed"].to_list() == [1, 2] * 6
    last = next(run for run in runs if (run.point, run.repeat) == (6, 1))
    assert last.settings == {"path.rtt": "40 ms", "flow.cc": "htcp"}
    alone = elephan.run(last.scenario)
    assert alone.summary == last.summary
    assert frame["goodput"][11] == alone.summary.goodput_bit_s
    assert frame["rtt_s"][11] == 0.04
    mine = sweep.samples("flows").filter(pl.col("run") == last.run).drop("run").collect()
    assert mine.equals(alone.flows)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.name != ".elephan-lock") == [
        "flows", "index.parquet", "queues", "sweep.json", "transfers",
    ]  # fmt: skip


def test_a_second_sweep_runs_nothing_and_gives_the_same(grid: elephan.Sweep):
    before = grid.to_polars()
    again = elephan.sweep(small(), grid.folder)
    assert "12 of 12 runs done" in repr(again)
    assert "<table" in again._repr_html_()
    assert "12 of 18 runs done" in repr(elephan.sweep(small(sweep__repeat="3"), grid.folder))
    assert "0 of 12 runs done" in repr(elephan.sweep(small(), grid.folder / "none"))
    assert "0 of 12 runs done" in repr(elephan.sweep(small(duration="4 s"), grid.folder))
    runs = list(again)
    assert (again.done, again.reused) == (12, 12)
    assert all(run.reused and run.summary.utilisation is not None for run in runs)
    assert again.to_polars().equals(before)


def test_any_number_of_workers_gives_the_same(grid: elephan.Sweep, tmp_path: Path):
    assert counts(elephan.sweep(small(), tmp_path / "one", workers=1)) == (12, 0)
    assert_same(grid.folder, tmp_path / "one")


def test_only_what_is_missing_is_run(tmp_path: Path):
    out = tmp_path / "out"
    assert counts(elephan.sweep(small(), out)) == (12, 0)
    # More values and more repeats: existing runs are found, whatever their new position.
    wider = elephan.load(file_of(tmp_path, SMALL.replace('["10 ms", "20 ms", "40 ms"]', '["5 ms", "40 ms", "10 ms"]')))
    assert counts(elephan.sweep(wider, out)) == (4, 8)
    frame = elephan.Dataset(out).runs()
    assert frame["rtt"].unique(maintain_order=True).to_list() == ["5 ms", "40 ms", "10 ms"]
    assert frame["point"].to_list() == [n for n in range(1, 7) for _ in range(2)]
    assert counts(elephan.sweep(small(sweep__repeat="3"), out)) == (6, 12)
    # A change of any other key changes all results. If it is changed back, they are known again.
    assert counts(elephan.sweep(small(path__buffer='"21 packets"'), out)) == (12, 0)
    assert set(elephan.Dataset(out).runs()["buffer"]) == {"21 packets"}
    assert counts(elephan.sweep(small(), out)) == (0, 18)


def test_other_code_reuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "out"
    assert counts(elephan.sweep(small(), out)) == (12, 0)
    for part in (loop, schedulers):
        monkeypatch.setattr(part, "code_version", lambda: "0.0.0+other")
    monkeypatch.setattr("elephan.studies.sweeps.worker.code_version", lambda: "0.0.0+other")
    assert counts(elephan.sweep(small(), out)) == (12, 0)


def test_a_batch_is_so_much_work_however_busy_the_machine_is():
    row = {"wall_s": 2.0, "cpu_s": 0.05}
    assert batches.work_s(row, "sim") == 0.05
    assert batches.work_s(row, "linux") == 2.0
    waiting = batches.Waiting(
        lambda point, repeat: batches.PlannedRun(point, repeat, "", ""), deque((0, k) for k in range(100))
    )
    assert len(waiting.batch(2)) == 1
    waiting.note(batches.work_s(row, "sim"))
    assert len(waiting.batch(2)) == batches.BATCH_S / 0.05


def test_batches_shrink_so_that_workers_end_together():
    waiting = batches.Waiting(
        lambda point, repeat: batches.PlannedRun(point, repeat, "", ""), deque((0, k) for k in range(100))
    )
    waiting.note(1e-3)
    sizes = []
    while waiting:
        sizes.append(len(waiting.batch(2)))
    assert sizes[:3] == [25, 18, 14]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert sum(sizes) == 100


def test_a_loop_that_is_left_keeps_what_has_finished(
    grid: elephan.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batches, "BATCH_S", 0.0)
    out = tmp_path / "out"
    for number, _ in enumerate(elephan.sweep(small(), out, workers=1)):
        if number == 4:
            break
    known = elephan.Dataset(out).index().height
    assert 5 <= known < 12
    assert counts(elephan.sweep(small(), out)) == (12 - known, known)
    assert_same(grid.folder, out)


def test_a_run_that_fails_is_recorded_and_tried_again_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        fail_at(patch, lambda document: document["path"]["rtt"] == "20 ms" and document["seed"] == 2)
        sweep = elephan.sweep(small(), out)
        failed = [run for run in sweep if not run.ok]
    assert [run.error for run in failed] == ["the link is on fire"] * 2
    assert (sweep.done, sweep.failed) == (12, 2)
    with pytest.raises(elephan.SweepError, match=r"point [34], repeat 1: the link is on fire"):
        _ = failed[0].summary
    bad = elephan.Dataset(out).runs().filter(pl.col("error").is_not_null())
    assert bad["point"].to_list() == [3, 4]
    assert counts(elephan.sweep(small(), out)) == (0, 12)
    assert counts(elephan.sweep(small(), out, retry_failed=True)) == (2, 10)
    assert elephan.Dataset(out).runs()["error"].null_count() == 12


def test_repeats_are_added_until_the_interval_is_tight(tmp_path: Path):
    text = SMALL.replace('["10 ms", "20 ms", "40 ms"]', '["20 ms"]')
    scenario = elephan.load(file_of(tmp_path, text))
    sweep = elephan.sweep(scenario, tmp_path / "out", until="ci(fairness) < 20%", max_repeat=30).run()
    frame = sweep.to_polars()
    from elephan.studies.statistics import Estimate

    for (point,), runs in frame.group_by("point"):
        estimate = Estimate.of(runs["fairness"].to_list())
        assert 5 <= runs.height <= 30
        assert estimate.half_width <= 0.2 * estimate.mean or runs.height == 30, point
        assert runs["seed"].to_list() == list(range(1, runs.height + 1))
    assert frame["repeat"].max() > 4
    # With any number of workers, and when it is resumed, the sweep requests the same repeats.
    again = elephan.sweep(scenario, tmp_path / "again", workers=1, until="ci(fairness) < 20%", max_repeat=30).run()
    assert again.to_polars()["run"].to_list() == frame["run"].to_list()
    assert counts(elephan.sweep(scenario, tmp_path / "out", until="ci(fairness) < 20%", max_repeat=30)) == (
        0,
        frame.height,
    )
    # Without the condition they are kept.
    assert counts(elephan.sweep(scenario, tmp_path / "out")) == (0, frame.height)


@pytest.mark.parametrize(
    ("until", "most", "message"),
    [
        ("fairness < 5%", 9, 'until: expected a condition such as "ci(fairness) < 5%", found "fairness < 5%"'),
        ("ci(fairness) < -1", 9, "until: expected a condition"),
        ("ci(fairness) < 5%", None, "max_repeat: expected a number with until, found none"),
        ("ci(fairness) < 5%", 0, "max_repeat: expected 1 or more, found 0"),
        ("ci(fairnes) < 5%", 9, "until: ci(): expected fairness, .*, found 'fairnes'"),
    ],
)
def test_a_condition_that_is_none_is_refused(until: str, most: int | None, message: str, tmp_path: Path):
    with pytest.raises(elephan.ScenarioError, match=message.replace("(", r"\(").replace(")", r"\)")):
        elephan.sweep(small(), tmp_path / "out", until=until, max_repeat=most).run()


def test_runs_on_the_kernel_are_not_made_beside_each_other(tmp_path: Path):
    scenario = small().with_settings({"engine": "linux"})
    with pytest.raises(elephan.ScenarioError, match=r"^workers: expected 1 with the linux engine, found 2"):
        elephan.sweep(scenario, tmp_path / "out", workers=2)


def test_a_scenario_without_a_sweep_is_a_sweep_of_one(tmp_path: Path):
    scenario = elephan.load(file_of(tmp_path, SMALL.split("[sweep]")[0]))
    assert counts(elephan.sweep(scenario, tmp_path / "out")) == (1, 0)
    assert elephan.Dataset(tmp_path / "out").runs()["cc"].to_list() == ["reno"]


def test_a_point_that_cannot_work_is_named_and_nothing_is_lost(grid: elephan.Sweep, tmp_path: Path):
    before = (grid.folder / "index.parquet").read_bytes()
    path = file_of(tmp_path, SMALL.replace('"40 ms"', '"0 ms"'))
    with pytest.raises(elephan.ScenarioError, match=r'at point 5 of 6: path\.rtt = "0 ms", flow\.cc = "reno"'):
        elephan.sweep(path, grid.folder)
    assert (grid.folder / "index.parquet").read_bytes() == before


def test_other_code_on_a_worker_is_refused_with_the_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedulers, "code_version", lambda: "0.0.0+other")
    with pytest.raises(
        elephan.SweepError, match=r"^point \d: expected Elephan 0\.0\.0\+other, as the client has, found 0\.1"
    ):
        elephan.sweep(small(), tmp_path / "out").run()


def test_a_sweep_runs_where_an_event_loop_does(tmp_path: Path):
    async def cell() -> int:
        return sum(1 for _ in elephan.sweep(small(), tmp_path / "out"))

    assert asyncio.run(cell()) == 12


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_sweep_that_is_stopped_goes_on(how: signal.Signals, grid: elephan.Sweep, tmp_path: Path):
    path, out = file_of(tmp_path, SMALL), tmp_path / "out"
    words = [sys.executable, "-c", STOPPED.replace("{number}", str(int(how)))]
    words += ["sweep", str(path), "--out", str(out), "--workers", "1"]
    process = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    known = elephan.Dataset(out).index().height
    assert 3 <= known < 12
    if how == signal.SIGKILL:
        assert process.returncode == -how
    else:
        assert process.returncode == 128 + how
        assert process.stderr.strip() == f"interrupted; {known} of 12 runs are in {out}; repeat the command to continue"
    assert counts(elephan.sweep(path, out)) == (12 - known, known)
    frame = elephan.Dataset(out).runs()
    assert frame["run"].n_unique() == 12
    assert frame["status"].to_list() == ["ok"] * 12
    assert_same(grid.folder, out)


def test_the_version_of_the_code_is_of_all_that_makes_results():
    """Every module of the package that a worker imports is hashed, or only shows results."""
    package = Path(worker.__file__).parents[2]
    shows = {
        "api.metrics",
        "api.outline",
        "api.pictures.data",
        "api.pictures.draw",
        "api.pictures.kinds",
        "api.pictures.samples",
        "base.cores",
        "base.documents",
        "base.errors",
        "base.folders",
        "base.kinds",
        "base.notebook",
        "base.numbers",
        "base.plots",
        "base.table",
        "base.text",
        # What these compile is part of a run's key.
        "foreign.bpf",
        "foreign.build",
        "foreign.modules",
        "kernel.errors",
    }
    hashed = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in worker.MAKES_RESULTS}
    for name in worker.MAKES_RESULTS:
        for line in ast.walk(ast.parse((package / name).read_text(encoding="utf-8"))):
            if isinstance(line, ast.ImportFrom) and (line.module or "").partition(".")[0] == "elephan":
                module = (line.module or "").removeprefix("elephan").removeprefix(".")
                inner = [f"{module}.{alias.name}".removeprefix(".") for alias in line.names]
                modules = [one for one in inner if (package / f"{one.replace('.', '/')}.py").is_file()]
                for imported in modules or [module or line.names[0].name]:
                    assert imported in hashed | shows | {"_core"}, f"{name} imports {imported}"
